"""``create_graph=True`` where nothing differentiates the gradients, so that their graph is recorded in vain."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Loop
from memlint.sdk.project import Analyser, Function, Names, Summary, argument, is_test, touches_an_accelerator, used_up
from memlint.sdk.syntax import (
    calls,
    dotted,
    expressions,
    ir,
    is_true,
    last_name,
    loops_around,
    mentions,
    parts,
    statement_at,
    text,
    walk_expression,
    walk_statements,
)

from .brought_graphs import is_leaf
from .rule import KeptGraph

GRAD = "torch.autograd.grad"
_GRADS = frozenset({GRAD, "autograd.grad"})
#: methods and attributes whose result has no graph
_CUTS = frozenset({"detach", "data", "item", "tolist", "numpy"})
#: uses of ``p.grad`` that do not differentiate it
_HARMLESS = frozenset({"data", "detach", "detach_", "zero_", "item", "shape", "device", "dtype", "is_sparse"})


def recorded(analyser: Analyser, summary: Summary) -> Iterator[KeptGraph]:
    """The graphs of gradients that one function records in vain."""
    if is_test(summary.function):
        return
    for at, call in sorted(summary.notes.outside.items()):
        if call.name != GRAD:
            continue
        given = _literal(argument(call.expr, 4, "create_graph"))
        if given is None or at not in summary.graphs.nodes:
            continue
        cut = used_up(analyser, summary, {at}, of_gradients=True) and not (
            at in summary.notes.returned and _is_handed_on(analyser, summary.function)
        )
        flag = "" if cut else _flag(summary, call.expr)
        if flag is None:
            continue
        kept = argument(call.expr, 3, "retain_graph")
        yield KeptGraph(
            site=summary.site(given.at),  # such calls often span many lines
            function=summary.function.qual,
            kind="result",
            text=text(call.expr.func),
            word=summary.site(given.at),
            loop=call.loop.loop if call.loop is not None and touches_an_accelerator(analyser, summary) else None,
            flag=flag,
            kept=kept is not None and not (isinstance(kept, ir.Const) and kept.kind == "None"),
        )
    if "backward" in summary.function.names:
        yield from _of_parameters(analyser, summary)


def _is_handed_on(analyser: Analyser, function: Function) -> bool:
    """Whether the project mentions a function other than in a call: others may call it too."""
    for key in analyser.program.words.files(function.name):
        module = analyser.program.module(key)
        for body in module.bodies:
            called = {call.func.at for call in calls(body, into_definitions=True)}
            if any(last_name(part) == function.name and part.at not in called for part in parts(body, True)):
                return True
    return False


def _literal(given: ir.Expr | None) -> ir.Expr | None:
    return given if isinstance(given, ir.Const) and given.value is True else None


# -------------------------------------------------------------------------------------- a result that is cut by a flag


def _flag(summary: Summary, expr: ir.Call) -> str | None:
    """The flag parameter under which the result of a call is detached: ``tuple(g.detach() for g in grads) if detach
    else grads``. None if there is none."""
    statement = statement_at(summary.function.body, expr.at)
    if not isinstance(statement, ir.Assign) or len(statement.targets) != 1 or not _is_result(statement.value, expr):
        return None
    target = statement.targets[0]
    if isinstance(target, ir.Display) and len(target.elements) == 1:
        target = target.elements[0]
    if not isinstance(target, ir.Name):
        return None
    name = target.id
    if any(name in one.names for one in walk_statements(summary.function.body) if isinstance(one, ir.Scope)):
        return None
    later = (one for one in walk_statements(summary.function.body) if one.at > statement.at)
    others = [one for one in later if any(mentions(expr, name) for expr in expressions(one))]
    if not others or any(isinstance(one, ir.FunctionDef | ir.ClassDef) for one in others):
        return None
    first = others[0]
    if isinstance(first, ir.Return) and isinstance(first.value, ir.IfExp):
        choice = first.value
        return _asked(summary, choice.test) if _is_cut(choice.body, name) and not mentions(choice.test, name) else None
    if isinstance(first, ir.Assign):
        for block in walk_statements(summary.function.body):
            if isinstance(block, ir.If) and block.body == (first,) and _binds_cut(first, name):
                return _asked(summary, block.test)
    return None


def _is_result(value: ir.Expr, expr: ir.Call) -> bool:
    """Whether an expression is the call, or a member of its result."""
    while isinstance(value, ir.Subscript):
        value = value.value
    return value is expr


def _asked(summary: Summary, test: ir.Expr) -> str | None:
    """The parameter that a test tests; None for another test."""
    params = {param.name for param in summary.function.params}
    return test.id if isinstance(test, ir.Name) and test.id in params else None


def _binds_cut(statement: ir.Assign, name: str) -> bool:
    target = statement.targets[0]
    return len(statement.targets) == 1 and isinstance(target, ir.Name) and _is_cut(statement.value, name)


def _is_cut(value: ir.Expr, name: str) -> bool:
    """Whether each use of a name in an expression detaches it."""
    uses = sum(isinstance(part, ir.Name) and part.id == name for part in walk_expression(value))
    cut = 0
    for part in walk_expression(value):
        if isinstance(part, ir.Attr) and part.name in _CUTS:
            cut += _root(part.value) == name
        elif isinstance(part, ir.Comprehension) and len(part.fors) == 1:
            member, element = part.fors[0].target, part.element
            func = element.func if isinstance(element, ir.Call) else element
            if isinstance(func, ir.Attr) and func.name in _CUTS and _root(part.fors[0].iter) == name:
                cut += isinstance(member, ir.Name) and _root(func.value) == member.id
    return uses > 0 and cut == uses


def _root(expr: ir.Expr) -> str:
    while isinstance(expr, ir.Subscript):
        expr = expr.value
    return expr.id if isinstance(expr, ir.Name) else ""


# -------------------------------------------------------------------------------------- backward(create_graph=True)


def _of_parameters(analyser: Analyser, summary: Summary) -> Iterator[KeptGraph]:
    """``loss.backward(create_graph=True)`` where only an optimizer of torch reads the gradients, which needs no
    graph."""
    found = [
        (call, given)
        for call in calls(summary.function.body)
        if isinstance(call.func, ir.Attr) and call.func.name == "backward"
        for given in (_literal(next((word.value for word in call.keywords if word.name == "create_graph"), None)),)
        if given is not None and not any(word.name in (None, "inputs") for word in call.keywords)
    ]
    if not found:
        return
    of_inputs = list(_of_inputs(summary, found))
    yield from of_inputs
    if of_inputs or _reads_gradients(summary):
        return
    names = Names(analyser, summary)
    for call, given in found:
        loop = next(reversed(loops_around(summary.function.body, call.at)), None)
        body = loop.body if loop is not None else summary.function.body
        steps = [
            one for one in calls(body) if isinstance(one.func, ir.Attr) and one.func.name == "step" and one.at > call.at
        ]
        if not steps or not _is_of_torch(analyser, summary, names, steps[0]):
            continue
        between = [one for one in calls(body) if call.at < one.at < steps[0].at]
        if any(_may_differentiate(analyser, summary, one) for one in between):
            continue
        kept = summary.notes.rounds.get(("loop", loop.at)) if loop is not None else None
        yield _recorded(summary, call, given, "gradients", loop=kept.loop if kept is not None else None)


def _recorded(
    summary: Summary,
    call: ir.Call,
    given: ir.Expr,
    kind: Literal["gradients", "inputs"],
    *,
    alive: tuple[str, ...] = (),
    loop: Loop | None = None,
) -> KeptGraph:
    return KeptGraph(
        site=summary.site(call.at),
        function=summary.function.qual,
        kind=kind,
        text=text(call),
        word=summary.site(given.at),
        alive=alive,
        loop=loop,
    )


def _of_inputs(summary: Summary, found: list[tuple[ir.Call, ir.Expr]]) -> Iterator[KeptGraph]:
    """``out.backward(create_graph=True)`` where the function reads only the gradient of an input: the graphs of the
    parameters' gradients are recorded in vain."""
    body = summary.function.body
    own = {
        part.value.id
        for part in parts(body)
        if isinstance(part, ir.Attr) and part.name == "grad" and isinstance(part.value, ir.Name)
    } - {"autograd"}
    others = (part for part in parts(body) if isinstance(part, ir.Attr) and part.name == "grad")
    if len(own) != 1 or any(not isinstance(part.value, ir.Name) and dotted(part) not in _GRADS for part in others):
        return
    name = next(iter(own))
    if not summary.runs or not _is_made_leaf(body, name):
        return
    for call, given in found:
        yield _recorded(summary, call, given, "inputs", alive=(name,))


def _is_made_leaf(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether a body makes a variable a leaf: ``x.requires_grad = True``, ``x.requires_grad_()``, ``x = Variable(…,
    requires_grad=True)``."""
    if is_leaf(body, name):
        return True
    for statement in walk_statements(body, into_definitions=False):
        value = statement.value if isinstance(statement, ir.Assign) and text(statement.targets[0]) == name else None
        if isinstance(value, ir.Call):
            requires_grad = any(word.name == "requires_grad" and is_true(word.value) for word in value.keywords)
            if requires_grad or last_name(value.func) == "requires_grad_":
                return True
    return any(text(call.func) == f"{name}.requires_grad_" for call in calls(body))


def _reads_gradients(summary: Summary) -> bool:
    """Whether the file reads the gradients of parameters other than to clear or clip them."""
    for body in summary.module.bodies:
        harmless: set[int] = set()
        for statement in walk_statements(body):
            if isinstance(statement, ir.Assign):
                harmless |= {target.at for target in statement.targets}
        for part in parts(body, into_definitions=True):
            if isinstance(part, ir.Attr) and part.name in _HARMLESS:
                harmless |= _below(part.value)
            elif isinstance(part, ir.Compare) and part.ops in (("is",), ("is not",)):
                harmless.add(part.left.at)
            elif isinstance(part, ir.Attr) and part.name == "grad" and dotted(part) in _GRADS:
                harmless.add(part.at)
        for part in parts(body, into_definitions=True):
            if isinstance(part, ir.Attr) and part.name == "grad" and part.at not in harmless:
                return True
    return False


def _below(expr: ir.Expr) -> set[int]:
    """The parts of ``p.grad.norm()``, down to its first name, by identity."""
    found = set()
    while isinstance(expr, ir.Call | ir.Attr | ir.Subscript):
        found.add(expr.at)
        expr = expr.func if isinstance(expr, ir.Call) else expr.value
    return found


def _may_differentiate(analyser: Analyser, summary: Summary, call: ir.Call) -> bool:
    """Whether a call may differentiate the gradients of its arguments: one of a function that is not torch's."""
    if not call.args and not call.keywords:
        return False
    kind, what = analyser.program.find_expression(summary.module, call.func, summary.function)
    if kind == "ext":
        return not str(what).startswith(("torch.", "builtins."))
    if kind == "none":  # a builtin, a variable, or a method of one
        return isinstance(call.func, ir.Name) and not hasattr(builtins, call.func.id)
    return True


def _is_of_torch(analyser: Analyser, summary: Summary, names: Names, step: ir.Call) -> bool:
    """Whether a ``step`` is that of an optimizer of torch."""
    assert isinstance(step.func, ir.Attr)
    owner = step.func.value
    if isinstance(owner, ir.Name):
        return names.made_by(owner).startswith("torch.optim.")
    cls = summary.function.cls
    if cls is None or not isinstance(owner, ir.Attr) or dotted(owner.value) != "self":
        return False
    made: set[str] = set()
    for method in cls.methods.values():
        for statement in walk_statements(method.body):
            if isinstance(statement, ir.Assign) and any(text(target) == text(owner) for target in statement.targets):
                func = statement.value.func if isinstance(statement.value, ir.Call) else statement.value
                made.add(analyser.program.outside(method.module, func, method))
    return bool(made) and all(name.startswith("torch.optim.") for name in made)
