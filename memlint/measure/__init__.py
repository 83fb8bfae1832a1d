"""Runs a program with probes and measures the memory that its tensors, graphs and process keep.

This package also runs alone, in an environment that has torch but no memlint (`launch`), so its modules import only the
standard library and each other. They use torch after the measured program has imported it, because the program may set
environment variables that torch reads at import.
"""
