"""The size of a tensor, as far as the code bounds it: an interval of bytes for one sample, and the dimensions.

None instead of an extent means unknown: neither small nor large. A dimension is an interval as well. The first of two
or more dimensions counts samples, so it does not count for the bytes of one sample.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal, NamedTuple

#: the least and the most that a number may be
Range = tuple[int, int]
Weight = Literal["small", "large", "unknown"]

NO_BOUND = 1 << 48
ANY: Range = (1, NO_BOUND)
#: the samples of a batch
BATCH_DIM: Range = (0, NO_BOUND)
#: a side of a picture, or of a feature map of which nothing more is known
SIDE: Range = (96, NO_BOUND)
#: bytes of a sample: up to SMALL no warning is due, above LARGE it is
SMALL, LARGE = 512, 8192
#: the bytes of a number by the name of its type; 4 for other types
BYTES = {
    "float64": 8,
    "double": 8,
    "int64": 8,
    "long": 8,
    "LongTensor": 8,
    "DoubleTensor": 8,
    "float16": 2,
    "half": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint8": 1,
    "int8": 1,
    "byte": 1,
    "bool": 1,
    "BoolTensor": 1,
    "ByteTensor": 1,
}
#: the bounds to which a join widens two different dimensions, so that loops reach a fixpoint
_STEPS = (0, 1, SIDE[0], NO_BOUND)


class Extent(NamedTuple):
    """``least`` and ``most`` numbers of ``item`` bytes in a sample; ``dims``: None if their count is unknown."""

    dims: tuple[Range, ...] | None
    least: int
    most: int
    item: int = 4
    #: the members of a batch, by position or key, as far as they are known
    parts: tuple[tuple[str, Extent | None], ...] = ()

    def part(self, name: object) -> Extent | None:
        return next((part for one, part in self.parts if one == str(name)), None)

    @property
    def weight(self) -> Weight:
        if self.most * self.item <= SMALL:
            return "small"
        return "large" if self.least * self.item > LARGE else "unknown"


#: a tensor of which nothing is known
UNBOUNDED = Extent(None, 1, NO_BOUND)
#: one number, or one number for each sample
NUMBER = Extent(None, 1, 1, 8)


def shaped(dims: Iterable[Range], item: int = 4) -> Extent:
    """The extent of a tensor of these dimensions."""
    known = tuple(dims)
    numbers = product(known[1:] if len(known) > 1 or known == (BATCH_DIM,) else known)
    return Extent(known, *numbers, item)


def exact(size: int) -> Range:
    return (size, size)


def product(dims: Iterable[Range]) -> Range:
    known = tuple(dims)
    return (
        min(math.prod(low for low, _ in known), NO_BOUND),
        min(math.prod(high for _, high in known), NO_BOUND),
    )


def join(a: Extent | None, b: Extent | None) -> Extent | None:
    """The smallest extent that covers both; None if one is unknown."""
    if a is None or b is None or a == b:
        return a if a == b else None
    item = max(a.item, b.item)
    if a.dims is not None and b.dims is not None and len(a.dims) == len(b.dims):
        return shaped([_hull(one, other) for one, other in zip(a.dims, b.dims, strict=True)], item)
    return Extent(None, *_hull((a.least, a.most), (b.least, b.most)), item)


def _hull(a: Range, b: Range) -> Range:
    if a == b:
        return a
    low, high = min(a[0], b[0]), max(a[1], b[1])
    if a[0] != b[0]:
        low = max(step for step in _STEPS if step <= low)
    if a[1] != b[1]:
        high = min(step for step in (SMALL // 8, NO_BOUND) if step >= high)
    return low, high


def together(a: Extent | None, b: Extent | None) -> Extent | None:
    """The extent of an elementwise operation on two tensors, by the rules of broadcasting."""
    if a is None or b is None:
        return None
    item = max(a.item, b.item)
    if a.dims is None or b.dims is None:
        most = a.most * b.most if a.most != b.most else a.most
        return Extent(None, max(a.least, b.least), min(most, NO_BOUND), item)
    size = max(len(a.dims), len(b.dims))
    pairs = zip(_padded(a.dims, size), _padded(b.dims, size), strict=True)
    return shaped([_wider(one, other) for one, other in pairs], item)


def _wider(a: Range, b: Range) -> Range:
    return BATCH_DIM if BATCH_DIM in (a, b) else (max(a[0], b[0]), max(a[1], b[1]))


def _padded(dims: tuple[Range, ...], size: int) -> tuple[Range, ...]:
    return (exact(1),) * (size - len(dims)) + dims


def axis_of(extent: Extent, axis: int) -> int | None:
    """The index of a dimension that is counted from either end; None if there is none."""
    if extent.dims is None or not -len(extent.dims) <= axis < len(extent.dims):
        return None
    return axis % len(extent.dims)


def reduced(extent: Extent | None, axes: Iterable[int] | None, keeps: bool, item: int | None = None) -> Extent | None:
    """The extent after a reduction over some dimensions (None: over all, which leaves one number)."""
    if axes is None:
        return NUMBER
    if extent is None:
        return None
    bytes_ = extent.item if item is None else item
    found = [axis_of(extent, axis) for axis in axes]
    if extent.dims is None or None in found:
        return Extent(None, 1, extent.most, bytes_)
    rest = [exact(1) if at in found else dim for at, dim in enumerate(extent.dims) if keeps or at not in found]
    return shaped(rest, bytes_)


def flattened(extent: Extent | None, first: int = 0, last: int = -1) -> Extent | None:
    if extent is None:
        return None
    low, high = axis_of(extent, first), axis_of(extent, last)
    if extent.dims is None or low is None or high is None:
        return shaped((BATCH_DIM, (extent.least, extent.most)), extent.item) if first == 1 else None
    if low == 0 and extent.dims[0] == BATCH_DIM:
        return shaped((BATCH_DIM,), extent.item) if len(extent.dims) == 1 else None
    return shaped((*extent.dims[:low], product(extent.dims[low : high + 1]), *extent.dims[high + 1 :]), extent.item)


def permuted(extent: Extent | None, axes: list[int]) -> Extent | None:
    """The extent with the dimensions in another order."""
    if extent is None or extent.dims is None or len(axes) != len(extent.dims):
        return extent and extent._replace(dims=None)
    return shaped([extent.dims[axis] for axis in axes if -len(axes) <= axis < len(axes)], extent.item)


def swapped(extent: Extent | None, one: int, other: int) -> Extent | None:
    if extent is None or (a := axis_of(extent, one)) is None or (b := axis_of(extent, other)) is None:
        return extent and extent._replace(dims=None)
    order = list(range(len(extent.dims or ())))
    order[a], order[b] = order[b], order[a]
    return permuted(extent, order)


def viewed(extent: Extent | None, sizes: list[Range | None]) -> Extent | None:
    """The extent of the same numbers in other dimensions; a size of None is unknown or computed."""
    item = 4 if extent is None else extent.item
    if sizes and None not in sizes[1:]:
        return shaped([BATCH_DIM if sizes[0] is None else sizes[0], *(size or ANY for size in sizes[1:])], item)
    if extent is None or len(sizes) < 2:
        return None
    if sizes.count(None) == (2 if sizes[0] is None else 1):  # ``view(x.size(0), -1)``: the rest of the sample
        known = product(size for size in sizes if size is not None)
        rest = (max(extent.least // max(known[1], 1), 1), extent.most // max(known[0], 1))
        return shaped([BATCH_DIM, *(rest if size is None else size for size in sizes[1:])], item)
    return Extent(None, extent.least, extent.most, item)


def expanded(extent: Extent | None, axis: int) -> Extent | None:
    """The extent with one more dimension of size one."""
    if extent is None or extent.dims is None or not -len(extent.dims) - 1 <= axis <= len(extent.dims):
        return extent and extent._replace(dims=None)
    at = axis + len(extent.dims) + 1 if axis < 0 else axis
    return shaped((*extent.dims[:at], exact(1), *extent.dims[at:]), extent.item)


def squeezed(extent: Extent | None, axis: int | None) -> Extent | None:
    if extent is None or extent.dims is None:
        return extent
    gone = axis_of(extent, axis) if axis is not None else None
    dims = [dim for at, dim in enumerate(extent.dims) if dim != exact(1) or (axis is not None and at != gone)]
    return shaped(dims, extent.item)


def widened(extent: Extent | None, axis: int, size: Range) -> Extent | None:
    """The extent with another size in one dimension: a layer over the last one, a concatenation."""
    if extent is None or extent.dims is None or (at := axis_of(extent, axis)) is None:
        return None
    return shaped((*extent.dims[:at], size, *extent.dims[at + 1 :]), extent.item)


#: functions and methods whose result has the shape of their first operand
SAME = frozenset({
    "DoubleTensor", "FloatTensor", "LongTensor", "Tensor", "Variable", "abs", "array", "as_tensor", "asarray",
    "ascontiguousarray", "astype", "bool", "clamp", "clip", "clone", "contiguous", "copy", "cos", "cpu", "cuda",
    "data", "detach", "double", "dropna", "dropout", "elu", "exp", "fillna", "float", "from_numpy", "gelu", "half",
    "int", "leaky_relu", "log", "log1p", "log_softmax", "logsigmoid", "long", "neg", "normalize", "numpy",
    "ones_like", "pow", "rand_like", "randn_like", "relu", "relu_", "requires_grad_", "reset_index", "round",
    "selu", "sigmoid", "silu", "sin", "softmax", "softplus", "sqrt", "square", "tanh", "tensor", "to", "type",
    "type_as", "zeros_like",
})  # fmt: skip
#: layers of torch.nn whose output has the shape of their input
SAME_LAYERS = frozenset({
    "AlphaDropout", "BatchNorm1d", "CELU", "Dropout", "ELU", "GELU", "Hardswish", "Hardtanh", "Identity",
    "LayerNorm", "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax",
    "Softplus", "Softsign", "Tanh",
})  # fmt: skip
REDUCE = frozenset({"sum", "mean", "amax", "amin", "norm", "std", "var", "prod", "logsumexp", "argmax", "argmin"})
WITH_INDICES = frozenset({"max", "min", "median"})
