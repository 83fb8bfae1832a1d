"""Names for memory that torch has given another name."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Function, Summary, memory, used_names
from memlint.sdk.syntax import identifiers, ir, walk_statements

from .rule import OldName

_NAMES = frozenset(memory.renamed()) - frozenset(memory.missing())


def detect(analyser: Analyser, summary: Summary) -> Iterator[OldName]:
    """The renamed APIs that one function uses under their old names, if its torch has the new ones."""
    newest = analyser.program.project.newest_torch
    for use in used_names(analyser, summary, _NAMES):
        renamed = memory.renamed()[use.name]
        if (newest is not None and newest < renamed.since) or _tries(summary.function, renamed.use):
            continue
        yield OldName(
            site=summary.site(use.at),
            function=summary.function.qual,
            name=use.name,
            text=use.text,
            advice=f"use `torch.cuda.{renamed.use}`",
            new=f"{use.module}.{renamed.use}" if use.module else "",
        )


def _tries(function: Function, name: str) -> bool:
    """Whether a function falls back to another name after any error."""
    return any(
        isinstance(statement, ir.Try) and name in identifiers(statement.body)[1]
        for statement in walk_statements(function.body, into_definitions=False)
    )
