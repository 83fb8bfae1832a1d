"""Models that store a part of their graph between calls: a hidden state, a memory, a cached product."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class
from memlint.sdk.syntax import calls, ir, text, unpacked_targets, walk_statements
from memlint.sdk.values import Path, Source, V, ordered

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


def keeps_a_graph(analyser: Analyser, module: V, used: Iterable[Source]) -> Stateful:
    """Whether a model, or a part of it, brings a stored result of an earlier forward into a later graph: a method, or
    one of the sources ``used``, reads the attribute. (Each call stores its result anew before anybody else reads
    it.)"""
    stored, read = set[str](), set(_attributes(used))
    known = True
    for part in _classes(analyser, module):
        if part is None:
            known = False
            continue
        own, others, complete = _state(analyser, part)
        if not complete:
            return Stateful.YES
        stored |= own
        read |= others
    return Stateful.YES if stored & read else Stateful.NO if known else Stateful.UNKNOWN


def stored_by(analyser: Analyser, module: V) -> frozenset[str]:
    """The attributes (``.state``) in which a model, or a part of it, stores computed results; empty if one of its
    classes is unknown."""
    parts = list(_classes(analyser, module))
    known = [part for part in parts if part is not None]
    return frozenset(name for part in known for name in _state(analyser, part)[0]) if known == parts else frozenset()


def _classes(analyser: Analyser, module: V) -> Iterator[Class | None]:
    """The classes of the project that a model and its parts have; None for an unknown one."""
    if not module.refs:
        yield None
    for ref in ordered(module.refs):
        cls = analyser.cls(ref) if ref.kind == "instance" else None
        if cls is not None:
            yield from _parts(analyser, cls)
        elif ref.kind != "extinstance" or not _STATELESS.fullmatch(ref.name):
            yield None
        else:
            for part in ref.args:
                if isinstance(part, V):
                    yield from _classes(analyser, part)


def leaves_alone(analyser: Analyser, module: V, name: str) -> bool:
    """Whether a method of a model of known class surely changes no state (``init_hidden``, which returns zeros): it
    stores nothing on the model, calls no part and no other method of it, and hands none on to a function. False if the
    method is unknown."""
    classes = [cls for ref in ordered(module.refs) if ref.kind == "instance" and (cls := analyser.cls(ref)) is not None]
    return 0 < len(classes) == len(module.refs) and all(_leaves_alone(analyser, cls, name) for cls in classes)


def _leaves_alone(analyser: Analyser, cls: Class, name: str) -> bool:
    method = analyser.program.method(cls, name)
    if method is None:
        return False
    own = f"{method.own_name}."
    targets = (target for one in walk_statements(method.body) for target in unpacked_targets(one))
    if any(text(target, 200).startswith(own) for target in targets):
        return False
    for call in calls(method.body):
        called = text(call.func, 200)
        step = called.removeprefix(own)
        if step != called and (
            not step.isidentifier()
            or analyser.program.method(cls, step) is not None
            or analyser.attribute(cls, step).kinds
        ):
            return False
        given = [arg for arg in (*call.args, *(word.value for word in call.keywords)) if not isinstance(arg, ir.Call)]
        if isinstance(call.func, ir.Name) and any(f"{text(arg, 200)}.".startswith(own) for arg in given):
            return False
    return True


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


def _state(analyser: Analyser, cls: Class) -> tuple[set[str], set[str], bool]:
    """The attributes in which the methods of a class store computed values with a graph, those of which the graphs at
    a method's entry go into others, and whether all methods are known."""
    stored, read = set[str](), set[str]()
    for name, method in cls.methods.items():
        if name == "__init__" or not method.takes_self or not method.params:
            continue
        summary = analyser.summary(method)
        if summary is None or summary.exit is None:
            return stored, read, False
        root = f"p:{method.params[0].name}"
        nodes = summary.graphs.nodes
        used = {*summary.notes.returned, *summary.left, *(item for node in nodes.values() for item in node.parents)}
        for path, value in summary.exit.sym.items():
            if isinstance(path, Path) and path.root == root and path.steps:
                reached = (nodes.get(item) for item in summary.graphs.closure(value.src))
                if any(node is not None and not node.leaf for node in reached):
                    stored.update(_attributes((path,), last=True))
            used |= value.src - {path}
        read.update(_attributes(item for item in used if isinstance(item, Path) and item.root == root))
    return stored, read, True


def _attributes(sources: Iterable[Source], *, last: bool = False) -> Iterator[str]:
    """The attributes on the way to each place among the sources; only the last one of each with ``last``."""
    for item in sources:
        names = [step for step in item.steps if step.startswith(".")] if isinstance(item, Path) else []
        yield from names[-1:] if last else names
