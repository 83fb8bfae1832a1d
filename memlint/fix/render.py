"""Rendering of a plan as a `memlint.finding.Fix`: text edits on the current file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from memlint.analysis.domain.events import Site
from memlint.finding import Edit, Fix, Safety, Span
from memlint.fix.imports import torch_name
from memlint.fix.indent import indented, unit_of
from memlint.fix.plan import After, Argument, Around, Change, Decorate, Drop, Guard, Line, Plan, Remove, Replace, Top
from memlint.fix.spans import Text, text_of
from memlint.patterns import lazy_pattern
from memlint.project import Source


class Places(Protocol):
    """The source ranges of sites: the whole, and the header of a compound statement."""

    def extent(self, site: Site) -> Span: ...
    def span(self, site: Site) -> Span: ...


class NoFixError(Exception):
    """The code at this position has a form in which the change cannot be made."""


def render(plan: Plan, places: Places, sources: Mapping[str, Source]) -> Fix | None:
    """The plan as edits; None if its file is not linted or differs from its module, or the code has a form in which the
    change cannot be made."""
    edits: list[Edit] = []
    comments = False
    try:
        for change in plan.changes:
            path = _path(change)
            if not sources[path].linted or sources[path].rewritten:
                return None
            text = text_of(sources[path].text)
            for span, content in _RENDER[type(change)](change, places, text):
                comments = comments or _drops_comment(text[span], content)
                edits += _named(path, text, span, content)
    except NoFixError:
        return None
    doubt = plan.doubt or ("a comment is lost" if comments else "")
    safety: Safety = "display" if plan.display else "unsafe" if doubt else "safe"
    return Fix(safety, plan.title, doubt or None, _joined(edits))


def _joined(edits: list[Edit]) -> tuple[Edit, ...]:
    """The edits in order; insertions at one position, in the order of the plan, become one edit."""
    found: dict[tuple[str, Span], str] = {}
    for edit in dict.fromkeys(edits):
        found[edit.path, edit.span] = found.get((edit.path, edit.span), "") + edit.content
    ordered = sorted(found.items(), key=lambda item: (item[0][0], item[0][1].line, item[0][1].column))
    return tuple(
        Edit(path, span, content) for (path, span), content in ordered if content or _start(span) != _end(span)
    )


def _path(change: Change) -> str:
    match change:
        case Guard():
            return change.first.path
        case Around():
            return change.outer.path
        case _:
            return change.site.path


def _named(path: str, text: Text, span: Span, content: str) -> list[Edit]:
    """An edit whose text uses the file's name for torch, with the import that this needs."""
    if "{torch}" not in content:
        return [Edit(path, span, content)]
    found = torch_name(text, span.line, at_import=content.lstrip().startswith("@"))
    if found is None:
        raise NoFixError
    name, line = found
    edits = [Edit(path, span, content.replace("{torch}", name))]
    if line is not None:
        at = Span(line, 1, line, 1)
        edits.insert(0, Edit(path, at, f"import torch{text.newline(line)}"))
    return edits


def _drops_comment(old: str, new: str) -> bool:
    return "#" in old and old.count("#") > new.count("#")


Written = list[tuple[Span, str]]


def _after(change: After, places: Places, text: Text) -> Written:
    """A suffix after an expression, with parentheses around it if its precedence is lower than a call's."""
    span = places.extent(change.site)
    if _is_primary(text[span]):
        return [(_end(span), change.text)]
    grouped = text.grouped(span)
    if grouped is not None:
        return [(_end(grouped), change.text)]
    return [(_start(span), "("), (_end(span), f"){change.text}")]


def _replace(change: Replace, places: Places, text: Text) -> Written:
    return [(places.extent(change.site), change.text)]


def _remove(change: Remove, places: Places, text: Text) -> Written:
    span = places.extent(change.site)
    if not text.begins_line(span) or not text.ends_line(span):
        raise NoFixError
    last = text.lines[span.end_line - 1]
    whole = last.endswith(("\n", "\r"))  # otherwise it is the last line of the file, and nothing follows it
    end = (span.end_line + 1, 1) if whole else (span.end_line, len(last) + 1)
    return [(Span(span.line, 1, *end), "")]


def _top(change: Top, places: Places, text: Text) -> Written:
    """Before the first statement of a body, which must begin its line."""
    header, whole = places.span(change.site), places.extent(change.site)
    line = text.next_statement(header.end_line, header.end_column, whole.end_line)
    if line is None:
        raise NoFixError
    indent = text.indent(line)
    return [(Span(line, 1, line, 1), f"{indent}{change.text}{text.newline(line)}")]


def _guard(change: Guard, places: Places, text: Text) -> Written:
    first, last = places.extent(change.first), places.extent(change.last)
    if not text.begins_line(first) or not text.ends_line(last) or text[first].startswith(("elif", "else")):
        raise NoFixError
    indent = text.indent(first.line)
    written: Written = []
    if change.header:
        top = f"{indent}{change.header}{text.newline(first.line)}"
        written.append((Span(first.line, 1, first.line, 1), top))
    lines = indented(text, first.line, last.end_line, unit_of(text, indent))
    if lines is None:
        raise NoFixError
    return [*written, *lines]


def _decorate(change: Decorate, places: Places, text: Text) -> Written:
    span = places.span(change.site)
    if not text.begins_line(span):
        raise NoFixError
    return [(Span(span.line, 1, span.line, 1), f"{text.indent(span.line)}{change.text}{text.newline(span.line)}")]


def _argument(change: Argument, places: Places, text: Text) -> Written:
    span = places.extent(change.site)
    call = text[span]
    node = _parsed(call)
    if not isinstance(node, ast.Call) or not call.endswith(")") or "#" in call:
        raise NoFixError
    inside = call[:-1].rstrip()
    lines = inside.splitlines()
    at = Span(span.end_line, span.end_column - 1, span.end_line, span.end_column - 1)
    added = _quoted(change.text, text)
    if not node.args and not node.keywords:
        return [(at, added)]
    if len(lines) == len(call.splitlines()) or inside.endswith("\\"):
        return [(at, f" {added}" if inside.endswith(",") else f", {added}")]
    # the bracket is on a line of its own
    line = span.line + len(lines) - 1
    column = len(lines[-1]) + 1 + (span.column - 1 if len(lines) == 1 else 0)
    at = Span(line, column, line, column)
    if inside.endswith(",") and len(lines) > 1:
        return [(at, f"{text.newline(line)}{text.indent(line)}{added},")]
    return [(at, f" {added}" if inside.endswith(",") else f", {added}")]


def _drop(change: Drop, places: Places, text: Text) -> Written:
    span = places.extent(change.site)
    before, after = text.lines[span.line - 1][: span.column - 1], text.lines[span.end_line - 1][span.end_column - 1 :]
    word = _KEYWORD.search(before)
    follows = _FOLLOWS.match(after)
    if word is None or (word[1] == "(" and follows is None):
        return [(span, change.default)]
    if word[1] == ",":
        return [(Span(span.line, word.start() + 1, span.end_line, span.end_column), "")]
    end = span.end_column + (follows.end() if follows is not None else 0)
    return [(Span(span.line, word.start() + 2, span.end_line, end), "")]


#: what stands before the value of a keyword argument, and what may follow the first argument on its line
_KEYWORD = lazy_pattern(r"([(,])\s*\w+\s*=\s*$")
_FOLLOWS = lazy_pattern(r"\s*,\s*(?=[^\s)#])|\s*(?=\))")


def _quoted(code: str, text: Text) -> str:
    """Code with the kind of quotes that is more frequent in the file."""
    singles, doubles = text.quotes
    return code.replace('"', "'") if singles > doubles and "'" not in code else code


def _around(change: Around, places: Places, text: Text) -> Written:
    inner, outer = places.extent(change.inner), places.extent(change.outer)
    return [
        (Span(outer.line, outer.column, inner.line, inner.column), change.before),
        (Span(inner.end_line, inner.end_column, outer.end_line, outer.end_column), change.after),
    ]


def _line(change: Line, places: Places, text: Text) -> Written:
    span = places.extent(change.site)
    if not text.begins_line(span) or not text.ends_line(span) or text[span].startswith("elif"):
        raise NoFixError
    line = f"{text.indent(span.line)}{change.text}{text.newline(span.end_line)}"
    if not change.behind:
        return [(Span(span.line, 1, span.line, 1), line)]
    last = text.lines[span.end_line - 1]
    if not last.endswith(("\n", "\r")):
        at = Span(span.end_line, len(last) + 1, span.end_line, len(last) + 1)
        return [(at, text.newline(span.end_line) + line.rstrip("\r\n"))]
    return [(Span(span.end_line + 1, 1, span.end_line + 1, 1), line)]


_RENDER: dict[type, Callable[[Any, Places, Text], Written]] = {
    After: _after,
    Replace: _replace,
    Remove: _remove,
    Top: _top,
    Guard: _guard,
    Decorate: _decorate,
    Argument: _argument,
    Drop: _drop,
    Around: _around,
    Line: _line,
}


def _is_primary(code: str) -> bool:
    """Whether ``code.x`` is the attribute of the whole expression."""
    kinds = ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List | ast.Dict | ast.ListComp
    return isinstance(_parsed(code), kinds)


def _parsed(code: str) -> ast.expr | None:
    try:
        return ast.parse(f"({code}\n)", mode="eval").body
    except (SyntaxError, ValueError):
        return None


def _start(span: Span) -> Span:
    return Span(span.line, span.column, span.line, span.column)


def _end(span: Span) -> Span:
    return Span(span.end_line, span.end_column, span.end_line, span.end_column)
