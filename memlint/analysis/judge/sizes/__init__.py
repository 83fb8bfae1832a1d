"""How large the networks are that run, and their inputs: by layers, by library functions, by single samples."""
