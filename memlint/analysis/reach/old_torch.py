"""Files that are written for a torch before 0.4: what turns grad mode off today is not there, and on a newer release
they stop with an error where they take a number out of a loss.

What is said of their evaluations is right, and is of use to whoever brings them up to date.
"""

from __future__ import annotations

import re

from memlint.analysis.index.program import Program
from memlint.patterns import lazy_pattern

#: the release that brought ``torch.no_grad``
_GRAD_MODE = (0, 4)
#: a number taken out of a loss as it was done before 0.4; since then a loss has no dimension, and this raises
_NUMBER = lazy_pattern(r"^[^#\n\"']*?\b((?:\w+_)?loss\.data\[0\])", re.MULTILINE)
#: signs that a file serves several releases
_SEVERAL = lazy_pattern(r"__version__|hasattr\(|torch\.compile|except\b")


def dated(program: Program, key: str) -> str:
    """What tells that a file is written for a torch before 0.4, as a clause; "" where nothing does."""
    project = program.project
    if project.knows_grad_mode(key):
        return ""
    text = project.sources[key].text
    taken = None if _SEVERAL.search(text) else _NUMBER.search(text)
    if taken is not None:
        return f"this file is written for a PyTorch before 0.4, which has no `torch.no_grad`: `{taken[1]}`"
    said = project.newest_torch or project.said_torch
    if said is None or said >= _GRAD_MODE or not project.predates_grad_mode:
        return ""
    return f"this project is for PyTorch {said[0]}.{said[1]}, which has no `torch.no_grad`"
