"""Assignments and deletions: they bind variables, attributes and members, and record the stores among them."""

from __future__ import annotations

import functools

from memlint.analysis.domain.extents.extents import UNBOUNDED
from memlint.analysis.domain.literal_values import referred_functions
from memlint.analysis.domain.parts_taken import named
from memlint.analysis.domain.periods import resets_in_time, resets_soon
from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import OFF, State, untouched
from memlint.analysis.domain.summary.effects import LoopState, Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut
from memlint.analysis.domain.values import (
    BATCH,
    CONTAINER,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Source,
    V,
    join,
    ordered,
)
from memlint.analysis.syntax.bindings import mentions, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.heap import (
    current_position,
    derive,
    element,
    elements_of,
    make,
    part_of_bundle,
    part_of_output,
    read_symbol,
    symbol_counts,
)
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.freezing import note_frozen_weight
from memlint.analysis.transfer.modules.made_leaves import set_requires_grad
from memlint.analysis.transfer.modules.modes import forget_name, frozen_of
from memlint.analysis.transfer.signatures import methods_of
from memlint.analysis.transfer.stores import carry, context_attributes, loop_updates
from memlint.analysis.transfer.stores.class_places import class_places, made_places
from memlint.analysis.transfer.stores.emptied_places import drop_stores, empty, is_rebuilt, rebind, release
from memlint.analysis.transfer.stores.loop_updates import write_into_view
from memlint.analysis.transfer.stores.sample_keys import by_sample
from memlint.analysis.transfer.stores.stores import kind_of, note_store, own_sources, parts_of
from memlint.analysis.transfer.stores.written_keys import by_callers, counted_by, is_of_pairs, is_replaced, over_itself
from memlint.ir import nodes as ir


def assign(
    fn: FunctionState, state: State, target: ir.Expr, value: V, statement: ir.Assign | ir.AnnAssign | None
) -> None:
    """Bind a target. ``statement``: the assignment that computes the value, for which carries are recorded; None for
    other bindings."""
    match target:
        case ir.Name():
            if statement is not None:
                carry.note_assigned(fn, state, statement, target, value)
            _bind(fn, state, target.id, named(value, target.id))
        case ir.Attr():
            base = fn.interpreter.evaluate(fn, state, target.value)
            context_attributes.note_context_attribute(fn, target, value, statement)
            if target.name == "data" and _is_tensor(fn, base) and not value.may_be(CONTAINER):
                if statement is not None:
                    loop_updates.note_update(fn, state, statement, target, value)
                value = cut(value)  # autograd does not see an assignment to ``data``
            elif statement is not None:
                carry.note_assigned(fn, state, statement, target, value)
            if base.kinds & MODULE and value.kinds & MODULE and frozen_of(fn, state, base, target.value):
                freeze(state, base, target.value, None)  # a new submodule of a frozen module is trainable
            if target.name == "requires_grad":
                on = value.const if isinstance(value.const, bool) else None
                base = set_requires_grad(fn, state, target.value, base, on, target.at)
            elif target.name == "weight" and base.kinds & MODULE and state.grad != OFF:
                note_frozen_weight(fn, state, target, value.is_only(TENSOR) and not value.src)
            write_attribute(fn, state, base, target.name, value)
        case ir.Subscript():
            base = fn.interpreter.evaluate(fn, state, target.value)
            index = fn.interpreter.evaluate(fn, state, target.index)
            if statement is not None:
                carry.note_assigned(fn, state, statement, target, value)
            write_item(fn, state, base, index, value, target, by_carry=statement is None)
        case ir.Display():
            _unpack(fn, state, target, value, statement)
        case ir.Starred():
            assign(
                fn,
                state,
                target.value,
                V(CONTAINER | value.kinds, value.src, objs=value.objs, syms=value.syms),
                statement,
            )
        case _:
            pass


def _is_tensor(fn: FunctionState, base: V) -> bool:
    """Whether ``base`` may be a tensor, so that ``base.data`` is the tensor's."""
    if base.kinds & INSTANCE:
        classes = [fn.analyser.cls(ref) for ref in base.refs if ref.kind == "instance"]
        return bool(classes) and all(cls is not None and fn.analyser.program.is_tensor(cls) for cls in classes)
    return bool(base.kinds & (TENSORS | UNKNOWN)) and not base.resolved()


def _bind(fn: FunctionState, state: State, name: str, value: V) -> None:
    """Assign a variable: a local one, or the symbolic place of a global or a variable of an enclosing function."""
    function = fn.function
    if name not in function.locals and name not in fn.own_names:
        root = (
            "g:" + fn.module.key + ":" if function.enclosing is None or name not in function.enclosing.locals else "c:"
        )
        path = Path(root + name)
        if value.kinds & CONTAINER:
            drop_stores(fn, state, frozenset((path,)))
        rebind(fn, state, state.sym.get(path), value, lambda held: state.sym.__setitem__(path, held))
        return
    rebind(fn, state, state.env.get(name), value, lambda held: state.env.__setitem__(name, held))
    forget_name(state, name, value)
    if fn.loops and value.is_only(DATA | NONE) and (resets_soon(fn) or _is_for_log(fn, name)):
        # the sum is reset, or becomes a number, every so many iterations
        drop_stores(fn, state, frozenset((("var", name),)))


def _is_for_log(fn: FunctionState, name: str) -> bool:
    """Whether a sum is reset every so many iterations and no backward reaches it: such a sum is kept for a log."""
    if not resets_in_time(fn):
        return False
    marks = own_sources(fn, ("var", name))
    return not any(marks & one.reached for one in fn.backwards)


def _unpack(
    fn: FunctionState, state: State, target: ir.Display, value: V, statement: ir.Assign | ir.AnnAssign | None
) -> None:
    """Bind the targets of ``a, b = value``, each to the member at its position."""
    count = len(target.elements)
    starred = any(isinstance(part, ir.Starred) for part in target.elements)
    for position, part in enumerate(target.elements):
        if isinstance(part, ir.Starred):
            assign(fn, state, part, value, statement)
            continue
        found = NOTHING
        rest = value
        for key, obj in state.objects(value):
            if str(position) in obj.fields and len(obj.ordered) == count:
                found = join(found, obj.fields[str(position)])
                rest = rest.but(objs=rest.objs - {key})
            elif obj.kind == "tuple" and obj.fields and not obj.elem.kinds and not starred:
                rest = rest.but(objs=rest.objs - {key})  # the tuple of another path, with another length
        if found.kinds and not rest.objs and (not found.is_only(DATA | NONE) or rest.is_only(TENSOR | CONTAINER)):
            # only the tuple of this length can be unpacked here, not the single tensor of another path
            found = found.but(kinds=found.kinds | rest.kinds & UNKNOWN)
        elif rest.objs or rest.syms or rest.kinds & ~CONTAINER:
            found = join(found, _part(fn, state, rest, position))
        assign(fn, state, part, found if found.kinds else UNKNOWN_VALUE, statement)


def _part(fn: FunctionState, state: State, value: V, position: int) -> V:
    """The member of ``value`` at a position of an unpacking."""
    if value.is_of_library():
        return part_of_bundle(value, position)
    found = NOTHING
    rest = value
    if value.objs or value.kinds & (LOADER | MODULE | TENSORS | DATA):
        held = value
        if value.kinds & UNKNOWN and value.kinds & TREE and not value.syms:
            # a model's output and the result of an unresolved call each have parts of their own
            nodes = fn.graphs.nodes
            unknown = frozenset(source for source in value.src if source in nodes and nodes[source].unknown)
            held, rest = value.but(src=value.src - unknown), value.but(src=unknown)
        plain = part_of_output(fn, held, f"[{position}]", unpacked=True)
        if plain.extent is not None and plain.extent.parts:
            plain = plain.but(extent=plain.extent.part(position))
        elif plain.extent is None and plain.size == BATCH and position > 0:
            plain = plain.but(extent=UNBOUNDED)  # what a loader gives beside the inputs may be labels or names
        found = element(fn, state, plain.but(syms=frozenset(), kinds=value.kinds & ~UNKNOWN))
    for path in ordered(value.syms):
        if symbol_counts(state, value, path.then(f"[{position}]")):
            found = join(found, read_symbol(state, path.then(f"[{position}]")))
    if value.kinds & UNKNOWN and not value.syms:
        found = join(found, derive(fn, rest, f"[{position}]"))
    return found


def write_attribute(fn: FunctionState, state: State, base: V, name: str, value: V) -> None:
    """Store the value of ``base.name = value`` in the objects and places that ``base`` may be."""
    fn.notes.put_on.update(referred_functions(value))
    places = [*ordered(made_places(fn, base, name))]
    places = places or [*ordered(class_places(fn.analyser, base, name))]
    if not base.objs and not places:
        fn.leave(fn.graphs.closure(tensors_within(fn, state, value).src))
    for key, obj in state.objects(base):
        old = obj.fields.get(name)
        if len(base.objs) > 1:
            state.heap[key] = obj.with_field(name, value if old is None else join(old, value))
            continue
        rebind(fn, state, old, value, functools.partial(_set_field, state, key, name))
    for place in places:
        if value.kinds & (CONTAINER | DATA | NONE) and not value.src and not is_rebuilt(fn, state, place, value):
            drop_stores(fn, state, frozenset((place,)))
        if not value.src and _is_guarded_by_parameter(fn):
            fn.notes.reset_by_parameter.add(place)
        if len(places) > 1:
            state.sym[place] = join(state.sym.get(place) or UNKNOWN_VALUE, value)
            continue
        rebind(fn, state, state.sym.get(place), value, functools.partial(state.sym.__setitem__, place))


def _set_field(state: State, key: Source, name: str, value: V) -> None:
    state.heap[key] = state.heap[key].with_field(name, value)


def _is_guarded_by_parameter(fn: FunctionState) -> bool:
    """Whether a test of a parameter guards the current point (``if step == 0:``), so that the caller decides whether
    it runs."""
    if not fn.tests:
        return False
    names = {param.name for param in fn.function.given}
    return any(reads_any(test, names) for test in fn.tests)


def write_item(
    fn: FunctionState, state: State, base: V, index: V, value: V, target: ir.Subscript, *, by_carry: bool = False
) -> None:
    """Store the value of ``base[index] = value`` in the containers, places and tensors that ``base`` may be."""
    if _set_by_method(fn, state, base, index, value, target):
        return
    name = None if index.const is None or isinstance(index.const, bool) else str(index.const)
    inner = tensors_within(fn, state, value)
    all_of_them = name is None and is_replaced(fn, target)
    plain = isinstance(index.const, str) and not value.src and not value.kinds & ~(CONTAINER | DATA | NONE)
    plain = plain and not base.may_be(TENSORS)  # the sum is reset, or the list emptied, now and then
    counted = () if by_carry else counted_by(fn, target.index)
    for key, obj in state.objects(base):
        if isinstance(target.index, ir.Slice):
            state.heap[key] = obj.with_elem(join(obj.elem, elements_of(fn, state, value)))
        elif name is not None:
            if plain and not is_rebuilt(fn, state, (key, f"[{name}]"), value):
                drop_stores(fn, state, frozenset(((key, f"[{name}]"),)))
            state.heap[key] = obj.with_field(name, value)
        elif all_of_them:
            state.heap[key] = obj.emptied().with_elem(value)
        else:
            state.heap[key] = obj.with_elem(join(obj.elem, value))
        if obj.bounded or by_carry:
            continue
        growing = counted or (by_sample(fn, target) if obj.kind == "dict" else ())
        if growing and not _is_rebuilt(fn, ("elem", key), inner, target):
            spot = Spot(key, "local", text(target.value))
            _note_key(fn, state, spot, inner, target, growing, parts_of(fn, state, value))
    for path in ordered(base.syms):
        step = f"[{index.const}]" if isinstance(index.const, str) else "[]"
        place = path.then(step)
        if plain and not is_rebuilt(fn, state, place, value):
            drop_stores(fn, state, frozenset((place,)))
            fn.notes.members_set.add(place)
        state.sym[place] = (
            value if step != "[]" or all_of_them else join(state.sym.get(place) or untouched(place), value)
        )
        if name is not None or by_carry or base.may_be(TENSORS) or all_of_them:
            continue
        growing = counted or (by_sample(fn, target) if base.kinds & CONTAINER else ())
        keyed = by_callers(fn, target.index) if base.kinds & CONTAINER and not growing else None
        if (growing or keyed) and not _is_rebuilt(fn, path.then("[]"), inner, target):
            spot = Spot(path, kind_of(path), text(target.value))
            _note_key(fn, state, spot, inner, target, growing, parts_of(fn, state, value), keyed)
    of_pairs = all_of_them and is_of_pairs(fn, target)
    if of_pairs and not inner.src and base.kinds & TENSORS and isinstance(target.value, ir.Name):
        # a model's output, or a criterion's result, is a dict here: replace it by one of the written members
        state.env[target.value.id] = make(fn, state, (target.at, "replaced"), "dict", value)
    elif base.kinds & TENSORS:
        _write_slice(fn, state, base, value, target)
        if isinstance(target.value, ir.Name) and isinstance(index.const, str) and not inner.src:
            _cut_member(fn, state, target.value.id, target)
    elif not base.objs and not base.syms:
        fn.leave(fn.graphs.closure(inner.src))
    carry.note_written(fn, state, base, value, target)


def _set_by_method(fn: FunctionState, state: State, base: V, index: V, value: V, target: ir.Subscript) -> bool:
    """Whether the object's classes define ``__setitem__`` (a class of the project, which may derive from dict or
    list), and the call of it is interpreted."""
    if base.kinds & ~(INSTANCE | CONTAINER):
        return False
    methods = methods_of(fn, base, "__setitem__")
    known = [method for method in methods if method is not None]
    if not known or len(known) < len(methods):
        return False
    for method in known:
        fn.interpreter.call_function(fn, state, method, [base, index, value], {}, target.at, None)
    return True


def _cut_member(fn: FunctionState, state: State, name: str, target: ir.Subscript) -> None:
    """``output["loss"] = output["loss"].detach()``: from here on it is unknown whether the other members have a
    graph."""
    held, statement = state.env.get(name), fn.statement
    if held is None or not held.kinds & TREE or not isinstance(statement, ir.Assign):
        return
    if mentions(statement.value, text(target, 200)):
        state.env[name] = part_of_output(fn, held, "[*]")


def _is_rebuilt(fn: FunctionState, mark: Source, value: V, target: ir.Subscript) -> bool:
    """Whether the written member is computed from its previous value (a carry), or replaces the member that is
    there."""
    reached = fn.graphs.closure(value.src)
    if mark in reached or (
        isinstance(mark, Path) and any(isinstance(item, Path) and item.is_in(mark) for item in reached)
    ):
        return True
    return over_itself(fn, target)


def _note_key(
    fn: FunctionState,
    state: State,
    spot: Spot,
    value: V,
    target: ir.Subscript,
    growing: tuple[LoopState, ...],
    parts: dict[str, V],
    keyed: tuple[str, str] | None = None,
) -> None:
    """Record that the value is retained under a new key."""
    statement = fn.statement
    shown = text(statement.value) if isinstance(statement, ir.Assign) else text(target)
    made = note_store(fn, state, "key", spot, value, current_position(fn), shown, parts=parts, growing=growing)
    if made is not None:
        made.keyed = keyed


def _write_slice(fn: FunctionState, state: State, base: V, value: V, target: ir.Subscript) -> None:
    """``tensor[i] = value`` adds the value's graph to the tensor's."""
    name = target.value.id if isinstance(target.value, ir.Name) else ""
    if value.src and name in state.env:
        old = state.env[name]
        state.env[name] = old.but(src=old.src | value.src, bare=old.bare or not old.src)
        carry.note_part_written(fn, state, name, value, target)
    if value.src and name and name not in state.env:
        path = Path(f"g:{fn.module.key}:{name}")
        if path in state.sym:
            state.sym[path] = state.sym[path].but(src=state.sym[path].src | value.src, bare=True)
    else:
        write_into_view(fn, state, target.value, base, value)


def delete(fn: FunctionState, state: State, statement: ir.Delete) -> State:
    """The state after ``del``: the deleted variables and members are released."""
    names = {target.id for target in statement.targets if isinstance(target, ir.Name)}
    fn.notes.dropped[statement.at] = {
        name: value for name, value in state.env.items() if name in names or (value.src and not value.bare)
    }
    for target in statement.targets:
        if isinstance(target, ir.Name):
            old = state.env.pop(target.id, None)
            if old is not None and old.objs:
                release(fn, state, old.objs)
        elif isinstance(target, ir.Subscript):
            base = fn.interpreter.evaluate(fn, state, target.value)
            if isinstance(target.index, ir.Slice):
                empty(fn, state, base)
            else:
                drop_stores(fn, state, base.objs | base.syms)
        elif isinstance(target, ir.Attr):
            base = fn.interpreter.evaluate(fn, state, target.value)
            write_attribute(fn, state, base, target.name, NONE_VALUE)
    return state


def assign_attribute(
    fn: FunctionState, state: State, call: ir.Call, owner: tuple[ir.Expr, V], name: str, given: tuple[ir.Expr, V]
) -> None:
    """Write the attribute ``owner.name``, and record the carry if the value is computed from the old one. ``owner``,
    ``given``: the expressions and their values."""
    place, base = owner
    if isinstance(place, ir.Name | ir.Attr):
        target = ir.Attr(call.at, place, name)
        carry.note_assigned(fn, state, ir.Assign(call.at, (target,), given[0]), target, given[1])
    write_attribute(fn, state, base, name, given[1])
