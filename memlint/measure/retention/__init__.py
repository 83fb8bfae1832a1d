"""The holders of a tensor: what keeps it alive, and the path to it from a root of the program."""
