"""The processes of a program: which are measured, and when they stop together."""
