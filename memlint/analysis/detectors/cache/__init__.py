"""Where ``empty_cache()`` runs, and how often."""
