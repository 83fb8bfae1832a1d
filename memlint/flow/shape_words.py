"""Shapes as they are told of, and what torch, numpy, pandas and scikit-learn make them of.

A dimension is a number, `MANY` (a batch, a data set: more than one) or `ANY` (of which nothing is known).
"""

from __future__ import annotations

from typing import NamedTuple

MANY, ANY = "many", "any"
Dim = int | str


class Shape(NamedTuple):
    """``by_layer``: what makes the last dimension one is a layer, or a choice of one column, and no view.
    ``at_least``: there may be more dimensions before these, and the first of them may be larger."""

    dims: tuple[Dim, ...]
    by_layer: bool = False
    at_least: bool = False


class Parts(NamedTuple):
    """A tuple of values of known shapes (None: of one that is not known)."""

    items: tuple[Shape | Parts | None, ...]


class Members(NamedTuple):
    """What is gone through one by one."""

    each: Shape | Parts | None


Known = Shape | Parts | Members
SCALAR = Shape(())

#: functions and methods whose result has the shape of what they are given first
SAME = frozenset(
    {
        "DoubleTensor",
        "FloatTensor",
        "LongTensor",
        "Tensor",
        "Variable",
        "abs",
        "array",
        "as_tensor",
        "asarray",
        "ascontiguousarray",
        "astype",
        "bool",
        "clamp",
        "clip",
        "clone",
        "contiguous",
        "copy",
        "cos",
        "cpu",
        "cuda",
        "data",
        "detach",
        "double",
        "dropna",
        "dropout",
        "elu",
        "exp",
        "fillna",
        "float",
        "from_numpy",
        "gelu",
        "half",
        "int",
        "leaky_relu",
        "log",
        "log1p",
        "log_softmax",
        "logsigmoid",
        "long",
        "neg",
        "normalize",
        "numpy",
        "ones_like",
        "pow",
        "rand_like",
        "randn_like",
        "relu",
        "relu_",
        "requires_grad_",
        "reset_index",
        "round",
        "selu",
        "sigmoid",
        "silu",
        "sin",
        "softmax",
        "softplus",
        "sqrt",
        "square",
        "tanh",
        "tensor",
        "to",
        "type",
        "type_as",
        "zeros_like",
    }
)
#: layers of torch.nn whose output has the shape of their input
SAME_LAYERS = frozenset(
    {
        "AlphaDropout",
        "BatchNorm1d",
        "CELU",
        "Dropout",
        "ELU",
        "GELU",
        "Hardswish",
        "Hardtanh",
        "Identity",
        "LayerNorm",
        "LeakyReLU",
        "LogSigmoid",
        "Mish",
        "PReLU",
        "ReLU",
        "ReLU6",
        "SELU",
        "SiLU",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Softsign",
        "Tanh",
    }
)
FACTORIES = frozenset({"zeros", "ones", "rand", "randn", "empty"})
REDUCE = frozenset({"sum", "mean", "amax", "amin", "norm", "std", "var", "prod", "logsumexp", "argmax", "argmin"})
WITH_INDICES = frozenset({"max", "min", "median"})
TABLES = frozenset({"pandas.read_csv", "pandas.read_excel", "pandas.read_parquet", "pandas.read_table"})
#: data sets of scikit-learn with one number to predict for each sample
ONE_TARGET = frozenset(
    {"load_diabetes", "load_boston", "fetch_california_housing", "load_breast_cancer", "load_iris", "load_digits"}
)
#: names of factors that are plain numbers
FACTOR = frozenset({"gamma", "discount", "discount_factor", "alpha", "beta", "tau", "eps", "epsilon", "lr", "GAMMA"})


OF_TABLES = frozenset({"dropna", "fillna", "reset_index", "sample", "copy", "drop_duplicates", "sort_values", "astype"})
LOADERS = frozenset({"torch.utils.data.DataLoader", "torch.utils.data.dataloader.DataLoader"})
TENSOR_SETS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})
#: arguments of a loader that leave its batches as they are
USUAL = frozenset({"dataset", "batch_size", "shuffle", "num_workers", "pin_memory", "drop_last", "generator"})


def is_row(shape: Shape) -> bool:
    """Whether the last dimension is a batch, for all that is known."""
    return bool(shape.dims) and is_many(shape.dims[-1])


def is_many(dim: Dim) -> bool:
    return dim == MANY or (isinstance(dim, int) and dim > 1)


def meets_apart(column: Shape, row: Shape) -> bool:
    """Whether two shapes, of one number for each sample both, give the batch twice when they meet."""
    if column.at_least or len(column.dims) != 2 or column.dims[1] != 1 or not is_many(column.dims[0]):
        return False
    return is_row(row) and len(row.dims) == 1


def padded(dims: tuple[Dim, ...], size: int) -> tuple[Dim, ...]:
    return (1,) * (size - len(dims)) + dims


def wider(a: Dim, b: Dim) -> Dim:
    if a == 1 or a == b:
        return b
    if b == 1:
        return a
    if isinstance(a, int) or isinstance(b, int):
        return a if isinstance(a, int) else b
    return MANY if MANY in (a, b) else ANY


def member(value: Known | None) -> Shape | Parts | None:
    if isinstance(value, Members):
        return value.each
    if isinstance(value, Shape) and value.dims and not value.at_least:
        return Shape(value.dims[1:])
    return None


def part_of(value: Known, at: int) -> Shape | Parts | None:
    if isinstance(value, Parts) and -len(value.items) <= at < len(value.items):
        return value.items[at]
    return None


def batched(sample: Shape | Parts | None) -> Shape | Parts | None:
    """What a loader makes of samples."""
    if isinstance(sample, Shape):
        return None if sample.at_least else Shape((MANY, *sample.dims))
    if isinstance(sample, Parts):
        return Parts(tuple(batched(one) for one in sample.items))
    return None
