"""MEM107: an iterator over a data loader keeps all its batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Around, Event, Facts, Growth, Meta, Plan, Report, Site

META = Meta(
    code="MEM107",
    name="cached-batches",
    summary="`itertools.cycle(loader)` or `list(loader)` keeps every batch of the dataset.",
    severity="warning",
)

#: how the batches are kept: by repeating them, in a list, between two iterators
KeepsBatches = Literal["cycle", "list", "tee"]


class CachedBatches(Event, frozen=True, gc=False, kw_only=True):
    """An iterator over a data loader keeps its batches. ``loader``: its source; ``given``: its site, if it is known to
    be a loader of torch, which can be iterated over again."""

    how: KeepsBatches
    text: str
    loader: str
    given: Site | None = None


HOLDS = {
    "cycle": "keeps every batch of the first pass: host memory grows to the whole data set, and later passes repeat "
    "the same batches without shuffling or augmentation",
    "list": "holds all batches of the data set in memory at once",
    "tee": "keeps every batch that only one of its iterators has given: host memory grows up to the whole data set",
}
HELP = {
    "cycle": "write a generator that starts a new pass each time: `while True: yield from {0}`",
    "list": "iterate over `{0}` itself; `len({0})` is the number of batches, `next(iter({0}))` gives one",
    "tee": "iterate over `{0}` twice",
}
TITLE = "start a new pass over `{}` instead of keeping its batches"
DOUBT = "each pass then shuffles and loads again, and an empty loader would loop forever"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(CachedBatches):
        yield Report(
            site=event.site,
            message=f"`{event.text}` {HOLDS[event.how]}",
            help=HELP[event.how].format(event.loader),
            severity="warning" if event.how == "cycle" else "note",
            confidence=event.certainty,
            growth=Growth("host", "once" if event.how == "list" else "per-iteration"),
            trace=event.trace,
            fix=_fix(event),
        )


def _fix(event: CachedBatches) -> Plan | None:
    if event.given is None or not event.text.startswith("itertools.cycle("):
        return None
    change = Around(event.given, event.site, "itertools.chain.from_iterable(itertools.repeat(", "))")
    return Plan(title=TITLE.format(event.loader), changes=(change,), doubt=DOUBT)
