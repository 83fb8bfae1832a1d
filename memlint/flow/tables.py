"""Tables of functions at module scope: ``COMMANDS[name](args)`` may call any of them."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.values import CALLABLE, NOTHING, V
from memlint.ir import nodes as ir

#: a table of more is followed no further
_MAX_ENTRIES = 16


def entries(frame: Frame, table: ir.Expr) -> V:
    """The project's functions in a table that nothing else is put into by name; NOTHING where it is no such table."""
    root = table
    while isinstance(root, ir.Attr):
        root = root.value
    if not isinstance(root, ir.Name) or root.id in frame.function.locals:
        return NOTHING
    analyser = frame.analyser
    kind, what = analyser.program.find_expression(frame.module, table, frame.function.enclosing)
    if kind != "value":
        return NOTHING
    module, name = what
    bindings = module.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0], ir.Assign | ir.AnnAssign):
        return NOTHING
    display = bindings[0].value
    values = display.values if isinstance(display, ir.DictDisplay) else ()
    if not 0 < len(values) <= _MAX_ENTRIES:
        return NOTHING
    refs = [ref for value in values for ref in analyser.evaluate_constant(module, value).refs]
    if not refs or any(ref.kind != "func" for ref in refs):
        return NOTHING
    return V(CALLABLE, refs=frozenset(refs))
