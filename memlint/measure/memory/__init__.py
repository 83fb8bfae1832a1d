"""How much memory does the process hold: on its devices, in CPU tensors, and in host memory beside tensors?"""
