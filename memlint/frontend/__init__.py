"""Source text to the records of `memlint.ir`: parsing, lowering, and where each record stands in its file."""
