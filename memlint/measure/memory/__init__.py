"""How much memory does the process hold: on its devices, in the tensors of the CPU, beside tensors?"""
