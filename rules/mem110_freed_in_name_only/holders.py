"""The variables that hold a model or checkpoint when another name of it is deleted, each with the statement since which
it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from memlint.sdk import Confidence
from memlint.sdk.project import Analyser, Summary
from memlint.sdk.syntax import expressions, ir, names_bound_by, walk_expression
from memlint.sdk.values import Source

from .holds import held_by, within
from .lifetimes import Spot
from .releases import Release
from .rule import Hold

#: methods that remove members of containers, or release memory of objects
_EMPTIES = frozenset({"clear", "pop", "popleft", "popitem", "remove", "cpu", "to", "close", "free", "release", "reset"})
_ADDS = frozenset({"append", "insert", "add", "appendleft"})

Kind = Literal["model", "checkpoint"]


class Holder(NamedTuple):
    name: str
    how: Hold
    statement: ir.Stmt
    certainty: Confidence


def holders_of(
    analyser: Analyser,
    summary: Summary,
    everything: list[Spot],
    release: Release,
    name: str,
    statement: ir.Stmt,
    kind: Kind,
) -> Iterator[Holder]:
    """The holders of the object with that name when it is deleted, each with the statement since which it does."""
    names = {name}
    found: dict[str, Holder] = {}
    made_at = 0
    for spot in everything:
        one = spot.statement
        if one.at >= release.end:
            break
        gone = {other for other in names - {name} if _lets_go(one, other)}
        names -= gone
        found = {other: holder for other, holder in found.items() if other not in gone}
        if one.at >= release.spot.statement.at:
            continue
        certainty = _reaches(spot, release)
        made = _holding(analyser, summary, one, frozenset(names), kind)
        if made is not None and certainty is not None and made[0] != name:
            if made[0] not in names or certainty == "high":
                found[made[0]] = Holder(made[0], made[1], one, certainty)
            names.add(made[0])
            continue
        bound = names_bound_by(one)
        if name in bound and not _goes_on(one, names):
            names = {name}  # the name refers to another object now
            found.clear()
            made_at = one.at
            inner = within(analyser, summary, one.value) if isinstance(one, ir.Assign) and certainty is not None else {}
            for other, how in inner.items():
                if other != name and certainty is not None:
                    names.add(other)
                    found[other] = Holder(other, how, one, certainty)
            continue
        for other in bound & names - {name}:
            names.discard(other)
            found.pop(other, None)
    yield from found.values()
    if kind == "model":
        trained = any(holder.how == "optimizer" for holder in found.values())
        yield from _graphs(summary, everything, release, name, statement, made_at, trained=trained)


def _lets_go(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement may release what a holder has: ``probe.net = None``, ``del nets[0]``, ``nets.clear()``."""
    targets: tuple[ir.Expr, ...] = ()
    emptied = isinstance(statement, ir.Delete)
    if isinstance(statement, ir.Assign):
        targets = statement.targets
        emptied = isinstance(statement.value, ir.Const)
    elif isinstance(statement, ir.Delete):
        targets = statement.targets
    for target in targets:
        inner = target
        while isinstance(inner, ir.Attr | ir.Subscript):
            inner = inner.value
        if inner is not target and isinstance(inner, ir.Name) and inner.id == name:
            return emptied or isinstance(target, ir.Attr)
    return any(
        isinstance(call.func, ir.Attr)
        and call.func.name in _EMPTIES
        and isinstance(call.func.value, ir.Name)
        and call.func.value.id == name
        for call in own_calls(statement)
    )


def _holding(
    analyser: Analyser, summary: Summary, statement: ir.Stmt, names: frozenset[str], kind: Kind
) -> tuple[str, Hold] | None:
    """The name that a statement makes a holder of the object, and how; None if it does not."""
    if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ir.Name):
            how = held_by(analyser, summary, statement.value, names, kind)
            return None if how is None else (target.id, how)
        if isinstance(target, ir.Subscript) and isinstance(target.value, ir.Name):
            plain = isinstance(statement.value, ir.Name) and statement.value.id in names
            return (target.value.id, "container") if plain else None
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and call.func.name in _ADDS and call.args:
        item, place = call.args[-1], call.func.value
        if isinstance(item, ir.Name) and item.id in names and isinstance(place, ir.Name):
            return place.id, "container"
    return None


def _goes_on(statement: ir.Stmt, names: set[str]) -> bool:
    """Whether a statement rebinds the name to the same parameters: ``model = model.to(device)``, ``model =
    DataParallel(model)``."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Call):
        return False
    inside = [value.func.value] if isinstance(value.func, ir.Attr) else []
    return any(isinstance(item, ir.Name) and item.id in names for item in (*inside, *value.args))


def _reaches(spot: Spot, release: Release) -> Confidence | None:
    """The confidence that the deletion follows a statement on the same path; None if it may not."""
    if spot.follows_from(release.spot.around):
        return "high"
    common = _common(spot.around, release.spot.around)
    own = spot.around[len(common) :]
    if spot.excludes(release.spot.around):
        return None
    rest = release.spot.around[len(common) :]
    if any(isinstance(block[0], ir.If | ir.Match | ir.Try) for block in rest):
        return None  # which branches belong together is unknown
    if any(isinstance(block[0], ir.Try | ir.Match) and block[1] for block in own):
        return None
    return "medium" if any(isinstance(block[0], ir.If | ir.Match) for block in own) else "high"


def _common(a: tuple[tuple[ir.Stmt, int], ...], b: tuple[tuple[ir.Stmt, int], ...]) -> tuple[tuple[ir.Stmt, int], ...]:
    shared = 0
    while shared < min(len(a), len(b)) and a[shared][0] is b[shared][0] and a[shared][1] == b[shared][1]:
        shared += 1
    return a[:shared]


def _graphs(
    summary: Summary,
    everything: list[Spot],
    release: Release,
    name: str,
    statement: ir.Stmt,
    made_at: int,
    *,
    trained: bool,
) -> Iterator[Holder]:
    """Results of the model whose graph refers to its parameters, freed by a backward or not: a backward ran through it,
    and no other model can have contributed the graph."""
    models: dict[bool, set[Source]] = {True: set(), False: set()}
    for run in summary.runs.values():
        models[run.text.split(".")[0] == name and run.site.at > made_at].add(run.node)
    reached = frozenset[Source]().union(*(backward.reached for backward in summary.backwards))
    if models[False] & reached and not trained:
        return
    for other, value in sorted(summary.notes.dropped.get(statement.at, {}).items()):
        if other == name or not models[True] & reached & summary.graphs.closure(value.src):
            continue
        made = [spot.statement for spot in everything if other in names_bound_by(spot.statement)]
        made = [one for one in made if one.at < release.spot.statement.at]
        if made:
            yield Holder(other, "graph", made[-1], "high")


def own_calls(statement: ir.Stmt) -> Iterator[ir.Call]:
    if isinstance(statement, ir.FunctionDef | ir.ClassDef):
        return
    for expr in expressions(statement):
        yield from (part for part in walk_expression(expr) if isinstance(part, ir.Call))
