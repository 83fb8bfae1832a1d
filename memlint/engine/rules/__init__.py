"""Which rules exist, which of them run, and may those of a project run at all?"""
