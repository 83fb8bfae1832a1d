"""Which files of a project code may load without an import that names them, and which no file imports at all."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping

from memlint.analysis.index.answers import asked_once
from memlint.analysis.index.definitions import Module
from memlint.analysis.index.mentions import bound_to, imported, root, tree_of
from memlint.analysis.index.program import Program
from memlint.patterns import lazy_pattern

#: names of what loads code by its name, wherever it stands
_LOADERS = (
    "import_module",
    "__import__",
    "exec_module",
    "load_module",
    "run_module",
    "run_path",
    "import_string",
    "locate",
    "instantiate",
    "hydra",
    "LightningCLI",
    "Fire",
    "get_obj_from_str",
    "walk_packages",
    "iter_modules",
    "entry_points",
)
#: those that are told a dotted name, or the paths of a package
_TOLD = frozenset({"import_module", "__import__", "run_module", "walk_packages", "iter_modules"})
#: libraries whose names are often taken by classes, functions and files of a project
LIBRARIES = frozenset(
    {"torch", "torchvision", "torchaudio", "numpy", "transformers", "tqdm", "pytorch_lightning", "timm"}
)
#: what is imported under these names lies outside the project, where it is not found in it
OUTSIDE = sys.stdlib_module_names | LIBRARIES
#: what lists the files of a folder, for a star import to find
_LISTS = frozenset({"glob", "iglob", "rglob", "listdir", "iterdir", "scandir"})
#: what stands for a part of a text that only a run tells, and how such parts are written
_HOLE = "\0"
_HOLES = lazy_pattern(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|%(?:\([^)]*\))?[-#0 +]*[\d*.]*[a-zA-Z]")
#: a statement that is put together, and which files it brings
_IMPORT = lazy_pattern(rf"\s*(?:from|import)\s+([\w.{_HOLE}]*)")


def may_be_lost(found: str, name: str) -> bool:
    """Whether a qualified name that leads out of the project may be a definition of it all the same, in a module that
    was called otherwise once or that Python 2 finds beside the file: ``from model import Net``."""
    first, _, rest = found.partition(".")
    return rest.rpartition(".")[2] == name and first not in OUTSIDE


@asked_once
def loaders(program: Program) -> Mapping[str, frozenset[str] | None]:
    """The files that load others by names that only runs tell, with these names as `_known_ends` gives them
    (``models.``), and dotted names of what they load by whole ones; None where that may be anything. What is a
    library's is left out."""
    found: dict[str, frozenset[str] | None] = {}
    asked = [(name, key, _loads) for name in _LOADERS for key in program.words.files(name)]
    asked += [("exec", key, _executed) for key in program.words.files("exec")]
    for name, key, ask in asked:
        if name not in program.module(key).names:
            continue
        told, known = ask(program, key, name), found.get(key, frozenset())
        if told is None or known is None:
            found[key] = None
        elif told:
            found[key] = known | told
    return found


@asked_once
def loaded(program: Program) -> frozenset[str] | None:
    """What any file loads, as `loaders` has it; None where that may be anything."""
    found: set[str] = set()
    for names in loaders(program).values():
        if names is None:
            return None
        found |= names
    return frozenset(found)


def _executed(program: Program, key: str, name: str) -> set[str] | None:
    """What a file imports by a statement that it puts together, for a function of that ``name`` (``exec``) to run:
    ``exec(f"from nets.{name} import {name}")``."""
    tree = tree_of(program.module(key).text)
    found: set[str] = set()
    for node in () if tree is None else ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id != name:
            continue
        for told in _values(program.module(key).text, node.args[0]) if node.args else ():
            statement = _IMPORT.match("" if told is None else _shape(told))
            if statement is None:
                continue
            imported_name = _known_ends(statement[1].lstrip("."))
            if not imported_name:
                return None
            found.add(imported_name)
    return found


def _loads(program: Program, key: str, name: str) -> set[str] | None:
    tree = tree_of(program.module(key).text) if name in _TOLD else None
    if tree is None:
        return None
    found: set[str] = set()
    for node, call in _with_calls(tree):
        if (node.id if isinstance(node, ast.Name) else node.attr) != name:
            continue
        if call is None or not call.args:
            return None
        first = call.args[0]
        if isinstance(first, ast.Attribute) and first.attr == "__path__":
            if not _is_of_library(program, key, root(first)):
                return None
            continue
        for told in _values(program.module(key).text, first):
            text = _known_ends("" if told is None else _shape(told).lstrip("."))
            if not text:
                return None
            found.add(text)
    return found


def _with_calls(tree: ast.Module) -> Iterator[tuple[ast.Name | ast.Attribute, ast.Call | None]]:
    """The names and attributes of a file, with the call that each is the function of."""
    functions = {id(call.func): call for call in ast.walk(tree) if isinstance(call, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            yield node, functions.get(id(node))


def _values(source: str, expr: ast.expr) -> list[ast.expr | None]:
    """What an expression may be: that which a name is bound to wherever the file binds it, None for not known."""
    if not isinstance(expr, ast.Name):
        return [expr]
    return bound_to(source).get(expr.id) or [None]


def _shape(expr: ast.expr) -> str:
    """A text as far as it is written: `_HOLE` stands for what only a run tells."""
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
    """A dotted name as it is written; of one with holes its first parts, and what it ends with: ``nets.``,
    ``nets.<hole>_net``. "" where its first parts are not known."""
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
    """Whether a file may be among what is loaded by those names."""
    parts = module.key.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    ends = (name.partition(_HOLE) for name in names)
    # (of a package that is loaded, all that lies in it may be)
    return any(
        f"{last}." in f".{parts}.".partition(f".{first}")[2] for first, _, last in ends if f".{first}" in f".{parts}."
    )


def is_imported(program: Program, module: Module) -> bool:
    """Whether some file of the project may import a file; a package counts as imported."""
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
            # (a package of the file's own name may be the folder that is put on the path)
            if target in (module.key, f"{module.key.rpartition('/')[0]}/__init__.py") or (
                target is None and (item.level or first not in OUTSIDE)
            ):
                return True
    return False


def _is_listed(program: Program, key: str) -> bool:
    """Whether the package of a file makes its ``__all__`` of the files that lie in it."""
    folder, slash, _ = key.rpartition("/")
    package = f"{folder}{slash}__init__.py"
    if package not in program.project.sources:
        return False
    text = program.project.sources[package].text
    return "__all__" in text and any(name in text for name in _LISTS)
