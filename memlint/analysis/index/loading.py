"""Which files of a project may be loaded by a computed name, and which no file imports."""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from memlint.analysis.index.definitions import Module
from memlint.analysis.index.mentions import bound_to, imported, root, tree_of
from memlint.analysis.index.program import Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.index.text_facts import TextFact
from memlint.patterns import lazy_pattern

#: functions that load code by its name
_LOADERS = (
    "import_module", "__import__", "exec_module", "load_module", "run_module", "run_path", "import_string",
    "locate", "instantiate", "hydra", "LightningCLI", "Fire", "get_obj_from_str", "walk_packages", "iter_modules",
    "entry_points", "iter_entry_points", "load_setuptools_entrypoints", "load_source", "resolve_name",
)  # fmt: skip
#: those whose first argument is a dotted name, or the path of a package
_BY_DOTTED_NAME = frozenset({"import_module", "__import__", "run_module", "walk_packages", "iter_modules"})
#: libraries whose name is often also that of a class, function or file of a project
LIBRARIES = frozenset(
    {"torch", "torchvision", "torchaudio", "numpy", "transformers", "tqdm", "pytorch_lightning", "timm"}
)
#: packages outside the project, unless the project has a file of that name
OUTSIDE = sys.stdlib_module_names | LIBRARIES
#: functions that list the files of a folder, for a star import to find
_LISTS = frozenset({"glob", "iglob", "rglob", "listdir", "iterdir", "scandir"})
#: a placeholder for the computed parts of a string, and the forms of such parts
_HOLE = "\0"
_HOLES = lazy_pattern(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|%(?:\([^)]*\))?[-#0 +]*[\d*.]*[a-zA-Z]")
#: an import statement in a string, with the module that it imports
_IMPORT = lazy_pattern(rf"\s*(?:from|import)\s+([\w.{_HOLE}]*)")


def may_mean_project_definition(found: str, name: str) -> bool:
    """Whether a qualified name outside the project may still mean a definition of the project, in a module that was
    renamed or that Python 2 finds beside the file: ``from model import Net``."""
    first, _, rest = found.partition(".")
    return rest.rpartition(".")[2] == name and first not in OUTSIDE


@memoized_in_program
def loaders(program: Program) -> Mapping[str, frozenset[str] | None]:
    """The files that load others by computed names, with these names as `_known_ends` gives them (``models.``) or whole
    dotted names. None if the name may be any. Libraries are left out."""
    found: dict[str, frozenset[str] | None] = {}
    for name in (*_LOADERS, "exec"):
        for key in program.words.files(name):
            if name not in program.module(key).names:
                continue
            names, known = _loaded_by(program, key, name), found.get(key, frozenset())
            if names is None or known is None:
                found[key] = None
            elif names:
                found[key] = known | names
    return found


@memoized_in_program
def loaded_names(program: Program) -> frozenset[str] | None:
    """The union of `loaders` over all files; None if any file may be loaded."""
    found: set[str] = set()
    for names in loaders(program).values():
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _loaded_by(program: Program, key: str, name: str) -> frozenset[str] | None:
    """What a file loads by the function ``name``, as in `loaders`."""
    loaded = program.text_facts.get(_FACTS[name], key) if name in _FACTS else None
    if loaded is None or not all(_is_of_library(program, key, package) for package in loaded.packages):
        return None
    return loaded.names


class _Loaded(NamedTuple):
    """``names``: as in `loaders`; ``packages``: the names of packages whose modules are loaded."""

    names: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()


def _executed(source: str) -> _Loaded | None:
    """The modules that a file imports by a statement in a string that it passes to ``exec``: ``exec(f"from nets.{name}
    import {name}")``. None if one may be any."""
    tree = tree_of(source)
    found: set[str] = set()
    for node in () if tree is None else ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != "exec":
            continue
        for value in _values(source, node.args[0]) if node.args else ():
            statement = _IMPORT.match("" if value is None else _shape(value))
            if statement is None:
                continue
            imported_name = _known_ends(statement[1].lstrip("."))
            if not imported_name:
                return None
            found.add(imported_name)
    return _Loaded(frozenset(found))


def _loads(source: str, name: str) -> _Loaded | None:
    """What a file loads by the function ``name``, whose first argument is a dotted name. None if it may be anything."""
    tree = tree_of(source)
    found: set[str] = set()
    packages: set[str] = set()
    for node, call in () if tree is None else _with_calls(tree):
        if (node.id if isinstance(node, ast.Name) else node.attr) != name:
            continue
        if call is None or not call.args:
            return None
        first = call.args[0]
        if isinstance(first, ast.Attribute) and first.attr == "__path__":
            packages.add(root(first))
            continue
        for value in _values(source, first):
            text = _known_ends("" if value is None else _shape(value).lstrip("."))
            if not text:
                return None
            found.add(text)
    return None if tree is None else _Loaded(frozenset(found), frozenset(packages))


#: by function: what a text loads by it; of the other loaders nothing is known
_FACTS: dict[str, TextFact[_Loaded | None]] = {
    "exec": TextFact("loaded by exec", _Loaded | None, _executed),
    **{
        name: TextFact(f"loaded by {name}", _Loaded | None, functools.partial(_loads, name=name))
        for name in sorted(_BY_DOTTED_NAME)
    },
}


def _with_calls(tree: ast.Module) -> Iterator[tuple[ast.Name | ast.Attribute, ast.Call | None]]:
    """The names and attributes of a file, each with the call of which it is the callee."""
    functions = {id(call.func): call for call in ast.walk(tree) if isinstance(call, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node, functions.get(id(node))


def _values(source: str, expr: ast.expr) -> list[ast.expr | None]:
    """The possible values of an expression: for a name, all that the file binds it to. None for an unknown one."""
    if not isinstance(expr, ast.Name):
        return [expr]
    return bound_to(source).get(expr.id) or [None]


def _shape(expr: ast.expr) -> str:
    """A string with `_HOLE` in place of its computed parts."""
    match expr:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(map(_shape, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _shape(left) + _shape(right)
        case ast.BinOp(left=ast.Constant(value=str(text)), op=ast.Mod()):
            return _HOLES.sub(_HOLE, text)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
            return _HOLES.sub(_HOLE, text)
        case _:
            return _HOLE


def _known_ends(name: str) -> str:
    """A dotted name; if it has holes, the packages before the first one and the text after the last: ``nets.``,
    ``nets.<hole>_net``. "" if not even the first package is known."""
    if _HOLE not in name:
        return name
    first, last = name.partition(_HOLE)[0], name.rpartition(_HOLE)[2]
    first = first[: first.rfind(".") + 1]
    return f"{first}{_HOLE}{last}" if first and last else first


def _is_of_library(program: Program, key: str, name: str) -> bool:
    module = program.module(key)
    return (
        name in imported(module.text)
        and len(bound_to(module.text).get(name, ())) == 1
        and program.find(module, name)[0] == "ext"
    )


def is_loaded(module: Module, names: frozenset[str]) -> bool:
    """Whether loading one of these names may load the file."""
    parts = module.key.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    ends = (name.partition(_HOLE) for name in names)
    # a loaded package may load any of its modules
    return any(
        f"{last}." in f".{parts}.".partition(f".{first}")[2] for first, _, last in ends if f".{first}" in f".{parts}."
    )


def knows(program: Program, key: str, other: str) -> bool:
    """Whether a file that loads others by unknown names may load another one: it is in the same repository, or in one
    that is cloned into that. A clone does not know the code around it."""
    home: Path = program.project.repository(key)
    its: Path = program.project.repository(other)
    return its == home or its.is_relative_to(home)


@memoized_in_program
def runners(program: Program) -> tuple[str, ...]:
    """The files that may run any other file: by a wholly unknown name, by ``exec`` of code that is no known text, or
    by ``%run`` in a notebook."""
    unknown = {key for key, names in loaders(program).items() if names is None}
    unknown.update(key for key in program.words.files("exec") if program.text_facts.get(_EXECUTES, key))
    sources = program.project.sources
    notebooks = (key for key in sources if key.endswith(".ipynb"))
    unknown.update(key for key in notebooks if any(_RUN.search(mask.text) for mask in sources[key].masks))
    return tuple([key for key in sources if key in unknown])


def _executes(source: str) -> bool:
    """Whether a file passes code to ``exec`` that is no text in the file."""
    tree = tree_of(source)
    calls = [node for node in (() if tree is None else ast.walk(tree)) if isinstance(node, ast.Call)]
    given = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "exec" and call.args]
    return any(value is None or _shape(value) == _HOLE for one in given for value in _values(source, one))


_EXECUTES = TextFact("executes unknown code", bool, _executes)
#: a magic that runs another file in the notebook
_RUN = lazy_pattern(r"%run\b|^[ \t]*run[ \t]", re.MULTILINE)


@memoized_in_program
def is_imported(program: Program, module: Module) -> bool:
    """Whether some file of the project may import this one. True for a package."""
    stem = module.key.rpartition("/")[2].removesuffix(".py")
    if stem == "__init__" or not module.key.endswith(".py") or _is_listed(program, module.key):
        return True
    return any(_imports(program, key, module, stem) for key in program.words.files(stem) if key != module.key)


def _imports(program: Program, key: str, module: Module, stem: str) -> bool:
    other = program.module(key)
    if not other.index.complete:
        return True
    for item in other.index.imports:
        for name in item.modules:
            if name.rpartition(".")[2] != stem:
                continue
            target = program.resolve(name, key, item.level)
            first = name.partition(".")[0]
            # a package of the file's own name may be a folder on the search path
            if target in (module.key, f"{module.key.rpartition('/')[0]}/__init__.py") or (
                target is None and (item.level or first not in OUTSIDE)
            ):
                return True
    return False


def _is_listed(program: Program, key: str) -> bool:
    """Whether the ``__init__.py`` beside a file builds its ``__all__`` from the files of the folder."""
    folder, slash, _ = key.rpartition("/")
    package = f"{folder}{slash}__init__.py"
    if package not in program.project.sources:
        return False
    text = program.project.sources[package].text
    return "__all__" in text and any(name in text for name in _LISTS)
