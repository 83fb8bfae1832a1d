"""Files that fail as they are loaded: nothing that is said of them happens until that is mended.

Of absolute imports, which depend on how the program is started, those of a file's own package alone are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable

from memlint.flow.program import Program
from memlint.ir import nodes as ir

#: what may give a module names that its text does not show
_DYNAMIC = frozenset({"__getattr__", "__path__", "globals", "vars", "locals", "exec"})
#: files that are made when a package is built
_MADE = ("_pb2", "_pb2_grpc", "version")


def broken_import(program: Program, key: str) -> str:
    """The import among a file's own first-level statements that surely fails, as a person would say it; "" where
    none is known to."""
    module = program.module(key)
    if not module.index.complete or not any(item.at_import for item in module.index.imports):
        return ""
    for statement in module.statements:
        why = ""
        if isinstance(statement, ir.ImportFrom) and statement.level:
            why = _fails(program, key, statement)
        elif isinstance(statement, ir.ImportFrom):
            why = _is_lost(program, key, statement.module)
        elif isinstance(statement, ir.Import):
            why = next((lost for alias in statement.names if (lost := _is_lost(program, key, alias.name))), "")
        if why:
            return why
    return ""


def _is_lost(program: Program, key: str, name: str) -> str:
    """Whether the folder that a file lies in lacks a module that the file imports from it by an absolute name, as do
    all other folders of that name in the project."""
    first, dot, rest = name.partition(".")
    folders = key.split("/")[:-1]
    if not dot or first not in folders or program.resolve(name, key, 0) is not None or _is_made(program, name):
        return ""
    project = program.project
    if "sys.path" in program.module(key).text or "__path__" in program.module(key).text:
        return ""  # the name may mean a folder elsewhere
    return (
        f"`{name}`, which it imports, is not there"
        if all(project.is_missing(rest, other, level) for other, level in _below(project.sources, first))
        else ""
    )


def _below(keys: Iterable[str], name: str) -> list[tuple[str, int]]:
    """A file below each of the folders of a name, and how many dots lead from it to the folder."""
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
    known = names_in(program, target)
    if target == key or known is None:
        return ""
    for alias in statement.names:
        name = alias.name
        if name == "*" or name in known or name.startswith("__") or _is_made(program, name):
            continue
        if any(definition.name == name for definition in program.module(target).index.definitions):
            continue
        inner = f"{statement.module}.{name}" if statement.module else name
        if not target.endswith("__init__.py") or project.is_missing(inner, key, statement.level):
            return f"`{shown}` has no `{name}`, which it imports"
    return ""


def names_in(program: Program, key: str, depth: int = 0) -> frozenset[str] | None:
    """All names that stand in a file, and in those that it takes everything from; None where others may come in."""
    index = program.module(key).index
    known = index.names
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


def _is_made(program: Program, name: str) -> bool:
    """Whether a module may be made by a build: ``_C``, ``_version``, ``data_pb2``, one that ``setup.py`` speaks of."""
    last = name.rpartition(".")[2]
    if last.startswith("_") or last.endswith(_MADE):
        return True
    builds = (key for key in program.project.sources if key.endswith("setup.py"))
    return any(last in program.project.sources[key].text for key in builds)
