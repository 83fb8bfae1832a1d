"""Backwards that keep or record more than they need, and graphs that outlive them."""
