"""What a person sees: reports, progress while there is none yet, and the last words of a command."""
