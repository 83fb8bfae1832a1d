"""Names that are deleted to free memory which something else still holds."""
