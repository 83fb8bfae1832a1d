"""One verification: lint, instrument, run, judge."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlint.config import ConfigError
from memlint.engine.options import Options
from memlint.engine.run import run as lint
from memlint.evidence import content_hash
from memlint.finding import Finding, Result
from memlint.measure.plan import Plan
from memlint.project import decode, display_path, is_notebook
from memlint.reading import MAX_SOURCE, read_file
from memlint.verifier.judging.bill import bill, peak
from memlint.verifier.judging.holders import holders
from memlint.verifier.judging.leftover import fragmentation, out_of_memory, unattributed
from memlint.verifier.judging.naming import names, unwatched
from memlint.verifier.judging.peaks import peaks
from memlint.verifier.judging.timeline import timeline
from memlint.verifier.judging.verdicts import Settings, judge
from memlint.verifier.model import BAD, Report, Run, Verdict, Verified
from memlint.verifier.probing.closure import program_files
from memlint.verifier.probing.planning import Probes, Target, probes
from memlint.verifier.processes.child import Ran, find_module, python_for, run_program
from memlint.verifier.processes.group import Group
from memlint.verifier.processes.ranks import merged, steps

_FORKED = Verdict(
    verdict="unmeasurable",
    reason="this statement was only run in processes that the program forked, which are not measured; those that it "
    "starts by spawn are",
)

#: the random seed of runs that are compared
SEED = 0

#: called while the program runs, with the probes and the measurements so far, by rank
Live = Callable[["Probes", Sequence[Mapping[str, Any]]], None]


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How to verify. Counts are iterations, ``timeout`` seconds, ``gpu_memory`` bytes. ``compared``: the run is one of
    several that are compared, and starts its random generators from the same seed as they; ``all_output``: show what
    the program prints in all of them; ``picture``: follow the run to its end, to be drawn."""

    device: str = "auto"
    warmup: int = 3
    window: int = 12
    max_steps: int | None = None
    full: bool = False
    timeout: float | None = None
    gpu_memory: int | None = None
    python: str | None = None
    ranks: int | None = None
    program_to_stderr: bool = False
    all_output: bool = False
    picture: bool = False
    compared: bool = False
    trace_host: bool = False


class Program(msgspec.Struct, frozen=True):
    """A linted program. ``texts``, ``paths`` and ``hashes`` (of what was linted): its files by display path."""

    target: Target
    result: Result
    texts: Mapping[str, str]
    paths: Mapping[str, Path]
    hashes: Mapping[str, str] = {}


def locate(name: str, module: bool, arguments: Sequence[str], cwd: Path, python: str | None = None) -> Target:
    """The script or module that the user means, which ``python`` may have installed. Raises ConfigError if it does not
    exist."""
    if not module:
        script = cwd / name
        if not script.is_file():
            what = "is a folder" if script.is_dir() else "does not exist"
            raise ConfigError(f"the script {name} {what}")
        if is_notebook(script):
            raise ConfigError(
                f"{name} is a notebook: `%%memlint` verifies its cells in their kernel (docs/notebooks.md)"
            )
        return Target(str(script.absolute()), False, script.absolute(), tuple(arguments), name)
    base = cwd.joinpath(*name.split("."))
    for file in (base.with_name(base.name + ".py"), base / "__main__.py", base / "__init__.py"):
        if file.is_file():
            return Target(name, True, file, tuple(arguments))
    installed = find_module(python_for(python), name, cwd)
    if installed is None:
        raise ConfigError(
            f"-m {name}: there is no such module below the working directory, nor in the program's environment"
        )
    # it runs the user's code: the given files, else all below the working directory
    given = [cwd / word.partition("::")[0] for word in arguments if not word.startswith("-")]
    starts = tuple(path for path in given if path.is_dir() or (path.suffix == ".py" and path.is_file()))
    return Target(name, True, installed, tuple(arguments), None, starts or (cwd,))


def read(target: Target, options: Options) -> Program:
    """Lint the script and the modules of its project that it imports. Raises ConfigError."""
    options = msgspec.structs.replace(options, evidence=())  # earlier evidence is not presumed
    files = program_files(target.starts or (target.script,), options)
    result = lint([str(path) for path in files], options).result
    texts, paths, hashes = {}, {}, {}
    for path in files:
        display = display_path(path, options.cwd)
        try:
            raw = read_file(path, MAX_SOURCE)
            texts[display] = decode(raw)
        except (OSError, SyntaxError, LookupError, UnicodeError):
            continue  # among the result's failures
        paths[display] = path
        hashes[display] = content_hash(raw)
    return Program(target, result, texts, paths, hashes)


def verify(program: Program, wanted: Wanted, live: Live, group: Group | None = None) -> Report:
    """Run a program and judge its findings. ``group``: the ranks that were started outside, of which this is one; its
    first one reports on all. Raises ConfigError where the program cannot be run as wanted."""
    started = time.perf_counter()
    put_in = probes(program.texts, program.paths, of_program(program))
    shared = None if group is None else group.meet()
    ran = run_once(program.target, put_in, wanted, python_for(wanted.python), live, shared=shared)
    if group is not None:
        ran = group.gathered(ran)
    return msgspec.structs.replace(judged(program, put_in, ran, wanted), seconds=time.perf_counter() - started)


def of_program(program: Program) -> list[Finding]:
    """The findings that are verified."""
    return [finding for finding in program.result.findings if finding.suppressed is None]


def run_once(
    target: Target,
    put_in: Probes,
    wanted: Wanted,
    python: str,
    live: Live,
    *,
    stop_at: tuple[int, int] | None = None,
    shared: Path | None = None,
    silent: bool = False,
) -> Ran:
    """One run of a program. ``silent``: what it prints is not shown, unless it fails. ``stop_at``: a loop's id and the
    top of it at which the program is stopped. ``shared``: the folder where other ranks put their results."""
    return run_program(
        dataclasses.replace(plan_for(target, put_in, wanted), stop_at=stop_at),
        python,
        watch=lambda measured: live(put_in, measured),
        timeout=wanted.timeout,
        ranks=wanted.ranks,
        to_stderr=wanted.program_to_stderr,
        silent=silent,
        shared=shared,
        # for an equal order of sets of strings in all runs
        environment={"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")} if wanted.compared else None,
    )


def plan_for(target: Target, put_in: Probes, wanted: Wanted) -> Plan:
    """The child's plan, without its output file."""
    return Plan(
        target=target.name,
        module=target.module,
        typed=target.typed,
        arguments=target.arguments,
        files=put_in.files,
        output="",
        warmup=wanted.warmup,
        window=wanted.window,
        max_steps=wanted.max_steps,
        full=wanted.full,
        device=wanted.device,
        gpu_memory=wanted.gpu_memory,
        seed=SEED if wanted.compared else None,
        losses=wanted.compared,
        picture=wanted.picture,
        own=put_in.own,
        trace_host=wanted.trace_host,
    )


def judged(program: Program, put_in: Probes, ran: Ran, wanted: Wanted) -> Report:
    """The measurements of one run's processes, judged and merged."""
    for measured in ran.measured:
        if measured["end"]["kind"] == "environment":
            raise ConfigError(str(measured["end"]["reason"]))
    shown = {str(path): display for display, path in program.paths.items()}
    run = how_it_ran(ran, wanted)
    verdicts = [_verdicts(measured, put_in, wanted, run, shown) for measured in ran.measured]
    verified, ranks = merged(put_in.findings, verdicts, ran.measured, run)
    forked = {put_in.findings[site] for site in ran.forked}
    verified = [
        (finding, _FORKED if finding in forked and verdict.verdict == "not-reached" else verdict)
        for finding, verdict in verified
    ]
    first = ran.measured[0] if ran.measured else None
    named = {} if first is None else names(first, put_in.loops, shown)
    left = [] if first is None else unattributed(first, verdicts[0], named, shown)
    return Report(
        verified=tuple(sorted((Verified(*pair) for pair in verified), key=_place)),
        failures=program.result.failures,
        run=msgspec.structs.replace(run, reason=unwatched(first, named)) if first is not None else run,
        unattributed=tuple(left),
        peaks=() if first is None else tuple(peaks(first, named)),
        fragmentation=tuple(row for measured in ran.measured for row in fragmentation(measured)),
        ranks=tuple(ranks),
        timeline=None if first is None else timeline(first, put_in, verdicts[0], named),
        loops=() if first is None else bill(first, named, wanted.warmup, wanted.window, verdicts[0]),
        peak=peak(ran.measured),
        files=len(program.texts),
    )


def _place(verified: Verified) -> tuple[str, int, int]:
    return verified.finding.path, verified.finding.line, verified.finding.column


def _verdicts(
    measured: Mapping[str, Any], put_in: Probes, wanted: Wanted, run: Run, shown: Mapping[str, str]
) -> dict[int, Verdict]:
    loops = {loop["id"]: loop for loop in measured["loops"]}
    places = {number: f"{one.code} at {one.path}:{one.line}" for number, one in put_in.findings.items()}
    settings = Settings(wanted.warmup, wanted.window, _ended(run, wanted), places, shown)
    found: dict[int, Verdict] = {}
    for site in measured["sites"]:
        verdict = judge(put_in.findings[site["id"]].growth, site, loops, measured, settings)
        kept = holders(site.get("holders", ()), shown) if verdict.verdict in BAD else ()
        found[site["id"]] = msgspec.structs.replace(verdict, holders=kept)
    return found


def _ended(run: Run, wanted: Wanted) -> str:
    if run.end == "stopped":
        why = "all else was measured" if wanted.max_steps is None else "it had made its steps"
        return f" before the program was stopped ({why}; --full lets it run on)"
    if run.end in ("failed", "killed", "timeout", "interrupted"):
        return f" before the program {'was ' * (run.end != 'failed')}{'timed out' if run.end == 'timeout' else run.end}"
    return ""


def how_it_ran(ran: Ran, wanted: Wanted) -> Run:
    """How the program ran, from what its processes wrote."""
    first = ran.measured[0] if ran.measured else {}
    ends = [measured["end"]["kind"] for measured in ran.measured]
    end, code = "failed", ran.exit
    if ran.timed_out:  # it was interrupted for the timeout
        end = "timeout"
    elif ran.interrupted or "interrupted" in ends:
        end = "interrupted"
    elif ends and (all(each == "stopped" for each in ends) or (ran.left and "stopped" in ends)):
        end = "stopped"
    elif ran.exit < 0 and "failed" not in ends:
        end = "killed"
    elif ran.exit == 0 and "failed" not in ends:
        end = "broken" if "broken" in ends else "finished"
    return Run(
        python=first.get("python"),
        torch=first.get("torch"),
        device=first.get("device"),
        meter=first.get("meter", "none"),
        steps=max(map(steps, ran.measured), default=0),
        seconds=first.get("seconds", 0.0),
        exit=None if end == "stopped" else code,
        end=end,
        broken=next((said for one in ran.measured if (said := _broken(one))), ""),
        out_of_memory=next((said for one in ran.measured if (said := out_of_memory(one))), ""),
        warmup=wanted.warmup,
        window=wanted.window,
    )


def _broken(measured: Mapping[str, Any]) -> str:
    if measured["end"]["kind"] != "broken":
        return ""
    told = str(measured["end"]["reason"]).strip().rpartition("\n")[2]
    return f"memlint's probes failed in this program, which is a mistake of memlint, and measured no more: {told}"
