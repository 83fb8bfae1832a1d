"""Transfer functions of torch's operations on the extents of tensors: methods, functions, operators and indices."""

from __future__ import annotations

import functools
from collections.abc import Callable

from memlint.analysis.domain.extents import extents
from memlint.analysis.domain.extents.extents import (
    ANY,
    BATCH_DIM,
    BYTES,
    NUMBER,
    REDUCE,
    SAME,
    SIDE,
    WITH_INDICES,
    Extent,
    Range,
    exact,
)
from memlint.analysis.domain.values import DATA, TENSORS, TREE, V
from memlint.analysis.syntax.syntax import dotted, is_none
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names for the number of classes, and for the size of a vocabulary
_CLASSES = lazy_pattern(
    r"(n|num|nb|number_of)?_?(class(es)?|cls|labels?|actions?|categor(y|ies)|attr(ibute)?s|ways?)(_?(num|count))?"
)
_WORDS = lazy_pattern(r".*vocab.*|n_?tokens?|num_(tokens|words|embeddings)|voc(_size)?")
#: bounds for a size that is known by its name alone
FEW: Range = (1, 1000)
_MANY: Range = (4096, extents.NO_BOUND)
#: operations that keep all dimensions
_ELEMENTWISE = SAME | {
    "erf", "square", "sign", "floor", "ceil", "add", "sub", "mul", "div", "masked_fill", "pin_memory", "Parameter",
    "Buffer", "xpu", "kthvalue",
}  # fmt: skip
_INTEGERS = frozenset({"argmax", "argmin", "argsort"})
_TRUTH = frozenset({"eq", "ne", "gt", "lt", "ge", "le", "isnan", "isinf", "isfinite", "logical_and", "logical_not"})
_SIZED = frozenset({"zeros", "ones", "empty", "rand", "randn", "randint", "full", "Tensor", "FloatTensor"}) | {
    name for name in BYTES if name.endswith("Tensor")
}
_RESIZED = frozenset({"interpolate", "upsample", "grid_sample", "resize"})
_RESHAPES = frozenset({"resize_", "resize_as_", "set_", "squeeze_", "swapaxes_", "t_", "transpose_", "unsqueeze_"})
_JOINED = frozenset({"cat", "concat", "concatenate", "hstack", "vstack"})


class Arguments:
    """The arguments of an operation other than the tensor: their values and expressions."""

    def __init__(self, args: list[V], words: dict[str, V], expr: ir.Call, skipped: int = 0) -> None:
        self.values = args[skipped:]
        self.words = words
        self.exprs = expr.args[skipped:]
        self.keywords = {word.name: word.value for word in expr.keywords}

    def of(self, at: int, *names: str) -> tuple[V | None, ir.Expr | None]:
        """An argument by its position or one of its names; (None, None) for a missing one."""
        for name in names:
            if name in self.words:
                return self.words[name], self.keywords.get(name)
        if 0 <= at < len(self.values) and at < len(self.exprs):
            return self.values[at], self.exprs[at]
        return None, None

    def axes(self, at: int = 0) -> list[int] | None:
        """The dimensions that are given; None where none are, [] where they are unknown."""
        value, expr = self.of(at, "dim", "axis")
        if value is None or expr is None:
            return None
        if isinstance(expr, ir.Display):
            found = [literal(item) for item in expr.elements]
            return [one for one in found if one is not None] if None not in found else []
        return [value.const] if is_count(value.const) else []

    def flag(self, at: int, *names: str) -> bool:
        value, _ = self.of(at, *names)
        return value is not None and value.const is True

    def sizes(self, first: int = 0) -> list[Range | None]:
        """The sizes of ``f(2, n)`` or ``f((2, n))``; None among them for an unknown one."""
        exprs = self.exprs[first:]
        values = self.values[first:]
        if len(exprs) == 1 and isinstance(exprs[0], ir.Display):
            return [size_of(None, item) for item in exprs[0].elements]
        if any(isinstance(expr, ir.Starred) for expr in exprs) or (len(exprs) == 1 and not _is_number(values[0])):
            return []
        return [size_of(value, expr) for value, expr in zip(values, exprs, strict=False)]


def is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: V) -> bool:
    return value.is_only(DATA) or is_count(value.const)


def literal(expr: ir.Expr) -> int | None:
    if isinstance(expr, ir.Unary) and expr.op == "-":
        inner = literal(expr.operand)
        return None if inner is None else -inner
    value = expr.value if isinstance(expr, ir.Const) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def size_of(value: V | None, expr: ir.Expr) -> Range | None:
    """The range of a size, by its value or else by its name; None for unknown."""
    count = value.const if value is not None and is_count(value.const) else literal(expr)
    if count is not None:
        return exact(count) if count >= 0 else None
    name = dotted(expr).rsplit(".", 1)[-1].lower()
    if isinstance(expr, ir.Call) and dotted(expr.func) == "len":
        return FEW if expr.args and _CLASSES.fullmatch(dotted(expr.args[0]).rsplit(".", 1)[-1].lower()) else None
    if _WORDS.fullmatch(name):
        return _MANY
    return FEW if _CLASSES.fullmatch(name) else None


def of_method(name: str, receiver: V, args: list[V], words: dict[str, V], expr: ir.Call) -> Extent | None:
    """The extent of ``tensor.name(…)``; None for unknown."""
    if name.endswith("_") and not name.endswith("__"):
        # in-place methods keep the extent, those left out that only change it
        return None if name in _RESHAPES else receiver.extent
    return _operation(name, receiver.extent, Arguments(args, words, expr))


def of_function(name: str, args: list[V], words: dict[str, V], expr: ir.Call, parts: list[V]) -> Extent | None:
    """The extent of the result of a function of torch, by its qualified name; None for unknown. ``parts``: the
    members of its first argument, a list of tensors."""
    own = name.rsplit(".", 1)[-1]
    if own in _SIZED:
        arguments = Arguments(args, words, expr)
        item = _item(arguments, 8 if own == "randint" else BYTES.get(own, 4))
        sizes = arguments.sizes(2 if own == "randint" else 0)
        if own in ("full", "randint"):
            sizes = next(
                (
                    Arguments([], {}, ir.Call(expr.at, expr.func, (one,), ())).sizes()
                    for one in expr.args
                    if isinstance(one, ir.Display)
                ),
                [],
            )
        return shaped_as(sizes, item)
    if own in _JOINED or own == "stack":
        return _joined(own, parts, Arguments(args, words, expr, 1))
    first = args[0] if args else words.get("input")
    if first is None or not name.startswith(("torch.", "numpy.")):
        return None
    arguments = Arguments(args, words, expr, 1 if args else 0)
    if own in ("matmul", "mm") and len(args) == 2:
        return multiplied(first.extent, args[1].extent)
    if own == "where" and len(args) == 3:
        return args[1].extent or args[2].extent
    return _operation(own, first.extent, arguments)


def shaped_as(sizes: list[Range | None], item: int = 4) -> Extent | None:
    """The extent of a tensor that is made with these sizes; an unknown first size is the number of samples."""
    if not sizes or (len(sizes) == 1 and sizes[0] in (None, exact(0))):
        return None
    first = BATCH_DIM if sizes[0] is None or (len(sizes) > 1 and sizes[0] == exact(0)) else sizes[0]
    return extents.shaped([first, *(size or ANY for size in sizes[1:])], item)


def multiplied(a: Extent | None, b: Extent | None) -> Extent | None:
    """The extent of a matrix product."""
    if a is None or b is None or a.dims is None or b.dims is None or len(a.dims) < 2 or len(b.dims) != 2:
        return None
    return extents.shaped((*a.dims[:-1], b.dims[1]), a.item)


def compared(values: list[V]) -> Extent | None:
    """The extent of an element-wise comparison, a tensor of booleans."""
    found = combined(values)
    return found and found._replace(item=1)


def combined(values: list[V]) -> Extent | None:
    """The extent of an operator's result; Python numbers take the shape of the other operand."""
    tensors = [value.extent for value in values if value.kinds & ~DATA]
    found = tensors[0] if tensors else None
    for other in tensors[1:]:
        found = extents.together(found, other)
    return found


def _item(arguments: Arguments, usual: int) -> int:
    _, dtype = arguments.of(-1, "dtype")
    return BYTES.get(dotted(dtype).rsplit(".", 1)[-1], 4) if dtype is not None else usual


def _joined(own: str, parts: list[V], arguments: Arguments) -> Extent | None:
    # the tensors have the same dimensions but one, so that a known one stands for all
    known: list[Extent | None] = [part.extent for part in parts if part.extent is not None]
    found = functools.reduce(extents.join, known) if known else None
    if found is None or found.dims is None:
        return None
    axes = [1] if own == "hstack" else arguments.axes() or [0]
    if own == "stack":
        found = extents.expanded(found, axes[0])
    return extents.widened(found, axes[0], BATCH_DIM if axes[0] == 0 else (len(parts), extents.NO_BOUND))


# -------------------------------------------------------------------------------------- one tensor


def _operation(own: str, extent: Extent | None, arguments: Arguments) -> Extent | None:
    if own in REDUCE | WITH_INDICES:
        at = 1 if own == "norm" else 0
        value, _ = arguments.of(at, "dim", "axis")
        if value is not None and value.kinds & TENSORS:
            return extents.together(extent, value.extent)  # ``a.max(b)``
        axes = arguments.axes(at)
        keeps = arguments.flag(at + 1, "keepdim", "keepdims")
        return extents.reduced(extent, axes, keeps, 8 if own in _INTEGERS else None)
    if own in _TRUTH:
        return extent and extent._replace(item=1)
    if own in BYTES or own in ("float", "int"):
        return extent and extent._replace(item=BYTES.get(own, 4))
    if own in ("to", "type"):
        _, dtype = arguments.of(0, "dtype")
        item = BYTES.get(dotted(dtype).rsplit(".", 1)[-1]) if dtype is not None else None
        return extent if extent is None or item is None else extent._replace(item=item)
    transfer = _TRANSFERS.get(own)
    if transfer is not None:
        return transfer(extent, arguments)
    return extent if own in _ELEMENTWISE else None


def _flatten(extent: Extent | None, arguments: Arguments) -> Extent | None:
    first, last = (arguments.of(at, name)[0] for at, name in ((0, "start_dim"), (1, "end_dim")))
    numbers = [0 if first is None else first.const, -1 if last is None else last.const]
    return extents.flattened(extent, *numbers) if all(map(is_count, numbers)) else None


def _view(extent: Extent | None, arguments: Arguments) -> Extent | None:
    return extents.viewed(extent, arguments.sizes())


def _transpose(extent: Extent | None, arguments: Arguments) -> Extent | None:
    axes = [value.const for value in arguments.values[:2]]
    return extents.swapped(extent, axes[0], axes[1]) if len(axes) == 2 and all(map(is_count, axes)) else None


def _permute(extent: Extent | None, arguments: Arguments) -> Extent | None:
    exprs = (
        arguments.exprs[0].elements
        if len(arguments.exprs) == 1 and isinstance(arguments.exprs[0], ir.Display)
        else arguments.exprs
    )
    axes = [literal(item) for item in exprs]
    return extents.permuted(extent, [axis for axis in axes if axis is not None])


def _squeeze(extent: Extent | None, arguments: Arguments) -> Extent | None:
    axes = arguments.axes()
    return extents.squeezed(extent, axes[0] if axes else None)


def _unsqueeze(extent: Extent | None, arguments: Arguments) -> Extent | None:
    axes = arguments.axes()
    return extents.expanded(extent, axes[0]) if axes else None


def _topk(extent: Extent | None, arguments: Arguments) -> Extent | None:
    value, expr = arguments.of(0, "k")
    axes = arguments.axes(1) or [-1]
    size = size_of(value, expr) if expr is not None else None
    return extents.widened(extent, axes[0], size or (1, 100)) or (NUMBER._replace(most=100) if extent is None else None)


def _one_hot(extent: Extent | None, arguments: Arguments) -> Extent | None:
    value, expr = arguments.of(0, "num_classes")
    size = size_of(value, expr) if expr is not None else None
    return (
        shaped_as([None, size or FEW], 8) if extent is None else extents.shaped((*(extent.dims or ()), size or FEW), 8)
    )


def _resized(extent: Extent | None, arguments: Arguments) -> Extent | None:
    """The extent of resized pictures or feature maps."""
    _, expr = arguments.of(0, "size")
    sides: tuple[Range, ...] = (SIDE, SIDE)
    if isinstance(expr, ir.Display):
        sides = tuple(size_of(None, item) or SIDE for item in expr.elements)
    channels = extent.dims[:2] if extent is not None and extent.dims is not None else (BATCH_DIM, ANY)
    return extents.shaped((*channels, *sides)) if len(channels) == 2 else None


def _pooled(extent: Extent | None, arguments: Arguments) -> Extent | None:
    """The extent of ``F.adaptive_avg_pool2d(x, 1)``."""
    value, expr = arguments.of(0, "output_size")
    sizes = [size_of(None, item) for item in expr.elements] if isinstance(expr, ir.Display) else None
    if sizes is None:
        size = size_of(value, expr) if expr is not None else None
        sizes = [size, size]
    channels = extent.dims[:2] if extent is not None and extent.dims is not None else (BATCH_DIM, ANY)
    return extents.shaped((*channels, *(size or ANY for size in sizes)))


def _window(extent: Extent | None, arguments: Arguments) -> Extent | None:
    """The extent of ``F.avg_pool2d(x, 4)``."""
    value, expr = arguments.of(0, "kernel_size")
    size = size_of(value, expr) if expr is not None else None
    return windowed(extent, size)


def windowed(extent: Extent | None, kernel: Range | None) -> Extent | None:
    """The extent of a pooled map. The size of a map is unknown by then: a wide window is taken to average all of it."""
    if extent is None or extent.dims is None or len(extent.dims) < 3:
        return extent
    wide = kernel is None or kernel[0] > 3
    sides = [_pooled_side(side, kernel, wide) for side in extent.dims[2:]]
    return extents.shaped((*extent.dims[:2], *sides), extent.item)


def _pooled_side(side: Range, kernel: Range | None, wide: bool) -> Range:
    if side[1] == extents.NO_BOUND:
        return ANY if wide else side
    by = kernel[0] if kernel is not None else 1
    return max(side[0] // max(by, 1), 1), side[1]


_TRANSFERS: dict[str, Callable[[Extent | None, Arguments], Extent | None]] = {
    "flatten": _flatten,
    "view": _view,
    "reshape": _view,
    "transpose": _transpose,
    "swapaxes": _transpose,
    "permute": _permute,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
    "topk": _topk,
    "one_hot": _one_hot,
    "adaptive_avg_pool2d": _pooled,
    "adaptive_max_pool2d": _pooled,
    "avg_pool2d": _window,
    "max_pool2d": _window,
    **dict.fromkeys(_RESIZED, _resized),
}


def member(value: V, index: ir.Expr) -> Extent | None:
    """The extent of ``value[index]``, of a tensor or of a container: the members of a model's output are taken to be
    alike."""
    if value.extent is not None and value.extent.parts:
        return value.extent.part(index.value) if isinstance(index, ir.Const) else None
    if value.kinds & TREE and literal(index) is not None:
        return value.extent
    return indexed(value.extent, index)


def indexed(extent: Extent | None, index: ir.Expr) -> Extent | None:
    """The extent of ``tensor[index]``."""
    if extent is None:
        return None
    parts = index.elements if isinstance(index, ir.Display) and index.kind == "tuple" else (index,)
    if extent.dims is None:
        return Extent(None, 1, extent.most, extent.item)
    dims: list[Range] = []
    rest = list(extent.dims)
    for at, part in enumerate(parts):
        if is_none(part):
            dims.append(exact(1))
        elif isinstance(part, ir.Const) and part.kind == "Ellipsis":
            behind = len(parts) - at - 1
            dims, rest = [*dims, *rest[: len(rest) - behind]], rest[len(rest) - behind :]
        elif not rest:
            return None
        elif isinstance(part, ir.Slice):
            dims.append(_sliced(rest.pop(0), part))
        elif literal(part) is not None:
            rest.pop(0)
        elif len(parts) == 1:
            first = rest.pop(0)
            # a selection of rows, or one row, which is no larger
            dims.append(first if first == BATCH_DIM else (1, first[1]))
        else:
            return Extent(None, 1, extent.most, extent.item)
    return extents.shaped((*dims, *rest), extent.item)


def _sliced(dim: Range, part: ir.Slice) -> Range:
    if dim == BATCH_DIM or (part.lower is None and part.upper is None and part.step is None):
        return dim
    if part.lower is None and part.step is None and part.upper is not None:
        upper = literal(part.upper)
        if upper is not None and upper > 0:
            return min(dim[0], upper), min(dim[1], upper)
    return (1, dim[1])
