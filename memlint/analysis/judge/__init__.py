"""Decides which observations become findings: the named reasons against each one, its confidence and its evidence."""
