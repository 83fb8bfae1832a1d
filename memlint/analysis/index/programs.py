"""Which files of a project are programs, which a user runs.

A program tests whether it is ``__main__``, reads its command line, or is a script whose own statements call functions
of the project or train something. ``__name__`` alone, as in the name of a logger, is no sign.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from memlint.analysis.index.mentions import DEFINITIONS, tree_of
from memlint.analysis.index.program import Program, in_tests, is_interactive
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.index.text_facts import TextFact
from memlint.patterns import lazy_pattern
from memlint.project.published import is_published

#: methods that parse a command line
_READS = frozenset({"parse_args", "parse_known_args", "parse_args_into_dataclasses", "parse_args_and_config"})
_MAIN_ATTRIBUTES = {"app": "run", "typer": "run", "tyro": "cli", "fire": "Fire", "sys": "argv", "plac": "call"}
#: decorators that turn a function into a command
_COMMANDS = frozenset({"command", "group"})
#: functions by which any module of a package may register something; no sign of a script
_REGISTERS = ("register", "add_", "set_", "filterwarnings", "simplefilter", "manual_seed", "seed", "insert", "append")
#: method calls that train, in a file's own statements
_TRAINS = frozenset({"backward", "zero_grad"})
#: methods that run an object which a script has created
_RUNS = frozenset({"train", "fit", "run", "test", "main", "learn", "evaluate", "start", "launch", "play"})
_BLANK = r"[\s\\]*"
#: every sign of a program contains one of these; most files have none and need not be parsed
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
#: files that a model hub loads beside weights
_OF_HUB = lazy_pattern(r"(?:^|/)(?:modeling|configuration|tokenization|processing|image_processing)_\w+\.py$")


@memoized_in_program
def has_program(program: Program) -> bool:
    """Whether any file of the project is a program."""
    words = program.words
    likely = [*words.files("__name__"), *words.files("parse_args")]
    # notebooks may merely demonstrate a library
    keys = (key for key in dict.fromkeys([*likely, *program.project.sources]) if not is_interactive(key))
    return any(is_program(program, key) for key in keys)


def is_program(program: Program, key: str) -> bool:
    if is_interactive(key):
        return True
    if key.endswith(_OF_TOOLS) or in_tests(key):
        return False
    module = program.module(key)
    is_main, called, trains = program.text_facts.get(_SIGNS, key)
    if is_main or trains:
        return True
    return any(program.find(module, name)[0] == "function" for name in called)


def _program_signs(source: str) -> tuple[bool, frozenset[str], bool]:
    """Whether a file tests for ``__main__`` or defines a command; the functions that its own statements call for their
    effect; and whether its own statements train something."""
    tree = tree_of(source) if _MAY_START.search(source) is not None or not source.isascii() else None
    if tree is None:
        return False, frozenset(), False
    own = tuple(_own_nodes(tree.body))
    is_main = any(_is_main(node) for node in own) or any(_is_command(node) for node in tree.body)
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
    trains = any(_trains_or_runs(node.func, made) for node in own if isinstance(node, ast.Call))
    return is_main, called, trains


_SIGNS = TextFact("signs of a program", tuple[bool, frozenset[str], bool], _program_signs)


def _own_nodes(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of a file's own statements, without those of definitions."""
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


def _trains_or_runs(func: ast.expr, made: set[str]) -> bool:
    """Whether a call trains something, or runs an object that the file has created."""
    if not isinstance(func, ast.Attribute):
        return False
    return func.attr in _TRAINS or (func.attr in _RUNS and isinstance(func.value, ast.Name) and func.value.id in made)


def _name(func: ast.expr) -> str:
    """The name of a plainly called function; "" for a call that registers something."""
    if not isinstance(func, ast.Name) or func.id.startswith(_REGISTERS):
        return ""
    return func.id


@memoized_in_program
def is_distributed(program: Program, key: str) -> bool:
    """Whether other projects may import a file: it is in a package that the project distributes."""
    return is_published(program.project, key)


def is_library(program: Program, key: str) -> bool:
    """Whether unknown programs may import a file: it is distributed, or the project has no program of its own."""
    return is_distributed(program, key) or not has_program(program)


def is_of_hub(program: Program, key: str) -> bool:
    """Whether it is a file that a hub loads beside weights, which name its classes."""
    return _OF_HUB.search(key) is not None and bool(program.words.files("trust_remote_code"))


def is_collected(key: str) -> bool:
    """Whether it is a test file that a test runner collects, or its configuration."""
    file = key.rpartition("/")[2]
    return file.startswith(("test_", "conftest")) or file.endswith("_test.py")
