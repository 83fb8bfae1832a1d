"""When is what measured in this process, and when is all of it measured?"""
