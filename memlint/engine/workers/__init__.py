"""How is a large project divided, and which workers lint its parts?"""
