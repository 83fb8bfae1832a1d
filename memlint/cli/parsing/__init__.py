"""Parsing: the options of every command, their meaning, and shell completion."""
