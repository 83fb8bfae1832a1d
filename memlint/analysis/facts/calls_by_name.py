"""Every mention of a name in the project, and whether all callers of a function are known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from memlint.analysis.index.bases import knows_bases
from memlint.analysis.index.program import Class, Function, Module
from memlint.analysis.syntax.bindings import identifiers
from memlint.analysis.syntax.syntax import expressions, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_DECORATORS

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: the most units with a name that are checked; a name in more units is not followed
MAX_UNITS = 24


class TooManyError(Exception):
    """The name is mentioned in more places than a proof checks."""


def functions_naming(analyser: Analyser, name: str, files: Iterable[str] | None = None) -> Iterator[Function]:
    """The functions (and modules' own statements) in whose units the identifier occurs. Raises TooManyError.

    ``files``: those that are searched; None for all.
    """
    for module, number in _units_naming(analyser, name, files):
        yield from functions_in(module, number)


def _units_naming(analyser: Analyser, name: str, files: Iterable[str] | None) -> Iterator[tuple[Module, int]]:
    """The units of these files, or of all, in which the identifier occurs. Raises TooManyError."""
    remaining = MAX_UNITS
    for key in analyser.program.project.sources if files is None else files:
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if name not in unit.names:
                continue
            remaining -= 1
            if remaining < 0:
                raise TooManyError(name)
            yield module, number


def functions_in(module: Module, number: int) -> Iterator[Function]:
    """The functions of one unit; for the first unit, the module's own statements too."""
    module.build(number)
    if number == 0:
        yield module.main
    yield from list(module.by_place.get(number, {}).values())


def own_expressions(function: Function) -> Iterator[tuple[ir.Stmt, ir.Expr]]:
    """The expressions of a function with their statements, nested definitions left out."""
    for statement in walk_statements(function.body, into_definitions=False):
        for expr in expressions(statement):
            yield statement, expr


def attribute_stores(analyser: Analyser, name: str, files: Iterable[str]) -> Iterator[Function]:
    """The functions of the units of these files that assign an attribute of this name."""
    for key in files:
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if name in unit.stores:
                yield from functions_in(module, number)


def reads(function: Function, name: str) -> bool:
    """Whether the function's own statements mention a variable."""
    return name in identifiers(function.body)[0]


def inside(outer: Function, function: Function) -> bool:
    """Whether a function is defined in another one, at any depth."""
    around = function.around
    while around is not None:
        if around is outer:
            return True
        around = around.around
    return False


def calls_of_function(analyser: Analyser, function: Function) -> list[tuple[Function, ir.Call | None]]:
    """Every call that may be of a function, with its caller; a mention that is no call has None. Raises
    TooManyError."""

    def means(mention: Mention, part: ir.Name | ir.Attr) -> bool:
        if function.cls is not None and (isinstance(part, ir.Attr) or mention.cls is function.cls):
            return True
        kind, what = analyser.program.find_expression(mention.function.module, part, mention.function)
        return kind == "function" and what is function

    return _calls(analyser, function.name, means, function.module)


def calls_of_class(analyser: Analyser, cls: Class) -> list[tuple[Function, ir.Call | None]]:
    """Every call that makes an instance of a class, in the form of `calls_of_function`."""

    def means(mention: Mention, part: ir.Name | ir.Attr) -> bool:
        kind, what = analyser.program.find_expression(mention.function.module, part, mention.function)
        return kind == "class" and what is cls

    return _calls(analyser, cls.node.name, means, cls.module)


def _calls(
    analyser: Analyser, name: str, means: Callable[[Mention, ir.Name | ir.Attr], bool], module: Module
) -> list[tuple[Function, ir.Call | None]]:
    """``module``: where the name is defined."""
    return [
        (mention.function, mention.call)
        for mention in mentions_of(analyser, name, analyser.facts.partners.together(module.key))
        if any(means(mention, part) for part in mention.parts)
    ]


class Mention(NamedTuple):
    """Where a function names something: the names or attributes, and the call if it is called there.

    The names in one lambda are one mention: a lambda that calls the named function passes it on. ``cls``: the class in
    whose own body it is, for a module's own statements.
    """

    function: Function
    parts: tuple[ir.Name | ir.Attr, ...]
    call: ir.Call | None
    cls: Class | None = None


def mentions_of(analyser: Analyser, name: str, files: tuple[str, ...]) -> tuple[Mention, ...]:
    """Where these files name a function or class. Raises TooManyError.

    Kept by name: many functions of a project have the same name (``forward``, a helper that is copied into each
    pipeline), and many proofs query the same ones.
    """
    known = analyser.mentions
    if (name, files) not in known:
        try:
            known[name, files] = _find_mentions(analyser, name, files)
        except TooManyError:
            known[name, files] = None
    found = known[name, files]
    if found is None:
        raise TooManyError(name)
    return found


def _find_mentions(analyser: Analyser, name: str, files: tuple[str, ...]) -> tuple[Mention, ...]:
    for key in files:
        for row in analyser.program.module(key).index.imports:
            if row.name == name and row.asname not in (None, name):
                raise TooManyError(name)  # that file imports it under another name
    found: list[Mention] = []
    for module, number in list(_units_naming(analyser, name, files)):
        for function in functions_in(module, number):
            for _, expr in own_expressions(function):
                found += _mentioned(function, expr, name)
            defaults = [param.default for param in function.params if param.default is not None]
            for expr in (*function.decorators, *defaults):
                found += [Mention(function, (part,), None) for part in _named(expr, name)]
        for cls in module.classes_in(number):
            for expr in _of_body(cls):
                found += [Mention(module.main, (part,), None, cls) for part in _named(expr, name)]
    return tuple(found)


def _of_body(cls: Class) -> Iterator[ir.Expr]:
    """The expressions of a class's own statements, what decorates and configures it included."""
    yield from cls.node.decorators
    yield from (word.value for word in cls.node.keywords)
    for statement in walk_statements(cls.node.body, into_definitions=False):
        yield from expressions(statement)


def _mentioned(function: Function, expr: ir.Expr, name: str) -> Iterator[Mention]:
    parts = list(walk_expression(expr))
    named = [part for part in parts if _names(part, name)]
    if named:
        called = {id(part.func): part for part in parts if isinstance(part, ir.Call)}
        yield from (Mention(function, (part,), called.get(id(part))) for part in named)
    for part in parts:
        if isinstance(part, ir.Lambda):
            defaults = (param.default for param in part.params if param.default is not None)
            inner = tuple([one for expr in (part.body, *defaults) for one in _named(expr, name)])
            if inner:
                yield Mention(function, inner, None)


def _named(expr: ir.Expr, name: str) -> tuple[ir.Name | ir.Attr, ...]:
    return tuple([part for part in walk_expression(expr) if _names(part, name)])


def _names(part: ir.Expr, name: str) -> TypeGuard[ir.Name | ir.Attr]:
    return (type(part) is ir.Name and part.id == name) or (type(part) is ir.Attr and part.name == name)


class UnknownCallersError(Exception):
    """Not all callers of a function are known. Its text says why: what follows "`name` "."""


def known_calls(analyser: Analyser, function: Function) -> list[tuple[Function, ir.Call]]:
    """All calls of a function, with their callers. Raises UnknownCallersError."""
    if not _is_called_by_name(analyser, function):
        raise UnknownCallersError("may have callers that are not known")
    try:
        if function.name == "__init__" and function.cls is not None:
            found = calls_of_class(analyser, function.cls)
        else:
            found = calls_of_function(analyser, function)
    except TooManyError:
        raise UnknownCallersError("has too many callers to check them all") from None
    calls = [(caller, call) for caller, call in found if call is not None]
    if len(calls) < len(found) or analyser.facts.is_handed_on(function):
        raise UnknownCallersError("is passed as a value")
    return calls


def has_known_callers(analyser: Analyser, function: Function) -> bool:
    """Whether all callers of a function are known."""
    try:
        known_calls(analyser, function)
    except UnknownCallersError:
        return False
    return True


def _is_called_by_name(analyser: Analyser, function: Function) -> bool:
    """Whether only code that names the function, or its class, calls it: Python calls special methods, a module its
    forward, a base class or a framework the methods that it knows, a decorator what it decorates, and whoever gets a
    nested function may call it."""
    if isinstance(function.node, ir.Lambda | None) or function.enclosing is not None:
        return False
    if set(function.decorator_names) - PLAIN_DECORATORS or analyser.hook(function) is not None:
        return False
    if function.name == "__init__":
        return function.cls is None or not any(analyser.program.below(function.cls))
    if function.name.startswith("__") or function.name == "forward":
        return False
    return function.cls is None or knows_bases(analyser.program, function.cls)
