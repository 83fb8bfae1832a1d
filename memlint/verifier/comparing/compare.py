"""Comparison of the program with a changed version: two processes, the same seed, stopped at the same iteration.

The first run is the one that verifies: it has probes at the findings. The second has none there (its findings are
fixed), so that its step time cannot be compared with the first one's; if runs are cheap, a third one runs the program
without those probes, and shows whether the program is deterministic. A finding that claims a peak, or time, is decided
here: with its fix alone if runs are cheap and such findings are few, else with all fixes together, which the report
mentions.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Sequence

import msgspec

from memlint.amounts import plural
from memlint.engine.options import Options
from memlint.finding import Finding
from memlint.verifier.comparing import sides
from memlint.verifier.comparing.endings import broke, failed, in_words, no_second, said_of, where_to_stop
from memlint.verifier.comparing.versions import Version, another, as_it_is, with_fixes
from memlint.verifier.judging.naming import names
from memlint.verifier.judging.site_runs import loops_around
from memlint.verifier.judging.verdicts import BLOCK, NEEDS_COMPARISON
from memlint.verifier.model import BAD, Comparison, LoopPair, LoopSide, Report, Saving, Side, Verdict, Verified
from memlint.verifier.probing.planning import Probes, probes
from memlint.verifier.processes.child import Ran, python_for
from memlint.verifier.run import Live, Program, Wanted, how_it_ran, judged, of_program, run_once

#: called before each run after the first, with its description
Say = Callable[[str], None]
#: the program with the fixes of some findings (fingerprints); None where none of them holds
FixedVersion = Callable[[Collection[str]], Version | None]

#: runs of at most so many seconds are repeated, to measure time and single fixes
CHEAP = 120.0
#: the most single fixes that are run alone
MOST_ALONE = 4
#: the share of a peak, or of a step's time, that a fix has to save to count
SHARE = 0.01
SHARE_OF_TIME = 0.02
_NOTHING = Side(None, None, None, None, 0)
_NO_LOOP = LoopSide(None, None, None, 0)


def compare_fix(program: Program, options: Options, wanted: Wanted, live: Live, say: Say) -> Report:
    """Verify a program, and run it again with its findings' fixes. Raises ConfigError."""
    work = _Work(program, wanted, live, say)
    version = with_fixes(program, work.put_in, options)
    if version is None:
        return work.without("the fixes of its findings", "none of the findings has a fix that holds")
    return work.with_version(version, lambda only: with_fixes(program, work.put_in, options, only))


def compare_with(program: Program, other: Program, wanted: Wanted, live: Live, say: Say) -> Report:
    """Verify a program, and run another script as well. Raises ConfigError."""
    work = _Work(program, wanted, live, say)
    return work.with_version(another(program, work.put_in, other), None)


class _Work:
    """One comparison. ``put_in``: the probes of the first run; ``interrupted``: the user has interrupted it."""

    def __init__(self, program: Program, wanted: Wanted, live: Live, say: Say) -> None:
        self._started = time.perf_counter()
        self._program = program
        self._wanted = msgspec.structs.replace(wanted, compared=True)
        self._live, self._say = live, say
        self._python = python_for(wanted.python)
        self.put_in = probes(program.texts, program.paths, of_program(program))
        self.warmup = wanted.warmup
        self.interrupted = False

    def without(self, label: str, reason: str) -> Report:
        """The verification alone, if there is nothing to compare with."""
        report, ran = self._first()
        before = sides.side(ran.measured, self.warmup)
        none = Comparison(
            label=label, before=before, after=_NOTHING, losses="unknown", largest_difference=None, compared=0,
            reason=reason,
        )  # fmt: skip
        return self._done(report, none)

    def with_version(self, version: Version, fixed_version: FixedVersion | None) -> Report:
        """The verification and the comparison. ``fixed_version``: the version with the fixes of some findings."""
        report, first = self._first()
        before = sides.side(first.measured, self.warmup)
        comparison = Comparison(
            label=version.label, before=before, after=_NOTHING, losses="unknown", largest_difference=None, compared=0,
            fixed=version.fixed,
        )  # fmt: skip
        if (reason := no_second(first, report)) is not None:
            return self._done(report, msgspec.structs.replace(comparison, reason=reason))
        whole = version.fixed
        version, second, without = self._second(version, fixed_version, report, first)
        cheap = report.run.seconds <= CHEAP and not self.interrupted
        third = self.again(self.unprobed, first) if cheap and not failed(first) else None
        if third is not None and failed(third):
            third = None
        told = sides.losses(first.measured, second.measured)
        own = None if third is None else sides.losses(first.measured, third.measured)
        end = how_it_ran(second, self._wanted).end
        comparison = msgspec.structs.replace(
            comparison,
            label=version.label,
            fixed=version.fixed,
            left_out=tuple(each for each in whole if each not in version.fixed),
            before=sides.side(first.measured, self.warmup, None if third is None else third.measured),
            # an aborted run shows no savings
            after=_NOTHING if broke(second) else sides.side(second.measured, self.warmup),
            losses=told.losses,
            largest_difference=told.largest_difference,
            compared=told.compared,
            own_difference=None if own is None or own.losses == "unknown" else own.largest_difference or 0.0,
            loops=self._loops(version, first, third, second),
            reason="; ".join(filter(None, (without, said_of(first, second, report, end)))),
        )
        if not failed(second) and not failed(first):
            decide = _Decide(
                self, version, first, second, third, fixed_version if cheap else None, fixed_version is not None
            )
            report = msgspec.structs.replace(report, verified=tuple(decide.verified(one) for one in report.verified))
            comparison = msgspec.structs.replace(comparison, savings=tuple(decide.savings))
        return self._done(report, comparison)

    def _first(self) -> tuple[Report, Ran]:
        ran = run_once(self._program.target, self.put_in, self._wanted, self._python, self._live)
        return judged(self._program, self.put_in, ran, self._wanted), ran

    def _second(
        self, version: Version, fixed_version: FixedVersion | None, report: Report, first: Ran
    ) -> tuple[Version, Ran, str]:
        """The run of the other version. A fix may not suit what the program does here: where it fails, those fixes are
        left out that can save nothing. With what is to be said of that."""
        second = self.again(version, first)
        if fixed_version is None or not broke(second) or failed(first) or self.interrupted:
            return version, second, ""
        wanted = [
            one.finding.fingerprint
            for one in report.verified
            if one.finding.fingerprint in version.fixed
            and (one.verdict.verdict in BAD or one.verdict.reason == NEEDS_COMPARISON)
        ]
        fewer = fixed_version(wanted) if wanted else None
        if fewer is None or set(fewer.fixed) == set(version.fixed):
            return version, second, ""
        end = how_it_ran(second, self._wanted).end
        said = f"with {version.label} the program {in_words(end)}, so those of the findings that hold were made"
        return fewer, self.again(fewer, first), said

    def again(self, version: Version, first: Ran) -> Ran:
        """Run a version to the iteration where the first run ended. Its output was printed once already."""
        self._say(version.label)
        wanted = msgspec.structs.replace(self._wanted, program_to_stderr=True)
        stop_at, most, full = where_to_stop(first, version)
        wanted = msgspec.structs.replace(wanted, max_steps=most, full=full)
        silent = not wanted.all_output
        ran = run_once(version.target, version.put_in, wanted, self._python, self._live, stop_at=stop_at, silent=silent)
        self.interrupted |= ran.interrupted
        return ran

    def _loops(self, version: Version, first: Ran, third: Ran | None, second: Ran) -> tuple[LoopPair, ...]:
        """The loops of the first rank that are in both runs, with the times of the third."""
        if not first.measured or not second.measured:
            return ()
        shown = {str(path): display for display, path in self._program.paths.items()}
        named = names(first.measured[0], self.put_in.loops, shown)
        mine, theirs = (sides.loop_sides(ran.measured[0], self.warmup) for ran in (first, second))
        if third is not None and third.measured:
            pair = self.unprobed.pair
            timed = sides.loop_sides(third.measured[0], self.warmup)
            mine = {
                number: msgspec.structs.replace(
                    one,
                    step_seconds=timed[pair(number)].step_seconds,
                    step_spread=timed[pair(number)].step_spread,
                )
                if pair(number) in timed
                else one
                for number, one in mine.items()
            }
        return tuple(
            LoopPair(named[number], one, theirs[there])
            for number, one in mine.items()
            if (there := version.pair(number)) in theirs
        )

    @functools.cached_property
    def unprobed(self) -> Version:
        """The program as it is, without probes at its findings."""
        return as_it_is(self._program, self.put_in)

    def _done(self, report: Report, comparison: Comparison) -> Report:
        run = report.run
        if self.interrupted:
            run = msgspec.structs.replace(run, end="interrupted")
        seconds = time.perf_counter() - self._started
        verified = tuple(_undecided(one, comparison) for one in report.verified)
        return msgspec.structs.replace(report, verified=verified, run=run, comparison=comparison, seconds=seconds)


class _Decide:
    """Decides the claims of findings about peaks and time. ``savings``: the measurements for that."""

    def __init__(
        self,
        work: _Work,
        version: Version,
        first: Ran,
        second: Ran,
        third: Ran | None,
        alone: FixedVersion | None,
        fixes: bool,
    ) -> None:
        self._work = work
        self._version = version
        self._first, self._second, self._third = first, second, third
        self._alone = alone
        self._fixes = fixes
        self._count = 0
        self.savings: list[Saving] = []

    def verified(self, one: Verified) -> Verified:
        """A finding with its verdict, where it is this comparison that gives one."""
        verdict = one.verdict
        if verdict.reason == NEEDS_COMPARISON:
            verdict = self._verdict(one.finding, verdict)
        elif one.finding.fingerprint in self._version.fixed and verdict.hits:
            self._save(one.finding, self._second, self._version, len(self._version.fixed) == 1)
        return msgspec.structs.replace(one, verdict=verdict)

    def _save(
        self, finding: Finding, ran: Ran, version: Version, alone: bool
    ) -> tuple[Saving, tuple[float, bool] | None]:
        """Note what a run with a finding's fix saves; with how the step time changes (`_faster`)."""
        before, after = self._sides(finding, ran, version)
        seen = self._faster(finding, ran, version)
        saving = Saving(
            fingerprint=finding.fingerprint,
            alone=alone,
            peak=sides.peak_saved(self._first.measured, ran.measured),
            bytes_per_iteration=_less(before.bytes_per_iteration, after.bytes_per_iteration),
            host_bytes_per_iteration=_less(before.host_bytes_per_iteration, after.host_bytes_per_iteration),
            step_time=None if seen is None else seen[0],
        )
        self.savings.append(saving)
        return saving, seen

    def _sides(self, finding: Finding, ran: Ran, version: Version) -> tuple[LoopSide, LoopSide]:
        """The loop around a finding, as it is and in a run of a version."""
        loop = _around(finding, self._work.put_in, self._first)
        found = []
        for one, number in ((self._first, loop), (ran, version.pair(loop or 0))):
            run = one.measured[0]
            rows = [row for row in run["loops"] if row["id"] == number]
            found.append(sides.loop_side(run, rows[0], self._work.warmup) if rows else _NO_LOOP)
        return found[0], found[1]

    def _verdict(self, finding: Finding, verdict: Verdict) -> Verdict:
        if finding.fingerprint not in self._version.fixed:
            reason = (
                "no fix of it holds, so nothing can be compared" if self._fixes else "the other script has it as well"
            )
            return msgspec.structs.replace(verdict, reason=reason)
        ran, version, alone = self._run_for(finding)
        if ran is None:
            return msgspec.structs.replace(verdict, reason="with its fix alone, the program failed")
        decide = self._time if finding.growth.kind == "time" else self._peak
        return decide(finding, verdict, ran, version, alone)

    def _run_for(self, finding: Finding) -> tuple[Ran | None, Version, bool]:
        """The run that shows the effect of this fix, and whether it has this fix alone."""
        if len(self._version.fixed) == 1:
            return self._second, self._version, True
        if self._alone is None or self._count >= MOST_ALONE or self._work.interrupted:
            return self._second, self._version, False
        version = self._alone((finding.fingerprint,))
        if version is None:
            return self._second, self._version, False
        if set(version.fixed) == set(self._version.fixed):  # one fix solves them all
            return self._second, self._version, False
        self._count += 1
        label = f"the fix of {finding.code} at {finding.path}:{finding.line} alone"
        ran = self._work.again(msgspec.structs.replace(version, label=label), self._first)
        return (None if failed(ran) else ran), version, True

    def _peak(self, finding: Finding, verdict: Verdict, ran: Ran, version: Version, alone: bool) -> Verdict:
        saved = self._save(finding, ran, version, alone)[0].peak
        total = sides.peak(self._first.measured) or 0
        if saved is None:
            return msgspec.structs.replace(verdict, reason="no peak was measured")
        least = max(BLOCK, int(total * SHARE))
        if saved >= least:
            reason = f"with the fix, the peak falls by {saved:,} B, from {total:,} B{self._shared(alone)}"
            return msgspec.structs.replace(verdict, verdict="peak-only", reason=reason)
        if alone and ran is not self._second:
            together = sides.peak_saved(self._first.measured, self._second.measured) or 0
            if together >= least:
                reason = (
                    f"the peak falls by {together:,} B with all fixes, and not with this one alone: another place "
                    "holds as much at another time"
                )
                return msgspec.structs.replace(verdict, reason=reason)
        reason = f"with the fix, the program's peak of {total:,} B " + (
            "stays as it is" if saved == 0 else f"falls by {saved:,} B only" if saved > 0 else f"rises by {-saved:,} B"
        )
        return msgspec.structs.replace(verdict, verdict="refuted", reason=reason + self._shared(alone))

    def _time(self, finding: Finding, verdict: Verdict, ran: Ran, version: Version, alone: bool) -> Verdict:
        _, seen = self._save(finding, ran, version, alone)
        if seen is None:
            loop = _around(finding, self._work.put_in, self._first)
            reason = "too few steps were timed to compare their times"
            if loop is None or not version.pair(loop):
                reason = f"there is no loop around it that is in {version.label} as well"
            elif self._third is None:
                reason = "the program runs too long, or too differently, to be run once more for its times"
            return msgspec.structs.replace(verdict, reason=reason)
        share, sure = seen
        shared = self._shared(alone)
        if not sure or 0 < share < SHARE_OF_TIME:
            return msgspec.structs.replace(verdict, reason="the step time changes by no more than noise" + shared)
        if share > 0:
            reason = f"see comparison: with the fix, the step time falls by {share:.0%}{shared}"
            return msgspec.structs.replace(verdict, reason=reason)
        return msgspec.structs.replace(verdict, verdict="refuted", reason=f"the step time does not fall{shared}")

    def _shared(self, alone: bool) -> str:
        """The other findings whose fixes may have contributed to the measurement."""
        return "" if alone else f" (shared with the fixes of {plural(len(self._version.fixed) - 1, 'other finding')})"

    def _faster(self, finding: Finding, ran: Ran, version: Version) -> tuple[float, bool] | None:
        """How the step time of the loop around a finding changes; only where both runs have no probes at findings."""
        if self._third is None or not self._third.measured or not ran.measured:
            return None
        loop = _around(finding, self._work.put_in, self._first)
        before = _seconds(self._third, self._work.unprobed.pair(loop or 0))
        after = _seconds(ran, version.pair(loop or 0))
        return sides.faster(before, after, self._work.warmup)


def _undecided(one: Verified, comparison: Comparison) -> Verified:
    """A finding that only a comparison decides, and none did: it was made, so it must not be asked for."""
    if one.verdict.reason != NEEDS_COMPARISON:
        return one
    verdict = msgspec.structs.replace(one.verdict, reason=f"the comparison does not tell: {comparison.reason}")
    return msgspec.structs.replace(one, verdict=verdict)


def _less(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else before - after


def _around(finding: Finding, put_in: Probes, ran: Ran) -> int | None:
    """The id of the innermost loop that was running when a finding's place was reached."""
    for site in ran.measured[0]["sites"] if ran.measured else ():
        if put_in.findings[site["id"]] == finding and (around := loops_around(site)):
            return int(around[-1])
    return None


def _seconds(ran: Ran, loop: int | None) -> Sequence[float]:
    for one in ran.measured[0]["loops"]:
        if one["id"] == loop:
            seconds: Sequence[float] = one["seconds"]
            return seconds
    return ()
