"""What an edit touches: the functions around it are analysed first, and the other findings are moved."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

import msgspec

from memlint.finding import Edit, Finding, Fix, Span, Statement, TraceStep, unnumbered
from memlint.patterns import NEWLINE

#: the most lines between the first and the last edited one that are compared, where lines are replaced
_MOST = 1_000
#: the name of a module's own statements
_MODULE = "<module>"


class Functions(msgspec.Struct, frozen=True):
    """The lines of a file, and its functions: qualified name, first and last line (from 1, with decorators)."""

    lines: tuple[str, ...]
    extents: tuple[tuple[str, int, int], ...]

    def are_inside(self, lines: AbstractSet[int]) -> bool:
        """Whether each of these lines is in a function."""
        left = set(lines)
        for _, first, last in self.extents:
            left.difference_update(range(first, last + 1))
        return not left


class Edited(msgspec.Struct, frozen=True):
    """An edit of a text. ``lines``: the line in the new text of each line of the old one that it leaves as it is.
    ``functions``: the qualified names of the functions that do not consist of the same lines in both texts, and
    "<module>" if another line outside of functions differs."""

    lines: Mapping[int, int]
    functions: frozenset[str] = frozenset()

    def touches(self, finding: Finding) -> bool:
        """Whether a finding in either text is in one of the functions."""
        return finding.statement is not None and unnumbered(finding.statement.function) in self.functions

    def range(self, first: int, last: int) -> tuple[int, int] | None:
        """Where lines of the old text are in the new one; None if one of them, or one between them, is new."""
        start, end = self.lines.get(first), self.lines.get(last)
        if start is None or end is None or end - start != last - first:
            return None
        return (start, end) if all(line in self.lines for line in range(first, last)) else None

    def nearest(self, line: int) -> int:
        """The line in the new text of this line of the old one, or of the last one before it that is left."""
        while line not in self.lines and line > 1:
            line -= 1
        return self.lines.get(line, 1)


def functions_of(text: str) -> Functions | None:
    """The functions of a text; None if it does not parse, or is nested too deeply."""
    try:
        extents = tuple(_functions(ast.parse(text).body, ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return Functions(tuple(NEWLINE.split(text)), extents)


def _functions(body: Iterable[ast.AST], prefix: str) -> Iterator[tuple[str, int, int]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            yield prefix + node.name, first, node.end_lineno or node.lineno
            yield from _functions(node.body, f"{prefix}{node.name}.<locals>.")
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{prefix}{node.name}.")
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _functions(ast.iter_child_nodes(node), prefix)


def edit_between(old: Functions, new: Functions) -> Edited | None:
    """The edit that makes one text of another; None if they are equal, or if too much differs to be compared."""
    if old.lines == new.lines:
        return None
    shorter = min(len(old.lines), len(new.lines))
    start = next((at for at in range(shorter) if old.lines[at] != new.lines[at]), shorter)
    rest = shorter - start
    end = next((at for at in range(rest) if old.lines[-1 - at] != new.lines[-1 - at]), rest)
    before, after = old.lines[start : len(old.lines) - end], new.lines[start : len(new.lines) - end]
    if before and after and max(len(before), len(after)) > _MOST:
        return None
    blocks = [(0, 0, start), (len(old.lines) - end, len(new.lines) - end, end)]
    same = difflib.SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    blocks += [(start + one, start + other, size) for one, other, size in same]
    lines = {one + at + 1: other + at + 1 for one, other, size in blocks for at in range(size)}
    gone = set(range(1, len(old.lines) + 1)) - lines.keys()
    made = set(range(1, len(new.lines) + 1)).difference(lines.values())
    edit = Edited(lines)
    # (a name may have several definitions, of which one comes, goes, or gets into a string)
    functions = {(name, edit.range(first, last)) for name, first, last in old.extents}
    names = {name for name, _ in functions ^ {(name, (first, last)) for name, first, last in new.extents}}
    if not (old.are_inside(gone) and new.are_inside(made)):
        names.add(_MODULE)
    return Edited(lines, frozenset(names))


def moved(finding: Finding, edit: Edited) -> Finding | None:
    """A finding of the old text at its place in the new one; None if a line of it has changed. A fix that would change
    an edited line is dropped."""
    place = edit.range(finding.line, finding.end_line)
    if place is None:
        return None
    fixes = (_moved_fix(one, finding.path, edit) for one in finding.alternatives)
    return msgspec.structs.replace(
        finding,
        line=place[0],
        end_line=place[1],
        trace=tuple(_moved_step(step, edit) if step.path == finding.path else step for step in finding.trace),
        fix=None if finding.fix is None else _moved_fix(finding.fix, finding.path, edit),
        alternatives=tuple(fix for fix in fixes if fix is not None),
        statement=None if finding.statement is None else _moved_statement(finding.statement, edit),
    )


def _moved_step(step: TraceStep, edit: Edited) -> TraceStep:
    return msgspec.structs.replace(step, line=edit.nearest(step.line))


def _moved_fix(fix: Fix, path: str, edit: Edited) -> Fix | None:
    edits: list[Edit] = []
    for one in fix.edits:
        span = one.span
        if one.path == path:
            place = edit.range(span.line, span.end_line)
            if place is None:
                return None
            span = Span(place[0], span.column, place[1], span.end_column)
        edits.append(msgspec.structs.replace(one, span=span))
    return msgspec.structs.replace(fix, edits=tuple(edits))


def _moved_statement(statement: Statement, edit: Edited) -> Statement:
    first, last = edit.nearest(statement.line), edit.nearest(statement.end_line)
    return msgspec.structs.replace(statement, line=first, end_line=last)
