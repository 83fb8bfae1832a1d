"""The last layer of a chain whose members are in lists: ``nn.Sequential(*layers)``."""

from __future__ import annotations

from typing import Literal, TypeGuard

from memlint.analysis.domain.bound_names import bindings
from memlint.analysis.domain.extents.extents import SAME_LAYERS
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import UNKNOWN_VALUE
from memlint.analysis.syntax.syntax import bodies, is_name, last_name, way_to
from memlint.analysis.transfer.library import layer_extents
from memlint.analysis.transfer.library.layer_extents import Layer
from memlint.ir import nodes as ir

#: functions that return their layer, with changed weights
_REWEIGHTED = frozenset({"spectral_norm", "weight_norm", "orthogonal"})
#: names of activations, for layers of unknown class
_ACTIVATIONS = frozenset({"act", "activation", "act_fn", "activation_fn", "nonlinearity", "act_layer", "non_linearity"})

_Member = ir.Expr | Literal["unknown"]


def last_layer(fn: FunctionState, chain: ir.Call) -> Layer | None:
    """The layer that determines the output of a chain, some of whose members are in lists; None for unknown."""
    members: list[_Member] = []
    for arg in reversed(chain.args):
        if isinstance(arg, ir.Starred):
            members = _members(fn, arg.value, chain.at)
            break
        if not _keeps_width(fn, arg):
            members = [arg]
            break
    found = [_layer(fn, member) if member != "unknown" else None for member in members]
    known = [one for one in found if one is not None]
    if not known or len(known) < len(found) or len({one.name for one in known}) > 1:
        return None
    return _widest(known)


def _widest(found: list[Layer]) -> Layer | None:
    """One layer for several of a class, with the least and the greatest of each of their numbers."""
    numbers = []
    for each in zip(*(one.numbers for one in found), strict=True):
        known = [one for one in each if one is not None]
        whole = len(known) == len(each)
        numbers.append((min(low for low, _ in known), max(high for _, high in known)) if whole else None)
    return Layer(found[0].name, tuple(numbers))


def _layer(fn: FunctionState, member: ir.Expr) -> Layer | None:
    """The layer that an expression makes; None for unknown."""
    call = _made(fn, member)
    if call is None:
        return None
    words = {word.name: UNKNOWN_VALUE for word in call.keywords if word.name}
    name = fn.analyser.program.outside(fn.module, call.func, fn.function)
    return layer_extents.layer_of(
        name,
        [UNKNOWN_VALUE] * len(call.args),
        words,
        call,
        lambda shown: fn.analyser.facts.number(shown, fn.function),
    )


def _made(fn: FunctionState, member: ir.Expr) -> ir.Call | None:
    """The call that makes a layer, behind its variable and changes of its weights; None for another expression."""
    if isinstance(member, ir.Name):
        bound = [
            value
            for value, unpacked in bindings(fn.function.body).get(member.id, [])
            if unpacked or not (_is_reweighted(value) and is_name(value.args[0], member.id))
        ]
        member = bound[0] if len(bound) == 1 else member
    while _is_reweighted(member):
        member = member.args[0]
    return member if isinstance(member, ir.Call) else None


def _is_reweighted(expr: ir.Expr) -> TypeGuard[ir.Call]:
    return isinstance(expr, ir.Call) and last_name(expr.func) in _REWEIGHTED and bool(expr.args)


def _keeps_width(fn: FunctionState, member: ir.Expr) -> bool:
    """Whether a layer's output has the shape of its input: activations, dropout, normalisation."""
    call = _made(fn, member)
    func = call.func if call is not None else member
    name = fn.analyser.program.outside(fn.module, func, fn.function)
    if name:
        return name.startswith("torch.nn.") and name.rpartition(".")[2] in SAME_LAYERS
    return last_name(func).lower() in _ACTIVATIONS


def _members(fn: FunctionState, listed: ir.Expr, at: int) -> list[_Member]:
    """The possible last members of a list at an ordinal, without those that keep the width."""
    if isinstance(listed, ir.Display):
        found, open_ = _ending(fn, [*listed.elements])
        return [*found, "unknown"] if open_ else found
    if not isinstance(listed, ir.Name):
        return ["unknown"]
    found = []
    for block, place in reversed(way_to(fn.function.body, at)):
        more, open_ = _added(fn, block[:place], listed.id)
        found += more
        if not open_:
            return found
    return [*found, "unknown"]


def _added(fn: FunctionState, block: tuple[ir.Stmt, ...], name: str) -> tuple[list[_Member], bool]:
    """The possible last members of a list behind some statements, and whether its last member may be one from before
    them."""
    found: list[_Member] = []
    for statement in reversed(block):
        own = _adds(statement, name)
        if own is not None:
            members, begins = own
            added, goes_on = _ending(fn, members)
            goes_on = goes_on and not begins
        elif isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        else:  # a loop may have no round, and a branch may not run
            each = [_added(fn, one, name) for one in bodies(statement)]
            added = [member for members, _ in each for member in members]
            goes_on = not each or any(is_open for _, is_open in each)
        found += added
        if not goes_on:
            return found, False
    return found, True


def _ending(fn: FunctionState, members: list[_Member]) -> tuple[list[_Member], bool]:
    """The member that determines the output of added members, and whether all of them keep the width."""
    for member in reversed(members):
        if member == "unknown" or not _keeps_width(fn, member):
            return [member], False
    return [], True


def _adds(statement: ir.Stmt, name: str) -> tuple[list[_Member], bool] | None:
    """The members that a statement adds to a list, and whether the list begins with them; None for a statement that
    does not change the list."""
    if isinstance(statement, ir.Assign) and any(is_name(target, name) for target in statement.targets):
        value = statement.value
        if isinstance(value, ir.Binary) and value.op == "+" and is_name(value.left, name):
            return _listed(value.right), False
        return _listed(value), True
    if isinstance(statement, ir.AugAssign) and is_name(statement.target, name):
        return _listed(statement.value), False
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or not is_name(call.func.value, name):
        return None
    if call.func.name == "append" and len(call.args) == 1:
        return [*call.args], False
    return (_listed(call.args[0]) if call.func.name == "extend" and call.args else ["unknown"]), False


def _listed(value: ir.Expr) -> list[_Member]:
    if isinstance(value, ir.Display):
        return ["unknown" if isinstance(one, ir.Starred) else one for one in value.elements]
    if isinstance(value, ir.Comprehension):
        return [value.element]
    return ["unknown"]
