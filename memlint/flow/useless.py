"""Networks that run beside what is trained, and whose output nobody can train by: a target, a teacher, a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.frame import Frame, ModelRun
from memlint.flow.modes import frozen_class
from memlint.flow.spent import is_trial, used_up
from memlint.flow.told import told
from memlint.flow.values import ordered

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


def runs_for_nothing(analyser: Analyser, frame: Frame, run: ModelRun) -> bool:
    """Whether a run in training code (or in a forward) records a graph that nobody can want: every use of its output
    cuts the graph. The network has to be one whose class is in sight, in a file that freezes nothing."""
    marks = {mark for mark in (run.node, *run.value.src) if mark in frame.graphs.nodes}
    if not marks or marks & frame.notes.returned or run.origin is not None or frame.notes.gradients:
        return False
    if run.text.rsplit(".", 1)[-1].startswith("train") or is_trial(frame.function):
        return False  # (a method that trains by itself)
    classes = [cls for ref in ordered(run.module.refs) if ref.kind == "instance" and (cls := analyser.cls(ref))]
    known = bool(classes) or any(ref.kind == "extinstance" for ref in run.module.refs)
    if not known or any(frozen_class(analyser, cls) for cls in classes):
        return False
    if _freezes(frame) or not (frame.backwards or _gives_a_graph(frame)):
        return False
    return told(analyser, frame, run.module, "frozen") is None and used_up(analyser, frame, marks)


def _freezes(frame: Frame) -> bool:
    """Whether the file touches requires_grad of anything: which network that is for, a helper may hide."""
    words = {"requires_grad", "requires_grad_", "set_requires_grad", "freeze"}
    return bool(words & frame.module.index.names)


def _gives_a_graph(frame: Frame) -> bool:
    """Whether a forward gives what can be trained by: one that gives labels alone is one of an evaluation."""
    nodes = frame.graphs.nodes
    return any(item in nodes and nodes[item].model for item in frame.graphs.closure(frame.notes.returned))
