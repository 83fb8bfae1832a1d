"""The abstract values, and the abstract state at a program point.

`values` is the product lattice, `state` a program point, `graphs` the autograd graph of a function, `summary` the
stored result of a function, `extents` the bytes of a tensor, `events` what rules read.
"""
