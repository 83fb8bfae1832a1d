"""Model runs lifted to the caller: those that a callee makes under its caller's grad mode, and those of a module that
the caller hands to a callee which calls it."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.calls.translation import MAX_RUN_DEPTH, Translation
from memlint.analysis.domain.events import Step
from memlint.analysis.domain.recorded_modes import mode_of
from memlint.analysis.domain.state import AMBIENT, OFF
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import INSTANCE, MODULE, UNKNOWN, Path, V, join_all
from memlint.analysis.index.bases import may_be_layer
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import (
    call_at,
    calls,
    dotted,
    is_name,
    is_none,
    parts,
    statement_at,
    walk_statements,
)
from memlint.analysis.transfer.modules.guards import is_guard
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.analysis.transfer.stores.collected import gives_no_graph
from memlint.ir import nodes as ir

#: the most model runs of one call that are lifted to the caller
MAX_RUNS = 4


def lift_runs(work: Translation) -> None:
    """Record the runs of a call's callee in the caller, unless the callee sets the model's mode itself."""
    fn, state, callee, expr = work.fn, work.state, work.callee, work.expr
    if state.grad == OFF or expr is None or may_be_layer(fn.analyser.program, callee.function):
        return
    if callee.function.is_generator:
        return
    count = 0
    for run in [*callee.runs.values(), *_of_given_modules(work)]:
        if run.mode_key is not None or not run.grad & AMBIENT or run.depth >= MAX_RUN_DEPTH or count >= MAX_RUNS:
            continue
        module = join_all(_seen(work, path) for path in run.module.syms if isinstance(path, Path))
        if frozen_of(fn, state, module, None):
            continue
        nodes = work.source(run.node)
        if not nodes or gives_no_graph(callee, run) or _guards_another_call(callee, run.text):
            continue
        count += 1
        mode, key = mode_of(state, module, None)
        fn.runs[work.key, run.key] = ModelRun(
            (work.key, run.key),
            fn.site(work.at),
            run.text,
            module,
            fn.loop_ids,
            state.grad,
            mode,
            V(UNKNOWN, nodes),
            next(iter(nodes)),
            (Step(run.site, f"calls `{run.called}`" if run.called else f"where `{run.text}` runs"), *run.trace),
            loop=fn.innermost(()),
            depth=run.depth + 1,
            mode_key=key,
            origin=(callee, run),
            called=text(expr.func),
        )


def _of_given_modules(work: Translation) -> Iterator[ModelRun]:
    """The runs of networks that this call hands to a callee which calls the parameter (``def logits(x, f): return
    f(x)``). The callee records none: other calls may hand it any function."""
    called = _called_parameters(work.callee.function)
    known = {run.node for run in work.callee.runs.values()} if called else set()
    for key, node in work.callee.graphs.nodes.items() if called else ():
        path = node.callee
        if path is None or path.steps or not (node.unknown and node.ambient) or key in known:
            continue
        if path.root != f"p:{called.get(node.at)}":
            continue
        module = work.resolve(path)
        if not module.is_only(MODULE | INSTANCE) or not _has_layers(work, module):
            continue
        yield ModelRun(
            ("given", key),
            work.callee.site(node.at),
            path.root.removeprefix("p:"),
            V(MODULE, syms=frozenset((path,))),
            node.loops,
            AMBIENT,
            None,
            V(UNKNOWN, frozenset((key,))),
            key,
        )


@kept_for
def _called_parameters(function: Function) -> dict[int, str]:
    """By call, the parameter that it calls, where it does so for any module; see `_comes_to`."""
    if function.decorators:
        return {}  # an unresolved decorator may set a guard
    names = {param.name for param in function.given}
    made = (call for call in calls(function.body) if isinstance(call.func, ir.Name) and call.func.id in names)
    return {call.at: dotted(call.func) for call in made if _comes_to(function, dotted(call.func), call.at)}


def _has_layers(work: Translation, module: V) -> bool:
    """Whether a module has layers that record in the caller's grad mode: the forwards of its classes run some. If the
    module has a mode, which nobody sets of a loss, unresolved parts count, and classes outside the project."""
    analyser = work.fn.analyser
    moded = mode_of(work.state, module, None)[0] is not None
    classes = [analyser.cls(ref) for ref in module.refs if ref.kind == "instance"]
    if not classes:
        return moded
    forwards = [analyser.program.method(cls, "forward") for cls in classes if cls is not None]
    inner = [analyser.summary(one) for one in forwards if one is not None]
    return len(inner) == len(module.refs) and all(one is not None and _records(one, moded) for one in inner)


def _records(forward: Summary, parts: bool) -> bool:
    """Whether a forward runs layers in its caller's grad mode. ``parts``: unresolved parts of its module count."""
    if any(run.grad & AMBIENT for run in forward.runs.values()):
        return True
    own = f"p:{forward.function.own_name}"
    called = (node.callee for node in forward.graphs.nodes.values() if node.unknown and node.ambient)
    return parts and any(path is not None and path.root == own for path in called)


def _comes_to(function: Function, name: str, at: int) -> bool:
    """Whether a call of a parameter, whose result is used, is made where the parameter is a module: no test of the
    parameter that may fail for one leads to the call or past it."""
    if (statement := statement_at(function.body, at)) is None or isinstance(statement, ir.ExprStmt):
        return False  # it runs for its hooks, to ask for shapes
    for statement in walk_statements(function.body):
        if isinstance(statement, ir.If) and mentions(statement.test, name):
            taken = _for_a_module(statement.test, name)
            ways = [statement.body] * (taken is not False) + [statement.orelse] * (taken is not True)
            if any(call_at(way, at) is not None for way in (statement.body, statement.orelse)):
                if taken is None or call_at(ways[0], at) is None:
                    return False
            elif any(isinstance(one, ir.Return | ir.Jump | ir.Raise) for way in ways for one in walk_statements(way)):
                return False
    choices = (part for part in parts(function.body) if isinstance(part, ir.IfExp) and mentions(part.test, name))
    return all(_for_a_module(one.test, name) is True for one in choices)


def _for_a_module(test: ir.Expr, name: str) -> bool | None:
    """The value of a test of a parameter, if it holds a module; None if that depends on the module."""
    if isinstance(test, ir.Unary) and test.op == "not":
        inner = _for_a_module(test.operand, name)
        return None if inner is None else not inner
    if is_name(test, name):
        return True
    if isinstance(test, ir.Compare) and is_name(test.left, name) and len(test.ops) == 1 and is_none(test.rights[0]):
        return {"is": False, "is not": True}.get(test.ops[0])
    named = isinstance(test, ir.Call) and bool(test.args) and is_name(test.args[0], name)
    if named and isinstance(test, ir.Call) and dotted(test.func) == "callable":
        return True
    return None


def _guards_another_call(callee: Summary, name: str) -> bool:
    """Whether a function calls a parameter under a guard as well: something that it finds out, as whether the parameter
    is a module or trains, may select the guarded call."""
    function = callee.function
    if all(param.name != name for param in function.given):
        return False
    return any(
        isinstance(one, ir.With)
        and any(is_guard(callee, function, item.context) for item in one.items)
        and any(is_name(call.func, name) for call in calls(one.body))
        for one in walk_statements(function.body, into_definitions=False)
    )


def _seen(work: Translation, path: Path) -> V:
    value = work.resolve(path)
    return value if value.kinds else V(UNKNOWN)
