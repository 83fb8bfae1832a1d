"""What does the report contain, given the measurements? Pure: it runs nothing."""
