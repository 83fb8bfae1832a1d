"""What each command does: one module a command."""
