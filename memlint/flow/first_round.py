"""Variables that have no value before a loop: what the first round must give them, each later round gives them too."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.flow.frame import Frame, Store
from memlint.flow.syntax import assigned_names, binds, bodies, dotted, names_bound_by, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: calls whose answer is the same in every round, where that of their arguments is
_PLAIN = frozenset({"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass", "len", "str", "type"})


def begun_each_round(frame: Frame, store: Store) -> bool:
    """Whether a carried variable gets its value in the first round on the same path as in all others: it has none
    before the loop, and no test around what is assigned to it tells one round from another."""
    if store.kind != "carry" or store.loop is None or not isinstance(store.place, tuple) or store.place[:1] != ("var",):
        return False
    name = store.place[1]
    if any(param.name == name for param in frame.function.params):
        return False
    loop = next(
        (
            statement
            for statement in walk_statements(frame.function.body, into_definitions=False)
            if isinstance(statement, ir.For | ir.While) and ("loop", statement.at) == store.loop.id
        ),
        None,
    )
    if loop is None or any(True for _ in _binders(frame.function.body, name, (), loop)):
        return False
    bound = names_bound_by(loop).union(*(assigned_names(block)[0] for block in bodies(loop)))
    written = {
        dotted(target)
        for statement in walk_statements(loop.body)
        for target in _targets(statement)
        if isinstance(target, ir.Attr)
    }
    return not any(
        test is None or _tells_rounds_apart(test, bound, written)
        for tests in _binders(loop.body, name, (), None)
        for test in tests
    )


_Tests = tuple[ir.Expr | None, ...]


def _binders(body: tuple[ir.Stmt, ...], name: str, tests: _Tests, left_out: ir.Stmt | None) -> Iterator[_Tests]:
    """The tests around each statement that binds the name; None stands for what may or may not run."""
    for statement in body:
        if statement is left_out or isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        if isinstance(statement, ir.If):
            for block in bodies(statement):
                yield from _binders(block, name, (*tests, statement.test), left_out)
        elif blocks := bodies(statement):
            inside = tests if isinstance(statement, ir.With) else (*tests, None)
            for block in blocks:
                yield from _binders(block, name, inside, left_out)
            if name in names_bound_by(statement):
                yield (*tests, None)
        elif binds(statement, name):
            yield tests


def _targets(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    if isinstance(statement, ir.Assign):
        return statement.targets
    return (statement.target,) if isinstance(statement, ir.AugAssign | ir.AnnAssign) else ()


def _tells_rounds_apart(test: ir.Expr, bound: frozenset[str], written: set[str]) -> bool:
    for part in walk_expression(test):
        if isinstance(part, ir.Name) and part.id in bound:
            return True
        if isinstance(part, ir.Attr) and dotted(part) in written:
            return True
        if isinstance(part, ir.Call) and dotted(part.func) not in _PLAIN:
            return True
    return False
