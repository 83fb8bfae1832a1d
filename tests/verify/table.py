"""The programs of fixtures/verify and what `memlint verify` must say of each. The benchmark of that reads this, too.

``# verdict: CODE verdict, …`` stands on the line of the findings, ``# unattributed`` where memory is asked for that
stays and that no finding explains; ``# verify: …`` are options, ``# run: …`` the arguments of one of several runs, and
``# slow`` keeps a program out of the quick tests, ``# slow run: …`` one of its runs.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

PROGRAMS = Path(__file__).resolve().parents[2] / "fixtures" / "verify"
VERDICTS = re.compile(r"# verdict: ([A-Z0-9a-z, -]+)")
_RUNS = re.compile(r"^# (slow )?run: (.*)$", re.MULTILINE)
_BAD = re.compile("confirmed|cycle|peak-only")


class Run(NamedTuple):
    """One run of a program. ``script``: relative to their folder; ``own``: the program's own arguments."""

    script: Path
    own: tuple[str, ...]
    slow: bool

    @property
    def name(self) -> str:
        program = self.script.stem if self.script.parent == Path() else self.script.parent.name
        return " ".join([program, *self.own])


def runs() -> list[Run]:
    """The runs of all programs."""
    scripts = [*sorted(PROGRAMS.glob("*.py")), PROGRAMS / "several_files/train.py", PROGRAMS / "packaged/__main__.py"]
    found = []
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        slow = re.search(r"^# slow$", text, re.MULTILINE) is not None
        for mark, own in _RUNS.findall(text) or [("", "")]:
            found.append(Run(script.relative_to(PROGRAMS), tuple(own.split()), slow or bool(mark)))
    return found


def arguments(run: Run, device: str) -> list[str]:
    """What stands behind ``memlint verify``, run in the programs' folder."""
    options = re.search(r"^# verify: (.*)$", (PROGRAMS / run.script).read_text(encoding="utf-8"), re.MULTILINE)
    words = options[1].split() if options else []
    named = [] if "-m" in words else [run.script.as_posix()]
    return [*named, *words, "--device", device, "--output-format", "json", "--", "--device", device, *run.own]


def expected(script: Path) -> tuple[list[str], list[str]]:
    """The verdicts and the unattributed places, as sorted lines of text. A program in a folder of its own is all of
    it."""
    files = [PROGRAMS / script] if script.parent == Path() else sorted((PROGRAMS / script.parent).glob("*.py"))
    verdicts, unattributed = [], []
    for file in files:
        shown = file.relative_to(PROGRAMS).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            found = VERDICTS.search(line)
            names = found[1].split(",") if found else ()
            verdicts += [f"{shown}:{number} {name.strip()}" for name in names]
            if line.endswith("# unattributed"):
                unattributed.append(f"{shown}:{number}")
    return sorted(verdicts), sorted(unattributed)


def expected_exit(script: Path) -> int:
    verdicts, _ = expected(script)
    return int(any(_BAD.search(verdict) for verdict in verdicts))


def said(report: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The same two of a report."""
    left = report["unattributed"]
    verdicts = [f"{one['path']}:{one['line']} {one['code']} {one['verdict']['verdict']}" for one in report["findings"]]
    places = set()
    for stack in left["stacks"]:
        own = next((frame for frame in stack["frames"] if not frame["path"].startswith(("/", "<"))), None)
        places.add("nowhere" if own is None else f"{own['path']}:{own['line']}")
    if left["loops"] and not places:
        places.add("nowhere")
    return sorted(verdicts), sorted(places)
