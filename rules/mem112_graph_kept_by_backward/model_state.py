"""Models that store a part of their graph between calls: a hidden state, a memory, a cached product."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Module, Summary
from memlint.sdk.syntax import calls
from memlint.sdk.values import Path, V, ordered

#: modules of libraries whose forward stores nothing with a graph
_STATELESS = lazy_pattern(
    r"(torch\.nn|torchvision\.models|transformers|timm|segmentation_models_pytorch|monai\.networks)\..*"
)
#: the most classes that are examined for one model
_MAX = 60


class Stateful(enum.Enum):
    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def keeps_a_graph(analyser: Analyser, module: V) -> Stateful:
    """Whether a model, or a part of it, stores results of its forward on itself."""
    found = Stateful.NO if module.refs else Stateful.UNKNOWN
    for ref in ordered(module.refs):
        if ref.kind == "extinstance":
            if not _STATELESS.fullmatch(ref.name) or any(
                keeps_a_graph(analyser, part) is not Stateful.NO for part in ref.args if isinstance(part, V)
            ):
                found = Stateful.UNKNOWN
            continue
        cls = analyser.cls(ref) if ref.kind == "instance" else None
        if cls is None:
            found = Stateful.UNKNOWN
            continue
        for part in _parts(analyser, cls):
            if part is None:
                found = Stateful.UNKNOWN
            elif _stores(analyser, part):
                return Stateful.YES
    return found


def may_be_stateful(analyser: Analyser, module: Module) -> bool:
    """Whether each network that a file defines or imports, apart from the parts of others, stores results of its
    forward: an unknown one may well be that."""
    found = (analyser.program.find(module, name) for name in sorted({*module.bindings, *module.numbers}))
    networks = [what for kind, what in found if kind == "class" and analyser.program.is_module(what)][:_MAX]
    parts = {cls.key: [part for part in _parts(analyser, cls) if part is not None] for cls in networks}
    inner = {part.key for key, of_one in parts.items() for part in of_one if part.key != key}
    whole = [of_one for key, of_one in parts.items() if key not in inner]
    return bool(whole) and all(any(_stores(analyser, part) for part in of_one) for of_one in whole)


def _parts(analyser: Analyser, cls: Class) -> Iterator[Class | None]:
    """The class, the classes of its submodules, and theirs; None for an unknown one."""
    todo, seen = [cls], {cls.key}
    while todo:
        one = todo.pop()
        yield one
        order, outside = analyser.program.ancestors(one)
        if any(
            not name.startswith("torch.nn.") and not _STATELESS.fullmatch(name) and name != "abc.ABC"
            for name in outside
        ):
            yield None
        for item in order:
            if item.key not in seen:
                seen.add(item.key)
                todo.append(item)
            for method in item.methods.values():
                for call in calls(method.body):
                    kind, what = analyser.program.find_expression(method.module, call.func, method)
                    if kind == "class" and what.key not in seen and analyser.program.is_module(what):
                        seen.add(what.key)
                        todo.append(what)
        if len(seen) > _MAX:
            yield None
            return


def _stores(analyser: Analyser, cls: Class) -> bool:
    """Whether a method stores a computed value with a graph on the instance."""
    for name, method in cls.methods.items():
        if name == "__init__" or not method.takes_self or not method.params:
            continue
        summary = analyser.summary(method)
        if summary is None or summary.cut_short:
            return True
        if summary.exit is None:
            continue  # it always raises, as a method that subclasses define
        own = f"p:{method.params[0].name}"
        for path, value in summary.exit.sym.items():
            if not isinstance(path, Path) or path.root != own or not path.steps:
                continue
            if _has_graph(summary, value) and not (
                _is_from_itself(summary, path, value) and not _begins_with_graph(analyser, cls, path)
            ):
                return True
    return False


def _has_graph(summary: Summary, value: V) -> bool:
    nodes = (summary.graphs.nodes.get(item) for item in summary.graphs.closure(value.src))
    return any(node is not None and not node.leaf for node in nodes)


def _is_from_itself(summary: Summary, path: Path, value: V) -> bool:
    """Whether the only graph that a stored value may have is that of the previous one: running sums of detached
    values. Such a place has a graph only if it began with one."""
    for item in summary.graphs.closure(value.src):
        node = summary.graphs.nodes.get(item)
        if node is None and item != path:
            return False
        if node is not None and (node.definite or node.model or node.unknown or node.leaf or node.opaque):
            return False
    return True


def _begins_with_graph(analyser: Analyser, cls: Class, path: Path) -> bool:
    """Whether a constructor may give a place a value that needs a gradient, or the class does not tell."""
    name = path.steps[0].removeprefix(".")
    for one in analyser.program.ancestors(cls)[0]:
        method = one.methods.get("__init__")
        summary = analyser.summary(method)
        if method is None or not method.params:
            continue
        if summary is None or summary.exit is None:
            return True
        begun = summary.exit.sym.get(Path(f"p:{method.params[0].name}", path.steps))
        if begun is not None and any(item in summary.graphs.nodes for item in summary.graphs.closure(begun.src)):
            return True
    return len(path.steps) != 1 or name in analyser.facts.attributes.parameters(cls)
