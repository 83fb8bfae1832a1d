"""Networks whose parameters code uses: it disables or reads their gradients.

The parameters may come one by one through a helper, out of a dictionary, or from several networks; see
`memlint.analysis.demand.optimizer_ownership` for their marks. Disabled gradients of unknown parameters still forbid the
conclusion that a network there records in vain.
"""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import MODULE, UNKNOWN, Args, Path, Source, V, Words
from memlint.analysis.index.program import Class
from memlint.analysis.syntax.bindings import names_bound_by, reads_any
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, parts, walk_statements
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.optimizer_parameters import ANY, add_keys, made_of, parameters_of
from memlint.ir import nodes as ir


def note_disabled(fn: FunctionState, value: V) -> None:
    """Record ``value.requires_grad = False``, or a flag instead of False, for a parameter or a module."""
    keys = keys_of(value)
    if not keys and value.kinds & (MODULE | UNKNOWN):
        keys = {ANY}
    add_keys(fn.notes.switched, keys)


def note_detached(fn: FunctionState, value: V, place: ir.Expr) -> None:
    """Record ``value.detach_()`` for a parameter, but not for a state that is carried over rounds."""
    keys = keys_of(value)
    rounds = {name for loop in fn.loops for name in loop.targets}
    one_of_many = isinstance(place, ir.Name) and place.id in rounds
    nodes = fn.graphs.nodes_of(value.src)
    computed = any((node.definite or node.model) and not node.leaf for node in nodes)
    if not keys and value.kinds & (MODULE | UNKNOWN) and one_of_many and not computed:
        keys = {ANY}
    add_keys(fn.notes.switched, keys)


def note_gradient_read(fn: FunctionState, value: V) -> None:
    """Record that ``value.grad`` is read: its network is trained by it."""
    add_keys(fn.notes.learned, keys_of(value))


def keys_of(value: V) -> set[Source]:
    """The keys of the networks that a value is, or of which it is a parameter."""
    keys: set[Source] = {*value.syms, *parameters_of(value)}
    if value.kinds & (MODULE | UNKNOWN):
        keys |= made_of(value)
    return keys


def note_escaped(fn: FunctionState, state: State, values: list[V]) -> None:
    """Record parameters that escape to code that may train them."""
    for value in values:
        if value.objs or value.store:
            add_keys(fn.notes.learned, parameters_of(tensors_within(fn, state, value, 5)))


def note_constructor(fn: FunctionState, state: State, cls: Class, args: Args, words: Words) -> None:
    """Record the parameters in the constructor call of a project class that reads gradients: such a class is an
    optimizer."""
    if any(_reads_gradients(method.body) for method in fn.analyser.program.methods(cls)):
        note_escaped(fn, state, [*args, *words.values()])


@kept
def _reads_gradients(body: tuple[ir.Stmt, ...]) -> bool:
    return any(isinstance(part, ir.Attr) and part.name == "grad" for part in parts(body))


def note_applied(fn: FunctionState, state: State, receiver: V, place: ir.Expr, callee: V) -> None:
    """Record ``net.apply(function)``: the function's effect on its parameter is one on all submodules."""
    for ref in callee.refs:
        function = fn.analyser.function(ref) if ref.kind == "func" else None
        summary = fn.analyser.summary(function) if function is not None and function.params else None
        if function is None or summary is None or summary.exit is None:
            continue
        if not function.given:
            continue
        own = Path(f"p:{function.given[0].name}")
        if summary.exit.modes.get(("frozen", own)) is True:
            freeze(state, receiver, place, True)
        if ANY in summary.notes.switched or any(
            isinstance(key, Path) and key.root == own.root for key in summary.notes.switched
        ):
            note_disabled(fn, receiver)


_OF_PARAMETERS = frozenset({"parameters", "named_parameters"})


def of_other_networks(body: tuple[ir.Stmt, ...], model: str) -> frozenset[int]:
    """The mentions (by identity) of loop variables over the parameters of other networks than ``model``: ``p`` in
    ``for p in critic.parameters(): p.requires_grad = True``."""
    model = model.removesuffix(".forward")
    return _through(body, lambda network: _is_apart(body, network, model))


@kept
def of_networks(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The mentions of loop variables over the parameters of any network."""
    return _through(body, lambda _: True)


def _through(body: tuple[ir.Stmt, ...], is_meant: Callable[[str], bool]) -> frozenset[int]:
    found: set[int] = set()
    for loop in walk_statements(body):
        network = _goes_through(loop.iter) if isinstance(loop, ir.For) else ""
        if not isinstance(loop, ir.For) or not network or not is_meant(network):
            continue
        own = names_bound_by(loop)
        found.update(
            id(part) for part in parts(loop.body, into_definitions=True) if isinstance(part, ir.Name) and part.id in own
        )
    return frozenset(found)


def _goes_through(expr: ir.Expr) -> str:
    """``net`` for ``net.parameters()`` and ``net.named_parameters()``; "" for another expression."""
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _OF_PARAMETERS:
        return dotted(expr.func.value)
    return ""


def _is_apart(body: tuple[ir.Stmt, ...], network: str, model: str) -> bool:
    """Whether two places hold different networks: neither is a part of the other, and the first is neither an alias
    nor made from the second."""
    if f"{network}.".startswith(f"{model}.") or f"{model}.".startswith(f"{network}."):
        return False
    root, other = network.partition(".")[0], model.partition(".")[0]
    binding = (one for one in walk_statements(body) if root in names_bound_by(one))
    return root == other or all(
        isinstance(one, ir.Assign) and isinstance(one.value, ir.Call) and not reads_any(one.value, {other})
        for one in binding
    )
