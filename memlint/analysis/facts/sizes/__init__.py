"""What are whole numbers, and lists of them, at most: widths and counts, by literals, constructors, options, names?"""
