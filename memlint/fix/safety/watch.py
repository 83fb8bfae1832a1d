"""Whether the program could notice that a value has lost its autograd graph.

`Watch` tracks a place (a variable, an attribute) and everything that is computed from it through the statements of the
project, without regard to their order. Unknown code is a doubt: a value that is passed to it, is yielded, or gets a
backward may be needed with its graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import (
    TooManyError,
    UnknownCallersError,
    functions_in,
    functions_naming,
    inside,
    known_calls,
    reads,
)
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import identifiers
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, expressions, parts, walk_statements
from memlint.fix.safety.bindings import is_container, is_sum
from memlint.fix.safety.reflection import called_by_name
from memlint.fix.safety.shares import share_of
from memlint.fix.safety.vocabulary import CLEAN, COMPUTED, ITSELF
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: the most functions, and levels of calls, that are followed
MAX_FUNCTIONS, MAX_DEPTH = 24, 4


class Watch:
    """Tracks names and attributes. ``doubt``: why the graph may be needed, "" as long as nothing says so.

    ``files``: those whose code may get hold of the values. ``ignored``: the statement that is fixed, whose own update
    of the place is no use. ``stored``: the sources of its value; ``number``: that is a single number, summed.
    """

    def __init__(
        self,
        analyser: Analyser,
        files: tuple[str, ...],
        ignored: frozenset[tuple[str, int, int]] = frozenset(),
        depth: int = 0,
        *,
        stored: frozenset[str] = frozenset(),
        number: bool = False,
    ) -> None:
        self.analyser = analyser
        self.files = files
        self.ignored = ignored
        self.depth = depth
        self.stored = stored
        self.number = number
        self.doubt = ""
        #: whether an entered function returns the value
        self.returned = False
        self.names: dict[tuple[str, str], dict[str, int]] = {}
        self.results: dict[tuple[str, str], set[int]] = {}
        self.attributes: set[str] = set()
        self._entered: set[tuple[str, str]] = set()
        self._functions: dict[tuple[str, str], Function] = {}
        self._left: set[tuple[str, str]] = set()
        self._todo: list[Function] = []
        self._current: Function | None = None

    # ------------------------------------------------------------------------------------ what is watched

    def name(self, function: Function, name: str, level: int = ITSELF) -> None:
        """Track a variable of a function."""
        if function.node is not None and name not in function.locals:
            self._bind(function.owner(name) or function.module.main, name, level)
            return
        self._bind(function, name, level)

    def attribute(self, name: str) -> None:
        """Track the attributes of this name, on any object."""
        if name in self.attributes:
            return
        self.attributes.add(name)
        try:
            for function in functions_naming(self.analyser, name, self.files):
                if name in identifiers(function.body)[1]:
                    self._queue(function)
        except TooManyError:
            self.doubtful(f"`.{name}` is used in too many functions to check that none needs its graph")

    def gives(self, function: Function, value: ir.Expr) -> None:
        """Track the result of a function in its callers."""
        self._return(function, text(value, 40))

    def enter(self, function: Function, names: set[str]) -> None:
        """Track parameters to which a call passes the value; the result returns to that call."""
        self._entered.add(function.key)
        for name in names:
            self._bind(function, name, ITSELF)

    def _bind(self, function: Function, name: str, level: int) -> None:
        known = self.names.setdefault(function.key, {})
        if known.get(name, CLEAN) >= level:
            return
        known[name] = level
        self._queue(function)
        if function.node is None:
            self._global(function, name)
        else:
            for other in list(function.module.by_place.get(function.unit, {}).values()):
                if inside(function, other) and name not in other.locals and reads(other, name):
                    self.names.setdefault(other.key, {})[name] = level
                    self._queue(other)

    def _global(self, main: Function, name: str) -> None:
        """Track a variable of a module in the module's functions, and in other modules that import it."""
        module = main.module
        for number, unit in enumerate(module.index.units):
            if name in unit.names:
                for other in functions_in(module, number):
                    if other.node is not None and name not in other.locals and reads(other, name):
                        self.names.setdefault(other.key, {})[name] = ITSELF
                        self._queue(other)
        self.attribute(name)  # if the module is imported as a whole
        for key in self.files:
            other_index = self.analyser.program.module(key).index
            if key != module.key and any(name in (row.name, "*") for row in other_index.imports):
                self.doubtful(f"`{name}` is a global variable, and a file that imports it may need its graph")

    def _queue(self, function: Function) -> None:
        if function.key not in self._functions and len(self._functions) >= MAX_FUNCTIONS:
            self.doubtful("it is used in too many functions to check that none needs its graph")
            return
        self._functions[function.key] = function
        if function not in self._todo:
            self._todo.append(function)

    def doubtful(self, why: str) -> None:
        self.doubt = self.doubt or why

    def share(self, function: Function, expr: ir.Expr) -> int:
        """The share of the tracked values in an expression: CLEAN, COMPUTED or ITSELF."""
        return share_of(self, function, expr)

    def deeper(self) -> Watch:
        """A tracker for a callee."""
        return Watch(self.analyser, self.files, self.ignored, self.depth + 1, stored=self.stored)

    @property
    def is_deep(self) -> bool:
        """Whether the limit on levels of calls is reached."""
        return self.depth >= MAX_DEPTH

    # ------------------------------------------------------------------------------------ following

    def run(self) -> str:
        """Track everything to the end; returns the doubt."""
        rounds = 0
        while self._todo and not self.doubt:
            rounds += 1
            if rounds > 8 * MAX_FUNCTIONS:
                self.doubtful("it is used in too many functions to check that none needs its graph")
            function = self._current = self._todo.pop()
            for statement in walk_statements(function.body, into_definitions=False):
                self._statement(function, statement)
        return self.doubt

    def _statement(self, function: Function, statement: ir.Stmt) -> None:
        match statement:
            case ir.Assign() | ir.AnnAssign():
                targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
                level = self.share(function, statement.value) if statement.value is not None else CLEAN
                for target in targets:
                    self.assign(function, target, level, statement)
            case ir.AugAssign():
                self._augmented(function, statement)
            case ir.For():
                self.spread(function, statement.target, statement.iter)
            case ir.With():
                for item in statement.items:
                    level = self.share(function, item.context)
                    if item.target is not None:
                        self.assign(function, item.target, level, None)
            case ir.Return():
                if statement.value is not None and self.share(function, statement.value):
                    self._return(function, text(statement.value, 40))
            case ir.Match():
                if self.share(function, statement.subject):
                    self.doubtful(f"`{text(statement.subject, 40)}` is matched against patterns, which are not checked")
            case ir.Delete():
                pass
            case _:
                for expr in expressions(statement):
                    self.share(function, expr)

    def spread(self, function: Function, target: ir.Expr, iterated: ir.Expr) -> None:
        """Track the members of an iterable in the loop's target; of pairs with a key or a number, only in the second
        part."""
        level = ITSELF if self.share(function, iterated) else CLEAN
        name = dotted(iterated.func).rsplit(".", 1)[-1] if isinstance(iterated, ir.Call) else ""
        if name == "" and isinstance(iterated, ir.Call) and isinstance(iterated.func, ir.Attr):
            name = iterated.func.name
        if name in ("items", "enumerate") and isinstance(target, ir.Display) and len(target.elements) == 2:
            target = target.elements[1]
        self.assign(function, target, level, None)

    def assign(self, function: Function, target: ir.Expr, level: int, statement: ir.Stmt | None) -> None:
        match target:
            case ir.Name():
                if level:
                    self.name(function, target.id, level)
            case ir.Display():
                for element in target.elements:
                    self.assign(function, element, level, statement)
            case ir.Starred():
                self.assign(function, target.value, level, statement)
            case ir.Attr():
                self.share(function, target.value)
                if level:
                    self.attribute(target.name)
            case ir.Subscript():
                held = self.share(function, target.value)
                self.share(function, target.index)
                if held and not self._is_fixed(function, statement) and not is_container(function, target.value):
                    self.doubtful(f"`{text(target, 40)}` is changed in place, and `.detach()` shares its memory")
                elif level:
                    self.into(function, target.value)

    def into(self, function: Function, container: ir.Expr) -> None:
        """Track a container to which the value is added."""
        match container:
            case ir.Name():
                self.name(function, container.id)
            case ir.Attr():
                self.attribute(container.name)
            case ir.Subscript():
                self.into(function, container.value)
            case _:
                self.doubtful(f"it is put into `{text(container, 40)}`, which is not resolved")

    def _augmented(self, function: Function, statement: ir.AugAssign) -> None:
        level, held = self.share(function, statement.value), self.share(function, statement.target)
        if held == ITSELF and not self._is_fixed(function, statement) and not is_sum(function, statement.target):
            self.doubtful(f"`{text(statement.target, 40)}` is changed in place, and `.detach()` shares its memory")
        elif level or held:
            target = statement.target
            if isinstance(target, ir.Name):
                self.name(function, target.id, max(level, COMPUTED) if is_sum(function, target) else ITSELF)
            elif isinstance(target, ir.Attr):
                self.attribute(target.name)
            elif isinstance(target, ir.Subscript):
                self.into(function, target.value)

    def _is_fixed(self, function: Function, statement: ir.Stmt | None) -> bool:
        return statement is not None and (function.module.key, function.unit, statement.at) in self.ignored

    # ------------------------------------------------------------------------------------ returns

    def _return(self, function: Function, shown: str) -> None:
        """Track the value in the callers of the function."""
        said = f"`{shown}` is returned" if shown != "…" else "a value computed from it is returned"
        if function.key in self._entered:
            self.returned = True
            return
        if function.key in self._left:
            return
        self._left.add(function.key)
        try:
            found = known_calls(self.analyser, function)
        except UnknownCallersError as error:
            self.doubtful(f"{said} by `{function.name}`, which {error}")
            return
        self.doubtful(called_by_name(self.analyser, function, self.files))
        if not found:
            self.doubtful(f"{said}, and no call of `{function.name}` is found: its callers may need the graph")
        elif all(_tries(caller, call) for caller, call in found):
            self.doubtful(f"{said}, and only `__main__` calls `{function.name}`: another file may need the graph")
        for caller, call in found:
            self.results.setdefault(caller.key, set()).add(call.at)
            self._queue(caller)


def _tries(caller: Function, call: ir.Call) -> bool:
    """Whether a call is under ``if __name__ == "__main__":``, where an importable file tests itself."""
    return caller.node is None and any(part.at == call.at for part in parts(caller.module.guarded))
