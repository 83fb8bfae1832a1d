"""Names for memory that torch does not have, and readings that mean something else."""
