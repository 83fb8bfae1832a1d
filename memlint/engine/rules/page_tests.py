"""The programs of a rule's page are its tests: each is linted by the rule, and fixed where the page shows that."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from memlint.config import ConfigError
from memlint.engine.fixing.fixing import run_and_fix
from memlint.engine.options import Options
from memlint.engine.rules.programs import Example, examples, marks, unmarked
from memlint.engine.rules.rooms import Room, own_rooms
from memlint.engine.rules.selection import Overrides
from memlint.engine.run import run
from memlint.reading import read_text

#: the folder of a user's rule in a program's folder, while it is tested
_RULES = "rule_under_test"


class Tested(msgspec.Struct, frozen=True):
    """The number of programs of a page, and their errors, one per line."""

    programs: int
    wrong: tuple[str, ...]


def run_programs(room: Room) -> Tested:
    """Lint and fix the programs of a rule's page. Raises ConfigError if there is no page, if it is malformed, and for a
    rule that may not run."""
    if room.closed:
        raise ConfigError(f"{room.meta.code} is a rule of the project, which runs with --local-rules only")
    try:
        found = examples(room.folder.name, read_text(room.page))
        for one in found:
            marks(one.files)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{room.page}: {error}") from None
    if not found:
        raise ConfigError(f"{room.page} has no programs: write them under ### headings below `## Bad` and `## Good`")
    return Tested(len(found), tuple(f"{one.title}: {said}" for one in found for said in _wrong(room, one)))


def _wrong(room: Room, one: Example) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="memlint-") as name:
        folder = Path(name).resolve()
        options = _written(room, one, folder)
        result = run([str(folder)], options).result
        found = {(_inside(folder, row.path), row.line) for row in result.findings if row.suppressed is None}
        for failure in result.failures:
            yield f"{_inside(folder, failure.path)}: {failure.reason}"
        yield from _compared(room, one, found)
        if one.fixed and not result.failures:
            run_and_fix([str(folder)], msgspec.structs.replace(options, unsafe_fixes=not one.safe))
            for path, text in one.fixed.items():
                after = (folder / path).read_text("utf-8") if (folder / path).is_file() else ""
                if after != text:
                    yield f"{path} is not fixed as shown, but:\n{after}"


def _written(room: Room, one: Example, folder: Path) -> Options:
    """Write a program and the rule beside it; returns the options to lint it."""
    for path, text in {"pyproject.toml": "", "memlint.toml": "", **one.files}.items():
        target = folder / path
        if folder not in target.resolve().parents:
            raise ConfigError(f"{room.page}: {path} lies outside of the folder of its program")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(unmarked(text), "utf-8")
    if not room.folder.is_relative_to(own_rooms()):
        shutil.copytree(room.folder, folder / _RULES / room.folder.name)
        table = f'rule-paths = ["{_RULES}"]\nextend-exclude = ["{_RULES}"]\n'
        (folder / "memlint.toml").write_text(table, "utf-8")
    overrides = Overrides(select=(room.meta.code,), preview=True, min_confidence="medium")
    return Options(cwd=folder, config=folder / "memlint.toml", local_rules=True, overrides=overrides)


def _inside(folder: Path, path: str) -> str:
    return (folder / path).resolve().relative_to(folder).as_posix()


def _compared(room: Room, one: Example, found: set[tuple[str, int]]) -> Iterator[str]:
    """The differences between findings and the markers of a program, and between these and its section."""
    given = marks(one.files)
    is_bad = any(code == room.meta.code for _, _, code in given.errors | given.todo_errors)
    if is_bad != (one.section == "Bad"):
        yield f"it is under {one.section}, and {'a' if is_bad else 'no'} line is marked as an error"
    errors, known_misses, known_alarms = (
        {(path, line) for path, line, code in rows if code == room.meta.code}
        for rows in (given.errors, given.todo_errors, given.todo_oks)
    )
    for said, rows in (
        ("is marked, and nothing is found", errors - found),
        ("is not marked, and something is found", found - errors - known_misses - known_alarms),
        ("is found: make its todo-error an error", found & known_misses),
        ("is no false alarm any more: take its todo-ok away", known_alarms - found),
    ):
        yield from (f"{path}:{line} {said}" for path, line in sorted(rows))
