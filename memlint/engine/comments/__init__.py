"""Which comments suppress findings, which suppress nothing, and how is a new one written?"""
