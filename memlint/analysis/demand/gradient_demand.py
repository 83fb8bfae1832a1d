"""Demand for gradients: whether the function, a caller or a backward needs the gradients of a model run."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.demand.graph_origins import leaves_beside
from memlint.analysis.demand.used_up_graphs import blindly_reached, decorator_trains, is_spent
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import CallRecord, ModelRun
from memlint.analysis.domain.summary.observations import MAX_CALLERS_UP
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER, TENSORS, UNKNOWN, Path, Source, Sources
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import names_read
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    bodies,
    calls,
    calls_backward,
    expressions,
    is_false,
    is_true,
    last_name,
    parts_of,
    statement_at,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.held_values import places_with, tensors_within, variables_with
from memlint.analysis.transfer.library.forward_hooks import is_hooked
from memlint.analysis.transfer.modules.flags import reached_with
from memlint.analysis.transfer.modules.touched_parameters import of_networks, of_other_networks
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: the gradients are needed while the model runs; the graph need not be needed afterwards
ENABLED = "grad mode is switched on"
REQUIRES = "an input requires grad"
ASKED = "gradients are asked for"
REACHED = "a backward() reaches it"
ITSELF = "the model differentiates by itself"
CLEARED = "gradients are cleared, so some code that is called makes them"
#: calls after which autograd records for certain
_RECORDING = frozenset({"requires_grad_", "enable_grad", "set_grad_enabled"})


def reason_gradients_needed(analyser: Analyser, summary: Summary, run: ModelRun) -> str:
    """Why the gradients of a run are needed, as a clause; "" if nothing is known to need them."""
    why = asked_for(summary)
    if why == CLEARED and is_spent(analyser, summary, run):
        why = ""  # only numbers remain of this run, so other code makes the gradients
    if why in (REQUIRES, ASKED) and is_spent(analyser, summary, run):
        others = of_other_networks(summary.function.body, run.text)
        why = asked_for(summary, others, leaves_beside(summary, run))
    why = why or (ITSELF if _differentiates_inside(analyser, summary, run) else "")
    if why:
        return why
    callee = run.origin
    spent = callee is not None and is_spent(analyser, summary, run)  # other callers of the helper do not matter then
    while callee is not None:  # a callee, at any depth, may need the gradients of its own run
        inner, origin = callee
        inside = origin.marks
        if inside & inner.notes.returned and decorator_trains(analyser, inner.function):
            return REACHED
        why = asked_for(inner)
        if not why and not spent:
            why = _reached(analyser, inner, inside, MAX_CALLERS_UP)
        if why:
            return why
        callee = origin.origin
    for caller, record in analyser.facts.calls_of(summary.function):
        takes_tensors = any(value.may_be(TENSORS | CONTAINER | UNKNOWN) for value in record.args.values())
        if takes_tensors and caller is not summary and asked_for(caller, of_networks(caller.function.body)) == REQUIRES:
            return REQUIRES  # the input that requires grad may be an argument of this function
    marks = run.marks
    if marks & summary.notes.returned and decorator_trains(analyser, summary.function):
        return REACHED
    if _may_train_by_hooks(analyser, summary, run):
        return REACHED
    if trains_by_closure(analyser, summary, marks) or _trains_unresolved_object(summary, run, marks):
        return REACHED
    return _reached(analyser, summary, marks, 0)


def _may_train_by_hooks(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a model runs for its hooks, as nothing uses the output, and their values may form the loss of a backward:
    one in the function, or one after its call in a caller."""
    if run.marks & (summary.used | summary.escaped | summary.notes.returned):
        return False
    around = analyser.facts.calls_of(summary.function)
    trains = bool(summary.backwards) or any(_trains_after(caller, made.at) for caller, made in around)
    return trains and is_hooked(analyser, summary, run)


def _trains_after(summary: Summary, at: int) -> bool:
    """Whether a function runs a backward in the statement of a call, or in one below it."""
    body = summary.function.body
    made = statement_at(body, at)
    places = [one.site.at for one in summary.backwards]
    places += [call.at for call in calls(body) if last_name(call.func) == "backward"]
    return made is not None and any(place >= made.at for place in places)


def _differentiates_inside(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the call of the run differentiates: by a callee, by the model's own forward, or by a hook."""
    if run.site.at in summary.notes.gradient_calls or differentiates_itself(analyser, summary, run):
        return True
    return analyser.facts.hooks_differentiate and is_hooked(analyser, summary, run)


def _trains_unresolved_object(summary: Summary, run: ModelRun, marks: AbstractSet[Source]) -> bool:
    """Whether a backward in the same round differentiates an object of an unresolved class, and the graphs went into
    one: ``state.loss``."""
    for reached, loops, *_ in summary.backwards:
        if run.loops[: len(loops)] != loops or not _is_unresolved(summary, reached):
            continue
        if marks & (summary.left | summary.escaped) or _are_together(summary, reached, marks):
            return True
    return False


def _is_unresolved(summary: Summary, reached: Sources) -> bool:
    """Whether all graphs that a backward reaches are unknown except for that backward."""
    if any(isinstance(item, Path) for item in reached):
        return False
    nodes = summary.graphs.nodes_of(reached)
    return bool(nodes) and all(node.unknown for node in nodes)


def _are_together(summary: Summary, reached: Sources, marks: AbstractSet[Source]) -> bool:
    """Whether something was computed from both the graphs and the object: ``losses.add(loss)``."""
    nodes = reached & summary.graphs.nodes.keys()
    closures = map(summary.graphs.ancestry, summary.graphs.nodes)
    return any(nodes & closure and marks & closure for closure in closures)


def trained_by_callers(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the function returns the output of another model to callers that run a backward through it."""
    known = analyser.facts.trained
    if summary not in known:
        known[summary] = []
        for other in summary.runs.values():
            if other.node not in known[summary] and (_reached(analyser, summary, other.marks, 0) == REACHED):
                known[summary].append(other.node)
                if len(known[summary]) == 2:
                    break
    return any(node != run.node for node in known[summary])


def differentiates_itself(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the forward or the method that runs (``model.explain(x)``), or a callee of it, differentiates (forces are
    the gradient of an energy) or makes its inputs require grad. Under a guard it would raise. Constant arguments of the
    call decide the tests of the forward."""
    passed = {record.callee: record for record in summary.calls_at(run.site.at)}
    methods = [analyser.program.method(cls, run.method) for cls in analyser.classes(run.module)]
    keys = [method.key for method in methods if method is not None]
    if run.origin is None:
        keys += passed
    seen = set(keys)
    todo = []
    for key in dict.fromkeys(keys):
        given = (passed[key].args, passed[key].trains) if key in passed else ()
        todo.append((analyser.summary(analyser.function_at(key), *given), 0))
    while todo:
        inner, depth = todo.pop()
        if inner is None:
            continue
        if inner.notes.gradients or inner.backwards or requires_inputs(reached_with(inner)):
            return True
        for record in inner.calls.values() if depth < MAX_CALLERS_UP else ():
            if record.callee not in seen:
                seen.add(record.callee)
                todo.append((analyser.summary(analyser.function_at(record.callee)), depth + 1))
    return False


@kept
def requires_inputs(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body sets ``requires_grad`` of tensors, or enables grad mode itself, outside of branches for
    training."""
    for statement in body:
        if isinstance(statement, ir.If) and _of_training(statement.test):
            continue
        targets = statement.targets if isinstance(statement, ir.Assign) and is_true(statement.value) else ()
        if "requires_grad" in map(last_name, targets):
            return True
        for part in parts_of(statement):
            name = last_name(part.func) if isinstance(part, ir.Call) else ""
            if isinstance(part, ir.Call) and name in _RECORDING and not (part.args and not is_true(part.args[0])):
                return True
        if any(requires_inputs(block) for block in bodies(statement)):
            return True
    return False


def _of_training(test: ir.Expr) -> bool:
    """Whether a test reads training mode, or activation checkpointing, which only training uses."""
    names = (last_name(part) for part in walk_expression(test))
    return any("training" in name or "checkpoint" in name for name in names)


def _reached(analyser: Analyser, summary: Summary, marks: AbstractSet[Source], depth: int) -> str:
    """Why a backward reaches these graphs: in this function, through an attribute, or in a caller to which they are
    returned. "" if no such backward is known."""
    known = analyser.facts.reached
    question = (summary, frozenset(marks), depth)
    if question not in known:  # functions that call each other have many paths to the same query
        known[question] = _reached_by(analyser, summary, marks, depth)
    return known[question]


def _reached_by(analyser: Analyser, summary: Summary, marks: AbstractSet[Source], depth: int) -> str:
    if any(marks & reached for reached, *_ in summary.backwards):
        return REACHED
    if blindly_reached(summary, marks):
        return "a backward() of unknown origin is called"
    own = f"p:{summary.function.own_name}"
    stored = summary.exit.sym.items() if summary.exit is not None else ()
    held = places_with(summary, summary.exit, marks)
    if any(path.steps and path.root == own and analyser.facts.in_backward(path.steps) for path in held):
        return "a backward() of another method reaches it"
    if any(
        path.root.startswith(("c:", "g:"))
        and marks & summary.graphs.closure(value.src)
        and analyser.facts.variable_in_backward(summary, path)
        for path, value in stored
    ):
        return "a backward() of another function reaches it"
    if depth >= MAX_CALLERS_UP:
        return ""
    places = [path for path, value in stored if _is_given(path, own) and marks & summary.graphs.closure(value.src)]
    yielded = _yields(summary, marks)
    if yielded and summary.function.name == "__iter__":
        return "an iteration over the object returns it"
    returned = yielded or bool(marks & summary.notes.returned)
    if not returned and not places:
        return ""
    for caller, record in analyser.facts.calls_of(summary.function):
        if caller is summary:
            continue
        if caller.notes.unknown_gradients and returned:
            return "autograd.grad is called"
        inner = set(record.result.src) if returned else set()
        if caller.exit is not None:
            inner |= tensors_within(caller, caller.exit, record.result).src if returned else frozenset()
            for path in places:
                inner |= _held(caller, caller.exit, record, path)
        why = _reached(analyser, caller, inner, depth + 1) if inner else ""
        if why:
            return why
    return ""


def _yields(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a generator yields these graphs."""
    yielded = (tensors_within(summary, state, value).src for value, state in summary.yields)
    return any(marks & summary.graphs.closure(src) for src in yielded)


def _is_given(path: Source, own: str) -> bool:
    """Whether a place is a global, or is inside an argument: ``outputs["disp"]`` with a parameter ``outputs``."""
    if isinstance(path, Path) and path.root.startswith("g:"):
        return True
    return isinstance(path, Path) and bool(path.steps) and path.root.startswith("p:") and path.root != own


def _held(caller: Summary, state: State, record: CallRecord, path: Path) -> Sources:
    """The graph sources in a place of the caller that the callee filled: a place in an argument, or a global."""
    if path.root.startswith("g:"):
        return tensors_within(caller, state, state.sym[path]).src if path in state.sym else frozenset()
    value = record.args.get(path.root[2:])
    if value is None:
        return frozenset()
    found: set[Source] = set()
    for _, obj in state.objects(value):
        held = obj.fields.get(path.steps[0].strip(".[]"), obj.elem)
        found |= tensors_within(caller, state, held).src
    for sym in value.syms:
        inner = state.sym.get(sym.then(path.steps[0]))
        if inner is not None:
            found |= tensors_within(caller, state, inner).src
    return frozenset(found)


def asked_for(summary: Summary, others: frozenset[int] = frozenset(), leaves: frozenset[int] = frozenset()) -> str:
    """How this function requests gradients or reads the graph: `autograd.grad`, ``requires_grad``, saliency, an
    optimizer step, a drawing of the graph. "" if it does not. ``others``: mentions of other networks' parameters, which
    do not count. ``leaves``: the ordinals at which leaves are made that do not count either."""
    if summary.notes.unknown_gradients:
        return "autograd.grad is called"
    if "grad_fn" in summary.function.names:
        return "its graph is read"
    cleared = False
    for at, base, why in _asking(summary.function.body):
        if why == CLEARED:
            cleared = cleared or (not summary.backwards and not calls_backward(summary.function.body))
        elif at not in leaves and id(base) not in others:
            return why
    return CLEARED if cleared else ""


@kept
def _asking(body: tuple[ir.Stmt, ...]) -> tuple[tuple[int, ir.Expr | None, str], ...]:
    """The expressions of a body that request gradients, in source order: the ordinal, whose gradients (``x`` in
    ``x.grad``; None where it is not told), and the kind of request."""
    found: list[tuple[int, ir.Expr | None, str]] = []
    for statement in walk_statements(body):
        if isinstance(statement, ir.Assign) and is_true(statement.value):
            targets = (one for one in statement.targets if isinstance(one, ir.Attr) and one.name == "requires_grad")
            found += [(target.at, target.value, REQUIRES) for target in targets]
        for part in parts_of(statement):
            if isinstance(part, ir.Call):
                found += _asks(part)
    return tuple(found)


def _asks(call: ir.Call) -> Iterator[tuple[int, ir.Expr | None, str]]:
    name = last_name(call.func)
    if name == "zero_grad":
        yield call.at, None, CLEARED
    if name in ("requires_grad_", "enable_grad") and not (call.args and is_false(call.args[0])):
        yield call.at, call.func.value if isinstance(call.func, ir.Attr) else None, ASKED
        return
    if name == "set_grad_enabled" and call.args and is_true(call.args[0]):
        yield call.at, None, ENABLED
    if any(word.name == "volatile" and is_true(word.value) for word in call.keywords):
        yield call.at, None, "its inputs are volatile: in the PyTorch that it is written for, nothing is recorded"
    if any(word.name == "requires_grad" and is_true(word.value) for word in call.keywords):
        yield call.at, None, REQUIRES


#: depth of calls in which a backward is searched
MAX_CALLS_DOWN = 1


def trains_by_closure(analyser: Analyser, summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether a closure that reads these graphs is passed to a call, and a backward runs in the callee or in this
    function."""
    handed = _handed(summary.function)
    if not handed or summary.exit is None:
        return False
    holders = {*variables_with(summary, summary.exit, marks)}
    here = calls_backward(summary.function.body)
    return any(holders & names and (here or _runs_backward(analyser, summary, call.at)) for call, names in handed)


def _runs_backward(analyser: Analyser, summary: Summary, at: int, depth: int = 0) -> bool:
    """Whether a project function that the call at ``at`` runs calls a backward, directly or through its calls."""
    for record in summary.calls.values():
        function = analyser.function_at(record.callee) if record.at == at or depth else None
        if function is None:
            continue
        if calls_backward(function.body):
            return True
        inner = analyser.summary(function) if depth < MAX_CALLS_DOWN else None
        if inner is not None and _runs_backward(analyser, inner, at, depth + 1):
            return True
    return False


@kept
def _handed(function: Function) -> tuple[tuple[ir.Call, frozenset[str]], ...]:
    """The calls of a function that get one of its closures, each with the names that the closure reads."""
    statements = list(walk_statements(function.body))
    inner = {part.name: frozenset(_read(part)) for part in statements if isinstance(part, ir.FunctionDef)}
    return tuple(
        (part, names)
        for statement in statements
        for part in parts_of(statement)
        if isinstance(part, ir.Call)
        for argument in part.passed
        if (names := _names(argument, inner))
    )


def _names(argument: ir.Expr, inner: dict[str, frozenset[str]]) -> frozenset[str]:
    if isinstance(argument, ir.Lambda):
        return names_read(argument.body)
    return inner.get(argument.id, frozenset()) if isinstance(argument, ir.Name) else frozenset()


def _read(part: ir.FunctionDef) -> Iterator[str]:
    for statement in walk_statements(part.body):
        for expr in expressions(statement):
            yield from names_read(expr)
