"""Which processes of a program are measured, and when do they stop together?"""
