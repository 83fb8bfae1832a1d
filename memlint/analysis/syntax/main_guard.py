"""``if __name__ == "__main__":`` is no condition: what stands under it is the program."""

from __future__ import annotations

from memlint.ir import nodes as ir


def unguarded(body: tuple[ir.Stmt, ...]) -> tuple[tuple[ir.Stmt, ...], tuple[ir.Stmt, ...]]:
    """A module's own statements as they run where the module is the program, and those of them that stood under the
    guard. A guard with an ``else`` stays: what is there runs where the module is imported."""
    found: list[ir.Stmt] = []
    guarded: list[ir.Stmt] = []
    for statement in body:
        if isinstance(statement, ir.If) and not statement.orelse and _asks_for_main(statement.test):
            inner, _ = unguarded(statement.body)
            found.extend(inner)
            guarded.extend(inner)
        else:
            found.append(statement)
    return (tuple(found), tuple(guarded)) if guarded else (body, ())


def _asks_for_main(test: ir.Expr) -> bool:
    if not isinstance(test, ir.Compare) or test.ops != ("==",):
        return False
    sides = (test.left, *test.rights)
    return any(isinstance(side, ir.Name) and side.id == "__name__" for side in sides) and any(
        isinstance(side, ir.Const) and side.value == "__main__" for side in sides
    )
