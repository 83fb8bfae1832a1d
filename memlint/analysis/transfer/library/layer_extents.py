"""Transfer functions of layers on the extents of tensors, by the numbers that the layers were made with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from memlint.analysis.domain.extents import extents
from memlint.analysis.domain.extents.extents import ANY, BATCH_DIM, SAME_LAYERS, SIDE, Extent, Range, exact
from memlint.analysis.domain.values import V
from memlint.analysis.transfer.library.extent_ops import FEW, Arguments, size_of, windowed
from memlint.ir import nodes as ir

#: the upper bound of a number; None for unknown
Most = Callable[[ir.Expr], int | None]


class Layer(NamedTuple):
    """A layer of torch: ``name`` is its class, ``numbers`` its known constructor arguments."""

    name: str
    numbers: tuple[Range | None, ...] = ()
    #: the members of a ``Sequential``
    inner: tuple[Layer | None, ...] = ()


#: the arguments that determine a layer's output, by position and by name
_NUMBERS: dict[str, tuple[tuple[int, str], ...]] = {
    "Linear": ((1, "out_features"),),
    "LazyLinear": ((0, "out_features"),),
    "Bilinear": ((2, "out_features"),),
    "Embedding": ((1, "embedding_dim"),),
    "Flatten": ((0, "start_dim"),),
    **{f"Conv{n}d": ((1, "out_channels"), (2, "kernel_size"), (4, "padding")) for n in (1, 2, 3)},
    **{f"ConvTranspose{n}d": ((1, "out_channels"), (2, "kernel_size"), (4, "padding")) for n in (1, 2, 3)},
    **{f"Adaptive{kind}Pool{n}d": ((0, "output_size"),) for kind in ("Avg", "Max") for n in (1, 2, 3)},
    **{f"{kind}Pool{n}d": ((0, "kernel_size"),) for kind in ("Avg", "Max") for n in (1, 2, 3)},
}
_SAME = SAME_LAYERS | {"BatchNorm2d", "BatchNorm3d", "InstanceNorm2d", "GroupNorm", "SyncBatchNorm", "Dropout2d"}
_SCALED = frozenset({"Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d", "PixelShuffle"})
#: layers of which only the width is bounded by a project-wide number
_WIDTHS = frozenset({"Linear", "LazyLinear", "Bilinear", "Embedding"})
#: layers that return a vector for each step of a sequence
_STEPS = frozenset({
    "GRU", "LSTM", "MultiheadAttention", "RNN", "Transformer", "TransformerDecoder", "TransformerDecoderLayer",
    "TransformerEncoder", "TransformerEncoderLayer",
})  # fmt: skip
_KNOWN = _NUMBERS.keys() | _SAME | _SCALED | _STEPS | {"Sequential"}
_SEQUENCE = extents.shaped((BATCH_DIM, ANY, ANY))
#: longest chain that is kept
_MAX_CHAIN = 64


def layer_of(name: str, args: list[V], words: dict[str, V], expr: ir.Call, most: Most) -> Layer | None:
    """The layer that a call of a class of torch makes; None where its output is unknown. ``most``: the upper bound
    of a number."""
    own = name.removeprefix("torch.nn.")
    if own not in _KNOWN or not name.startswith("torch.nn."):
        return None
    if own == "Sequential":
        known = len(args) <= _MAX_CHAIN and not any(isinstance(arg, ir.Starred) for arg in expr.args)
        return Layer(own, (), tuple(of_value(arg) for arg in args)) if known and args else None
    arguments = Arguments(args, words, expr)
    numbers = []
    for at, word in _NUMBERS.get(own, ()):
        value, shown = arguments.of(at, word)
        if isinstance(shown, ir.Display) and shown.elements:  # sizes of both sides: the first counts
            value, shown = None, shown.elements[0]
        size = size_of(value, shown) if shown is not None else None
        if shown is not None and own in _WIDTHS and (size is None or size == FEW):
            bound = most(shown)
            size = (1, bound) if bound is not None and bound * 4 <= extents.LARGE else size
        numbers.append(size)
    return Layer(own, tuple(numbers))


def of_value(value: V) -> Layer | None:
    """The layer that a value is; None for another value."""
    if len(value.refs) != 1:
        return None
    ref = next(iter(value.refs))
    return next((held for word, held in ref.keywords if word == "layer"), None) if ref.kind == "extinstance" else None


def applied(layer: Layer | None, extent: Extent | None) -> Extent | None:
    """The extent of a layer's output."""
    if layer is None:
        return of_unknown(extent)
    own = layer.name
    if own == "Sequential":
        for inner in layer.inner:
            extent = applied(inner, extent)
        return extent
    if own in ("Linear", "LazyLinear", "Bilinear"):
        width = layer.numbers[0] or ANY
        if extent is not None and extent.dims is not None:
            return extents.widened(extent, -1, width)
        return extents.shaped((BATCH_DIM, width))
    if own == "Embedding":
        width = layer.numbers[0] or ANY
        return extents.shaped((*((extent and extent.dims) or (BATCH_DIM, ANY)), width))
    if own.startswith("Conv"):
        return _convolved(layer, extent)
    if own.startswith("Adaptive"):
        return _pooled(layer, extent)
    if "Pool" in own:
        return windowed(extent, layer.numbers[0])
    if own == "Flatten":
        first = layer.numbers[0]
        return extents.flattened(extent, 1 if first is None else first[0])
    if own in _STEPS:
        return _SEQUENCE
    if own in _SCALED:
        return extent if extent is None or extent.dims is None else _scaled(extent)
    return extent


def of_unknown(extent: Extent | None) -> Extent | None:
    """The extent of the output of an unknown layer: a sequence of vectors gives another one."""
    return _SEQUENCE if extent is not None and extent.dims is not None and len(extent.dims) == len("BTC") else None


def _rank(layer: Layer) -> int:
    return int(layer.name[-2])


def _convolved(layer: Layer, extent: Extent | None) -> Extent | None:
    """The extent of a feature map. An unknown map has a picture's sides; a wide kernel without padding may cover all
    of it."""
    channels, kernel, padding = layer.numbers
    sides = extent.dims[2:] if extent is not None and extent.dims is not None else ()
    if len(sides) != _rank(layer):
        sides = (SIDE if _rank(layer) > 1 else ANY,) * _rank(layer)
    unpadded = padding is None or padding == exact(0)
    if kernel is not None and kernel[0] > 3 and unpadded and not layer.name.startswith("ConvTranspose"):
        taken = kernel[0] - 1
        sides = tuple(ANY if high == extents.NO_BOUND else (max(low - taken, 1), high) for low, high in sides)
    return extents.shaped((BATCH_DIM, channels or ANY, *sides))


def _pooled(layer: Layer, extent: Extent | None) -> Extent | None:
    size = layer.numbers[0]
    channels = extent.dims[:2] if extent is not None and extent.dims is not None else (BATCH_DIM, ANY)
    return extents.shaped((*channels[:2], *((size or ANY,) * _rank(layer)))) if len(channels) > 1 else None


def _scaled(extent: Extent) -> Extent:
    dims = extent.dims or ()
    return extents.shaped(
        (*dims[:2], *(SIDE if high >= SIDE[0] else (low, extents.NO_BOUND) for low, high in dims[2:]))
    )
