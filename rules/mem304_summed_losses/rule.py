"""MEM304: losses of independent micro-batches, summed before one backward."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Place, Report, Site, Step

META = Meta(
    code="MEM304",
    name="summed-losses",
    summary="The losses of several batches are summed before one backward, so all their graphs are alive at once.",
    severity="warning",
    preview=True,
)


class SummedLosses(Event, frozen=True, gc=False, kw_only=True):
    """Losses of independent micro-batches are summed in a loop, and one backward follows it. ``within``: the
    backward is in the loop, and runs every few rounds. ``small``: the network is known to be small."""

    place: Place
    loop: Loop
    backward: Site
    within: bool = False
    small: bool = False


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(SummedLosses):
        yield Report(
            site=event.site,
            message=f"`{event.place.text}` holds the graphs of "
            + (
                f"several batches of `{event.loop.text}` until one backward() for all of them"
                if event.within
                else f"all batches of `{event.loop.text}` until the one backward() after the loop"
            )
            + ": the peak is the sum of their saved activations",
            help="call backward() on each batch's loss, scaled as the sum is, with zero_grad() "
            + ("after the step" if event.within else "before the loop")
            + ": the gradients add up to the same",
            severity="note" if event.small else "warning",
            confidence=event.certainty,
            growth=Growth("device-graph", "peak"),
            trace=(*event.trace, Step(event.backward, "the one backward()")),
        )
