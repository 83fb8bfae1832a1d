"""Code actions: the fixes of a finding, all safe ones of a file, and a comment that suppresses a finding."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from lsprotocol import types

from memlint.engine.ignoring import ignores
from memlint.engine.rooms import META_RULES
from memlint.finding import Edit, Finding, Fix
from memlint.fix.edits import Placed, place
from memlint.fix.spans import EditError
from memlint.lsp.diagnostics import Report, Texts, uri_of
from memlint.lsp.documents import Document, Places

FIX_ALL = "source.fixAll.memlint"
#: the kinds of actions that there are
KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll, FIX_ALL)
_META = frozenset(meta.code for meta in META_RULES)


class Desk(msgspec.Struct, frozen=True):
    """What actions are made for and from. ``texts``: of files by their absolute path; ``opened``: the open ones;
    ``versioned``: whether the client takes edits that say which version they are for."""

    document: Document
    report: Report
    texts: Texts
    opened: Mapping[str, Document]
    versioned: bool

    def edit(self, edits: Mapping[str, list[types.TextEdit]]) -> types.WorkspaceEdit:
        """Edits, by absolute path, of the files as they are now."""
        if not self.versioned:
            return types.WorkspaceEdit(changes={self._identifier(path).uri: rows for path, rows in edits.items()})
        return types.WorkspaceEdit(
            document_changes=[types.TextDocumentEdit(self._identifier(path), [*rows]) for path, rows in edits.items()]
        )

    def _identifier(self, path: str) -> types.OptionalVersionedTextDocumentIdentifier:
        document = self.opened.get(path)
        if document is None:
            return types.OptionalVersionedTextDocumentIdentifier(uri_of(path))
        return types.OptionalVersionedTextDocumentIdentifier(document.uri, document.version)


def is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client asks for a kind of actions, or for one that it is of."""
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def quick_fixes(desk: Desk, place: types.Range) -> Iterator[types.CodeAction]:
    """The actions for the findings at a place: their fixes first."""
    here = [
        (finding, shown)
        for finding, shown in zip(desk.report.findings, desk.report.diagnostics, strict=False)
        if _touch(shown.range, place)
    ]
    for finding, shown in here:
        fixes = [*([] if finding.fix is None else [finding.fix]), *finding.alternatives]
        for fix in fixes:
            edit = _edit_of(desk, fix)
            if edit is not None:
                safe = fix.safety == "safe"
                yield _action(_title(finding, fix), shown, edit, preferred=safe)
    # (one comment is for all that is found of a rule on a line)
    for finding, shown in {(one.code, one.line): (one, shown) for one, shown in here}.values():
        edit = _ignore(desk, finding)
        if edit is not None:
            yield _action(f"Ignore {finding.code} on this line", shown, edit)


def fix_all(data: Any = None, edit: types.WorkspaceEdit | None = None) -> types.CodeAction:
    """The action that makes all safe fixes of a document. ``data``: what it is resolved by."""
    return types.CodeAction("Fix all safe memlint findings", FIX_ALL, edit=edit, data=data)


def has_safe_fixes(report: Report) -> bool:
    return any(one.fix is not None and one.fix.safety == "safe" and one.fix.edits for one in report.findings)


def replaced(places: Places, after: str) -> list[types.TextEdit]:
    """The edits that make one text of another, each within the lines that differ."""
    old, new = places.text.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for row in old:
        starts.append(starts[-1] + len(row))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    edits = []
    for tag, low, high, begin, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        before, text = "".join(old[low:high]), "".join(new[begin:end])
        head = _shared(before, text)
        tail = _shared(before[head:][::-1], text[head:][::-1])
        # (no place is between the two characters of a Windows line end)
        head, tail = (0, 0) if "\r" in before + text else (head, tail)
        start, stop = places.at(starts[low] + head), places.at(starts[high] - tail)
        edits.append(types.TextEdit(types.Range(start, stop), text[head : len(text) - tail]))
    return edits


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (left, right) in pairs if left != right), min(len(one), len(other)))


def _action(
    title: str, shown: types.Diagnostic, edit: types.WorkspaceEdit, *, preferred: bool = False
) -> types.CodeAction:
    return types.CodeAction(
        title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[shown],
        is_preferred=preferred or None,
        edit=edit,
    )


def _title(finding: Finding, fix: Fix) -> str:
    title = fix.title[:1].upper() + fix.title[1:]
    doubt = f": {fix.doubt}" if fix.doubt else ""
    marks = {"safe": "", "unsafe": f" (unsafe{doubt})", "display": f" (not part of --fix{doubt})"}
    return f"{finding.code}: {title}{marks[fix.safety]}"


def _touch(one: types.Range, other: types.Range) -> bool:
    """Whether two ranges overlap, or touch."""

    def key(at: types.Position) -> tuple[int, int]:
        return at.line, at.character

    return key(one.start) <= key(other.end) and key(other.start) <= key(one.end)


def _edit_of(desk: Desk, fix: Fix) -> types.WorkspaceEdit | None:
    """The edits of a fix; None where it has none, or where a file is not what it was."""
    by_path: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_path.setdefault(edit.path, []).append(edit)
    found: dict[str, list[types.TextEdit]] = {}
    for display, edits in by_path.items():
        path = desk.report.answer.paths.get(display)
        places = None if path is None else desk.texts(path)
        if path is None or places is None:
            return None
        try:
            found[path] = list(_text_edits(places, place(places.text, edits)))
        except EditError:
            return None
    return desk.edit(found) if found else None


def _text_edits(places: Places, placed: Iterable[Placed]) -> Iterator[types.TextEdit]:
    for one in placed:
        yield types.TextEdit(types.Range(places.at(one.start), places.at(one.end)), one.content)


def _ignore(desk: Desk, finding: Finding) -> types.WorkspaceEdit | None:
    """A comment that suppresses a finding; None where none can be written."""
    if finding.code in _META:
        return None
    try:
        found, placed = ignores(desk.document.text, {finding.line: {finding.code}})
        edits = list(_text_edits(desk.document.places, place(desk.document.text, found)))
    except (EditError, SyntaxError):
        return None
    return desk.edit({str(desk.document.path): edits}) if finding.line in placed and edits else None
