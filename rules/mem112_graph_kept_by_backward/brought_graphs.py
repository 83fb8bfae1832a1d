"""The graphs that enter a function through its parameters, attributes and enclosing variables."""

from __future__ import annotations

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Function, Module, Summary, TooManyError, functions_naming
from memlint.sdk.syntax import calls, dotted, ir, mentions, text, unpacked_targets, walk_expression, walk_statements
from memlint.sdk.values import (
    CALLABLE,
    DATA,
    LOADER,
    MODULE,
    NONE,
    OPTIMIZER,
    TENSORS,
    UNKNOWN,
    Backward,
    Path,
    V,
    tensors_within,
)

#: kinds of values without a graph of their own
_WITHOUT = DATA | NONE | LOADER | MODULE | OPTIMIZER | CALLABLE
#: how many levels of callers are searched for the origin of a parameter
_DEPTH = 3
#: names of plain settings
_SETTINGS = lazy_pattern(r"(^|_)(config|cfg|args|opts?|hparams|settings|flags)$")
#: names of the batch of one step
_BATCH = lazy_pattern(r"batch")
#: names of what a loop takes batches from
_DATA = lazy_pattern(r"loader|data|batches|iterator")


def named(path: Path) -> str:
    """The source of a symbol in its function."""
    return "".join((path.root.partition(":")[2], *path.steps))


def is_leaf(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether a body makes a variable a leaf by ``u.requires_grad = True``, which torch rejects for a computed tensor:
    no graph enters with it. (``u.requires_grad_(True)`` is accepted there too.)"""
    return any(
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Const)
        and statement.value.value is True
        and any(text(target, 200) == f"{name}.requires_grad" for target in statement.targets)
        for statement in walk_statements(body)
    )


def is_given(summary: Summary, path: Path, last: Backward) -> bool:
    """Whether a symbol is an argument of the function (itself, or a member by position), and no attribute of one;
    outside of a loop, a batch of the caller does not count."""
    if not last.loops and _BATCH.search(path.root[2:].lower()) is not None:
        return False
    own = summary.function.own_name
    return path.root.startswith("p:") and path.root[2:] != own and not any(step[:1] == "." for step in path.steps)


def is_kept(analyser: Analyser, summary: Summary, path: Path) -> bool:
    """Whether a symbol is a tensor that outlives the call: a variable of an enclosing function, or an attribute."""
    function = summary.function
    if not path.root.startswith("p:"):
        return True
    own = function.takes_self and function.params and path.root[2:] == function.params[0].name
    if not own or function.cls is None or len(path.steps) != 1:
        return False
    name = path.steps[0].lstrip(".")
    known = analyser.attribute(function.cls, name)
    return bool(known.kinds & TENSORS) or (bool(known.kinds & UNKNOWN) and _is_set_later(analyser, function.cls, name))


def is_called(analyser: Analyser, summary: Summary, path: Path) -> bool:
    """Whether a symbol is an argument or attribute that the code calls: a function or a module, and no tensor."""
    function = summary.function
    if path.root != f"p:{function.own_name}" or function.cls is None:
        return not path.steps and any(dotted(call.func) == path.root[2:] for call in calls(function.body))
    name = path.steps[0].lstrip(".") if len(path.steps) == 1 else ""
    return any(
        dotted(call.func) == f"{method.own_name}.{name}"
        for method in analyser.program.methods(function.cls)
        for call in calls(method.body)
    )


def _is_set_later(analyser: Analyser, cls: Class, attribute: str) -> bool:
    """Whether a method other than ``__init__`` assigns the attribute."""
    order, _ = analyser.program.ancestors(cls)
    return any(
        isinstance(target, ir.Attr) and target.name == attribute
        for one in order
        for method in one.methods.values()
        if method.name != "__init__"
        for statement in walk_statements(method.body)
        if isinstance(statement, ir.Assign)
        for target in statement.targets
    )


def has_no_graph(analyser: Analyser, summary: Summary, path: Path, depth: int = 0) -> bool:
    """Whether a symbol is known to have no graph: a batch of a loader, a part of a model, plain data. ``depth``: the
    number of callers so far."""
    function = summary.function
    name = path.root[2:]
    if any(_SETTINGS.search(part.strip(".").lower()) for part in (name.rpartition(":")[2], *path.steps[:1])):
        return True
    if path.root.startswith("p:") and function.takes_self and function.params and name == function.params[0].name:
        if function.cls is None or not path.steps:
            return False
        attribute = path.steps[0].lstrip(".")
        known = analyser.attribute(function.cls, attribute)
        if _is_plain(known) or (path.steps[1:2] == ("[]",) and _DATA.search(attribute.lower()) is not None):
            return True
        return len(path.steps) == 1 and _is_made_without(analyser, function.cls, attribute)
    if path.root.startswith("g:") and not path.steps:
        module, _, variable = path.root[2:].rpartition(":")
        kind, what = analyser.program.find(analyser.program.module(module), variable)
        if kind == "value" and _is_constant(analyser, *what):
            return True
        return _is_plain(analyser.global_value(kind, what))
    if path.root[:2] in ("p:", "c:") and "[]" in path.steps and _DATA.search(path.text.lower()):
        return path.root.startswith("p:") or not _is_computed(analyser, function.around, name)
    if path.root.startswith("p:"):
        param = next((one for one in function.params if one.name == name), None)
        if param is not None and isinstance(param.default, ir.Const) and param.default.value is not None:
            return True  # a number or a string
        passed = analyser.facts.parameter(function, name)
        if passed is not None and _is_plain(passed):
            return True
        if summary.hook is not None and not path.steps:
            return True
        return depth < _DEPTH and _passed_without(analyser, summary, path, depth + 1)
    return False


def _is_computed(analyser: Analyser, function: Function | None, name: str) -> bool:
    """Whether an enclosing function's variable holds graphs that this function records: its name is no evidence then,
    as in ``batches = [encoder(x) for x in data]``."""
    while function is not None:
        summary = analyser.summary(function)
        if summary is None or summary.exit is None:
            return True
        if name in summary.exit.env:
            sources = tensors_within(summary, summary.exit, summary.exit.env[name]).src
            return not summary.graphs.nodes.keys().isdisjoint(summary.graphs.closure(sources))
        function = function.around
    return False


def _is_constant(analyser: Analyser, module: Module, name: str) -> bool:
    """Whether a file computes a tensor once, of values without a graph, and nothing else assigns it: the schedule of a
    diffusion, a mean of the data."""
    summary = analyser.summary(module.main)
    if summary is None or summary.exit is None or summary.cut_short or any(module.writers(name)):
        return False
    value = summary.exit.env.get(name)
    if value is None or not value.is_only(TENSORS | DATA) or analyser.facts.attributes.is_assigned(name):
        return False
    reached = summary.graphs.closure(tensors_within(summary, summary.exit, value).src)
    return not reached and not _is_written_into(analyser, module, name)


def _is_made_without(analyser: Analyser, cls: Class, name: str) -> bool:
    """Whether constructors alone assign an attribute, tensors that they compute of values without a graph, and nothing
    writes into these: the support of a distribution, the weights of classes."""
    found = False
    for one in analyser.program.ancestors(cls)[0]:
        method = one.methods.get("__init__")
        summary = analyser.summary(method)
        if method is None or summary is None or summary.exit is None or not method.params:
            continue
        value = summary.exit.sym.get(Path(f"p:{method.params[0].name}", (f".{name}",)))
        if value is None:
            continue
        reached = summary.graphs.closure(tensors_within(summary, summary.exit, value).src)
        if reached or not value.is_only(TENSORS | DATA) or analyser.facts.attributes.is_written_beside(method, name):
            return False
        found = True
    return found and not _is_written_into(analyser, None, name) and not _gets_a_graph(analyser, cls, name)


def _gets_a_graph(analyser: Analyser, cls: Class, name: str) -> bool:
    """Whether a function may leave an attribute with a graph that it did not find there: through another name of the
    tensor (``bank = self.bank; bank[0] = feature``), a function that gets it, or the constructor of a subclass."""
    for function in functions_naming(analyser, name):
        summary = analyser.summary(function)
        if summary is None or summary.cut_short:
            return True
        own = Path(f"p:{function.own_name}", (f".{name}",))
        others = function.cls is not None and not _are_related(analyser, cls, function.cls)
        for path, value in summary.exit.sym.items() if summary.exit is not None else ():
            if f".{name}" not in path.steps or (others and path.is_in(own)):
                continue
            if any(not (isinstance(item, Path) and item.is_in(path)) for item in summary.graphs.closure(value.src)):
                return True
    return False


def _are_related(analyser: Analyser, one: Class, other: Class) -> bool:
    """Whether one of two classes is the other, or derives from it."""
    ancestors = analyser.program.ancestors
    return any(each.key == other.key for each in ancestors(one)[0]) or any(
        each.key == one.key for each in ancestors(other)[0]
    )


def _is_written_into(analyser: Analyser, module: Module | None, name: str) -> bool:
    """Whether a function may write into a tensor of a file, or into an attribute if there is none: ``BANK[i] =
    features``, ``BANK.copy_(features)``, or a parameter that has it by default."""
    try:
        functions = [one for one in functions_naming(analyser, name) if module is None or one is not module.main]
    except TooManyError:
        return True
    defaults = (param.default for one in functions for param in one.params)
    if any(default is not None and mentions(default, name) for default in defaults):
        return True
    written = (target for one in functions for part in walk_statements(one.body) for target in unpacked_targets(part))
    places = [one.value for one in written if isinstance(one, ir.Subscript | ir.Attr)]
    places += [
        call.func.value
        for one in functions
        for call in calls(one.body, into_definitions=True)
        if isinstance(call.func, ir.Attr) and call.func.name.endswith("_")
    ]
    if module is not None:
        return any(mentions(place, name) for place in places)
    return any(isinstance(part, ir.Attr) and part.name == name for place in places for part in walk_expression(place))


def _is_plain(known: V) -> bool:
    return bool(known.kinds) and not known.kinds & ~_WITHOUT


def _passed_without(analyser: Analyser, summary: Summary, path: Path, depth: int) -> bool:
    """Whether every known caller passes a value without a graph."""
    records = analyser.facts.calls_of(summary.function)
    for caller, record in records:
        value = record.args.get(path.root[2:])
        if value is None or caller.exit is None:
            return False
        sources = tensors_within(caller, caller.exit, value).src
        symbols = [item for item in caller.graphs.closure(sources) if isinstance(item, Path)]
        if caller.graphs.attached(sources)[0] != "no" and not all(
            (item.steps[:1] == ("[]",) and _DATA.search(item.root.lower()))
            or has_no_graph(analyser, caller, item, depth)
            for item in symbols
        ):
            return False
        if any(item in caller.graphs.nodes for item in caller.graphs.closure(sources)):
            return False
    return bool(records)
