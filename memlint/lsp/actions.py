"""Code actions: the fixes of a finding, all safe ones of a file, and a comment that suppresses a finding."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from lsprotocol import types

from memlint.engine.comments.ignoring import ignores
from memlint.engine.rules.rooms import META_RULES
from memlint.finding import Edit, Finding, Fix
from memlint.fix.cells import cells_after, module_place, place_in, write_back
from memlint.fix.edits import Placed, place, splice
from memlint.fix.spans import EditError
from memlint.lsp import verifying
from memlint.lsp.diagnostics import Report, Views
from memlint.lsp.documents import Document, Places, View
from memlint.lsp.notebooks import NotebookDocument, Unit
from memlint.project import Cell, Source, Sources, cell_texts, decode

FIX_ALL = "source.fixAll.memlint"
#: the action kind for notebooks on save
FIX_NOTEBOOK = f"notebook.{FIX_ALL}"
FIXES_ALL = (FIX_ALL, FIX_NOTEBOOK)
#: the supported kinds of actions
KINDS = (types.CodeActionKind.QuickFix, types.CodeActionKind.SourceFixAll, *FIXES_ALL, verifying.KIND)
VERIFY_TITLE = "Verify this script: run it with `memlint verify`"
_META = frozenset(meta.code for meta in META_RULES)


class Desk(msgspec.Struct, frozen=True):
    """The context of actions. ``unit``: the file or notebook; ``versioned``: whether the client supports versioned
    edits."""

    unit: Unit
    report: Report
    views: Views
    versioned: bool


def edit_of(edits: Iterable[tuple[View, list[types.TextEdit]]], versioned: bool) -> types.WorkspaceEdit:
    """A workspace edit of the current texts."""
    if not versioned:
        return types.WorkspaceEdit(changes={view.uri: rows for view, rows in edits})
    return types.WorkspaceEdit(
        document_changes=[
            types.TextDocumentEdit(types.OptionalVersionedTextDocumentIdentifier(view.uri, view.version), [*rows])
            for view, rows in edits
        ]
    )


def is_wanted(kind: str, only: Sequence[str] | None) -> bool:
    """Whether a client requests a kind of actions, or a kind that includes it."""
    return not only or any(kind == one or kind.startswith(f"{one}.") for one in only)


def quick_fixes(desk: Desk, place: types.Range) -> Iterator[types.CodeAction]:
    """The actions for the findings in a range, fixes first."""
    here = [
        (finding, shown)
        for finding, shown in zip(desk.report.findings, desk.report.diagnostics, strict=False)
        if _touch(shown.range, place)
    ]
    for finding, shown in here:
        fixes = [*([] if finding.fix is None else [finding.fix]), *finding.alternatives]
        for fix in fixes:
            edit = _fixed(desk, fix)
            if edit is not None:
                safe = fix.safety == "safe"
                yield _action(_title(finding, fix), shown, edit, preferred=safe)
    # one comment suppresses all findings of a rule on a line
    for finding, shown in {(one.code, one.line): (one, shown) for one, shown in here}.values():
        edit = _ignore(desk, finding)
        if edit is not None:
            yield _action(f"Ignore {finding.code} on this line", shown, edit)


def verify(unit: Unit) -> types.CodeAction:
    """The action that runs a script and measures its findings when it is chosen."""
    command = types.Command(VERIFY_TITLE, verifying.VERIFY, arguments=[unit.uri])
    return types.CodeAction(VERIFY_TITLE, verifying.KIND, command=command)


def is_verifiable(unit: Unit, report: Report) -> bool:
    """Whether there is a finding that running the file could measure."""
    return isinstance(unit, Document) and any(one.code not in _META for one in report.findings)


def fix_all_kind(unit: Unit, only: Sequence[str] | None) -> str | None:
    """The kind of the action for all safe fixes, if a client requests one."""
    kinds = FIXES_ALL if isinstance(unit, NotebookDocument) else FIXES_ALL[:1]
    return next((kind for kind in kinds if is_wanted(kind, only)), None)


def fix_all(kind: str, data: Any = None) -> types.CodeAction:
    """The action for all safe fixes of a document. ``data``: for its resolution."""
    return types.CodeAction("Fix all safe memlint findings", kind, data=data)


def all_fixed(views: Mapping[int | None, View], after: bytes, versioned: bool) -> types.WorkspaceEdit:
    """The edits that turn the texts of a file into ``after``."""
    texts: dict[int | None, str] = {None: decode(after)}
    if None not in views:
        texts.update(cell_texts(after).items())
    edits = ((view, replaced(view.places, texts[cell])) for cell, view in views.items() if cell in texts)
    return edit_of([(view, rows) for view, rows in edits if rows], versioned)


def has_safe_fixes(report: Report) -> bool:
    return any(one.fix is not None and one.fix.safety == "safe" and one.fix.edits for one in report.findings)


def replaced(places: Places, after: str) -> list[types.TextEdit]:
    """The edits that turn one text into another, each within the lines that differ."""
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
        # no position is between the two characters of a Windows line end
        head, tail = (0, 0) if "\r" in before + text else (head, tail)
        start, stop = places.at(starts[low] + head), places.at(starts[high] - tail)
        edits.append(types.TextEdit(types.Range(start, stop), text[head : len(text) - tail]))
    return edits


def _shared(one: str, other: str) -> int:
    """The length of the common prefix of two texts."""
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


def _fixed(desk: Desk, fix: Fix) -> types.WorkspaceEdit | None:
    """The edits of a fix; None if it has none, or if a file has changed."""
    by_path: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_path.setdefault(desk.report.answer.paths.get(edit.path, ""), []).append(edit)
    try:
        found = [row for path, edits in by_path.items() for row in _text_edits(desk, path, edits)]
    except EditError:
        return None
    return edit_of(found, desk.versioned) if found else None


def _text_edits(desk: Desk, path: str, edits: Sequence[Edit]) -> Iterator[tuple[View, list[types.TextEdit]]]:
    """The edits of one file. Raises EditError."""
    if isinstance(desk.unit, NotebookDocument) and path == str(desk.unit.path):
        source, raw = _source(desk.unit)
        placed = place_in(source, edits)
        cells_after(source, write_back(source, raw, placed), splice(source.text, placed))
        yield from _in_cells(desk.unit, source, placed)
        return
    view = desk.views(path, None)
    if view is None or any(edit.cell is not None for edit in edits):
        raise EditError("the file is not what it was")
    yield view, [_text_edit(view.places, one) for one in place(view.places.text, edits)]


def _in_cells(
    notebook: NotebookDocument, source: Source, placed: Sequence[Placed]
) -> Iterator[tuple[View, list[types.TextEdit]]]:
    """Edits of a notebook's module, by cell."""
    views = notebook.views
    for cell in source.cells:
        own = [Placed(one.start - cell.start, one.end - cell.start, one.content) for one in placed if _is_in(cell, one)]
        if own:
            view = views[cell.number]
            yield view, [_text_edit(view.places, one) for one in own]


def _is_in(cell: Cell, one: Placed) -> bool:
    return cell.start <= one.start <= one.end <= cell.end


def _text_edit(places: Places, one: Placed) -> types.TextEdit:
    return types.TextEdit(types.Range(places.at(one.start), places.at(one.end)), one.content)


def _source(unit: Unit) -> tuple[Source, bytes]:
    """The source of a document, and its bytes."""
    name, raw = str(unit.path), unit.content()
    return Sources({name: unit.path}, frozenset({name}), {name: raw})[name], raw


def _ignore(desk: Desk, finding: Finding) -> types.WorkspaceEdit | None:
    """The edit that adds a comment to suppress a finding; None if that is impossible."""
    if finding.code in _META:
        return None
    try:
        if isinstance(desk.unit, NotebookDocument):
            source, _ = _source(desk.unit)
            line, starts = module_place(source.cells, finding)[0], [cell.line for cell in source.cells]
            found, placed = ignores(source.text, {line: {finding.code}}, "", starts)
            edits = list(_in_cells(desk.unit, source, place_in(source, found)))
        else:
            line = finding.line
            found, placed = ignores(desk.unit.text, {line: {finding.code}})
            edits = list(_text_edits(desk, str(desk.unit.path), found))
    except (EditError, SyntaxError):
        return None
    return edit_of(edits, desk.versioned) if line in placed and edits else None
