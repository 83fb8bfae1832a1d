"""Decorators: the grad mode in which they have a function run."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.function_state import FunctionState, resumed
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Ref, ordered
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import reads_any
from memlint.analysis.syntax.syntax import calls, walk_statements
from memlint.analysis.transfer.modules.guards import class_grad, grad_of_reference, is_guard
from memlint.ir import nodes as ir


def decorated_grad(summary: Summary, function: Function) -> int:
    """The grad mode in which a function's body runs, by its decorators; AMBIENT where they say nothing."""
    if not function.decorators:
        return AMBIENT
    state = State()
    # decorators do not see the names that the body binds
    if any(reads_any(item, function.locals) for item in function.decorators):
        summary = FunctionState(summary.analyser, function.around or function.module.main, summary.flags)
    for item in map(_chosen, function.decorators):
        call = item if isinstance(item, ir.Call) else None
        func = summary.interpreter.evaluate(resumed(summary), state, call.func if call is not None else item)
        grad = grad_of_reference(summary, state, func, call)
        if grad is not None and grad != AMBIENT:
            return grad
        for ref in ordered(func.refs):
            wrapped: int | None = None
            if ref.kind == "func":
                wrapped = _by_function(summary, ref)
            elif ref.kind == "class" and call is not None:  # a context manager that is a decorator, too
                cls = summary.analyser.cls(ref)
                wrapped = class_grad(summary, cls) if cls is not None else None
            if wrapped is not None:
                return wrapped
    return AMBIENT


def _chosen(decorator: ir.Expr) -> ir.Expr:
    """The decorator that a set flag chooses: ``torch.no_grad() if HAS_TORCH else (lambda f: f)``."""
    if not isinstance(decorator, ir.IfExp):
        return decorator
    denied = isinstance(decorator.test, ir.Unary) and decorator.test.op == "not"
    return decorator.orelse if denied else decorator.body


def _by_function(summary: Summary, ref: Ref) -> int | None:
    """The grad mode that a project's own decorator, or decorator factory, sets; None for unchanged."""
    decorator = summary.analyser.function(ref)
    if decorator is None or isinstance(decorator.node, ir.Lambda) or decorator.node is None:
        return None
    known = summary.analyser.wrappers
    key = (ref.key, ref.name)
    if key not in known:
        known[key] = _wrapper_grad(summary, decorator)
    return known[key]


def _wrapper_grad(summary: Summary, decorator: Function) -> int | None:
    """The grad mode in which a project's own decorator, or decorator factory, runs the function on some path; None
    for unchanged."""
    statements = list(walk_statements(decorator.body))
    inner = [statement for statement in statements if isinstance(statement, ir.FunctionDef)]
    names = {param.name for params in (decorator.params, *(each.params for each in inner)) for param in params}
    for statement in statements:
        around: tuple[ir.Expr, ...] = ()
        if isinstance(statement, ir.With):
            around = tuple(item.context for item in statement.items)
        elif isinstance(statement, ir.FunctionDef):
            around = statement.decorators
        grad = next((mode for one in around if (mode := _mode(summary, decorator, one)) is not None), None)
        wrapped = statement.body if grad is not None and isinstance(statement, ir.With | ir.FunctionDef) else ()
        if wrapped and "contextmanager" in decorator.decorator_names and isinstance(statement, ir.With):
            return grad  # ``@contextmanager`` makes a decorator, too
        if any(
            isinstance(part.func, ir.Name) and part.func.id in names for part in calls(wrapped, into_definitions=True)
        ):
            return grad
        for part in calls((statement,), into_definitions=True):
            handed = any(isinstance(arg, ir.Name) and arg.id in names for arg in part.args)
            mode = _mode(summary, decorator, part.func) if handed else None
            if mode is not None:
                return mode
    return None


def _mode(summary: Summary, decorator: Function, context: ir.Expr) -> int | None:
    """The grad mode of a guard in a decorator, for whatever flags; None for another expression."""
    if is_guard(summary, decorator, context):
        return OFF
    if not isinstance(context, ir.Call):
        return None
    kind, what = summary.analyser.program.find_expression(decorator.module, context.func, decorator)
    row = knowledge.function(str(what)) if kind == "ext" else None
    return ON | OFF if row is not None and row.context in ("argument", "off") else None
