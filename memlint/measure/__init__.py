"""Runs a program with probes in it and measures what its tensors, its graphs and its process keep.

This package also runs alone, in an environment that has torch but no memlint (`launch`), so its modules import the
standard library and each other, and torch only once the measured program has imported it: a program may set
environment variables that torch reads when it is imported.
"""
