"""Fixes: from a rule's plan to text edits, and from edits to checked files."""
