"""memlint inside other tools."""
