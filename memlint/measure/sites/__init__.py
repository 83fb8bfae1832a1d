"""What do the hits of a flagged place leave behind?"""
