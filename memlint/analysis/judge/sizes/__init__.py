"""How large the networks are that run, and what they run on: by their layers, by what made them, by single samples."""
