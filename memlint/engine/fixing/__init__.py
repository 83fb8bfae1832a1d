"""How are fixes applied, pass by pass, and which of them hold?"""
