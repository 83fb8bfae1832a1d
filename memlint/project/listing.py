"""The files below a folder: as git sees them, or by walking."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec

from memlint.project.git import git
from memlint.project.patterns import MAX_PATTERNS, Patterns, mistake
from memlint.project.presence import is_dir, is_file
from memlint.reading import read_text
from memlint.temporary import NAME

#: folders without code of the project
DEFAULT_EXCLUDES = frozenset({
    ".bzr", ".direnv", ".eggs", ".git", ".hg", ".ipynb_checkpoints", ".memlint_cache", ".mypy_cache", ".nox",
    ".pytest_cache", ".ruff_cache", ".svn", ".tox", ".venv", "__pycache__", "__pypackages__", "node_modules",
    "site-packages", "venv",
})  # fmt: skip
#: default excludes that are not mentioned
_NOISE = DEFAULT_EXCLUDES - {".venv", "venv", "node_modules", "site-packages", ".tox", ".nox"}
#: the prefix of files in which macOS stores attributes of others; they are no Python
_BESIDE_FILES = "._"
#: a placeholder in the names of template files (cookiecutter, copier), which are not Python yet
_PLACEHOLDER = "{{"
#: the most seconds to wait for git, and the most nested repositories
GIT_SECONDS, MAX_NESTED = 10.0, 20
NOTEBOOK = ".ipynb"
SUFFIXES = (".py", ".pyw", NOTEBOOK)


def is_notebook(path: Path) -> bool:
    """Whether a file is a notebook, by its name."""
    return path.name.endswith(NOTEBOOK)


_LEADS_OUT = "a link that leads out of the project"


class Listing(msgspec.Struct, frozen=True):
    """``python``: the files to read, absolute, including the ``notebooks``. ``skipped``: the files left out, with
    reasons. ``temporary``: files that a killed run may have left."""

    python: tuple[Path, ...]
    notebooks: tuple[Path, ...]
    skipped: tuple[tuple[Path, str], ...]
    temporary: tuple[Path, ...] = ()

    def below(self, folder: Path) -> Listing:
        """The part of it below ``folder``."""
        prefix = str(folder) + os.sep
        return Listing(
            tuple(path for path in self.python if str(path).startswith(prefix)),
            tuple(path for path in self.notebooks if str(path).startswith(prefix)),
            tuple(row for row in self.skipped if str(row[0]).startswith(prefix)),
        )


def list_files(folder: Path) -> Listing:
    """The files below ``folder`` that are not ignored: by ``git ls-files``, else by a walk that reads .gitignore."""
    return _list(folder, _Patience())


class _Patience:
    """The remaining seconds for git and nested repositories: patterns may take time exponential in their stars."""

    def __init__(self) -> None:
        self.left = GIT_SECONDS
        self.depth = 0


def _list(folder: Path, patience: _Patience) -> Listing:
    if patience.left <= 0 or patience.depth > MAX_NESTED:
        return walk(folder)
    listed = _git_files(folder, patience)
    if listed is not None:
        return _from_git(folder, listed, patience)
    found = walk(folder)
    if patience.left > 0:
        return found
    late = (folder, f"git did not list it within {GIT_SECONDS:.0f} seconds: its .gitignore files were read instead")
    return msgspec.structs.replace(found, skipped=(*found.skipped, late))


def list_flat(folder: Path) -> Listing:
    """The files in ``folder`` itself."""
    return _listing((path for path in folder.glob("*.py") if is_file(path)), ())


def walk(folder: Path) -> Listing:
    """The files below ``folder``, found without git; no symlink is followed."""
    found: list[Path] = []
    skipped: list[tuple[Path, str]] = []
    temporary: list[Path] = []
    real_root = os.path.realpath(folder)
    seen: set[str] = set()
    stack: list[tuple[Path, tuple[Patterns, ...]]] = [(folder, ())]
    while stack:
        current, ignores = stack.pop()
        real = os.path.realpath(current)
        if real in seen:
            continue
        seen.add(real)
        try:
            entries = list(os.scandir(current))
        except OSError as error:
            skipped.append((current, f"cannot be listed: {(error.strerror or str(error)).lower()}"))
            continue
        names = {entry.name for entry in entries}
        if ".gitignore" in names:
            ignores = (*ignores, *_gitignore(current))
        for entry in entries:
            path = Path(entry.path)
            try:
                is_folder = entry.is_dir()
                if not is_folder and not entry.name.endswith(SUFFIXES):
                    if NAME.fullmatch(entry.name):
                        temporary.append(path)
                    continue
                if entry.is_symlink() and not _leads_into(path, real_root):
                    if os.path.exists(path):  # noqa: PTH110
                        skipped.append((path, _LEADS_OUT))
                    continue
                if not is_folder and not entry.is_file():
                    skipped.append((path, "a pipe, a socket or a device"))
                    continue
            except OSError:  # a symlink to itself
                continue
            reason = _folder_reason(path, names) if is_folder else None
            if reason is None and _ignored(ignores, path, folder=is_folder):
                reason = "gitignored"
            if reason is not None:
                skipped.append((path, reason))
            elif entry.is_symlink():
                continue  # its target is listed under its own name
            elif is_folder:
                stack.append((path, ignores))
            else:
                found.append(path)
    return msgspec.structs.replace(_listing(found, skipped), temporary=tuple(temporary))


def parts(path: Path) -> tuple[str, ...]:
    """A key to sort many paths by: comparing the paths themselves takes ten times as long."""
    return path.parts


def _leads_into(link: Path, real_root: str) -> bool:
    target = os.path.realpath(link)
    return target == real_root or target.startswith(real_root + os.sep)


def _listing(found: Iterable[Path], skipped: Iterable[tuple[Path, str]]) -> Listing:
    every = set(found)
    beside = {path for path in every if path.name.startswith(_BESIDE_FILES)}
    templates = {path for path in every - beside if _PLACEHOLDER in str(path)}
    paths = sorted(every - beside - templates, key=parts)
    skipped = {
        *skipped,
        *((path, "what macOS keeps beside a file") for path in beside),
        *((path, "a template that is not filled in") for path in templates),
    }
    return Listing(
        tuple(paths),
        tuple(path for path in paths if is_notebook(path)),
        tuple(sorted(row for row in skipped if row[0].name not in _NOISE)),
    )


def _folder_reason(path: Path, siblings: set[str]) -> str | None:
    """Why a folder is left out whole, or None."""
    if path.name in DEFAULT_EXCLUDES:
        return f"folders named {path.name} are not searched"
    if is_file(path / "pyvenv.cfg"):
        return "a virtual environment"
    # a folder named build is often code; setuptools' output has these marks
    is_output = path.name == "build" and siblings & {"setup.py", "pyproject.toml"} and any(path.glob("bdist.*"))
    return "setuptools' build output" if is_output else None


def _ignored(ignores: tuple[Patterns, ...], path: Path, *, folder: bool) -> bool:
    """Whether the .gitignore files above ``path`` exclude it; the deepest one that matches decides."""
    verdicts = (patterns.verdict(path, folder=folder) for patterns in reversed(ignores))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _gitignore(folder: Path) -> tuple[Patterns, ...]:
    file = folder / ".gitignore"
    try:
        lines = [] if file.is_symlink() else read_text(file).splitlines()  # git follows no link either
    except OSError:
        return ()
    # git ignores invalid patterns
    patterns = Patterns(folder, tuple(line for line in lines[:MAX_PATTERNS] if line.strip() and mistake(line) is None))
    return (patterns,) if patterns.lines else ()


def _git_files(folder: Path, patience: _Patience) -> list[str] | None:
    """Tracked and untracked files that are not ignored, relative to ``folder``; None without git or a work tree, and
    where it takes too long."""
    if not _under_git(folder):
        return None
    started = time.monotonic()
    try:
        done = git(["ls-files", "-c", "-o", "--exclude-standard", "-z"], folder, patience.left)
    except subprocess.TimeoutExpired:
        patience.left = 0
        return None
    except OSError:
        return None
    patience.left -= time.monotonic() - started
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    # in a submodule that was never checked out, git names the folder itself: it knows nothing of what is in there
    return None if done.returncode or "./" in names else names


def _under_git(folder: Path) -> bool:
    """Whether git would find a repository here; to call git costs more than to lint a small file."""
    real = Path(os.path.realpath(folder))
    return any(os.path.lexists(place / ".git") for place in (real, *real.parents))


def _from_git(folder: Path, listed: list[str], patience: _Patience) -> Listing:
    found: list[Path] = []
    skipped: list[tuple[Path, str]] = []
    temporary: list[Path] = []
    nested: set[Path] = set()
    reasons: dict[str, str | None] = {}
    #: whether folders (relative) are inside, not links to elsewhere
    inside: dict[str, bool] = {}
    real_root = os.path.realpath(folder)
    for name in listed:
        if not name.endswith(SUFFIXES):
            if NAME.fullmatch(name.rpartition("/")[2]):
                temporary.append(folder / name)
            # another repository inside this one: untracked (a trailing slash) or a submodule (no suffix to go by)
            if name.endswith("/") or ("." not in name.rpartition("/")[2] and is_dir(folder / name)):
                nested.add(folder / name)
            continue
        parent = name.rpartition("/")[0]
        left_out = _left_out(folder, parent, reasons)
        path = folder / name
        if left_out is not None:
            skipped.append(left_out)
        elif parent not in inside and not inside.setdefault(parent, _leads_into(folder / parent, real_root)):
            skipped.append((folder / parent, _LEADS_OUT))
        elif not inside.get(parent):
            continue
        elif _is_listed_file(path):
            found.append(path)
        elif path.is_symlink() and path.exists() and not _leads_into(path, real_root):
            skipped.append((path, _LEADS_OUT))
    for repository in sorted(nested):
        reason = _folder_reason(repository, set())
        if repository.is_symlink():
            reason = "a symlink to a folder"
        if reason is not None:
            skipped.append((repository, reason))
            continue
        patience.depth += 1
        inner = _list(repository, patience)
        patience.depth -= 1
        found += inner.python
        skipped += inner.skipped
        temporary += inner.temporary
    return msgspec.structs.replace(_listing(found, skipped), temporary=tuple(temporary))


def _is_listed_file(path: Path) -> bool:
    """Whether a path is a regular file and no link; the target of a link is listed under its own name."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:  # git still lists a file that was deleted
        return False


def _left_out(folder: Path, parent: str, reasons: dict[str, str | None]) -> tuple[Path, str] | None:
    """The outermost excluded folder on the path to ``parent`` (relative, ``/`` between components), and the reason."""
    parts = parent.split("/") if parent else []
    for end in range(1, len(parts) + 1):
        part = "/".join(parts[:end])
        if part not in reasons:
            reasons[part] = _folder_reason(folder / part, set())
        reason = reasons[part]
        if reason is not None:
            return folder / part, reason
    return None
