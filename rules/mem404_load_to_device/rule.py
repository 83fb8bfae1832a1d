"""MEM404: a checkpoint comes back on the device that it was saved from."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Argument, Facts, Growth, LoadedToDevice, Meta, Plan, Replace, Report

META = Meta(
    code="MEM404",
    name="load-to-device",
    summary="A checkpoint is loaded without map_location, onto the device that it was saved from, beside the model.",
    severity="note",
)

HELP = 'pass `map_location="cpu"`: `load_state_dict` copies each tensor to the device of its parameter'


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(LoadedToDevice):
        where = "in each process on the device of the one that saved it" if event.distributed else "on that device"
        yield Report(
            site=event.site,
            message=f"`{event.text}` puts each tensor back on the device that it was saved from: the checkpoint takes "
            f"memory {where}, beside the model",
            help=HELP,
            severity="note",
            confidence=event.certainty,
            growth=Growth("device-tensor", "peak"),
            trace=event.trace,
            fix=_fix(event),
        )


def _fix(event: LoadedToDevice) -> Plan:
    change = Argument(event.site, 'map_location="cpu"') if event.given is None else Replace(event.given, '"cpu"')
    return Plan(title='pass `map_location="cpu"` to `torch.load`', changes=(change,), doubt=event.doubt)
