"""Functions whose cache keeps their arguments alive: instances of modules and data sets, tensors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Function, Module, Summary, annotation_value, argument
from memlint.sdk.syntax import dotted, ir, last_name, parts, text
from memlint.sdk.values import MODULE, NONE, TENSOR, V

from .rule import CachedCall, CacheHolder

_BOUNDED = "functools.lru_cache"
_CACHES = frozenset({_BOUNDED, "functools.cache"})
#: classes whose instances hold data, by the qualified names of their bases
_DATA = lazy_pattern(
    r"torch\.utils\.data\.(\w+\.)*\w*(Dataset|Sampler|DataPipe)"
    r"|(pytorch_lightning|lightning)\.(\w+\.)*LightningDataModule|\?\.(\w+\.)*LightningDataModule"
    r"|torchvision\.datasets\.(\w+\.)*[A-Z]\w*|torchaudio\.datasets\.(\w+\.)*[A-Z]\w*"
    r"|torch_geometric\.(data|datasets)\.(\w+\.)*\w*(Dataset|DataModule)|fairseq\.data\.(\w+\.)*\w+Dataset"
)


class _Cache(NamedTuple):
    """``size``: how many calls it keeps, None for all; ``known``: whether the size is known."""

    decorator: ir.Expr
    size: int | None
    known: bool


def detect(analyser: Analyser, summary: Summary) -> Iterator[CachedCall]:
    """The cache of one function, if it keeps large objects alive."""
    function = summary.function
    if not function.decorators:
        return
    cache = next(filter(None, (_cache(analyser, function, item) for item in function.decorators)), None)
    if cache is None or cache.size == 0 or _is_cleared(analyser, function):
        return
    holder = _holder(analyser, summary)
    given = _given(analyser, function)
    if holder is None and (given is None or _made_in_calls(function)):
        return
    names = function.decorator_names
    own = 1 if function.takes_self else 0
    yield CachedCall(
        site=summary.site(cache.decorator.at),
        function=function.qual,
        certainty="medium" if holder == "tensors" else "high",
        holder=holder or "argument",
        name=function.name,
        owner=function.cls.node.name if holder and function.cls is not None else "",
        decorator=text(cache.decorator),
        size=cache.size if cache.known else None,
        bounded=cache.size is not None or not cache.known,
        argument=given or "",
        plain="property" in names or len(function.params) == own,
    )


def _cache(analyser: Analyser, function: Function, decorator: ir.Expr) -> _Cache | None:
    """The cache that a decorator creates; None for another decorator."""
    made = _made_by(analyser, function.module, decorator, function.around)
    if made is None:
        return None
    expr, name = made
    if name not in _CACHES:
        return None
    if name != _BOUNDED:
        return None if isinstance(expr, ir.Call) else _Cache(decorator, None, True)
    if not isinstance(expr, ir.Call):
        return _Cache(decorator, 128, True)
    size = argument(expr, 0, "maxsize")
    if size is None:
        return _Cache(decorator, 128, not any(word.name is None for word in expr.keywords))
    if isinstance(size, ir.Const) and size.kind == "None":
        return _Cache(decorator, None, True)
    if isinstance(size, ir.Const) and isinstance(size.value, int):
        return _Cache(decorator, size.value, True)
    return _Cache(decorator, None, False)


def _made_by(
    analyser: Analyser, module: Module, decorator: ir.Expr, around: Function | None
) -> tuple[ir.Expr, str] | None:
    """The callee of a decorator and its qualified name; a variable of the module is replaced by its only value."""
    func = decorator.func if isinstance(decorator, ir.Call) else decorator
    kind, what = analyser.program.find_expression(module, func, around)
    if kind == "ext":
        return decorator, str(what)
    if kind != "value" or isinstance(decorator, ir.Call):
        return None
    where, name = what
    bound = where.bindings.get(name, [])
    if len(bound) != 1 or not isinstance(bound[0], ir.Assign) or not isinstance(bound[0].targets[0], ir.Name):
        return None
    value = bound[0].value
    func = value.func if isinstance(value, ir.Call) else value
    name = analyser.program.outside(where, func)
    return (value, name) if name else None


def _holder(analyser: Analyser, summary: Summary) -> CacheHolder | None:
    """The kind of the instances of a cached method: a module, a holder of data, or a holder of tensors. None for
    others."""
    function = summary.function
    cls = function.cls
    if cls is None or not function.takes_self or not function.params:
        return None
    if function.params[0].kind not in ("positional", "positional-only"):
        return None
    if "classmethod" in function.decorator_names or function.name in ("__new__", "__init_subclass__"):
        return None
    if any(_is_single(item) for item in analyser.program.ancestors(cls)[0]):
        return None
    if analyser.program.is_module(cls):
        return "module"
    if any(_DATA.fullmatch(name) for name in analyser.program.ancestors(cls)[1]):
        return "data"
    return "tensors" if _gives_tensor(analyser, summary) else None


def _gives_tensor(analyser: Analyser, summary: Summary) -> bool:
    """Whether a method returns a tensor computed from its object, by its annotation or its summary."""
    node, own = summary.function.node, summary.function.own_name
    if not isinstance(node, ir.FunctionDef) or not any(
        isinstance(part, ir.Attr) and dotted(part.value) == own for part in parts(node.body)
    ):
        return False
    if node.returns is not None:
        known = annotation_value(analyser, summary.module, node.returns, summary.function.around)
        return known is not None and known.is_only(TENSOR)
    return summary.result is not None and summary.result.is_only(TENSOR)


def _is_single(cls: Class) -> bool:
    """Whether a class has a single, permanent instance: the class stores it, or it has no state."""
    return "__slots__" in cls.attributes or "__new__" in cls.methods or any("singleton" in dotted(
        item.func if isinstance(item, ir.Call) else item).lower() for item in cls.node.decorators)  # fmt: skip


def _given(analyser: Analyser, function: Function) -> str | None:
    """The parameter for a module or a tensor, by its annotation or by the arguments of all known callers; None if there
    is none."""
    skipped = 1 if function.cls is not None and "staticmethod" not in function.decorator_names else 0
    for param in function.params[skipped:]:
        if param.kind in ("star", "double-star"):
            continue
        known: V | None
        if param.annotation is not None:
            known = annotation_value(analyser, function.module, param.annotation, function.around)
        else:
            known = analyser.facts.parameter(function, param.name)
        if known is None or not known.kinds & (MODULE | TENSOR):
            continue
        if known.is_only(TENSOR | NONE) or known.kinds & MODULE:
            return param.name
    return None


def _made_in_calls(function: Function) -> bool:
    """Whether the function is defined inside a function with parameters: its cache is released with it."""
    return function.around is not None and bool(function.around.params)


def _is_cleared(analyser: Analyser, function: Function) -> bool:
    """Whether the project clears the cache."""
    return any(
        _clears(analyser.program.module(key), function.name) for key in analyser.program.words.files("cache_clear")
    )


def _clears(module: Module, name: str) -> bool:
    # a receiver without a name is each cache of a loop over several
    return any(
        isinstance(part, ir.Attr) and part.name == "cache_clear" and last_name(part.value) in (name, "")
        for body in module.bodies
        for part in parts(body, into_definitions=True)
    )
