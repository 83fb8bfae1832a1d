#!/usr/bin/env python3
"""Whether a change of the engine changes what it finds:

    python benchmarks/golden.py write build/golden/before --packages build/packages
    python benchmarks/golden.py write build/golden/after --packages build/packages
    python benchmarks/golden.py compare build/golden/before build/golden/after

``write`` lints each input in a process of its own and writes all events and all findings, hidden ones included, a line
each, to ``NAME.jsonl``, and to ``NAME.json`` what that took: CPU seconds, memory, and how often functions were
interpreted. ``compare`` lists what one has and the other lacks, and exits with 1 where there is anything.

The inputs are ``fixtures`` and ``fixtures_each`` (each file alone), and those of these that are there: ``timm``
1.0.31, ``transformers`` 5.23.0 (every 18th model folder, with the package as context) and ``torchrl``, unpacked below
the folder that ``--packages`` names (``NAME/NAME/__init__.py``), and each folder below the one that ``--trees`` names.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

#: of the model folders of transformers, one in so many is linted
STRIDE = 18


Input = tuple[Path, list[Path], bool]


def inputs(fixtures: Path, packages: Path | None, trees: Path | None) -> dict[str, Input]:
    """By name: the working directory, the paths to lint, and whether each is linted as if it were alone."""
    files = sorted(path for path in fixtures.glob("mem*/*.py"))
    found = {"fixtures": (fixtures, [fixtures], False), "fixtures_each": (fixtures, files, True)}
    if packages is not None:
        for name in ("timm", "torchrl"):
            found[name] = (packages / name, [packages / name / name], False)
        root = packages / "transformers"
        models = sorted(path for path in (root / "transformers" / "models").glob("*") if path.is_dir())
        found["transformers"] = (root, models[::STRIDE], False)
    for tree in sorted(trees.iterdir()) if trees is not None else ():
        found[f"tree_{tree.name}"] = (tree, [tree], False)
    return {name: one for name, one in found.items() if one[1] and one[1][0].exists()}


class Counters:
    """What an analysis did: by stratum (facts of callers: none yet, those of the first round, all) and whose code."""

    STRATA = ("first", "second", "judging")

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._functions: set[tuple[str, str]] = set()
        self._linted: frozenset[str] = frozenset()
        self._stratum = 0

    def watch(self) -> None:
        """Count from here on, whoever analyses."""
        from memlint.analysis.calls import application
        from memlint.analysis.driver import run
        from memlint.analysis.facts.analyser import Analyser

        make, renew, settle, callers = Analyser._interpret, Analyser.renew, Analyser.settle, run.callers_of
        effects = application.Application.effects

        def interpreted(one: Analyser, function: Any, flags: Any) -> Any:
            self._linted = frozenset(one.program.project.linted)
            whose = "linted" if function.module.key in self._linted else "context"
            self.counts[f"interpretations, {self.STRATA[self._stratum]}, {whose}"] += 1
            if function.key not in self._functions:
                self._functions.add(function.key)
                self.counts[f"functions, {whose}"] += 1
            return make(one, function, flags)

        def renewed(one: Analyser) -> None:
            self._stratum = 1
            renew(one)

        def settled(one: Analyser) -> None:
            settle(one)
            self._stratum = 2

        def applied(one: Any) -> None:
            self.counts["applications"] += 1
            effects(one)

        def asked(*arguments: Any) -> Any:
            found = callers(*arguments)
            self.counts["caller excursions"] += len(found)
            return found

        self.begin()
        vars_of: Any = Analyser
        vars_of._interpret, vars_of.renew, vars_of.settle = interpreted, renewed, settled
        (lambda module: setattr(module, "callers_of", asked))(run)
        (lambda cls: setattr(cls, "effects", applied))(application.Application)

    def begin(self) -> None:
        """An analysis of other files begins, which knows nothing of those before."""
        self._stratum, self._functions = 0, set()


def lines(cwd: Path, paths: list[Path], each: bool, screen: bool, counters: Counters | None = None) -> Iterator[str]:
    """The events and findings, hidden ones included, of an input."""
    import msgspec

    from memlint.engine.analysis import one_of_many
    from memlint.engine.collection import no_collection
    from memlint.engine.judging import judge
    from memlint.engine.options import Options, no_progress
    from memlint.engine.rules.selection import Overrides
    from memlint.engine.run import prepare
    from memlint.engine.workers.parts import parts_of

    options = Options(
        cwd=cwd,
        isolated=True,
        each=each,
        screen=screen,
        force_exclude=False,
        overrides=Overrides(min_confidence="low", preview=True),
    )
    if counters is not None:
        counters.watch()
    with no_collection():
        for prepared in prepare([str(path) for path in paths], options, no_progress):
            for part in parts_of(prepared.found.project):
                if counters is not None:
                    counters.begin()
                with one_of_many() as analyse:
                    events: list[Any] = []

                    def recorded(project: Any, events: list[Any] = events, analyse: Any = analyse, **asked: Any) -> Any:
                        events.append(analyse(project, **asked))
                        return events[-1]

                    found = judge(prepared, prepared.found.project.part(part), options, no_progress, recorded)
                    for run in events:
                        for path, some in run.events.items():
                            for event in some:
                                yield json.dumps(["event", path, repr(event)])
                yield from (json.dumps(["finding", one.path, msgspec.to_builtins(one)]) for one in found.findings)
                yield from (json.dumps(["failure", one.path, one.reason]) for one in found.failures)


def write_one(name: str, one: Input, out: Path, screen: bool) -> None:
    """Lint one input in this process."""
    counters = Counters()
    ordered = sorted(lines(*one, screen, counters))
    (out / f"{name}.jsonl").write_text("".join(line + "\n" for line in ordered), "utf-8")
    used = resource.getrusage(resource.RUSAGE_SELF)
    about = {
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": used.ru_maxrss // 1024,
        **dict(sorted(counters.counts.items())),
    }
    (out / f"{name}.json").write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def own_fixtures(folder: Path) -> Path:
    """A copy of the fixtures that is a project of its own, whose context is not memlint."""
    shutil.copytree(HERE.parent / "fixtures", folder / "fixtures")
    (folder / "fixtures" / "pyproject.toml").touch()
    return folder / "fixtures"


def write(args: argparse.Namespace) -> int:
    """Lint the inputs, each in a process of its own."""
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        return write_from(inputs(own_fixtures(Path(temporary)), args.packages, args.trees), args)


def write_from(known: dict[str, Input], args: argparse.Namespace) -> int:
    """Lint the inputs, or the one of them that is this process's."""
    if args.here:
        write_one(args.here, known[args.here], args.out, not args.no_screen)
        return 0
    for name in args.only or known:
        own = [sys.executable, __file__, *sys.argv[1:], "--here", name]
        failed = subprocess.run(own, check=False, env={**os.environ, "PYTHONHASHSEED": "0"}).returncode
        print(
            name, "FAILED" if failed else (args.out / f"{name}.json").read_text("utf-8").replace("\n", ""), flush=True
        )
    return 0


def compare(before: Path, after: Path, most: int) -> int:
    """Print what one folder has and the other lacks; 1 where there is anything."""
    different = 0
    for path in sorted(before.glob("*.jsonl")):
        other = after / path.name
        if not other.exists():
            print(f"{path.stem}: not in {after}")
            continue
        one, two = (collections.Counter(file.read_text("utf-8").splitlines()) for file in (path, other))
        lost, new = list((one - two).elements()), list((two - one).elements())
        different += len(lost) + len(new)
        print(f"{path.stem}: {one.total()} lines, {len(lost)} lost, {len(new)} new")
        for sign, some in (("-", lost), ("+", new)):
            for line in some[:most]:
                print(f"  {sign} {line}")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("out", type=Path)
    writing.add_argument("--packages", type=Path)
    writing.add_argument("--trees", type=Path)
    writing.add_argument("--only", nargs="+", metavar="NAME")
    writing.add_argument("--no-screen", action="store_true", help="look at all definitions")
    writing.add_argument("--here", help=argparse.SUPPRESS)
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--most", type=int, default=10, metavar="N", help="lines shown of each kind")
    args = parser.parse_args()
    return write(args) if args.command == "write" else compare(args.before, args.after, args.most)


if __name__ == "__main__":
    sys.exit(main())
