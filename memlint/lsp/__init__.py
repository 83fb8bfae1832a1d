"""The language server: a process that speaks the protocol, and a worker that analyses. Nothing else imports it."""
