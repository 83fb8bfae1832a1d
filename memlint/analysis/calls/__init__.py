"""Which function does a call mean, and what does its summary do here?

Resolution, binding, instantiation of summaries, and lifting of what they store and run.
"""
