"""Whether everything that statements call is known, down to the layers, so that a guard changes no result.

Under ``torch.no_grad()`` some modules use other code (the fast path of attention, which differs in padded positions),
and code may test whether gradients are on. Unknown code may do either.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.facts.calls_by_name import functions_in, own_expressions
from memlint.analysis.index.function import PROPERTIES
from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, parts_of, walk_expression, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.origins import Origin, Origins, UnknownOriginError, is_layer, resolve
from memlint.fix.safety.replaced_parts import replacements
from memlint.frontend.index_records import UnitIndex
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_DECORATORS

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: what unknown code may do under a guard
MAY_DIFFER = ", and may behave differently without gradients"
#: the most functions and classes that are examined
MAX_ENTERED = 40

Body = tuple[ir.Stmt, ...]


class Followed:
    """The code that statements of a function run. ``doubt``: the first unknown in it, as a clause, "" for none;
    ``entered``: the functions of the project that they call."""

    def __init__(self, analyser: Analyser, function: Function, body: Body) -> None:
        self.analyser = analyser
        self.entered: dict[tuple[str, str], Function] = {}
        self._files = analyser.facts.partners.together(function.module.key)
        self._origins = Origins(analyser, self._files)
        #: the doubt about replaced parts of a library's networks; None before it is asked for
        self._parts: str | None = None
        #: the doubt about what iterations run; None before it is asked for
        self._items: str | None = None
        self.doubt = self._statements(function, body) or self._changed_from_outside()

    def _statements(self, function: Function, body: Body) -> str:
        for statement in walk_statements(body):
            if isinstance(statement, ir.For) and (why := self._iterated()):
                return why
            for part in parts_of(statement):
                why = ""
                if isinstance(part, ir.Call):
                    why = self._call(function, part)
                elif isinstance(part, ir.Attr):
                    why = self._read(function, part)
                if why:
                    return why
        return ""

    def _function(self, function: Function) -> str:
        if function.key in self.entered:
            return ""
        if len(self.entered) >= MAX_ENTERED:
            return "it calls too many functions to check them all"
        plain = PLAIN_DECORATORS | PROPERTIES
        if set(function.decorator_names) - plain:
            return f"a decorator of `{function.name}` is not resolved{MAY_DIFFER}"
        if function.cls is not None and self._is_stored(function.name):
            return f"another function may be assigned to `{function.name}`"
        self.entered[function.key] = function
        return self._statements(function, function.body)

    def _read(self, function: Function, part: ir.Attr) -> str:
        if part.name in words.GRAPH_ATTRIBUTES:
            return f"`{function.name}` reads `{text(part, 40)}`, which differs without gradients"
        for method in self.analyser.facts.methods.few(part.name):
            if method.is_property:
                return self._function(method)
        return ""

    # ------------------------------------------------------------------------------------ calls

    def _call(self, function: Function, call: ir.Call) -> str:
        func = call.func
        kind, what = resolve(self.analyser, function, func)
        if kind == "function" and isinstance(what, Function):
            return self._function(what)
        if kind == "class" and isinstance(what, Class):
            return self._made(what)
        if kind == "ext" and isinstance(what, str):
            return self._outside(what, func) or self._runs(function, call)
        if isinstance(func, ir.Name) and func.id not in function.locals and hasattr(builtins, func.id):
            passed = any(word.name == "key" for word in call.keywords)
            known = func.id not in words.BUILTINS_THAT_RUN and not passed
            return "" if known else f"`{text(call, 40)}` is not resolved{MAY_DIFFER}"
        if isinstance(func, ir.Attr):
            return self._method(function, func) or self._runs(function, call)
        return self._object(function, func)

    def _method(self, function: Function, func: ir.Attr) -> str:
        """``x.name(…)``"""
        program, name = self.analyser.program, func.name
        own = function.params[0].name if function.takes_self and function.params else None
        if isinstance(func.value, ir.Call) and dotted(func.value.func) == "super" and function.cls is not None:
            method = program.method(function.cls, name, after=function.cls)
            if method is not None:
                return self._function(method)
            return "" if name == "__init__" else f"`{text(func, 40)}` is not resolved{MAY_DIFFER}"
        if function.cls is not None and own is not None and dotted(func.value) == own:
            method = program.method(function.cls, name)
            if method is None:
                return self._object(function, func)
            if any(name in cls.methods for cls in program.below(function.cls)):
                return f"a subclass overrides `{text(func, 40)}`{MAY_DIFFER}"
            return self._function(method) or self._called_result(method)
        if isinstance(func.value, ir.Const | ir.FormattedString):
            return ""
        if self._is_plain(name):
            return ""
        try:
            receivers = self._origins.of(function, func.value)
        except UnknownOriginError as unknown:
            return f"{unknown}{MAY_DIFFER}"
        if not receivers:
            return f"`{text(func, 40)}` is not resolved{MAY_DIFFER}"
        for origin in receivers:
            why = self._method_of(function, origin, func)
            if why:
                return why
        return ""

    def _method_of(self, function: Function, origin: Origin, func: ir.Attr) -> str:
        if isinstance(origin, str):
            if words.is_same_outside(origin) and func.name not in words.RUNS_GIVEN:
                return ""
            if func.name in ("forward", "__call__"):
                return self._layer(origin)
            known = func.name in ("eval", "train", "parameters", "named_parameters", "state_dict", "to", "zero_grad")
            return "" if known else f"`{text(func, 40)}` is not resolved{MAY_DIFFER}"
        method = self.analyser.program.method(origin, func.name)
        if method is not None:
            return self._bases(origin) or self._function(method) or self._called_result(method)
        if self.analyser.program.is_module(origin) and func.name in ("eval", "train", "to", "parameters"):
            return self._bases(origin)
        return self._object(function, func)

    def _called_result(self, method: Function) -> str:
        """The doubt about the object that a property gives, which is called."""
        if not method.is_property:
            return ""
        returns = (one for one in walk_statements(method.body, into_definitions=False) if isinstance(one, ir.Return))
        given = [one.value for one in returns if one.value is not None]
        if not given:
            return f"what `{method.name}` gives is not resolved{MAY_DIFFER}"
        return next(filter(None, (self._object(method, value) for value in given)), "")

    def _is_plain(self, name: str) -> bool:
        """Whether only tensors, containers, strings and the bookkeeping of modules have this method."""
        if self.analyser.facts.methods.are_there(name) or name in words.WANT_GRAPH:
            return False
        containers = words.PUTS | words.CONTAINER_ENDS | words.CONTAINER_READS
        return (
            knowledge.methods().knows(name)
            or name in containers
            or name in words.METHODS_OF_OTHERS
            or name in ("eval", "train", "to")
        )

    # ------------------------------------------------------------------------------------ objects

    def _object(self, function: Function, func: ir.Expr) -> str:
        """The doubt about a called object: a module."""
        try:
            found = self._origins.of(function, func)
        except UnknownOriginError as unknown:
            return f"{unknown}{MAY_DIFFER}"
        if not found:
            return f"`{text(func, 40)}` is not resolved{MAY_DIFFER}"
        for origin in sorted(found, key=lambda origin: origin if isinstance(origin, str) else origin.qual):
            why = self._layer(origin) if isinstance(origin, str) else self._run(origin)
            if why:
                return why
        return ""

    def _made(self, cls: Class) -> str:
        init = self.analyser.program.method(cls, "__init__")
        return self._bases(cls) or ("" if init is None else self._function(init))

    def _run(self, cls: Class) -> str:
        """The doubt about a call of an instance."""
        methods = [self.analyser.program.method(cls, name) for name in ("__call__", "forward")]
        if not any(methods):
            return f"the `forward` of `{cls.node.name}` is not resolved{MAY_DIFFER}"
        return self._bases(cls) or next(
            filter(None, (self._function(method) for method in methods if method is not None)), ""
        )

    def _bases(self, cls: Class) -> str:
        order, outside = self.analyser.program.ancestors(cls)
        if outside - knowledge.PLAIN_BASES:
            return f"a base class of `{cls.node.name}` is not resolved{MAY_DIFFER}"
        if any(name in inner.methods for inner in order for name in ("__getattr__", "__getattribute__")):
            return f"`{cls.node.name}` has a `__getattr__`, so its methods are not resolved"
        return ""

    def _layer(self, name: str) -> str:
        last = name.rsplit(".", 1)[-1]
        if name.startswith("torch.nn.") and last in knowledge.same_without_grad():
            return ""
        if words.is_same_outside(name):
            return ""
        if knowledge.is_same_network(name):
            return self._replaced()
        if name.startswith("torch.nn.") and last == "LSTM":
            # oneDNN's version differs by up to 4e-7; on a GPU none of torch's recurrent layers does
            return "`nn.LSTM` may round differently without gradients"
        if name.startswith("torch.nn.") and last.startswith(("Transformer", "MultiheadAttention")):
            return f"`nn.{last}` takes a faster path without gradients, whose results differ"
        return f"`{last}` is not resolved{MAY_DIFFER}"

    def _outside(self, name: str, func: ir.Expr) -> str:
        last = name.rsplit(".", 1)[-1]
        if is_layer(name) or knowledge.is_same_network(name):
            return self._layer(name)
        if not words.is_same_outside(name) and name.startswith(
            ("torch.is_grad_enabled", *words.SETS_GRAD_MODE, *words.WANTS_OUTSIDE)
        ):
            return f"`{text(func, 40)}` is called, which depends on grad mode"
        if last in words.FASTER_WITHOUT_GRADIENTS:
            return f"`{text(func, 40)}` may take another path without gradients, whose results differ"
        if self._is_stored(last) and any(self._replaces(key, last) for key in self._files):
            return f"another function may be assigned to `{text(func, 40)}`"
        runs = last in words.RUNS_GIVEN and not name.startswith("torch.")
        known = (words.is_same_outside(name) or name.startswith(words.PASSES_OUTSIDE)) and not runs
        return "" if known else f"`{text(func, 40)}` is not resolved{MAY_DIFFER}"

    def _replaces(self, key: str, name: str) -> bool:
        """Whether a file assigns to an attribute of a library: ``functional.relu = own``."""
        module = self.analyser.program.module(key)
        numbers = [number for number, unit in enumerate(module.index.units) if name in unit.stores]
        return any(
            isinstance(target, ir.Attr)
            and target.name == name
            and resolve(self.analyser, function, target.value)[0] == "ext"
            for number in numbers
            for function in functions_in(module, number)
            for statement in walk_statements(function.body, into_definitions=False)
            if isinstance(statement, ir.Assign)
            for target in statement.targets
        )

    def _runs(self, function: Function, call: ir.Call) -> str:
        """The doubt about code of the project that a library's function is given, and may run."""
        for given in call.passed:
            named = isinstance(given, ir.Name | ir.Attr)
            kind = resolve(self.analyser, function, given)[0] if named else ""
            bound = isinstance(given, ir.Attr) and self.analyser.facts.methods.are_there(given.name)
            if isinstance(given, ir.Lambda) or kind in ("function", "class") or bound:
                return f"`{text(call.func, 40)}` may run `{text(given, 40)}`{MAY_DIFFER}"
        return ""

    def _iterated(self) -> str:
        """The doubt about what an iteration runs: any dataset of the project, and what puts its items together."""
        if self._items is None:
            self._items = next(self._items_with_gradients(), "")
        return self._items

    def _items_with_gradients(self) -> Iterator[str]:
        program = self.analyser.program
        for key in self._files:
            module = program.module(key)
            for number, unit in enumerate(module.index.units):
                if not unit.names.isdisjoint(words.GIVES_ITEMS) and unit.names & words.NEEDS_GRADIENTS:
                    for function in functions_in(module, number):
                        if function.name in words.GIVES_ITEMS:
                            yield f"`{function.qual}` needs gradients, and an iteration may run it"
                for function in functions_in(module, number) if "collate_fn" in unit.names else ():
                    for given in _collating(function):
                        what = resolve(self.analyser, function, given)[1]
                        names = what.module.index.units[what.unit].names if isinstance(what, Function | Class) else ()
                        if not words.NEEDS_GRADIENTS.isdisjoint(names):
                            yield f"`{text(given, 40)}` needs gradients, and an iteration may run it"

    # ------------------------------------------------------------------------------------ from outside

    def _changed_from_outside(self) -> str:
        """The doubt that a module runs other code than its class: hooks, and layers that are replaced later."""
        program = self.analyser.program
        for key in self._files:
            for unit in program.module(key).index.units:
                found = unit.names & words.CHANGES_MODULES or unit.stores & {"__class__"}
                if found:
                    return f"`{min(found)}` in {key} may change what a module runs"
        compiles = next((place for key in self._files if (place := _compiles(program, key))), "")
        return f"{compiles} compiles code, which may round differently without gradients" if compiles else ""

    def _replaced(self) -> str:
        """The doubt about what the project puts in place of parts of a library's networks: ``net.fc = Head()``."""
        if self._parts is None:
            self._parts = ""  # what replaces a part may be such a network again
            if any(not unit.calls.isdisjoint(("setattr", "__setattr__")) for unit in self._units()):
                self._parts = f"`setattr` may replace a part of it{MAY_DIFFER}"
            files = frozenset(self._files)
            for function, value in replacements(self.analyser.program):
                if function.module.key in files:
                    self._parts = self._parts or self._value(function, value)
        return self._parts

    def _value(self, function: Function, value: ir.Expr) -> str:
        """The doubt about a call of the object that an expression gives."""
        try:
            found = self._origins.of(function, value)
        except UnknownOriginError as unknown:
            return f"{unknown}{MAY_DIFFER}"
        whys = (self._layer(origin) if isinstance(origin, str) else self._run(origin) for origin in found)
        return min(filter(None, whys), default="")

    def _is_stored(self, name: str) -> bool:
        return any(name in unit.stores for unit in self._units())

    def _units(self) -> Iterator[UnitIndex]:
        program = self.analyser.program
        for key in self._files:
            yield from program.module(key).index.units


def _collating(function: Function) -> list[ir.Expr]:
    """What a function passes to put the items of a batch together."""
    parts = [part for _, expr in own_expressions(function) for part in walk_expression(expr)]
    given = [word for part in parts if isinstance(part, ir.Call) for word in part.keywords]
    return [word.value for word in given if word.name == "collate_fn"]


def _of_texts(func: ir.Attr) -> bool:
    """``re.compile``"""
    return dotted(func.value) in ("re", "regex")


@kept_for
def _compiles(program: Program, key: str) -> str:
    """The first place where a file compiles code with torch, "" for none."""
    return next(_compilers(program, key), "")


def _compilers(program: Program, key: str) -> Iterator[str]:
    """The places where a file has torch compile code: compiled code differs with and without gradients (measured on an
    H200, torch 2.11: a small network's outputs differ by up to 3.8e-6)."""
    module = program.module(key)
    for row in module.index.imports:
        if row.name in words.COMPILES and row.module.startswith("torch"):
            yield f"`{row.name}` in {key}"
    for number, unit in enumerate(module.index.units):
        for function in functions_in(module, number) if unit.names & words.COMPILES else ():
            own = [expr for _, expr in own_expressions(function)]
            for part in (part for expr in (*own, *function.decorators) for part in walk_expression(expr)):
                if isinstance(part, ir.Attr) and part.name in words.COMPILES and not _of_texts(part):
                    yield f"`{text(part, 40)}` in {key}"
