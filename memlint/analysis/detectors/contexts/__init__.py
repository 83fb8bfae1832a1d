"""What an autograd function keeps on its context."""
