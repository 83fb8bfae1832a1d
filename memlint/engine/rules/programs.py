"""The programs of a rule's page: each ``###`` heading under Bad or Good is one program, each Python block below it
one file of that program.

A block's info string is ``python``, with ``title="pkg/file.py"`` where a program has several files (a block without
a title is ``train.py``), or ``python fixed`` for what ``--fix --unsafe-fixes`` makes of the program before it (of files
that it leaves as they are there is no such block), and ``python fixed safe`` for what ``--fix`` alone makes of it.

Markers are comments at the end of a line: ``# error: [MEM101]`` (a finding of any severity starts on this line),
``# todo-error: [MEM101]`` (a known miss) and ``# todo-ok: [MEM101]`` (a known false alarm).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memlint.patterns import lazy_pattern

_MARKER = lazy_pattern(r"#\s*(error|todo-error|todo-ok):\s*\[(MEM\d{3}(?:,\s*MEM\d{3})*)\]")
_LOOKS_LIKE_MARKER = lazy_pattern(r"#\s*(?:todo-)?(?:error|ok)\b")
_FENCE = lazy_pattern(r"^(```+)(.*)$")
_TITLE = lazy_pattern(r'title="([^"]+)"')

#: path, line, code
Mark = tuple[str, int, str]


@dataclass(frozen=True)
class Example:
    """One program of a page. ``files`` maps relative paths to their text."""

    room: str
    section: str
    title: str
    files: dict[str, str]
    fixed: dict[str, str]
    #: the fixed files that safe fixes alone produce
    safe: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        return f"{self.room[:6]}-{self.section}-{slug(self.title)}"


@dataclass(frozen=True)
class Marks:
    errors: frozenset[Mark]
    todo_errors: frozenset[Mark]
    todo_oks: frozenset[Mark]

    @property
    def reported_today(self) -> frozenset[Mark]:
        return self.errors | self.todo_oks


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def sections(text: str) -> dict[str, str]:
    """The ``##`` sections of a page by heading, in order; headings inside code blocks are code."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if match and not fence:
            fence = match.group(1)
        elif match and match.group(1) == fence and not match.group(2):
            fence = ""
        elif not fence and line.startswith("## "):
            current = found.setdefault(line[3:].strip(), [])
            continue
        if current is not None:
            current.append(line)
    return {heading: "\n".join(lines) for heading, lines in found.items()}


def examples(room: str, text: str) -> list[Example]:
    """The programs of a page. Raises ValueError where a block has no heading above it, or two blocks one name."""
    parts = sections(text)
    return [example for section in ("Bad", "Good") for example in _programs(room, section, parts.get(section, ""))]


def _programs(room: str, section: str, text: str) -> list[Example]:
    programs: list[Example] = []
    block: list[str] | None = None
    info = fence = ""
    for line in text.splitlines():
        match = _FENCE.match(line)
        if block is None and line.startswith("### "):
            programs.append(Example(room, section, line[4:].strip(), {}, {}))
        elif block is None and match:
            fence, info, block = match.group(1), match.group(2).strip(), []
        elif block is not None and match and match.group(1) == fence and not match.group(2):
            if info.split(" ")[0] == "python":
                _add(programs, info, "\n".join(block) + "\n")
            block = None
        elif block is not None:
            block.append(line)
    return programs


def _add(programs: list[Example], info: str, code: str) -> None:
    if not programs:
        raise ValueError("a block of code needs a ### heading above it")
    example = programs[-1]
    title = _TITLE.search(info)
    path = title.group(1) if title else "train.py"
    words = _TITLE.sub("", info).split()
    files = example.fixed if "fixed" in words else example.files
    if "safe" in words:
        example.safe.add(path)
    if path in files:
        raise ValueError(f"{example.id}: two blocks are called {path}")
    files[path] = code


def marks(files: dict[str, str]) -> Marks:
    """The markers of a program. Raises ValueError for one that is misspelt."""
    found: dict[str, set[Mark]] = {"error": set(), "todo-error": set(), "todo-ok": set()}
    for path, text in files.items():
        for number, line in enumerate(text.splitlines(), 1):
            if _LOOKS_LIKE_MARKER.search(_MARKER.sub("", line)):
                raise ValueError(f"{path}:{number}: not a marker: {line.strip()}")
            for kind, codes in _MARKER.findall(line):
                found[kind].update((path, number, code.strip()) for code in codes.split(","))
    return Marks(frozenset(found["error"]), frozenset(found["todo-error"]), frozenset(found["todo-ok"]))


def unmarked(text: str) -> str:
    """A file without its markers."""
    return "".join(re.sub(rf"\s*{_MARKER.pattern}", "", line) + "\n" for line in text.splitlines())
