"""For detect.py of a rule: abstract values, and the effects of a function.

A `V` is an abstract value: its possible ``kinds`` (bits such as ``MODULE | NONE``), the sources of its autograd graphs
(``src``), and its devices. If ``UNKNOWN`` is among its kinds, the value may be anything: that is evidence neither for a
finding nor against it. A `LoopState`, `Store`, `ModelRun` or `Backward` is an effect of a function; a `CallRecord` is a
call of a project function, and an `OutsideCall` one of a library.
"""

from __future__ import annotations

from memlint.analysis.domain.events import SIZES
from memlint.analysis.domain.state import OFF
from memlint.analysis.domain.summary.effects import Backward, CallRecord, LoopState, ModelRun, Store, excluded
from memlint.analysis.domain.values import (
    ACCELERATOR,
    CALLABLE,
    CONTAINER,
    CPU,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NOTHING,
    OPTIMIZER,
    SAMPLE,
    SCALAR,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Source,
    Sources,
    V,
    join_all,
    ordered,
)
from memlint.analysis.transfer.held_values import places_with, tensors_within, variables_with
from memlint.analysis.transfer.library.forward_hooks import OF_MODULES, HookCall
from memlint.analysis.transfer.library.noted_runs import EMPTIES, MetricUse, OutsideCall
from memlint.analysis.transfer.loops import member_and_whole, over_loader
from memlint.analysis.transfer.modules.modes import PARAMETERS
from memlint.analysis.transfer.narrowing import narrow
from memlint.analysis.transfer.stores.context_attributes import FORWARD, OWN, SETUP, Kept
from memlint.analysis.transfer.stores.loop_updates import LoopUpdate, is_place, makes

__all__ = [
    "ACCELERATOR",
    "CALLABLE",
    "CONTAINER",
    "CPU",
    "DATA",
    "EMPTIES",
    "FORWARD",
    "INSTANCE",
    "LOADER",
    "MODULE",
    "NONE",
    "NOTHING",
    "OFF",
    "OF_MODULES",
    "OPTIMIZER",
    "OWN",
    "PARAMETERS",
    "SAMPLE",
    "SCALAR",
    "SETUP",
    "SIZES",
    "TENSOR",
    "TENSORS",
    "TREE",
    "UNKNOWN",
    "UNKNOWN_VALUE",
    "Backward",
    "CallRecord",
    "HookCall",
    "Kept",
    "LoopState",
    "LoopUpdate",
    "MetricUse",
    "ModelRun",
    "OutsideCall",
    "Path",
    "Source",
    "Sources",
    "Store",
    "V",
    "excluded",
    "is_place",
    "join_all",
    "makes",
    "member_and_whole",
    "narrow",
    "ordered",
    "over_loader",
    "places_with",
    "tensors_within",
    "variables_with",
]
