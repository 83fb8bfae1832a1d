"""The declarations and defaults of settings: command-line options, and the fields of configurations."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlint.analysis.domain.bound_names import argument
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Function, Module, Program
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.syntax import (
    calls,
    calls_named,
    dotted,
    is_name,
    last_name,
    walk_expression,
    walk_statements,
)
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: the most files that are read for declarations
_MAX_FILES = 24
_PARSERS = frozenset({"add_argument", "set_defaults"})
#: constructors of objects or dicts from keywords
_NAMESPACES = frozenset(
    {"dict", "Namespace", "SimpleNamespace", "EasyDict", "edict", "AttrDict", "Munch", "ConfigDict"}
)
#: classes whose fields are settings
_SETTINGS = lazy_pattern(r".*(config|cfg|args|arguments|options?|opts?|param(eter)?s|settings)", re.IGNORECASE)

#: the default of a setting (None for an option without one), and the function where it is declared
Default = tuple[ir.Expr | None, Function]


def defaults_of(program: Program, name: str, held_by: str, asker: Function) -> list[Default]:
    """The defaults of the setting that an attribute or a member of a dict is read from: ``args.hidden``,
    ``config["hidden"]``.

    Those of the same file take precedence. Constructor calls that set it count from any file. ``held_by``: the last
    name before the setting.
    """
    for declared, word in ((_of_parsers, "add_argument"), (_of_objects, name)):
        files = program.words.files(word)
        own = asker.module.key
        for keys in ([own] if own in files else [], files if len(files) <= _MAX_FILES else []):
            found = [default for key in keys for default in declared(program.module(key), name, held_by)]
            if found and declared is _of_objects and len(files) <= _MAX_FILES:
                found += [default for key in files for default in _made_with(program.module(key), name)]
            if found:
                return found
    return []


def _of_parsers(module: Module, name: str, held_by: str) -> Iterator[Default]:
    """The defaults by ``parser.add_argument("--hidden", default=64)`` or ``parser.set_defaults(hidden=64)``."""
    for function in functions_of(module):
        for call in calls_named(function.body, _PARSERS):
            if last_name(call.func) == "set_defaults":
                yield from ((word.value, function) for word in call.keywords if word.name == name)
            elif name in {_option_name(arg) for arg in call.args}:
                yield argument(call, 99, "default"), function


def _option_name(arg: ir.Expr) -> str:
    value = arg.value if isinstance(arg, ir.Const) else None
    return value.lstrip("-").replace("-", "_") if isinstance(value, str) else ""


def _of_objects(module: Module, name: str, held_by: str) -> Iterator[Default]:
    """The defaults by ``class Config: hidden = 64``, ``config = dict(hidden=64)`` or ``config.hidden = 64``."""
    for function in functions_of(module):
        for statement in walk_statements(function.body, into_definitions=False):
            if not isinstance(statement, ir.Assign):
                continue
            places = [dotted(one) for one in statement.targets]
            if f"{held_by}.{name}" in places:
                yield statement.value, function
            elif any(one.rpartition(".")[2] == held_by for one in places):
                yield from ((value, function) for value in _members(statement.value, name))
    for cls in module.classes.values():
        if cls.node.name == held_by or _SETTINGS.fullmatch(cls.node.name):
            yield from ((value, module.main) for value in _fields(cls.node, name))


def _made_with(module: Module, name: str) -> Iterator[Default]:
    """The values by constructor calls of settings: ``ModelConfig(hidden=64)``."""
    for function in functions_of(module):
        for call in calls(function.body) if name in function.names else ():
            if _SETTINGS.fullmatch(last_name(call.func)):
                yield from ((word.value, function) for word in call.keywords if word.name == name)


def _fields(node: ir.ClassDef, name: str) -> Iterator[ir.Expr]:
    """The defaults by fields: ``hidden = 64``, ``hidden: int = 64``, ``hidden: int = field(default=64)``."""
    for statement in node.body:
        value = statement.value if isinstance(statement, ir.Assign | ir.AnnAssign) else None
        if value is not None and any(is_name(one, name) for one in targets(statement)):
            yield (argument(value, 99, "default") if isinstance(value, ir.Call) else None) or value


def _members(value: ir.Expr, name: str) -> Iterator[ir.Expr]:
    """The values of a name in the dicts and namespaces of an expression."""
    for part in walk_expression(value):
        if isinstance(part, ir.DictDisplay):
            for key, held in zip(part.keys, part.values, strict=True):
                if isinstance(key, ir.Const) and key.value == name:
                    yield held
        elif isinstance(part, ir.Call) and last_name(part.func) in _NAMESPACES:
            yield from (word.value for word in part.keywords if word.name == name)
