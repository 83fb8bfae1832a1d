"""Threads: each thread has a grad mode of its own, so that its code records whatever block started it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.events import Step
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.observations import MAX_CALLERS_UP
from memlint.analysis.domain.values import CALLABLE, MODULE, UNKNOWN_VALUE, Args, Ref, V, Words
from memlint.analysis.index.program import Function
from memlint.analysis.transfer import comprehensions
from memlint.analysis.transfer.comprehensions import listed
from memlint.analysis.transfer.heap import elements_of, make
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.events import Site
    from memlint.analysis.facts.analyser import Analyser

#: classes of pools of threads of this process
_POOLS = frozenset({
    "concurrent.futures.ThreadPoolExecutor", "concurrent.futures.thread.ThreadPoolExecutor",
    "multiprocessing.pool.ThreadPool", "multiprocessing.dummy.Pool",
})  # fmt: skip
#: marks a future, the result of one call
_PROMISE = Ref("promise", "", "")


def call_method(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """The value of ``pool.submit(f, x)``, ``pool.map(f, xs)`` or ``promise.result()``; None for other methods and
    receivers."""
    if not receiver.refs:
        return None
    if name == "result" and _PROMISE in receiver.refs:
        return elements_of(fn, state, receiver)
    if not any(ref.kind == "foreign" and ref.name in _POOLS for ref in receiver.refs):
        return None
    if not expr.args or not args or not args[0].kinds & (CALLABLE | MODULE):
        return None
    if name == "submit":
        made = run(fn, state, expr, expr.args[0], args[0], args[1:], words)
        return make(fn, state, (expr.at, "promise"), "list", made).but(refs=frozenset((_PROMISE,)))
    mapped = listed(ir.Call(expr.at, ir.Name(expr.at, "map"), expr.args, ()))
    if name not in ("map", "imap", "imap_unordered") or not isinstance(mapped, ir.Comprehension):
        return None
    around, state.grad = state.grad, ON
    result = comprehensions.comprehension(fn, state, mapped)
    state.grad = around
    return result


def run(fn: FunctionState, state: State, expr: ir.Call, shown: ir.Expr, callee: V, args: Args, words: Words) -> V:
    """The result of a function that another thread calls. ``shown``: the expression that names the function."""
    around, state.grad = state.grad, ON
    result = fn.interpreter.call_value(
        fn, state, callee, args, words, ir.Call(expr.at, shown, expr.args[1:], expr.keywords)
    )
    state.grad = around
    for record in fn.calls_at(expr.at):
        record.started = around
    return result


def thread(fn: FunctionState, state: State, expr: ir.Call, words: Words) -> V:
    """Interpret the function of ``threading.Thread(target=f, args=(x, y))``."""
    target, arguments = words.get("target"), words.get("args")
    shown = next((word.value for word in expr.keywords if word.name == "target"), None)
    if target is not None and shown is not None and target.kinds & (CALLABLE | MODULE):
        held = [state.heap.get(key) for key in arguments.objs] if arguments is not None else []
        known = held[0] if len(held) == 1 else None
        args = [*known.fields.values()] if known is not None and known.kind == "tuple" and not known.elem.kinds else []
        if args or arguments is None:
            run(fn, state, expr, shown, target, args, {})
    return UNKNOWN_VALUE


def out_of_guard(analyser: Analyser, function: Function) -> Step | None:
    """The start of a thread that runs the function, where code that turned autograd off starts all such threads and
    nothing else calls the function: no graph is needed there, but the guard does not apply to the thread. None
    otherwise."""
    starts = _starts(analyser, function, 0)
    if not starts:
        return None
    message = "starts the thread where grad mode is off; it is on in the thread, whose grad mode is its own"
    return Step(starts[0], message, decides=tuple(starts[1:]))


def _starts(analyser: Analyser, function: Function, depth: int) -> list[Site]:
    """The places where code that turned autograd off starts the threads that run a function; empty where another
    call of it exists."""
    sites: list[Site] = []
    for caller, record in analyser.facts.calls_of(function):
        if caller.function.key == function.key:
            continue
        grad = record.grad if record.started is None else record.started
        if record.started is None:
            # a caller that runs models itself lacks the guard for its callees as well
            passes = grad == AMBIENT and all(run.origin is not None for run in caller.runs.values())
            inner = _starts(analyser, caller.function, depth + 1) if passes and depth < MAX_CALLERS_UP else []
            if not inner:
                return []
            sites += inner
        elif (analyser.facts.modes.of(caller.function) if grad == AMBIENT else grad) != OFF:
            return []
        else:
            sites.append(caller.site(record.at))
    return sites
