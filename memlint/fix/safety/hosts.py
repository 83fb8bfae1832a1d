"""Whether a collection must stay on the accelerator, as later code combines it with tensors there."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import children, parts, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.ir import nodes as ir

#: methods that move a tensor to a device
_MOVES = frozenset(["to", "cuda", "xpu", "npu", "mps"])
#: the most rounds of propagation between variables
_ROUNDS = 6

Names = frozenset[str]


@kept_for
def met_on_device(function: Function, place: str) -> str:
    """The call or operation that combines a variable's contents, or values made from them, with a tensor on an
    accelerator; "" if there is none. Variables only, by the text."""
    if not place.isidentifier():
        return ""
    kept, moved = frozenset({place}), frozenset[str]()
    for _ in range(_ROUNDS):
        before = kept, moved
        for statement in walk_statements(function.body, into_definitions=False):
            if not isinstance(statement, ir.Assign):
                continue
            targets = frozenset(one.id for one in statement.targets if isinstance(one, ir.Name))
            if _is_moved(statement.value, moved):
                moved |= targets - kept
            elif _names(statement.value) & kept:
                kept |= targets - moved
        if (kept, moved) == before:
            break
    for part in parts(function.body):
        sides = _sides(part)
        if any(_names(one) & kept for one in sides) and any(_is_moved(one, moved) for one in sides):
            return text(part, 40)
    return ""


def _sides(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    match expr:
        case ir.Binary():
            return expr.left, expr.right
        case ir.Compare():
            return expr.left, *expr.rights
        case ir.Call():
            return _inputs(expr)
    return ()


def _inputs(call: ir.Call) -> tuple[ir.Expr, ...]:
    """The receiver and the arguments of a call; () if it only stores them in a container or returns a number."""
    match call.func:
        case ir.Attr(name=name) if name in words.PUTS:
            return ()
        case ir.Name(id=name) if name in words.BUILTINS_THAT_END:
            return ()
    own = (call.func.value,) if isinstance(call.func, ir.Attr) else ()
    return *own, *call.passed


def _is_moved(expr: ir.Expr, moved: Names) -> bool:
    """Whether an expression is on an accelerator: moved there, or made from such a value."""
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _MOVES:
        shown = ", ".join(text(arg, 80) for arg in expr.args)
        return expr.func.name != "to" or any(word in shown for word in ("device", "cuda", "gpu"))
    if isinstance(expr, ir.Name):
        return expr.id in moved
    return any(_is_moved(part, moved) for part in _tensors(expr))


def _names(expr: ir.Expr) -> Names:
    """The variables from whose tensors an expression is made on the same device."""
    if isinstance(expr, ir.Name):
        return frozenset({expr.id})
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _MOVES:
        return frozenset()
    return frozenset[str]().union(*map(_names, _tensors(expr)))


def _tensors(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The parts that contribute tensors to an expression, not shapes or numbers."""
    match expr:
        case ir.Attr():
            return () if expr.name in words.PLAIN_ATTRIBUTES - {"data"} else (expr.value,)
        case ir.Subscript():
            return (expr.value,)
        case ir.Call(func=ir.Attr(name=name)) if name == "cpu" or name in knowledge.methods().data:
            return ()
        case ir.Call():
            return _inputs(expr)
        case ir.Lambda() | ir.FormattedString():
            return ()
    return children(expr)
