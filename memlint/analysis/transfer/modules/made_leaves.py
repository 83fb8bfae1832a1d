"""Tensors that code makes leaves: operations on them are recorded, whichever model runs."""

from __future__ import annotations

from memlint.analysis.domain.state import ON, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY, MODULE, TENSORS, UNKNOWN, V
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, last_name, parts, under_calls, walk_statements
from memlint.analysis.transfer.modules.freezing import note_frozen_weight
from memlint.analysis.transfer.modules.optimizer_parameters import parameters_of
from memlint.analysis.transfer.modules.touched_parameters import note_disabled
from memlint.ir import nodes as ir

#: the first item of the graph source of such a leaf
_FLAG = "requires_grad"


def set_requires_grad(fn: FunctionState, state: State, place: ir.Expr, value: V, on: bool | None, at: int) -> V:
    """The value after ``value.requires_grad = on`` or ``value.requires_grad_(on)``, which its variable holds from
    then on; the network of a parameter is recorded. ``on`` is None for an unknown flag."""
    if on is not True:
        note_disabled(fn, value)
    note_frozen_weight(fn, state, place, None if on is None else not on)
    if on is None:
        return value
    made = as_leaf(fn, state, value, at) if on else _no_leaf(value)
    if isinstance(place, ir.Name) and state.env.get(place.id) is value:
        state.env[place.id] = made
    return made


def as_leaf(fn: FunctionState, state: State, value: V, at: int) -> V:
    """The value as a new leaf; a parameter and a module stay unchanged."""
    if value.kinds & MODULE or not value.kinds & (TENSORS | UNKNOWN) or parameters_of(value):
        return value
    if any(node.definite for node in fn.graphs.nodes_of(value.src)):
        return value
    grad, state.grad = state.grad, ON  # a leaf is one in any grad mode
    leaf = fn.record(state, (_FLAG, at), at, _FLAG, EMPTY, definite=True, leaf=True)
    state.grad = grad
    return value.but(src=value.src | leaf)


def _no_leaf(value: V) -> V:
    """The value without its mark as a leaf: operations on it are not recorded from here on."""
    return value.but(
        src=frozenset(item for item in value.src if not (isinstance(item, tuple) and item[:1] == (_FLAG,)))
    )


def new_leaves(summary: Summary) -> frozenset[int]:
    """The ordinals of calls that make a tensor that requires grad: ``torch.randn(3, requires_grad=True)``. (A tensor
    that becomes a leaf in place may have other names.)"""
    asking = {call.at for call in calls(summary.function.body) if any(one.name == _FLAG for one in call.keywords)}
    return frozenset(node.at for node in summary.graphs.nodes.values() if node.leaf and node.at in asking)


#: methods that give a new tensor, and methods that give one of the same origin or the tensor itself
_COPIES = frozenset({"clone", "detach"})
_MOVES = frozenset({"to", "cuda", "cpu", "float", "half", "double", "contiguous", "requires_grad_"})


@kept
def of_new_tensors(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The receivers of ``requires_grad_`` that are copies: ``image.clone()`` in ``image.clone().requires_grad_()``, and
    variables that hold nothing else and that nothing else may refer to by then."""
    leaves = (call.func for call in calls(body) if last_name(call.func) == "requires_grad_")
    receivers = [func.value for func in leaves if isinstance(func, ir.Attr)]
    names = {one.id for one in receivers if isinstance(one, ir.Name)}
    bound = {name: [one for one in walk_statements(body) if name in names_bound_by(one)] for name in sorted(names)}
    copied = {
        name
        for name, statements in bound.items()
        if statements and all(isinstance(one, ir.Assign) and _is_copy(one.value) for one in statements)
    } - _shared(body, {one.id: one.at for one in receivers if isinstance(one, ir.Name)})
    return frozenset(id(one) for one in receivers if _is_copy(one) or (isinstance(one, ir.Name) and one.id in copied))


def _shared(body: tuple[ir.Stmt, ...], until: dict[str, int]) -> set[str]:
    """The variables whose value may get another name or a place before an ordinal: ``style = image``, ``[image]``."""
    own = {part.value.at for part in parts(body) if isinstance(part, ir.Attr)}
    own |= {target.at for one in walk_statements(body) if isinstance(one, ir.Assign) for target in one.targets}
    return {
        part.id
        for part in parts(body, into_definitions=True)
        if isinstance(part, ir.Name) and part.at < until.get(part.id, 0) and part.at not in own
    }


def _is_copy(expr: ir.Expr) -> bool:
    """Whether the value of an expression is a tensor that no other place holds: ``x.clone().cuda()``."""
    made = under_calls(expr, _MOVES)
    return isinstance(made, ir.Call) and isinstance(made.func, ir.Attr) and made.func.name in _COPIES
