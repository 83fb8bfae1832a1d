"""How do probes come into a program, and what do they call?"""
