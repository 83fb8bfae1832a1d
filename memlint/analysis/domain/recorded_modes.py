"""The modes of modules in a state: the keys of a module, and the mode recorded for it or for a module around it."""

from __future__ import annotations

from memlint.analysis.domain.state import State, around_parts, maker_of
from memlint.analysis.domain.values import ELSEWHERE, Path, Source, V
from memlint.analysis.syntax.syntax import dotted
from memlint.ir import nodes as ir

#: how many levels of parts are distinguished
MAX_PARTS = 4


def mode_keys(module: V, expr: ir.Expr | None) -> list[Source]:
    """The keys of a module, the most certain first."""
    keys: list[Source] = [*sorted(module.syms)]
    keys += [("made", item) for item in sorted(module.store, key=repr) if whole_of(item) is None]
    place = dotted(expr) if expr is not None else ""
    if place:
        keys.append(("v", place))
    return keys


def freeze(state: State, module: V, expr: ir.Expr | None, frozen: bool | None) -> None:
    """Record that the module's parameters do not (True) or do (False) require grad; None for unknown, if a flag
    decides."""
    for key in mode_keys(module, expr):
        state.modes["frozen", key] = frozen


def keep_modes(some: State, joined: State, modules: frozenset[Source]) -> None:
    """After a join of two paths, keep what one path records of modules that do not exist on the other."""
    for key, mode in some.modes.items():
        module = key[1] if isinstance(key, tuple) and key[0] == "frozen" else key
        if mode is not None and module in modules:
            joined.modes[key] = mode


def mode_of(state: State, module: V, expr: ir.Expr | None) -> tuple[bool | None, Source]:
    """Whether the module is in eval mode (None for unknown), and the key with the record."""
    return recorded_mode(state.modes, mode_keys(module, expr), "") if state.modes else (None, None)


def recorded_mode(modes: dict[Source, bool | None], keys: list[Source], tag: str) -> tuple[bool | None, Source]:
    """The record of the first key that has one, and that key. If several calls may have made the module, their records
    have to agree. What unknown code made is presumed to be frozen where everything else is (``net = load(path)``, or
    ``convert(old).requires_grad_(False)``)."""
    mades = [
        key for key in keys if (maker := maker_of(key)) is not None and (tag != "frozen" or not is_elsewhere(maker))
    ]
    for key in keys:
        for outer in outward(key):
            full = (tag, outer) if tag else outer
            if full in modes:
                mode = modes[full]
                if (
                    len(mades) > 1
                    and key in mades
                    and any(recorded_mode(modes, [one], tag)[0] is not mode for one in mades)
                ):
                    mode = None
                return mode, outer
    return None, None


def is_elsewhere(maker: Source) -> bool:
    """Whether unknown code made a module, here or in a callee that returned it."""
    while isinstance(maker, tuple) and not isinstance(maker, Path) and maker != ELSEWHERE:
        maker = maker[-1]
    return bool(maker == ELSEWHERE)


def look_up(modes: dict[Source, bool | None], module: V, place: str, tag: str) -> bool | None:
    """The recorded mode of a module, by its identity or by a variable's text. ``tag``: "" or one of `TAGS`. None for
    unknown."""
    if not modes:
        return None
    keys = mode_keys(module, None)
    if place:
        keys.append(("v", place))
    return recorded_mode(modes, keys, tag)[0]


def whole_of(item: Source) -> Source | None:
    """The module that contains a storage, if nothing else is known of the storage; else None."""
    item = around_parts(item)
    return item[1] if isinstance(item, tuple) and not isinstance(item, Path) and item[0] == "inside" else None


def is_made(module: V) -> bool:
    """Whether a call may have made the module itself, and not a module around it."""
    return any(whole_of(item) is None for item in module.store)


def nesting(item: Source) -> int:
    depth = 0
    while isinstance(item, tuple) and not isinstance(item, Path) and item[0] == "part":
        depth, item = depth + 1, item[1]
    return depth


def outward(key: Source) -> list[Source]:
    """The key and those of the enclosing modules, whose mode holds for their parts."""
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
