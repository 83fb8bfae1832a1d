"""Networks that are known to be small, or large, by what their layers save for each row of their input.

A row is a sample, a token, or a node of a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.demand.given_networks import parameter_of
from memlint.analysis.domain.bound_names import argument, bindings
from memlint.analysis.domain.extents.extents import LARGE, NO_BOUND, SAME_LAYERS
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NOTHING, Ref, V
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.facts.sizes.known_numbers import Numbers
from memlint.analysis.facts.sizes.scopes import Known, Scope, attributes_of, calls_in_rounds
from memlint.analysis.index.program import Class, Function
from memlint.analysis.judge.sizes.network_parts import Parts
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls, dotted, last_name, parts, walk_expression
from memlint.analysis.transfer.library import layer_extents
from memlint.ir import nodes as ir
from memlint.knowledge.sizes import is_large
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: the most numbers that a small network saves for a row
_FEW = LARGE // 4
#: the same for linear layers alone, whose rows are samples; a batch has many more tokens, nodes and steps
_FEW_OF_SAMPLE = LARGE * 3 // 8
#: the assumed width of a linear layer in a network that reads the state of an environment
_OF_POLICY = 512
_STATE = lazy_pattern(r"(n_?|num_?|dim_?)?(state|obs|observation)s?_?(dim|size|num|shape|space|n)?s?")
#: limits of the nesting of networks, and of the methods of one
_DEPTH, _MAX_METHODS = 4, 64
#: how many times its width a recurrent layer saves for each token, gates included
_RECURRENT = 6
#: the position and name of the argument that is the layer's width: the numbers that it saves for a row
_WIDTHS = {
    "Linear": (1, "out_features"),
    "LazyLinear": (0, "out_features"),
    "Bilinear": (2, "out_features"),
    "Embedding": (1, "embedding_dim"),
    "EmbeddingBag": (1, "embedding_dim"),
    **dict.fromkeys(("RNN", "GRU", "LSTM", "RNNCell", "GRUCell", "LSTMCell"), (1, "hidden_size")),
}
_OF_SAMPLES = frozenset({"Linear", "LazyLinear", "Bilinear"})
_OF_ROWS = _OF_SAMPLES | {"Embedding"}
_FREE = SAME_LAYERS | {"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Flatten", "Module"}
#: functions that save feature maps, or much more than their result
_HEAVY = frozenset(
    {"conv1d", "conv2d", "conv3d", "unfold", "interpolate", "grid_sample", "scaled_dot_product_attention"}
)
#: layers of graphs in other libraries
_GRAPH_LAYER = lazy_pattern(r"(torch_geometric|dgl)\.(.*\.)?\w*Conv")
_PLAIN_BASES = lazy_pattern(r"(.*\.)?(Module|LightningModule|ABC|object|Generic|Protocol)")
#: names of widths that count words or items, or that are no output width
_OF_WORDS = lazy_pattern(r"vocab|voc_|words?|tok|item|entit|hidden|width")
_PRODUCTS = frozenset({"matmul", "mm", "bmm", "baddbmm", "einsum"})


class _UnknownError(Exception):
    """Some part of a network is unknown."""


class _LargeError(Exception):
    """The network has a layer whose activations are large for any input."""


def is_of_rows(run: ModelRun) -> bool:
    """Whether the model consists of torch layers that treat each row alone and save no more than its size."""
    layers = [layer_extents.of_value(run.module.but(refs=frozenset((ref,)))) for ref in run.module.refs]
    return bool(layers) and all(layer is not None and _treats_rows(layer) for layer in layers)


def _treats_rows(layer: layer_extents.Layer) -> bool:
    if layer.name == "Sequential":
        return all(inner is not None and _treats_rows(inner) for inner in layer.inner)
    return layer.name in _OF_ROWS or layer.name in SAME_LAYERS


def size_of_network(analyser: Analyser, summary: Summary, run: ModelRun) -> str:
    """ "small" or "large" for the network of a run; "" if too little is known of it."""
    if run.origin is not None and run.origin[1].key in run.origin[0].runs:  # else the caller hands the network over
        inner, _ = run.origin
        if (own := inner.function.cls) is not None and analyser.program.is_module(own):
            return size_of_class(analyser, own)  # the run is one of the layers of that class
        sizes = {size_of_network(analyser, inner, one) for one in inner.runs.values()}
        return sizes.pop() if len(sizes) == 1 else "large" if "large" in sizes else ""
    values = [run.module]
    if not run.module.refs and (name := parameter_of(summary, run)):
        values = [record.args.get(name, NOTHING) for _, record in analyser.facts.calls_of(summary.function)]
    found = {_size(analyser, ref) for value in values for ref in value.refs}
    if "large" in found:
        return "large"
    if found == {"small"} and all(value.refs for value in values):
        return "small"
    return "small" if _is_part_of_small(analyser, run) else ""


def _is_part_of_small(analyser: Analyser, run: ModelRun) -> bool:
    """Whether a torch layer runs that belongs to a small network: only one class of the project has an attribute of its
    name (``model.tower(x)``)."""
    called = run.text.split(".")
    if len(called) < len(("model", "tower")) or not all(ref.kind == "extinstance" for ref in run.module.refs):
        return False
    owners = [cls for cls in analyser.facts.attributes.classes_with(called[-1]) if analyser.program.is_module(cls)]
    return bool(run.module.refs) and len(owners) == 1 and size_of_class(analyser, owners[0]) == "small"


def _size(analyser: Analyser, ref: Ref) -> str:
    if ref.kind == "extinstance":
        layer = next((held for word, held in ref.keywords if word == "layer"), None)
        saved = _of_chain(layer) if layer is not None else None
        return "small" if saved is not None and saved <= _FEW else ""
    cls = analyser.cls(ref) if ref.kind == "instance" else None
    return size_of_class(analyser, cls) if cls is not None else ""


@kept_for
def size_of_class(analyser: Analyser, cls: Class) -> str:
    """ "small" or "large" for the networks of a class; "" if too little is known of it."""
    try:
        init = analyser.program.method(cls, "__init__")
        numbers = analyser.facts.numbers
        network = _Network(analyser, numbers, cls, numbers.passed(cls, init) if init is not None else {}, _DEPTH)
        return "small" if 0 < network.saved() <= (_FEW_OF_SAMPLE if network.of_samples else _FEW) else ""
    except _UnknownError:
        return ""
    except _LargeError:
        return "large"


def _of_chain(layer: layer_extents.Layer) -> int | None:
    """The numbers that a layer, or a sequence of layers, saves for a row; None if some width is unknown."""
    if layer.name == "Sequential":
        each = [_of_chain(inner) if inner is not None else None for inner in layer.inner]
        known = [one for one in each if one is not None]
        return sum(known) if len(known) == len(each) else None
    if layer.name in _FREE:
        return 0
    width = layer.numbers[0] if layer.name in _OF_ROWS else None
    return width[1] if width is not None else None


class _Network:
    """The layers of one network class, with the known arguments of its constructor."""

    def __init__(self, analyser: Analyser, numbers: Numbers, cls: Class, given: dict[str, Known], depth: int) -> None:
        program = analyser.program
        outside = program.ancestors(cls)[1]
        if depth == 0 or not program.is_module(cls) or not all(map(_PLAIN_BASES.fullmatch, outside)):
            raise _UnknownError
        self._analyser, self._numbers, self._depth = analyser, numbers, depth
        init = program.method(cls, "__init__")
        self._reads_state = init is not None and any(_STATE.fullmatch(param.name.lower()) for param in init.given)
        methods = program.methods(cls)
        if len(methods) > _MAX_METHODS:
            raise _UnknownError
        self._scopes = [Scope(method, given if method is init else {}) for method in methods]
        self._held = attributes_of(self._scopes)
        for scope in self._scopes:
            scope.held = self._held
        #: what each nested network saves, by its class and arguments; None for unknown
        self._parts: dict[tuple[tuple[str, str], tuple[tuple[str, Known], ...]], int | None] = {}
        #: whether all its layers are linear
        self.of_samples = True
        #: how much each call that makes a layer saves
        self._layers: dict[tuple[Function, int], int] = {}
        #: the names of unknown output widths
        self._open: list[str] = []

    def saved(self) -> int:
        """The numbers that the network saves for a row."""
        unknown, total = False, 0
        for scope in self._scopes:
            for call, times in self._calls(scope):
                try:
                    saved = self._made(call, scope)
                except _UnknownError:  # go on, as another part may be large
                    unknown = True
                    continue
                if saved is not None:
                    self._layers[scope.function, call.at] = saved
                    total += saved * times
        if any(map(_attends, self._by_class())):
            raise _LargeError
        if (
            unknown
            or len(self._open) > 1
            or not Parts(self._analyser.program, self._scopes, self._layers, self._held).knows_all()
        ):
            raise _UnknownError
        return total

    def _by_class(self) -> Iterator[list[Function]]:
        methods = [scope.function for scope in self._scopes]
        for cls in dict.fromkeys(method.cls for method in methods):
            yield [method for method in methods if method.cls is cls]

    def _calls(self, scope: Scope) -> Iterator[tuple[ir.Call, int]]:
        """The calls of a method, each with the most times that it is made."""
        for call, around in calls_in_rounds(scope.function.body):
            times = 1
            for iterated in around:
                rounds = self._numbers.rounds(iterated, scope)
                times = NO_BOUND if rounds is None else min(times * rounds, NO_BOUND)
            yield call, times

    def _made(self, call: ir.Call, scope: Scope) -> int | None:
        """The numbers that the layer saves which a call creates; None if the call creates no layer."""
        kind, what = self._analyser.program.find_expression(scope.function.module, call.func, scope.function)
        if kind == "class" and what is not None and self._analyser.program.is_module(what):
            init = self._analyser.program.method(what, "__init__")
            given = self._numbers.bound(call, init, scope) if init is not None else {}
            return self._of_part(what, given)
        name = str(what) if kind == "ext" else ""
        own = name.rsplit(".", 1)[-1]
        if name.startswith("torch.") and own in _HEAVY:
            raise _LargeError
        if _GRAPH_LAYER.fullmatch(name) is not None:
            self.of_samples = False
            return self._width(argument(call, 1, "out_channels"), scope)
        if not name.startswith("torch.nn.") or not own[:1].isupper():
            return None
        return self._of_layer(own, call, scope)

    def _of_part(self, cls: Class, given: dict[str, Known]) -> int:
        made = (cls.key, tuple(given.items()))
        if made not in self._parts:
            try:
                part = _Network(self._analyser, self._numbers, cls, given, self._depth - 1)
                self._parts[made] = part.saved()
                self.of_samples = self.of_samples and part.of_samples
            except _UnknownError:
                self._parts[made] = None
        saved = self._parts[made]
        if saved is None:
            raise _UnknownError
        return saved

    def _of_layer(self, name: str, call: ir.Call, scope: Scope) -> int:
        if name in ("Parameter", "Buffer"):
            made = call.args[0] if call.args else None
            if not isinstance(made, ir.Call) or len(made.args) < len(("rows", "columns")):
                return 0
            self.of_samples = False  # the weight of a hand-written layer, usually one of a graph network
            return self._width(made.args[-1], scope)
        if name in _FREE or name.endswith("Loss"):
            return 0
        if name not in _WIDTHS:
            raise _LargeError if name[:4] in ("Conv", "Mult", "Tran") and not name.endswith("1d") else _UnknownError
        if name == "Linear" and (given := self._given_to_last(call, scope)) is not None:
            return given
        self.of_samples = self.of_samples and name in _OF_SAMPLES
        usual = _OF_POLICY if self._reads_state and name in _OF_SAMPLES else None
        width = self._width(argument(call, *_WIDTHS[name]), scope, usual)
        if not name.startswith(("RNN", "GRU", "LSTM")):
            return width
        layers = argument(call, 2, "num_layers")
        return width * _RECURRENT * (self._width(layers, scope) if layers is not None else 1)

    def _given_to_last(self, call: ir.Call, scope: Scope) -> int | None:
        """What a layer with an unknown output width saves: its input, if that is known; else None.

        The network may have one such layer, its last: nothing else saves its output, which exists with or without a
        graph.
        """
        made, taken = argument(call, *_WIDTHS["Linear"]), argument(call, 0, "in_features")
        if self._depth < _DEPTH or made is None or self._numbers.most(made, scope) is not None:
            return None
        given, name = self._numbers.most(taken, scope), last_name(made)
        if given is None or not name or _OF_WORDS.search(name.lower()) is not None:
            return None
        self._open.append(name)
        return given

    def _width(self, expr: ir.Expr | None, scope: Scope, usual: int | None = None) -> int:
        found = self._numbers.most(expr, scope)
        if found is None:
            found = usual
        if found is None:
            raise _UnknownError
        return found


def _attends(methods: list[Function]) -> bool:
    """Whether the methods of a class compute attention: a softmax of a product, or a product with a softmax. A gate
    that weighs the outputs of experts for each row alone is none."""
    everything = [(part, method.body) for method in methods for part in parts(method.body)]
    if any(isinstance(part, ir.Call) and last_name(part.func) == "Softmax" for part, _ in everything):
        return any(_is_product(part) for part, _ in everything)  # the name does not show the input of that layer
    return any(
        (_is_product(part) and _is_made_of(part, body, _is_softmax))
        or (_is_softmax(part) and _is_made_of(part, body, _is_product))
        for part, body in everything
    )


def _is_softmax(part: ir.Expr) -> bool:
    return isinstance(part, ir.Call) and last_name(part.func) == "softmax"


def _is_product(part: ir.Expr) -> bool:
    """Whether an expression is a matrix product of operands that are no attributes of ``self``."""
    if isinstance(part, ir.Binary):
        return part.op == "@" and not _is_weight(part.left, part.right)
    return isinstance(part, ir.Call) and last_name(part.func) in _PRODUCTS and not _is_weight(*part.args)


def _is_made_of(whole: ir.Expr, body: tuple[ir.Stmt, ...], predicate: Callable[[ir.Expr], bool]) -> bool:
    """Whether an expression has a part for which ``predicate`` holds, directly or through the names of the function."""
    seen: set[str] = set()
    todo = [whole]
    while todo:
        for part in walk_expression(todo.pop()):
            if part is not whole and predicate(part):
                return True
            if isinstance(part, ir.Name) and part.id not in seen:
                seen.add(part.id)
                todo += [value for value, _ in bindings(body).get(part.id, [])]
    return False


def _is_weight(*operands: ir.Expr) -> bool:
    """Whether an operand of a product is an attribute of ``self``: a weight matrix."""
    return any(dotted(one).startswith("self.") for one in operands)


def runs_a_large_network(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a known library function that makes large networks made the model, here or in a caller."""
    return _is_made_by(analyser, summary, run, is_large)


def starts_evaluating(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the function that made the network puts it into eval mode, as `from_pretrained` does. Training code need
    not switch it back, so this alone is no evidence of an evaluation."""
    if _is_made_by(analyser, summary, run, _is_made_for_evaluation):
        return True
    return bool(run.module.syms) and context_mode(analyser, summary, run.module, "starts") is True


def _is_made_for_evaluation(name: str) -> bool:
    row = knowledge.function(name)
    return row is not None and row.starts_evaluating


def _is_made_by(analyser: Analyser, summary: Summary, run: ModelRun, says: Callable[[str], bool]) -> bool:
    """Whether library functions for which ``says`` holds made the network, here or in all known callers."""
    if _is_of(analyser, run.module, says):
        return True
    name = parameter_of(summary, run)
    passed = [record.args.get(name) for _, record in analyser.facts.calls_of(summary.function)] if name else []
    return bool(passed) and all(value is not None and _is_of(analyser, value, says) for value in passed)


def _is_of(analyser: Analyser, module: V, says: Callable[[str], bool]) -> bool:
    """Whether a library function for which ``says`` holds made the module, or a part of it in its constructor."""
    for ref in module.refs:
        if ref.kind == "foreign" and says(ref.name):
            return True
        cls = analyser.cls(ref) if ref.kind == "instance" else None
        init = cls.methods.get("__init__") if cls is not None else None
        if init is not None and any(
            says(analyser.program.outside(init.module, call.func, init)) for call in calls(init.body)
        ):
            return True
    return False
