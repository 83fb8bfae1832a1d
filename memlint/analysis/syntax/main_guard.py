"""Statements under ``if __name__ == "__main__":`` are analysed as the module's own."""

from __future__ import annotations

from memlint.ir import nodes as ir


def unguarded(body: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]:
    """A module's own statements as they run if it is the program, and those of them that were under the guard. A guard
    with an ``else`` is not unfolded, as the ``else`` runs on import."""
    found: list[ir.Stmt] = []
    guarded: list[ir.Stmt] = []
    for statement in body:
        if isinstance(statement, ir.If) and not statement.orelse and _tests_for_main(statement.test):
            inner, _ = unguarded(statement.body)
            found.extend(inner)
            guarded.extend(inner)
        else:
            found.append(statement)
    return (tuple(found), tuple(guarded)) if guarded else (body, ())


def _tests_for_main(test: ir.Expr) -> bool:
    if not isinstance(test, ir.Compare) or test.ops != ("==",):
        return False
    sides = (test.left, *test.rights)
    return any(isinstance(side, ir.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ir.Const) and side.value == "__main__" for side in sides
    )
