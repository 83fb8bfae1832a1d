"""What is known of values and of what a function does with them, as detect.py of a rule reads it.

A `V` says what a value may be (``kinds``, a set of bits such as ``MODULE | NONE``), which graphs it has (``src``) and
where it lies. ``UNKNOWN`` among its kinds is no knowledge: it speaks neither for a finding nor against it. A
`LoopState`, `Store`, `ModelRun` or `Backward` is what a function was seen to do, and an `OutsideCall` a call that was
noted.
"""

from __future__ import annotations

from memlint.analysis.domain.events import SIZES
from memlint.analysis.domain.state import OFF
from memlint.analysis.domain.summary.effects import Backward, LoopState, ModelRun, Store, excluded
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
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.hook_calls import OF_MODULES, HookCall
from memlint.analysis.transfer.library.noted_calls import EMPTIES, MetricUse, OutsideCall
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
    "tensors_within",
]
