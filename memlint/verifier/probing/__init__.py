"""Which files, loops and places of a program get probes?"""
