"""``memlint rule``: the page of a rule."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import msgspec

from memlint.amounts import plural
from memlint.config import ConfigError
from memlint.engine.rules.rooms import Room, load_rooms
from memlint.engine.rules.selection import find_room
from memlint.engine.run import local_rules
from memlint.json_text import indented
from memlint.printable import printable
from memlint.reading import read_text


def show(parsed: argparse.Namespace) -> int:
    """Print one page, every page with ``--all``, or the list of rules; with ``--test``, run the programs of a page.
    Raises ConfigError for an unknown rule."""
    config = local_rules(Path.cwd(), asked=parsed.local_rules)
    rooms = load_rooms(config.rule_paths, config.closed_rules)
    if parsed.rule is not None and parsed.all:
        raise ConfigError("name a rule, or --all, not both")
    if parsed.test:
        if parsed.rule is None:
            raise ConfigError("name the rule to test")
        return _test(find_room(rooms, parsed.rule))
    chosen = [find_room(rooms, parsed.rule)] if parsed.rule is not None else list(rooms.values())
    if parsed.output_format == "json":
        rows = [_row(room) for room in chosen]
        print(indented(rows[0] if parsed.rule is not None else rows), end="")
    elif parsed.rule is None and not parsed.all:
        _list(chosen)
    else:
        _pages(chosen)
    return 0


def _test(room: Room) -> int:
    from memlint.engine.rules.page_tests import run_programs

    tested = run_programs(room)
    for line in tested.wrong:
        print("\n".join(map(printable, line.split("\n"))))
    said = f"{plural(len(tested.wrong), 'mistake')} in" if tested.wrong else "all is as marked in"
    print(printable(f"{room.meta.code}: {said} {plural(tested.programs, 'program')} of {room.page}"))
    return 1 if tested.wrong else 0


def _row(room: Room) -> dict[str, Any]:
    meta = msgspec.to_builtins(room.meta)
    del meta["fix_rank"], meta["of_grad_mode"]  # internal to rules and engine
    return {**meta, "page": page(room)}


def page(room: Room) -> str:
    """The text of a rule's page; for a rule without one, its metadata."""
    try:
        return read_text(room.page)
    except OSError:
        pass
    return f"# {room.meta.name} ({room.meta.code})\n\n{room.meta.summary}\n"


def _list(rooms: list[Room]) -> None:
    width = max(len(room.meta.name) for room in rooms)
    for room in rooms:
        preview = " (preview)" if room.meta.preview else ""
        row = f"{room.meta.code}  {room.meta.name:<{width}}  {room.meta.severity:<7}  {room.meta.summary}{preview}"
        print(printable(row))


def _pages(rooms: list[Room]) -> None:
    if not sys.stdout.isatty():
        print("\n".join(map(_printed, rooms)), end="")
        return
    from rich.markdown import Markdown

    from memlint.report.text import console

    target = console(sys.stdout)
    for room in rooms:
        target.print(Markdown(_printed(room)))


def _printed(room: Room) -> str:
    return "\n".join(map(printable, page(room).split("\n")))
