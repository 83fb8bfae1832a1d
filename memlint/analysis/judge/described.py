"""Descriptions of stored values for events: autograd graph, graph lifetime, device and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.calls.lifted_stores import takes_activations
from memlint.analysis.demand.graph_origins import is_frozen_run
from memlint.analysis.domain.devices import is_of_cuda
from memlint.analysis.domain.events import SIZES, Device, Fact, Size, Step, Value
from memlint.analysis.domain.extents.by_name import PICTURE, is_of_rows, named_by, of_name
from memlint.analysis.domain.extents.extents import NO_BOUND, Weight
from memlint.analysis.domain.graphs import part_of
from memlint.analysis.domain.state import AMBIENT, OFF, ON
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import names_labels, names_number, on_accelerator
from memlint.analysis.domain.values import (
    ACTIVATION,
    BATCH,
    CPU,
    DATA,
    NONE,
    OUTPUT,
    SAMPLE,
    SCALAR,
    SOME_SIZE,
    TENSORS,
    UNKNOWN,
    Path,
    Source,
    Sources,
    V,
)
from memlint.analysis.facts.repeats import layer_code
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import call_at, calls
from memlint.analysis.transfer.methods_by_name import graph_of_part
from memlint.analysis.transfer.stores.collected import is_moved_later
from memlint.finding import Confidence
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def value_of(analyser: Analyser, summary: Summary, store: Store, value: V) -> Value:
    """The description of a stored value at the end of an iteration. The answer on its graph is "yes", "no", "some" (on
    some paths) or "unknown"."""
    own = {store.place} if isinstance(store.place, Path) else set()
    layered = isinstance(store.place, Path) and takes_activations(analyser, summary)
    sources = frozenset(source for source in value.src if source not in own)
    grad_off = not grad_with_callers(analyser, summary, store.grad) & ON

    def symbol(path: Path) -> bool | None:
        if path in own:
            return False
        return (
            True
            if layered
            and path.root.startswith("p:")
            and path.root != f"p:{self_name(summary.function)}"
            and not names_labels(path.root[2:])
            and not any(step.startswith(".") for step in path.steps)  # an option of a configuration is no activation
            else None
        )

    attached, by_backward = summary.graphs.attached(sources, symbol)
    certainty = _certainty(summary, sources)
    # arguments of a forward may be the model's inputs, without a graph. The values that a layer averages over
    # iterations, and the arguments of a loss, are outputs of a model
    given_outputs = store.how == "average" or _is_loss(summary.function)
    if (
        layered
        and attached == "yes"
        and not given_outputs
        and summary.graphs.attached(sources, lambda path: None)[0] != "yes"
    ):
        certainty = "low"
    if attached == "yes" and ambient_only(summary, sources) and not grad_with_callers(analyser, summary, AMBIENT) & ON:
        attached = "no"
    if attached == "unknown" and _of_runs_without_grad(analyser, summary, sources):
        attached = "no"
    if attached == "yes" and grad_off and store.kind == "carry":
        attached = "no"
    if attached == "unknown" and store.kind == "carry" and store.how == "call" and _state_of_model(summary, sources):
        attached, certainty = "no" if grad_off else "yes", "medium"
    fact: Fact = "some" if attached == "yes" and value.bare and not store.sure_part else attached
    if attached == "no" and value.kinds & UNKNOWN:
        fact = "unknown"
    moved_later = fact == "no" and value.device != CPU and is_moved_later(summary, store)
    device = "accelerator" if moved_later else _device(analyser, summary, store, value, fact)
    return Value(
        attached=fact,
        freed=_freed(analyser, summary, store, sources),
        device=device,
        size=_size(summary, store, value, fact),
        text=store.text,
        certainty=certainty,
        origin=_origin(summary, sources, attached),
        by_backward=by_backward,
        moved_later=moved_later,
        several=bool(store.parts) or store.sure_part,
        weight=weight_of(summary, store, value),
        moved=fact in ("yes", "some") and device == "cpu" and _is_recorded_elsewhere(summary, value),
    )


def _freed(analyser: Analyser, summary: Summary, store: Store, sources: Sources) -> Fact:
    """Whether a backward has freed the graph by the end of the iteration. For layer code, the training code that calls
    it is taken to run a backward through its output."""
    if store.freed not in (None, "no") or store.loop is not None or not layer_code(analyser, summary.function):
        return store.freed or "no"
    return "yes" if store.kind == "retain" or (store.how != "call" and _is_shared(summary, sources)) else "no"


def _is_loss(function: Function) -> bool:
    return function.cls is not None and function.cls.node.name.lower().endswith(("loss", "criterion"))


def grad_with_callers(analyser: Analyser, summary: Summary, grad: int) -> int:
    """A set of grad modes in which the callers' modes replace AMBIENT."""
    if not grad & AMBIENT:
        return grad
    if summary.hook is not None and summary.hook.grad == "ambient" and not summary.hook.own:
        return grad & (ON | OFF) | ON
    return grad & (ON | OFF) | analyser.facts.modes.of(summary.function)


def ambient_only(summary: Summary, sources: frozenset[Source]) -> bool:
    """Whether the callers' grad mode decides whether there is a graph: all operations that record one, or those that
    made the value itself, ran under it."""
    tips = [summary.graphs.nodes.get(item) for item in sources]
    if tips and all(tip is not None and tip.ambient for tip in tips):
        return True
    nodes = [node for node in summary.graphs.nodes_of(summary.graphs.closure(sources)) if node.definite]
    return bool(nodes) and all(node.ambient for node in nodes)


def _of_runs_without_grad(analyser: Analyser, summary: Summary, sources: frozenset[Source]) -> bool:
    """Whether only unresolved models made the value, and every caller turns grad mode off."""
    nodes = [summary.graphs.nodes.get(item) for item in sources]
    off = bool(nodes) and all(node is not None and node.opaque and node.ambient for node in nodes)
    return off and not grad_with_callers(analyser, summary, AMBIENT) & ON


def _device(analyser: Analyser, summary: Summary, store: Store, value: V, fact: Fact) -> Device:
    if fact in ("yes", "some") and _of_parameters(summary, value):
        return "cpu"
    if on_accelerator(value.device):
        return "accelerator"
    if value.device == CPU:
        return "cpu"
    of_model = fact == "no" and value.size == OUTPUT and not value.kinds & UNKNOWN
    if of_model and store.loop is not None and store.loop.loop.over == "loader" and not store.loop.loop.assumed:
        return "likely" if is_of_cuda(analyser) else "unknown"
    return "unknown"


def _is_recorded_elsewhere(summary: Summary, value: V) -> bool:
    """Whether a tensor on the host has a graph of models that are not known to run on the host."""
    reached = summary.graphs.closure(value.src)
    runs = [run.value.device for run in summary.runs.values() if run.node in reached]
    return not _of_parameters(summary, value) and not (runs and all(device == CPU for device in runs))


def _of_parameters(summary: Summary, value: V) -> bool:
    """Whether parameters alone, and no known model call, recorded the graph (the entropy of ``self.log_std``). All that
    is known to grow then are graph nodes, on the host."""
    reached = summary.graphs.closure(value.src)
    nodes = summary.graphs.nodes_of(reached)
    return (
        any(node.definite for node in nodes)
        and not any(node.model or node.unknown or node.guess for node in nodes)
        and not any(is_frozen_run(summary, item) for item in reached)
    )


#: a member of a step's result, which may be text or numbers, and names of members that are large tensors
_MEMBER = lazy_pattern(r"""outputs?\[["'](\w+)["']\]""")
_LARGE = lazy_pattern(r"logit|feat|emb|repr|latent|image|img|recon|mask|hidden|attention|prob|output|y_hat")


def weight_of(summary: Summary, store: Store, value: V) -> Weight:
    """How large one sample of the stored value is. A record counts as its largest part. A part's key is its name; its
    position tells nothing, so that one is named by what the code writes there."""
    compared = compared_with_pictures(summary.function.body)
    if not store.parts:
        return _weight(value, [named_by(store.text), named_by(store.place_text)], compared)
    parts = {name: part for name, part in store.parts.items() if not part.is_only(DATA | NONE)}
    written = _written_members(store.text)
    written = written if len(written) == len(store.parts) else [""] * len(store.parts)
    names = {key: named_by(shown) if key.isdigit() else key for key, shown in zip(store.parts, written, strict=True)}
    weights = {_weight(part, [names[key]], compared) for key, part in parts.items()}
    return "large" if "large" in weights else "small" if weights == {"small"} else "unknown"


def _weight(value: V, names: list[str], compared: frozenset[str]) -> Weight:
    """The weight of a value by its known extent, or else by its name, its place's name or what it is compared with. A
    batch of a loader with no telling name usually holds pictures, unless it is cut from an array. A model's output may
    be of any size."""
    known = value.extent
    if known is not None and (known.weight != "unknown" or known.most < NO_BOUND):
        return known.weight
    named = next((extent for name in names if (extent := of_name(name)) is not None), None)
    if named is not None:
        return named.weight
    if value.size == SCALAR:
        return "small"
    if names[0] in compared:
        return "large"
    if value.size in (BATCH, SAMPLE, SOME_SIZE) and any(names_labels(name.lstrip("_")) for name in names):
        return "small"
    # ``batch[1]`` holds the labels that come with the inputs
    beside = any(is_of_rows(name) or (name.isdigit() and name != "0") for name in names)
    pictured = known is None or bool(known.parts)
    return "large" if value.size == BATCH and pictured and not beside else "unknown"


def _written_members(shown: str) -> list[str]:
    """The texts of the members of a tuple or list that is written out; the text itself for another value."""
    written = shown.startswith(("(", "[")) and shown.endswith((")", "]"))
    return shown[1:-1].split(", ") if written else [shown]


@kept
def compared_with_pictures(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names that a loss or a metric compares with a picture, which makes them pictures as well: ``dice(out,
    mask)``, ``psnr.update(out, image)``."""
    found: set[str] = set()
    for call in calls(body):
        words = text(call.func, 200).split(".")[-2:]
        names = [named_by(text(arg, 200)) for arg in call.args] if any(map(names_number, words)) else []
        if any(of_name(name) == PICTURE for name in names):
            found.update(names)
    return frozenset(found)


def _size(summary: Summary, store: Store, value: V, attached: Fact) -> Size:
    """The size class of a stored value. A model's output counts as a batch, unless a name says that it is a number.
    With a graph its size is unknown, as the graph decides what is kept. A record counts as its largest part."""
    size = value.size
    if attached == "no" and store.parts and SIZES[size] == "unknown":
        sizes = {part.size for part in store.parts.values() if _lies_there(part)}
        size = next((one for one in (ACTIVATION, BATCH, OUTPUT) if one in sizes), size)
    if size != OUTPUT or (attached != "no" and store.kind != "cat"):
        return SIZES[size]
    member = _MEMBER.fullmatch(store.text) if summary.hook is not None and summary.hook.outputs else None
    if member is not None and not _LARGE.search(member[1]):
        return "unknown"
    place = store.place_text.rsplit(".", 1)[-1]  # a metric may keep tensors of any size
    return "unknown" if all(map(names_number, _written_members(store.text))) or names_number(place) else "batch"


def _lies_there(part: V) -> bool:
    """Whether a part of a record is a tensor on an accelerator."""
    return part.may_be(TENSORS) and not part.kinds & (UNKNOWN | DATA) and on_accelerator(part.device)


def _certainty(summary: Summary, sources: frozenset[Source]) -> Confidence:
    """The confidence that the value has a graph: lower if an unresolved loss is only assumed to pass it on and no
    backward proves it."""
    if any(evidence <= sources for evidence in summary.graphs.evidence if evidence):
        return "high"
    guessed = any(node.guess for node in summary.graphs.nodes_of(sources))
    return "medium" if guessed else "high"


def _origin(summary: Summary, sources: frozenset[Source], attached: Fact) -> tuple[Step, ...]:
    """The trace steps to the call that made the value, with its graph if it has one: the model call, through
    callees."""
    best, by_model = None, False
    for item in sorted(summary.graphs.closure(sources), key=repr):
        node = summary.graphs.nodes.get(item)
        runs = node is not None and ((node.definite and node.model) or is_frozen_run(summary, item))
        if node is not None and (runs or node.definite) and (best is None or (runs and not by_model)):
            best, by_model = node, runs
    if best is None:
        return ()
    does = "makes it, without a graph" if attached == "no" else "records the graph"
    steps = [Step(summary.site(best.at), f"`{best.what}` {does}")]
    steps += [Step(site, f"which runs `{what}`") for site, what in best.via]
    return tuple(steps)


def _is_shared(summary: Summary, sources: frozenset[Source]) -> bool:
    """Whether the function's result comes from the same models, or the same inputs, as the given graphs. A backward
    through the result then frees what they saved, and a running average of the result saves next to nothing."""
    models = summary.graphs.models_in(sources)
    paths = {item for item in summary.graphs.closure(sources) if isinstance(item, Path)}
    own = f"p:{self_name(summary.function)}"
    # attributes of the module beside its inputs are rates and similar numbers
    inputs = models or {path for path in paths if path.root != own} or paths
    return bool(inputs) and inputs <= summary.notes.returned


def self_name(function: Function) -> str:
    return function.params[0].name if function.params else "self"


def lacks_guard(summary: Summary, value: V) -> bool:
    """Whether the graph comes from an evaluation that lacks no_grad."""
    flagged = summary.notes.unguarded
    return any(item in flagged for item in summary.graphs.closure(value.src))


def _state_of_model(summary: Summary, sources: frozenset[Source]) -> bool:
    """Whether a part of a model's output goes back into the model, unchanged or computed with (``state.clone()``). It
    is the recurrent state, and has the model's graph, unless each possible model of the project cuts it."""
    todo, seen = list(sources), set(sources)
    while todo:
        source = todo.pop()
        node = summary.graphs.nodes.get(source)
        if node is None or node.definite:
            continue
        if not node.unknown:
            todo += node.parents - seen
            seen |= node.parents
        elif any(
            (parent := summary.graphs.nodes.get(item)) is not None
            and parent.definite
            and parent.model
            and (node.beside or part_of(source, item))
            and not _is_cut_by_all(summary, source, item)
            for item in node.parents
        ):
            return True
    return False


def _is_cut_by_all(summary: Summary, part: Source, output: Source) -> bool:
    """Whether the model's class is unknown (the model was loaded whole), and each class of the project that fits the
    call returns this part of its output detached or unchanged."""
    run = next((one for one in summary.runs.values() if one.node == output), None)
    call = call_at(summary.function.body, run.site.at) if run is not None else None
    if run is None or run.resolved or run.origin is not None or call is None or not isinstance(part, tuple):
        return False
    steps = tuple(step for step in part if isinstance(step, str) and step.startswith("["))
    return graph_of_part(summary, call, run.method, steps) == "no"
