"""Transfer functions of statements, and the interpretation of one function's body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlint.analysis.domain.branches import join_branches, stand_in
from memlint.analysis.domain.path_correlation import meet, only_recorded, recall, switch_of
from memlint.analysis.domain.state import OFF, ON, State, join_states
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    DATA,
    EMPTY,
    NONE_VALUE,
    NOTHING,
    TENSORS,
    UNKNOWN,
    UNKNOWN_VALUE,
    Sources,
    V,
    join,
    ordered,
)
from memlint.analysis.syntax.bindings import names_read
from memlint.analysis.syntax.control_flow import EXITS
from memlint.analysis.syntax.syntax import calls, dotted, expressions, last_name, walk_statements
from memlint.analysis.transfer import loop_fixpoint
from memlint.analysis.transfer.assignment import assign, delete
from memlint.analysis.transfer.evaluate import evaluate
from memlint.analysis.transfer.heap import element
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules import inert_guards
from memlint.analysis.transfer.modules.flags import truth, usual_side
from memlint.analysis.transfer.modules.guards import entered_grad
from memlint.analysis.transfer.modules.modes import settle_mode
from memlint.analysis.transfer.narrowing import (
    asked_member,
    broken_number,
    last_case,
    leaves_numbers,
    narrow,
    narrow_to_number,
    narrow_to_raised,
)
from memlint.analysis.transfer.operators import augmented
from memlint.analysis.transfer.stores.left_rounds import note_left_round
from memlint.analysis.transfer.stores.step_outputs import note_output
from memlint.analysis.transfer.stores.stores import end_iteration
from memlint.ir import nodes as ir


def run(frame: FunctionState, state: State, *, backward: bool = False) -> None:
    """Interpret the function's body from ``state``; the function state keeps its effects.

    ``backward``: a framework calls backward() on what the function returns.
    """
    end = block(frame, state, frame.function.body)
    if end is not None:
        frame.returns.append((NONE_VALUE, end, frame.graphs.clock))
    frame.returns = frame.returns or frame.given_up
    result, final = NOTHING, None
    for value, at, _ in frame.returns:
        result = join(result, value)
        final = join_states(final, at)
    if final is not None and len(frame.returns) > 1:
        final.freed_must = _freed_wherever_made(frame)
    for _, at in frame.yields:
        final = join_states(final, at)
    frame.result = result
    frame.exit = final
    frame.stays = frame.stays if final is None else None
    frame.graphs.settle()
    if final is not None:
        if backward:
            frame.backward(final, _loss_of(frame, final, result), 0)
            frame.graphs.settle()
        end_iteration(frame, final, None)
    frame.close()


def _freed_wherever_made(frame: FunctionState) -> Sources:
    """The graphs that a backward has freed on every path that built them: a path that returns before they are built
    counts for nothing."""
    freed = EMPTY.union(*(at.freed_must for _, at, _ in frame.returns))
    for _, at, clock in frame.returns:
        freed &= at.freed_must | frame.graphs.made_between(freed, clock, frame.graphs.clock)
    return freed


def _loss_of(frame: FunctionState, state: State, result: V) -> V:
    """What a framework calls backward() on: the returned tensor, or the member ``loss`` of a returned dict."""
    for key in ordered(result.objs):
        obj = state.heap.get(key)
        if obj is not None and "loss" in obj.fields:
            return tensors_within(frame, state, obj.fields["loss"])
    return tensors_within(frame, state, result)


def block(frame: FunctionState, state: State | None, body: tuple[ir.Stmt, ...]) -> State | None:
    """The state after the statements; None where no path reaches their end."""
    for statement in body:
        if state is None:
            return None
        frame.statement = statement
        frame.spend(frame.graphs.take_work() // 16)
        state = _DISPATCH[type(statement)](frame, state, statement)
    return state


# -------------------------------------------------------------------------------------- simple statements


def _assign(frame: FunctionState, state: State, statement: ir.Assign) -> State:
    value = evaluate(frame, state, statement.value)
    frame.notes.note_kinds(statement.value, value)
    for target in statement.targets:
        assign(frame, state, target, value, statement)
    return state


def _annassign(frame: FunctionState, state: State, statement: ir.AnnAssign) -> State:
    if statement.value is None:
        return state
    value = evaluate(frame, state, statement.value)
    if value.kinds & (UNKNOWN | TENSORS):
        known = frame.analyser.annotated(frame.module, statement.annotation)
        if known is not None and known.is_plain() and frame.graphs.attached(value.src, lambda _: None)[0] != "yes":
            value = known
        elif known is not None and value.kinds & UNKNOWN:
            value = value.but(kinds=value.kinds & ~UNKNOWN | known.kinds, refs=value.refs | known.refs)
    assign(frame, state, statement.target, value, statement)
    return state


def _expression(frame: FunctionState, state: State, statement: ir.ExprStmt) -> State | None:
    inert_guards.note_dropped(frame, state, statement, evaluate(frame, state, statement.value))
    exits = EXITS.get(_qualified_exit(frame, statement.value)) if isinstance(statement.value, ir.Call) else None
    if exits is None:
        return state
    if exits == "raises":
        _note_raised(frame, state)
    return None


def _qualified_exit(frame: FunctionState, call: ir.Call) -> str:
    """The full name of a callee outside the project, as ``EXITS`` lists it; "" for a function of the project."""
    name = dotted(call.func)
    if not isinstance(call.func, ir.Name) and name.partition(".")[0] not in ("sys", "os"):
        return ""
    kind, what = frame.analyser.program.find_expression(frame.module, call.func, frame.function)
    return str(what) if kind == "ext" else name if kind == "none" and name in ("exit", "quit") else ""


def _return(frame: FunctionState, state: State, statement: ir.Return) -> None:
    value = evaluate(frame, state, statement.value) if statement.value is not None else NONE_VALUE
    inner = tensors_within(frame, state, value)
    frame.notes.returned.update(frame.graphs.closure(inner.src))
    frame.notes.returned.update(("elem", key) for key in value.objs)
    note_output(frame, state, value, statement)
    if any(ref.kind == "func" for ref in value.refs):
        # a closure keeps the variables that it reads
        read = _names_read(frame, value)
        for name, held in state.env.items():
            frame.notes.returned.update(("elem", key) for key in held.objs)
            if held.src and name in read:
                frame.notes.returned.update(frame.graphs.closure(held.src))
    # a step that is abandoned because its loss is not finite counts like one that raises
    rare = any(broken_number(test) for test in frame.tests)
    (frame.given_up if rare else frame.returns).append((value, state, frame.graphs.clock))


def _names_read(frame: FunctionState, closure: V) -> set[str]:
    """The names that the bodies of a returned function read."""
    functions = (frame.analyser.function(ref) for ref in closure.refs if ref.kind == "func")
    return {
        name
        for function in functions
        if function is not None
        for inner in walk_statements(function.body)
        for expr in expressions(inner)
        for name in names_read(expr)
    }


def _raise(frame: FunctionState, state: State, statement: ir.Raise) -> None:
    if statement.exc is not None:
        evaluate(frame, state, statement.exc)
    _note_raised(frame, state)


def _note_raised(frame: FunctionState, state: State) -> None:
    for handler in frame.handlers[-1:]:
        handler.append(state)


def _assert(frame: FunctionState, state: State, statement: ir.Assert) -> State | None:
    evaluate(frame, state, statement.test)
    if isinstance(statement.test, ir.Const) and statement.test.value in (False, 0):  # ``assert False, "unknown"``
        _note_raised(frame, state)
        return None
    narrow(frame, state, statement.test, True)
    return state


def _define(frame: FunctionState, state: State, statement: ir.FunctionDef | ir.ClassDef) -> State:
    if isinstance(statement, ir.ClassDef):
        value = frame.analyser.local_class(frame, statement)
    else:
        value = frame.analyser.local_function(frame, state, statement)
    if statement.name in frame.function.locals:
        state.env[statement.name] = value
    return state


def _import(frame: FunctionState, state: State, statement: ir.Import | ir.ImportFrom) -> State:
    for alias in statement.names:
        name = alias.asname or (alias.name.split(".", 1)[0] if isinstance(statement, ir.Import) else alias.name)
        found = frame.analyser.program._imported(frame.module, statement, name, 0)
        if found[0] != "none" and name != "*":
            state.env[name] = frame.analyser.global_value(*found, frame=frame)
        else:
            state.env[name] = UNKNOWN_VALUE
    return state


def _pass(frame: FunctionState, state: State, statement: ir.Stmt) -> State:
    return state


def _jump(frame: FunctionState, state: State, statement: ir.Jump) -> State | None:
    """None where the path leaves the round, whose state the loop keeps; the state where there is no loop."""
    if statement.kind == "pass" or not frame.loops:
        return state
    target = next((loop for loop in reversed(frame.loops) if loop.body), None)
    if target is not None and statement.kind == "continue":
        note_left_round(frame, state, statement, target)
    if any(broken_number(test) for test in frame.tests[-1:]):
        return None
    if target is None:
        return state
    (target.breaks if statement.kind == "break" else target.continues).append(state)
    return None


# -------------------------------------------------------------------------------------- blocks


def _if(frame: FunctionState, state: State, statement: ir.If) -> State | None:
    test = evaluate(frame, state, statement.test)
    constant = test.const if isinstance(test.const, bool) else truth(frame, state, statement.test)
    other = frame.fork(state)
    recall(frame, state, statement.test, True)
    recall(frame, other, statement.test, False)
    narrow(frame, state, statement.test, True)
    narrow(frame, other, statement.test, False)
    settle_mode(frame, other, statement)
    if statement.body and isinstance(statement.body[-1], ir.Return):
        narrow_to_number(state, statement.test)
    if constant is not None:
        left_out = statement.orelse if constant else statement.body
        frame.notes.skipped.update(last_name(call.func) for call in calls(left_out))
    frame.tests.append(statement.test)
    start = frame.graphs.clock
    end = block(frame, state, statement.body) if constant is not False else None
    middle = frame.graphs.clock
    frame.tests[-1] = ir.Unary(statement.test.at, "not", statement.test)
    frame.no_tensors.append(asked_member(statement.test, statement.orelse))
    orelse = block(frame, other, statement.orelse) if constant is not True else None
    frame.no_tensors.pop()
    frame.tests.pop()
    if not statement.orelse and (last_case(frame.tests, statement.test) or leaves_numbers(frame, other, statement)):
        return end
    joined = join_branches(frame, [(end, start, middle), (orelse, middle, frame.graphs.clock)])
    if joined is not None and end is not None and orelse is not None and end.freed_must != orelse.freed_must:
        side = usual_side(frame, state, statement.test)
        if side is not None:  # the flag is never set, so only its usual branch counts
            joined.freed_must |= (end if side else orelse).freed_must
    if joined is not None:
        only_recorded(frame, statement, end, orelse, joined)
    meet(frame, statement, end, orelse, joined)
    return joined


def _with(frame: FunctionState, state: State, statement: ir.With) -> State | None:
    """The state after a with block, whose grad mode is restored."""
    before = state.grad
    # an ExitStack leaves the contexts that were entered in its block, which may set the grad mode
    entered = (item.context for item in statement.items)
    changed = any(isinstance(one, ir.Call) and last_name(one.func) == "ExitStack" for one in entered)
    flag: ir.Expr | None = None
    for item in statement.items:
        grad, value = entered_grad(frame, state, item.context)
        if grad is not None:
            inert_guards.note_block(frame, statement, state.grad, grad)
            state.grad = grad
            changed = True
            if grad == ON | OFF:
                flag = switch_of(item.context) or flag
        if item.target is not None:
            assign(frame, state, item.target, value, None)
    outer_returns = len(frame.returns)
    flag = flag if state.grad == ON | OFF else None
    if flag is not None:
        frame.recorded_if[statement.at] = (flag, frame.graphs.clock, None)
    end = block(frame, state, statement.body)
    if flag is not None:
        frame.recorded_if[statement.at] = (flag, frame.recorded_if[statement.at][1], frame.graphs.clock)
    if changed:
        if end is not None:
            end.grad = before
        for _, at, _ in frame.returns[outer_returns:]:
            at.grad = before
        for loop in frame.loops:
            for one in (*loop.breaks, *loop.continues):
                if one is not end:
                    one.grad = before
    return end


def _try(frame: FunctionState, state: State, statement: ir.Try) -> State | None:
    """The state after a try statement: the join over its body and its handlers."""
    before = frame.fork(state)
    raised: list[State] = []
    frame.handlers.append(raised)
    end = block(frame, state, statement.body)
    frame.handlers.pop()
    # an exception may be raised anywhere in the body: what the body binds may or may not be bound
    start = before
    if end is not None:
        start = join_states(before, end.copy()) or before
    for one in raised:
        start = join_states(start, one) or start
    start.grad = before.grad
    ends = [block(frame, end, statement.orelse)]
    for handler in statement.handlers:
        inner = frame.fork(start)
        if handler.name:
            inner.env[handler.name] = V(DATA)
        narrow_to_raised(inner, statement.body, handler)
        last = block(frame, inner, handler.body)
        if last is not None and end is not None and _catches_all(handler):
            stand_in(before, end, last)
        ends.append(last)
    result: State | None = None
    for way_out in ends:
        result = join_states(result, way_out)
    if result is None and statement.final:
        block(frame, start.copy(), statement.final)
        return None
    return block(frame, result, statement.final) if result is not None else None


def _catches_all(handler: ir.Handler) -> bool:
    """Whether an except clause catches every ordinary exception."""
    return handler.type is None or last_name(handler.type) in ("Exception", "BaseException")


def _match(frame: FunctionState, state: State, statement: ir.Match) -> State | None:
    subject = evaluate(frame, state, statement.subject)
    last = statement.cases[-1]
    catches_all = not last.values and last.guard is None and len(last.captures) <= 1
    start = frame.graphs.clock
    ends: list[tuple[State | None, int, int]] = [] if catches_all else [(frame.fork(state), start, start)]
    for case in statement.cases:
        inner = frame.fork(state)
        begin = frame.graphs.clock
        for value in case.values:
            evaluate(frame, inner, value)
        for name in case.captures:
            inner.env[name] = element(frame, inner, subject)
        if case.guard is not None:
            evaluate(frame, inner, case.guard)
        ends.append((block(frame, inner, case.body), begin, frame.graphs.clock))
    return join_branches(frame, ends)


_DISPATCH: dict[type, Callable[[FunctionState, State, Any], State | None]] = {
    ir.Assign: _assign,
    ir.AnnAssign: _annassign,
    ir.AugAssign: augmented,
    ir.ExprStmt: _expression,
    ir.Return: _return,
    ir.Raise: _raise,
    ir.Delete: delete,
    ir.Assert: _assert,
    ir.FunctionDef: _define,
    ir.ClassDef: _define,
    ir.Import: _import,
    ir.ImportFrom: _import,
    ir.Scope: _pass,
    ir.Jump: _jump,
    ir.If: _if,
    ir.For: loop_fixpoint.for_loop,
    ir.While: loop_fixpoint.while_loop,
    ir.With: _with,
    ir.Try: _try,
    ir.Match: _match,
}
