"""What does the report say, given what was measured? Pure: it runs nothing."""
