"""Classes with an unknown base that are torch modules by their use of it."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterable, Sequence

from memlint import knowledge
from memlint.analysis.index.definitions import Class
from memlint.analysis.syntax.syntax import parts
from memlint.ir import nodes as ir

#: the attribute of a module that holds its mode
_MODE = "training"

#: packages of torch with classes that are no modules (others have some: ``torch.fx.GraphModule``)
_NO_MODULES = ("torch.utils.data.", "torch.autograd.", "torch.optim.", "torch.distributions.")


def is_module_by_use(order: Sequence[Class], outside: Iterable[str]) -> bool:
    """Whether a class is a module: it, or a base of the project, has a forward and reads ``self.training``, which none
    of them assigns, so that an unknown base must. ``order``: the class and its bases in the project; ``outside``: the
    names of its other bases."""
    if not any(map(may_be_modules, outside)) or not any("forward" in one.methods for one in order):
        return False
    units = [one.module.index.units[one.unit] for one in order]
    if not any(_MODE in unit.names for unit in units) or any(_MODE in unit.stores for unit in units):
        return False
    if any(_MODE in one.methods or _MODE in one.attributes for one in order):
        return False
    return any(
        isinstance(part, ir.Attr)
        and part.name == _MODE
        and isinstance(part.value, ir.Name)
        and part.value.id == method.own_name
        for one in order
        for method in one.methods.values()
        if method.takes_self
        for part in parts(method.body)
    )


def may_be_modules(base: str) -> bool:
    """Whether a base by its qualified name may be a module: Python's own are none, nor those of libraries that make no
    graph (gym), nor data sets, functions, optimizers and distributions of torch."""
    first, _, rest = base.partition(".")
    if first == "?":
        return not hasattr(builtins, rest)
    if first in sys.stdlib_module_names or base.startswith(_NO_MODULES):
        return False
    row = knowledge.function(base)
    return row is None or row.graph != "none"
