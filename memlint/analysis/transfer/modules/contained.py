"""Which modules are in a module container: ``nn.ModuleList(layers)``, ``blocks.append(Block())``."""

from __future__ import annotations

from memlint.analysis.domain.parts_taken import CONTAINED
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CALLABLE, INSTANCE, MODULE, V, ordered
from memlint.analysis.index.stateful import is_stateful
from memlint.analysis.transfer.assignment import write_attribute
from memlint.analysis.transfer.heap import MAX_MEMBERS
from memlint.analysis.transfer.modules.modes import MODULE_CONTAINERS
from memlint.ir import nodes as ir

#: methods of module containers that add modules
ADDS = frozenset({"append", "extend", "insert", "update", "add_module", "register_module"})


def contained_modules(fn: FunctionState, state: State, args: list[V]) -> V | None:
    """The join of the modules that a module container is given, by themselves or in a list, tuple or dictionary; None
    where the class of one of them is unknown, or there are many classes, or no run of the project's among them is seen
    to change a module: what is known of any module serves then, and costs less."""
    inside = [part for value in args for _, obj in state.objects(value) for part in obj.members]
    parts = [one for one in (*inside, *(value for value in args if not value.objs)) if one.kinds]
    if not all(part.is_only(MODULE | INSTANCE | CALLABLE) and part.refs for part in parts):
        return None
    refs = frozenset(ref for part in parts for ref in part.refs)
    if len(refs) > MAX_MEMBERS or not all(ref.kind in ("instance", "extinstance") for ref in refs):
        return None
    own = [cls for ref in refs if ref.kind == "instance" and (cls := fn.analyser.cls(ref)) is not None]
    quiet = bool(own) and not any(is_stateful(fn.analyser.program, cls) for cls in own)
    return None if quiet else V(MODULE, refs=refs)


def add_modules(fn: FunctionState, state: State, expr: ir.Call, receiver: V, args: list[V]) -> None:
    """Note that ``blocks.append(Block())`` adds to the modules of a container that an attribute or a variable holds."""
    func = expr.func
    known = receiver.refs and all(ref.name in MODULE_CONTAINERS for ref in receiver.refs)
    if not isinstance(func, ir.Attr) or not known:
        return
    new = contained_modules(fn, state, [one for one in args if not one.is_plain()])
    refs = []
    for ref in ordered(receiver.refs):
        words = dict(ref.keywords)
        old = words.pop(CONTAINED, None)
        if old is not None and new is not None and len(old.refs | new.refs) <= MAX_MEMBERS:
            words[CONTAINED] = V(MODULE, refs=old.refs | new.refs)
        refs.append(ref._replace(keywords=tuple(words.items())))
    grown = receiver.but(refs=frozenset(refs))
    place = func.value
    if isinstance(place, ir.Attr):
        holder = fn.interpreter.evaluate(fn, state, place.value)
        write_attribute(fn, state, holder, place.name, grown)
    elif isinstance(place, ir.Name) and place.id in state.env:
        state.env[place.id] = grown
