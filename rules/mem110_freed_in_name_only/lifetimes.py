"""The live range of a local variable after a position: until it is rebound, deleted, or never read again; and the
statements that run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk.syntax import bodies, expressions, ir, names_bound_by, walk_expression, walk_statements

#: the compound statements around a statement, outermost first, each with the number of its block
Around = tuple[tuple[ir.Stmt, int], ...]


class Spot(NamedTuple):
    """A statement of a function and its position."""

    statement: ir.Stmt
    around: Around

    def follows_from(self, other: Around) -> bool:
        """Whether a path that completes the position ``other`` also comes here, by the branches: every block around
        this statement that is not around the other always runs."""
        return all(_always(block) for block in self.around[_shared(self.around, other) :])

    def follows_by_rounds(self, other: Around) -> bool:
        """The same, if every loop after the other has an iteration."""
        inner = self.around[_shared(self.around, other) :]
        return all(_always(block) or (isinstance(block[0], ir.For | ir.While) and not block[1]) for block in inner)

    def excludes(self, other: Around) -> bool:
        """Whether the two are in different branches of one ``if``, ``try`` or ``match``."""
        shared = _shared(self.around, other)
        return (
            len(self.around) > shared < len(other)
            and self.around[shared][0] is other[shared][0]
            and isinstance(self.around[shared][0], ir.If | ir.Match)
        )


def spots(body: tuple[ir.Stmt, ...], around: Around = ()) -> Iterator[Spot]:
    """The statements of a function in source order, without those of nested definitions."""
    for statement in body:
        yield Spot(statement, around)
        if not isinstance(statement, ir.FunctionDef | ir.ClassDef):
            for number, block in enumerate(bodies(statement)):
                yield from spots(block, (*around, (statement, number)))


def _shared(a: Around, b: Around) -> int:
    """The number of outermost blocks that are around both."""
    shared = 0
    for (one, number), (other, its_number) in zip(a, b, strict=False):
        if one is not other or number != its_number:
            break
        shared += 1
    return shared


def _always(block: tuple[ir.Stmt, int]) -> bool:
    """Whether a block always runs: that of ``with``, and that of ``try:``."""
    statement, number = block
    return isinstance(statement, ir.With) or (isinstance(statement, ir.Try) and number == 0)


class Afterlife(NamedTuple):
    """The statements that run while a variable holds an object that is never read: ``after`` in source order, and
    ``again`` in the next iteration of a loop. (That the name is rebound then is known only if its loop has an
    iteration.)"""

    after: tuple[Spot, ...]
    again: tuple[Spot, ...]


def afterlife(
    everything: list[Spot], name: str, place: Spot, end: int, readers: frozenset[str] = frozenset()
) -> Afterlife | None:
    """What happens to a variable after the statements from ``place`` to the ordinal ``end``. None if something reads
    it, or calls one of the nested functions that do (``readers``), or if it is unknown whether it is rebound."""
    after: list[Spot] = []
    again: list[Spot] = []
    loops = [block[0] for block in place.around if isinstance(block[0], ir.For | ir.While)]
    later = [spot for spot in everything if spot.statement.at > end and not spot.excludes(place.around)]
    for depth in range(len(loops), -1, -1):
        loop = loops[depth - 1] if depth else None
        inner = loops[depth] if depth < len(loops) else None
        region = [spot for spot in later if _inside(spot, loop) and (inner is None or not _inside(spot, inner))]
        passed = _pass(region, name, place.around, readers)
        if passed is None:
            return None
        after += passed.seen
        if passed.ended or passed.leaves == "return":
            return Afterlife(tuple(after), tuple(again))
        if loop is None or passed.leaves == "break":
            continue
        before = [spot for spot in everything if spot.statement.at < place.statement.at and _inside(spot, loop)]
        head = _reads_in(loop.test, name) if isinstance(loop, ir.While) else False
        passed = _pass(before, name, place.around, readers)
        if passed is None or head:
            return None
        again += passed.seen
    return Afterlife(tuple(after), tuple(again))


class _Passed(NamedTuple):
    """The statements passed, whether the variable was rebound or deleted (if a loop has an iteration), and the kind of
    jump that leaves the path ("" for none)."""

    seen: list[Spot]
    ended: bool
    leaves: str


def _pass(region: list[Spot], name: str, place: Around, readers: frozenset[str]) -> _Passed | None:
    """The statements on a path until the variable is rebound; None if one reads it."""
    seen: list[Spot] = []
    for spot in region:
        statement = spot.statement
        if isinstance(statement, ir.FunctionDef) and statement.name in readers:
            continue
        if any(reads(statement, one) for one in (name, *readers)):
            return None
        if _ends(statement, name):
            if not spot.follows_by_rounds(place):
                return None
            seen.append(spot)
            return _Passed(seen, True, "")
        seen.append(spot)
        if spot.follows_from(place):
            if isinstance(statement, ir.Return | ir.Raise):
                return _Passed(seen, False, "return")
            if isinstance(statement, ir.Jump) and statement.kind != "pass":
                return _Passed(seen, False, statement.kind)
    return _Passed(seen, False, "")


def _inside(spot: Spot, loop: ir.Stmt | None) -> bool:
    return loop is None or any(block is loop and number == 0 for block, number in spot.around)


def _ends(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement binds or deletes the variable."""
    if isinstance(statement, ir.Delete):
        return any(isinstance(target, ir.Name) and target.id == name for target in statement.targets)
    return name in names_bound_by(statement)


def reads(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement itself (not its blocks) reads a variable, or its nested definition may."""
    if isinstance(statement, ir.FunctionDef | ir.ClassDef):
        return any(_reads_in(expr, name) for inner in walk_statements((statement,)) for expr in expressions(inner))
    plain = _plain_targets(statement)
    return any(_reads_in(expr, name) for expr in expressions(statement) if expr.at not in plain)


def _plain_targets(statement: ir.Stmt) -> frozenset[int]:
    """The names that a statement binds or deletes without reading them, by identity."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign | ir.Delete):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign | ir.For):
        targets = (statement.target,)
    plain = set()
    for target in targets:
        parts = target.elements if isinstance(target, ir.Display) else (target,)
        if all(isinstance(part, ir.Name) for part in parts):
            plain.add(target.at)
    return frozenset(plain)


def _reads_in(expr: ir.Expr, name: str) -> bool:
    for part in walk_expression(expr):
        if isinstance(part, ir.Name) and part.id == name:
            return True
        if isinstance(part, ir.Lambda) and _reads_in(part.body, name):
            return True
    return False
