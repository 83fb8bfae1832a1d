"""The context of ``torch.cuda.empty_cache()``: its conditions, its helper, the steps beside it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from memlint.sdk import Loop, lazy_pattern
from memlint.sdk.project import Analyser, Function
from memlint.sdk.syntax import (
    assigned_names,
    bodies,
    calls,
    calls_backward,
    dotted,
    ir,
    kept,
    leaves,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import EMPTIES

#: what an optimizer does once per training step
OPTIMIZES = "zero_grad"
#: the most statements of a helper that frees memory
_SHORT = 6
_MODEL = lazy_pattern(
    r"(^|_)(models?|nets?|networks?|pipe(line)?s?|layers?|blocks?|experts?|encoders?|decoders?|unet|vae)$"
)
_MAKES_MODEL = lazy_pattern(
    r"^(from_pretrained|load_state_dict|load_model|load_checkpoint|(build|create|make|get|init|setup|load|new)_?\w*"
    r"(model|net|network|pipeline|pipe|agent|learner|trainer))$|^torch\.load$"
)
_LOADER = lazy_pattern(r"loader\b")
#: tests for a device
_DEVICE = lazy_pattern(r"is_available\(|is_cuda|cuda|gpu|\b[mx]p[su]\b|\bnpu\b", re.IGNORECASE)
#: words of a test for more than a device: how much memory there is, or what the user chose
_CHOICE = lazy_pattern(r"mem|cache|empty|clear|clean|free|alloc|reserv|oom|low|offload|%|[<>]", re.IGNORECASE)
#: names that change between iterations, and of settings for scarce memory
_VARIES = lazy_pattern(
    r"step|iter|epoch|count|idx|index|every|freq|interval|period|oom|cpu|err|fail|low|mem|offload|tight|save|last|first"
    r"|done|final|is_main|rank|^[ijknt]$",
    re.IGNORECASE,
)
#: names of an epoch's number; an epoch has many iterations
_EPOCH = lazy_pattern(r"(^|[._])(current_)?epoch(_(num|id|idx|no|i))?$")
#: names of devices, and of types
_PLACE = lazy_pattern(r"dev|gpu|cpu|cuda|rank|dtype|type|precision|where|place|local|float|half")
#: calls in a test for a device
_ASKS = frozenset({"is_available", "is_initialized", "str", "startswith", "hasattr", "lower", "device", "device_count"})
#: names of loop variables that are another model in each iteration, or of functions that create one
OTHER_MODEL = lazy_pattern(
    r"model|^(layer|block|module)_|(^|_)(nets?|networks?|layers?|blocks?|experts?|folds?|configs?|cfgs?|seeds?|runs?|trials?|tasks?|(data_?)?loaders?"
    r"|data_?sets?|ckpts?|checkpoints?|weights|adapters?|methods?|pipe(line)?s?|shards?|learners?|agents?|clients?"
    r"|stages?|phases?|splits?|epochs?|params?|repeats?|experiments?|variants?|args|opts?|arch(itecture)?s?)$"
)


@dataclass(slots=True)
class Place:
    """A call that a block always reaches: its statement, and whether nothing else is in its block. ``flag``: a setting
    that must hold ("" for none)."""

    statement: ir.ExprStmt
    alone: bool
    flag: str = ""


@dataclass(slots=True)
class Emptied:
    """How often a call is reached. ``data``: the loop iterates over a loader, or trains."""

    place: Place
    loop: Loop
    data: bool


def in_each_round(body: tuple[ir.Stmt, ...], expr: ir.Call, *, into_loops: bool = False) -> Place | None:
    """The place of a call that is a statement on every path through the block; None if it is not."""
    return _found(body, expr, assigned_names(body)[0], into_loops)


def _found(body: tuple[ir.Stmt, ...], expr: ir.Call, bound: frozenset[str], into_loops: bool) -> Place | None:
    for statement in body:
        if isinstance(statement, ir.ExprStmt) and statement.value.at == expr.at:
            return Place(statement, all(_empties_by_name(one) for one in body))
        if isinstance(statement, ir.With):
            inner: tuple[ir.Stmt, ...] = statement.body
        elif isinstance(statement, ir.Try):
            inner = (*statement.body, *statement.orelse)
        elif into_loops and isinstance(statement, ir.For | ir.While):
            inner = statement.body
        elif isinstance(statement, ir.If) and any(call.at == expr.at for call in calls((statement,))):
            return _under(statement, expr, bound, into_loops)
        else:
            if _skips(statement):
                return None
            continue
        if leaves(inner):
            return None
        place = _found(inner, expr, bound, into_loops)
        if place is not None:
            return place
    return None


def _under(statement: ir.If, expr: ir.Call, bound: frozenset[str], into_loops: bool) -> Place | None:
    """The place of a call in an ``if`` that tests for a device, that a setting decides in the same way in all
    iterations, or that contains the training step, or its end after several rounds (``optimizer.zero_grad()``)."""
    positive = any(call.at == expr.at for call in calls(statement.body))
    inner = statement.body if positive else statement.orelse
    if leaves(inner) and not isinstance(inner[-1], ir.Return):
        return None
    place = _found(inner, expr, bound, into_loops)
    if place is None:
        return None
    if positive and asks_for_device(statement.test):
        return place
    if calls_backward(inner) and not _counts(statement.test, bound):
        return place
    held = setting(statement.test, bound)
    ends = positive and not calls_backward(inner) and {"step", OPTIMIZES} <= {called_name(one) for one in calls(inner)}
    if not held and ends:
        held = text(statement.test)
    if not held:
        return None
    shown = held if positive else f"not {held}"
    return replace(place, flag=f"{shown} and {place.flag}" if place.flag else shown)


def asks_for_device(test: ir.Expr) -> bool:
    """Whether a test is for a device: ``torch.cuda.is_available()``, ``x.is_cuda``, ``device.type == "cuda"``,
    ``use_gpu``."""
    shown = text(test, 200)
    if _DEVICE.search(shown) is None or _CHOICE.search(shown.replace("is_available", "")) is not None:
        return False
    tested_calls = [part for part in walk_expression(test) if isinstance(part, ir.Call)]
    return all(dotted(call.func).rsplit(".", 1)[-1] in _ASKS for call in tested_calls) and not shown.startswith("not ")


def _counts(test: ir.Expr, bound: frozenset[str]) -> bool:
    """Whether a test may hold in few iterations only: ``step % 10 == 0``, or a name that the iterations set."""
    while isinstance(test, ir.Unary):
        test = test.operand
    if isinstance(test, ir.Name) and test.id in bound:
        return True
    if any(isinstance(part, ir.Binary) and part.op == "%" for part in walk_expression(test)):
        return True
    return any(
        isinstance(part, ir.Compare) and "==" in part.ops and _is_round(part, bound) for part in walk_expression(test)
    )


def _is_round(part: ir.Compare, bound: frozenset[str]) -> bool:
    return any(isinstance(side, ir.Name) and side.id in bound for side in (part.left, *part.rights))


def setting(test: ir.Expr, bound: frozenset[str]) -> str:
    """The text of a test with the same value in all iterations: a name or attribute, alone or compared with a constant;
    "" for others."""
    if isinstance(test, ir.BoolOp):
        sides = [setting(side, bound) or asks_for_device(side) for side in (test.left, test.right)]
        return text(test) if all(sides) else ""
    inner: ir.Expr = test.operand if isinstance(test, ir.Unary) and test.op == "not" else test
    epochs = False
    if isinstance(inner, ir.Compare):
        epochs = inner.ops[0] in ("<", "<=", ">", ">=") and _EPOCH.search(dotted(inner.left)) is not None
        same = inner.ops[0] in ("==", "!=", "is", "is not") and not _is_number(inner.rights[0])
        if len(inner.rights) != 1 or not (same or epochs):
            return ""
        inner = inner.left
    if isinstance(inner, ir.Subscript):
        if not isinstance(inner.index, ir.Const) or not isinstance(inner.index.value, str):
            return ""
        word, root = inner.index.value, dotted(inner.value)
    else:
        root = dotted(inner)
        word = root.rsplit(".", 1)[-1]
    if not root or root.split(".", 1)[0] in bound or (_VARIES.search(word) is not None and not epochs):
        return ""
    return text(test)


def _is_number(expr: ir.Expr) -> bool:
    """Whether it is no string, boolean or None."""
    if not isinstance(expr, ir.Const):
        return True
    return not (expr.value is None or isinstance(expr.value, bool | str))


def _skips(statement: ir.Stmt) -> bool:
    """Whether what follows a statement runs in some iterations only, as after ``if step % 10: continue``, or after an
    error."""
    if not isinstance(statement, ir.If):
        return False
    periodic = any(isinstance(part, ir.Binary) and part.op == "%" for part in walk_expression(statement.test))
    goes_on = any(
        isinstance(one, ir.Return) or (isinstance(one, ir.Jump) and one.kind == "continue")
        for one in walk_statements((statement,))
    )
    return goes_on and (periodic or calls_backward(statement.body))


def _empties_by_name(statement: ir.Stmt) -> bool:
    return (
        isinstance(statement, ir.ExprStmt)
        and isinstance(statement.value, ir.Call)
        and dotted(statement.value.func).endswith("empty_cache")
    )


# ------------------------------------------------------------------------------------ helpers that release


@kept
def _only_empties_body(body: tuple[ir.Stmt, ...]) -> tuple[ir.Call, ...]:
    """The calls of a short body that run on all paths, if there is a device."""
    statements = [one for one in body if not (isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Const))]
    if len(statements) > _SHORT or any(isinstance(one, ir.Return) for one in statements[:-1]):
        return ()
    found: list[ir.Call] = []
    for one in statements:
        if isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Call):
            found.append(one.value)
        elif isinstance(one, ir.With) or (isinstance(one, ir.If) and asks_for_device(one.test)):
            found += _only_empties_body(one.body)
    return tuple(found)


def only_empties(analyser: Analyser, function: Function) -> bool:
    """Whether a short helper empties the cache in every call."""
    if any(isinstance(one, ir.Return) and one.value is not None for one in walk_statements(function.body)):
        return False
    return any(
        call.args == () and analyser.program.outside(function.module, call.func, function) in EMPTIES
        for call in _only_empties_body(function.body)
    )


# ------------------------------------------------------------------------------------ what a round does


def over_data(loop: Loop) -> bool:
    """Whether a loop iterates over the batches of a loader, as far as known."""
    if loop.over == "unknown" and loop.kind == "for":
        return _LOADER.search(loop.source) is not None
    return loop.over == "loader" and (not loop.assumed or loop.names_data)


def moves_model(body: tuple[ir.Stmt, ...], *, in_layers: bool = False) -> bool:
    """Whether a block creates, loads, deletes or moves a model, to make room for another one. ``in_layers``: the
    variables that it does not call are tensors (a block of keys)."""
    called = {call.func.id for call in calls(body) if isinstance(call.func, ir.Name)}
    for statement in walk_statements(body, into_definitions=False):
        deleted = statement.targets if isinstance(statement, ir.Delete) else ()
        tensors = [one for one in deleted if in_layers and isinstance(one, ir.Name) and one.id not in called]
        if any(names_model(target) for target in deleted if target not in tensors):
            return True
    for call in calls(body):
        last = called_name(call)
        if _MAKES_MODEL.search(last) or _MAKES_MODEL.search(dotted(call.func)):
            return True
        moved = call.func.value if isinstance(call.func, ir.Attr) and last in ("cpu", "to", "cuda") else None
        if moved is not None and names_model(moved) and not _goes_to_a_tensor(call):
            return True  # it is moved in each iteration
    return False


def _goes_to_a_tensor(call: ir.Call) -> bool:
    """Whether a call moves a model to the device of its input (``self.model.to(image)``), which is the same in all
    iterations."""
    given = call.args[0] if called_name(call) == "to" and len(call.args) == 1 and not call.keywords else None
    if isinstance(given, ir.Attr) and given.name == "device":
        given = given.value if isinstance(given.value, ir.Name) else None
    return isinstance(given, ir.Name) and given.id != "self" and _PLACE.search(given.id.lower()) is None


def called_name(call: ir.Call) -> str:
    """The last component of a callee's name."""
    last = dotted(call.func).rsplit(".", 1)[-1]
    return call.func.name if not last and isinstance(call.func, ir.Attr) else last


def names_model(expr: ir.Expr) -> bool:
    """Whether a name is that of a model."""
    while isinstance(expr, ir.Subscript):
        expr = expr.value
    return is_model_name(dotted(expr).rsplit(".", 1)[-1])


def is_model_name(name: str) -> bool:
    """Whether a name is that of a model."""
    return _MODEL.search(name.lower()) is not None


@kept
def steps(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a backward runs in each iteration, outside of inner loops."""
    for statement in body:
        if isinstance(statement, ir.For | ir.While | ir.FunctionDef | ir.ClassDef):
            continue
        if any(steps(block) for block in bodies(statement)):
            return True
        if not bodies(statement) and calls_backward((statement,)):
            return True
    return False
