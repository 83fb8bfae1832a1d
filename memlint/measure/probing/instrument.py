"""Puts probes into a program's syntax tree: at the tops of loops, and around the values that sites keep.

Probes are calls of builtins, so that no module gets new names. Every node keeps its line and column, so that
tracebacks, ``inspect.getsource`` and debuggers see the file as it is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..plan import LoopPlan, SitePlan

#: the names of the builtins; with underscores on both sides, they are not mangled in classes
ENTER, LOOP, EXIT = "__memlint_enter__", "__memlint_loop__", "__memlint_exit__"
NEXT, VALUE = "__memlint_next__", "__memlint_value__"
BEGUN, WHOLE = "__memlint_begun__", "__memlint_whole__"

Position = tuple[int, int]
Function = ast.FunctionDef | ast.AsyncFunctionDef
#: methods of containers and queues that keep their arguments and always return None; not `add`, `put` and `update`,
#: which are methods of tensors and modules, too
_STORES = frozenset({"append", "appendleft", "extend", "extendleft", "insert", "put_nowait"})
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_FRAMES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


def parse(
    text: str, path: str, sites: Iterable[SitePlan] = (), loops: Iterable[LoopPlan] = ()
) -> tuple[ast.Module, list[int]]:
    """The tree of a source with its probes, and the ids of the sites and loops that were not found.

    Raises SyntaxError if the running Python cannot parse the source.
    """
    tree = ast.parse(text, path)
    lines = re.split(r"\r\n|\r|\n", text)
    probes = _Probes({_offset(lines, loop.line, loop.column): loop.id for loop in loops})
    for site in sites:
        span = _offset(lines, site.line, site.column), _offset(lines, site.end_line, site.end_column)
        around = _innermost(tree, span)
        if (function := _decorated(around)) is not None:
            probes.follow_calls(site.id, function)
            continue
        kept = _kept(around, span)
        probes.wrap(site.id, kept, _comprehension(around, kept))
    probes.visit(tree)
    ast.fix_missing_locations(tree)
    return tree, probes.missing()


def _offset(lines: Sequence[str], line: int, column: int) -> Position:
    """A position as in `ast`: columns in UTF-8 bytes, from 0."""
    text = lines[line - 1] if line <= len(lines) else ""
    return line, len(text[: column - 1].encode("utf-8", "surrogatepass"))


def _start(node: ast.stmt | ast.expr) -> Position:
    return node.lineno, node.col_offset


def _end(node: ast.stmt | ast.expr) -> Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset


class _Probes(ast.NodeTransformer):
    """Adds the probes of loops, by their starts, and of the expressions that sites keep."""

    def __init__(self, loops: dict[Position, int]) -> None:
        self._loops = loops
        self._left = dict(loops)
        self._wraps: dict[int, list[tuple[str, int]]] = {}
        self._called: dict[int, list[int]] = {}
        self._empty: list[int] = []
        self._around: tuple[int, ...] = ()

    def wrap(self, number: int, expressions: Sequence[ast.expr], around: ast.expr | None) -> None:
        """The expressions of one site, in the order of evaluation: the first begins a hit, the others add to it.
        ``around``: the comprehension whose elements they are."""
        if not expressions:
            self._empty.append(number)
        elif around is not None:
            self._wraps.setdefault(id(around), []).append((WHOLE, number))
        for name, expression in zip([NEXT] + [VALUE] * len(expressions), expressions, strict=False):
            self._wraps.setdefault(id(expression), []).append((name, number))

    def follow_calls(self, number: int, function: Function) -> None:
        """Each call of a function is a hit, with its arguments and its returned value."""
        self._called.setdefault(id(function), []).append(number)
        waiting: list[ast.AST] = list(function.body)
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.Return) and node.value is not None:
                self._wraps.setdefault(id(node.value), []).append((VALUE, number))
            if not isinstance(node, _FRAMES):
                waiting += ast.iter_child_nodes(node)

    def missing(self) -> list[int]:
        """The ids of the sites and loops that were not found."""
        return [*self._empty, *self._left.values()]

    def visit(self, node: ast.AST) -> Any:
        wraps = self._wraps.get(id(node), ())
        around = self._around
        if isinstance(node, _FRAMES):
            self._around = ()
        changed: Any = self._loop(node) if isinstance(node, _LOOPS) else self.generic_visit(node)
        self._around = around
        for number in self._called.get(id(node), ()):
            _insert_call(changed, number)
        for name, number in wraps:
            changed = _wrapped(changed, name, number)
        return changed

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> Any:
        number = self._loops.get(_start(node))
        if number is None:
            self.generic_visit(node)
            return node
        around = self._around
        self._around = (*around, number)
        self.generic_visit(node)
        self._left.pop(_start(node), None)
        node.body.insert(0, _statement(LOOP, node.body[0], number))
        return [_statement(ENTER, node, number, around), node, _statement(EXIT, node, number)]


def _statement(name: str, at: ast.stmt, *arguments: Any) -> ast.stmt:
    call = ast.Call(ast.Name(name, ast.Load()), [ast.Constant(argument) for argument in arguments], [])
    statement = ast.Expr(call)
    for node in (statement, call, call.func, *call.args):
        _place(node, at)
    return statement


def _insert_call(function: Function, number: int) -> None:
    """Begin a hit with the arguments of a call, after the docstring."""
    first = function.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and len(function.body) > 1
    at = function.body[int(documented)]
    given = function.args
    several = [*given.posonlyargs, *given.args, *filter(None, [given.vararg]), *given.kwonlyargs]
    names = [each.arg for each in (*several, *filter(None, [given.kwarg]))]
    values = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
    call = ast.Call(ast.Name(NEXT, ast.Load()), [ast.Constant(number), values], [])
    statement = ast.Expr(call)
    for node in (statement, call, call.func, *call.args, *values.elts):
        _place(node, at)
    function.body.insert(int(documented), statement)


def _wrapped(expression: ast.expr, name: str, number: int) -> ast.expr:
    arguments: list[ast.expr] = [ast.Constant(number), expression]
    if name == WHOLE:  # arguments are evaluated from left to right
        begun = ast.Call(ast.Name(BEGUN, ast.Load()), [ast.Constant(number)], [])
        _place(begun.func, expression)
        _place(begun.args[0], expression)
        arguments.insert(1, begun)
    call = ast.Call(ast.Name(name, ast.Load()), arguments, [])
    ast.copy_location(call, expression)
    for each in (call.func, *arguments[:-1]):
        _place(each, expression)
    return call


def _place(node: ast.AST, at: ast.stmt | ast.expr) -> None:
    # a probe has no width, so that a traceback through it underlines nothing
    for prefix in ("", "end_"):
        setattr(node, prefix + "lineno", at.lineno)
        setattr(node, prefix + "col_offset", at.col_offset)


def _innermost(tree: ast.Module, span: tuple[Position, Position]) -> list[ast.AST]:
    """The nodes around a span, outermost first; [] in a pattern."""
    path: list[ast.AST] = []
    node: ast.AST | None = tree
    while node is not None:
        node = next((child for child in ast.iter_child_nodes(node) if _holds(child, span)), None)
        if isinstance(node, ast.pattern):  # cannot contain calls
            return []
        if node is not None:
            path.append(node)
    return path


def _holds(node: ast.AST, span: tuple[Position, Position]) -> bool:
    if isinstance(node, (ast.stmt, ast.expr)):
        # the position of a definition is after its decorators
        first = min(map(_start, [node, *getattr(node, "decorator_list", ())]))
        return first <= span[0] and span[1] <= _end(node)
    # cases, handlers, comprehensions and arguments have no positions of their own
    return any(_holds(child, span) for child in ast.iter_child_nodes(node))


def _kept(path: Sequence[ast.AST], span: tuple[Position, Position]) -> list[ast.expr]:
    """The expressions whose values a site keeps, in the order of evaluation; [] if they are unknown."""
    exact = _whole(path, span)
    statement = next((node for node in reversed(path) if isinstance(node, ast.stmt)), None)
    if exact is not None:
        # a discarded call keeps its arguments; else its value is kept
        return _of_statement(exact, _is_discarded(exact, path) or _is_store(exact))
    if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr)):
        return [] if statement.value is None else _of_statement(statement.value, isinstance(statement, ast.Expr))
    # the header of a `with`, `if` or `for`
    around = next((node for node in reversed(path) if isinstance(node, ast.Call)), None)
    return [] if around is None else [*_given(around), around]


def _is_discarded(node: ast.expr, path: Sequence[ast.AST]) -> bool:
    """Whether the value of an expression is discarded."""
    at = path.index(node) if node in path else 0  # the operand of a star is not in the path
    for around in reversed(path[:at]):
        if isinstance(around, ast.Expr):
            return True
        is_last = isinstance(around, ast.BoolOp) and around.values[-1] is node
        is_branch = isinstance(around, ast.IfExp) and around.test is not node
        is_element = getattr(around, "elt", None) is node
        if not is_last and not is_branch and not is_element:
            return isinstance(around, ast.Lambda) and around.body is node
        assert isinstance(around, ast.expr)
        node = around
    return False


def _is_store(node: ast.expr) -> bool:
    """Whether an expression is a call that keeps its arguments and returns None."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STORES


def _decorated(path: Sequence[ast.AST]) -> Function | None:
    """The function that a site decorates: its calls bring what the site keeps. None without one."""
    for place, node in enumerate(path[1:], 1):
        function = path[place - 1]
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in function.decorator_list:
            return function
    return None


def _comprehension(path: Sequence[ast.AST], kept: Sequence[ast.expr]) -> ast.expr | None:
    """The list, set or dict comprehension whose elements a site keeps; None without one."""
    for node in reversed(path if kept else ()):
        if isinstance(node, (ast.GeneratorExp, ast.Lambda)):
            return None
        value = getattr(node, "value", None)
        for one in (node, value.value if isinstance(value, ast.Await) else value):
            if isinstance(one, (ast.ListComp, ast.SetComp, ast.DictComp)):
                element = one.value if isinstance(one, ast.DictComp) else one.elt
                if any(each is kept[0] for each in ast.walk(element)):
                    return one
        if isinstance(node, ast.stmt):
            return None
    return None


def _whole(path: Sequence[ast.AST], span: tuple[Position, Position]) -> ast.expr | None:
    """The expression of a span, if a call can be put around it; else None."""
    for place, node in enumerate(path):
        if not isinstance(node, ast.expr) or (_start(node), _end(node)) != span:
            continue
        around = path[place - 1] if place else None
        if isinstance(around, ast.Await):
            return around  # the awaited object is not the value
        stored = not isinstance(getattr(node, "ctx", None), (ast.Load, type(None)))
        if stored or isinstance(node, (ast.Slice, ast.FormattedValue)) or isinstance(around, ast.JoinedStr):
            return None
        return node.value if isinstance(node, ast.Starred) else node
    return None


def _of_statement(value: ast.expr, alone: bool) -> list[ast.expr]:
    """The expressions whose values a statement keeps. ``alone``: the statement is just this expression."""
    if isinstance(value, (ast.Yield, ast.YieldFrom)):
        return [] if value.value is None else [value.value]
    inner = value.value if isinstance(value, ast.Await) else value
    if isinstance(inner, ast.DictComp):
        return [inner.value]
    if isinstance(inner, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return [inner.elt]  # each element is a hit
    return [*_given(inner), value] if alone and isinstance(inner, ast.Call) else [value]


def _given(call: ast.Call) -> list[ast.expr]:
    """The arguments of a call, in the order of evaluation."""
    given = [argument.value if isinstance(argument, ast.Starred) else argument for argument in call.args]
    # Python evaluates keywords after the positional arguments, whatever their order in the source
    return given + [keyword.value for keyword in call.keywords]
