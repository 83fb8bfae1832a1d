"""The language server: a process for the protocol, and a worker process for the analysis."""
