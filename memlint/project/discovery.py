"""From the given paths to the files of a project, and the skipped ones with their reasons."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.finding import Failure, Skipped
from memlint.project.listing import NOTEBOOK, SUFFIXES, Listing, list_files, list_flat, walk
from memlint.project.patterns import Patterns, first_match
from memlint.project.presence import is_dir
from memlint.project.project import Project
from memlint.project.roots import display_path, is_marked, is_too_wide, outside_packages
from memlint.temporary import beside


class Named(msgspec.Struct, frozen=True):
    """A given path, made absolute. ``content``: its content, if that is not on the disk (stdin)."""

    path: Path
    content: bytes | None = None


class Discovery(msgspec.Struct, frozen=True):
    """``said``: skipped files that were given explicitly, which are mentioned even without --verbose. ``temporary``:
    files that a killed run may have left."""

    project: Project
    failures: tuple[Failure, ...]
    skipped: tuple[Skipped, ...]
    said: tuple[Skipped, ...]
    temporary: tuple[Path, ...] = ()


class _Found(msgspec.Struct):
    linted: list[Path]
    context: list[Path]
    failures: list[Failure]
    skipped: dict[Path, str]
    said: dict[Path, str]


def discover(
    root: Path,
    named: Sequence[Named],
    *,
    cwd: Path,
    excludes: Iterable[Patterns] = (),
    force_exclude: bool = False,
    import_roots: Iterable[Path] = (),
    listing: Listing | None = None,
    unsaved: Mapping[Path, bytes] | None = None,
) -> Discovery:
    """The project at ``root`` with the files that ``named`` mean. ``listing``: its `list_context`, if known.
    ``unsaved``: contents of files in place of those on the disk.

    Given folders are searched; given files are taken even if ``excludes`` match them, unless ``force_exclude``. A path
    that does not exist, or is no Python file, is a failure.
    """
    excludes = tuple(excludes)
    listing = list_context(root, named, cwd) if listing is None else listing
    found = _Found([], [path for path in listing.python if first_match(excludes, path) is None], [], {}, {})
    given: dict[Path, bytes] = {}
    for one in named:
        path = one.path
        if one.content is None and is_dir(path):
            _take_folder(path, listing, found, excludes, cwd)
        elif force_exclude and (pattern := first_match(excludes, path)) is not None:
            found.said[path] = f"excluded by `{pattern}` (--force-exclude)"
        elif (problem := _problem(one)) is not None:
            found.failures.append(Failure(display_path(path, cwd), problem))
        else:
            found.linted.append(path)
            if one.content is not None:
                given[path] = one.content
    found.context += _context_of_strangers(found, listing, cwd)
    if unsaved:
        given = {**{path: unsaved[path] for path in found.context if path in unsaved}, **given}
    project = Project(root, cwd, found.linted, found.context, import_roots, given, listing.notebooks)
    searched = {path.parent for path in listing.python}
    temporary = (*listing.temporary, *beside(path for path in found.linted if path.parent not in searched))
    return Discovery(project, tuple(found.failures), _rows(found.skipped, cwd), _rows(found.said, cwd), temporary)


def list_context(root: Path, named: Sequence[Named], cwd: Path) -> Listing:
    """The files of the project at ``root`` that are the context of what ``named`` mean."""
    # without a mark of a project (a package in site-packages, a script in /tmp), files beside it are no context
    guessed = root not in (cwd, *(one.path for one in named)) and not is_marked(root)
    return Listing((), (), ()) if guessed or (root == cwd and is_too_wide(root)) else list_files(root)


def apart(named: Sequence[Named], listing: Listing, cwd: Path) -> list[list[Named]]:
    """The given files of one project in groups: linted together, the files of a group have the context that each would
    have alone. Listed files are one group; other files (gitignored ones) are one group for each folder around them."""
    known = set(listing.python)
    strangers = [one for one in named if one.path not in known]
    if not strangers:
        return [list(named)]
    listed = _parents(listing)
    groups: dict[Path | None, list[Named]] = {None: [one for one in named if one.path in known]}
    for one in strangers:
        folder = one.path.parent
        groups.setdefault(folder if folder in listed else _base(folder, listed, cwd), []).append(one)
    return [group for group in groups.values() if group]


def _take_folder(folder: Path, listing: Listing, found: _Found, excludes: tuple[Patterns, ...], cwd: Path) -> None:
    below = listing.below(folder)
    if (problem := _unlistable(folder)) is not None:
        found.failures.append(Failure(display_path(folder, cwd), problem))
        return
    if not below.python:
        # no files known to git: an ignored folder, which was given all the same
        below = walk(folder)
        package = _outermost_package(folder)
        context = below if package == folder else walk(package)
        found.context += (path for path in context.python if first_match(excludes, path) is None)
    skipped = dict(below.skipped)
    taken = []
    for path in below.python:
        pattern = first_match(excludes, path)
        if pattern is None:
            taken.append(path)
        else:
            skipped[path] = f"excluded by `{pattern}`"
    found.linted += taken
    found.skipped.update(skipped)
    if not taken and any(path.name.endswith(SUFFIXES) for path in skipped):
        found.failures.append(Failure(display_path(folder, cwd), _nothing_left(skipped)))
    elif not taken:
        found.said[folder] = "no Python files found"


def _unlistable(folder: Path) -> str | None:
    try:
        with os.scandir(folder):
            return None
    except OSError as error:
        return f"cannot be listed: {(error.strerror or str(error)).lower()}"


def _nothing_left(skipped: Mapping[Path, str]) -> str:
    reasons = sorted({reason for path, reason in skipped.items() if path.name.endswith(SUFFIXES)})
    count = sum(path.name.endswith(SUFFIXES) for path in skipped)
    return f"no file was checked: {count} skipped ({'; '.join(reasons[:3])})"


def _problem(named: Named) -> str | None:
    """Why a given path that is no folder cannot be linted, or None."""
    path = named.path
    if named.content is None and (problem := _no_file(path)) is not None:
        return problem
    if named.content is not None or path.suffix in (".py", ".pyw", ".pyi", NOTEBOOK) or _has_python_shebang(path):
        return None
    return "not a Python file"


def _no_file(path: Path) -> str | None:
    """Why a path leads to no file, or None."""
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return "a symlink that leads nowhere" if path.is_symlink() else _missing(path)
    except OSError as error:
        return (error.strerror or str(error)).lower()
    except ValueError as error:  # a null byte
        return str(error)
    return None if is_file else "not a file: a pipe or a device"


def _missing(path: Path) -> str:
    import difflib

    try:
        near = difflib.get_close_matches(path.name, [child.name for child in path.parent.iterdir()], 1)
    except OSError:
        near = []
    return "no such file or directory" + (f"; did you mean {near[0]}?" if near else "")


def _has_python_shebang(path: Path) -> bool:
    if path.suffix:
        return False
    try:
        with path.open("rb") as file:
            first = file.readline(200)
    except OSError:
        return True  # reading it will fail in the same way, with a message
    return first.startswith(b"#!") and b"python" in first


def _context_of_strangers(found: _Found, listing: Listing, cwd: Path) -> list[Path]:
    """The context of given files that the project does not list (they are gitignored, or outside of it)."""
    known = {*listing.python, *found.context}
    strangers = sorted({path.parent for path in found.linted if path not in known})
    if not strangers:
        return []
    listed = _parents(listing)
    bases = {_base(folder, listed, cwd) for folder in strangers if folder not in listed}
    return [path for base in bases for path in (list_flat(base) if is_too_wide(base) else walk(base)).python]


def _parents(listing: Listing) -> set[Path]:
    """All folders that contain listed files, at any depth."""
    return {parent for path in listing.python for parent in path.parents}


def _base(folder: Path, listed: set[Path], cwd: Path) -> Path:
    """The folder that is the context of a file in ``folder``, which the project does not list."""
    if folder.is_relative_to(cwd) and cwd not in listed and not is_too_wide(cwd):
        return cwd  # an unpacked tree that is the working directory
    return _outermost_package(folder)


def _outermost_package(folder: Path) -> Path:
    """The outermost package around ``folder``; ``folder`` itself if it is no package."""
    outside = outside_packages(folder)
    return next((parent for parent in (folder, *folder.parents) if parent.parent == outside != folder), folder)


def _rows(rows: Mapping[Path, str], cwd: Path) -> tuple[Skipped, ...]:
    return tuple(Skipped(display_path(path, cwd), reason) for path, reason in sorted(rows.items()))
