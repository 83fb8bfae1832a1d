"""Files that fail while they are loaded, so that no finding in them happens until that is fixed.

An absolute import depends on how the program is started. Only those of a file's own package, and of modules beside a
script, are checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from memlint.analysis.index.loading import LIBRARIES
from memlint.analysis.index.program import Program, is_interactive
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.syntax.memo import kept_for
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names by which a module may have members that its text does not show
_DYNAMIC = frozenset({"__getattr__", "__path__", "globals", "vars", "locals", "exec"})
#: suffixes of files that a build generates
_MADE = ("_pb2", "_pb2_grpc", "version")
#: how many imports in a chain are followed
MAX_DEPTH = 4
#: the clause for a file in an older grammar
UNREADABLE = "no Python of today reads it (MEM000)"
_LIBRARIES = LIBRARIES | sys.stdlib_module_names


@memoized_in_program
def broken_import(program: Program, key: str) -> str:
    """The module-level import of a file that certainly fails, as a clause; "" if none is known."""
    if is_interactive(key):  # a notebook's commands may install what it imports
        return ""
    folder = str(program.project.path(key).parent)
    return _own(program, key, is_program=True) or _brings_broken(program, key, folder, str(MAX_DEPTH))


def _own(program: Program, key: str, *, is_program: bool) -> str:
    """The first of a file's imports that fails because its target does not exist; "" for none. ``is_program``: the file
    may be the program, which finds the modules beside it."""
    module = program.module(key)
    if not module.index.complete or not any(item.at_import for item in module.index.imports):
        return ""
    for statement in module.statements:
        why = ""
        if isinstance(statement, ir.ImportFrom) and statement.level:
            why = _fails(program, key, statement)
        elif isinstance(statement, ir.ImportFrom):
            why = _is_lost(program, key, statement.module) or _is_moved(program, key, statement)
            why = why or (is_program and _lacks(program, key, statement)) or ""
        elif isinstance(statement, ir.Import):
            why = next((lost for alias in statement.names if (lost := _is_lost(program, key, alias.name))), "")
        if why:
            return why
    return ""


@kept_for
def _brings_broken(program: Program, key: str, folder: str, depth: str) -> str:
    """The first import of a file, or of the files that it certainly loads, that fails in every program of a folder; ""
    for none."""
    for shown, (target, root) in _loaded_by(program, key).items():
        if root is not None and not _is_meant(program, target, root, Path(folder)):
            continue
        why = _of_itself(program, target)
        if not why and depth != "0":
            why = _brings_broken(program, target, folder, str(int(depth) - 1))
        if why:
            return f"`{shown}`, which it imports, fails as well: {why}"
    return ""


@kept_for
def _of_itself(program: Program, key: str) -> str:
    """Why a file fails in every program that loads it; "" if nothing is known."""
    if program.project.sources[key].rewritten:
        return UNREADABLE
    return _own(program, key, is_program=False)


@kept_for
def _loaded_by(program: Program, key: str) -> dict[str, tuple[str, Path | None]]:
    """The files that a file loads, by the names that it uses for them; for an absolute import with the folder from
    which it does, if that is where Python looks."""
    statements = program.module(key).statements
    return {
        shown: (target, root) for statement in statements for shown, target, root in _loads(program, key, statement)
    }


def _loads(program: Program, key: str, statement: ir.Stmt) -> Iterator[tuple[str, str, Path | None]]:
    """The names, files and folders of one import (see `_loaded_by`), parent packages included."""
    if isinstance(statement, ir.ImportFrom) and statement.level:
        names, level = [statement.module], statement.level
    else:
        level = 0
        names = [alias.name for alias in statement.names] if isinstance(statement, ir.Import) else []
        names += [statement.module] if isinstance(statement, ir.ImportFrom) else []
        if names and "sys.path" in program.module(key).text:
            return
    if isinstance(statement, ir.ImportFrom):
        names += _modules_among(program, key, statement)
    for name in names:
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            first = ".".join(parts[:end])
            target = program.resolve(first, key, level)
            if target is None or (not level and parts[0] in _LIBRARIES):
                continue
            yield "." * level + first, target, None if level else _root(program, first, target)
            known = program.module(target).names
            if "__path__" in known or known >= {"sys", "modules"}:
                break  # the package itself says where its modules are


def _modules_among(program: Program, key: str, statement: ir.ImportFrom) -> list[str]:
    """The names of an import that only a module of the package can be, because the package's own file certainly has
    none such; none of them if it may have others."""
    package = program.resolve(statement.module, key, statement.level)
    known = names_in(program, package) if package is not None else frozenset()  # a folder has modules alone
    if known is None:
        return []
    return [f"{statement.module}.{one.name}".lstrip(".") for one in statement.names if one.name not in known]


def _root(program: Program, name: str, target: str) -> Path:
    """The folder in which a file has this absolute name."""
    path: Path = program.project.path(target)
    return (path.parent if path.name == "__init__.py" else path).parents[name.count(".")]


def _is_meant(program: Program, target: str, root: Path, folder: Path) -> bool:
    """Whether a program in a folder finds a file in this root: in the folder itself (or the ``src`` in it), or, if no
    Python of today reads the file, in a folder around that is no package."""
    if root in (folder, folder / "src"):
        return True
    project = program.project
    return project.sources[target].rewritten and root in folder.parents and not project.is_package(root)


def _is_lost(program: Program, key: str, name: str) -> str:
    """The clause for an absolute import from a folder around the file, if neither that folder nor any other of its name
    has the module; "" otherwise."""
    first, dot, rest = name.partition(".")
    folders = key.split("/")[:-1]
    if not dot or first not in folders or program.resolve(name, key, 0) is not None or _is_made(program, name):
        return ""
    project = program.project
    if (
        "sys.path" in program.module(key).text
        or "__path__" in program.module(key).text
        or _is_part(program, key, first)
    ):
        return ""  # the name may refer to a folder elsewhere
    return (
        f"`{name}`, which it imports, is not there"
        if all(project.is_missing(rest, other, level) for other, level in _below(project.sources, first))
        else ""
    )


def _is_moved(program: Program, key: str, statement: ir.ImportFrom) -> str:
    """The clause for an import of a missing module from the project's package, from which the file imports existing
    ones; "" otherwise."""
    first, _, rest = statement.module.partition(".")
    folders = key.split("/")[:-1]
    if not rest or first in folders or first in sys.stdlib_module_names or _is_made(program, statement.module):
        return ""
    project = program.project
    found = program.resolve(first, key, 0)  # most packages belong to a library
    if found is None or not found.endswith("__init__.py") or program.resolve(statement.module, key, 0) is not None:
        return ""
    if names_in(program, found) is None or len(places := _below(project.sources, first)) != 1:
        return ""
    if "sys.path" in program.module(key).text or "__path__" in program.module(key).text:
        return ""
    other, level = places[0]
    lost = project.is_missing(rest, other, level) and _is_surely_meant(program, key, first, statement)
    return f"`{statement.module}`, which it imports, is not there" if lost else ""


def _is_part(program: Program, key: str, name: str) -> bool:
    """Whether the folder of this name around a file is inside a package, so that an absolute import of the name means a
    library. A package at the top of the project is importable from there."""
    folders = key.split("/")[:-1]
    around = "/".join((*folders[: folders.index(name)], "__init__.py"))
    if around not in program.project.sources:
        return False
    return name in _LIBRARIES or program.project.path(around).parent != program.project.root


def _below(keys: Iterable[str], name: str) -> list[tuple[str, int]]:
    """A file below each folder of a name, with the number of dots that lead from it to the folder."""
    found: dict[tuple[str, ...], tuple[str, int]] = {}
    for key in keys:
        folders = key.split("/")[:-1]
        for at, folder in enumerate(folders):
            if folder == name:
                found.setdefault(tuple(folders[: at + 1]), (key, len(folders) - at))
    return list(found.values())


def _fails(program: Program, key: str, statement: ir.ImportFrom) -> str:
    project = program.project
    target = program.resolve(statement.module, key, statement.level)
    shown = "." * statement.level + statement.module
    if target is None:
        lost = statement.module and project.is_missing(statement.module, key, statement.level)
        return f"`{shown}`, which it imports, is not there" if lost and not _is_made(program, statement.module) else ""
    return _names_missing(program, key, target, statement, (statement.module, key, statement.level))


def _lacks(program: Program, key: str, statement: ir.ImportFrom) -> str:
    """The clause for a name that a file imports from a module which does not define it; "" for none. The module is in
    the file's package, if only one of that name exists, or beside a script."""
    project = program.project
    target = program.resolve(statement.module, key, 0)
    first, _, rest = statement.module.partition(".")
    if target is None or first in sys.stdlib_module_names or "sys.path" in program.module(key).text:
        return ""
    folder, slash, _ = key.rpartition("/")
    if first in folder.split("/"):
        places = _below(project.sources, first)
        at = [(other, level) for other, level in places if target.startswith(_folder(other, level))]
        if len(places) != 1 or not at or _is_part(program, key, first):
            return ""
        other, level = at[0]
    else:
        path = f"{folder}{slash}{statement.module.replace('.', '/')}"
        in_package = f"{folder}{slash}__init__.py" in project.sources
        if not in_package and target in (f"{path}.py", f"{path}/__init__.py"):
            other, level, rest = key, 1, statement.module
        else:
            places = _below(project.sources, first)
            if not rest or len(places) != 1 or not _is_surely_meant(program, key, first, statement):
                return ""
            other, level = places[0]
            if not target.startswith(_folder(other, level)):
                return ""
    return _names_missing(program, key, target, statement, (rest, other, level))


def _is_surely_meant(program: Program, key: str, package: str, statement: ir.ImportFrom) -> bool:
    """Whether a file means the project's package of this name, and no library: it imports other, existing things from
    it."""
    if package in _LIBRARIES:
        return False
    for other in program.module(key).statements:
        if not isinstance(other, ir.ImportFrom) or other is statement or other.level:
            continue
        target = program.resolve(other.module, key, 0) if other.module.partition(".")[0] == package else None
        known = names_in(program, target) if target is not None else None
        if known is None or target is None:
            continue
        inner = (program.resolve(f"{other.module}.{alias.name}", key, 0) for alias in other.names)
        if all(
            alias.name in known or (found is not None and found != target)
            for alias, found in zip(other.names, inner, strict=True)
        ):
            return True
    return False


def _folder(key: str, level: int) -> str:
    """The folder that a relative import with this number of dots refers to."""
    return "".join(f"{part}/" for part in key.split("/")[:-level])


def _names_missing(
    program: Program, key: str, target: str, statement: ir.ImportFrom, place: tuple[str, str, int]
) -> str:
    """The clause for the first imported name that the target module lacks; "" for none. ``place``: the target's
    relative name, the file that it is relative to, and the number of dots."""
    module, importer, level = place
    known = names_in(program, target)
    if target == key or known is None:
        return ""
    for alias in statement.names:
        name = alias.name
        if name == "*" or name in known or name.startswith("__") or _is_made(program, name):
            continue
        if any(definition.name == name for definition in program.module(target).index.definitions):
            continue
        inner = f"{module}.{name}" if module else name
        if not target.endswith("__init__.py") or program.project.is_missing(inner, importer, level):
            return f"`{'.' * statement.level}{statement.module}` has no `{name}`, which it imports"
    return ""


@memoized_in_program
def names_in(program: Program, key: str, depth: int = 0) -> frozenset[str] | None:
    """All names in a file, and in the files from which it imports ``*``; None if there may be others."""
    index, known = program.module(key).index, program.module(key).names
    if not index.complete or known & _DYNAMIC or known >= {"sys", "modules"} or depth > 3:
        return None
    for item in index.imports:
        if item.name == "*":
            inner = program.resolve(item.module, key, item.level)
            names = names_in(program, inner, depth + 1) if inner is not None else None
            if names is None:
                return None
            known |= names
    return known


#: folders that builds create and ignore files exclude
_OF_BUILDS = frozenset({"bindings", "build", "ext", "extension", "extensions", "generated"})


def _is_made(program: Program, name: str) -> bool:
    """Whether a build may generate a module: ``_C``, ``_ext.nms``, ``data_pb2``, or a name in ``setup.py``."""
    last = name.rpartition(".")[2]
    if last.endswith(_MADE) or any(part.startswith("_") or part in _OF_BUILDS for part in name.split(".")):
        return True
    builds = (key for key in program.project.sources if key.endswith("setup.py"))
    return any(last in program.project.sources[key].text for key in builds)


#: the release that introduced ``torch.no_grad``
_GRAD_MODE = (0, 4)
#: the way to take a number out of a loss before 0.4; it raises today, as a loss has no dimension
_NUMBER = lazy_pattern(r"^[^#\n\"']*?\b((?:\w+_)?loss\.data\[0\])", re.MULTILINE)
#: signs that a file supports several releases
_SEVERAL = lazy_pattern(r"__version__|hasattr\(|torch\.compile|except\b")


@memoized_in_program
def dated(program: Program, key: str) -> str:
    """The evidence that a file is written for a torch before 0.4, as a clause; "" for none."""
    project = program.project
    if project.knows_grad_mode(key):
        return ""
    text = project.sources[key].text
    taken = None if _SEVERAL.search(text) else _NUMBER.search(text)
    if taken is not None:
        return f"this file is written for a PyTorch before 0.4, which has no `torch.no_grad`: `{taken[1]}`"
    release = project.newest_torch or project.said_torch
    if release is None or release >= _GRAD_MODE or not project.predates_grad_mode:
        return ""
    return f"this project is for PyTorch {release[0]}.{release[1]}, which has no `torch.no_grad`"
