"""Writing of comments that suppress findings, without a change of the program."""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from memlint.config import ConfigError
from memlint.engine.comments.suppressions import LAYOUT, Suppression, codes_at, read, tokens_of
from memlint.engine.judging import Linted
from memlint.engine.rules.rooms import META_RULES
from memlint.engine.run import Outcome
from memlint.finding import Edit, Finding, Refusal, Span
from memlint.fix.cells import is_as_read, module_place, place_in, write_back
from memlint.fix.edits import place, splice
from memlint.fix.files import Change, WriteError, obstacle, write
from memlint.fix.spans import EditError, text_of
from memlint.patterns import lazy_pattern
from memlint.project import Project

#: comments of other tools that mean something else, or nothing, with more text after them
_NEEDS_ITS_END = lazy_pattern(r"#\s*(?:type|fmt|yapf|isort)\s*:")
_META = frozenset(meta.code for meta in META_RULES)


class Ignored(msgspec.Struct, frozen=True):
    """``changes``: the written files; ``added``: the findings that are now suppressed; ``left``: those that are not,
    with the reason."""

    changes: tuple[Change, ...]
    added: tuple[Finding, ...]
    left: tuple[Refusal, ...]


class _Line(msgspec.Struct, frozen=True):
    """A logical line: its first and last line, and the comment at its end."""

    first: int
    last: int
    comment: str


def check_reason(reason: str) -> None:
    """Raises ConfigError for a reason that would not be parsed back."""
    if "#" in reason or not reason.isprintable():
        raise ConfigError("--add-ignore: a reason is one line without `#`")


def add_ignores(outcome: Outcome, reason: str) -> Ignored:
    """Write a suppression at each finding that is reported. A file is written whole or not at all."""
    changes: list[Change] = []
    added: list[Finding] = []
    left: list[Refusal] = []
    for prepared, linted in outcome.parts:
        project = prepared.found.project
        for display, findings in _by_file(linted, left).items():
            try:
                change, rest = _change(project, display, findings, reason)
                write([change])
            except (EditError, OSError, SyntaxError, LookupError, UnicodeError) as error:
                left += [Refusal(finding, str(error)) for finding in findings]
            except WriteError as error:
                left += [Refusal(finding, error.reason) for finding in findings]
            else:
                left += rest
                refused = {refusal.finding for refusal in rest}
                added += [finding for finding in findings if finding not in refused]
                changes += [change] if change.after != change.before else []
    return Ignored(tuple(changes), tuple(added), tuple(left))


def _by_file(linted: Linted, left: list[Refusal]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in linted.findings:
        if finding.suppressed is not None:
            continue
        if finding.code in _META:
            left.append(Refusal(finding, "it is about the file itself, or about a comment that can go"))
        else:
            found.setdefault(finding.path, []).append(finding)
    return found


def _change(project: Project, display: str, findings: list[Finding], reason: str) -> tuple[Change, list[Refusal]]:
    """A file with comments, and the findings without one. Raises EditError, and what reading raises."""
    path, source = project.path(display), project.sources[display]
    if (problem := obstacle(path, project.root)) is not None:
        raise EditError(problem)
    raw = project.sources.raw(display)
    if not is_as_read(source, raw):
        raise EditError("the file is in an older grammar, or has changed since it was read")
    lines = {finding: module_place(source.cells, finding)[0] for finding in findings}
    wanted: dict[int, set[str]] = {}
    for finding, line in lines.items():
        wanted.setdefault(line, set()).add(finding.code)
    edits, placed = ignores(source.text, wanted, reason, [cell.line for cell in source.cells])
    after = write_back(source, raw, place_in(source, edits))
    rest = [Refusal(one, "its line is in no statement") for one, line in lines.items() if line not in placed]
    return Change(path, display, raw, after), rest


def ignores(
    text: str, wanted: Mapping[int, Collection[str]], reason: str = "", starts: Sequence[int] = ()
) -> tuple[list[Edit], set[int]]:
    """The edits that suppress these codes at these lines of a text, and the lines that get comments. ``starts``: the
    first lines of cells. Raises EditError if the program would change."""
    lines = list(_logical_lines(text))
    codes: dict[int, set[str]] = {}
    placed: set[int] = set()
    for number, line in enumerate(lines):
        here = [at for at in wanted if line.first <= at <= line.last]
        for at in here:
            codes.setdefault(number, set()).update(wanted[at])
        placed.update(here)
    known = read(text, starts=starts).suppressions
    edits = [Edit("", span, content) for span, content in _edits(text, lines, codes, reason, known)]
    after = splice(text, place(text, edits))
    # a comment above a statement moves the following cells
    moved = [start + sum(edit.span.line < start and "\n" in edit.content for edit in edits) for start in starts]
    if not _is_same(text, after) or not _holds(after, moved, lines, wanted, placed):
        raise EditError("a comment would change the program")
    return edits, placed


def _logical_lines(text: str) -> Iterator[_Line]:
    first, comment = 0, ""
    for token in tokens_of(text):
        if token.type == tokenize.COMMENT:
            comment = token.string
        elif token.type == tokenize.NEWLINE:
            yield _Line(first, token.start[0], comment)
            first = 0
        elif token.type == tokenize.NL:
            comment = ""
        elif token.type not in LAYOUT:
            first, comment = first or token.start[0], ""


def _edits(
    text: str, lines: list[_Line], codes: Mapping[int, set[str]], reason: str, known: Sequence[Suppression]
) -> Iterator[tuple[Span, str]]:
    content = text_of(text)
    more: dict[Suppression, set[str]] = {}
    for number, names in codes.items():
        line = lines[number]
        ours = [one for one in known if one.by == "ignore" and one.first <= line.first and line.last <= one.last]
        missing = names.difference(*(one.codes for one in ours))
        own = next((one for one in ours if reason in ("", one.reason)), None)
        if own is not None:
            more.setdefault(own, set()).update(missing)
        elif missing:
            comment = f"# memlint: ignore[{', '.join(sorted(missing))}]" + (f" -- {reason}" if reason else "")
            if _NEEDS_ITS_END.search(line.comment):
                newline = content.newline(line.first)
                yield Span(line.first, 1, line.first, 1), content.indent(line.first) + comment + newline
            else:
                row = content.lines[line.last - 1].rstrip("\r\n")
                yield Span(line.last, len(row.rstrip()) + 1, line.last, len(row) + 1), f"  {comment}"
    for own, missing in more.items():
        row = content.lines[own.line - 1]
        end = codes_at(own, row)
        start = len(row[:end].rstrip())
        if missing:
            yield Span(own.line, start + 1, own.line, end + 1), "".join(f", {name}" for name in sorted(missing))


def _is_same(before: str, after: str) -> bool:
    """Whether two texts are the same program, apart from comments for memlint."""
    return _code(before) == _code(after) and _tree(before) == _tree(after)


def _code(text: str) -> list[tuple[int, str]]:
    left_out = (tokenize.COMMENT, tokenize.NL)
    # INDENT and DEDENT show the indentation; the text of NEWLINE only shows how the last line ends
    return [
        (token.type, "" if token.type == tokenize.NEWLINE else token.string)
        for token in tokens_of(text)
        if token.type not in left_out
    ]


def _tree(text: str) -> str:
    for type_comments in (True, False):
        try:
            tree = ast.parse(text, type_comments=type_comments)
            for one in tree.type_ignores:
                one.lineno = 0  # a field here, and no attribute as of other nodes
            return ast.dump(tree)
        except (SyntaxError, ValueError):  # misplaced type comments
            continue
        except RecursionError:
            break
    return ""


def _holds(
    after: str,
    starts: Sequence[int],
    before: list[_Line],
    wanted: Mapping[int, Collection[str]],
    placed: Iterable[int],
) -> bool:
    """Whether the comments suppress what they should."""
    lines, known = list(_logical_lines(after)), read(after, starts=starts).suppressions
    if len(lines) != len(before):
        return False
    for at in placed:
        old, new = next((old, new) for old, new in zip(before, lines, strict=True) if old.first <= at <= old.last)
        now = new.first + at - old.first
        held = {code for one in known if one.by == "ignore" and one.first <= now <= one.last for code in one.codes}
        if not held.issuperset(wanted[at]):
            return False
    return True
