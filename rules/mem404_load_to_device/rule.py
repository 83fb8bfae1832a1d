"""MEM404: a checkpoint is restored on the device that it was saved from."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Argument, Event, Facts, Growth, Meta, Plan, Replace, Report, Site

META = Meta(
    code="MEM404",
    name="load-to-device",
    summary="A checkpoint is loaded without map_location onto the device that it was saved from.",
    severity="note",
)


class LoadedToDevice(Event, frozen=True, gc=False, kw_only=True):
    """A checkpoint is loaded onto the device that it was saved from. ``given``: a ``map_location`` of None.
    ``distributed``: by each of several processes. ``doubt``: why loading it onto the host may change the program, a
    clause. ``beside``: what is on the device too: a model that copies it, nothing known, or a model whose parameters it
    becomes (``assign=True``). ``name``: the variable that is bound to it, "" for none."""

    text: str
    distributed: bool
    given: Site | None
    doubt: str
    beside: Literal["model", "nothing", "assigned"]
    name: str


HELP = 'pass `map_location="cpu"`: `load_state_dict` copies each tensor to the device of its parameter'
HELP_ALONE = 'pass `map_location="cpu"`, and move what is needed on the device there'
HELP_ASSIGNED = "pass the model's device as `map_location`: the parameters stay where they are loaded"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(LoadedToDevice):
        assigned = event.beside == "assigned"
        yield Report(
            site=event.site,
            message=f"`{event.text}` loads each tensor onto the device that it was saved from: {_cost(event)}",
            help=HELP_ASSIGNED if assigned else HELP if event.beside == "model" else HELP_ALONE,
            severity="note",
            confidence=event.certainty,
            growth=Growth("none" if assigned else "device-tensor", "peak"),
            trace=event.trace,
            fix=None if assigned else _fix(event),
        )


def _cost(event: LoadedToDevice) -> str:
    if event.beside == "assigned":
        each = "each process has its model" if event.distributed else "the model lies"
        return f"with `assign=True` they are the parameters, so {each} there"
    beside = ", beside the model" if event.beside == "model" else ""
    until = f" until `{event.name}` is freed" if event.name else ""
    if event.distributed:
        return f"in each process the checkpoint takes memory on that one{beside}{until}"
    return f"the checkpoint takes memory there{beside}{until}"


def _fix(event: LoadedToDevice) -> Plan:
    change = Argument(event.site, 'map_location="cpu"') if event.given is None else Replace(event.given, '"cpu"')
    return Plan(title='pass `map_location="cpu"` to `torch.load`', changes=(change,), doubt=event.doubt)
