"""Questions about the IR that need no values: names bound, statements inside, source text of an expression."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.ir import nodes as ir


def bodies(statement: ir.Stmt) -> Iterator[tuple[ir.Stmt, ...]]:
    """The blocks of a compound statement (of definitions too)."""
    if isinstance(statement, ir.If | ir.For | ir.While):
        yield statement.body
        yield statement.orelse
    elif isinstance(statement, ir.With | ir.FunctionDef | ir.ClassDef):
        yield statement.body
    elif isinstance(statement, ir.Try):
        yield statement.body
        for handler in statement.handlers:
            yield handler.body
        yield statement.orelse
        yield statement.final
    elif isinstance(statement, ir.Match):
        for case in statement.cases:
            yield case.body


def walk_statements(body: tuple[ir.Stmt, ...], into_definitions: bool = True) -> Iterator[ir.Stmt]:
    """All statements of a body and its blocks, in source order."""
    stack = [iter(body)]
    while stack:
        for statement in stack[-1]:
            yield statement
            if into_definitions or not isinstance(statement, ir.FunctionDef | ir.ClassDef):
                inner = [item for block in bodies(statement) for item in block]
                if inner:
                    stack.append(iter(inner))
                    break
        else:
            stack.pop()


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


def assigned_names(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """(names that the body binds, names that it declares global or nonlocal), nested definitions left out."""
    names: set[str] = set()
    foreign: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        match statement:
            case ir.Assign():
                for target in statement.targets:
                    _target(target, names)
            case ir.AugAssign() | ir.AnnAssign() | ir.For():
                _target(statement.target, names)
            case ir.With():
                for item in statement.items:
                    if item.target is not None:
                        _target(item.target, names)
            case ir.FunctionDef() | ir.ClassDef():
                names.add(statement.name)
            case ir.Import():
                names.update(alias.asname or alias.name.split(".", 1)[0] for alias in statement.names)
            case ir.ImportFrom():
                names.update(alias.asname or alias.name for alias in statement.names)
            case ir.Try():
                names.update(handler.name for handler in statement.handlers if handler.name)
            case ir.Match():
                for match_case in statement.cases:
                    names.update(match_case.captures)
            case ir.Scope():
                foreign.update(statement.names)
            case _:
                pass
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Walrus):
                    _target(part.target, names)
    return frozenset(names), frozenset(foreign)


def _target(target: ir.Expr, names: set[str]) -> None:
    if isinstance(target, ir.Name):
        names.add(target.id)
    elif isinstance(target, ir.Display):
        for element in target.elements:
            _target(element, names)
    elif isinstance(target, ir.Starred):
        _target(target.value, names)


def expressions(statement: ir.Stmt) -> Iterator[ir.Expr]:
    """The expressions that belong to a statement itself, not to its blocks."""
    match statement:
        case ir.Assign():
            yield from statement.targets
            yield statement.value
        case ir.AugAssign():
            yield statement.target
            yield statement.value
        case ir.AnnAssign():
            yield statement.target
            if statement.value is not None:
                yield statement.value
        case ir.ExprStmt():
            yield statement.value
        case ir.Return():
            if statement.value is not None:
                yield statement.value
        case ir.Raise():
            if statement.exc is not None:
                yield statement.exc
        case ir.Delete():
            yield from statement.targets
        case ir.Assert() | ir.If() | ir.While():
            yield statement.test
        case ir.For():
            yield statement.target
            yield statement.iter
        case ir.With():
            for item in statement.items:
                yield item.context
        case ir.Match():
            yield statement.subject
        case _:
            pass


def children(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    """The direct parts of an expression."""
    match expr:
        case ir.Attr() | ir.Starred() | ir.Await():
            return (expr.value,)
        case ir.Call():
            return (expr.func, *expr.args, *(keyword.value for keyword in expr.keywords))
        case ir.Subscript():
            return (expr.value, expr.index)
        case ir.Slice():
            return tuple(part for part in (expr.lower, expr.upper, expr.step) if part is not None)
        case ir.Binary() | ir.BoolOp():
            return (expr.left, expr.right)
        case ir.Unary():
            return (expr.operand,)
        case ir.Compare():
            return (expr.left, *expr.rights)
        case ir.IfExp():
            return (expr.test, expr.body, expr.orelse)
        case ir.Display():
            return expr.elements
        case ir.DictDisplay():
            return (*(key for key in expr.keys if key is not None), *expr.values)
        case ir.Comprehension():
            parts = [expr.element] if expr.key is None else [expr.key, expr.element]
            for one in expr.fors:
                parts += [one.iter, *one.ifs]
            return tuple(parts)
        case ir.Walrus():
            return (expr.target, expr.value)
        case ir.Yield():
            return (expr.value,) if expr.value is not None else ()
        case ir.FormattedString():
            return expr.parts
        case _:
            return ()


def walk_expression(expr: ir.Expr) -> Iterator[ir.Expr]:
    """The expression and everything in it (lambda bodies left out)."""
    todo = [expr]
    while todo:
        part = todo.pop()
        yield part
        todo.extend(children(part))


def text(expr: ir.Expr | None, limit: int = 60) -> str:
    """The expression as a person would write it, shortened."""
    result = _text(expr, 0)
    return result if len(result) <= limit else result[: limit - 1] + "…"


def _text(expr: ir.Expr | None, depth: int) -> str:
    if expr is None:
        return ""
    if depth > 6:
        return "…"
    inner = depth + 1
    match expr:
        case ir.Name():
            return expr.id
        case ir.Const():
            return repr(expr.value) if expr.value is not None else {"None": "None"}.get(expr.kind, "…")
        case ir.Attr():
            return f"{_text(expr.value, inner)}.{expr.name}"
        case ir.Call():
            parts = [_text(arg, inner) for arg in expr.args]
            parts += [
                f"{word.name}={_text(word.value, inner)}" if word.name else f"**{_text(word.value, inner)}"
                for word in expr.keywords
            ]
            return f"{_text(expr.func, inner)}({', '.join(parts)})"
        case ir.Subscript():
            return f"{_text(expr.value, inner)}[{_text(expr.index, inner)}]"
        case ir.Slice():
            return f"{_text(expr.lower, inner)}:{_text(expr.upper, inner)}"
        case ir.Binary():
            return f"{_text(expr.left, inner)} {expr.op} {_text(expr.right, inner)}"
        case ir.Unary():
            return f"{expr.op}{' ' if expr.op == 'not' else ''}{_text(expr.operand, inner)}"
        case ir.Display():
            joined = ", ".join(_text(element, inner) for element in expr.elements)
            return {"list": f"[{joined}]", "tuple": f"({joined})", "set": f"{{{joined}}}"}[expr.kind]
        case ir.Starred():
            return f"*{_text(expr.value, inner)}"
        case ir.Await():
            return f"await {_text(expr.value, inner)}"
        case ir.Compare():
            tail = "".join(f" {op} {_text(right, inner)}" for op, right in zip(expr.ops, expr.rights, strict=False))
            return _text(expr.left, inner) + tail
        case ir.BoolOp():
            return f"{_text(expr.left, inner)} {expr.op} {_text(expr.right, inner)}"
        case _:
            return "…"


def mentions(expr: ir.Expr, place: str) -> bool:
    """Whether the expression reads the place with this text."""
    return any(
        isinstance(part, ir.Name | ir.Attr | ir.Subscript) and text(part, 200) == place
        for part in walk_expression(expr)
    )
