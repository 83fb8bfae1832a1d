"""The bytes of a tensor: an interval for one sample, and the known dimensions."""
