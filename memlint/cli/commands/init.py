"""``memlint init``: a configuration, a hook and a workflow for a project that has none."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import msgspec

from memlint import __version__
from memlint import config as configuration
from memlint.config import OWN_FILE, PYPROJECT, ConfigError
from memlint.engine.run import absolute
from memlint.fix.files import Change, WriteError, obstacle, write
from memlint.printable import printable
from memlint.project import display_path, find_root
from memlint.project.presence import exists, is_dir
from memlint.reading import MAX_SETTINGS, leads_out, read_file, read_inside

HOOKS = ".pre-commit-config.yaml"
WORKFLOWS = ".github/workflows"
_GITLAB = ".gitlab-ci.yml"

_TABLE = """\
min-confidence = "medium"
# exclude = ["third_party/"]
# device-memory = "24 GiB"
# baseline = "memlint-baseline.json"
"""
_HOOK = f"""\
  - repo: local
    hooks:
      - id: memlint
        name: memlint
        entry: memlint check --force-exclude
        args: ["--"]
        language: python
        additional_dependencies: ["torch-memlint=={__version__}"]
        types_or: [python, jupyter]
        require_serial: true
"""
_WORKFLOW = f"""\
name: memlint
on: [push, pull_request]
permissions:
  contents: read
jobs:
  memlint:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
        with:
          fetch-depth: 0
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install torch-memlint=={__version__}
      - run: memlint .
"""
_JOB = f"""\
memlint:
  image: python:3.12
  script:
    - pip install torch-memlint=={__version__}
    - memlint . --output text --output gitlab:memlint.json
  artifacts:
    when: always
    reports:
      codequality: memlint.json
"""


class Piece(msgspec.Struct, frozen=True):
    """``text``: the content for the file ``path``; ``before``: its old content, if that is kept before it. ``reason``:
    why it is not written. Without a text, it exists already."""

    path: Path
    text: str = ""
    before: bytes | None = None
    reason: str = ""


def init(parsed: argparse.Namespace) -> int:
    """Write the missing pieces, and print them. Raises ConfigError."""
    cwd = Path.cwd()
    folder = absolute(parsed.folder, cwd)
    if not is_dir(folder):
        raise ConfigError(f"there is no folder {parsed.folder}")
    root = find_root(folder, cwd)
    top = next((place for place in (root, *root.parents) if exists(place / ".git")), None)
    pieces = [_configuration(root)]
    if top is None:
        print(printable(f"{root} is in no git repository: it gets no hook and no workflow"))
    else:
        pieces += [_hook(top), _gitlab(top) if exists(top / _GITLAB) else _workflow(top)]
    for piece in pieces:
        _put(piece, top or root, cwd, dry=parsed.dry_run)
    return 0


def _configuration(root: Path) -> Piece:
    known = configuration.find(root)
    if known is not None:
        return Piece(known)
    if not exists(root / PYPROJECT):
        return Piece(root / OWN_FILE, _TABLE)
    before = read_file(root / PYPROJECT, MAX_SETTINGS)
    newline = "\r\n" if b"\r\n" in before else "\n"
    gap = newline * (0 if not before else 1 if before.endswith(b"\n") else 2)
    table = gap + f"[tool.memlint]\n{_TABLE}".replace("\n", newline)
    return Piece(root / PYPROJECT, table, before) if _is_toml(before, table) else Piece(root / OWN_FILE, _TABLE)


def _is_toml(before: bytes, table: str) -> bool:
    """Whether a table may be appended to a file's content (``tool`` may be a value there)."""
    try:
        configuration.parse_toml(before.decode("utf-8-sig") + table)
    except ValueError:
        return False
    return True


def _hook(top: Path) -> Piece:
    path = top / HOOKS
    if not exists(path):
        return Piece(path, f"repos:\n{_HOOK}")
    if "memlint" in read_inside(HOOKS, top):
        return Piece(path)
    return Piece(path, _HOOK, reason="is there: add this under `repos`")


def _workflow(top: Path) -> Piece:
    folder = top / WORKFLOWS
    if is_dir(folder):
        for path in sorted((*folder.glob("*.yml"), *folder.glob("*.yaml"))):
            if "memlint" in read_inside(str(path.relative_to(top)), top):
                return Piece(path)
    return Piece(folder / "memlint.yml", _WORKFLOW)


def _gitlab(top: Path) -> Piece:
    if "memlint" in read_inside(_GITLAB, top):
        return Piece(top / _GITLAB)
    return Piece(top / _GITLAB, _JOB, reason="is there: add this job")


def _put(piece: Piece, top: Path, cwd: Path, *, dry: bool) -> None:
    """Write a piece, and print what was done."""
    name = display_path(piece.path, cwd)
    if not piece.text:
        print(printable(f"{name}: memlint is there"))
        return
    said = piece.reason or ("would be written" if dry else "written")
    if not piece.reason and piece.before is not None:
        said = "would get a table" if dry else "has a table now"
    if not piece.reason and not dry:
        _write(piece, top)
    print(printable(f"{name}: {said}"))
    _show(piece.text.strip("\r\n").splitlines())


def _show(lines: Iterable[str]) -> None:
    for line in lines:
        print(f"    {line}".rstrip())


def _write(piece: Piece, top: Path) -> None:
    """Write a new file. Raises ConfigError; existing files are not replaced."""
    path = piece.path
    try:
        if leads_out(path, top):
            raise ConfigError(f"{path}: a link that leads out of {top}")
        if piece.before is not None:
            problem = obstacle(path, top)
            if problem is not None:
                raise ConfigError(f"{path}: {problem}")
            write([Change(path, str(path), piece.before, piece.before + piece.text.encode())])
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(piece.text)
    except WriteError as error:
        raise ConfigError(f"{path}: {error.reason}") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}") from None
