"""The facts of the analysis about one line, for users who ask why something is reported or not."""
