"""What ``memlint explain`` says of one line: the values on it, and why rules fired there or did not."""

from __future__ import annotations

from typing import Literal

import msgspec

from memlint.finding import Finding

GradMode = Literal["on", "off", "on or off", "unknown"]
Status = Literal["reported", "not shown", "elsewhere", "dropped", "no candidate"]


class ValueFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One expression; its line and column count from the cell in a notebook. ``kinds``: what it may be. ``graph``:
    whether it has an autograd graph (yes, no, some: on some paths, unknown; "" where it can have none). ``made_by``:
    what recorded the graph; ``freed_by``: the lines of the backward() calls that go through it, ``freed_in``: the cells
    that these are in, ``freed_inside``: one in a called function does; ``needed_by``: who gets the graph otherwise;
    ``unknown``: what would tell more. ``text``: all of it as a sentence."""

    expression: str
    line: int
    column: int
    kinds: tuple[str, ...]
    graph: str = ""
    made_by: tuple[str, ...] = ()
    freed_by: tuple[int, ...] = ()
    freed_in: tuple[int, ...] = ()
    freed_inside: bool = False
    needed_by: tuple[str, ...] = ()
    device: str = ""
    size: str = ""
    mode: str = ""
    unknown: str = ""
    text: str = ""


class StatementFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One statement on the line. ``decided_by``: who turns grad mode on or off there; ``loops``: what repeats it, the
    innermost last. ``reached``: the analysis comes to it; ``notes``: what else is to be known."""

    source: str
    function: str
    line: int
    column: int
    reached: bool
    grad_mode: GradMode
    decided_by: str
    loops: tuple[str, ...]
    values: tuple[ValueFacts, ...]
    notes: tuple[str, ...] = ()


class Why(msgspec.Struct, frozen=True):
    """A reason by name, in one line."""

    name: str
    text: str


class RuleFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says of the line. ``reported``: the finding is shown by ``memlint check``; "not shown": there is one
    that is held back; "elsewhere": the trace of one at another line leads through this one; "dropped": there is a
    candidate that is none, for the reasons given."""

    code: str
    name: str
    status: Status
    reasons: tuple[Why, ...]
    finding: Finding | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """``source``: the line as it is in the file. ``cell``: of a notebook, in which lines count from 1; None in other
    files."""

    path: str
    line: int
    column: int | None
    source: str
    statements: tuple[StatementFacts, ...]
    rules: tuple[RuleFacts, ...]
    failures: tuple[str, ...] = ()
    cell: int | None = None
