"""Who keeps a tensor alive, and by which path from a root of the program?"""
