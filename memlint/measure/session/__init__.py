"""The measurement of one process: when each site and loop is checked, and when all is measured."""
