"""What do earlier runs keep, where, and may it be trusted?"""
