"""How is the program run in processes of its own, and how are those of several ranks merged?"""
