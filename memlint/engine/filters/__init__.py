"""Which findings are held back: by a baseline, by unchanged lines, by evidence?"""
