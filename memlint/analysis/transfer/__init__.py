"""How does a statement or an expression change the state?

Transfer functions. They are handed the interpreter and the answers of the project by their frame, and import neither
calls nor facts.
"""
