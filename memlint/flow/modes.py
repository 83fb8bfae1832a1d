"""Modes of modules: eval or train, and frozen or trainable. A mode belongs to the module, not to its name.

A module is known by the symbols that it came from (`Path`), by the call that made it (its ``store``), and, where
neither is known, by the variable that it was reached through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.state import State
from memlint.flow.syntax import dotted, walk_statements
from memlint.flow.uses import receiver_of
from memlint.flow.values import DATA, MODULE, UNKNOWN, Path, Source, V, ordered
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser
    from memlint.flow.frame import Frame
    from memlint.flow.program import Class

#: parts of parts that are told apart
_MAX_PARTS = 4


def mode_keys(module: V, expr: ir.Expr | None) -> list[Source]:
    """What a module is known by, the surest first."""
    keys: list[Source] = [*sorted(module.syms), *(("made", item) for item in sorted(module.store, key=repr))]
    place = dotted(expr) if expr is not None else ""
    if place:
        keys.append(("v", place))
    return keys


def set_mode(state: State, func: ir.Attr, receiver: V, name: str, args: list[V], words: dict[str, V]) -> None:
    """``model.eval()`` or ``model.train(mode)``"""
    flag = next(iter([*args, *words.values()]), None)
    training: bool | None = name == "train"
    if flag is not None and name == "train":
        training = flag.const if isinstance(flag.const, bool) else None
    for key in mode_keys(receiver, receiver_of(func.value)):
        state.modes[key] = None if training is None else not training


def settle_mode(frame: Frame, other: State, statement: ir.If) -> None:
    """``if model.training: model.eval()``: where it does not train, it is in eval mode already."""
    from memlint.flow.evaluate import evaluate

    test = statement.test
    if not isinstance(test, ir.Attr) or test.name != "training" or not (place := dotted(test.value)):
        return
    for inner in statement.body:
        call = inner.value if isinstance(inner, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and dotted(call.func) == f"{place}.eval":
            for key in mode_keys(evaluate(frame, other, test.value), test.value):
                other.modes[key] = True


def freeze(state: State, module: V, expr: ir.Expr | None, frozen: bool | None) -> None:
    """The module's parameters stop (True) or start (False) to require grad; None where a flag decides."""
    for key in mode_keys(module, expr):
        state.modes["frozen", key] = frozen


def keep_frozen(some: State, joined: State, modules: frozenset[Source]) -> None:
    """Say of some modules after two ways what one of them says: on the other way they are not there."""
    for key, frozen in some.modes.items():
        if frozen is not None and isinstance(key, tuple) and key[0] == "frozen" and key[1] in modules:
            joined.modes[key] = frozen


def mode_of(state: State, module: V, expr: ir.Expr | None) -> tuple[bool | None, Source]:
    """(whether the module is in eval mode, None for unknown; the key that tells)"""
    for key in mode_keys(module, expr) if state.modes else ():
        for outer in outward(key):
            if outer in state.modes:
                return state.modes[outer], outer
    return None, None


def look_up(modes: dict[Source, bool | None], module: V, place: str, tag: str) -> bool | None:
    """What recorded modes say of a module, by its identity or by a variable's text; ``tag``: "" or "frozen"."""
    if not modes:
        return None
    keys = mode_keys(module, None)
    if place:
        keys.append(("v", place))
    for key in keys:
        for outer in outward(key):
            full = (tag, outer) if tag else outer
            if full in modes:
                return modes[full]
    return None


def frozen_of(frame: Frame, state: State, module: V, expr: ir.Expr | None) -> bool | None:
    """Whether no parameter of the module requires grad; None where a flag decides."""
    from memlint.flow.frozen import made_frozen

    for key in mode_keys(module, expr) if state.modes else ():
        for outer in outward(key):
            if ("frozen", outer) in state.modes:
                frozen = state.modes["frozen", outer]
                return None if frozen and _part_trains(state, module, expr) else frozen
    for ref in ordered(module.refs):
        if ref.kind == "instance":
            cls = frame.analyser.program.module(ref.key).cls(ref.name)
            if cls is not None and frozen_class(frame.analyser, cls):
                # (what is made where nothing was passed in says nothing of what was)
                return None if module.syms and module.store else True
    return made_frozen(frame, module)


def member(frame: Frame, state: State, module: V) -> V:
    """Any of the modules inside a module, which is known by that one where it is frozen."""
    if not state.modes or not module.store or module.syms or frozen_of(frame, state, module, None) is not True:
        return V(MODULE)
    return V(MODULE, store=frozenset(("part", item, "[]") for item in module.store if _depth(item) < _MAX_PARTS))


def _depth(item: Source) -> int:
    depth = 0
    while isinstance(item, tuple) and not isinstance(item, Path) and item[0] == "part":
        depth, item = depth + 1, item[1]
    return depth


def _part_trains(state: State, module: V, expr: ir.Expr | None) -> bool:
    """Whether a part of the module was given parameters that require grad again."""
    for key, frozen in state.modes.items():
        if frozen or not isinstance(key, tuple) or key[0] != "frozen" or frozen is None:
            continue
        if any(mine in outward(key[1])[1:] for mine in mode_keys(module, expr)):
            return True
    return False


def frozen_class(analyser: Analyser, cls: Class) -> bool:
    """Whether a module freezes all its own parameters when it is made."""
    init = analyser.program.method(cls, "__init__")
    if init is None or not any(isinstance(item, ir.For | ir.ExprStmt) for item in init.body):
        return False
    if not init.params:
        return False
    own: Source = ("frozen", Path(f"p:{init.params[0].name}"))
    flags = {
        param.name: V(DATA, const=flag)
        for param in init.params
        if (flag := analyser.usual(init, param.name)) is not None
    }
    # (as it is made in general, and as every call that is seen makes it)
    summaries = [analyser.summary(init), analyser.summary(init, flags)] if flags else [analyser.summary(init)]
    return any(one is not None and one.exit is not None and one.exit.modes.get(own) is True for one in summaries)


def outward(key: Source) -> list[Source]:
    """The key and those of the modules around it: what holds for a module holds for its parts."""
    if isinstance(key, Path):
        found: list[Source] = [key]
        if key.steps and key.steps[-1].startswith("["):
            found.append(Path(key.root, (*key.steps[:-1], "[]")))
        return found + [Path(key.root, key.steps[:size]) for size in range(len(key.steps) - 1, -1, -1)]
    found = [key]
    while isinstance(key, tuple) and key[0] == "made" and isinstance(key[1], tuple) and key[1][0] == "part":
        key = ("made", key[1][1])
        found.append(key)
    if isinstance(key, tuple) and key[0] == "v":
        place = key[1]
        while "." in place:
            place = place.rsplit(".", 1)[0]
            found.append(("v", place))
    return found


def forget_name(state: State, name: str, value: V) -> None:
    """A variable was bound anew: what was known by its name alone is about another module."""
    if not value.kinds & (MODULE | UNKNOWN) or not (value.syms or value.store):
        return
    for key in list(state.modes):
        inner = key[1] if isinstance(key, tuple) and key[0] == "frozen" else key
        if (
            isinstance(inner, tuple)
            and not isinstance(inner, Path)
            and inner[0] == "v"
            and (inner[1] == name or inner[1].startswith(f"{name}."))
        ):
            del state.modes[key]


def freezing_loop(frame: Frame, state: State, statement: ir.For) -> None:
    """``for p in model.parameters(): p.requires_grad = False`` freezes the model."""
    from memlint.flow.evaluate import evaluate

    iterable = statement.iter
    while isinstance(iterable, ir.Call) and dotted(iterable.func) in ("enumerate", "list", "tuple") and iterable.args:
        iterable = iterable.args[0]
    if (
        not isinstance(iterable, ir.Call)
        or not isinstance(iterable.func, ir.Attr)
        or iterable.func.name not in ("parameters", "named_parameters")
    ):
        return
    for inner in walk_statements(statement.body):
        frozen = _freezes(frame, state, inner)
        if frozen == "no":
            continue
        module = evaluate(frame, state, iterable.func.value)
        always = inner in statement.body or any(
            isinstance(around, ir.If)
            and inner in around.body
            and isinstance(around.test, ir.Attr)
            and around.test.name == "requires_grad"
            for around in statement.body
        )
        freeze(state, module, iterable.func.value, frozen == "yes" if always and frozen != "some" else None)


def _freezes(frame: Frame, state: State, statement: ir.Stmt) -> str:
    """Whether a statement makes a parameter stop to require grad: yes, "on" (start), some (a flag decides), no."""
    from memlint.flow.evaluate import evaluate

    flag: ir.Expr | None = None
    if isinstance(statement, ir.Assign) and any(
        isinstance(target, ir.Attr) and target.name == "requires_grad" for target in statement.targets
    ):
        flag = statement.value
    elif (
        isinstance(statement, ir.ExprStmt)
        and isinstance(statement.value, ir.Call)
        and isinstance(statement.value.func, ir.Attr)
    ):
        if statement.value.func.name != "requires_grad_":
            return "no"
        if not statement.value.args:
            return "on"
        flag = statement.value.args[0]
    if flag is None:
        return "no"
    const = evaluate(frame, state, flag).const
    if const is None and isinstance(flag, ir.Name):
        const = frame.analyser.usual(frame.function, flag.id)  # ``requires_grad=False``, which no call overrides
    return "yes" if const is False else "on" if const is True else "some"


__all__ = [
    "forget_name",
    "freeze",
    "freezing_loop",
    "frozen_class",
    "frozen_of",
    "keep_frozen",
    "look_up",
    "mode_keys",
    "mode_of",
    "outward",
    "set_mode",
]
