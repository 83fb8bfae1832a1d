"""What the hits of a site leave behind."""
