"""The running loops, and what the process holds at their tops."""
