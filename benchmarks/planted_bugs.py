#!/usr/bin/env python3
"""Bugs planted in working projects: ``python benchmarks/planted_bugs.py FOLDER… [--operators NAMES] [--out FILE]``.

An operator takes out what keeps memory bounded, at every place of a project at once, so that no second guard hides it:

* ``unguard``: ``with torch.no_grad():``, ``torch.inference_mode()``, and the decorators;
* ``item``: ``.item()`` of what is added up or stored;
* ``detach``: ``.detach()`` of what is added up, stored, or bound again under its own name;
* ``retain``: ``loss.backward()`` in a loop becomes ``loss.backward(retain_graph=True)``.

A copy of the project is changed, line for line, and linted before and after. A place is found if memlint reports
something in its lines that it did not report before. ``--out`` gets a line of JSON for each place; ``--keep`` gets the
changed copies. Not every place is a bug: a guard around the update of weights, or the ``.item()`` of a number without a
graph, may go. So the share that is found compares two states of memlint. To learn what it misses, read the places with
``"found": "missed"``.
"""

from __future__ import annotations

import argparse
import ast
import collections
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

OPERATORS = ("unguard", "item", "detach", "retain")
GUARDS = ("no_grad", "inference_mode")
KEEPERS = ("append", "extend", "appendleft", "add")
#: what ends a graph by itself, so that a detach() before it changes nothing
ENDS = ("numpy", "tolist", "item")
#: what a place was found as, from the least to the most
LEVELS = ("missed", "low", "note", "warning", "error")
MAX_SECONDS = 600


class Place(NamedTuple):
    """A change: its operator, the file, the line, and the lines in which a finding counts."""

    operator: str
    path: str
    line: int
    first: int
    last: int


class Change(NamedTuple):
    """Replaces the bytes from ``start`` to ``end`` by ``text``."""

    start: int
    end: int
    text: bytes
    place: Place


class Planter(ast.NodeVisitor):
    """Collects the changes of one operator in a file."""

    def __init__(self, operator: str, path: str, source: bytes) -> None:
        self.operator, self.path, self.source = operator, path, source
        self.changes: list[Change] = []
        self._starts = [0]
        for line in source.split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        self._loops = 0

    def visit_With(self, node: ast.With) -> None:
        context = node.items[0].context_expr
        start, end = self._at(node.lineno, node.col_offset), self._end(context)
        if len(node.items) == 1 and _is_guard(context) and self.source[end : end + 1] == b":":
            self._change("unguard", node, start, end, b"if True")
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            if _is_guard(decorator):
                at = self._at(decorator.lineno, decorator.col_offset)
                self._change("unguard", node, self.source.rindex(b"@", 0, at), self._end(decorator), b"#")
        outer, self._loops = self._loops, 0
        self.generic_visit(node)
        self._loops = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (`ast` names it)

    def visit_For(self, node: ast.For | ast.While) -> None:
        self._loops += 1
        self.generic_visit(node)
        self._loops -= 1

    visit_While = visit_For  # noqa: N815

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Add):
            self._cut(node.value, node)
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        again = isinstance(target, ast.Name) and any(
            isinstance(part, ast.Name) and part.id == target.id for part in ast.walk(node.value)
        )
        if isinstance(target, ast.Attribute | ast.Subscript) or (self._loops and again):
            self._cut(node.value, node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        match node.value:
            case ast.Call(func=ast.Attribute(attr=method), args=[kept], keywords=[]) if method in KEEPERS:
                self._cut(kept, node)
            case ast.Call(func=ast.Attribute(attr="backward"), args=[], keywords=[]) as call if self._loops:
                end = self._end(call) - 1
                if self.source[end - 1 : end + 1] == b"()":
                    self._change("retain", node, end, end, b"retain_graph=True")
        self.generic_visit(node)

    def _cut(self, value: ast.expr, statement: ast.stmt) -> None:
        """Take the calls of ``item()`` or ``detach()`` out of a value that is kept."""
        outer = {id(child): node for node in ast.walk(value) for child in ast.iter_child_nodes(node)}
        for node in ast.walk(value):
            match node:
                case ast.Call(func=ast.Attribute(value=inner, attr="item" | "detach" as method), args=[]):
                    around = outer.get(id(node))
                    converted = isinstance(around, ast.Call) and isinstance(around.func, ast.Name)
                    if converted or (isinstance(around, ast.Attribute) and around.attr in ENDS):
                        continue
                    start, end = self._end(inner), self._end(node)
                    while self.source[start : start + 1] == b")":
                        start += 1
                    if self.source[start : start + 1] == b".":
                        self._change(method, statement, start, end, b"")

    def _change(self, operator: str, node: ast.stmt, start: int, end: int, text: bytes) -> None:
        if operator == self.operator and b"\n" not in self.source[start:end]:
            line = self.source.count(b"\n", 0, start) + 1
            place = Place(operator, self.path, line, node.lineno, node.end_lineno or node.lineno)
            self.changes.append(Change(start, end, text, place))

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _end(self, node: ast.expr) -> int:
        return self._at(node.end_lineno or 0, node.end_col_offset or 0)


def _is_guard(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return (isinstance(called, ast.Attribute) and called.attr in GUARDS) or (
        isinstance(called, ast.Name) and called.id in GUARDS
    )


def plant(folder: Path, operator: str) -> list[Place]:
    """Change the Python files in a folder, and return where."""
    places: list[Place] = []
    for file in sorted(folder.rglob("*.py")):
        source = file.read_bytes()
        changed = source
        try:
            planter = Planter(operator, file.relative_to(folder).as_posix(), source)
            planter.visit(ast.parse(source))
            for change in sorted(planter.changes, key=lambda one: one.start, reverse=True):
                changed = changed[: change.start] + change.text + changed[change.end :]
            ast.parse(changed)
        except (SyntaxError, ValueError, RecursionError):
            continue
        if changed != source:
            file.write_bytes(changed)
            places += [change.place for change in planter.changes]
    return places


def lint(folder: Path, memlint: str) -> dict[tuple[str, int, str], str]:
    """What is reported in a project: the level by path, line and code."""
    options = ["--isolated", "--no-cache", "--exit-zero", "--min-confidence", "low", "--output-format", "json", "."]
    done = subprocess.run(
        [*shlex.split(memlint), "check", *options], cwd=folder, capture_output=True, text=True, timeout=MAX_SECONDS
    )
    if not done.stdout:
        raise SystemExit(f"{folder.name}: {done.stderr.strip()}")
    return {
        (row["path"], row["line"], row["code"]): "low" if row["confidence"] == "low" else row["severity"]
        for row in json.loads(done.stdout)["findings"]
    }


def results(tree: Path, operators: list[str], memlint: str, keep: Path) -> Iterator[dict[str, Any]]:
    """A row for each place of a project. The changed copies are in ``keep``."""
    before: dict[tuple[str, int, str], str] | None = None
    for operator in operators:
        copy = keep / tree.name / operator
        shutil.copytree(tree, copy, symlinks=True)
        places = plant(copy, operator)
        if not places:
            shutil.rmtree(copy)
            continue
        if before is None:
            before = lint(tree, memlint)
        new = {key: level for key, level in lint(copy, memlint).items() if before.get(key) != level}
        for place in places:
            lines = range(place.first, place.last + 1)
            near = {key: level for key, level in new.items() if key[0] == place.path and key[1] in lines}
            found = max(near.values(), key=LEVELS.index, default="missed")
            text = (tree / place.path).read_bytes().split(b"\n")[place.line - 1].decode(errors="replace").strip()
            codes = sorted({code for _, _, code in near})
            yield {"project": tree.name, **place._asdict(), "text": text, "found": found, "codes": codes}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Plant bugs in copies of projects, and count which ones memlint finds."
    )
    parser.add_argument("projects", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--operators", default=",".join(OPERATORS), help="separated by commas (default: all)")
    parser.add_argument("--memlint", default="memlint", help="the command (default: memlint)")
    parser.add_argument("--out", type=Path, help="write a line of JSON for each place")
    parser.add_argument("--keep", type=Path, help="an empty folder for the changed projects")
    options = parser.parse_args()
    operators = options.operators.split(",")
    if unknown := sorted({*operators} - {*OPERATORS}):
        parser.error(f"no such operator: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory() as scratch:
        rows = []
        for tree in options.projects:
            rows += results(tree.resolve(), operators, options.memlint, options.keep or Path(scratch))
            print(tree.name, file=sys.stderr)
    counts = collections.Counter((row["operator"], row["found"]) for row in rows)
    if options.out:
        options.out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{'':8}" + "".join(f"{level:>9}" for level in LEVELS))
    for operator in operators:
        print(f"{operator:8}" + "".join(f"{counts[operator, level]:9}" for level in LEVELS))


if __name__ == "__main__":
    main()
