"""What is an abstract value, and what is the state at a program point?

`values` is the product lattice, `state` a program point, `graphs` the autograd graph of a function, `summary` what is
kept of a function once it is interpreted, `extents` the bytes of a tensor, `events` what rules read.
"""
