"""Transfer functions of statements, and the interpretation of one function's body."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlint.analysis.domain.branches import join_branches, stand_in
from memlint.analysis.domain.declared_values import as_variable
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
    narrow_branches,
    narrow_to_number,
    narrow_to_raised,
)
from memlint.analysis.transfer.operators import augmented
from memlint.analysis.transfer.scope import imported
from memlint.analysis.transfer.stores.left_rounds import note_left_round
from memlint.analysis.transfer.stores.step_outputs import note_output
from memlint.analysis.transfer.stores.stores import end_iteration
from memlint.ir import nodes as ir


def run(fn: FunctionState, state: State, *, backward: bool = False) -> None:
    """Interpret the function's body from ``state``; the function state keeps its effects.

    ``backward``: a framework calls backward() on what the function returns.
    """
    end = block(fn, state, fn.function.body)
    if end is not None:
        fn.returns.append((NONE_VALUE, end, fn.graphs.clock))
    fn.returns = fn.returns or fn.given_up
    result, final = NOTHING, None
    for value, at, _ in fn.returns:
        result = join(result, value)
        final = join_states(final, at)
    if final is not None and len(fn.returns) > 1:
        final.freed_must = _freed_wherever_made(fn)
    for _, at in fn.yields:
        final = join_states(final, at)
    fn.result = result
    fn.exit = final
    fn.stays = fn.stays if final is None else None
    fn.graphs.settle()
    if final is not None:
        if backward:
            fn.backward(final, _loss_of(fn, final, result), 0)
            fn.graphs.settle()
        end_iteration(fn, final, None)
    fn.close()


def _freed_wherever_made(fn: FunctionState) -> Sources:
    """The graphs that a backward has freed on every path that built them: a path that returns before they are built
    counts for nothing."""
    freed = EMPTY.union(*(at.freed_must for _, at, _ in fn.returns))
    for _, at, clock in fn.returns:
        freed &= at.freed_must | fn.graphs.made_between(freed, clock, fn.graphs.clock)
    return freed


def _loss_of(fn: FunctionState, state: State, result: V) -> V:
    """What a framework calls backward() on: the returned tensor, or the member ``loss`` of a returned dict."""
    for _, obj in state.objects(result):
        if "loss" in obj.fields:
            return tensors_within(fn, state, obj.fields["loss"])
    return tensors_within(fn, state, result)


def block(fn: FunctionState, state: State | None, body: tuple[ir.Stmt, ...]) -> State | None:
    """The state after the statements; None where no path reaches their end."""
    for statement in body:
        if state is None:
            return None
        fn.statement = statement
        fn.spend(fn.graphs.take_work() // 16)
        state = _DISPATCH[type(statement)](fn, state, statement)
    return state


# -------------------------------------------------------------------------------------- simple statements


def _assign(fn: FunctionState, state: State, statement: ir.Assign) -> State:
    value = evaluate(fn, state, statement.value)
    fn.notes.note_kinds(statement.value, value)
    for target in statement.targets:
        assign(fn, state, target, as_variable(fn, target, value), statement)
    return state


def _annassign(fn: FunctionState, state: State, statement: ir.AnnAssign) -> State:
    if statement.value is None:
        return state
    value = evaluate(fn, state, statement.value)
    if value.kinds & (UNKNOWN | TENSORS):
        known = fn.analyser.annotated(fn.module, statement.annotation)
        if known is not None and known.is_plain() and fn.graphs.attached(value.src, lambda _: None)[0] != "yes":
            value = known
        elif known is not None and value.kinds & UNKNOWN:
            value = value.but(kinds=value.kinds & ~UNKNOWN | known.kinds, refs=value.refs | known.refs)
    assign(fn, state, statement.target, value, statement)
    return state


def _expression(fn: FunctionState, state: State, statement: ir.ExprStmt) -> State | None:
    inert_guards.note_dropped(fn, state, statement, evaluate(fn, state, statement.value))
    exits = EXITS.get(_qualified_exit(fn, statement.value)) if isinstance(statement.value, ir.Call) else None
    if exits is None:
        return state
    if exits == "raises":
        _note_raised(fn, state)
    return None


def _qualified_exit(fn: FunctionState, call: ir.Call) -> str:
    """The full name of a callee outside the project, as ``EXITS`` lists it; "" for a function of the project."""
    name = dotted(call.func)
    if not isinstance(call.func, ir.Name) and name.partition(".")[0] not in ("sys", "os"):
        return ""
    kind, what = fn.analyser.program.find_expression(fn.module, call.func, fn.function)
    return str(what) if kind == "ext" else name if kind == "none" and name in ("exit", "quit") else ""


def _return(fn: FunctionState, state: State, statement: ir.Return) -> None:
    value = evaluate(fn, state, statement.value) if statement.value is not None else NONE_VALUE
    inner = tensors_within(fn, state, value)
    fn.give_back(fn.graphs.closure(inner.src) | {("elem", key) for key in value.objs})
    note_output(fn, state, value, statement)
    if any(ref.kind == "func" for ref in value.refs):
        # a closure keeps the variables that it reads
        read = _names_read(fn, value)
        for name, held in state.env.items():
            fn.notes.returned.update(("elem", key) for key in held.objs)
            if held.src and name in read:
                fn.notes.returned.update(fn.graphs.closure(held.src))
    # a step that is abandoned because its loss is not finite counts like one that raises
    rare = any(broken_number(test) for test in fn.tests)
    (fn.given_up if rare else fn.returns).append((value, state, fn.graphs.clock))


def _names_read(fn: FunctionState, closure: V) -> set[str]:
    """The names that the bodies of a returned function read."""
    functions = (fn.analyser.function(ref) for ref in closure.refs if ref.kind == "func")
    return {
        name
        for function in functions
        if function is not None
        for inner in walk_statements(function.body)
        for expr in expressions(inner)
        for name in names_read(expr)
    }


def _raise(fn: FunctionState, state: State, statement: ir.Raise) -> None:
    if statement.exc is not None:
        evaluate(fn, state, statement.exc)
    _note_raised(fn, state)


def _note_raised(fn: FunctionState, state: State) -> None:
    for handler in fn.handlers[-1:]:
        handler.append(state)


def _assert(fn: FunctionState, state: State, statement: ir.Assert) -> State | None:
    evaluate(fn, state, statement.test)
    if isinstance(statement.test, ir.Const) and statement.test.value in (False, 0):  # ``assert False, "unknown"``
        _note_raised(fn, state)
        return None
    narrow(fn, state, statement.test, True)
    return state


def _define(fn: FunctionState, state: State, statement: ir.FunctionDef | ir.ClassDef) -> State:
    if isinstance(statement, ir.ClassDef):
        value = fn.analyser.local_class(fn, statement)
    else:
        value = fn.analyser.local_function(fn, statement)
    if statement.name in fn.function.locals:
        state.env[statement.name] = value
    return state


def _import(fn: FunctionState, state: State, statement: ir.Import | ir.ImportFrom) -> State:
    for alias in statement.names:
        name = alias.asname or (alias.name.split(".", 1)[0] if isinstance(statement, ir.Import) else alias.name)
        found = fn.analyser.program._imported(fn.module, statement, name, 0)
        if found[0] != "none" and name != "*":
            state.env[name] = imported(fn, name, *found)
        else:
            state.env[name] = UNKNOWN_VALUE
    return state


def _pass(fn: FunctionState, state: State, statement: ir.Stmt) -> State:
    return state


def _jump(fn: FunctionState, state: State, statement: ir.Jump) -> State | None:
    """None where the path leaves the round, whose state the loop keeps; the state where there is no loop."""
    if statement.kind == "pass" or not fn.loops:
        return state
    target = next((loop for loop in reversed(fn.loops) if loop.body), None)
    if target is not None and statement.kind == "continue":
        note_left_round(fn, state, statement, target)
    if any(broken_number(test) for test in fn.tests[-1:]):
        return None
    if target is None:
        return state
    (target.breaks if statement.kind == "break" else target.continues).append(state)
    return None


# -------------------------------------------------------------------------------------- blocks


def _if(fn: FunctionState, state: State, statement: ir.If) -> State | None:
    test = evaluate(fn, state, statement.test)
    constant = test.const if isinstance(test.const, bool) else truth(fn, state, statement.test)
    other = fn.fork(state)
    recall(fn, state, statement.test, True)
    recall(fn, other, statement.test, False)
    narrow_branches(fn, state, other, statement)
    settle_mode(fn, other, statement)
    if statement.body and isinstance(statement.body[-1], ir.Return):
        narrow_to_number(state, statement.test)
    if constant is not None:
        left_out = statement.orelse if constant else statement.body
        fn.notes.skipped.update(last_name(call.func) for call in calls(left_out))
    fn.tests.append(statement.test)
    start = fn.graphs.clock
    end = block(fn, state, statement.body) if constant is not False else None
    middle = fn.graphs.clock
    fn.tests[-1] = ir.Unary(statement.test.at, "not", statement.test)
    fn.no_tensors.append(asked_member(statement.test, statement.orelse))
    orelse = block(fn, other, statement.orelse) if constant is not True else None
    fn.no_tensors.pop()
    fn.tests.pop()
    if not statement.orelse and (last_case(fn.tests, statement.test) or leaves_numbers(fn, other, statement)):
        return end
    joined = join_branches(fn, [(end, start, middle), (orelse, middle, fn.graphs.clock)])
    if joined is not None and end is not None and orelse is not None and end.freed_must != orelse.freed_must:
        side = usual_side(fn, state, statement.test)
        if side is not None:  # the flag is never set, so only its usual branch counts
            joined.freed_must |= (end if side else orelse).freed_must
    if joined is not None:
        only_recorded(fn, statement, end, orelse, joined)
    meet(fn, statement, end, orelse, joined)
    return joined


def _with(fn: FunctionState, state: State, statement: ir.With) -> State | None:
    """The state after a with block, whose grad mode is restored."""
    before = state.grad
    # an ExitStack leaves the contexts that were entered in its block, which may set the grad mode
    entered = (item.context for item in statement.items)
    changed = any(isinstance(one, ir.Call) and last_name(one.func) == "ExitStack" for one in entered)
    flag: ir.Expr | None = None
    for item in statement.items:
        grad, value = entered_grad(fn, state, item.context)
        if grad is not None:
            inert_guards.note_block(fn, statement, state.grad, grad)
            state.grad = grad
            changed = True
            if grad == ON | OFF:
                flag = switch_of(item.context) or flag
        if item.target is not None:
            assign(fn, state, item.target, value, None)
    inert_guards.note_unentered(fn, state, statement, before)
    outer_returns = len(fn.returns)
    flag = flag if state.grad == ON | OFF else None
    if flag is not None:
        fn.recorded_if[statement.at] = (flag, fn.graphs.clock, None)
    end = block(fn, state, statement.body)
    if flag is not None:
        fn.recorded_if[statement.at] = (flag, fn.recorded_if[statement.at][1], fn.graphs.clock)
    if changed:
        if end is not None:
            end.grad = before
        for _, at, _ in fn.returns[outer_returns:]:
            at.grad = before
        for loop in fn.loops:
            for one in (*loop.breaks, *loop.continues):
                if one is not end:
                    one.grad = before
    return end


def _try(fn: FunctionState, state: State, statement: ir.Try) -> State | None:
    """The state after a try statement: the join over its body and its handlers."""
    before = fn.fork(state)
    raised: list[State] = []
    fn.handlers.append(raised)
    end = block(fn, state, statement.body)
    fn.handlers.pop()
    # an exception may be raised anywhere in the body: what the body binds may or may not be bound
    start = before
    if end is not None:
        start = join_states(before, end.copy()) or before
    for one in raised:
        start = join_states(start, one) or start
    start.grad = before.grad
    ends = [block(fn, end, statement.orelse)]
    for handler in statement.handlers:
        inner = fn.fork(start)
        if handler.name:
            inner.env[handler.name] = V(DATA)
        narrow_to_raised(inner, statement.body, handler)
        last = block(fn, inner, handler.body)
        if last is not None and end is not None and _catches_all(handler):
            stand_in(before, end, last)
        ends.append(last)
    result: State | None = None
    for way_out in ends:
        result = join_states(result, way_out)
    if result is None and statement.final:
        block(fn, start.copy(), statement.final)
        return None
    return block(fn, result, statement.final) if result is not None else None


def _catches_all(handler: ir.Handler) -> bool:
    """Whether an except clause catches every ordinary exception."""
    return handler.type is None or last_name(handler.type) in ("Exception", "BaseException")


def _match(fn: FunctionState, state: State, statement: ir.Match) -> State | None:
    subject = evaluate(fn, state, statement.subject)
    last = statement.cases[-1]
    catches_all = not last.values and last.guard is None and len(last.captures) <= 1
    start = fn.graphs.clock
    ends: list[tuple[State | None, int, int]] = [] if catches_all else [(fn.fork(state), start, start)]
    for case in statement.cases:
        inner = fn.fork(state)
        begin = fn.graphs.clock
        for value in case.values:
            evaluate(fn, inner, value)
        for name in case.captures:
            inner.env[name] = element(fn, inner, subject)
        if case.guard is not None:
            evaluate(fn, inner, case.guard)
        ends.append((block(fn, inner, case.body), begin, fn.graphs.clock))
    return join_branches(fn, ends)


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
