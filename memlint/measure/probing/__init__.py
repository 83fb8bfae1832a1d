"""Puts probes into a program, and passes their reports to the session."""
