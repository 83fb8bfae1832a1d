"""MEM112: a backward keeps, or records, a graph that nothing differentiates again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Drop, Event, Facts, Growth, Loop, Meta, Plan, Replace, Report, Site

META = Meta(
    code="MEM112",
    name="graph-kept-by-backward",
    summary="A backward keeps its graph, or records that of the gradients, and nothing uses it again.",
    severity="warning",
)


class KeptGraph(Event, frozen=True, gc=False, kw_only=True):
    """A backward keeps or records a graph that nothing differentiates again.

    ``kind``: retain (no other backward uses the graph that is kept), gradients (``backward`` records the graph of the
    gradients, and only an optimizer reads them), inputs (the same for the gradients of inputs, ``alive``), rounds (a
    backward for each member of a collection, ``alive``, also keeps the graph after the last one), result (every use of
    the result of ``autograd.grad`` detaches the graph that it records). ``word``: the literal argument. ``alive``: the
    names that hold the graph while the model runs in the next iteration of ``loop`` (for result: only with an
    accelerator). ``flag``: a parameter without which the result keeps its graph ("" for none). ``kept``: an argument of
    its own keeps the differentiated graph. ``sure``: no unknown code contributes to the graph (for retain).
    """

    kind: Literal["retain", "gradients", "inputs", "rounds", "result"]
    text: str
    word: Site
    alive: tuple[str, ...] = ()
    loop: Loop | None = None
    flag: str = ""
    kept: bool = False
    sure: bool = True


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(KeptGraph):
        yield Report(
            site=event.site,
            message=_message(event),
            help=_help(event),
            severity="warning" if _is_large(event) else "note",
            confidence=event.certainty,
            growth=Growth("device-graph", "per-iteration" if event.kind == "inputs" else "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _is_large(event: KeptGraph) -> bool:
    """Whether the graph is alive beside another one in each iteration."""
    if event.kind == "retain":
        return bool(event.alive) and event.sure
    if event.kind == "rounds":
        return False
    return event.kind in ("gradients", "inputs") or (event.loop is not None and not event.flag)


def _message(event: KeptGraph) -> str:
    if event.kind == "retain":
        uses = "uses" if event.sure else "is seen to use"
        kept = f"`{event.text}` keeps the saved activations, and no other backward() {uses} the graph"
        if not event.alive:
            return f"{kept}: they stay in device memory until the function returns"
        names = " and ".join(f"`{name}`" for name in event.alive[:2])
        hold = "holds" if len(event.alive) == 1 else "hold"
        return f"{kept}: {names} {hold} them in device memory while the next iteration runs the model"
    if event.kind == "rounds":
        return (
            f"`{event.text}` keeps the graph after the last of `{event.alive[0]}` too, where no other backward() needs "
            "it: the activations stay in device memory until the losses are freed"
        )
    if event.kind == "inputs":
        return (
            f"`{event.text}` records the graph of all gradients, though only that of `{event.alive[0]}` is read: "
            f"device memory grows by it, in a cycle of `{event.alive[0]}` and its gradient"
        )
    if event.kind == "gradients":
        return (
            f"`{event.text}` records the graph of all gradients, which only an optimizer reads: it stays in device "
            "memory, in a cycle with the parameters, until the gradients are cleared"
        )
    where = f" where `{event.flag}` holds" if event.flag else ""
    return (
        f"`{event.text}` records the graph of the gradients, and every use of them{where} cuts it: the peak rises by a "
        "graph that is never used"
    )


def _help(event: KeptGraph) -> str:
    if event.kind == "retain":
        return "remove `retain_graph=True`, so that backward() frees each activation as soon as it is used"
    if event.kind == "rounds":
        return "keep the graph for all but the last one: `retain_graph=i < len(losses) - 1`"
    if event.kind == "inputs":
        name = event.alive[0]
        return f"use `torch.autograd.grad(…, {name}, create_graph=True)`, which sets no `.grad` of the parameters"
    if event.kind == "gradients":
        return (
            "remove `create_graph=True`; to differentiate through a gradient step, use "
            "`torch.autograd.grad(…, create_graph=True)` and update by hand"
        )
    if event.flag:
        return f"pass `create_graph=not {event.flag}`{_kept(event)}"
    return f"remove `create_graph=True`{_kept(event)}"


def _kept(event: KeptGraph) -> str:
    """The further effect of ``create_graph``."""
    return "" if event.kept else ", and pass `retain_graph=True` if the first graph is used again"


def _fix(event: KeptGraph) -> Plan | None:
    if event.kind == "retain":
        doubt = "a second backward() through this graph in code that is not resolved would raise an error"
        return Plan(title="remove `retain_graph=True`", changes=(Drop(event.word, "False"),), doubt=doubt)
    if event.kind == "result" and event.kept:
        doubt = "gradients computed without recording may be rounded differently"
        if not event.flag:
            return Plan(title="remove `create_graph=True`", changes=(Drop(event.word, "False"),), doubt=doubt)
        value = f"not {event.flag}"
        return Plan(title=f"pass `create_graph={value}`", changes=(Replace(event.word, value),), doubt=doubt)
    return None
