"""In which mode is a module, is it frozen, who owns its parameters, and does autograd record?"""
