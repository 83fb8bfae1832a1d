"""What does a project define, and what does a name mean: modules, classes, functions, words, roles of files?

The symbol table, name resolution and the word index. Nothing here interprets code.
"""
