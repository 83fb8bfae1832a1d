"""How is a large project parted, and who works on its parts?"""
