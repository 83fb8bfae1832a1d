"""Reading and making objects, attributes and members."""

from __future__ import annotations

from memlint.analysis.domain.graphs import Node
from memlint.analysis.domain.parts_taken import held_member, placed, sized
from memlint.analysis.domain.periods import resets_soon
from memlint.analysis.domain.state import Obj, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import batch_tree, names_count, names_labels
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    LOADER,
    MODULE,
    NOTHING,
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
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.library import extent_ops
from memlint.analysis.transfer.modules.modes import member
from memlint.ir import nodes as ir

#: members of a container of modules whose classes are told to another function
MAX_TOLD = 16
#: nesting of unknown results that is told apart
MAX_STEPS = 4
#: attributes of attributes that are told apart; a chain that grows past this goes round in a linked structure
MAX_CHAIN = 8
#: attributes of a tensor that hold no graph
PLAIN = frozenset(
    {
        "shape",
        "device",
        "dtype",
        "grad",
        "ndim",
        "is_leaf",
        "requires_grad",
        "is_cuda",
        "layout",
        "itemsize",
        "nbytes",
        "grad_fn",
        "version",
        "name",
    }
)


def make(
    frame: FunctionState,
    state: State,
    key: Source,
    kind: str,
    elem: V,
    fields: dict[str, V] | None = None,
    *,
    bounded: bool = False,
    shown: str = "",
) -> V:
    """A new container."""
    state.heap[key] = Obj(kind, elem, fields, frame.loop_ids, bounded, text=shown)
    state.fresh |= {key}
    if resets_soon(frame):
        frame.made_soon.add(key)
    return V(CONTAINER, objs=frozenset((key,)))


def stream_of(key: tuple[Source, ...]) -> Source:
    """The key of what a generator gives, one after the other: it holds none of it."""
    return (*key, "yields")


def is_stream(key: Source) -> bool:
    """Whether an object is what a generator gives, which is made anew in each round of who asks for it."""
    return isinstance(key, tuple) and key[-1:] == ("yields",)


def tuple_of(frame: FunctionState, state: State, at: int, values: list[V]) -> V:
    """One item of ``zip``, ``enumerate`` or ``items()``."""
    return make(frame, state, (at, "pair"), "tuple", NOTHING, {str(i): value for i, value in enumerate(values)})


def members(obj: Obj) -> V:
    return join_all((*obj.fields.values(), obj.elem)) if obj.fields else obj.elem


def element(frame: FunctionState, state: State, value: V, at: int) -> V:
    """The join of what one iteration over ``value`` gives."""
    found = NOTHING
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is None:
            continue
        if obj.kind == "dict":
            found = join(found, DATA_VALUE)
        elif obj.kind == "instance":
            found = join(found, UNKNOWN_VALUE)
        else:
            found = join(found, marked(members(obj), key))
    return _inside(frame, state, value, found, "[]")


def elements_of(frame: FunctionState, state: State, value: V) -> V:
    """The join of all members of a container (the values of a dict)."""
    found = NOTHING
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is not None and obj.kind != "instance":
            found = join(found, marked(members(obj), key))
    return _inside(frame, state, value, found, "[]")


def marked(value: V, key: Source) -> V:
    """A member of a container, with the container's mark among its sources."""
    return value.marked(("elem", key)) if value.src else value


def _inside(frame: FunctionState, state: State, value: V, found: V, step: str) -> V:
    if value.kinds & CONTAINER and value.is_plain():
        return DATA_VALUE
    if value.kinds & LOADER:
        found = join(found, batch_tree(value.device).but(extent=value.extent))
    if value.kinds & TENSORS:
        value = part_of_output(frame, value, step)
        found = join(
            found,
            V(
                value.kinds & TENSORS,
                value.src,
                bare=value.bare,
                size=value.size,
                device=value.device,
                store=value.store,
                extent=value.extent,
            ),
        )
    if value.kinds & MODULE:
        found = join(found, member(frame, state, value))
    if value.kinds & DATA:
        found = join(found, DATA_VALUE)
    for path in ordered(value.syms):
        if symbol_counts(state, value, path.then(step)):
            item = placed(read_symbol(frame, state, path.then(step)), value.device)
            found = join(found, held_member(item, value, None))
        if step == "[]":
            found = join(found, stored_by_key(state, path))
    if value.kinds & UNKNOWN and not value.syms:
        found = join(found, derive(frame, value, step))
    if found.kinds == 0 and not value.objs:
        return UNKNOWN_VALUE
    return found


def read_symbol(summary: Summary, state: State, path: Path) -> V:
    """The value of a symbolic place in this state."""
    if path in state.sym:
        return state.sym[path]
    if len(path.steps) > MAX_STEPS:
        return UNKNOWN_VALUE
    return V(UNKNOWN, frozenset((path,)), syms=frozenset((path,)))


def stored_by_key(state: State, path: Path) -> V:
    """What this function has stored in a symbolic container under keys that are written there."""
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


def derive(frame: FunctionState, value: V, step: str) -> V:
    """A part of an unknown value: whether it has a graph is unknown as well, and a question of its own."""
    if not value.src:
        return UNKNOWN_VALUE
    sources = set()
    for source in ordered(value.src):
        node = frame.graphs.nodes.get(source)
        if node is None or not node.unknown:
            sources.add(source)
            continue
        key = (source, step) if isinstance(source, int) else (*source, step)
        if len(key) > MAX_STEPS:
            sources.add(source)
            continue
        if key not in frame.graphs.nodes:
            callee = node.callee
            frame.graphs.record(
                key,
                Node(
                    node.at, node.what, unknown=True, ambient=node.ambient, parents=frozenset((source,)), callee=callee
                ),
            )
        sources.add(key)
    return V(UNKNOWN, frozenset(sources), size=SOME_SIZE, device=value.device)


def part_of_output(frame: FunctionState, value: V, step: str, *, unpacked: bool = False) -> V:
    """A part of what a model returned that cannot be followed: the first is its output, another may be anything.
    So it is with a loss that is ``unpacked``: what comes beside it may well be numbers to show."""
    if not (value.kinds & TREE or unpacked) or step in ("[]", "[0]"):
        return value
    sources: set[Source] = set()
    for source in ordered(value.src):
        node = frame.graphs.nodes.get(source)
        if node is None or not ((node.opaque and value.kinds & TREE) or (node.guess and unpacked)):
            sources.add(source)
            continue
        key = (source, step) if isinstance(source, int) else (*source, step)
        if key not in frame.graphs.nodes:
            frame.graphs.record(
                key, Node(node.at, node.what, unknown=True, ambient=node.ambient, parents=frozenset((source,)))
            )
        sources.add(key)
    return value.but(src=frozenset(sources))


def part_of_bundle(bundle: V, position: int) -> V:
    """``model, decoder, utils = torch.hub.load(…)``: what a library gives for a model is one with what belongs to it,
    and only the first part is known to be a module."""
    return bundle if position == 0 else V(UNKNOWN | CALLABLE)


def compared(frame: FunctionState, value: V, shown: str) -> None:
    """A loss of torch compares a value with a target: what comes beside a model's output is then another output, since
    targets, counts and numbers to show are nothing that a loss is taken of."""
    if names_labels(shown.rsplit(".", 1)[-1]):
        return
    for source in ordered(value.src):
        node = frame.graphs.nodes.get(source)
        if node is None or not frame.graphs.beside(source):
            continue
        wholes = [whole for item in node.parents if (whole := frame.graphs.nodes.get(item)) is not None]
        if any(whole.definite and whole.opaque for whole in wholes):
            frame.graphs.mark_output(source)


def read_item(frame: FunctionState, state: State, base: V, index: V, expr: ir.Subscript) -> V:
    """``base[index]``"""
    found = NOTHING
    name = None if index.const is None or isinstance(index.const, bool) else str(index.const)
    for key in ordered(base.objs):
        obj = state.heap.get(key)
        if obj is None:
            continue
        at = name
        if isinstance(index.const, int) and index.const < 0 and not obj.elem.kinds and obj.kind in ("tuple", "list"):
            at = str(len(obj.ordered) + index.const)
        if at is not None and at in obj.fields:
            found = join(found, marked(obj.fields[at], key))
        elif obj.kind == "instance":
            found = join(found, UNKNOWN_VALUE)
        elif isinstance(expr.index, ir.Slice):
            found = join(found, _sliced(frame, state, obj, key, expr.index) or base)
        elif name is not None and obj.kind == "dict":
            found = join(found, marked(obj.elem, key))
        else:
            found = join(found, marked(members(obj), key))
    counts = isinstance(index.const, str) and names_count(index.const)
    if counts and (not base.objs or not found.src):
        return DATA_VALUE
    if base.kinds & TENSORS:
        base = part_of_output(
            frame, base, f"[{name}]" if name not in (None, "-1", "loss", "logits", "out", "output") else "[]"
        )
        found = join(
            found,
            V(
                base.kinds & TENSORS,
                base.src,
                bare=base.bare,
                size=base.size,
                device=base.device,
                store=base.store,
                extent=extent_ops.member(base, expr.index),
            ),
        )
    if base.is_of_library() and isinstance(index.const, int):
        found = join(found, part_of_bundle(base, index.const))
    elif base.kinds & MODULE:
        found = join(found, member(frame, state, base))
    if base.kinds & LOADER:
        found = join(found, UNKNOWN_VALUE)
    if base.kinds & DATA:
        found = join(found, DATA_VALUE)
    step = f"[{name}]" if isinstance(index.const, str) else "[]"
    for path in ordered(base.syms):
        # what a starred parameter collects is told apart by position
        part = path.then(f"[{name}]" if name is not None and _is_star(frame, path) else step)
        if symbol_counts(state, base, part):
            item = placed(read_symbol(frame, state, part), base.device)
            found = join(found, held_member(item, base, name))
    if base.kinds & UNKNOWN and not base.syms:
        found = join(found, derive(frame, base, step))
    return sized(found, index.const if isinstance(index.const, str) else "") if found.kinds else UNKNOWN_VALUE


def _is_star(frame: FunctionState, path: Path) -> bool:
    return not path.steps and any(
        param.kind == "star" and path.root == f"p:{param.name}" for param in frame.function.params
    )


def _sliced(frame: FunctionState, state: State, obj: Obj, key: Source, index: ir.Slice) -> V | None:
    """``xs[1:]`` of what is told apart by position: without the first ones. None where it may be any part."""
    lower = index.lower.value if isinstance(index.lower, ir.Const) else None
    if obj.kind not in ("tuple", "list") or not obj.fields or not isinstance(lower, int) or lower <= 0:
        return None
    if index.upper is not None or index.step is not None or any(not name.isdigit() for name in obj.fields):
        return None
    fields = {str(int(name) - lower): marked(item, key) for name, item in obj.fields.items() if int(name) >= lower}
    rest = marked(obj.elem, key)
    return make(frame, state, (index.at, "slice", key), obj.kind, rest, fields)


def symbol_counts(state: State, value: V, part: Path) -> bool:
    """Whether the part of a symbol tells more than its kind: a batch's parts are batches, whatever it is called."""
    return not value.is_only(TENSORS | LOADER) or part in state.sym


def frame_at(frame: FunctionState) -> int:
    return frame.statement.at if frame.statement is not None else 0


def shown(expr: ir.Expr | None) -> str:
    return text(expr)
