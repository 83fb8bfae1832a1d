"""What may be typed: the options of every command, what is made of them, and how a shell completes them."""
