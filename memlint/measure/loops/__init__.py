"""Which loops are running, and what does the process hold at their tops?"""
