"""Decides when each site is checked, and when the holders of what it left are searched."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection
from typing import Any

from ..retention.old import Old
from ..sites.site_runs import check_of
from ..sites.sites import SiteWatch
from .windows import Windows


class Checks:
    """Checks sites: at the end of their window, of the loops around them, of each run of these, and of the program.

    ``warmup``: how old the list of earlier storages may be, in ticks (iterations of any loop); ``paths``: the program's
    files; ``judged``: called after a check.
    """

    def __init__(
        self,
        sites: dict[int, SiteWatch],
        windows: Windows,
        warmup: int,
        paths: Collection[str],
        judged: Callable[[], None],
    ) -> None:
        self.torch: Any = None
        self.tick = 0
        self._sites = sites
        self._windows = windows
        self._warmup = warmup
        self._paths = paths
        self._judged = judged
        #: sites whose window is over
        self.due: list[SiteWatch] = []
        self._old: Old | None = None
        self._old_tick = -1

    def check_alone(self, site: SiteWatch) -> None:
        """Check a site at its own hits, because no loop iteration ends between them: a library calls it repeatedly."""
        site.leave_loops()
        self.due = [each for each in self.due if each is not site]
        self.check([site], "window")
        if site.survives and site.emptied is None:
            site.follow_emptying(self._paths)

    def note_old(self, site: SiteWatch) -> None:
        """A run of the loop around a site begins: tensors that exist now do not count for it."""
        if site.hits and not site.runs.decided and self.torch is not None:
            site.runs.begins(lambda: self._before(0))

    def value(self, site: SiteWatch, value: Any) -> None:
        """A value of the current hit of a site."""
        if site.following and self.torch is not None:
            with self.torch._C.DisableTorchFunctionSubclass():
                if site.old is None:
                    site.old = self._before(self._warmup)
                site.add(value, self.torch)

    def _before(self, most: int) -> Old:
        """The storages that exist now, or existed at most ``most`` ticks ago."""
        if self._old is None or self.tick - self._old_tick > most:
            self._old = Old(self.torch)
            self._old_tick = self.tick
        return self._old

    def settle(self, loop: int) -> None:
        """Check the sites whose window is over, at the next top of the loop around them."""
        due = [site for site in self.due if not site.loops or loop in site.loops]
        if due:
            self.due = [site for site in self.due if site not in due]
            self.check(due, "window")

    def check(self, sites: list[SiteWatch], when: str) -> None:
        """Note what the hits of sites have left, and search its holders. ``when``: what has ended."""
        for site in sites:
            site.let_go(self.torch)
        before = [[generation.uncollected() for generation in site.generations] for site in sites]
        if any(any(alive) for each in before for alive in each):
            gc.collect()
        for site, alive in zip(sites, before, strict=False):
            site.recording = False
            site.check(when, alive, self._known_to_earlier(site))
        self._ask_owners([site for site in sites if when == "window" or not site.holders])
        if all(site.windows for site in self._sites.values()):
            self.ignore_collections()
        self._judged()

    def follow_collections(self) -> None:
        """Follow Python's garbage collections."""
        gc.callbacks.append(self._collecting)

    def _collecting(self, phase: str, _: dict[str, int]) -> None:
        """Called by Python before and after it collects garbage."""
        for site in list(self._sites.values()):
            site.collecting(begins=phase == "start")

    def ignore_collections(self) -> None:
        """Stop following garbage collections, because every window is over."""
        if self._collecting in gc.callbacks:
            gc.callbacks.remove(self._collecting)

    def check_exit(self, site: SiteWatch) -> None:
        """A loop around a site has ended: check before its function returns."""
        if site.hits > site.let_go_at:
            site.let_go(self.torch)
        before = [generation.uncollected() for generation in site.generations]
        if not site.full and site.hits > site.collected_at and any(before):
            gc.collect()  # at most once for the same hits, as it may take longer than an iteration
            site.collected_at = site.hits
        site.check("exit", before, self._known_to_earlier(site))
        if site.holders is None:
            self._ask_owners([site])

    def _ask_owners(self, sites: list[SiteWatch]) -> None:
        """Search the holders of what sites have left."""
        wanted = {site.number: targets for site in sites if (targets := site.survivors())}
        found = self._windows.ask(wanted)
        for number in wanted:
            self._sites[number].holders = found.get(number, [])

    def end_runs(self, number: int) -> None:
        """A run of a loop has ended: check what its hits left, before its function returns."""
        ended = [site for site in self._sites.values() if site.runs.current and site.runs.current.number == number]
        if self.torch is None:
            return
        self._ask_owners([site for site in ended if site.holders is None])
        collected = False
        for site in ended:
            before = [each.uncollected() for each in site.runs.current.generations] if site.runs.current else []
            if len(before) > 1 and any(before):
                site.let_go(self.torch)
                if not collected:
                    gc.collect()
                collected = True
            site.runs.end(
                lambda run, site=site, before=before: check_of(  # type: ignore[misc]
                    "run",
                    run.hits,
                    before,
                    run.generations,
                    self._known_to_earlier(site),
                    () if site.runs.old is None else site.runs.old.addresses(),
                ),
                self._paths,
            )

    def _known_to_earlier(self, site: SiteWatch) -> dict[int, int]:
        """The addresses of storages that earlier sites follow as well, with the first of these, for which they
        count."""
        earlier = [other for other in reversed(self._sites.values()) if other.number < site.number]
        return {key: other.number for other in earlier for key in other.followed()}
