"""Which function a call may run, and what its summary does in the caller.

Resolution (`functions`, `methods`), instantiation of summaries (`application`), and lifting of the callee's stores and
model runs to the caller.
"""
