"""Does anybody need the gradient, the graph or the storage of a value later: here, in a caller, in an optimizer?"""
