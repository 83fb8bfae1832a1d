"""What does the whole project say of a parameter, an attribute, a grad mode, a function's callers?"""
