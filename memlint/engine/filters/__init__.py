"""Which findings are held back: by a baseline, by lines that have not changed, by what was measured?"""
