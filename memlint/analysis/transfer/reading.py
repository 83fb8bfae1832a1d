"""Reading attributes of modules, classes, instances and tensors."""

from __future__ import annotations

from memlint.analysis.domain.extents.extents import swapped
from memlint.analysis.domain.parts_taken import sized
from memlint.analysis.domain.state import State, untouched
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import asks_for_count, cut
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NOTHING,
    OPTIMIZER,
    OWN_DEVICE,
    SCALAR,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Ref,
    Sources,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.index.program import Class, Function
from memlint.analysis.transfer.handed_on import part_of_callable, with_holder, without_holder
from memlint.analysis.transfer.heap import MAX_CHAIN, PLAIN, current_position, derive, members
from memlint.analysis.transfer.modules.touched_parameters import note_gradient_read
from memlint.analysis.transfer.scope import symbolic
from memlint.analysis.transfer.stores.class_places import class_of, class_places, read_made, shared_place
from memlint.analysis.transfer.user_containers import looks_up_members
from memlint.knowledge import network_parts
from memlint.patterns import lazy_pattern

_PACKS = lazy_pattern(r"\b(pack_padded_sequence|pack_sequence)\(")


#: methods of a dict, which an attribute of that name means even where a key has the name
_OF_DICTS = frozenset({"items", "values", "keys", "get", "pop", "update", "copy", "clear", "setdefault", "popitem"})


def read_attribute(fn: FunctionState, state: State, base: V, name: str) -> V:
    """The value of ``base.name``; of a method, a bound reference."""
    if name in ("grad", "absgrad"):
        note_gradient_read(fn, base)
    if name == "data" and base.kinds & UNKNOWN and not base.kinds & INSTANCE and not base.resolved():
        fn.used |= base.src
        return V(UNKNOWN, size=base.size, device=base.device, store=base.store)
    plain = name in ("shape", "device", "dtype", "ndim", "requires_grad", "is_cuda")
    if plain and base.kinds & UNKNOWN and not base.resolved() and not base.objs:
        return DATA_VALUE
    found = _of_references(fn, state, base, name, _of_objects(fn, state, base, name))
    if found.refs and found.kinds & CALLABLE:
        place = next(iter(ordered(base.syms)), None)
        found = with_holder(found, place.then("." + name)) if place is not None else without_holder(found)
    if found.kinds & ~UNKNOWN and not found.kinds & ~CALLABLE and found.refs:
        return found
    if base.kinds & CALLABLE and (part := part_of_callable(fn, state, base, name)).kinds:
        return part
    if name == "__class__" and (made := class_of(base)) is not None:
        return made
    shared = class_places(fn.analyser, base, name) or _shared_places(fn, base, name, found)
    if shared:
        return join_all(_at_place(state, found, path) for path in ordered(shared))
    if name == "device" and base.is_only(MODULE | INSTANCE) and base.kinds & MODULE and _is_own_device(fn, base):
        return V(DATA, size=SCALAR, device=base.device, refs=frozenset((OWN_DEVICE,)))
    if name == "module" and base.kinds & MODULE and not found.kinds and not base.resolved():
        return base  # the module that DataParallel wraps
    if name == "_modules" and base.is_only(MODULE | INSTANCE) and base.kinds & MODULE and not found.kinds:
        return V(MODULE)  # the submodules by name; a loop over them is one over ``children()``
    made_here = read_made(fn, state, base, name, found)
    if made_here is not None:
        return made_here
    found = _at_places(state, base, name, found)
    if base.kinds & TENSORS and not found.kinds:
        packed = name == "data" and _is_packed(fn, base)
        if name == "data" and not packed:
            fn.used |= base.src
        found = base if packed else _tensor_attribute(base, name)
    if base.kinds & MODULE and base.store and not base.syms and not (found.store or found.syms):
        found = _part_of_made(base, name, found)
    if base.kinds & UNKNOWN and not base.syms and not found.kinds:
        plain = plain or asks_for_count(name)
        found = V(DATA, size=SCALAR) if plain else derive(fn, base, "." + name)
    return found if found.kinds else UNKNOWN_VALUE


def _of_objects(fn: FunctionState, state: State, base: V, name: str) -> V:
    """The join of what the heap objects of a value have under a name, as an attribute or by their class."""
    found, analyser = NOTHING, fn.analyser
    for key, obj in state.objects(base):
        if obj.kind != "instance" and obj.cls is None and name not in obj.fields:
            continue  # only a named tuple or a namespace has its members as attributes
        if obj.kind == "dict" and name in _OF_DICTS and not (obj.cls and analyser.program.method(obj.cls, name)):
            continue
        if name in obj.fields:
            found = join(found, obj.fields[name])
        elif obj.cls is not None:
            own = V(
                base.kinds & (INSTANCE | CONTAINER), objs=frozenset((key,)), refs=base.refs, syms=_unknown_members(base)
            )
            member = _class_member(fn, state, obj.cls, name, own)
            if obj.kind != "instance" and not member.resolved() and looks_up_members(analyser.program, obj.cls):
                # the class looks attributes up among the members: ``__getattr__ = dict.__getitem__``
                member = join(member, members(obj))
            found = join(found, member)
    return found


def _of_references(fn: FunctionState, state: State, base: V, name: str, found: V) -> V:
    """``found`` joined with what the modules, classes and instances that a value refers to have under a name."""
    analyser = fn.analyser
    for ref in ordered(base.refs) if base.refs else ():
        if ref.kind == "ext":
            found = join(found, analyser.external(f"{ref.name}.{name}"))
        elif ref.kind == "foreign" and ref.name.startswith("torchvision.models.") and name in network_parts():
            found = join(found, V(MODULE))
        elif ref.kind in ("module", "package"):
            what = ref.key if ref.kind == "module" else ref.name
            member = analyser.program.member(fn.module, ref.kind, what, name)
            found = join(found, analyser.global_value(*member))
        elif ref.kind == "class" or (ref.kind == "instance" and not base.objs):
            cls = analyser.cls(ref)
            if cls is not None:
                found = join(found, _class_member(fn, state, cls, name, base if ref.kind == "instance" else None))
    return found


def _at_places(state: State, base: V, name: str, found: V) -> V:
    """``found`` joined with what is stored in the attribute at the symbolic places of the value, or with that
    attribute's own symbol."""
    for path in ordered(base.syms) if base.syms else ():
        inner = path.then("." + name)
        if len(path.steps) >= MAX_CHAIN:
            found = join(found, UNKNOWN_VALUE)
        elif inner in state.sym:
            stored = state.sym[inner]
            found = stored if len(base.syms) == 1 else join(found, stored)
        elif found.kinds == 0 or not _self_contained(found):
            place = frozenset((inner,))
            kinds = found.kinds or UNKNOWN
            found = (
                found.but(kinds=kinds, src=found.src | place, syms=found.syms | place)
                if found.kinds
                else V(UNKNOWN, place, syms=place)
            )
        else:
            found = found.but(syms=found.syms | {inner})
    return found


def _part_of_made(base: V, name: str, found: V) -> V:
    """The submodule ``name`` of a module that was made here, marked as a part of that module."""
    parts = frozenset(
        ("part", item, name)
        for item in base.store
        if not isinstance(item, tuple) or item[0] != "part" or len(repr(item)) < 120
    )
    if not found.kinds:
        found = V(UNKNOWN, store=parts)
    elif found.kinds & MODULE:
        found = found.but(store=parts)
    return found


def _unknown_members(base: V) -> Sources:
    """The symbols of the unknown members of a container, beside one that is known: ``if k not in meters: meters[k] =
    Meter()``."""
    if not base.syms or not base.kinds & UNKNOWN or len(base.objs) != 1:
        return EMPTY
    return frozenset(path for path in base.syms if path.steps and path.steps[-1].startswith("["))


def _shared_places(fn: FunctionState, base: V, name: str, found: V) -> Sources:
    """The class attributes that hold the containers which an instance finds under a name; empty where one of its
    classes has none."""
    if not found.is_only(CONTAINER) or found.syms or found.objs or not found.kinds:
        return EMPTY
    classes = [fn.analyser.cls(ref) for ref in base.refs if ref.kind == "instance"]
    places = [shared_place(fn.analyser, cls, name) for cls in classes if cls is not None]
    return frozenset(path for path in places if path is not None) if None not in places else EMPTY


def _at_place(state: State, found: V, path: Path) -> V:
    """What an attribute of a class holds now. ``found``: its value by the statements of the class body."""
    return state.sym[path] if path in state.sym else symbolic(found, path) if found.kinds else untouched(path)


def _is_own_device(fn: FunctionState, base: V) -> bool:
    """Whether ``device`` of a module is the module's device: a property of its class or of a framework, not an
    attribute that the program sets."""
    for ref in base.refs:
        cls = fn.analyser.cls(ref) if ref.kind == "instance" else None
        if cls is None:
            return False
        method = fn.analyser.program.method(cls, "device")
        if method is None and fn.analyser.attribute(cls, "device").kinds:
            return False
    return bool(base.refs)


def _is_packed(fn: FunctionState, base: V) -> bool:
    """Whether a value is a PackedSequence, whose ``data`` is the tensor with its graph."""
    nodes = fn.graphs.nodes
    return bool(base.kinds & TREE) and any(key in nodes and _PACKS.search(nodes[key].what) for key in base.src)


def _self_contained(value: V) -> bool:
    """Whether a value is a module, loader or the like, which has no graph of its own."""
    return not value.kinds & ~(MODULE | OPTIMIZER | LOADER | INSTANCE | CALLABLE | NONE | CONTAINER)


def _tensor_attribute(base: V, name: str) -> V:
    """The value of an attribute of a tensor."""
    if name == "data":
        return cut(base)
    if name in ("grad", "absgrad", "main_grad", "grad_sample"):
        return V(TENSOR, size=base.size, device=base.device)
    if name == "device":
        return V(DATA, size=SCALAR, device=base.device)
    if name in PLAIN:
        return DATA_VALUE
    if name in ("T", "mT", "H", "mH"):
        return base.but(extent=swapped(base.extent, 0 if name == "T" else -2, -1))
    if name in ("real", "imag"):
        return base
    if base.kinds & TREE:
        return DATA_VALUE if asks_for_count(name) else sized(base, name)
    return V(UNKNOWN, EMPTY)


#: bases of an enumeration whose members equal nothing but themselves
_OF_MEMBERS = frozenset({"enum.Enum", "object", "?.object"})


#: methods of classes by which libraries make a module from a file
_LOADING = frozenset({"from_pretrained", "load_from_checkpoint", "from_config", "from_single_file"})


def _class_member(fn: FunctionState, state: State, cls: Class, name: str, receiver: V | None) -> V:
    """A method, property or attribute of a class, or of an instance of it where ``receiver`` is that instance."""
    analyser = fn.analyser
    method: Function | None = analyser.program.method(cls, name)
    if method is not None:
        if receiver is not None and method.is_property:
            if fn.applying:  # the summary that is being instantiated has run the property already
                return NOTHING
            return fn.interpreter.call_function(fn, state, method, [receiver], {}, current_position(fn), None)
        of_class = "classmethod" in method.decorator_names
        ref = _of_class(method, cls) if of_class else Ref("func", method.module.key, method.qual, receiver)
        return V(CALLABLE, refs=frozenset((ref,)))
    if receiver is None:
        order, outside = analyser.program.ancestors(cls)
        if name == "apply" and any(base.startswith("torch.autograd.") for base in outside):
            return V(CALLABLE, refs=frozenset((Ref("ext", "", "torch.autograd.Function.apply"),)))
        for item in order:
            if name in item.inner:
                inner = item.inner[name]
                return V(CALLABLE, refs=frozenset((Ref("class", inner.module.key, inner.qual),)))
            if name in item.attributes:
                # a member of an enumeration is a constant of its own; one that is also a ``str`` or ``int`` equals its
                # value
                if "enum.Enum" in outside and outside <= _OF_MEMBERS:
                    return V(DATA, size=SCALAR, const=f"{item.qual}.{name}")
                return analyser.evaluate_constant(item.module, item.attributes[name])
        if (
            name in _LOADING
            and analyser.program.is_module(cls)
            and any(not one.startswith("torch.") for one in outside)
        ):
            return V(CALLABLE, refs=frozenset((Ref("loads", cls.module.key, cls.qual),)))
        return _of_subclass(fn, cls, name)
    fact: V = analyser.attribute(cls, name)
    if not fact.kinds and not name.startswith(("set_", "_set_")):
        # a base class may use a method that only its subclasses define
        below = analyser.program.overrides(cls, name)
        if below:
            return V(CALLABLE, refs=frozenset(Ref("func", one.module.key, one.qual, receiver) for one in below))
    if fact.kinds & (TENSORS | UNKNOWN) and name in analyser.facts.attributes.parameters(cls):
        at = current_position(fn)
        src = fn.record(state, (at, "parameter", name), at, name, EMPTY, definite=True, leaf=True)
        fact = fact.but(kinds=fact.kinds & ~UNKNOWN | TENSOR, src=fact.src | src)
    return fact


def _of_subclass(fn: FunctionState, cls: Class, name: str) -> V:
    """The class method that one subclass alone defines: a base class may call it on ``cls``. Empty if there is none, or
    if several do: which of them runs depends on the class that the caller names."""
    below = fn.analyser.program.overrides(cls, name)
    if len(below) != 1 or below[0].cls is None or "classmethod" not in below[0].decorator_names:
        return NOTHING
    return V(CALLABLE, refs=frozenset((_of_class(below[0], below[0].cls),)))


def _of_class(method: Function, cls: Class) -> Ref:
    """A class method, bound to a class."""
    own = V(CALLABLE, refs=frozenset((Ref("class", cls.module.key, cls.qual),)))
    return Ref("func", method.module.key, method.qual, own)
