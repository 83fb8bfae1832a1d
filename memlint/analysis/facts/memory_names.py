"""Which names of a table a function uses of torch's modules, without a check that they exist."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.program import Program
from memlint.analysis.syntax.bindings import identifiers, targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import bodies, dotted, expressions, last_name, walk_expression, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: errors that a missing name raises
_ABSENT = frozenset({"AttributeError", "ImportError", "ModuleNotFoundError"})


class NameUse(NamedTuple):
    """``name``: qualified; ``at``: the ordinal of its use or import; ``text``: its source; ``module``: the module that
    it is read from, "" for an import."""

    name: str
    at: int
    text: str
    module: str


def used_names(analyser: Analyser, summary: Summary, known: frozenset[str]) -> Iterator[NameUse]:
    """The uses in one function of names in ``known`` (qualified). Excluded are names that the file checks first
    (``hasattr``, the release, an except clause), and names that the project defines itself."""
    function = summary.function
    last = _last_names(known)
    if function.names.isdisjoint(last):
        return
    attributes = identifiers(function.body)[1]
    for statement in unguarded(function.body):
        if isinstance(statement, ir.ImportFrom):
            uses = _imported(analyser, summary, statement, last)
        else:
            uses = _read(analyser, summary, statement, last) if attributes & last else iter(())
        for use in uses:
            name = use.name.rsplit(".", 1)[-1]
            if use.name in known and not (
                _asked_for(summary.module.text, name) or _is_given(analyser.program, use.name, name)
            ):
                yield use


@functools.cache
def _last_names(known: frozenset[str]) -> frozenset[str]:
    """The last components of all names, for a quick test."""
    return frozenset(name.rsplit(".", 1)[-1] for name in known)


def unguarded(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """The statements of a function, without those under a test of the release or in a ``try`` for a missing name."""
    for statement in body:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        yield statement
        if isinstance(statement, ir.If) and _asks(statement.test):
            continue
        if isinstance(statement, ir.Try) and any(_awaits(handler) for handler in statement.handlers):
            yield from unguarded((*statement.orelse, *statement.final))
            continue
        for block in bodies(statement):
            yield from unguarded(block)


def _asks(test: ir.Expr) -> bool:
    """Whether a test reads the release."""
    return "version" in text(test, 300).lower()


def _awaits(handler: ir.Handler) -> bool:
    return handler.type is not None and any(last_name(part) in _ABSENT for part in walk_expression(handler.type))


def _read(analyser: Analyser, summary: Summary, statement: ir.Stmt, last: frozenset[str]) -> Iterator[NameUse]:
    """The uses of torch's attributes in a statement."""
    bound = {part.at for part in _targets(statement)}
    scope = summary.function if summary.function.node is not None else None
    for expr in expressions(statement):
        chosen = {
            part.at
            for choice in walk_expression(expr)
            if isinstance(choice, ir.IfExp) and _asks(choice.test)
            for part in walk_expression(choice)
        }
        for part in walk_expression(expr):
            if not isinstance(part, ir.Attr) or part.name not in last or part.at in bound | chosen:
                continue
            yield NameUse(
                analyser.program.outside(summary.module, part, scope), part.at, text(part), dotted(part.value)
            )


def _imported(
    analyser: Analyser, summary: Summary, statement: ir.ImportFrom, last: frozenset[str]
) -> Iterator[NameUse]:
    if statement.level or not statement.module.startswith("torch"):
        return
    for alias in statement.names:
        found = analyser.program.imported(summary.module, statement, alias.asname or alias.name)
        if alias.name in last and found[0] == "ext":
            yield NameUse(str(found[1]), statement.at, f"from {statement.module} import {alias.name}", "")


def _asked_for(source: str, last: str) -> bool:
    """Whether a file tests whether the name exists: ``hasattr(torch.cuda, "…")``, ``"…" in dir(torch.cuda)``."""
    word = rf"['\"]{re.escape(last)}['\"]"
    return re.search(rf"(has|get|set)attr\([^()]*{word}|{word}\s+(not\s+)?in\b", source) is not None


def _is_given(program: Program, name: str, last: str) -> bool:
    """Whether the project assigns the name itself."""
    return any(
        isinstance(part, ir.Attr) and part.name == last and program.outside(module, part) == name
        for key in program.words.files(last)
        for module in (program.module(key),)
        for body in module.bodies
        for statement in walk_statements(body)
        for part in _targets(statement)
    )


def _targets(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    return statement.targets if isinstance(statement, ir.Delete) else targets(statement)
