"""What the whole project says of a parameter, an attribute, a module's mode and a function's callers."""
