"""What does the text of one function tell: its statements, names, calls and loops, and what runs on every path?

Imports the IR alone. Nothing here knows a value, another function or another file.
"""
