"""Fixes: from what a rule plans to text edits, and from edits to files that are known to be whole."""
