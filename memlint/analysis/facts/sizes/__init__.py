"""Upper bounds of integers, and of lists of them: widths and counts, by literals, constructors, options, names."""
