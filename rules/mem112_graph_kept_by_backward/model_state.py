"""Models that store a part of their graph between calls: a hidden state, a memory, a cached product."""

from __future__ import annotations

import enum
from collections.abc import Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class
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
        if summary is None or summary.exit is None:
            return True
        own = f"p:{method.params[0].name}"
        for path, value in summary.exit.sym.items():
            if not isinstance(path, Path) or path.root != own or not path.steps:
                continue
            nodes = (summary.graphs.nodes.get(item) for item in summary.graphs.closure(value.src))
            if any(node is not None and not node.leaf for node in nodes):
                return True
    return False
