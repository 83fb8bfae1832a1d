"""Attributes that code accesses by a string, which a search for ``.name`` misses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import functions_in, own_expressions
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Class, Function, Module
from memlint.analysis.index.text_facts import TextFact
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, walk_expression
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_BY_NAME = frozenset(["getattr", "setattr", "delattr", "attrgetter", "__getattribute__", "__setattr__"])
_CALLED = lazy_pattern(r"\bgetattr\s*\((?:[^()]|\([^()]*\))*\)\s*\(|\w\s*=\s*getattr\b")
#: whether a file may call what ``getattr`` gives
_CALLING = TextFact(
    "calls attributes by their names",
    bool,
    lambda source: _CALLED.search(source) is not None,
)
_WHOLE = frozenset(["vars", "__dict__", "asdict", "astuple"])


def reached(analyser: Analyser, name: str, home: Module) -> str:
    """How an attribute may be accessed by a string, a clause; "" if it is not: by its name in a string in any file that
    may run with its own, by a computed one in its own file."""
    for key in analyser.facts.partners.together(home.key):
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if not unit.names & (_BY_NAME | _WHOLE):
                continue
            if key != home.key and f'"{name}"' not in module.text and f"'{name}'" not in module.text:
                continue
            for function in functions_in(module, number):
                for part in _parts(function):
                    if _reaches(part, name, module is home):
                        return f"`{text(part, 40)}` may read it by name, and need its graph"
    return ""


def called_by_name(analyser: Analyser, function: Function, files: Iterable[str]) -> str:
    """How code of these files may call a function by a string, a clause; "" if it does not:
    ``getattr(trainer, name)(batch)``, ``globals()[name](batch)``."""
    program, home = analyser.program, function.module.key
    for key in files:
        near = key == home or home in analyser.facts.partners.imports(key)
        for number, unit in enumerate(program.module(key).index.units):
            by_getattr = "getattr" in unit.names and (near or program.text_facts.get(_CALLING, key))
            if not by_getattr and not (near and "globals" in unit.names):
                continue
            for other in functions_in(program.module(key), number):
                for part in _parts(other):
                    if _may_give(analyser, other, part, function.name):
                        return f"`{text(part, 40)}` may call `{function.name}` by its name, and need its graph"
    return ""


def _may_give(analyser: Analyser, function: Function, part: ir.Expr, name: str) -> bool:
    """Whether an expression may be a function of a name: one that is called, or comes from a table of all variables."""
    if isinstance(part, ir.Subscript):
        whole = isinstance(part.value, ir.Call) and dotted(part.value.func) == "globals"
        return whole and _may_be(part.index, name)
    if not isinstance(part, ir.Call):
        return False
    values: tuple[ir.Expr, ...] = (part.func,)
    if isinstance(part.func, ir.Name) and part.func.id in function.locals:
        values = binders(function, part.func.id) or ()
    for value in values:
        if isinstance(value, ir.Call) and dotted(value.func) == "getattr" and len(value.args) > 1:
            kind = analyser.program.find_expression(function.module, value.args[0], function)[0]
            if kind != "ext" and _may_be(value.args[1], name):
                return True
    return False


def _may_be(expr: ir.Expr, name: str) -> bool:
    """Whether a computed string may be a name, by its known ends."""
    match expr:
        case ir.Const():
            return expr.value == name
        case ir.Binary(op="+", left=ir.Const(value=str(start))):
            return name.startswith(start)
        case ir.Binary(op="+", right=ir.Const(value=str(end))):
            return name.endswith(end)
    return True


def set_by_name(analyser: Analyser, name: str, files: Iterable[str]) -> bool:
    """Whether code of these files may assign an attribute of this name by a string."""
    for key in files:
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if "setattr" not in unit.names and "__setattr__" not in unit.names:
                continue
            for function in functions_in(module, number):
                if any(_sets(analyser, function, part, name) for part in _parts(function)):
                    return True
    return False


def _sets(analyser: Analyser, function: Function, part: ir.Expr, name: str) -> bool:
    if not isinstance(part, ir.Call) or dotted(part.func).rsplit(".", 1)[-1] not in ("setattr", "__setattr__"):
        return False
    literal = next((arg for arg in part.args if isinstance(arg, ir.Const) and arg.kind == "str"), None)
    if literal is not None:
        return literal.value == name
    own = function.params[0].name if function.takes_self and function.params else None
    receiver = part.args[0] if part.args else None
    mine = isinstance(receiver, ir.Name) and receiver.id == own and function.cls is not None
    # an object that sets its attributes from a configuration is no module
    return not (mine and function.cls is not None and not analyser.program.is_module(function.cls))


def _reaches(part: ir.Expr, name: str, at_home: bool) -> bool:
    if isinstance(part, ir.Attr) and part.name == "__dict__":
        return at_home
    if not isinstance(part, ir.Call):
        return False
    called = dotted(part.func).rsplit(".", 1)[-1]
    if called in _WHOLE:
        return at_home and bool(part.args)
    if called not in _BY_NAME:
        return False
    literals = [arg.value for arg in part.args if isinstance(arg, ir.Const) and arg.kind == "str"]
    return name in literals if literals else at_home


def _parts(function: Function) -> Iterator[ir.Expr]:
    for _, expr in own_expressions(function):
        for part in walk_expression(expr):
            yield part
            if isinstance(part, ir.Lambda):
                yield from walk_expression(part.body)


def is_used(analyser: Analyser, cls: Class) -> bool:
    """Whether the project mentions a class, or a subclass, outside of its own definition."""
    classes = [cls, *analyser.program.below(cls)]
    names = {one.node.name: one for one in classes}
    for key in analyser.facts.partners.together(cls.module.key):
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            for name in unit.names & names.keys():
                own = any(one.module.key == key and one.unit == number for one in classes)
                if not own or (number == 0 and names[name].unit != 0):
                    return True
    return False
