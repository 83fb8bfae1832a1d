"""Except clauses for out-of-memory errors that need memory while the frames of the failed code still hold their
tensors.

While an except clause runs, the exception is alive, and with it its traceback, the frames of all calls that it passed
through, and their local variables: the activations and graphs of the failed code.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Confidence, lazy_pattern
from memlint.sdk.project import Analyser, Summary, is_test, names_model, runs_model
from memlint.sdk.syntax import bodies, calls, ir, last_name, leaves, parts, text, walk_expression

from .rule import Recover

#: the class of the error
_ERRORS = frozenset({"OutOfMemoryError"})
_SAYS = lazy_pattern(r"out of memory|outofmemory|\boom\b|failed to allocate", re.IGNORECASE)
#: names of tests for this error
_ASKS = lazy_pattern(r"(^|_)oom($|_)|out_?of_?memory|reduce_batch_size")
#: names that release the frames
_LETS_GO = frozenset({"clear_frames", "__traceback__", "with_traceback"})
_HOST = lazy_pattern(r"(^|[^a-z])cpu($|[^a-z])")
#: names of functions that process a batch if nothing else is known of them, and names of receivers whose methods of
#: such names do not
_WORKS = lazy_pattern(
    r"step|forward|generate|train|valid|eval|infer|predict|encode|decode|comput|transcribe|embed|process_batch"
    r"|(^|_)(fit|run|call|loss|func|fn|function|execute)($|_)"
)
_NO_WORK = lazy_pattern(r"bar$|progress|log|prof|timer|meter|writer|wandb|token|text|json|path|queue|pool")
_UPDATES = lazy_pattern(r"optim|sched|scaler")
_LIBRARIES = sys.stdlib_module_names | {"torch", "numpy", "builtins", "tqdm", "wandb", "logging"}
_STORES = frozenset({"append", "add", "put", "put_nowait", "appendleft", "set_exception"})
#: how many levels of calls are searched for a model run
_DEPTH = 3


class _Clause(NamedTuple):
    """An except clause, the calls in its try block, and whether a loop repeats it."""

    handler: ir.Handler
    tried: tuple[ir.Call, ...]
    looped: bool


def detect(analyser: Analyser, summary: Summary) -> Iterator[Recover]:
    """The except clauses of one function that need memory."""
    clauses = list(_clauses(summary.function.body, False))
    if not clauses or is_test(summary.function):
        return
    seen: set[int] = set()
    for clause in clauses:
        named = _names_error(clause.handler.type)
        followed, memory = _after_failure(clause.handler.body, named)
        memory = memory or named
        if any(isinstance(part, ir.Attr) and part.name in _LETS_GO for part in parts(clause.handler.body)):
            continue
        if memory and not _goes_to_host(followed):
            found = [(call, _again(analyser, summary, clause, call)) for call in calls(followed) if call.at not in seen]
            found = [one for one in found if one[1] or runs_model(analyser, summary, one[0], _DEPTH)]
            for call, again in sorted(found, key=lambda one: (one[1] is None, one[0].at))[:1]:
                seen.update(one.at for one, _ in found)
                yield Recover(
                    site=summary.site(call.at),
                    function=summary.function.qual,
                    certainty=again or "high",
                    how="retry" if again else "run",
                    text=text(call),
                )
        if clause.looped and clause.handler.name:
            memory = memory or _notes_memory(clause.handler.body)
            stored = list(_stored(clause.handler.name, followed if memory else clause.handler.body))
            works = [_may_hold_tensors(analyser, summary, call) for call in clause.tried] if stored else []
            if "high" not in works and not (memory and "medium" in works):
                continue
            for statement, value, place in stored:
                yield Recover(
                    site=summary.site(statement.at),
                    function=summary.function.qual,
                    certainty="high" if "high" in works else "medium",
                    how="stored" if isinstance(statement, ir.Assign) else "collected",
                    text=text(value),
                    place=text(place),
                )


def _clauses(body: tuple[ir.Stmt, ...], looped: bool) -> Iterator[_Clause]:
    """The except clauses of a body."""
    for statement in body:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        if isinstance(statement, ir.Try):
            tried = tuple(calls(statement.body))
            yield from (_Clause(handler, tried, looped) for handler in statement.handlers)
        for block in bodies(statement):
            yield from _clauses(block, looped or isinstance(statement, ir.For | ir.While))


# -------------------------------------------------------------------------------------- which error


def _names_error(kind: ir.Expr | None) -> bool:
    """Whether the clause catches only this error: ``except torch.cuda.OutOfMemoryError``."""
    if isinstance(kind, ir.Display):
        return bool(kind.elements) and all(_names_error(one) for one in kind.elements)
    return kind is not None and last_name(kind) in _ERRORS


def _after_failure(body: tuple[ir.Stmt, ...], known: bool = False) -> tuple[tuple[ir.Stmt, ...], bool]:
    """The statements of a clause that run after an out-of-memory error, and whether the clause tests for it (or
    ``known`` says so)."""
    found: list[ir.Stmt] = []
    is_tested = False
    for statement in body:
        if not isinstance(statement, ir.If):
            found.append(statement)
            continue
        sign = 0 if known else _sign(statement.test)
        sides = [statement.body, statement.orelse]
        for side in sides if sign == 0 else sides[:1] if sign > 0 else sides[1:]:
            inner, inner_tested = _after_failure(side, known or sign != 0)
            found += inner
            is_tested = is_tested or inner_tested
        is_tested = is_tested or sign != 0
        if sign > 0 and leaves(statement.body):
            break
    return tuple(found), is_tested


def _sign(test: ir.Expr) -> int:
    """The value of a test after an out-of-memory error: 1 for true, -1 for false, 0 for another test."""
    if isinstance(test, ir.Unary) and test.op == "not":
        return -_sign(test.operand)
    if isinstance(test, ir.BoolOp):
        return _sign(test.left) or _sign(test.right)
    if not any(_tells(part) for part in walk_expression(test)):
        return 0
    return -1 if isinstance(test, ir.Compare) and test.ops[:1] in (("not in",), ("!=",)) else 1


def _tells(part: ir.Expr) -> bool:
    if isinstance(part, ir.Const):
        return isinstance(part.value, str) and _SAYS.search(part.value) is not None
    called = last_name(part.func).lower() if isinstance(part, ir.Call) else ""
    return last_name(part) in _ERRORS or _ASKS.search(called or _flag(part)) is not None


def _flag(part: ir.Expr) -> str:
    """The variable of a test that the clause has computed (``is_oom``); ``raise_oom`` is none."""
    return part.id.lower() if isinstance(part, ir.Name) and part.id.lower().startswith(("is_", "oom", "out_")) else ""


def _notes_memory(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a clause treats the error as out of memory: ``oom = True``."""
    targets = (target for statement in body if isinstance(statement, ir.Assign) for target in statement.targets)
    return any(_ASKS.search(last_name(target).lower()) for target in targets)


def _goes_to_host(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the clause continues on the host, which has its own memory."""
    results = {part.at for call in calls(body) if _brings_result(call) for part in (call.func, *call.args)}
    for part in parts(body):
        said = part.value if isinstance(part, ir.Const) else last_name(part)
        if isinstance(said, str) and len(said) < 40 and _HOST.search(said.lower()) and part.at not in results:
            return True
    return any(word.name and "cpu" in word.name.lower() for call in calls(body) for word in call.keywords)


def _brings_result(call: ir.Call) -> bool:
    """Whether only the result of a call is moved to the host: ``model(x).cpu()``."""
    return isinstance(call.func, ir.Attr) and call.func.name in ("cpu", "to") and isinstance(call.func.value, ir.Call)


# -------------------------------------------------------------------------------------- anew


def _again(analyser: Analyser, summary: Summary, clause: _Clause, call: ir.Call) -> Confidence | None:
    """The confidence that a call in the clause repeats the failed work in frames of its own; None if it does not."""
    if _is_itself(summary, call):
        works = [_may_hold_tensors(analyser, summary, tried) for tried in clause.tried]
        return "high" if any(works) else None
    shown = text(call.func, 400)
    for tried in clause.tried:
        if text(tried.func, 400) == shown:
            return _may_hold_tensors(analyser, summary, tried)
    return None


def _is_itself(summary: Summary, call: ir.Call) -> bool:
    """Whether the function calls itself."""
    function = summary.function
    if any(record.callee == function.key for record in summary.calls_at(call.at)):
        return True
    if function.node is None or last_name(call.func) != function.name:
        return False
    if isinstance(call.func, ir.Name):
        return function.cls is None
    own = function.own_name
    return isinstance(call.func, ir.Attr) and bool(own) and text(call.func.value) == own


def _may_hold_tensors(analyser: Analyser, summary: Summary, call: ir.Call) -> Confidence | None:
    """The confidence that a call has frames that hold tensors; operations of torch have none. None if it has none."""
    if runs_model(analyser, summary, call, _DEPTH):
        return "high"
    name = last_name(call.func)
    kind, what = analyser.program.find_expression(summary.module, call.func, summary.function)
    if kind in ("function", "class"):
        return "medium" if kind == "function" and _WORKS.search(name.lower()) else None
    if kind == "ext":
        outside = str(what).partition(".")[0] not in _LIBRARIES
        return "medium" if outside and _WORKS.search(name.lower()) else None
    if isinstance(call.func, ir.Name) and name not in summary.function.locals:
        return None
    receiver = last_name(call.func.value).lower() if isinstance(call.func, ir.Attr) else ""
    if _NO_WORK.search(receiver) or (_UPDATES.search(receiver) and "step" in name):
        return None
    return "medium" if _WORKS.search(name.lower()) or names_model(name) else None


# -------------------------------------------------------------------------------------- stored


def _stored(name: str, body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, ir.Expr, ir.Expr]]:
    """The places outside the clause in which an exception, with its frames, is stored: (statement, value, place)."""
    if leaves(body):
        return
    for statement in body:
        for block in bodies(statement):
            yield from _stored(name, block)
        if isinstance(statement, ir.Assign) and _holds(statement.value, name):
            yield statement, statement.value, statement.targets[0]
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.func.name not in _STORES:
            continue
        if call.args and _holds(call.args[-1], name):
            yield statement, call.args[-1], call.func.value


def _holds(value: ir.Expr, name: str) -> bool:
    """Whether a value is the exception, or a container that holds it."""
    if isinstance(value, ir.Name):
        return value.id == name
    if isinstance(value, ir.Display):
        return any(_holds(one, name) for one in value.elements)
    if isinstance(value, ir.DictDisplay):
        return any(_holds(one, name) for one in value.values)
    return isinstance(value, ir.Call) and text(value.func) == "sys.exc_info"
