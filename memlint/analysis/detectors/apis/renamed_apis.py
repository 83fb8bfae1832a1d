"""Names for memory that torch does not have, or has given another name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.domain.bound_names import Names
from memlint.analysis.domain.practice_events import ApiUse
from memlint.analysis.domain.summary.frame import Frame
from memlint.analysis.index.program import Function, Program
from memlint.analysis.syntax.bindings import identifiers
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import bodies, dotted, expressions, last_name, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.knowledge import memory

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods that give a tensor of a tensor
_SAME = frozenset({"to", "cuda", "cpu", "clone", "detach", "float", "double", "half", "bfloat16", "contiguous"})
#: errors that a name raises which is not there
_ABSENT = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})


def events(analyser: Analyser, frame: Frame) -> Iterator[ApiUse]:
    """The names for memory that one function uses and that torch does not have, or not any more."""
    function = frame.function
    known = memory.last_names()
    if function.names.isdisjoint(known) and function.names.isdisjoint(memory.missing_methods()):
        return
    attributes = identifiers(function.body)[1]
    methods = memory.missing_methods().keys() & attributes
    for statement in _unguarded(function.body):
        if isinstance(statement, ir.ImportFrom):
            yield from _imported(analyser, frame, statement)
        elif attributes & known:
            yield from _read(analyser, frame, statement)
        if methods:
            yield from _called(analyser, frame, statement)


def _unguarded(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """The statements of a function but those under a test of the release, or where the name's absence is awaited."""
    for statement in body:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        yield statement
        if isinstance(statement, ir.If) and _asks(statement.test):
            continue
        if isinstance(statement, ir.Try) and any(_awaits(handler) for handler in statement.handlers):
            yield from _unguarded((*statement.orelse, *statement.final))
            continue
        for block in bodies(statement):
            yield from _unguarded(block)


def _asks(test: ir.Expr) -> bool:
    """Whether a test asks for the release."""
    return "version" in text(test, 300).lower()


def _awaits(handler: ir.Handler) -> bool:
    return handler.type is not None and any(last_name(part) in _ABSENT for part in walk_expression(handler.type))


def _read(analyser: Analyser, frame: Frame, statement: ir.Stmt) -> Iterator[ApiUse]:
    """The attributes of torch's modules that a statement reads."""
    targets = {part.at for part in _targets(statement)}
    for expr in expressions(statement):
        chosen = {
            part.at
            for choice in walk_expression(expr)
            if isinstance(choice, ir.IfExp) and _asks(choice.test)
            for part in walk_expression(choice)
        }
        for part in walk_expression(expr):
            if not isinstance(part, ir.Attr) or part.name not in memory.last_names() or part.at in targets | chosen:
                continue
            name = analyser.program.outside(frame.module, part, _scope(frame.function))
            yield from _use(analyser, frame, name, part.at, text(part), dotted(part.value))


def _imported(analyser: Analyser, frame: Frame, statement: ir.ImportFrom) -> Iterator[ApiUse]:
    if statement.level or not statement.module.startswith("torch"):
        return
    for alias in statement.names:
        found = analyser.program.imported(frame.module, statement, alias.asname or alias.name)
        if alias.name in memory.last_names() and found[0] == "ext":
            written = f"from {statement.module} import {alias.name}"
            yield from _use(analyser, frame, str(found[1]), statement.at, written, "")


def _use(analyser: Analyser, frame: Frame, name: str, at: int, written: str, module: str) -> Iterator[ApiUse]:
    """``module``: what the name is read of, "" where it is imported."""
    missing, renamed = memory.missing().get(name), memory.renamed().get(name)
    if missing is None and renamed is None:
        return
    last = name.rsplit(".", 1)[-1]
    if _asked_for(frame.module.text, last) or _is_given(analyser.program, name, last):
        return
    newest = analyser.program.project.newest_torch
    if missing is not None:
        advice, new = missing.advice, ""
    else:
        assert renamed is not None
        if (newest is not None and newest < renamed.since) or _tries(frame.function, renamed.use):
            return
        advice, new = f"use `torch.cuda.{renamed.use}`", f"{module}.{renamed.use}" if module else ""
    yield ApiUse(
        site=frame.site(at),
        function=frame.function.qual,
        kind="fictional" if missing is not None else "deprecated",
        name=name,
        text=written,
        advice=advice,
        new=new,
    )


def _tries(function: Function, name: str) -> bool:
    """Whether a function tries another name, whatever error it awaits."""
    return any(
        isinstance(statement, ir.Try) and name in identifiers(statement.body)[1]
        for statement in walk_statements(function.body, into_definitions=False)
    )


def _asked_for(source: str, last: str) -> bool:
    """Whether a file asks whether the name is there: ``hasattr(torch.cuda, "…")``, ``"…" in dir(torch.cuda)``."""
    word = rf"['\"]{re.escape(last)}['\"]"
    return re.search(rf"(has|get|set)attr\([^()]*{word}|{word}\s+(not\s+)?in\b", source) is not None


def _is_given(program: Program, name: str, last: str) -> bool:
    """Whether the project puts something of its own there."""
    return any(
        isinstance(part, ir.Attr) and part.name == last and program.outside(module, part) == name
        for key in program.words.files(last)
        for module in (program.module(key),)
        for body in module.bodies
        for statement in walk_statements(body)
        for part in _targets(statement)
    )


def _targets(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    if isinstance(statement, ir.Assign | ir.Delete):
        return statement.targets
    return (statement.target,) if isinstance(statement, ir.AnnAssign | ir.AugAssign) else ()


def _called(analyser: Analyser, frame: Frame, statement: ir.Stmt) -> Iterator[ApiUse]:
    """The methods of tensors that a statement calls and that tensors do not have."""
    for expr in expressions(statement):
        for call in walk_expression(expr):
            if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.args or call.keywords:
                continue
            advice = memory.missing_methods().get(call.func.name)
            if advice is not None and _is_tensor(analyser, Names(analyser, frame), call.func.value):
                yield ApiUse(
                    site=frame.site(call.at),
                    function=frame.function.qual,
                    kind="method",
                    name=call.func.name,
                    text=text(call),
                    advice=advice,
                )


def _is_tensor(analyser: Analyser, names: Names, expr: ir.Expr) -> bool:
    """Whether an expression is made by a function of torch that gives a tensor."""
    function = names.frame.function
    for _ in range(8):
        if isinstance(expr, ir.Name):
            if expr.id not in function.locals and function.around is not None:
                return False
            bound = names.value(expr.id)
            if bound is None or bound[1]:
                return False
            expr = bound[0]
        elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _SAME:
            expr = expr.func.value
        elif isinstance(expr, ir.Call):
            name = analyser.program.outside(names.module, expr.func, _scope(function))
            row = knowledge.function(name) if name.startswith("torch.") else None
            return row is not None and row.returns == "tensor" and row.allocates
        else:
            return False
    return False


def _scope(function: Function) -> Function | None:
    return function if function.node is not None else None
