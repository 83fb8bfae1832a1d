"""How a state that is carried between iterations is detached as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NONE, TENSOR, TREE, UNKNOWN, V
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.syntax import dotted, is_name, under_calls, walk_statements
from memlint.ir import nodes as ir

_FACTORIES = frozenset(
    ["zeros", "ones", "rand", "randn", "empty", "full", "tensor", "zeros_like", "ones_like", "randn_like", "new_zeros"]
)
_MOVES = frozenset(["to", "cuda", "cpu", "float", "half", "double", "bfloat16", "repeat", "expand", "unsqueeze"])


def detached_state(summary: Summary, name: str, value: V) -> str:
    """The statement that detaches a state; "" if it may be something without ``detach()``. A state keeps the form of
    its first value: a tensor, or a tuple of tensors (an LSTM's)."""
    if not name.isidentifier() or not value.kinds or value.kinds & ~(TENSOR | TREE):
        return ""
    assigned = list(_assigned(summary.function, name))
    begun = [one for one in assigned if not mentions(one, name)]
    given = {one.at: kinds for one in begun if (kinds := _given(summary, one))}
    if any(isinstance(one, ir.Display) for one in assigned if one not in begun):
        return ""  # it has another form later
    if any(kinds & ~(TENSOR | TREE | NONE | UNKNOWN) for kinds in given.values()):
        return ""
    rest = [one for one in begun if not (isinstance(one, ir.Const) and one.kind == "None")]
    missing = len(rest) < len(begun) or any(kinds & NONE for kinds in given.values())
    tensor = value.is_only(TENSOR)
    if any(isinstance(one, ir.Display) and one.kind == "tuple" for one in rest):
        pairs = not tensor and not missing and all(isinstance(one, ir.Display) and one.kind == "tuple" for one in rest)
        return f"{name} = tuple(part.detach() for part in {name})" if pairs else ""
    if any(not isinstance(one, ir.Call | ir.Name | ir.Attr | ir.Subscript) for one in rest):
        return ""
    if not all(map(_makes_tensor, rest)) and not tensor:
        return ""
    if not begun or (not rest and not tensor):
        return ""
    return f"{name} = None if {name} is None else {name}.detach()" if missing else f"{name} = {name}.detach()"


def _given(summary: Summary, value: ir.Expr) -> int:
    """The kinds of values that the project's function returns in a call; 0 for another call."""
    kinds = 0
    for record in summary.calls.values():
        if record.at == value.at:
            kinds |= record.result.kinds
    return kinds


def _assigned(function: Function, name: str) -> Iterator[ir.Expr]:
    """The expressions that are assigned to the variable itself."""
    for statement in walk_statements(function.body, into_definitions=False):
        if not isinstance(statement, ir.Assign):
            continue
        for target in statement.targets:
            pairs = [(target, statement.value)]
            if isinstance(target, ir.Display) and isinstance(statement.value, ir.Display):
                pairs = list(zip(target.elements, statement.value.elements, strict=False))
            yield from (one for to, one in pairs if is_name(to, name))


def _makes_tensor(value: ir.Expr) -> bool:
    value = under_calls(value, _MOVES)
    if not isinstance(value, ir.Call):
        return False
    name = value.func.name if isinstance(value.func, ir.Attr) else dotted(value.func)
    return name.rsplit(".", 1)[-1] in _FACTORIES
