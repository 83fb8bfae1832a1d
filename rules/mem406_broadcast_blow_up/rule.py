"""MEM406: predictions of shape [B, 1] and targets of shape [B], of which broadcasting makes [B, B]."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import After, Broadcast, Facts, Growth, Meta, Plan, Report, grouped

META = Meta(
    code="MEM406",
    name="broadcast-blow-up",
    summary="Predictions of shape [B, 1] meet targets of shape [B], which broadcasts both to [B, B].",
    severity="warning",
    preview=True,
)
#: bytes of one such result that are worth a warning
_LARGE = 1 << 28


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(Broadcast):
        yield Report(
            site=event.site,
            message=f"`{event.column}` has a last dimension of one and `{event.row}` has none: {event.operation} "
            "broadcasts them to [B, B], so memory grows with the square of the batch size",
            help=f"give both the same shape: `{grouped(event.column)}.squeeze(-1)` or "
            f"`{grouped(event.row)}.unsqueeze(-1)`",
            severity="warning" if event.bytes is not None and event.bytes >= _LARGE else "note",
            confidence=event.certainty,
            growth=Growth("device-graph", "peak"),
            trace=event.trace,
            fix=Plan(
                title=f"squeeze `{event.column}`",
                changes=(After(event.expression, ".squeeze(-1)"),),
                doubt="the value of the loss changes: each prediction is then compared with its own target only",
                display=True,
            ),
        )
