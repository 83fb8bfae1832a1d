"""How does a statement or an expression change the state?

Transfer functions. They get the interpreter and the answers of the project from the function state, and import neither
calls nor facts.
"""
