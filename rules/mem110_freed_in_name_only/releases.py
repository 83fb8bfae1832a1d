"""Statements that free memory: they delete names, or bind them to None, and empty the cache or collect garbage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk.project import last_ordinal
from memlint.sdk.syntax import bodies, calls, ir, last_name, names_bound_by

from .lifetimes import Spot

#: calls that may be part of a release besides the one that empties the cache
_BESIDE = frozenset({"synchronize", "ipc_collect", "print", "reset_peak_memory_stats", "info", "debug", "barrier"})


class Release(NamedTuple):
    """Adjacent statements of one block that delete names and free memory, in either order."""

    spot: Spot
    end: int
    deleted: dict[str, ir.Stmt]
    hosted: frozenset[str]


def releases(everything: list[Spot], noted: set[int]) -> Iterator[Release]:
    """The sequences of statements that delete names and free memory."""
    run: list[Spot] = []
    for spot in everything:
        if run and spot.around[: len(run[0].around)] == run[0].around and len(spot.around) > len(run[0].around):
            continue  # inside the last one
        same = bool(run) and spot.around == run[0].around
        fits = deleted_by(spot.statement) or _gives_back(spot.statement, noted) or _moves(spot.statement)
        if run and not (same and fits):
            yield from _release(run, noted)
            run = []
        if fits:
            run.append(spot)
    if run:
        yield from _release(run, noted)


def _release(run: list[Spot], noted: set[int]) -> Iterator[Release]:
    hosted = frozenset(name for spot in run for name in _moves(spot.statement))
    while run and not deleted_by(run[0].statement) and not _is_noted(run[0].statement, noted):
        run = run[1:]
    if not run or not any(_is_noted(spot.statement, noted) for spot in run):
        return
    deleted = {name: spot.statement for spot in run for name in deleted_by(spot.statement)}
    if deleted:
        yield Release(run[0], last_ordinal(run[-1].statement), deleted, hosted)


def deleted_by(statement: ir.Stmt) -> list[str]:
    """The names that a statement deletes, or binds to None."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Delete) or (
        isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Const) and statement.value.kind == "None"
    ):
        targets = statement.targets
    flat = [one for item in targets for one in (item.elements if isinstance(item, ir.Display) else (item,))]
    return [item.id for item in flat if isinstance(item, ir.Name)]


def _is_noted(statement: ir.Stmt, noted: set[int]) -> bool:
    """Whether a statement frees memory, itself or in its block."""
    return any(call.at in noted for call in calls((statement,)))


def _gives_back(statement: ir.Stmt, noted: set[int]) -> bool:
    if isinstance(statement, ir.Import):
        return True
    if isinstance(statement, ir.Delete):
        return True
    if isinstance(statement, ir.If | ir.With):
        inner = [one for block in bodies(statement) for one in block]
        return _is_noted(statement, noted) and all(_gives_back(one, noted) for one in inner)
    if not isinstance(statement, ir.ExprStmt):
        return isinstance(statement, ir.Jump) and statement.kind == "pass"
    call = statement.value
    return isinstance(call, ir.Call) and (call.at in noted or last_name(call.func) in _BESIDE)


def _moves(statement: ir.Stmt) -> list[str]:
    """The models that a statement moves to the host: ``model.cpu()``, ``model = model.to("cpu")``."""
    value = statement.value if isinstance(statement, ir.ExprStmt | ir.Assign) else None
    if (
        not isinstance(value, ir.Call)
        or not isinstance(value.func, ir.Attr)
        or not isinstance(value.func.value, ir.Name)
    ):
        return []
    if isinstance(statement, ir.Assign) and value.func.value.id not in names_bound_by(statement):
        return []
    return [value.func.value.id] if value.func.name in ("cpu", "to") else []
