"""How are fixes made, pass by pass, and which of them count?"""
