"""A check of files before the rest of memlint is loaded, which would take longer than to check most of them: whether
there may be anything to report. If it cannot tell, there may be."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from memlint.family import TENSOR_WORDS, TORCH_FAMILY, TRAINING_CALLS
from memlint.reading import MAX_SETTINGS, MAX_SOURCE, read_file

#: ``import`` or ``from`` and what may belong to its statement: the line, lines joined by a backslash, parentheses.
#: No word boundary in front: the search is three times faster without it
_IMPORT = r"(?:import|from)\b((?:[^\n\\#(]+|\\\r?\n?)*(?:\((?:[^)#]+|#[^\n]*)*\)?)?)"
#: some of the folders that contain no code of the project
NOT_SEARCHED = frozenset(
    {".git", ".memlint_cache", ".mypy_cache", ".nox", ".pytest_cache", ".ruff_cache", ".tox", ".venv", "__pycache__",
     "node_modules", "site-packages", "venv"}
)  # fmt: skip
#: the most entries of a project's folders that are examined
_MOST = 20_000
_TEMPORARY = ("TMPDIR", "TEMP", "TMP")


class _UnsureError(Exception):
    """The check cannot tell."""


def may_use_torch(text: str) -> bool:
    """Whether the text may contain an import of the torch family, in any scope, or train what it is given as only torch
    does; strings and comments count as code."""
    text = _normal(text)
    if all(name in text for name in TRAINING_CALLS):
        return True
    # most files name none of them, and compiling the patterns takes longer than the search
    return any(name in text for name in TORCH_FAMILY) and not TORCH_FAMILY.isdisjoint(_imported(text))


def _imported(text: str) -> Iterator[str]:
    """All words that may be imported names, and "." for a relative import. ``text``: a result of `_normal`."""
    if re.search(r"from[\s\\]*\.", text):  # separately, as an apparent import may span the next one
        yield "."
    for match in re.finditer(_IMPORT, text):
        yield from re.findall(r"\w+", match[1])


def _normal(text: str) -> str:
    """The text with its names normalised as Python does."""
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFKC", text)


def says_nothing(files: Sequence[str]) -> bool:
    """Whether there is surely no finding in ``files`` (absolute paths), all of which parse, under the default
    configuration and without one in their projects: none imports torch or has a suppression, and each project imports
    no torch either, or has nothing that one of them may import and passes them no tensors."""
    try:
        projects: dict[str, dict[str, str]] = {}
        for file in files:
            text = _text(file)
            if _is_for_us(text) or may_use_torch(text):
                return False
            projects.setdefault(_root(os.path.dirname(file)), {})[file] = text
        return not any(_concerns(root, texts) for root, texts in projects.items())
    except (OSError, UnicodeError, _UnsureError):
        return False


def _text(file: str) -> str:
    raw = read_file(file, MAX_SOURCE)
    head = b"\n".join(raw.split(b"\n", 2)[:2])
    if b"coding" in head and not re.search(rb"coding[:=][ \t]*utf-?8(?![-\w])", head):
        raise _UnsureError
    return raw.removeprefix(b"\xef\xbb\xbf").decode()


def _is_for_us(text: str) -> bool:
    lower = text.lower()
    return "memlint" in lower or ("noqa" in lower and "mem" in lower)


def _root(folder: str) -> str:
    """The project of a folder, if it is marked as one and does not configure memlint."""
    wide = {os.path.expanduser("~"), os.sep, "/tmp", "/var/tmp", "/usr/tmp", *map(os.environ.get, _TEMPORARY)}
    root, here = "", folder
    while True:
        marks = [name for name in ("pyproject.toml", "setup.py", ".git", "memlint.toml") if _there(here, name)]
        if not root and here in wide:
            raise _UnsureError
        if not root and marks:
            root = here
        if "memlint.toml" in marks or ("pyproject.toml" in marks and _configures(here)):
            raise _UnsureError
        above = os.path.dirname(here)
        if root and (".git" in marks or above == here):
            return root
        if above == here:
            raise _UnsureError
        here = above


def _there(folder: str, name: str) -> bool:
    return os.path.exists(os.path.join(folder, name))


def _configures(folder: str) -> bool:
    """Whether a pyproject.toml may have a table for memlint; a name may contain escapes."""
    raw = read_file(os.path.join(folder, "pyproject.toml"), MAX_SETTINGS)
    return b"memlint" in raw or b"\\u" in raw.lower()


def _concerns(root: str, texts: dict[str, str]) -> bool:
    """Whether one of the files may import a module of its project, or get tensors from a module that imports it, and
    another file imports torch. ``texts``: by file."""
    sources, names = _listed(root)
    if not texts.keys() <= sources:
        raise _UnsureError
    others = sources - texts.keys()
    if not others or not any(
        TENSOR_WORDS.search(text) or not names.isdisjoint(_imported(_normal(text))) for text in texts.values()
    ):
        return False
    return any(may_use_torch(_text(file)) for file in others)


def _listed(root: str) -> tuple[set[str], set[str]]:
    """The Python files and notebooks below a folder (including ignored ones), and the first words of imports that may
    mean one."""
    files: set[str] = set()
    names, todo, count = {".", *root.split(os.sep)}, [root], 0
    while todo:
        folder = todo.pop()
        with os.scandir(folder) as found:
            entries = list(found)
        count += len(entries)
        if count > _MOST:
            raise _UnsureError
        if folder != root and any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        for entry in entries:
            name, dot, end = entry.name.rpartition(".")
            if dot and end in ("py", "pyw", "pyi", "ipynb"):
                if entry.is_symlink():
                    raise _UnsureError
                files.add(entry.path)
                names.add(name)
            elif entry.name not in NOT_SEARCHED and entry.is_dir():
                if entry.is_symlink():
                    raise _UnsureError
                names.add(entry.name)
                todo.append(entry.path)
    return files, names
