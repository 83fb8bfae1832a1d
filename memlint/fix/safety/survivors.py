"""Whether the program could notice that statements compute without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.facts.calls_by_name import UnknownCallersError, attribute_stores
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import expressions, is_name, parts, parts_of, walk_expression, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.arguments import passed_for
from memlint.fix.safety.bindings import is_container, is_sum
from memlint.fix.safety.watch import Watch
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

Body = tuple[ir.Stmt, ...]


def noticed(analyser: Analyser, function: Function, body: Body, entered: Iterable[Function]) -> str:
    """Why the program might notice, as a clause; "" if it is proven that it does not. ``body``: statements of
    ``function``; ``entered``: the functions that they call."""
    return _Survivors(analyser, function, body).doubt(entered)


class _Survivors:
    """Tracks the values that the statements leave behind and that may have a graph."""

    def __init__(self, analyser: Analyser, function: Function, body: Body) -> None:
        self.analyser = analyser
        self.function = function
        self.body = body
        self.watch = Watch(analyser, analyser.facts.partners.together(function.module.key))
        self._outside = frozenset(_read_outside(function, body))

    def doubt(self, entered: Iterable[Function]) -> str:
        self._look(self.function, self.body)
        for other in entered:
            if other.key != self.function.key:
                self._look(other, other.body)
        return self.watch.doubt or self.watch.run()

    def _look(self, function: Function, body: Body) -> None:
        for statement in walk_statements(body, into_definitions=False):
            match statement:
                case ir.Assign() | ir.AnnAssign() if statement.value is not None:
                    if not is_plain(self.analyser, function, statement.value):
                        targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
                        for target in targets:
                            self._assigned(function, target)
                case ir.AugAssign():
                    number = is_plain(self.analyser, function, statement.value)
                    if not number or not self._is_counter(statement.target):
                        self._updated(function, statement.target)
                case ir.Try() if statement.handlers:
                    self.watch.doubtful("an `except` may handle an error that is raised with gradients only")
                case ir.For() if isinstance(statement.iter, ir.Comprehension):
                    self._assigned(function, statement.target)
                case ir.With():
                    for item in statement.items:
                        if item.target is not None:
                            self._assigned(function, item.target)
                case ir.Return() if statement.value is not None and function is self.function:
                    if not is_plain(self.analyser, function, statement.value):
                        self.watch.gives(function, statement.value)
                case ir.Raise() if statement.exc is not None and not is_plain(self.analyser, function, statement.exc):
                    if isinstance(statement.exc, ir.Call) and statement.exc.args:
                        self.watch.doubtful(f"`{text(statement.exc, 40)}` is raised, without a graph then")
            for part in parts_of(statement):
                self._part(function, part)

    def _part(self, function: Function, part: ir.Expr) -> None:
        if isinstance(part, ir.Walrus) and not is_plain(self.analyser, function, part.value):
            self._assigned(function, part.target)
        if not isinstance(part, ir.Call) or not isinstance(part.func, ir.Attr):
            return
        name = part.func.name
        given = part.passed
        if name in words.PUTS and not all(is_plain(self.analyser, function, arg) for arg in given):
            self._filled(function, part.func.value)
        where = "" if function is self.function else f" in `{function.qual}`"
        if name in knowledge.methods().inplace and function.name not in ("__init__", "reset_parameters"):
            self.watch.doubtful(f"`{text(part.func, 40)}`{where} changes a tensor in place that may need a gradient")

    def _assigned(self, function: Function, target: ir.Expr) -> None:
        match target:
            case ir.Name():
                mine = function is self.function and target.id in self._outside
                if mine or target.id not in function.locals:
                    self.watch.name(function, target.id)
            case ir.Attr():
                self.watch.attribute(target.name)
            case ir.Subscript():
                self._filled(function, target.value)
            case ir.Display():
                for element in target.elements:
                    self._assigned(function, element)
            case ir.Starred():
                self._assigned(function, target.value)

    def _is_counter(self, target: ir.Expr) -> bool:
        """Whether the target of an addition is no tensor that requires gradients, by its name."""
        if not isinstance(target, ir.Attr):
            return True
        stores = [
            (other, statement)
            for other in attribute_stores(self.analyser, target.name, self.watch.files)
            for statement in walk_statements(other.body, into_definitions=False)
            if isinstance(statement, ir.Assign | ir.AugAssign) and _stores(statement, target.name)
        ]
        made = any(isinstance(statement, ir.Assign) for _, statement in stores)
        return made and all(is_plain(self.analyser, other, statement.value) for other, statement in stores)

    def _updated(self, function: Function, target: ir.Expr) -> None:
        if not isinstance(target, ir.Name) or not is_sum(function, target):  # an attribute, or a shared tensor
            self.watch.doubtful(f"`{text(target, 40)}` is changed in place, and its gradient may be needed")
        else:
            self._assigned(function, target)

    def _filled(self, function: Function, container: ir.Expr) -> None:
        """Track a container to which a value with a graph is added."""
        if isinstance(container, ir.Name) and container.id in function.locals:
            if not is_container(function, container):
                self.watch.doubtful(f"`{container.id}` is not resolved: who reads it may need the graph")
            self._assigned(function, container)
        else:
            self.watch.into(function, container)


def _stores(statement: ir.Assign | ir.AugAssign, name: str) -> bool:
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    return any(isinstance(target, ir.Attr) and target.name == name for target in targets)


def _read_outside(function: Function, body: Body) -> Iterator[str]:
    """The names that the function mentions outside of the statements, or that nested definitions read."""
    guarded = {id(statement) for statement in walk_statements(body)}
    for statement in walk_statements(function.body):
        for part in parts_of(statement):
            if isinstance(part, ir.Name) and id(statement) not in guarded:
                yield part.id
            elif isinstance(part, ir.Lambda):
                yield from _names(part.body)
        if isinstance(statement, ir.FunctionDef):
            for inner in walk_statements(statement.body):
                for expr in expressions(inner):
                    yield from _names(expr)
        elif isinstance(statement, ir.Scope):
            yield from statement.names


def _names(expr: ir.Expr) -> Iterator[str]:
    for part in walk_expression(expr):
        if isinstance(part, ir.Name):
            yield part.id
        elif isinstance(part, ir.Lambda):
            yield from _names(part.body)


def is_plain(analyser: Analyser, function: Function, expr: ir.Expr, depth: int = 0) -> bool:
    """Whether an expression has no graph even when autograd records, by its text."""
    if depth > 8:
        return False

    def plain(*parts: ir.Expr) -> bool:
        return all(is_plain(analyser, function, part, depth + 1) for part in parts)

    match expr:
        case ir.Const() | ir.Compare() | ir.FormattedString():
            return True
        case ir.Name():
            return _is_plain_name(analyser, function, expr.id, depth)
        case ir.Attr():
            return expr.name in words.PLAIN_ATTRIBUTES
        case ir.Call():
            return _is_plain_call(analyser, function, expr, plain)
        case ir.Unary():
            return expr.op == "not" or plain(expr.operand)
        case ir.Binary() | ir.BoolOp():
            return plain(expr.left, expr.right)
        case ir.IfExp():
            return plain(expr.body, expr.orelse)
        case ir.Display():
            return plain(*expr.elements)
        case ir.DictDisplay():
            return plain(*expr.values)
        case ir.Subscript() | ir.Starred() | ir.Walrus():
            return plain(expr.value)
        case ir.Slice():
            return True
    return False


def _is_plain_name(analyser: Analyser, function: Function, name: str, depth: int) -> bool:
    if name not in function.locals:
        return False
    if any(
        isinstance(part, ir.Call)
        and isinstance(part.func, ir.Attr)
        and part.func.name in words.PUTS
        and isinstance(part.func.value, ir.Name)
        and part.func.value.id == name
        and not all(is_plain(analyser, function, arg, depth + 1) for arg in part.args)
        for part in parts(function.body, into_definitions=True)
    ):
        return False
    values = binders(function, name)
    if any(param.name == name for param in function.params):
        return values is not None and not values and _is_plain_parameter(analyser, function, name, depth)
    if not values:
        return False
    own = {part.at for value in values for part in walk_expression(value) if is_name(part, name)}
    return all(value.at in own or is_plain(analyser, function, value, depth + 1) for value in values)


def _is_plain_parameter(analyser: Analyser, function: Function, name: str, depth: int) -> bool:
    """Whether all calls pass a value without a graph for a parameter. Two levels of callers are followed."""
    try:
        passed = passed_for(analyser, function, name)
    except UnknownCallersError:
        return False
    return bool(passed) and all(is_plain(analyser, caller, given, depth + 4) for caller, given in passed)


def _is_plain_call(analyser: Analyser, function: Function, call: ir.Call, plain: Callable[..., bool]) -> bool:
    func = call.func
    if isinstance(func, ir.Name) and func.id not in function.locals:
        if func.id in words.BUILTINS_THAT_END:
            return analyser.program.find(function.module, func.id)[0] == "none"
        if func.id in ("sum", "min", "max", "abs", "list", "tuple", "set", "sorted", "dict"):
            return plain(*call.passed)
    if isinstance(func, ir.Attr):
        project = analyser.facts.methods.are_there(func.name)
        if func.name in knowledge.methods().cut and not project:
            return True
        if (knowledge.methods().knows(func.name) or func.name in words.CONTAINER_READS) and not project:
            return plain(func.value, *call.args)
    return False
