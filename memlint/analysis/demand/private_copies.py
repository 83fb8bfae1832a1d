"""Networks that a function makes for itself and whose parameters nothing else gets: no optimizer trains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.gradient_demand import asked_for
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE
from memlint.analysis.index.program import Class
from memlint.analysis.index.uses import receiver_of
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, expressions, is_name, last_name, walk_statements, with_lambdas
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods that expose no parameter that requires grad
_QUIET = frozenset({"load_state_dict", "state_dict", "zero_grad"})


def is_private(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the run's name is a private copy of another network that is only called, loaded and placed: ``old =
    Policy(4); old.load_state_dict(policy.state_dict())``."""
    function = summary.function
    name = run.text
    if function.node is None or not name.isidentifier() or any(param.name == name for param in function.params):
        return False
    scoped, mentioned = _mentions(function.body)
    statements = mentioned.get(name, [])
    if name in scoped:
        return False
    known: set[int] = set()
    loaded = False
    for statement in statements:
        if isinstance(statement, ir.Assign) and is_name(statement.targets[0], name) and len(statement.targets) == 1:
            made = receiver_of(statement.value)
            copied = _copies_what_trains(summary, made)
            if not copied and not is_name(made, name) and not _is_its_own(analyser, summary, made):
                return False
            loaded = loaded or copied
            known.update(id(part) for part in (statement.targets[0], made if is_name(made, name) else None) if part)
        elif isinstance(statement, ir.ExprStmt) and is_name(receiver_of(statement.value), name):
            known.add(id(receiver_of(statement.value)))
        for part in with_lambdas(expressions(statement)):
            if not isinstance(part, ir.Call):
                continue
            if is_name(part.func, name):
                known.add(id(part.func))
            elif isinstance(part.func, ir.Attr) and part.func.name in _QUIET and is_name(part.func.value, name):
                known.add(id(part.func.value))
                loaded = loaded or part.func.name == "load_state_dict"
    mentions = (
        part for statement in statements for part in with_lambdas(expressions(statement)) if is_name(part, name)
    )
    if not loaded or any(id(part) not in known for part in mentions):
        return False
    # a request for the gradient of its input needs the graph
    return not any(asked_for(one) for one in (summary, *(caller for caller, _ in analyser.facts.calls_of(function))))


@kept
def _mentions(body: tuple[ir.Stmt, ...]) -> tuple[set[str], dict[str, list[ir.Stmt]]]:
    """The names that a body declares global or nonlocal, and, by name, the statements that mention it."""
    scoped: set[str] = set()
    found: dict[str, list[ir.Stmt]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.Scope):
            scoped.update(statement.names)
        for name in {part.id for part in with_lambdas(expressions(statement)) if isinstance(part, ir.Name)}:
            found.setdefault(name, []).append(statement)
    return scoped, found


def _copies_what_trains(summary: Summary, made: ir.Expr) -> bool:
    """Whether an expression is ``copy.deepcopy(model)`` of a model that a backward reaches here. The copy of a frozen
    model is frozen itself."""
    if not isinstance(made, ir.Call) or last_name(made.func) != "deepcopy" or len(made.args) != 1:
        return False
    source = dotted(made.args[0])
    return bool(source) and any(
        f"{run.text}.".startswith(f"{source}.") and run.marks & one.reached
        for run in summary.runs.values()
        for one in summary.backwards
    )


def _is_its_own(analyser: Analyser, caller: Summary, made: ir.Expr) -> bool:
    """Whether a call makes a module of a known class that stores only plain data of its arguments, so that it shares no
    part with another module."""
    if not isinstance(made, ir.Call):
        return False
    kind, what = analyser.program.find_expression(caller.function.module, made.func, caller.function)
    if kind != "class" or not isinstance(what, Class) or not analyser.program.is_module(what):
        return False
    init = analyser.program.method(what, "__init__")
    summary = analyser.summary(init) if init is not None and init.params else None
    if init is None or summary is None or summary.exit is None or summary.cut_short or summary.left or summary.escaped:
        return False
    own = f"p:{init.params[0].name}"
    kept = (path for value in summary.exit.sym.values() if not value.is_only(DATA | NONE) for path in value.syms)
    return all(path.root == own for path in kept)


__all__ = ["is_private"]
