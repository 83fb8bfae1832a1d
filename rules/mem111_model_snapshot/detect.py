"""Copies of models, or of their states, that are stored on the device: the best one so far, or one per epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Confidence, Loop, lazy_pattern
from memlint.sdk.project import Analyser, Function, Summary, argument, is_test, touches_an_accelerator
from memlint.sdk.syntax import (
    bodies,
    calls,
    children,
    expressions,
    ir,
    names_read,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import LOADER, MODULE, TENSORS

from .backups import is_backup
from .rule import ModelSnapshot
from .snapshot_uses import is_bounded, leaves_the_device, run_as_models

#: names of the best state so far, and words in tests for it
_BEST = lazy_pattern(r"best|improv|better|is_min|is_max")
#: names of models that run beside the model
_RUNS = lazy_pattern(
    r"(^|_)(ema|target|teacher|old|prev|previous|ref|reference|anchor|frozen|momentum|swa|avg|shadow)(_|$)"
)
#: words in loops over epochs, and in loops over a few items
_EPOCHS = lazy_pattern(r"epoch|(^|[^a-z])(ep|step|iter|it|round|rnd|update|episode)(s|ations?)?($|[^a-z])")
_FEW = lazy_pattern(
    r"fold|client|user|task|seed|model|net($|[^a-z])|split|run|trial|member|agent|worker|parent|candi|layer|param"
)
_MAX_FEW = 10
_ADDS = frozenset({"append", "add", "insert", "appendleft"})
CALLS = frozenset({"copy.deepcopy"})


class _Copy(NamedTuple):
    """A copy: the expression, the model that it is of, and whether it is a state, not a module that could run."""

    expr: ir.Expr
    model: ir.Expr
    is_state: bool


class _Kept(NamedTuple):
    """Where a copy is stored: a name or attribute, or a container that it is added to."""

    place: ir.Expr
    is_member: bool
    key: ir.Expr | None = None


def detect(analyser: Analyser, summary: Summary) -> Iterator[ModelSnapshot]:
    """The copies that one function stores."""
    function = summary.function
    if not function.names & {"deepcopy", "clone"} or is_test(function):
        return
    for statement, around in _statements(function.body, ()):
        for copy in _copies(analyser, summary, statement):
            kept = _kept(statement, copy.expr)
            certainty = _on_device(analyser, summary, copy.model) if kept is not None else None
            if kept is None or certainty is None:
                continue
            loop, once = _grows(analyser, summary, kept, around) if kept.is_member else None, False
            if kept.is_member:
                if loop is None or run_as_models(function, kept.place) or _is_model(analyser, summary, kept.place):
                    continue  # a member of a ModuleDict or ModuleList is a part of a model
            elif not _is_best(function, kept, copy, around) and not _becomes_best(function, kept, copy, around):
                once = copy.is_state and is_backup(function, kept.place, copy.expr, copy.model, around)
                if not once or leaves_the_device(function, kept.place):
                    continue
            yield ModelSnapshot(
                site=summary.site(copy.expr.at),
                function=function.qual,
                certainty=certainty,
                text=_shown(copy),
                model=text(copy.model),
                place=text(kept.place),
                loop=loop,
                once=once,
            )


def _shown(copy: _Copy) -> str:
    return (
        text(copy.expr) if isinstance(copy.expr, ir.Call) else f"{{… for … in {text(copy.model)}.state_dict().items()}}"
    )


def _statements(
    body: tuple[ir.Stmt, ...], around: tuple[ir.Stmt, ...]
) -> Iterator[tuple[ir.Stmt, tuple[ir.Stmt, ...]]]:
    """The simple statements of a body, each with the compound ones around it."""
    for statement in body:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        yield statement, around
        for block in bodies(statement):
            yield from _statements(block, (*around, statement))


# -------------------------------------------------------------------------------------- what is copied


def _copies(analyser: Analyser, summary: Summary, statement: ir.Stmt) -> Iterator[_Copy]:
    """The copies that a statement makes."""
    for expr in expressions(statement):
        for part in walk_expression(expr):
            if isinstance(part, ir.Call):
                noted = summary.notes.outside.get(part.at)
                if noted is None or noted.name != "copy.deepcopy" or noted.expr is not part:
                    continue
                given = argument(part, 0, "x")
                if given is None:
                    continue
                model = _of_state(given)
                if model is not None:
                    yield _Copy(part, model, True)
                elif _is_model(analyser, summary, given):
                    yield _Copy(part, given, False)
            elif isinstance(part, ir.Comprehension) and (model := _cloned(part)) is not None:
                yield _Copy(part, model, True)


def _of_state(expr: ir.Expr) -> ir.Expr | None:
    """The model in ``model.state_dict()``."""
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name == "state_dict":
        return expr.func.value
    return None


def _cloned(expr: ir.Comprehension) -> ir.Expr | None:
    """The model in ``{k: v.clone() for k, v in model.state_dict().items()}``, if the copies stay on the device."""
    if expr.kind != "dict" or len(expr.fors) != 1 or not isinstance(expr.fors[0].iter, ir.Call):
        return None
    items, target = expr.fors[0].iter.func, expr.fors[0].target
    if not isinstance(items, ir.Attr) or items.name != "items" or not isinstance(target, ir.Display):
        return None
    element, steps = expr.element, []
    while isinstance(element, ir.Call | ir.Attr):
        if isinstance(element, ir.Call):
            if element.args or element.keywords:
                return None
            element = element.func
        else:
            steps.append(element.name)
            element = element.value
    member = target.elements[-1]
    if not isinstance(element, ir.Name) or not isinstance(member, ir.Name) or element.id != member.id:
        return None
    return _of_state(items.value) if "clone" in steps and set(steps) <= {"clone", "detach", "data"} else None


def _is_model(analyser: Analyser, summary: Summary, expr: ir.Expr) -> bool:
    """Whether the copied object is known to be a module."""
    if text(expr) in summary.modules_by_use:
        return True
    if isinstance(expr, ir.Name):
        known = summary.exit.env.get(expr.id) if summary.exit is not None else None
        return known is not None and bool(known.kinds & MODULE) and not known.kinds & (LOADER | TENSORS)
    cls = summary.function.cls
    if cls is None or not isinstance(expr, ir.Attr) or text(expr.value) != "self":
        return False
    attribute = analyser.attribute(cls, expr.name)
    return bool(attribute.kinds & MODULE) and not attribute.kinds & (LOADER | TENSORS)


# -------------------------------------------------------------------------------------- where it is kept


def _kept(statement: ir.Stmt, copy: ir.Expr) -> _Kept | None:
    """Where a statement stores a copy, by itself or in a record."""
    if isinstance(statement, ir.Assign | ir.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
        if not _holds(statement.value, copy):
            return None
        target = targets[0]
        if isinstance(target, ir.Subscript):
            return None if isinstance(target.index, ir.Const) else _Kept(target.value, True, target.index)
        return _Kept(target, False) if isinstance(target, ir.Name | ir.Attr) else None
    if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func
        if isinstance(func, ir.Attr) and func.name in _ADDS and statement.value.args:
            return _Kept(func.value, True) if _holds(statement.value.args[-1], copy) else None
    return None


def _holds(expr: ir.Expr, copy: ir.Expr) -> bool:
    """Whether an expression is the copy, or a tuple or dictionary with it."""
    if expr is copy:
        return True
    return isinstance(expr, ir.Display | ir.DictDisplay) and any(_holds(part, copy) for part in children(expr))


def _is_best(function: Function, kept: _Kept, copy: _Copy, around: tuple[ir.Stmt, ...]) -> bool:
    """Whether a copy is that of the best model so far: made repeatedly, if a comparison holds."""
    name = text(kept.place).rsplit(".", 1)[-1].lower()
    loops = [place for place, one in enumerate(around) if isinstance(one, ir.For | ir.While)]
    ifs = [one for one in around[loops[-1] if loops else 0 :] if isinstance(one, ir.If)]
    again = bool(loops) or (isinstance(kept.place, ir.Attr) and function.name != "__init__")
    if not again or _RUNS.search(name) or not any(_asks_for_best(one, name) for one in ifs):
        return False
    return not leaves_the_device(function, kept.place) and (copy.is_state or not _runs(function, kept.place, around))


def _becomes_best(function: Function, kept: _Kept, copy: _Copy, around: tuple[ir.Stmt, ...]) -> bool:
    """Whether each iteration copies the state, and a comparison decides whether that copy is the best so far: ``state =
    deepcopy(model.state_dict())``, then ``if loss < lowest: best = state``."""
    loops = [one for one in around if isinstance(one, ir.For | ir.While)]
    if not loops or not copy.is_state or not isinstance(kept.place, ir.Name) or leaves_the_device(function, kept.place):
        return False
    for branch in walk_statements(loops[-1].body, into_definitions=False):
        if not isinstance(branch, ir.If) or branch.at < copy.expr.at:
            continue
        for one in branch.body:
            if not isinstance(one, ir.Assign) or text(one.value) != kept.place.id:
                continue
            name = text(one.targets[0]).rsplit(".", 1)[-1].lower()
            if not _RUNS.search(name) and _asks_for_best(branch, name):
                return not leaves_the_device(function, one.targets[0])
    return False


def _asks_for_best(statement: ir.If, name: str) -> bool:
    """Whether a test is for the best result so far: ``if loss < lowest: lowest = loss``; by their names, ``if
    improved:`` and ``if loss < 0.1: best = …``."""
    compared = False
    # `best is None` tests only whether there is one
    compared_sides = {part.left.at for part in walk_expression(statement.test) if isinstance(part, ir.Compare)}
    for part in walk_expression(statement.test):
        if isinstance(part, ir.Compare) and any(op in ("<", ">", "<=", ">=") for op in part.ops):
            compared = True
            sides = {text(side) for side in (part.left, *part.rights)}
            for one in walk_statements((*statement.body, *statement.orelse), into_definitions=False):
                if (
                    isinstance(one, ir.Assign)
                    and text(one.value) in sides
                    and any(text(to) in sides for to in one.targets)
                ):
                    return True
        elif (
            isinstance(part, ir.Name | ir.Attr)
            and part.at not in compared_sides
            and _BEST.search(text(part).rsplit(".", 1)[-1].lower())
        ):
            return True
    return compared and _BEST.search(name) is not None


def _runs(function: Function, place: ir.Expr, around: tuple[ir.Stmt, ...]) -> bool:
    """Whether the copy itself runs in the loop, or in any method if it is an attribute."""
    shown = text(place)
    if function.cls is not None and isinstance(place, ir.Attr):
        searched = [method.body for method in function.cls.methods.values()]
    else:
        searched = [one.body for one in around if isinstance(one, ir.For | ir.While)][:1]
    return any(
        text(call.func) in (shown, f"{shown}.forward") or any(text(arg) == shown for arg in call.args)
        for body in searched
        for call in calls(body)
    )


# -------------------------------------------------------------------------------------- a list of them


def _grows(analyser: Analyser, summary: Summary, kept: _Kept, around: tuple[ir.Stmt, ...]) -> Loop | None:
    """The loop over epochs in which a container of copies grows; None if there is none."""
    place = text(kept.place)
    loops = [one for one in around if isinstance(one, ir.For | ir.While)]
    if not loops or is_bounded(summary.function, place):
        return None
    inside = [one for one in loops if not any(_binds(inner, place) for inner in walk_statements(one.body))]
    for loop in inside:
        header = (
            text(loop.target, 200) + " " + text(loop.iter, 200) if isinstance(loop, ir.For) else text(loop.test, 200)
        )
        if kept.key is not None and names_read(kept.key) <= _given_inside(loop, loops):
            continue  # each copy replaces the one of the last iteration under that key
        known = summary.notes.rounds.get(("loop", loop.at))
        if known is None or _FEW.search(header.lower()):
            continue
        if (known.loop.trips is not None and known.loop.trips <= _MAX_FEW) or _usually_few(analyser, summary, loop):
            continue
        if known.loop.over_data or _EPOCHS.search(header.lower()):
            return known.loop
    return None


def _usually_few(analyser: Analyser, summary: Summary, loop: ir.For | ir.While) -> bool:
    """Whether a loop usually has few iterations: ``for _ in range(steps)``, where ``steps`` is small by default and in
    all known calls."""
    if not isinstance(loop, ir.For) or not isinstance(loop.iter, ir.Call) or text(loop.iter.func) != "range":
        return False
    count = loop.iter.args[-1] if loop.iter.args else None
    param = next((one for one in summary.function.params if isinstance(count, ir.Name) and one.name == count.id), None)
    if param is None or not isinstance(param.default, ir.Const) or not _is_few(param.default.value):
        return False
    given = (record.args.get(param.name) for _, record in analyser.facts.calls_of(summary.function))
    return all(value is not None and _is_few(value.const) for value in given)


def _is_few(value: object) -> bool:
    return isinstance(value, int) and value <= _MAX_FEW


def _given_inside(loop: ir.Stmt, loops: list[ir.For | ir.While]) -> set[str]:
    """The names that the inner loops of a loop rebind in each of its iterations."""
    inner = [one for one in loops if isinstance(one, ir.For) and one.at > loop.at]
    return {name for one in inner for name in names_read(one.target)}


def _binds(statement: ir.Stmt, place: str) -> bool:
    targets: tuple[ir.Expr, ...] = statement.targets if isinstance(statement, ir.Assign | ir.Delete) else ()
    if isinstance(statement, ir.AnnAssign):
        targets = (statement.target,)
    return any(text(target) == place for target in targets)


# -------------------------------------------------------------------------------------- the device


def _on_device(analyser: Analyser, summary: Summary, model: ir.Expr) -> Confidence | None:
    """The confidence that a model is on an accelerator; None if nothing says so."""
    shown = text(model)
    function = summary.function
    searched = list(function.cls.methods.values()) if function.cls is not None else [function]
    moved = False
    for one in searched:
        for call in calls(one.body):
            if not isinstance(call.func, ir.Attr) or text(call.func.value) != shown:
                continue
            if call.func.name == "cpu" or (call.func.name == "to" and _is_host(call)):
                return None  # it is moved back
            moved = moved or call.func.name in ("cuda", "to")
        for statement in walk_statements(one.body):
            if isinstance(statement, ir.Assign) and any(text(target) == shown for target in statement.targets):
                made = text(statement.value, 400)
                moved = moved or ".to(" in made or ".cuda(" in made
    if moved:
        return "high"
    return "medium" if touches_an_accelerator(analyser, summary) else None


def _is_host(call: ir.Call) -> bool:
    return any(isinstance(part, ir.Const) and part.value == "cpu" for arg in call.args for part in walk_expression(arg))
