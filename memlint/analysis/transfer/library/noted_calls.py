"""Calls of a few functions outside the project, as they were met: under which tests, in which loop."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.summary.effects import LoopFrame
from memlint.analysis.domain.summary.frame import Frame
from memlint.analysis.domain.values import NOTHING, Args, V, Words
from memlint.analysis.transfer.loops import over_loader
from memlint.ir import nodes as ir

#: what gives the allocator's free memory back
EMPTIES = frozenset(
    f"torch.{device}.{place}empty_cache"
    for device in ("cuda", "mps", "xpu", "npu", "accelerator")
    for place in ("", "memory.")
)


def _readings(*names: str) -> frozenset[str]:
    return frozenset(
        f"torch.{device}.{place}{most}memory_{name}"
        for device in ("cuda", "xpu", "accelerator")
        for place in ("", "memory.")
        for most in ("", "max_")
        for name in names
    )


#: what tensors use, and what the allocator has taken from the driver: that, and free blocks
ALLOCATED, RESERVED = _readings("allocated"), _readings("reserved", "cached")
#: how much of the last second memory was read or written in, in percent
USAGE = "torch.cuda.memory_usage"
COUNTS = "gc.get_count"
SIZE = "sys.getsizeof"
#: diagnostics that stay on once they are
ANOMALIES = frozenset(
    f"torch.autograd.{place}{name}"
    for place in ("", "anomaly_mode.")
    for name in ("set_detect_anomaly", "detect_anomaly")
)
HISTORY = frozenset({"torch.cuda.memory._record_memory_history", "torch.cuda._record_memory_history"})
PROFILERS = frozenset({"torch.profiler.profile", "torch.autograd.profiler.profile"})
#: what spreads a model over the devices of one process
SPREADS = frozenset(f"torch.nn.{place}DataParallel" for place in ("", "parallel.", "parallel.data_parallel."))
#: what makes a data set of tensors
TENSOR_SETS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})
#: what keeps all that it has gone through
KEEPS_ALL = frozenset({"itertools.cycle", "itertools.tee"})
COLLECTS = "gc.collect"
#: the functions that rooms ask about, by qualified name, and those that they ask about where a loader is given
NOTED = frozenset().union(
    *(EMPTIES, RESERVED, SPREADS, TENSOR_SETS, KEEPS_ALL, ANOMALIES, HISTORY, PROFILERS),
    {"torch.load", "torch.autograd.grad", "copy.deepcopy", COLLECTS, USAGE, COUNTS, SIZE},
)
NOTED_OF_LOADERS = frozenset({"builtins.list", "builtins.tuple"})


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost loop around it whose rounds are iterations; ``tests``: those of the
    ifs around it in the function; ``given``: its first argument, or its ``dataset``."""

    name: str
    expr: ir.Call
    loop: LoopFrame | None
    tests: tuple[ir.Expr, ...]
    given: V


@dataclass(slots=True)
class MetricUse:
    """A metric object takes the values of a batch. ``name``: its class, qualified; ``held``: where it is."""

    name: str
    expr: ir.Call
    held: ir.Expr
    loops: tuple[LoopFrame, ...]


#: methods of metric objects that add to their state
_ADDS = frozenset({"update", "forward", "__call__"})


def metric_used(frame: Frame, name: str, method: str, expr: ir.Call) -> None:
    """A method of a metric object is called."""
    held = expr.func
    if method in _ADDS and (method == "__call__" or isinstance(held, ir.Attr)):
        if isinstance(held, ir.Attr) and held.name == method:
            held = held.value
        frame.notes.metrics[expr.at] = MetricUse(name, expr, held, tuple(frame.loops))


def noted(frame: Frame, name: str, expr: ir.Call, args: Args, words: Words) -> None:
    """A function outside the project is called."""
    given = args[0] if args else words.get("dataset", NOTHING)
    if name in NOTED or (name in NOTED_OF_LOADERS and over_loader(given)):
        frame.notes.outside[expr.at] = OutsideCall(name, expr, frame.innermost(()), tuple(frame.tests), given)
