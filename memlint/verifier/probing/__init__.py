"""Which files, loops and positions of a program get probes?"""
