"""What does the text of one function say by itself: statements, names, calls, loops, and what surely runs?

Imports the IR alone. Nothing here knows a value, another function or another file.
"""
