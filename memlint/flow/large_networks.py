"""Networks that are known to be large, whatever they are given: pretrained transformers, autoencoders, detectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.frame import Frame, ModelRun
from memlint.flow.given_networks import parameter_of
from memlint.flow.syntax import calls
from memlint.flow.values import V
from memlint.knowledge.sizes import is_large

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


def runs_a_large_network(analyser: Analyser, frame: Frame, run: ModelRun) -> bool:
    """Whether what runs is a large network, by what made it: here, or where a caller gives it."""
    if _is_large(analyser, run.module):
        return True
    name = parameter_of(frame, run)
    given = [record.args.get(name) for _, record in analyser.facts.calls_of(frame.function)] if name else []
    return bool(given) and all(value is not None and _is_large(analyser, value) for value in given)


def _is_large(analyser: Analyser, module: V) -> bool:
    """Whether a library's function made the module, or a part of it."""
    for ref in module.refs:
        if ref.kind == "foreign" and is_large(ref.name):
            return True
        cls = analyser.program.module(ref.key).cls(ref.name) if ref.kind == "instance" else None
        init = cls.methods.get("__init__") if cls is not None else None
        if init is not None and any(
            is_large(analyser.program.outside(init.module, call.func, init)) for call in calls(init.body)
        ):
            return True
    return False
