"""Does a later use need the gradient, the graph or the storage of a value: here, in a caller, or in an optimizer?"""
