"""Names that are deleted to free memory, while another name that is never read again holds the object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Step, lazy_pattern
from memlint.sdk.project import (
    Analyser,
    Function,
    Summary,
    argument,
    is_test,
    last_ordinal,
    runs_model,
    touches_an_accelerator,
)
from memlint.sdk.syntax import (
    assigned_names,
    calls,
    dotted,
    ir,
    last_name,
    names_bound_by,
    parts,
    text,
    under_calls,
    walk_statements,
)
from memlint.sdk.values import EMPTIES, INSTANCE, MODULE, NONE

from .helpers import COLLECTS, Given, deleted_in_callees, freeing_calls
from .holders import Holder, Kind, holders_of, own_calls
from .lifetimes import Afterlife, Spot, afterlife, reads, spots
from .releases import Release, deleted_by, releases
from .rule import NameOnly

#: builtins that read variables by computed names
_REFLECTION = frozenset({"locals", "globals", "vars", "eval", "exec", "dir"})
#: names of functions and methods that create a model
_MAKES = lazy_pattern(
    r"^(from_pretrained|from_quantized|load_from_checkpoint|load_model|(build|create|make|get)_model)$"
)
_TRAINS = lazy_pattern(r"^(train|fit|evaluate|test|validate)$")
_TRAINER = lazy_pattern(r"trainer|solver|learner|runner|engine")
#: how many levels of calls are searched for a model run
_DEPTH = 3
CALLS = EMPTIES | {COLLECTS, "torch.load"}


class _Alive(NamedTuple):
    """A holder, and a call that needs memory while it lives, possibly in the next iteration only: it runs or creates a
    model."""

    holder: Holder
    call: ir.Call
    runs: bool
    again: bool


def detect(analyser: Analyser, summary: Summary) -> Iterator[NameOnly]:
    """The names that one function deletes without effect."""
    function = summary.function
    noted = freeing_calls(analyser, summary)
    given = list(deleted_in_callees(analyser, summary))
    if not (noted or given) or is_test(function) or _reflects(function):
        return
    if not touches_an_accelerator(analyser, summary):
        return
    everything = list(spots(function.body))
    known: dict[int, bool] = {}
    for one in given:
        event = _given_event(analyser, summary, everything, one, known)
        if event is not None:
            yield event
    for release in releases(everything, noted):
        reported: set[str] = set()
        for name, statement in release.deleted.items():
            event = _event(analyser, summary, everything, release, name, statement, known)
            if event is not None and reported.isdisjoint((event.holder, *event.others)):
                reported.update((event.holder, *event.others))
                yield event


def _reflects(function: Function) -> bool:
    """Whether the function may read its variables by computed names. ``"model" in locals()`` reads none."""
    if function.names.isdisjoint(_REFLECTION):
        return False
    asked = {
        right.at
        for part in parts(function.body)
        if isinstance(part, ir.Compare) and part.ops[-1] in ("in", "not in")
        for right in part.rights[-1:]
    }
    return any(
        isinstance(call.func, ir.Name) and call.func.id in _REFLECTION and call.at not in asked
        for call in calls(function.body)
    )


def _event(
    analyser: Analyser,
    summary: Summary,
    everything: list[Spot],
    release: Release,
    name: str,
    statement: ir.Stmt,
    known: dict[int, bool],
) -> NameOnly | None:
    """``known``: memo of which calls run a model."""
    kind = _kind(analyser, summary, everything, release, name, statement)
    if kind is None or name in release.hosted:
        return None
    alive: list[_Alive] = []
    for holder in holders_of(analyser, summary, everything, release, name, statement, kind):
        if holder.name in release.deleted:
            continue
        readers = _readers(summary, everything, holder.name)
        read = any(
            reads(spot.statement, holder.name)
            for spot in everything
            if release.spot.statement.at <= spot.statement.at <= release.end
        )
        life = (
            None if read or readers is None else afterlife(everything, holder.name, release.spot, release.end, readers)
        )
        if life is None:
            return None  # a holder that is still read keeps it anyway: the deletion is not at fault
        needed = _needed(analyser, summary, life, holder, name, known)
        alive += [needed] if needed is not None else []
    if not alive:
        return None
    worst = min(alive, key=lambda one: (not one.runs, one.holder.statement.at))
    steps = (
        Step(summary.site(worst.holder.statement.at), f"`{worst.holder.name}` holds it from here on"),
        Step(summary.site(worst.call.at), "runs while it does" if worst.runs else "takes memory while it does"),
    )
    return NameOnly(
        site=summary.site(statement.at),
        function=summary.function.qual,
        certainty=worst.holder.certainty,
        trace=steps,
        name=name,
        kind=kind,
        holder=worst.holder.name,
        how=worst.holder.how,
        others=tuple(dict.fromkeys(one.holder.name for one in alive if one is not worst)),
        during=text(worst.call.func),
        next_round=worst.again,
        runs=worst.runs,
    )


def _given_event(
    analyser: Analyser, summary: Summary, everything: list[Spot], given: Given, known: dict[int, bool]
) -> NameOnly | None:
    """A call of a function that deletes its parameter to free it, while the caller's variable lives on."""
    spot = next((one for one in everything if any(call is given.call for call in own_calls(one.statement))), None)
    readers = _readers(summary, everything, given.name)
    if spot is None or readers is None or given.name in names_bound_by(spot.statement):
        return None
    release = Release(spot, last_ordinal(spot.statement), {given.name: spot.statement}, frozenset())
    if _kind(analyser, summary, everything, release, given.name, spot.statement) != "model":
        return None
    life = afterlife(everything, given.name, spot, release.end, readers)
    holder = Holder(given.name, "given", spot.statement, "high")
    needed = _needed(analyser, summary, life, holder, given.name, known) if life is not None else None
    if needed is None:
        return None
    return NameOnly(
        site=summary.site(given.call.at),
        function=summary.function.qual,
        certainty="high",
        trace=(
            Step(given.site, f"deletes its own `{given.parameter}` only"),
            Step(summary.site(needed.call.at), "runs while it does" if needed.runs else "takes memory while it does"),
        ),
        name=given.parameter,
        kind="model",
        holder=given.name,
        how="given",
        others=(),
        during=text(needed.call.func),
        next_round=needed.again,
        runs=needed.runs,
        via=last_name(given.call.func),
    )


# -------------------------------------------------------------------------------------- what is meant to be freed


def _kind(
    analyser: Analyser, summary: Summary, everything: list[Spot], release: Release, name: str, statement: ir.Stmt
) -> Kind | None:
    """The kind of large object that a name refers to: a model, or a checkpoint on the device; None for another."""
    bound = _bindings(everything, release, name)
    loaded = [value for value in bound if _is_loaded(summary, value)]
    if loaded and len(loaded) == len(bound):
        return None if all(map(_is_on_host, loaded)) else "checkpoint"
    if any(_MAKES_NOTHING.search(last_name(call.func)) for call in _calls_on(summary, name)):
        return None
    known = summary.notes.dropped.get(statement.at, {}).get(name)
    if known is not None and known.is_only(MODULE | INSTANCE | NONE) and known.kinds & MODULE:
        return "model"
    if any(run.text == name and run.module.is_only(MODULE | INSTANCE | NONE) for run in summary.runs.values()):
        return "model"
    if name in summary.modules_by_use or any(_makes_model(analyser, summary, value) for value in bound):
        return "model"
    return None


#: methods that move a model to the host, or that models lack
_MAKES_NOTHING = lazy_pattern(r"^(cpu|step|zero_grad)$")


def _calls_on(summary: Summary, name: str) -> Iterator[ir.Call]:
    for call in calls(summary.function.body):
        if isinstance(call.func, ir.Attr) and isinstance(call.func.value, ir.Name) and call.func.value.id == name:
            yield call


def _bindings(everything: list[Spot], release: Release, name: str) -> list[ir.Expr]:
    found = []
    for spot in everything:
        one = spot.statement
        if isinstance(one, ir.Assign) and one.at < release.spot.statement.at and name not in deleted_by(one):
            found += [one.value] if name in names_bound_by(one) else []
    return found


def _is_loaded(summary: Summary, value: ir.Expr) -> bool:
    noted = summary.notes.outside.get(value.at) if isinstance(value, ir.Call) else None
    return noted is not None and noted.name == "torch.load"


def _is_on_host(value: ir.Expr) -> bool:
    """``torch.load(path, map_location="cpu")``"""
    place = argument(value, 1, "map_location") if isinstance(value, ir.Call) else None
    return "cpu" in text(place, 200) or "storage" in text(place, 200) or isinstance(place, ir.Lambda)


def _makes_model(analyser: Analyser, summary: Summary, value: ir.Expr) -> bool:
    value = under_calls(value, {"to", "cuda", "eval"})
    if not isinstance(value, ir.Call):
        return False
    kind, what = analyser.program.find_expression(summary.module, value.func, summary.function)
    if kind == "class" and what is not None:
        return analyser.program.is_module(what)
    if kind == "ext":
        name = str(what)
        if name.startswith("torchvision.models.") or name in ("timm.create_model", "torch.hub.load"):
            return True
        if name == "copy.deepcopy":
            return bool(value.args) and text(value.args[0]) in summary.modules_by_use
    return (
        _MAKES.search(last_name(value.func)) is not None
        and (kind == "ext" or last_name(value.func).startswith("from_") or "model" in last_name(value.func))
        and "okenizer" not in dotted(value.func)
        and "rocessor" not in dotted(value.func)
        and "onfig" not in dotted(value.func)
    )


# -------------------------------------------------------------------------------------- who reads it


def _readers(summary: Summary, everything: list[Spot], name: str) -> frozenset[str] | None:
    """The nested functions that read a variable when they are called; None if other code than the function's own
    statements and calls may read it."""
    function = summary.function
    if any(
        isinstance(part, ir.Lambda)
        and any(isinstance(one, ir.Name) and one.id == name for one in parts((ir.Return(part.at, part.body),)))
        for part in parts(function.body)
    ):
        return None
    found = {name}
    for _ in range(_DEPTH):
        for spot in everything:
            if not any(reads(spot.statement, one) for one in found):
                continue
            if isinstance(spot.statement, ir.ClassDef):
                return None
            if isinstance(spot.statement, ir.FunctionDef):
                found.add(spot.statement.name)
    found.discard(name)
    if function.node is None:
        return None if found or _read_by_functions(summary, name) else frozenset()
    called = {id(part.func) for part in parts(function.body, into_definitions=True) if isinstance(part, ir.Call)}
    handed_on = any(
        isinstance(part, ir.Name) and part.id in found and id(part) not in called
        for part in parts(function.body, into_definitions=True)
    )
    return frozenset(found) if name in function.locals and not handed_on else None


def _read_by_functions(summary: Summary, name: str) -> bool:
    """Whether functions of a module may read its global."""
    units = summary.module.index.units
    others = (number for number, unit in enumerate(units) if number != summary.function.unit and name in unit.names)
    return any(
        name not in {param.name for param in one.params} | assigned_names(one.body)[0]
        and any(isinstance(part, ir.Name) and part.id == name for part in parts(one.body))
        for number in others
        for one in walk_statements(summary.module.lowered(number).body)
        if isinstance(one, ir.FunctionDef)
    )


# -------------------------------------------------------------------------------------- what runs meanwhile


def _needed(
    analyser: Analyser, summary: Summary, life: Afterlife, holder: Holder, name: str, known: dict[int, bool]
) -> _Alive | None:
    """The call that needs memory while the holder lives: preferably one that runs a model, and one in this iteration. A
    call that rebinds the name creates a model too. None if there is none."""
    found = []
    for again, region in ((False, life.after), (True, life.again)):
        for spot in region:
            given = spot.statement.value if isinstance(spot.statement, ir.Assign) else None
            following = given if name in names_bound_by(spot.statement) else None
            for call in own_calls(spot.statement):
                if call.at not in known:
                    known[call.at] = _runs(analyser, summary, call)
                runs = known[call.at]
                if runs or call is following or _makes_model(analyser, summary, call):
                    found.append(_Alive(holder, call, runs, again))
    return min(found, key=lambda one: (not one.runs, one.again, one.call.at), default=None)


def _runs(analyser: Analyser, summary: Summary, call: ir.Call) -> bool:
    """Whether a call runs a model: itself, in its callees, or as a trainer's method."""
    if runs_model(analyser, summary, call, _DEPTH):
        return True
    func = call.func
    return (
        isinstance(func, ir.Attr)
        and _TRAINS.search(func.name) is not None
        and _TRAINER.search(last_name(func.value).lower()) is not None
    )
