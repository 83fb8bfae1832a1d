"""Which files of a project are programs: somebody starts them, and what they do happens.

A file is one where it asks whether it is ``__main__``, reads its command line, or is a script, whose own statements
call what the project defines or train something. Naming a logger after ``__name__`` is no sign.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterable, Iterator

from memlint.analysis.index.answers import asked_once
from memlint.analysis.index.mentions import DEFINITIONS, tree_of
from memlint.analysis.index.program import Program, in_tests, is_interactive
from memlint.patterns import lazy_pattern
from memlint.project.published import is_published

#: methods that read a command line, or hand it to a function
_READS = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses", "parse_args_and_config"})
_MAIN_ATTRIBUTES = {"app": "run", "typer": "run", "tyro": "cli", "fire": "Fire", "sys": "argv", "plac": "call"}
#: what a decorator makes a command of a function with
_COMMANDS = frozenset({"command", "group"})
#: what a file hands itself to somebody with, as any part of a package may
_REGISTERS = ("register", "add_", "set_", "filterwarnings", "simplefilter", "manual_seed", "seed", "insert", "append")
#: what trains, among a file's own statements
_TRAINS = frozenset({"backward", "zero_grad"})
#: methods that run a thing which a script has made
_RUNS = frozenset({"train", "fit", "run", "test", "main", "learn", "evaluate", "start", "launch", "play"})
_BLANK = r"[\s\\]*"
#: whatever `_signs` looks for has one of these in it: most files have none, and need not be parsed
_MAY_START = lazy_pattern(
    rf"__main__|\b(?:{'|'.join(sorted({*_READS, *_COMMANDS}))})\b"
    rf"|\b(?:{'|'.join(_MAIN_ATTRIBUTES)}){_BLANK}\.{_BLANK}(?:{'|'.join(sorted({*_MAIN_ATTRIBUTES.values()}))})\b"
    rf"|\.{_BLANK}(?:{'|'.join(sorted({*_TRAINS, *_RUNS}))}){_BLANK}\("
    rf"|(?:^[\ufeff\f]*|;[\f \t]*)(?:\([\s\\(]{{0,100}})?(?!(?:{'|'.join(_REGISTERS)})|def\b|class\b)\w+{_BLANK}\("
    r"|^[\ufeff\f]*(?:if|for|while|with|try|match|async)\b",
    re.MULTILINE,
)
#: files that tools run, not people
_OF_TOOLS = ("setup.py", "conftest.py", "noxfile.py", "docs/conf.py")
#: files that a hub loads for the weights beside them
_OF_HUB = lazy_pattern(r"(?:^|/)(?:modeling|configuration|tokenization|processing|image_processing)_\w+\.py$")


@asked_once
def has_program(program: Program) -> bool:
    """Whether any file of the project is a program."""
    words = program.words
    likely = [*words.files("__name__"), *words.files("parse_args")]
    # (notebooks show what a library is for, as often as not)
    keys = (key for key in dict.fromkeys([*likely, *program.project.sources]) if not is_interactive(key))
    return any(is_program(program, key) for key in keys)


def is_program(program: Program, key: str) -> bool:
    if is_interactive(key):
        return True
    if key.endswith(_OF_TOOLS) or in_tests(key):
        return False
    module = program.module(key)
    mains, called, works = _signs(module.text)
    if mains or works:
        return True
    return any(program.find(module, name)[0] == "function" for name in called)


@functools.lru_cache(maxsize=1024)
def _signs(source: str) -> tuple[bool, frozenset[str], bool]:
    """Whether a file is started for what it says itself; the names that its own statements call for the effect; and
    whether its own statements train something."""
    tree = tree_of(source) if _MAY_START.search(source) is not None or not source.isascii() else None
    if tree is None:
        return False, frozenset(), False
    own = tuple(_own(tree.body))
    mains = any(_is_main(node) for node in own) or any(_is_command(node) for node in tree.body)
    made = {
        target.id
        for node in own
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    called = frozenset(
        root
        for node in own
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and (root := _name(node.value.func))
    )
    works = any(_works(node.func, made) for node in own if isinstance(node, ast.Call))
    return mains, called, works


def _own(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a file's own statements, those of definitions left out."""
    todo: list[ast.AST] = [node for node in body if not isinstance(node, DEFINITIONS)]
    while todo:
        node = todo.pop()
        yield node
        todo.extend(inner for inner in ast.iter_child_nodes(node) if not isinstance(inner, (*DEFINITIONS, ast.Lambda)))


def _is_main(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = any(isinstance(side, ast.Name) and side.id == "__name__" for side in sides)
        return named and any(isinstance(side, ast.Constant) and side.value == "__main__" for side in sides)
    if not isinstance(node, ast.Attribute):
        return False
    return node.attr in _READS or (
        isinstance(node.value, ast.Name | ast.Attribute)
        and _MAIN_ATTRIBUTES.get(node.value.id if isinstance(node.value, ast.Name) else node.value.attr) == node.attr
    )


def _is_command(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    decorators = (each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)
    return any(isinstance(each, ast.Attribute) and each.attr in _COMMANDS for each in decorators)


def _works(func: ast.expr, made: set[str]) -> bool:
    """Whether a call trains something, or runs what the file has made."""
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr in _TRAINS or (func.attr in _RUNS and isinstance(func.value, ast.Name) and func.value.id in made)


def _name(func: ast.expr) -> str:
    """The name of a function that is called by it; "" of what enters something into a list of such things."""
    if not isinstance(func, ast.Name) or func.id.startswith(_REGISTERS):
        return ""
    return func.id


@asked_once
def is_handed_out(program: Program, key: str) -> bool:
    """Whether other projects may use what a file defines: it is in a package that a distribution may hand out."""
    return is_published(program.project, key)


def is_of_hub(program: Program, key: str) -> bool:
    """Whether it is a file beside weights, which name its classes."""
    return _OF_HUB.search(key) is not None and bool(program.words.files("trust_remote_code"))


def is_collected(key: str) -> bool:
    """Whether it is a file of tests, which a runner finds, or of their settings."""
    file = key.rpartition("/")[2]
    return file.startswith(("test_", "conftest")) or file.endswith("_test.py")
