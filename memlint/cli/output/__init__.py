"""Output for users: reports, progress, and the final messages of a command."""
