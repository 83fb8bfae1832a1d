"""Does this code run at all: dead definitions, files that cannot be loaded, calls that no signature allows?

The answers use the index alone. `memlint.analysis.driver` answers what depends on values.
"""
