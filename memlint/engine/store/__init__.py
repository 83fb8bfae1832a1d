"""What do earlier runs store, where, and can it be trusted?"""
