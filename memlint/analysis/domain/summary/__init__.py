"""What is kept of an interpreted function: its effects, its observations, its graphs, its state at the end."""
