"""MEM107: what goes through a data loader keeps all its batches."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Around, CachedBatches, Facts, Growth, Meta, Plan, Report

META = Meta(
    code="MEM107",
    name="cached-batches",
    summary="`itertools.cycle(loader)` or `list(loader)` keeps every batch of the data set.",
    severity="warning",
)

HOLDS = {
    "cycle": "keeps each batch of the first pass, in the end the whole data set, and gives those very batches again: "
    "nothing is shuffled or augmented anew",
    "list": "holds all batches of the data set at once",
    "tee": "keeps each batch that one of its iterators has given and the other has not, in the end the whole data set",
}
ADVICE = {
    "cycle": "write a generator that goes through it again: `while True: yield from {}`",
    "list": "go through `{}` itself: `len` tells how many batches there are, `next(iter(…))` gives one",
    "tee": "go through `{}` twice",
}
TITLE = "go through `{}` again instead of keeping its batches"
DOUBT = "each pass then shuffles and loads anew, and one that gives no batch at all would never end"


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(CachedBatches):
        yield Report(
            site=event.site,
            message=f"`{event.text}` {HOLDS[event.how]}",
            advice=ADVICE[event.how].format(event.loader),
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
