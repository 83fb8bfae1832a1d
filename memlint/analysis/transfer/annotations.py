"""The abstract values that type annotations declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.domain.values import (
    CONTAINER,
    DATA,
    EMPTY,
    LOADER,
    MODULE,
    NONE,
    NOTHING,
    OF_MODULES,
    OF_TEXTS,
    OPTIMIZER,
    SCALAR,
    TENSOR,
    Ref,
    V,
    join,
)
from memlint.analysis.index.program import Function, Module
from memlint.analysis.syntax.syntax import dotted
from memlint.analysis.transfer.user_containers import kinds_of_object
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_DATA = frozenset({"int", "float", "str", "bool", "bytes", "complex", "Path", "ndarray", "Namespace"})
_WRAPPERS = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})
_CONTAINERS = frozenset({"list", "List", "dict", "Dict", "set", "Set", "deque", "Deque", "defaultdict", "DefaultDict"})
_ROWS = frozenset({"tuple", "Tuple", "Sequence", "Iterable", "Iterator", "Collection", "Mapping"})
#: what is surely no tensor where a container is annotated to hold it
_TEXT = frozenset({"str", "bytes", "int", "bool", "Path"})
_TEXTS = frozenset({OF_TEXTS})


def annotation_value(
    analyser: Analyser, module: Module, annotation: ir.Expr, around: Function | None = None
) -> V | None:
    """The value of a variable with this annotation; None where the annotation tells nothing."""
    if isinstance(annotation, ir.Const):
        if annotation.kind == "None":
            return V(NONE)
        if isinstance(annotation.value, str) and annotation.value.replace(".", "").isidentifier():
            return _named(analyser, module, _parsed(annotation.value), around)
        return None
    if isinstance(annotation, ir.Binary) and annotation.op == "|":
        return _either(
            annotation_value(analyser, module, annotation.left, around),
            annotation_value(analyser, module, annotation.right, around),
        )
    if isinstance(annotation, ir.Subscript):
        name = dotted(annotation.value).rsplit(".", 1)[-1]
        if name in _WRAPPERS:
            inner = annotation.index
            parts = inner.elements if isinstance(inner, ir.Display) else (inner,)
            found: V | None = NOTHING
            for part in parts:
                found = _either(found, annotation_value(analyser, module, part, around))
            if found is not None and name == "Optional":
                found = join(found, V(NONE))
            return found
        if name in _CONTAINERS:
            return _container(analyser, module, annotation, around)
        return V(CONTAINER, refs=_TEXTS) if name in _ROWS and _are_texts(annotation.index) else None
    return _named(analyser, module, annotation, around)


def _container(analyser: Analyser, module: Module, annotation: ir.Subscript, around: Function | None) -> V:
    """A container of the annotated members: ``list[nn.Module]`` holds modules, and a loop over it runs over layers."""
    inner = annotation.index
    if _are_texts(inner):
        return V(CONTAINER, refs=_TEXTS)
    last = inner.elements[-1] if isinstance(inner, ir.Display) and inner.elements else inner
    member = annotation_value(analyser, module, last, around)
    layers = member is not None and bool(member.kinds & MODULE)
    return V(CONTAINER, refs=frozenset((OF_MODULES,)) if layers else EMPTY)


def _are_texts(inner: ir.Expr) -> bool:
    """Whether all members of the annotated container are texts and whole numbers, or containers of those. (A list
    that is annotated with ``float`` may well receive losses.)"""
    if isinstance(inner, ir.Display):
        return bool(inner.elements) and all(map(_are_texts, inner.elements))
    if isinstance(inner, ir.Subscript):
        return dotted(inner.value).rpartition(".")[2] in _CONTAINERS | _ROWS and _are_texts(inner.index)
    return (isinstance(inner, ir.Const) and inner.kind == "Ellipsis") or dotted(inner).rpartition(".")[2] in _TEXT


def _parsed(name: str) -> ir.Expr:
    parts = name.split(".")
    expr: ir.Expr = ir.Name(0, parts[0])
    for part in parts[1:]:
        expr = ir.Attr(0, expr, part)
    return expr


def _either(left: V | None, right: V | None) -> V | None:
    return join(left, right) if left is not None and right is not None else None


def _named(analyser: Analyser, module: Module, expr: ir.Expr, around: Function | None) -> V | None:
    name = dotted(expr)
    last = name.rsplit(".", 1)[-1]
    if last in _DATA:
        return V(DATA, size=SCALAR)
    if last in _CONTAINERS:
        return V(CONTAINER)
    kind, what = analyser.program.find_expression(module, expr, around)
    if kind == "class" and what is not None:
        kinds = kinds_of_object(analyser.program, what)
        return V(kinds, refs=frozenset((Ref("instance", what.module.key, what.qual),)))
    if last in ("Tensor", "FloatTensor"):
        return V(TENSOR)
    if kind == "ext":
        if what.startswith(("typing.", "typing_extensions.")):
            return None  # ``Any`` is no number
        if what in ("torch.nn.Module", "torch.nn.modules.Module"):
            return V(MODULE)
        row = knowledge.function(what)
        if row is not None and row.returns == "module":
            return V(MODULE)
        if row is not None and row.returns == "loader":
            return V(LOADER)
        if row is not None and row.returns == "optimizer":
            return V(OPTIMIZER)
        if row is not None and row.returns == "data":
            return V(DATA)
    return None
