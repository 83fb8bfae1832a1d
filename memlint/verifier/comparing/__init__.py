"""What does a change to the program save? Two runs of it, side by side."""
