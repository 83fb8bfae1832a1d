"""MEM103: state that is computed from its own previous value, with a graph that spans all iterations."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    After,
    Carry,
    Change,
    Facts,
    Growth,
    Memory,
    Meta,
    Plan,
    Report,
    Severity,
    Silent,
    Step,
    Top,
    cause,
    each_round,
    kind_of_growth,
    lazy_pattern,
    silent,
    weakest,
    weight,
    without_graph,
)

META = Meta(
    code="MEM103",
    name="carried-state",
    summary="A state is computed from its previous value, so its autograd graph grows with every iteration.",
    severity="warning",
)

#: the end of a member's text in a tuple or list
_MEMBER = lazy_pattern(r"\[\d+\]$")
LARGE = ("sample", "batch", "activation", "model")


SEEKS = "a variable or attribute that each iteration computes from its own previous value, with its graph"
CANDIDATES = ("carry",)

SILENT = (
    Silent(
        Carry,
        "graph-needed",
        "the graph of `{event.place.text}` is needed: a later backward() runs through it, or it leaves to code that "
        "cannot be followed",
        lambda event: event.needed,
    ),
    without_graph(Carry),
    # sums of losses belong to MEM101, concatenations to MEM302
    Silent(Carry, "", "", lambda event: not _is_state(event)),
)


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Carry):
        if silent(event, SILENT) is not None:
            continue
        value = event.value
        severity, memory, cost = _cost(event)
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` is computed from its previous value, so its graph spans all iterations: "
            f"{cost} with {each_round(event.loop)}",
            help=_help(event),
            severity=severity if _is_proven(event) else "note",
            confidence=weakest(event.certainty, value.certainty),
            growth=Growth(memory, kind_of_growth(event.loop)),
            trace=(*value.origin, *event.trace, *cause(event), *_raises(event)),
            fix=_fix(event),
        )


def _is_proven(event: Carry) -> bool:
    """Whether nothing needs the chain of graphs for certain: an evaluation builds it, or a backward has freed the terms
    of a sum, or of an average of losses. Recurrent states and other averages are often reset, detached or computed from
    tensors without a graph in code that is not analysed."""
    value = event.value
    is_loss = value.size == "scalar" and value.attached == "yes"
    summed = event.how in ("add", "update") or (event.how == "average" and is_loss)
    return event.in_model_loop or (event.loop.kind != "calls" and summed and value.freed == "yes")


def _is_state(event: Carry) -> bool:
    if event.how == "add":
        return event.value.size in LARGE
    return event.how in ("average", "call", "update")


def _cost(event: Carry) -> tuple[Severity, Memory, str]:
    value = event.value
    where = "host" if value.graph_device == "cpu" else "device"
    memory: Memory = "host" if where == "host" else "device-graph"
    kept = weight(event, most=META.severity)
    if value.freed == "no":
        return kept.activations, memory, f"{where} memory grows by the activations saved"
    if value.freed == "some":
        return kept.activations, memory, f"where no backward() runs, {where} memory grows by the activations saved"
    if event.how == "call" and value.freed == "yes":
        return (
            "note" if kept.activations == "note" else "warning",
            "host",
            "host memory grows by its nodes",
        )
    freed = "backward() frees its saved activations, " if value.freed == "yes" else ""
    return kept.nodes, "host", f"{freed}host memory grows by its nodes"


def _raises(event: Carry) -> tuple[Step, ...]:
    """The consequence for a graph that spans iterations and that a backward frees: the next one raises."""
    if event.how != "call" or event.value.freed != "yes":
        return ()
    said = "a plain backward() through it raises in the second iteration; `retain_graph=True` keeps all activations"
    return (Step(event.site, said),)


def _help(event: Carry) -> str:
    name = event.place.text
    if event.in_model_loop:
        return "run the loop under `with torch.no_grad():`"
    if event.how == "call":
        whole = _MEMBER.sub("", name)
        if whole != name:  # a member of a tuple cannot be assigned
            return f"detach each tensor of `{whole}` at the start of each iteration (`.detach()`)"
        return f"detach `{name}` at the start of each iteration (`{name} = {name}.detach()`; each tensor of a tuple)"
    return f"update `{name}` under `with torch.no_grad():`, or from detached values (`.detach()`)"


def _fix(event: Carry) -> Plan | None:
    cut = event.cut
    if cut is None:
        return None
    if cut.sites:
        changes: tuple[Change, ...] = tuple(After(site, ".detach()") for site in cut.sites)
        return Plan(title=f"detach `{cut.text}`", changes=changes, doubt=cut.doubt)
    start = Top(event.loop.site, cut.start)
    return Plan(title=f"detach `{cut.text}` when an iteration begins", changes=(start,), doubt=cut.doubt)
