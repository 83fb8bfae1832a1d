"""Changes of a program that change nothing about its memory. Markers are comments, and travel with their lines.

Each change takes and gives a program (path -> text), and raises `Skip` where it does not apply.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath

Files = dict[str, str]
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: line from 1, column in bytes, old text, new text
Edit = tuple[int, int, str, str]

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class Skip(Exception):  # noqa: N818 (not an error)
    """The change does not apply to this program; the message says why."""


def rename_locals(files: Files) -> Files:
    """Every local variable of every function gets a name that says nothing."""
    changed = {path: _edited(text, _local_renames(ast.parse(text))) for path, text in files.items()}
    if changed == files:
        raise Skip("no function has a local variable")
    return changed


def alias_imports(files: Files) -> Files:
    """``import torch`` becomes ``import torch as zq_torch``, and so on for each name imported from torch."""
    changed = {path: _edited(text, list(_alias_edits(ast.parse(text)))) for path, text in files.items()}
    if changed == files:
        raise Skip("nothing is imported from torch by a plain name")
    return changed


def wrap_in_function(files: Files) -> Files:
    """The program's main file becomes the body of one function, which the file calls."""
    path = _main_file(files)
    text = files[path]
    if any(isinstance(node, ast.Global) for node in ast.walk(ast.parse(text))):
        raise Skip("a global of the file would become a local of the function")
    if "__main__" in text:
        raise Skip("a guard of the file would stand in the function")
    body = "".join(f"    {line}" if line.strip() else line for line in text.splitlines(keepends=True))
    return {**files, path: f"def zq_program():\n{body}\n\nzq_program()\n"}


def wrap_in_class(files: Files) -> Files:
    """Each function of the main file becomes the method of a class of its own."""
    path = _main_file(files)
    text = files[path]
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, Function) and _can_be_a_method(node)]
    if not functions:
        raise Skip("no function can become a method")
    names = {function.name for function in functions}
    edits = [(node.lineno, node.col_offset, node.id, f"Zq_{node.id}().{node.id}") for node in _free_names(tree, names)]
    lines = _edited(text, edits).splitlines(keepends=True)
    for function in sorted(functions, key=_first_line, reverse=True):
        start, end = _first_line(function) - 1, function.end_lineno or function.lineno
        header = function.lineno - 1
        own = "(self" if not _has_parameters(function) else "(self, "
        lines[header] = lines[header].replace("(", own, 1)
        body = [f"    {line}" if line.strip() else line for line in lines[start:end]]
        lines[start:end] = [f"class Zq_{function.name}:\n", *body]
    return {**files, path: "".join(lines)}


def move_helpers(files: Files) -> Files:
    """Functions of the main file that its other code calls move to a file of their own."""
    path = _main_file(files)
    if "/" in path:
        raise Skip("the main file is in a package")
    text = files[path]
    tree = ast.parse(text)
    helpers = _helpers(tree)
    if not helpers:
        raise Skip("no function is called by the rest of its file, and stands alone")
    lines = text.splitlines(keepends=True)
    moved: list[str] = []
    for helper in reversed(helpers):
        start, end = _first_line(helper) - 1, helper.end_lineno or helper.lineno
        moved = [*lines[start:end], "\n\n", *moved]
        del lines[start:end]
    imports = [
        segment
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom) and (segment := ast.get_source_segment(text, node))
    ]
    names = ", ".join(helper.name for helper in helpers)
    first = next((i for i, node in enumerate(tree.body) if not _is_docstring(node)), 0)
    at = tree.body[first].lineno - 1
    lines.insert(at, f"from zq_helpers import {names}\n")
    return {**files, path: "".join(lines), "zq_helpers.py": "\n".join(imports) + "\n\n\n" + "".join(moved)}


def guard_program(files: Files) -> Files:
    """The program's main file stands under ``if __name__ == "__main__":`` as a whole."""
    path = _main_file(files)
    return {**files, path: _under_guard(files[path].splitlines(keepends=True))}


def guard_statements(files: Files) -> Files:
    """Each statement of the main file that is no definition and no import stands under a guard of its own."""
    path = _main_file(files)
    lines = files[path].splitlines(keepends=True)
    told = (ast.Import, ast.ImportFrom, *SCOPES)
    plain = [node for node in ast.parse(files[path]).body if not isinstance(node, told) and not _is_docstring(node)]
    if not plain:
        raise Skip("the file runs nothing")
    for node in reversed(plain):
        start, end = node.lineno - 1, node.end_lineno or node.lineno
        lines[start:end] = [_under_guard(lines[start:end])]
    return {**files, path: "".join(lines)}


def _under_guard(lines: list[str]) -> str:
    return 'if __name__ == "__main__":\n' + "".join(f"    {line}" if line.strip() else line for line in lines)


CHANGES: tuple[Callable[[Files], Files], ...] = (
    rename_locals,
    alias_imports,
    wrap_in_function,
    wrap_in_class,
    move_helpers,
    guard_program,
    guard_statements,
)


def _edited(text: str, edits: Iterable[Edit]) -> str:
    lines = [line.encode() for line in text.splitlines(keepends=True)]
    for line, column, old, new in sorted(set(edits), reverse=True):
        source = lines[line - 1]
        assert source[column : column + len(old.encode())] == old.encode(), (line, column, old)
        lines[line - 1] = source[:column] + new.encode() + source[column + len(old.encode()) :]
    return b"".join(lines).decode()


def _main_file(files: Files) -> str:
    """The file that no other file imports."""
    imported = {
        name
        for text in files.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names])
    }
    mains = [
        path
        for path in files
        if ".".join(PurePosixPath(path).with_suffix("").parts) not in imported
        and PurePosixPath(path).name != "__init__.py"
    ]
    if not mains:
        raise Skip("every file is imported by another one")
    if "from __future__" in files[mains[-1]]:
        raise Skip("a __future__ import cannot move")
    return mains[-1]


def _local_renames(tree: ast.Module) -> list[Edit]:
    edits: list[Edit] = []
    for function in (node for node in ast.walk(tree) if isinstance(node, Function)):
        for name in _locals(function):
            edits += [
                (node.lineno, node.col_offset, name, f"zq_{len(name)}_{sum(map(ord, name))}")
                for node in ast.walk(function)
                if isinstance(node, ast.Name) and node.id == name
            ]
    return edits


def _locals(function: Function) -> set[str]:
    """Names that the function assigns, and that neither an inner scope nor a declaration shares."""
    inner = [node for node in ast.walk(function) if isinstance(node, SCOPES) and node is not function]
    declared = {n for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for n in node.names}
    parameters = {arg.arg for node in ast.walk(function) if isinstance(node, ast.arguments) for arg in _arguments(node)}
    elsewhere = {n.id for scope in inner for n in ast.walk(scope) if isinstance(n, ast.Name)}
    bound = {
        alias.asname or alias.name
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    handlers = {node.name for node in ast.walk(function) if isinstance(node, ast.ExceptHandler) and node.name}
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return stored - declared - parameters - elsewhere - bound - handlers


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    rest = [argument for argument in (arguments.vararg, arguments.kwarg) if argument]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *rest]


def _alias_edits(tree: ast.Module) -> Iterable[Edit]:
    renamed: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "torch" and not node.level:
            aliases = node.names
        elif isinstance(node, ast.Import):
            aliases = [a for a in node.names if a.name == "torch" or (a.name.startswith("torch.") and a.asname)]
        else:
            continue
        for alias in aliases:
            bound = alias.asname or alias.name
            renamed[bound] = f"zq_{bound}"
            new = f"{alias.name} as zq_{bound}"
            old = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            yield alias.lineno, alias.col_offset, old, new
    for name in (n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id in renamed):
        yield name.lineno, name.col_offset, name.id, renamed[name.id]


def _can_be_a_method(function: Function) -> bool:
    names = {arg.arg for arg in _arguments(function.args)}
    on_one_line = ast.unparse(function.args) == "" or function.args.args or function.args.kwonlyargs
    return "self" not in names and bool(on_one_line)


def _has_parameters(function: Function) -> bool:
    return bool(_arguments(function.args))


def _first_line(function: Function) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _free_names(tree: ast.Module, names: set[str]) -> list[ast.Name]:
    """Uses of module-level names; a program that shadows one is skipped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and node.arg in names:
            raise Skip(f"a parameter shadows {node.arg}")
        if isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load):
            raise Skip(f"an assignment shadows {node.id}")
    return [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in names]


def _helpers(tree: ast.Module) -> list[Function]:
    """Module-level functions that the file uses, and that use nothing of it but imports and each other."""
    functions = {node.name: node for node in tree.body if isinstance(node, Function)}
    own = {n.name for n in tree.body if isinstance(n, SCOPES)} | {
        n.id
        for node in tree.body
        if not isinstance(node, SCOPES)
        for n in ast.walk(node)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    uses = {name: _names(function) & own - {name} for name, function in functions.items()}
    used = {
        name
        for name in functions
        if any(name in uses[other] for other in functions if other != name)
        or any(name in _names(node) for node in tree.body if not isinstance(node, Function))
    }
    movable = set(used)
    while True:
        stuck = {name for name in movable if not uses[name] <= movable}
        if not stuck:
            return [functions[name] for name in functions if name in movable]
        movable -= stuck


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
