"""MEM112: a backward keeps, or records, a graph that nothing differentiates again."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Facts, Growth, KeptGraph, Meta, Plan, Replace, Report

META = Meta(
    code="MEM112",
    name="graph-kept-by-backward",
    summary="A backward keeps its graph, or records one of the gradients, and nothing goes through it again.",
    severity="warning",
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(KeptGraph):
        yield Report(
            site=event.site,
            message=_message(event),
            advice=_advice(event),
            severity="warning" if _is_large(event) else "note",
            confidence=event.certainty,
            growth=Growth("device-graph", "per-iteration" if event.kind == "inputs" else "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _is_large(event: KeptGraph) -> bool:
    """Whether the graph is there beside another one, round after round."""
    if event.kind == "retain":
        return bool(event.alive) and event.sure
    if event.kind == "rounds":
        return False
    return event.kind in ("gradients", "inputs") or (event.loop is not None and not event.flag)


def _message(event: KeptGraph) -> str:
    if event.kind == "retain":
        goes = "goes" if event.sure else "is seen to go"
        nobody = f"`{event.text}` keeps all that the graph has saved, and no other backward {goes} through it"
        if not event.alive:
            return f"{nobody}: the activations stay until the function is left"
        names = " and ".join(f"`{name}`" for name in event.alive[:2])
        hold = "holds" if len(event.alive) == 1 else "hold"
        return f"{nobody}: {names} {hold} its activations while the next round runs the model"
    if event.kind == "rounds":
        return (
            f"`{event.text}` keeps what the graph has saved after the last of `{event.alive[0]}` as well, where no "
            "other backward needs it: the activations stay until the losses go"
        )
    if event.kind == "inputs":
        return (
            f"`{event.text}` records the graph of all gradients, where that of `{event.alive[0]}` alone is read: it "
            f"stays, in a cycle of `{event.alive[0]}` and its gradient that nothing but `.grad = None` breaks"
        )
    if event.kind == "gradients":
        return (
            f"`{event.text}` records the graph of all gradients, and only an optimizer reads them, which "
            "differentiates nothing: it stays, in a cycle with the parameters, until the gradients are cleared"
        )
    where = f" where `{event.flag}` holds" if event.flag else ""
    return f"`{event.text}` records the graph of the gradients, and all that is done with them{where} cuts it"


def _advice(event: KeptGraph) -> str:
    if event.kind == "retain":
        return "leave `retain_graph=True` out: backward frees each activation as soon as it is used"
    if event.kind == "rounds":
        return "keep the graph for all but the last: `retain_graph=i < len(losses) - 1`"
    if event.kind == "inputs":
        name = event.alive[0]
        return f"take it from `torch.autograd.grad(…, {name}, create_graph=True)`, which leaves the parameters alone"
    if event.kind == "gradients":
        return (
            "leave `create_graph=True` out; to differentiate a gradient step, take the gradients from "
            "`torch.autograd.grad(…, create_graph=True)` and update by hand"
        )
    if event.flag:
        return f"pass `create_graph=not {event.flag}`{_kept(event)}"
    return f"leave `create_graph=True` out{_kept(event)}"


def _kept(event: KeptGraph) -> str:
    """What ``create_graph`` did beside it."""
    return "" if event.kept else ", with `retain_graph=True` where the first graph is used again"


def _fix(event: KeptGraph) -> Plan | None:
    if event.kind == "retain":
        doubt = "another backward through it, which is not seen here, would raise an error"
        return Plan(title="pass `retain_graph=False`", changes=(Replace(event.word, "False"),), doubt=doubt)
    if event.kind == "result" and event.kept:
        value = f"not {event.flag}" if event.flag else "False"
        doubt = "gradients that are not recorded may be rounded otherwise"
        return Plan(title=f"pass `create_graph={value}`", changes=(Replace(event.word, value),), doubt=doubt)
    return None
