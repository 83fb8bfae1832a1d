"""The language server: a process for the protocol, and a worker for the analysis. Nothing else imports it."""
