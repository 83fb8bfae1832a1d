"""Questions about the IR that need no values: names bound, statements inside, source text of an expression."""

from __future__ import annotations

import itertools
import operator
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeGuard

from memlint.flow.kept import kept
from memlint.ir import nodes as ir


def bodies(statement: ir.Stmt) -> tuple[tuple[ir.Stmt, ...], ...]:
    """The blocks of a compound statement (of definitions too)."""
    blocks = _BLOCKS.get(type(statement))
    return blocks(statement) if blocks is not None else ()


_BLOCKS: dict[type, Callable[[Any], tuple[tuple[ir.Stmt, ...], ...]]] = {
    ir.If: lambda statement: (statement.body, statement.orelse),
    ir.For: lambda statement: (statement.body, statement.orelse),
    ir.While: lambda statement: (statement.body, statement.orelse),
    ir.With: lambda statement: (statement.body,),
    ir.FunctionDef: lambda statement: (statement.body,),
    ir.ClassDef: lambda statement: (statement.body,),
    ir.Try: lambda statement: (
        statement.body,
        *[handler.body for handler in statement.handlers],
        statement.orelse,
        statement.final,
    ),
    ir.Match: lambda statement: tuple([case.body for case in statement.cases]),
}


def walk_statements(body: tuple[ir.Stmt, ...], into_definitions: bool = True) -> Iterator[ir.Stmt]:
    """All statements of a body and its blocks, in source order."""
    stack = [*reversed(body)]
    while stack:
        statement = stack.pop()
        yield statement
        kind = type(statement)
        if kind in _BLOCKS and (into_definitions or (kind is not ir.FunctionDef and kind is not ir.ClassDef)):
            for block in reversed(_BLOCKS[kind](statement)):
                stack.extend(reversed(block))


def block_at(statement: ir.Stmt, at: int) -> tuple[ir.Stmt, ...]:
    """The block of a compound statement that an ordinal in it belongs to; none for one of its header."""
    return next((block for block in reversed(bodies(statement)) if block and block[0].at <= at), ())


def dotted(expr: ir.Expr) -> str:
    """``a.b.c`` of names and attributes, else an empty string."""
    parts: list[str] = []
    while isinstance(expr, ir.Attr):
        parts.append(expr.name)
        expr = expr.value
    if not isinstance(expr, ir.Name):
        return ""
    parts.append(expr.id)
    return ".".join(reversed(parts))


def last_name(expr: ir.Expr) -> str:
    """``c`` of ``a.b.c``, whatever it is an attribute of; "" for what is no name."""
    return expr.name if isinstance(expr, ir.Attr) else expr.id if isinstance(expr, ir.Name) else ""


@kept
def assigned_names(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """(names that the body binds, names that it declares global or nonlocal), nested definitions left out."""
    names: set[str] = set()
    foreign: set[str] = set()
    for statement in body:
        if type(statement) is ir.Scope:
            foreign.update(statement.names)
            continue
        _bind(statement, names)
        for block in () if type(statement) in _DEFINITIONS else bodies(statement):
            # what is in a block is asked for by itself as well, where it is a loop's
            inner, declared = assigned_names(block) if block else _NO_NAMES
            names |= inner
            foreign |= declared
    return frozenset(names), frozenset(foreign)


_NO_NAMES: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
_DEFINITIONS = (ir.FunctionDef, ir.ClassDef)


def binds(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement, or one in its blocks, binds the name."""
    return name in names_bound_by(statement) or (
        type(statement) not in _DEFINITIONS and any(name in assigned_names(block)[0] for block in bodies(statement))
    )


def names_bound_by(statement: ir.Stmt) -> frozenset[str]:
    """The names that a statement itself binds, without what its blocks do."""
    names: set[str] = set()
    _bind(statement, names)
    return frozenset(names)


def _bind(statement: ir.Stmt, names: set[str]) -> None:
    bind = _BOUND_BY.get(type(statement))
    if bind is not None:
        bind(statement, names)
    todo = [*expressions(statement)]
    while todo:
        part = todo.pop()
        parts = _PARTS.get(type(part))
        if parts is not None:
            if type(part) is ir.Walrus:
                _target(part.target, names)
            todo.extend(parts(part))


def _target(target: ir.Expr, names: set[str]) -> None:
    if isinstance(target, ir.Name):
        names.add(target.id)
    elif isinstance(target, ir.Display):
        for element in target.elements:
            _target(element, names)
    elif isinstance(target, ir.Starred):
        _target(target.value, names)


def _bind_with(statement: ir.With, names: set[str]) -> None:
    for item in statement.items:
        if item.target is not None:
            _target(item.target, names)


def _bind_all(statement: ir.Assign, names: set[str]) -> None:
    for target in statement.targets:
        _target(target, names)


_BOUND_BY: dict[type, Callable[[Any, set[str]], None]] = {
    ir.Assign: _bind_all,
    ir.AugAssign: lambda statement, names: _target(statement.target, names),
    ir.AnnAssign: lambda statement, names: _target(statement.target, names),
    ir.For: lambda statement, names: _target(statement.target, names),
    ir.With: _bind_with,
    ir.FunctionDef: lambda statement, names: names.add(statement.name),
    ir.ClassDef: lambda statement, names: names.add(statement.name),
    ir.Import: lambda statement, names: names.update(
        [alias.asname or alias.name.split(".", 1)[0] for alias in statement.names]
    ),
    ir.ImportFrom: lambda statement, names: names.update([alias.asname or alias.name for alias in statement.names]),
    ir.Try: lambda statement, names: names.update([each.name for each in statement.handlers if each.name]),
    ir.Match: lambda statement, names: names.update([name for case in statement.cases for name in case.captures]),
}


def expressions(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The expressions that belong to a statement itself, not to its blocks."""
    own = _OWN.get(type(statement))
    return own(statement) if own is not None else ()


_OWN: dict[type, Callable[[Any], tuple[ir.Expr, ...]]] = {
    ir.Assign: lambda statement: (*statement.targets, statement.value),
    ir.AugAssign: lambda statement: (statement.target, statement.value),
    ir.AnnAssign: lambda statement: (
        (statement.target,) if statement.value is None else (statement.target, statement.value)
    ),
    ir.ExprStmt: lambda statement: (statement.value,),
    ir.Return: lambda statement: () if statement.value is None else (statement.value,),
    ir.Raise: lambda statement: () if statement.exc is None else (statement.exc,),
    ir.Delete: lambda statement: statement.targets,
    ir.Assert: lambda statement: (statement.test,),
    ir.If: lambda statement: (statement.test,),
    ir.While: lambda statement: (statement.test,),
    ir.For: lambda statement: (statement.target, statement.iter),
    ir.With: lambda statement: tuple([item.context for item in statement.items]),
    ir.Match: lambda statement: (statement.subject,),
}


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct parts of an expression."""
    parts = _PARTS.get(type(expr))
    return parts(expr) if parts is not None else ()


def _comprehension(expr: ir.Comprehension) -> tuple[ir.Expr, ...]:
    parts = [expr.element] if expr.key is None else [expr.key, expr.element]
    for one in expr.fors:
        parts += [one.iter, *one.ifs]
    return tuple(parts)


#: by type, since most expressions are names and constants: a chain of tests would try all others first
_PARTS: dict[type, Callable[[Any], tuple[ir.Expr, ...]]] = {
    ir.Attr: lambda expr: (expr.value,),
    ir.Starred: lambda expr: (expr.value,),
    ir.Await: lambda expr: (expr.value,),
    ir.Call: lambda expr: (
        (expr.func, *expr.args, *[keyword.value for keyword in expr.keywords])
        if expr.keywords
        else (expr.func, *expr.args)
    ),
    ir.Subscript: lambda expr: (expr.value, expr.index),
    ir.Slice: lambda expr: tuple([part for part in (expr.lower, expr.upper, expr.step) if part is not None]),
    ir.Binary: lambda expr: (expr.left, expr.right),
    ir.BoolOp: lambda expr: (expr.left, expr.right),
    ir.Unary: lambda expr: (expr.operand,),
    ir.Compare: lambda expr: (expr.left, *expr.rights),
    ir.IfExp: lambda expr: (expr.test, expr.body, expr.orelse),
    ir.Display: lambda expr: expr.elements,
    ir.DictDisplay: lambda expr: (*[key for key in expr.keys if key is not None], *expr.values),
    ir.Comprehension: _comprehension,
    ir.Walrus: lambda expr: (expr.target, expr.value),
    ir.Yield: lambda expr: (expr.value,) if expr.value is not None else (),
    ir.FormattedString: lambda expr: expr.parts,
}


def walk_expression(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The expression and everything in it (lambda bodies left out)."""
    todo = [expr]
    while todo:
        part = todo.pop()
        yield part
        parts = _PARTS.get(type(part))
        if parts is not None:
            todo.extend(parts(part))


class Begins(NamedTuple):
    """The statements of a body and its blocks in source order: where each begins, the block that it is in, its place
    there, and the one around it, -1 for none."""

    ordinals: list[int]
    statements: list[ir.Stmt]
    blocks: list[tuple[tuple[ir.Stmt, ...], int]]
    around: list[int]


@kept
def begins(body: tuple[ir.Stmt, ...]) -> Begins:
    found = Begins([], [], [], [])
    todo = [(body, number, -1) for number in reversed(range(len(body)))]
    while todo:
        block, number, around = todo.pop()
        place = len(found.ordinals)
        found.ordinals.append(block[number].at)
        found.statements.append(block[number])
        found.blocks.append((block, number))
        found.around.append(around)
        for inner in reversed(bodies(block[number])):
            todo.extend((inner, each, place) for each in reversed(range(len(inner))))
    return found


def statement_at(body: tuple[ir.Stmt, ...], at: int) -> ir.Stmt | None:
    """The innermost statement of a body that holds an ordinal."""
    begun = begins(body)
    place = bisect_right(begun.ordinals, at) - 1
    if place < 0:
        return None
    best = begun.statements[place]
    held = best.at == at or any(part.at == at for expr in expressions(best) for part in walk_expression(expr))
    return best if held else None


def way_to(body: tuple[ir.Stmt, ...], at: int) -> list[tuple[tuple[ir.Stmt, ...], int]]:
    """The blocks that lead from a body to the last statement which begins up to an ordinal, each with the place in it
    where they go on; none where the body begins later."""
    way: list[tuple[tuple[ir.Stmt, ...], int]] = []
    block = body
    while block and block[0].at <= at:
        number = bisect_right(block, at, key=_ordinal) - 1
        way.append((block, number))
        block = block_at(block[number], at)
    return way


_ordinal = operator.attrgetter("at")


def loops_around(body: tuple[ir.Stmt, ...], at: int) -> list[ir.For | ir.While]:
    """The loops of a body in whose own body an ordinal stands, the outermost first."""
    return [one for one in _around(body, at) if isinstance(one, ir.For | ir.While)]


def withs_around(body: tuple[ir.Stmt, ...], at: int) -> list[ir.With]:
    """The ``with`` statements of a body in whose own body an ordinal stands, the outermost first."""
    return [one for one in _around(body, at) if isinstance(one, ir.With)]


def _around(body: tuple[ir.Stmt, ...], at: int) -> Iterator[ir.Stmt]:
    """The statements in whose first block an ordinal stands, up to a definition."""
    if statement_at(body, at) is None:
        return
    for (block, number), (inner, _) in itertools.pairwise(way_to(body, at)):
        statement = block[number]
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            return
        if bodies(statement)[0] is inner:
            yield statement


def parts(body: tuple[ir.Stmt, ...], into_definitions: bool = False) -> Iterator[ir.Expr]:
    """All expressions of a body, and everything in them."""
    for statement in walk_statements(body, into_definitions):
        for expr in expressions(statement):
            yield from walk_expression(expr)


def with_lambdas(exprs: Iterable[ir.Expr]) -> Iterator[ir.Expr]:
    """Expressions and everything in them, the bodies of lambdas included."""
    todo = [*exprs]
    while todo:
        for part in walk_expression(todo.pop()):
            yield part
            if isinstance(part, ir.Lambda):
                todo.append(part.body)


def calls(body: tuple[ir.Stmt, ...], into_definitions: bool = False) -> Iterator[ir.Call]:
    """All calls of a body."""
    if not into_definitions:
        return iter(_calls(body))
    return (part for part in parts(body, into_definitions) if isinstance(part, ir.Call))


def call_at(body: tuple[ir.Stmt, ...], at: int) -> ir.Call | None:
    """The call of that ordinal in a body, None for none."""
    return _calls_by_place(body).get(at)


def calls_named(body: tuple[ir.Stmt, ...], names: AbstractSet[str]) -> list[ir.Call]:
    """The calls of a body whose callee's name ends with one of some names."""
    by_name = _calls_by_name(body)
    return [call for name in names if name in by_name for call in by_name[name]]


@kept
def _calls_by_name(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Call]]:
    found: dict[str, list[ir.Call]] = {}
    for call in calls(body):
        found.setdefault(dotted(call.func).rsplit(".", 1)[-1], []).append(call)
    return found


@kept
def assignments(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Assign]]:
    """The statements of a body, definitions included, that assign a value to a name alone, by the name."""
    found: dict[str, list[ir.Assign]] = {}
    for statement in (one for one in walk_statements(body) if isinstance(one, ir.Assign)):
        for name in {target.id for target in statement.targets if isinstance(target, ir.Name)}:
            found.setdefault(name, []).append(statement)
    return found


@kept
def _calls_by_place(body: tuple[ir.Stmt, ...]) -> dict[int, ir.Call]:
    return {call.at: call for call in reversed(_calls(body))}


@kept
def _calls(body: tuple[ir.Stmt, ...]) -> tuple[ir.Call, ...]:
    return tuple([part for part in parts(body) if type(part) is ir.Call])


@kept
def identifiers(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """(variables, attributes) that the statements of a body mention, nested definitions left out."""
    variables: set[str] = set()
    attributes: set[str] = set()
    for part in parts(body):
        if type(part) is ir.Name:
            variables.add(part.id)
        elif type(part) is ir.Attr:
            attributes.add(part.name)
    return frozenset(variables), frozenset(attributes)


@kept
def calls_backward(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body calls ``backward()`` of something, whatever it is."""
    return any(isinstance(call.func, ir.Attr) and call.func.name == "backward" for call in calls(body))


#: how tightly operators bind; what binds less than its place asks for stands in parentheses
_BINDS = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("not",), 3),
    **dict.fromkeys(("|",), 5),
    **dict.fromkeys(("^",), 6),
    **dict.fromkeys(("&",), 7),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 10),
    **dict.fromkeys(("**",), 12),
}
_CHOICE, _COMPARISON, _SIGN, _AWAIT, _PRIMARY = 0, 4, 11, 13, 14


def text(expr: ir.Expr | None, limit: int = 60) -> str:
    """The expression as a person would write it, shortened."""
    if expr is None:
        return ""
    result = _whole(expr)
    return result if len(result) <= limit else result[: limit - 1] + "…"


@kept
def _whole(expr: ir.Expr) -> str:
    return _text(expr, 0)


def _binds(expr: ir.Expr) -> int:
    """How tightly an expression binds."""
    if isinstance(expr, ir.Binary | ir.BoolOp) or (isinstance(expr, ir.Unary) and expr.op == "not"):
        return _BINDS[expr.op]
    return _BINDING.get(type(expr), _PRIMARY)


_BINDING = {
    ir.Unary: _SIGN,
    ir.Compare: _COMPARISON,
    ir.Await: _AWAIT,
    ir.IfExp: _CHOICE,
    ir.Lambda: _CHOICE,
    ir.Walrus: _CHOICE,
    ir.Yield: _CHOICE,
}


def _text(expr: ir.Expr | None, depth: int, place: int = 0) -> str:
    """``place``: how tightly the expression must bind to stand without parentheses."""
    if expr is None:
        return ""
    if depth > 6:
        return "…"
    write = _WRITTEN.get(type(expr))
    if write is None:
        return "…"
    plain: str = write(expr, depth + 1)
    return f"({plain})" if place and _binds(expr) < place and plain != "…" else plain


def _constant(expr: ir.Const, _: int) -> str:
    return repr(expr.value) if expr.value is not None else "None" if expr.kind == "None" else "…"


def _called(expr: ir.Call, inner: int) -> str:
    parts = [_text(arg, inner) for arg in expr.args]
    parts += [
        f"{word.name}={_text(word.value, inner)}" if word.name else f"**{_text(word.value, inner)}"
        for word in expr.keywords
    ]
    return f"{_text(expr.func, inner, _PRIMARY)}({', '.join(parts)})"


def _subscripted(expr: ir.Subscript, inner: int) -> str:
    index = expr.index
    several = isinstance(index, ir.Display) and index.kind == "tuple" and len(index.elements) > 1
    shown = _text(index, inner)
    shown = shown[1:-1] if several and shown.startswith("(") else shown
    return f"{_text(expr.value, inner, _PRIMARY)}[{shown}]"


def _operation(expr: ir.Binary | ir.BoolOp, inner: int) -> str:
    binds = _binds(expr)
    left, right = (binds + 1, binds) if expr.op == "**" else (binds, binds + 1)
    return f"{_text(expr.left, inner, left)} {expr.op} {_text(expr.right, inner, right)}"


def _displayed(expr: ir.Display, inner: int) -> str:
    joined = ", ".join([_text(element, inner) for element in expr.elements])
    comma = "," if len(expr.elements) == 1 else ""
    return {"list": f"[{joined}]", "tuple": f"({joined}{comma})", "set": f"{{{joined}}}"}[expr.kind]


def _choice(expr: ir.IfExp, inner: int) -> str:
    test, other = _text(expr.test, inner, 1), _text(expr.orelse, inner)
    return f"{_text(expr.body, inner, 1)} if {test} else {other}"


def _comparison(expr: ir.Compare, inner: int) -> str:
    pairs = zip(expr.ops, expr.rights, strict=False)
    tail = "".join([f" {op} {_text(right, inner, _COMPARISON + 1)}" for op, right in pairs])
    return _text(expr.left, inner, _COMPARISON + 1) + tail


#: what an expression looks like, by its type; others are not shown
_WRITTEN: dict[type, Callable[[Any, int], str]] = {
    ir.Name: lambda expr, _: str(expr.id),
    ir.Const: _constant,
    ir.Attr: lambda expr, inner: f"{_text(expr.value, inner, _PRIMARY)}.{expr.name}",
    ir.Call: _called,
    ir.Subscript: _subscripted,
    ir.Slice: lambda expr, inner: f"{_text(expr.lower, inner)}:{_text(expr.upper, inner)}",
    ir.Binary: _operation,
    ir.BoolOp: _operation,
    ir.Unary: lambda expr, inner: (
        f"{expr.op}{' ' if expr.op == 'not' else ''}{_text(expr.operand, inner, _binds(expr))}"
    ),
    ir.Display: _displayed,
    ir.IfExp: _choice,
    ir.Starred: lambda expr, inner: f"*{_text(expr.value, inner)}",
    ir.Await: lambda expr, inner: f"await {_text(expr.value, inner, _AWAIT)}",
    ir.Compare: _comparison,
}


def mentions(expr: ir.Expr, place: str) -> bool:
    """Whether the expression reads the place with this text."""
    names, places = _reads(expr)
    return place in (names if place.isidentifier() else places)


def is_member(expr: ir.Expr) -> TypeGuard[ir.Subscript]:
    """``state["exp_avg"]``: the member of a dictionary."""
    return isinstance(expr, ir.Subscript) and isinstance(expr.index, ir.Const) and expr.index.kind == "str"


def is_true(expr: ir.Expr) -> bool:
    """Whether the expression is the constant True."""
    return isinstance(expr, ir.Const) and expr.value is True


def is_false(expr: ir.Expr) -> bool:
    """Whether the expression is the constant False."""
    return isinstance(expr, ir.Const) and expr.value is False


def reads_any(expr: ir.Expr, names: AbstractSet[str]) -> bool:
    """Whether the expression reads one of these variables."""
    return not names.isdisjoint(names_read(expr))


@kept
def names_read(expr: ir.Expr) -> frozenset[str]:
    """The variables that an expression reads."""
    return frozenset([part.id for part in walk_expression(expr) if type(part) is ir.Name])


@kept
def _reads(expr: ir.Expr) -> tuple[frozenset[str], frozenset[str]]:
    """The names, and the texts of the attributes and subscripts, that an expression reads."""
    parts = (part for part in walk_expression(expr) if isinstance(part, (ir.Attr, ir.Subscript)))
    return names_read(expr), frozenset([text(part, 200) for part in parts])
