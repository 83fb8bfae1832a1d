"""What all rules on graphs that outlive an iteration say alike: how grave the growth is, and how often it happens."""

from __future__ import annotations

from typing import NamedTuple

from memlint.analysis.domain.events import Carry, Loop, Retain, Step, Value
from memlint.finding import GrowthKind, Severity
from memlint.patterns import lazy_pattern


class Weight(NamedTuple):
    """How grave growth is: of saved activations (``activations``), and of a graph's nodes on the host alone."""

    activations: Severity
    nodes: Severity


#: what a loop goes through that has few members: the networks of an object, their optimizers, the losses of one step
_PARTS = lazy_pattern(
    r"\bin .*\b(optimi[sz]ers|optims|criteria|criterions|loss_fns|loss_functions|\w*models|networks|nets)\b"
)


def weight(event: Carry | Retain, most: Severity = "error") -> Weight:
    """How grave growth is by what bounds it, and by where it is.

    An error grows on the device, with batches, epochs or calls. The host has more memory than the device; the steps of
    a sequence, or a handful of parts, end, and where the model should not record at all, MEM201 says so at its call.
    ``most``: what a rule says at most, whose errors are not right often enough on code that nobody here has seen.
    """
    passing = event.loop.ends and (event.place.kind in ("local", "parameter") or event.in_model_loop)
    if passing:
        return Weight("note", "note")
    bounded = bool(event.reset) or event.value.graph_device == "cpu" or not event.loop.over_data
    # (a setting tells how often a method repeats itself on what it was given, a handful of times; a batch has few rows,
    # and a training step few optimizers)
    few = event.loop.over in ("range", "rows") or _PARTS.search(event.loop.text) is not None
    repeats = few and event.place.kind == "local" and event.value.freed == "yes"
    small = event.loop.every == "epoch" or bool(event.reset or event.emptied) or repeats
    return Weight("warning" if bounded else most, "note" if small else "warning")


def kind_of_growth(loop: Loop) -> GrowthKind:
    return "per-epoch" if loop.every == "epoch" else "per-iteration"


def each_round(loop: Loop) -> str:
    """``each iteration of `for x in xs` ``, ``each call of training_step``"""
    return loop.text if loop.kind == "calls" else f"each iteration of `{loop.text}`"


def leaves_graph(value: Value) -> str:
    """What is said, behind an advice, to who has moved a tensor to the host with its graph."""
    left = value.moved and value.freed in ("no", "some")
    return " (`.cpu()` alone leaves its graph on the device)" if left else ""


def cause(event: Carry | Retain) -> tuple[Step, ...]:
    """What else is known of a growing place: what bounds it, and the other finding that explains its graph."""
    steps = []
    if event.reset:
        steps.append(Step(event.site, f"`{event.place.text}` is {event.reset}"))
    if event.emptied:
        steps.append(Step(event.site, f"`{event.emptied}` empties `{event.place.text}`"))
    if event.in_model_loop:
        steps.append(Step(event.site, "the model runs without `torch.no_grad()` (MEM201 reports the same memory)"))
    return tuple(steps)
