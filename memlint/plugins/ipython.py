"""Magics for notebooks: after ``%load_ext memlint``, ``%memlint`` lints the cells that were run so far, and
``%%memlint`` on the first line of a cell runs it and measures its findings."""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from memlint.amounts import plural
from memlint.printable import printable

if TYPE_CHECKING:
    from memlint.finding import Finding, Result, TraceStep
    from memlint.verifier.model import Report
    from memlint.verifier.run import Program

#: the name of the notebook if it is unknown
_NAME = "session.ipynb"
#: variables in which front ends store the path of the notebook
_NOTEBOOK = ("__vsc_ipynb_file__", "__session__")


def load(shell: Any) -> None:
    """Register the magics."""
    shell.register_magics(MemlintMagics)


@magics_class
class MemlintMagics(Magics):  # type: ignore[misc]
    """``%memlint`` and ``%%memlint``."""

    @magic_arguments()  # type: ignore[untyped-decorator]
    @argument("--select", metavar="CODES", help="report these rules alone, by code or name, with commas between")  # type: ignore[untyped-decorator]
    @argument("--ignore", metavar="CODES", help="leave these rules out")  # type: ignore[untyped-decorator]
    @argument("--preview", action="store_true", help="report preview rules as well")  # type: ignore[untyped-decorator]
    @argument("--min-confidence", metavar="LEVEL", choices=("high", "medium", "low"), help="high, medium or low")  # type: ignore[untyped-decorator]
    @line_cell_magic  # type: ignore[untyped-decorator]
    def memlint(self, line: str, cell: str | None = None) -> None:
        """Lint the cells that were run so far. As a cell magic: run the cell, and measure its findings."""
        from memlint.config import ConfigError

        asked = parse_argstring(self.memlint, line)
        try:
            if cell is None:
                self._lint(asked)
            else:
                self._verify(asked, cell)
        except ConfigError as error:
            print(f"memlint: error: {printable(str(error))}")

    def _lint(self, asked: argparse.Namespace) -> None:
        cells = self._cells()
        result = _linted(self._name(), cells, asked)
        for row in _said(result, cells):
            print(printable(row))

    def _verify(self, asked: argparse.Namespace, cell: str) -> None:
        import msgspec

        from memlint.verifier.here import verify_here
        from memlint.verifier.probing.planning import Target
        from memlint.verifier.run import Program

        cells = self._cells()
        own = max(cells)  # this cell: IPython adds it to the history before it runs
        cells[own] = cells.pop(own)
        name = f"In [{own}]"
        result = _linted(self._name(), cells, asked)
        here = [
            msgspec.structs.replace(one, path=name, cell=None)
            for one in result.findings
            if one.cell == own and one.suppressed is None and one.code != "MEM000"
        ]
        if here and "torch" not in sys.modules:
            _import_torch()
        # an empty line in place of the magic
        text = "\n" + self.shell.transform_cell(cell)
        if not _parses(text):
            self.shell.run_cell(cell, store_history=False)  # shows the error
            return
        program = Program(Target(name, False, Path(name), ()), result, {name: text}, {name: Path(name)})
        for row in _measured(verify_here(program, here, self._run(cell, own, name))):
            print(printable(row))

    def _run(self, cell: str, own: int, name: str) -> Any:
        def run(trees: Mapping[str, ast.Module]) -> bool:
            transformer = _Replace(ast.increment_lineno(trees[name], -1))
            self.shell.ast_transformers.append(transformer)
            count, self.shell.execution_count = self.shell.execution_count, own  # tracebacks name the cell by it
            try:
                return bool(self.shell.run_cell(cell, store_history=False).success)
            finally:
                self.shell.execution_count = count
                if transformer in self.shell.ast_transformers:  # IPython removes a transformer that raises
                    self.shell.ast_transformers.remove(transformer)

        return run

    def _cells(self) -> dict[int, str]:
        """The cells that were run, by execution count. One that was run again has its last count, and its first place
        in the order."""
        history = self.shell.history_manager
        ran = list(self.shell.user_ns.get("In", ()) if history is None else history.input_hist_raw)
        numbers = {text: number for number, text in enumerate(ran) if text.strip()}
        return {number: text for text, number in numbers.items()}

    def _name(self) -> str:
        said = (self.shell.user_ns.get(name) for name in _NOTEBOOK)
        return next((name for name in said if isinstance(name, str) and name.endswith(".ipynb")), _NAME)


def session_program(shell: Any, select: str | None, ignore: str | None) -> tuple[Program, list[Finding]]:
    """The cells that were run, as a program whose paths are the file names of their code, and the findings in them."""
    from msgspec.structs import replace

    from memlint.verifier.probing.planning import Target
    from memlint.verifier.run import Program

    magics = MemlintMagics(shell)
    cells = magics._cells()
    asked = argparse.Namespace(select=select, ignore=ignore, preview=False, min_confidence=None)
    result = _linted(magics._name(), cells, asked)
    texts, paths = {}, {}
    for number, cell in cells.items():
        text = shell.transform_cell(cell)
        if _parses(text):
            texts[f"In [{number}]"] = text
            paths[f"In [{number}]"] = Path(shell.compile.get_code_name(cell, text, number))
    found = [replace(one, path=f"In [{one.cell}]", cell=None) for one in result.findings if one.cell is not None]
    return Program(Target(_NAME, False, Path(_NAME), ()), result, texts, paths), found


class _Replace(ast.NodeTransformer):
    """Replaces the tree of the next cell by one with probes."""

    def __init__(self, tree: ast.Module) -> None:
        self._tree: ast.Module | None = tree

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Module) and self._tree is not None:
            node, self._tree = self._tree, None  # once: the cell may run other cells
        return node


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def _import_torch() -> None:
    """Import torch before the cell does, so that the cell is measured from its start. If that fails, the cell reports
    it."""
    with contextlib.suppress(ImportError):
        __import__("torch")


def _linted(name: str, cells: Mapping[int, str], asked: argparse.Namespace) -> Result:
    """The findings in the cells, whose ``cell`` is the execution count."""
    from memlint.engine.options import Options
    from memlint.engine.rules.selection import Overrides
    from memlint.engine.run import STDIN, run

    sources = [{"cell_type": "code", "source": text} for text in cells.values()]
    options = Options(
        cwd=Path.cwd(),
        overrides=Overrides(
            select=_split(asked.select),
            ignore=_split(asked.ignore) or (),
            preview=asked.preview,
            min_confidence=asked.min_confidence,
        ),
        stdin=json.dumps({"cells": sources, "metadata": {}, "nbformat": 4}).encode(),
        stdin_filename=name,
    )
    return _numbered(run([STDIN], options).result, options.stdin_path, [*cells])


def _numbered(result: Result, session: Path, numbers: Sequence[int]) -> Result:
    from msgspec.structs import replace

    def place(one: Any) -> Any:
        own = one.cell is not None and os.path.normpath(Path.cwd() / one.path) == str(session)
        return replace(one, path=_NAME, cell=numbers[one.cell - 1]) if own else one

    found = [replace(place(one), trace=tuple(map(place, one.trace))) for one in result.findings]
    return replace(result, findings=tuple(sorted(found, key=lambda one: (one.cell or 0, one.line, one.column))))


def _split(codes: str | None) -> tuple[str, ...] | None:
    return None if codes is None else tuple(code.strip() for code in codes.split(",") if code.strip())


def _said(result: Result, cells: Mapping[int, str]) -> Iterator[str]:
    shown = [one for one in result.findings if one.suppressed is None]
    for one in shown:
        yield f"{_place(one)}: {one.severity} {one.code}[{one.name}] {one.message}"
        lines = cells.get(one.cell or 0, "").splitlines()
        yield from (f"    {line.strip()}" for line in lines[one.line - 1 : one.line])
        yield from (f"  {number}. {_place(step)}: {step.message}" for number, step in enumerate(one.trace, 1))
        yield from [f"  help: {one.help}"] if one.help else []
    yield from (f"{failure.path}: failed: {failure.reason}" for failure in result.failures)
    yield f"memlint: {plural(len(shown), 'finding') if shown else 'nothing found'} in {plural(len(cells), 'cell')}"


def _place(place: Finding | TraceStep) -> str:
    from memlint.finding import shown_place

    return shown_place(place) if place.path != _NAME else f"In [{place.cell}], line {place.line}"


def _measured(report: Report) -> Iterator[str]:
    """The lines of a report on a cell."""
    for one in report.verified:
        finding, verdict = one.finding, one.verdict
        said = f"{verdict.verdict}: {finding.code}[{finding.name}]: {verdict.reason}"
        yield f"{finding.path}, line {finding.line}: {said}"
    for left in report.unattributed:
        cell, _, line = (left.loop or "").rpartition(":")
        yield f"{cell}, line {line}: {left.in_words}"
    steps = report.run.steps
    if not report.verified and not report.unattributed:
        yield "memlint: nothing was found in this cell" + (
            f", and none of its loops kept memory ({plural(steps, 'step')})" if steps else ", nor a loop to measure"
        )
