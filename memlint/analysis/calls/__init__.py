"""Which function does a call mean, and what does its summary do here?

Resolution (`functions`, `methods`), instantiation of summaries (`application`), lifting of what they store and run.
"""
