"""The values of names: locals, free variables, globals, builtins."""

from __future__ import annotations

import builtins
from typing import Any

from memlint.analysis.domain.state import State, untouched
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    OPTIMIZER,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Ref,
    V,
)
from memlint.analysis.index.uses import uses_of
from memlint.analysis.transfer.handed_on import with_holder

#: kinds of a value that may yet turn out to be a module (`V.may_be_module`)
_OPEN = UNKNOWN | TREE
_BUILTINS = frozenset(dir(builtins))


def lookup(fn: FunctionState, state: State, name: str) -> V:
    """The value of a name at the current point."""
    value = state.env.get(name)
    if value is not None:
        return known_by_use(fn, name, value) if value.kinds & _OPEN else value
    if name in fn.function.locals and fn.function.node is not None:
        return UNKNOWN_VALUE
    read = _global_variable if fn.function.owner(name) is None else _free_variable
    return known_by_use(fn, name, read(fn, state, name))


def known_by_use(fn: FunctionState, name: str, value: V) -> V:
    """The value as a module, where the function uses the name as only modules are used."""
    if not value.may_be_module():
        return value
    if name in fn.modules_by_use:
        return value.as_module()
    if not value.refs and name in fn.modules_by_state:
        maker = fn.modules_by_state[name]
        if maker is None or maker.cls is None:
            return value.as_module()
        return value.as_module().but(refs=frozenset((Ref("instance", maker.module.key, maker.cls.qual),)))
    return value


def _free_variable(fn: FunctionState, state: State, name: str) -> V:
    path = Path(f"c:{name}")
    if path in state.sym:
        return state.sym[path]
    fact: V | None = fn.analyser.free_variable(fn.function, name)
    if fact is None:
        return untouched(path)
    return symbolic(fact, path)


def _global_variable(fn: FunctionState, state: State, name: str) -> V:
    """The value of a global variable, a builtin or an imported name."""
    kind, what = fn.analyser.program.find(fn.module, name)
    if kind == "none" and fn.module.writers(name):
        kind, what = "value", (fn.module, name)  # functions alone bind it
    if kind == "none":
        if name in _BUILTINS:
            return V(CALLABLE, refs=frozenset((Ref("ext", "", f"builtins.{name}"),)))
        return state.sym.get(Path(f"g:{fn.module.key}:{name}"), UNKNOWN_VALUE)
    if kind != "value":
        return imported(fn, name, kind, what)
    module, variable = what
    path = Path(f"g:{module.key}:{variable}")
    if path in state.sym:
        return state.sym[path]
    fact = fn.analyser.global_value(kind, what)
    return symbolic(fact, path)


def imported(fn: FunctionState, name: str, kind: str, what: Any) -> V:
    """The value of an imported name. What a file outside the project defines is a module if it is called, and used as
    only modules are in this function or in module-level code: ``from net import model``, and ``model.eval()``."""
    called = kind == "ext" and name in fn.module.index.units[fn.function.unit].calls and not what.startswith("torch.")
    if called and name in fn.modules_by_use | uses_of(fn.analyser.program, fn.module.main):
        return V(MODULE, syms=frozenset((Path(f"g:{fn.module.key}:{name}"),)))
    value: V = fn.analyser.global_value(kind, what)
    return value


def symbolic(fact: V, path: Path) -> V:
    """The value of a variable of another scope: what is known of it, at its symbolic place."""
    fact = with_holder(fact, path)
    place = frozenset((path,))
    if not fact.kinds & ~(MODULE | OPTIMIZER | LOADER | CALLABLE | INSTANCE | CONTAINER):
        return fact.but(syms=place, src=frozenset(), objs=frozenset())
    if not fact.kinds & ~(DATA | NONE) and fact.const is not None:
        return fact.but(src=place, syms=place, objs=frozenset())
    return fact.but(src=fact.src | place, syms=place, objs=frozenset())
