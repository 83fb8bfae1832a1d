"""What the analysis knows of one line, for people who ask why something is reported or not."""
