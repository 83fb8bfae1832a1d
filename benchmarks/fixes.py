#!/usr/bin/env python3
"""What fixes do to code of others: ``python benchmarks/fixes.py TREE…`` (repositories, unpacked packages).

Each tree is copied and linted whole in a process of its own, with ``--preview``. Each planned fix is made alone on the
file as it was. Then two ways, as ``--fix`` and as ``--fix --unsafe-fixes`` of the files with findings: the fixes are
made and written, and the copy is fixed a second time. All that was made is checked without the engine's own checks: it
compiles, keeps its comments and strings, and changes no function that no edit is in; what was written says nothing new
when it is linted again, and a second run changes nothing. A tree that takes too long keeps what was done until then.

``benchmarks/results/fixes.json`` holds one row a finding, the names of the trees and what was wrong. ``--keep`` leaves
the rows of other trees in it: each row names the commit that it was made with.
"""

from __future__ import annotations

import argparse
import ast
import collections
import concurrent.futures
import difflib
import functools
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from memlint.engine.analysis import analyse_with_flow  # noqa: E402
from memlint.engine.fixing.fixing import Fixed, run_and_fix  # noqa: E402
from memlint.engine.fixing.passes import Applied, apply_all  # noqa: E402
from memlint.engine.options import Options, no_progress  # noqa: E402
from memlint.engine.prepared import Prepared  # noqa: E402
from memlint.engine.rules.selection import Overrides  # noqa: E402
from memlint.engine.run import Linted, lint, prepare  # noqa: E402
from memlint.finding import Finding, is_fixable  # noqa: E402
from memlint.fix.diff import unified  # noqa: E402
from memlint.fix.edits import place, splice  # noqa: E402
from memlint.fix.files import Change  # noqa: E402
from memlint.project import Project, decode  # noqa: E402

WAYS = {"safe": False, "unsafe": True}
#: folders of a checkout that hold nothing to lint, and cost time to copy
LEFT_OUT = shutil.ignore_patterns(".git", "node_modules", "*.pt", "*.pth", "*.bin", "*.so")


# ---------------------------------------------------------------------------------------------- what a text may lose


def harms(before: str, after: str) -> list[str]:
    """What edits did to a text that they should not do, each a clause."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            old = ast.parse(before)
        except (SyntaxError, ValueError):
            return ["it did not compile before"]
        try:
            compile(after, "<fixed>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return [f"does not compile: {error}"]
        new = ast.parse(after)
    found = [
        f"{what} lost or changed: {', '.join(sorted(lost))[:80]}"
        for what, kind in (("comments", tokenize.COMMENT), ("strings", tokenize.STRING))
        if (lost := _tokens(before, kind) - _tokens(after, kind))
    ]
    if _tokens(after, tokenize.COMMENT) - _tokens(before, tokenize.COMMENT):
        found.append("comments added")
    touched = _touched(before, after)
    changed = dict(_functions(new))
    for name, node in _functions(old):
        lines = range(_first(node), (node.end_lineno or node.lineno) + 1)
        if touched.isdisjoint(lines) and (name not in changed or ast.dump(node) != ast.dump(changed[name])):
            found.append(f"`{name[0]}` changed, where there was no edit")
    if before.endswith("\n") != after.endswith("\n"):
        found.append("the newline at its end came or went")
    if set(re.findall(r"\r\n?|\n", after)) - set(re.findall(r"\r\n?|\n", before)):
        found.append("newlines of another kind")
    return found


def _tokens(text: str, kind: int) -> collections.Counter[str]:
    """The tokens of a kind, whatever quotes they have."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return collections.Counter(token.string.replace("'", '"') for token in tokens if token.type == kind)


def _touched(before: str, after: str) -> set[int]:
    """The lines of ``before`` that were replaced, and those that something was written before."""
    lines = set[int]()
    for tag, low, high, _, _ in _opcodes(before, after):
        if tag != "equal":
            lines.update(range(low + 1, max(high, low + 1) + 1))
    return lines


def _opcodes(before: str, after: str) -> Sequence[tuple[str, int, int, int, int]]:
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    return matcher.get_opcodes()


def _first(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return min([node.lineno, *(one.lineno for one in node.decorator_list)])


def _functions(
    tree: ast.AST, prefix: str = ""
) -> Iterator[tuple[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The functions of a tree by qualified name and which of that name they are."""
    seen: collections.Counter[str] = collections.Counter()

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[tuple[str, int], ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}{child.name}"
                if not isinstance(child, ast.ClassDef):
                    yield (name, seen[name]), child
                    seen[name] += 1
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    yield from walk(tree, prefix)


# ---------------------------------------------------------------------------------------------- what a run then says


def said(
    before: Sequence[Finding], after: Sequence[Finding], fixed: Sequence[Finding], texts: dict[str, tuple[str, str]]
) -> list[str]:
    """Findings that are still there though they were fixed, and findings that are new: by file and block of changed
    lines, each counted."""
    blocks = {path: _opcodes(*both) for path, both in texts.items()}

    def where(path: str, line: int, side: int) -> tuple[str, int]:
        for tag, low, high, new_low, new_high in blocks.get(path, ()):
            start, end = ((low, high), (new_low, new_high))[side]
            if start < line <= end:
                return path, (low + line - start if tag == "equal" else -low - 1)
        return path, line

    rest = collections.Counter((one.code, where(one.path, one.line, 0)) for one in before if one not in set(fixed))
    now = collections.Counter((one.code, where(one.path, one.line, 1)) for one in after)
    gone = {(one.code, where(one.path, one.line, 0)) for one in fixed}
    return [
        f"{code} at {path}:{abs(line)} " + ("is still there" if (code, (path, line)) in gone else "is new")
        for code, (path, line) in (now - rest)
    ]


# ---------------------------------------------------------------------------------------------- one tree


def study(folder: Path, diffs: Path | None) -> None:
    """Fix one tree, which lies in ``tree`` of a folder that may be written to; what comes of it is its result.json."""
    tree = folder / "tree"
    os.chdir(tree)
    options = _options(tree, unsafe=False)
    (prepared,) = prepare(["."], options, no_progress)
    linted = _lint(prepared, prepared.found.project, options)
    before = [one for one in linted.findings if one.suppressed is None]
    project = prepared.found.project
    result: dict[str, Any] = {
        "files": len(project.linted),
        "lines": sum(project.sources[display].text.count("\n") for display in project.linted),
        "findings": [_row(one, project) for one in before],
        "ways": {},
    }
    for number, one in enumerate(before):
        if not is_fixable(one, True):
            continue
        text = project.sources[one.path].text
        result["findings"][number]["alone"] = _alone(one, project)
        if diffs is not None:
            _keep(diffs, number, one, text, project)
    _save(folder, result)
    paths = sorted({one.path for one in before})
    for way, unsafe in WAYS.items():
        if any(is_fixable(one, unsafe) for one in before):
            result["ways"][way] = _way(folder, way, paths)
            for number, one in enumerate(before):
                result["findings"][number][way] = result["ways"][way]["of"].get(_key(one), "")
            del result["ways"][way]["of"]
            _save(folder, result)


def _save(folder: Path, result: dict[str, Any]) -> None:
    part = folder / "result.part"
    part.write_text(json.dumps(result), encoding="utf-8")
    part.replace(folder / "result.json")


def _options(tree: Path, *, unsafe: bool) -> Options:
    return Options(cwd=tree, isolated=True, overrides=Overrides(preview=True), unsafe_fixes=unsafe, jobs=1)


def _lint(prepared: Prepared, project: Project, options: Options) -> Linted:
    return lint(prepared, project, options, progress=no_progress, analyse=analyse_with_flow)


def _row(one: Finding, project: Project) -> dict[str, Any]:
    line = project.sources[one.path].text.splitlines()[one.line - 1 : one.line]
    return {
        "path": one.path,
        "line": one.line,
        "code": one.code,
        "safety": one.fix.safety if one.fix is not None else "none",
        "title": one.fix.title if one.fix is not None else "",
        "text": line[0].strip()[:120] if line else "",
    }


def _key(one: Finding) -> tuple[str, str, int, int]:
    return one.code, one.path, one.line, one.column


def _alone(one: Finding, project: Project) -> list[str]:
    """What the one fix does to the files as they were."""
    found: list[str] = []
    for path, after in _made(one, project).items():
        found += harms(project.sources[path].text, after)
    return found


def _made(one: Finding, project: Project) -> dict[str, str]:
    assert one.fix is not None
    paths = {edit.path: project.sources[edit.path].text for edit in one.fix.edits}
    return {
        path: splice(text, place(text, [edit for edit in one.fix.edits if edit.path == path]))
        for path, text in paths.items()
    }


def _keep(diffs: Path, number: int, one: Finding, text: str, project: Project) -> None:
    """Write the diff of one fix, for people to read."""
    assert one.fix is not None
    rows = [f"{one.code} {one.fix.safety} {one.path}:{one.line} {one.fix.title}\n".encode()]
    for path, after in _made(one, project).items():
        was = project.sources[path].text
        rows.append(unified(Change(Path(path), path, was.encode("utf-8", "replace"), after.encode("utf-8", "replace"))))
    (diffs / f"{number:03}-{one.code}-{one.fix.safety}.diff").write_bytes(b"".join(rows))


def _way(folder: Path, way: str, paths: Sequence[str]) -> dict[str, Any]:
    """Fix files in memory, write them to a copy, fix that again."""
    unsafe = WAYS[way]
    options = _options(folder / "tree", unsafe=unsafe)
    copy = folder / way
    shutil.copytree(folder / "tree", copy, symlinks=True)
    texts: dict[str, tuple[str, str]] = {}
    parts: list[tuple[Applied, Linted]] = []
    for prepared in prepare(paths, options, no_progress):  # a tree may hold several projects
        done, linted = _applied(prepared, options, unsafe)
        parts.append((done, linted))
        for path, content in done.changed.items():
            (copy / path).write_bytes(content)
            texts[path] = prepared.found.project.sources[path].text, decode(content)
    os.chdir(copy)
    again = run_and_fix(paths, _options(copy, unsafe=unsafe))
    os.chdir(folder / "tree")
    return _checked(parts, again, texts)


def _applied(prepared: Prepared, options: Options, unsafe: bool) -> tuple[Applied, Linted]:
    project = prepared.found.project
    linted = _lint(prepared, project, options)
    done = apply_all(
        project,
        linted,
        lambda one: _lint(prepared, one, options),
        rank=lambda code: prepared.rooms[code].meta.fix_rank,
        unsafe=unsafe,
        blocked=lambda _: False,
    )
    return done, linted


def _checked(
    parts: Sequence[tuple[Applied, Linted]], again: Fixed, texts: dict[str, tuple[str, str]]
) -> dict[str, Any]:
    wrong = [f"{path}: {what}" for path, both in texts.items() for what in harms(*both)]
    wrong += [f"{change.display}: a second run changes it" for change in again.changes]
    live = [one for _, linted in parts for one in linted.findings if one.suppressed is None]
    now = [one for one in again.outcome.result.findings if one.suppressed is None]
    fixed = [one for done, _ in parts for one in done.fixed]
    refused = [one for done, _ in parts for one in done.refused]
    of = {_key(one): "written" for one in fixed}
    of |= {_key(one.finding): f"refused: {one.reason}" for one in refused}
    return {
        "written": len(fixed),
        "refused": len(refused),
        "files": len(texts),
        "wrong": wrong,
        "findings": said(live, now, fixed, texts),
        "of": of,
    }


# ---------------------------------------------------------------------------------------------- all of them


def run(tree: Path, limit: int, diffs: Path | None) -> dict[str, Any]:
    """Study one tree in a process of its own."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as name:
        shutil.copytree(tree, Path(name) / "tree", symlinks=True, ignore=LEFT_OUT)
        command = [sys.executable, __file__, "--one", name]
        if diffs is not None:
            kept = diffs / tree.name
            kept.mkdir(parents=True, exist_ok=True)
            command += ["--diffs", str(kept)]
        failed = ""
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
            failed = done.stderr.strip().splitlines()[-1][:200] if done.returncode else ""
        except subprocess.TimeoutExpired:
            failed = f"took longer than {limit} s"
        row: dict[str, Any] = {"name": title(tree), "memlint": _commit()}
        saved = Path(name) / "result.json"
        if saved.exists():
            row |= json.loads(saved.read_text(encoding="utf-8"))
    return {**row, "failed": failed} if failed else row


@functools.cache
def _commit() -> str:
    """The commit of this checkout; "" outside of one."""
    command = ["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def title(tree: Path) -> str:
    """``owner/name@commit`` of a checkout so named, the version of a package."""
    for info in tree.glob("*.dist-info"):
        return info.name.removesuffix(".dist-info")
    return tree.name.replace("+", "/", 1)


def summary(rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """What all the trees come to. The same finding of the same code at several commits counts once in ``distinct``."""
    rows = list(rows)
    findings = [(row["name"].partition("@")[0], one) for row in rows for one in row.get("findings", ())]
    planned = [(name, one) for name, one in findings if "alone" in one]
    written = [(name, one) for name, one in planned if one.get("unsafe") == "written" or one.get("safe") == "written"]
    return {
        "trees": len(rows),
        "trees not finished": sorted(row["name"] for row in rows if "failed" in row),
        "findings": len(findings),
        "by safety": dict(collections.Counter(one["safety"] for _, one in findings)),
        "planned fixes": len(planned),
        "planned fixes, distinct": _distinct(planned),
        "written": len(written),
        "written, distinct": _distinct(written),
        "planned and not written": dict(
            collections.Counter(
                re.sub(r"\S+:\d+", "…", one["unsafe"]) or "gone with another fix"
                for _, one in planned
                if one.get("unsafe", "written") != "written"
            )
        ),
        "by code and safety": dict(
            sorted(collections.Counter(f"{one['code']} {one['safety']}" for _, one in planned).items())
        ),
        "harm of single fixes": sum(bool(one["alone"]) for _, one in planned),
        "harm of written files": sum(len(way["wrong"]) for row in rows for way in row.get("ways", {}).values()),
        "findings still there or new": sum(
            len(way["findings"]) for row in rows for way in row.get("ways", {}).values()
        ),
    }


def _distinct(rows: Iterable[tuple[str, dict[str, Any]]]) -> int:
    return len({(name, one["path"], one["code"], one["text"], one["title"]) for name, one in rows})


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--limit", type=int, default=300, help="seconds for one tree")
    parser.add_argument("--jobs", type=int, default=1, help="trees at the same time")
    parser.add_argument("--diffs", type=Path, help="a folder for the diff of each fix")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "fixes.json")
    parser.add_argument("--keep", action="store_true", help="keep what the output says of other trees")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        study(arguments.one.resolve(), arguments.diffs)
        return
    diffs = arguments.diffs.resolve() if arguments.diffs else None
    kept = arguments.keep and arguments.output.exists()
    rows = {row["name"]: row for row in _read(arguments.output)["trees"]} if kept else {}
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for row in pool.map(lambda tree: run(tree.resolve(), arguments.limit, diffs), arguments.trees):
            rows[row["name"]] = row
            written = {way: part["written"] for way, part in row.get("ways", {}).items()}
            print(row["name"], row.get("failed", ""), written, flush=True)
            result = {"summary": summary(rows.values()), "trees": [rows[name] for name in sorted(rows, key=str.lower)]}
            arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result["summary"], indent=1))


if __name__ == "__main__":
    main()
