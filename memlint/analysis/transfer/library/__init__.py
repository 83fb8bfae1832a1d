"""What do calls of torch, of its frameworks, of the standard library and of unresolved code do?"""
