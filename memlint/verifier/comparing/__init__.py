"""How much does a change to the program save? Two runs of it, compared."""
