"""Records of data loaders and model calls, and the extents of batches."""

from __future__ import annotations

from memlint.analysis.domain.bound_names import argument, bindings
from memlint.analysis.domain.extents import extents
from memlint.analysis.domain.extents.extents import ANY, BATCH_DIM, Extent
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CONTAINER, DATA, TENSOR, Ref, V
from memlint.analysis.syntax.syntax import last_name
from memlint.ir import nodes as ir


def note_loader(fn: FunctionState, expr: ir.Call) -> None:
    """Record that a DataLoader is made."""
    fn.notes.loaders[expr.at] = expr


def hold_one_sample(name: str, call: ir.Call, words: dict[str, V]) -> bool:
    """Whether each batch of a new data loader is a single sample, which is torch's default."""
    batch_size = argument(call, 1, "batch_size")
    if batch_size is not None:
        return (words["batch_size"].const if "batch_size" in words else getattr(batch_size, "value", None)) == 1
    otherwise = any(word.name in (None, "batch_sampler") for word in call.keywords) or len(call.args) > 1
    return name.endswith(".DataLoader") and not otherwise


#: the data set class whose samples are rows of tensors
TENSORS = "torch.utils.data.TensorDataset"
#: calls that make an array or a tensor of rows in memory
_ARRAYS = frozenset({
    "FloatTensor", "Tensor", "TensorDataset", "array", "as_tensor", "asarray", "astype", "from_numpy", "tensor",
    "to_numpy",
})  # fmt: skip


def of_tensors(tensors: list[V]) -> Extent | None:
    """The extent of a batch of rows of these tensors."""
    parts = tuple((str(at), value.extent or extents.UNBOUNDED) for at, value in enumerate(tensors))
    return extents.UNBOUNDED._replace(parts=parts) if parts else None


def of_loader(fn: FunctionState, name: str, args: list[V], words: dict[str, V], call: ir.Call) -> Extent | None:
    """The extent of a data loader's batches, by the samples that the data set's class returns or as rows of an
    array; None for unknown."""
    if not name.endswith(".DataLoader") or any(word.name in (None, "collate_fn") for word in call.keywords):
        return None
    dataset, shown = args[0] if args else words.get("dataset"), argument(call, 0, "dataset")
    if dataset is None or shown is None:
        return None
    if dataset.extent is not None:
        return dataset.extent
    classes = [ref for ref in dataset.refs if ref.kind == "instance"]
    if classes:
        return _of_class(fn, classes[0]) if len(classes) == 1 else None
    return extents.UNBOUNDED if _is_array(fn, shown) else None


def _of_class(fn: FunctionState, ref: Ref) -> Extent | None:
    """The extent of the batches of a data set class's samples, by what its ``__getitem__`` returns; None for
    unknown."""
    summary = fn.analyser.summary(fn.analyser.program.method(fn.analyser.cls(ref), "__getitem__"))
    if summary is None or summary.exit is None or summary.result is None:
        return None
    result = summary.result
    if not result.is_only(CONTAINER) or len(result.objs) != 1:
        return _batched(result)
    obj = summary.exit.heap.get(next(iter(result.objs)))
    if obj is None or obj.elem.kinds:
        return None
    parts = tuple((name, _batched(value)) for name, value in obj.fields.items())
    return extents.UNBOUNDED._replace(parts=parts) if any(part is not None for _, part in parts) else None


def _batched(sample: V) -> Extent | None:
    """The extent of a batch of samples."""
    if isinstance(sample.const, int | float) and sample.is_only(DATA):
        return extents.shaped((BATCH_DIM,), 8)
    known = sample.extent
    if known is None or known.dims is None or not sample.is_only(TENSOR):
        return None
    return extents.shaped((BATCH_DIM, *(ANY if dim == BATCH_DIM else dim for dim in known.dims)), known.item)


def _is_array(fn: FunctionState, expr: ir.Expr) -> bool:
    """Whether an expression makes an array, or is a variable for one."""
    if isinstance(expr, ir.Name):
        bound = bindings(fn.function.body).get(expr.id, [])
        return bool(bound) and all(not unpacked and _makes_array(value) for value, unpacked in bound)
    return _makes_array(expr)


def _makes_array(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and last_name(expr.func) in _ARRAYS


def note_model_call(fn: FunctionState, expr: ir.Call) -> None:
    """Record that a model runs."""
    fn.notes.forwards.add(expr.at)
    if expr.args:
        fn.notes.models[expr.at] = expr
