"""Does this code run at all: dead definitions, files that cannot be loaded, calls that no signature allows?

Asked of the index alone; what hangs on values is asked by `memlint.analysis.driver`.
"""
