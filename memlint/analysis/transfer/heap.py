"""Abstract objects: making containers, and reading members and symbolic places."""

from __future__ import annotations

from memlint.analysis.domain.graphs import EACH, Node
from memlint.analysis.domain.parts_taken import held_member, placed, sized
from memlint.analysis.domain.periods import resets_soon
from memlint.analysis.domain.state import Obj, State, untouched
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import batch_tree, names_count, names_labels
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    LOADER,
    MODULE,
    NOTHING,
    SCALAR,
    SOME_SIZE,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Source,
    V,
    join,
    join_all,
    ordered,
)
from memlint.analysis.transfer.library import extent_ops
from memlint.analysis.transfer.modules.modes import member, parts_of
from memlint.ir import nodes as ir

#: most members of a container of modules whose classes are passed to another function's summary
MAX_MEMBERS = 16
#: most nested parts of an unknown value that have a graph source of their own
MAX_STEPS = 4
#: longest chain of attributes with symbols of their own; a longer one runs through a linked structure
MAX_CHAIN = 8
#: attributes of a tensor that hold no graph
PLAIN = frozenset({
    "shape", "device", "dtype", "grad", "ndim", "is_leaf", "requires_grad", "is_cuda", "layout", "itemsize", "nbytes",
    "grad_fn", "version", "name",
})  # fmt: skip


def make(
    fn: FunctionState,
    state: State,
    key: Source,
    kind: str,
    elem: V,
    fields: dict[str, V] | None = None,
    *,
    bounded: bool = False,
    shown: str = "",
) -> V:
    """The value of a new container in the heap under ``key``. ``elem``: the join of its members of unknown position
    or key; ``fields``: the others."""
    state.heap[key] = Obj(kind, elem, fields, fn.loop_ids, bounded, text=shown)
    state.fresh |= {key}
    if resets_soon(fn):
        fn.made_soon.add(key)
    return V(CONTAINER, objs=frozenset((key,)))


def stream_of(key: tuple[Source, ...]) -> Source:
    """The heap key of the stream of values that a generator yields. It does not hold them: each is consumed."""
    return (*key, "yields")


def is_stream(key: Source) -> bool:
    """Whether an object is a generator's stream, which each of its consumers starts anew."""
    return isinstance(key, tuple) and key[-1:] == ("yields",)


def tuple_of(fn: FunctionState, state: State, at: int, values: list[V]) -> V:
    """The tuple of one round over ``zip``, ``enumerate`` or ``items()``."""
    return make(fn, state, (at, "pair"), "tuple", NOTHING, {str(i): value for i, value in enumerate(values)})


def members(obj: Obj) -> V:
    """The join of all members of an object."""
    return join_all(obj.members) if obj.fields else obj.elem


def element(fn: FunctionState, state: State, value: V) -> V:
    """The value of the loop variable in an iteration over ``value``: the join over all rounds."""
    found = NOTHING
    for key, obj in state.objects(value):
        if obj.kind == "dict":
            found = join(found, DATA_VALUE)
        elif obj.kind == "instance":
            found = join(found, UNKNOWN_VALUE)
        else:
            found = join(found, marked(members(obj), key))
    return _inside(fn, state, value, found, "[]")


def elements_of(fn: FunctionState, state: State, value: V) -> V:
    """The join of all members of a container; of a dict, of its values."""
    found = NOTHING
    for key, obj in state.objects(value):
        if obj.kind != "instance":
            found = join(found, marked(members(obj), key))
    return _inside(fn, state, value, found, "[]")


def marked(value: V, key: Source) -> V:
    """A member of a container, with the container's mark among its graph sources."""
    return value.marked(("elem", key)) if value.src else value


def _inside(fn: FunctionState, state: State, value: V, found: V, step: str) -> V:
    """``found``, the members of the heap objects, joined with the members that the value has by its kind or its
    symbols."""
    if value.kinds & CONTAINER and value.is_plain():
        return DATA_VALUE
    if value.kinds & LOADER:
        found = join(found, batch_tree(value.device).but(extent=value.extent))
    if value.kinds & TENSORS:
        value = part_of_output(fn, value, step)
        found = join(found, _tensors(value))
    if value.kinds & MODULE:
        found = join(found, member(fn, state, value))
    if value.kinds & DATA:
        found = join(found, DATA_VALUE)
    for path in ordered(value.syms):
        if symbol_counts(state, value, path.then(step)):
            item = placed(read_symbol(state, path.then(step)), value.device)
            found = join(found, held_member(item, value, None))
        if step == "[]":
            found = join(found, stored_by_key(state, path))
    if value.kinds & UNKNOWN and not value.syms:
        found = join(found, derive(fn, value, step))
    if found.kinds == 0 and not value.objs:
        return UNKNOWN_VALUE
    return found


def _tensors(value: V) -> V:
    """The tensors that a value may be."""
    return value.but(kinds=value.kinds & TENSORS, objs=EMPTY, refs=EMPTY, syms=EMPTY, const=None)


def read_symbol(state: State, path: Path) -> V:
    """The value of a symbolic place in this state; the symbol itself where nothing was written there."""
    if path in state.sym:
        return state.sym[path]
    if len(path.steps) > MAX_STEPS:
        return UNKNOWN_VALUE
    return untouched(path)


def stored_by_key(state: State, path: Path) -> V:
    """The join of what this function has stored in a symbolic container under literal keys."""
    count = len(path.steps) + 1
    return join_all(
        value
        for place, value in state.sym.items()
        if len(place.steps) == count
        and place.root == path.root
        and place.steps[-1][:1] == "["
        and place.steps[-1] != "[]"
        and place.steps[:-1] == path.steps
    )


def derive(fn: FunctionState, value: V, step: str) -> V:
    """A part of an unknown value. Whether the part has a graph is unknown too, and gets a graph node of its own."""
    if not value.src:
        return UNKNOWN_VALUE
    sources = set()
    for source in ordered(value.src):
        node = fn.graphs.nodes.get(source)
        if node is None or not node.unknown:
            sources.add(source)
            continue
        deep = 2 if isinstance(source, int) else len(source) + 1
        sources.add(_part_of(fn, source, step, node.callee) if deep <= MAX_STEPS else source)
    return V(UNKNOWN, frozenset(sources), size=SOME_SIZE, device=value.device)


def _part_of(fn: FunctionState, source: Source, step: str, callee: Path | None = None) -> Source:
    """The unknown graph node of a part of an operation's result."""
    key: Source = (source, step) if isinstance(source, int) else (*source, step)
    if key not in fn.graphs.nodes:
        whole, parents = fn.graphs.nodes[source], frozenset((source,))
        part = Node(whole.at, whole.what, unknown=True, ambient=whole.ambient, parents=parents, callee=callee)
        fn.graphs.record(key, part)
    return key


def part_of_output(fn: FunctionState, value: V, step: str, *, unpacked: bool = False) -> V:
    """A part of a model's output that cannot be followed: the first part is taken for the output, another part may
    be anything and gets an unknown node. ``unpacked``: the same holds for the result of a loss, whose other parts
    may be numbers to show."""
    if not (value.kinds & TREE or unpacked) or step in ("[]", "[0]"):
        return value
    sources: set[Source] = set()
    for source in ordered(value.src):
        node = fn.graphs.nodes.get(source)
        if node is None or not ((node.opaque and value.kinds & TREE) or (node.guess and unpacked)):
            sources.add(source)
        else:
            sources.add(_part_of(fn, source, step))
    return value.but(src=frozenset(sources))


def member_of_output(fn: FunctionState, value: V, name: str | None, *, unpacked: bool = False) -> V:
    """As `part_of_output`, of a member by its key; those that are called like the output are taken for it."""
    step = f"[{name}]" if name not in (None, "-1", "loss", "logits", "out", "output") else "[]"
    return part_of_output(fn, value, step, unpacked=unpacked)


def each_part(fn: FunctionState, value: V) -> frozenset[Source]:
    """The sources of each member of a value, as one; those of an unresolved model's output are its parts."""
    nodes = fn.graphs.nodes
    opaque = {source for source in value.src if source in nodes and nodes[source].opaque and value.kinds & TREE}
    return (value.src - opaque) | {_part_of(fn, source, EACH) for source in ordered(frozenset(opaque))}


def part_of_bundle(bundle: V, position: int) -> V:
    """A part of ``model, decoder, utils = torch.hub.load(…)``: only the first part is known to be a module."""
    return bundle if position == 0 else V(UNKNOWN | CALLABLE)


def note_compared(fn: FunctionState, value: V, shown: str) -> None:
    """Note that a loss of torch compares a value with a target. A part beside a model's output is then another
    output: targets, counts and numbers for a log are not compared in a loss."""
    if names_labels(shown.rsplit(".", 1)[-1]):
        return
    for source in ordered(value.src):
        node = fn.graphs.nodes.get(source)
        if node is None or not fn.graphs.beside(source):
            continue
        wholes = [whole for item in node.parents if (whole := fn.graphs.nodes.get(item)) is not None]
        if any(whole.definite and whole.opaque for whole in wholes):
            fn.graphs.mark_output(source)


def read_item(fn: FunctionState, state: State, base: V, index: V, expr: ir.Subscript) -> V:
    """The value of ``base[index]``."""
    found = NOTHING
    name = None if index.const is None or isinstance(index.const, bool) else str(index.const)
    for key, obj in state.objects(base):
        at = name
        if isinstance(index.const, int) and index.const < 0 and not obj.elem.kinds and obj.kind in ("tuple", "list"):
            at = str(len(obj.ordered) + index.const)
        if at is not None and at in obj.fields:
            found = join(found, marked(obj.fields[at], key))
        elif obj.kind == "instance":
            found = join(found, UNKNOWN_VALUE)
        elif isinstance(expr.index, ir.Slice):
            found = join(found, _sliced(fn, state, obj, key, expr.index) or base)
        elif name is not None and obj.kind == "dict":
            found = join(found, marked(obj.elem, key))
        else:
            found = join(found, marked(members(obj), key))
    counts = isinstance(index.const, str) and names_count(index.const)
    if counts and (not base.objs or not found.src):
        return DATA_VALUE
    if base.kinds & TENSORS:
        # what is picked by position is no 0-d tensor
        base = member_of_output(fn, base, name, unpacked=base.size == SCALAR and isinstance(index.const, int))
        found = join(found, _tensors(base).but(extent=extent_ops.member(base, expr.index)))
    if base.is_of_library() and isinstance(index.const, int):
        found = join(found, part_of_bundle(base, index.const))
    elif base.kinds & MODULE:
        found = join(found, parts_of(fn, state, base))
    if base.kinds & LOADER:
        found = join(found, UNKNOWN_VALUE)
    if base.kinds & DATA:
        found = join(found, DATA_VALUE)
    step = f"[{name}]" if isinstance(index.const, str) else "[]"
    for path in ordered(base.syms):
        # the arguments that a starred parameter collects are known by position
        part = path.then(f"[{name}]" if name is not None and _is_star(fn, path) else step)
        if symbol_counts(state, base, part):
            item = placed(read_symbol(state, part), base.device)
            found = join(found, held_member(item, base, name))
    if base.kinds & UNKNOWN and not base.syms:
        found = join(found, derive(fn, base, step))
    return sized(found, index.const if isinstance(index.const, str) else "") if found.kinds else UNKNOWN_VALUE


def _is_star(fn: FunctionState, path: Path) -> bool:
    return not path.steps and any(
        param.kind == "star" and path.root == f"p:{param.name}" for param in fn.function.params
    )


def _sliced(fn: FunctionState, state: State, obj: Obj, key: Source, index: ir.Slice) -> V | None:
    """The value of ``xs[1:]`` where the members of ``xs`` are known by position; None where the slice may have any
    of them."""
    lower = index.lower.value if isinstance(index.lower, ir.Const) else None
    if obj.kind not in ("tuple", "list") or not obj.fields or not isinstance(lower, int) or lower <= 0:
        return None
    if index.upper is not None or index.step is not None or any(not name.isdigit() for name in obj.fields):
        return None
    fields = {str(int(name) - lower): marked(item, key) for name, item in obj.fields.items() if int(name) >= lower}
    rest = marked(obj.elem, key)
    return make(fn, state, (index.at, "slice", key), obj.kind, rest, fields)


def symbol_counts(state: State, value: V, part: Path) -> bool:
    """Whether the symbol of a part tells more than the kinds of the whole: a part of a batch is a batch, under any
    name."""
    return not value.is_only(TENSORS | LOADER) or part in state.sym


def current_position(fn: FunctionState) -> int:
    """The position of the current statement; 0 before the first."""
    return fn.statement.at if fn.statement is not None else 0
