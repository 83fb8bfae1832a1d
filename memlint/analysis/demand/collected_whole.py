"""Tensors that a loop collects on the device and that later code needs there as one tensor."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import (
    calls,
    dotted,
    last_name,
    parts,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.stores.collected import (
    TO_HOST,
    Held,
    given_as,
    holders,
    is_moved_later,
    made_from,
    mention,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: calls that join the members of a collection to one tensor
_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "vstack", "hstack", "pad_sequence"})
#: functions, and modules of functions, that combine their arguments with no other tensors
_COMBINES_NOTHING = frozenset({
    "print", "len", "float", "int", "str", "list", "tuple", "dict", "zip", "enumerate", "isinstance", "torch", "np",
    "F",
})  # fmt: skip
#: methods that store or write their arguments
_PUT_AWAY = frozenset({"append", "extend", "save", "dump", "format", "write"})
#: methods that move a tensor to the place of its use
_MOVES = frozenset({"to", "cuda", "type_as"})
#: attributes and methods that read a tensor's metadata, without a computation
_METADATA = frozenset({"size", "shape", "dim", "ndim", "numel", "device", "dtype"})


def needed_as_one_tensor(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether all collected members are joined to one tensor on the device, here or in a caller, and that tensor is
    then stored, or combined with other tensors. False if something moves it to the host."""
    if is_moved_later(summary, store):
        return False
    held = list(holders(analyser, summary, store))
    if any(_is_read_on_host(one) for one in held):
        return False
    joined = any(
        last_name(call.func) in _JOINS and any(mention(arg, one.names) for arg in call.args)
        for one in held
        for call in calls(one.summary.function.body)
    )
    return joined and any(_is_combined(analyser, one, _collected_with(one, store)) for one in held)


def _is_read_on_host(held: Held) -> bool:
    return any(
        isinstance(part, ir.Call)
        and isinstance(part.func, ir.Attr)
        and part.func.name in TO_HOST - {"item"}  # a number computed from the tensor says nothing about the tensor
        and part.at > held.since
        and mention(part.func.value, held.names)
        for part in parts(held.summary.function.body)
    )


def _collected_with(held: Held, store: Store) -> set[str]:
    """The names of the collection, of other collections that the same loop fills, and of what is made from them."""
    body = store.loop.body if store.loop is not None and held.since == store.site.at else ()
    beside = {
        call.func.value.id
        for call in calls(body)
        if isinstance(call.func, ir.Attr) and call.func.name == "append" and isinstance(call.func.value, ir.Name)
    }
    return made_from(held.summary, held.names | beside)


def _is_combined(analyser: Analyser, held: Held, own: set[str]) -> bool:
    function = held.summary.function
    if _is_combined_in(function, held.names, own, held.since):
        return True
    known = {record.at: analyser.function_at(record.callee) for record in held.summary.calls.values()}
    for call in calls(function.body):
        if call.at <= held.since or not _gets(call, held.names):
            continue
        callee = known.get(call.at)
        if callee is None:
            if _may_combine(call, own):
                return True
            continue
        params = given_as(callee, call, lambda arg: _takes_part(arg, held.names))
        if _is_combined_in(callee, params, params, -1) or any(
            _gets(inner, params) and _may_combine(inner, params) for inner in calls(callee.body)
        ):
            return True
    return False


def _is_combined_in(function: Function, names: AbstractSet[str], own: AbstractSet[str], since: int) -> bool:
    """Whether one of the names takes part in an operation with other tensors, or becomes an attribute."""
    for statement in walk_statements(function.body, into_definitions=False):
        if statement.at <= since:
            continue
        if isinstance(statement, ir.Assign) and _becomes_attribute(statement, names):
            return True
        for part in parts_of(statement):
            if isinstance(part, ir.Binary) and _is_beside(part.left, part.right, names, own):
                return True
    return False


def _becomes_attribute(statement: ir.Assign, names: AbstractSet[str]) -> bool:
    """Whether the statement stores one of the names in an attribute: ``self.bank = torch.cat(rows)``."""
    whole = isinstance(statement.value, ir.Name | ir.Call) and _takes_part(statement.value, names)
    return whole and any(isinstance(target, ir.Attr) for target in statement.targets)


def _is_beside(left: ir.Expr, right: ir.Expr, names: AbstractSet[str], own: AbstractSet[str]) -> bool:
    return any(
        _takes_part(one, names)
        and not mention(other, own)
        and any(isinstance(part, ir.Name) for part in walk_expression(other))
        for one, other in ((left, right), (right, left))
    )


def _takes_part(expr: ir.Expr, names: AbstractSet[str]) -> bool:
    """Whether an expression reads more than the shape of one of these names."""
    if isinstance(expr, ir.Attr) and expr.name in _METADATA:
        return False
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _METADATA | _MOVES:
        return False  # a tensor that is moved to its use need not be on the device before
    if isinstance(expr, ir.Call) and dotted(expr.func) == "len":
        return False
    return mention(expr, names)


def _gets(call: ir.Call, names: AbstractSet[str]) -> bool:
    return any(_takes_part(arg, names) for arg in call.passed)


def _may_combine(call: ir.Call, own: AbstractSet[str]) -> bool:
    """Whether a call that gets the whole tensor may combine it with others: those of its receiver or other
    arguments."""
    name = last_name(call.func)
    if dotted(call.func).partition(".")[0] in _COMBINES_NOTHING or name in _JOINS or name in _PUT_AWAY:
        return False
    if isinstance(call.func, ir.Attr):
        return not mention(call.func.value, own)
    arguments = call.passed
    return any(not mention(arg, own) and not isinstance(arg, ir.Const) for arg in arguments)
