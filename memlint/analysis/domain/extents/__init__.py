"""How many bytes may a tensor take: an interval for each sample, and the dimensions behind it?"""
