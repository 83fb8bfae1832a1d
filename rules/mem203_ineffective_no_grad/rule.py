"""MEM203: a guard against autograd that has no effect."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import (
    Event,
    Facts,
    Growth,
    Guard,
    Meta,
    ModelCall,
    Plan,
    Replace,
    Report,
    Site,
    Step,
    Under,
    guard_plan,
)

META = Meta(
    code="MEM203",
    name="ineffective-no-grad",
    summary="A guard that should turn autograd off has no effect on the model call that it is meant for.",
    severity="warning",
    fix_rank=0,  # under a guard there are no graphs for other rules to report
    of_grad_mode=True,
)


class IneffectiveFreeze(Event, frozen=True, gc=False, kw_only=True):
    """An assignment that should freeze a network and does nothing. ``text``: its target; ``misspelled``: torch knows no
    such attribute of a parameter; ``run``: where the network records."""

    text: str
    network: str
    misspelled: bool
    run: Site


WHY = {
    "bare": "creates a context manager and discards it: grad mode stays on",
    "volatile": "has no effect since PyTorch 0.4: grad mode stays on",
    "early": "ends before the model runs: grad mode is on at the call",
    "and": "enters the last of these context managers alone: grad mode stays on",
    "async": "is left before the body of an `async def` runs: grad mode is on there",
    "route": "is above the decorator that registers the function for requests: grad mode is on when it serves one",
    "class": "on a class covers only the creation of its objects: grad mode is on in its methods",
}
COST = "the forward pass saves its activations for a backward() that never comes"
UNSURE = "a model that runs there saves its activations"
HELP = {
    "bare": "write `with torch.no_grad():` around the model calls, or `torch.set_grad_enabled(False)`",
    "volatile": "remove `volatile=True` and run the model under `with torch.no_grad():`",
    "early": "move the model call into the `with` block",
    "and": "write a comma in place of `and`: `with torch.no_grad(), …:` enters each of them",
    "async": "write `with torch.no_grad():` in the function, around the model calls",
    "route": "put it below that decorator, next to the function",
    "class": "decorate each method that runs the model instead",
}


def check(facts: Facts) -> Iterator[Report]:
    reported: set[str] = set()
    for event in facts.of(Guard):
        if event.kind == "volatile" and event.function in reported:  # one root cause, one finding
            continue
        if event.kind == "volatile":
            reported.add(event.function)
        yield Report(
            site=event.site,
            message=f"`{event.text}` {WHY[event.kind]}, and {COST if event.certainty == 'high' else UNSURE}",
            help=HELP[event.kind],
            # code of that age is mostly run with a torch that supports it, if at all
            severity="note" if event.dated or event.small else "warning",
            confidence=event.certainty,
            growth=Growth("none", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )

    # MEM201 and MEM202 report these runs
    unguarded = {event.site for event in facts.of(ModelCall) if event.certainty != "low"}
    for freeze in facts.of(IneffectiveFreeze):
        if freeze.run in unguarded:
            continue
        why = (
            "torch reads no attribute of that name"
            if freeze.misspelled
            else "torch reads no such attribute of a module"
        )
        yield Report(
            site=freeze.site,
            message=f"`{freeze.text} = False` freezes nothing, as {why}: the parameters of `{freeze.network}` still "
            "require gradients, for which its forward pass saves activations",
            help=f"write `{freeze.network}.requires_grad_(False)`, which freezes each parameter",
            severity="warning",
            confidence=freeze.certainty,
            growth=Growth("none", "peak"),
            trace=(*freeze.trace, Step(freeze.run, f"where `{freeze.network}` runs")),
        )


def _fix(event: Guard) -> Plan | None:
    place = event.place
    if place is None or place.first is None or place.last is None:
        return None
    if event.kind == "volatile":
        return guard_plan(place)
    guard = event.text if event.text.endswith(")") else f"{event.text}()"
    changes = (Replace(event.site, f"with {guard}:"), Under(place.first, place.last))
    return Plan(title=f"run what follows under `with {guard}:`", changes=changes, doubt=place.doubt)
