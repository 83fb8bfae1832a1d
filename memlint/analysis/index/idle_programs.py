"""Which files belong only to programs that train nothing: no file that such a program imports names a backward, an
optimizer, or something that fits."""

from __future__ import annotations

from memlint.analysis.index.partners import Partners
from memlint.analysis.index.program import Program
from memlint.analysis.syntax.memo import kept_for

#: words without which nothing in a file differentiates or trains
_TRAINING = (
    "backward", "autograd", "grad", "vjp", "jvp", "jacrev", "jacfwd", "jacobian", "hessian", "optim", "optimizer",
    "Optimizer", "Trainer", "fit", "learn", "minimize", "attribute",
)  # fmt: skip
#: the most files of the programs that are looked at
_MAX_FILES = 200


@kept_for
def is_of_idle_programs(program: Program, partners: Partners, key: str) -> bool:
    """Whether all programs that may run a file's code train nothing. False if unknown: other projects may import the
    file, or the programs have too many files."""
    above = partners.all_importers(key)
    if above is None:
        return False
    found, todo = set(above), list(above)
    while todo:
        new = partners.imports(todo.pop()) - found
        found |= new
        todo += new
        if len(found) > _MAX_FILES:
            return False
    return all(found.isdisjoint(program.words.files(word)) for word in _TRAINING)
