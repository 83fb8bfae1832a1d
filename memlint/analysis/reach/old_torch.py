"""Files written for a torch before 0.4, which has no ``torch.no_grad``. On a newer release they raise where they take a
number out of a loss.

Findings on their evaluations are right, and useful when the files are updated.
"""

from __future__ import annotations

import re

from memlint.analysis.index.program import Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.patterns import lazy_pattern

#: the release that introduced ``torch.no_grad``
_GRAD_MODE = (0, 4)
#: the way to take a number out of a loss before 0.4; it raises today, as a loss has no dimension
_NUMBER = lazy_pattern(r"^[^#\n\"']*?\b((?:\w+_)?loss\.data\[0\])", re.MULTILINE)
#: signs that a file supports several releases
_SEVERAL = lazy_pattern(r"__version__|hasattr\(|torch\.compile|except\b")


@memoized_in_program
def dated(program: Program, key: str) -> str:
    """The evidence that a file is written for a torch before 0.4, as a clause; "" for none."""
    project = program.project
    if project.knows_grad_mode(key):
        return ""
    text = project.sources[key].text
    taken = None if _SEVERAL.search(text) else _NUMBER.search(text)
    if taken is not None:
        return f"this file is written for a PyTorch before 0.4, which has no `torch.no_grad`: `{taken[1]}`"
    release = project.newest_torch or project.said_torch
    if release is None or release >= _GRAD_MODE or not project.predates_grad_mode:
        return ""
    return f"this project is for PyTorch {release[0]}.{release[1]}, which has no `torch.no_grad`"
