"""Names that are deleted to free memory, while another one, which nobody reads any more, holds what they named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from memlint.finding import Confidence
from memlint.flow.bound_names import argument
from memlint.flow.events import Step
from memlint.flow.frame import Frame
from memlint.flow.practice_events import Hold, NameOnly
from memlint.flow.practices.devices import touches_an_accelerator
from memlint.flow.practices.holders import held_by
from memlint.flow.practices.lifetimes import Afterlife, Spot, afterlife, reads, spots
from memlint.flow.practices.outside import COLLECTS, EMPTIES
from memlint.flow.practices.recovery import runs_model
from memlint.flow.practices.releases import Release, deleted_by, releases
from memlint.flow.program import Function
from memlint.flow.spent import is_test
from memlint.flow.syntax import (
    assigned_names,
    calls,
    dotted,
    expressions,
    last_name,
    names_bound_by,
    parts,
    text,
    walk_expression,
    walk_statements,
)
from memlint.flow.values import INSTANCE, MODULE, NONE
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: what reads names without writing them
_REFLECTION = frozenset({"locals", "globals", "vars", "eval", "exec", "dir"})
#: names of what makes a model, and of methods that make one, whatever they are called on
_MAKES = re.compile(r"^(from_pretrained|from_quantized|load_from_checkpoint|load_model|(build|create|make|get)_model)$")
_TRAINS = re.compile(r"^(train|fit|evaluate|test|validate)$")
_TRAINER = re.compile(r"trainer|solver|learner|runner|engine")
_ADDS = frozenset({"append", "insert", "add", "appendleft"})
#: calls through which a run of a model is looked for
_DEPTH = 3

Kind = Literal["model", "checkpoint"]


class _Holder(NamedTuple):
    name: str
    how: Hold
    statement: ir.Stmt
    certainty: Confidence


class _Alive(NamedTuple):
    """A holder, and a call that takes memory while it lives, maybe only in the next round: it runs a model, or makes
    one."""

    holder: _Holder
    call: ir.Call
    runs: bool
    again: bool


def events(analyser: Analyser, frame: Frame) -> Iterator[NameOnly]:
    """The names that one function deletes in vain."""
    function = frame.function
    noted = {at for at, call in frame.notes.outside.items() if call.name in EMPTIES or call.name == COLLECTS}
    if not noted or is_test(function) or _reflects(function):
        return
    if not touches_an_accelerator(analyser, frame):
        return
    everything = list(spots(function.body))
    for release in releases(everything, noted):
        for name, statement in release.deleted.items():
            event = _event(analyser, frame, everything, release, name, statement)
            if event is not None:
                yield event


def _reflects(function: Function) -> bool:
    """Whether the function may read its names without writing them."""
    return not function.names.isdisjoint(_REFLECTION) and any(
        isinstance(call.func, ir.Name) and call.func.id in _REFLECTION for call in calls(function.body)
    )


def _event(
    analyser: Analyser, frame: Frame, everything: list[Spot], release: Release, name: str, statement: ir.Stmt
) -> NameOnly | None:
    kind = _kind(analyser, frame, everything, release, name, statement)
    if kind is None or name in release.hosted:
        return None
    alive: list[_Alive] = []
    for holder in _holders(analyser, frame, everything, release, name, statement, kind):
        if holder.name in release.deleted:
            continue
        shared = _is_shared(frame, everything, holder.name)
        life = None if shared else afterlife(everything, holder.name, release.spot, release.end)
        if life is None:
            return None  # what is read holds it anyway: it is not the deletion that is wrong
        needed = _needed(analyser, frame, life, holder)
        alive += [needed] if needed is not None else []
    if not alive:
        return None
    worst = min(alive, key=lambda one: (not one.runs, one.holder.statement.at))
    steps = (
        Step(frame.site(worst.holder.statement.at), f"`{worst.holder.name}` holds it from here on"),
        Step(frame.site(worst.call.at), "runs while it does" if worst.runs else "takes memory while it does"),
    )
    return NameOnly(
        site=frame.site(statement.at),
        function=frame.function.qual,
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
        doubt=_doubt(frame, everything, release, [one.holder for one in alive]),
    )


# -------------------------------------------------------------------------------------- what is meant to be freed


def _kind(
    analyser: Analyser, frame: Frame, everything: list[Spot], release: Release, name: str, statement: ir.Stmt
) -> Kind | None:
    """What a name stands for that takes much memory: a model, or a checkpoint on the device."""
    bound = _bindings(everything, release, name)
    loaded = [value for value in bound if _is_loaded(frame, value)]
    if loaded and len(loaded) == len(bound):
        return None if all(map(_is_on_host, loaded)) else "checkpoint"
    if any(_MAKES_NOTHING.search(last_name(call.func)) for call in _calls_on(frame, name)):
        return None
    known = frame.notes.dropped.get(statement.at, {}).get(name)
    if known is not None and known.is_only(MODULE | INSTANCE | NONE) and known.kinds & MODULE:
        return "model"
    if any(run.text == name and run.module.is_only(MODULE | INSTANCE | NONE) for run in frame.runs.values()):
        return "model"
    if name in frame.modules_by_use or any(_makes_model(analyser, frame, value) for value in bound):
        return "model"
    return None


#: methods that bring a model to the host, or tell that it is none
_MAKES_NOTHING = re.compile(r"^(cpu|step|zero_grad)$")


def _calls_on(frame: Frame, name: str) -> Iterator[ir.Call]:
    for call in calls(frame.function.body):
        if isinstance(call.func, ir.Attr) and isinstance(call.func.value, ir.Name) and call.func.value.id == name:
            yield call


def _bindings(everything: list[Spot], release: Release, name: str) -> list[ir.Expr]:
    found = []
    for spot in everything:
        one = spot.statement
        if isinstance(one, ir.Assign) and one.at < release.spot.statement.at and name not in deleted_by(one):
            found += [one.value] if name in names_bound_by(one) else []
    return found


def _is_loaded(frame: Frame, value: ir.Expr) -> bool:
    noted = frame.notes.outside.get(value.at) if isinstance(value, ir.Call) else None
    return noted is not None and noted.name == "torch.load"


def _is_on_host(value: ir.Expr) -> bool:
    """``torch.load(path, map_location="cpu")``"""
    place = argument(value, 1, "map_location") if isinstance(value, ir.Call) else None
    return "cpu" in text(place, 200) or "storage" in text(place, 200) or isinstance(place, ir.Lambda)


def _makes_model(analyser: Analyser, frame: Frame, value: ir.Expr) -> bool:
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.func.name in ("to", "cuda", "eval"):
        value = value.func.value
    if not isinstance(value, ir.Call):
        return False
    kind, what = analyser.program.find_expression(frame.module, value.func, frame.function)
    if kind == "class" and what is not None:
        return analyser.program.is_module(what)
    if kind == "ext":
        name = str(what)
        if name.startswith("torchvision.models.") or name in ("timm.create_model", "torch.hub.load"):
            return True
        if name == "copy.deepcopy":
            return bool(value.args) and text(value.args[0]) in frame.modules_by_use
    return (
        _MAKES.search(last_name(value.func)) is not None
        and (kind == "ext" or last_name(value.func).startswith("from_") or "model" in last_name(value.func))
        and "okenizer" not in dotted(value.func)
        and "rocessor" not in dotted(value.func)
        and "onfig" not in dotted(value.func)
    )


# -------------------------------------------------------------------------------------- what holds it


def _holders(
    analyser: Analyser,
    frame: Frame,
    everything: list[Spot],
    release: Release,
    name: str,
    statement: ir.Stmt,
    kind: Kind,
) -> Iterator[_Holder]:
    """What holds the object of that name when it is deleted, each where it came to do so."""
    names = {name}
    found: dict[str, _Holder] = {}
    for spot in everything:
        one = spot.statement
        if one.at >= release.spot.statement.at:
            break
        certainty = _reaches(spot, release)
        made = _holding(analyser, frame, one, frozenset(names), kind)
        if made is not None and certainty is not None and made[0] != name:
            if made[0] not in names or certainty == "high":
                found[made[0]] = _Holder(made[0], made[1], one, certainty)
            names.add(made[0])
            continue
        bound = names_bound_by(one)
        if name in bound and not _goes_on(one, names):
            names = {name}  # another object has the name
            found.clear()
        for other in bound & names - {name}:
            names.discard(other)
            found.pop(other, None)
    yield from found.values()
    if kind == "model":
        yield from _graphs(frame, everything, release, name, statement)


def _holding(
    analyser: Analyser, frame: Frame, statement: ir.Stmt, names: frozenset[str], kind: Kind
) -> tuple[str, Hold] | None:
    """The name that comes to hold it by a statement."""
    if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ir.Name):
            how = held_by(analyser, frame, statement.value, names, kind)
            return None if how is None else (target.id, how)
        if isinstance(target, ir.Subscript) and isinstance(target.value, ir.Name):
            plain = isinstance(statement.value, ir.Name) and statement.value.id in names
            return (target.value.id, "container") if plain else None
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and call.func.name in _ADDS and call.args:
        item, place = call.args[-1], call.func.value
        if isinstance(item, ir.Name) and item.id in names and isinstance(place, ir.Name):
            return place.id, "container"
    return None


def _goes_on(statement: ir.Stmt, names: set[str]) -> bool:
    """``model = model.to(device)``, ``model = DataParallel(model)``: the parameters are the same."""
    value = statement.value if isinstance(statement, ir.Assign) else None
    if not isinstance(value, ir.Call):
        return False
    inside = [value.func.value] if isinstance(value.func, ir.Attr) else []
    return any(isinstance(item, ir.Name) and item.id in names for item in (*inside, *value.args))


def _reaches(spot: Spot, release: Release) -> Confidence | None:
    """How well it is known that the deletion comes after a statement on the same way."""
    if spot.follows_from(release.spot.around):
        return "high"
    own = spot.around[len(_common(spot.around, release.spot.around)) :]
    if spot.excludes(release.spot.around):
        return None
    rest = release.spot.around[len(_common(spot.around, release.spot.around)) :]
    if any(isinstance(block[0], ir.If | ir.Match | ir.Try) for block in rest):
        return None  # which sides go together is not known
    if any(isinstance(block[0], ir.Try | ir.Match) and block[1] for block in own):
        return None
    return "medium" if any(isinstance(block[0], ir.If | ir.Match) for block in own) else "high"


def _common(a: tuple[tuple[ir.Stmt, int], ...], b: tuple[tuple[ir.Stmt, int], ...]) -> tuple[tuple[ir.Stmt, int], ...]:
    shared = 0
    while shared < min(len(a), len(b)) and a[shared][0] is b[shared][0] and a[shared][1] == b[shared][1]:
        shared += 1
    return a[:shared]


def _graphs(frame: Frame, everything: list[Spot], release: Release, name: str, statement: ir.Stmt) -> Iterator[_Holder]:
    """Results of the model whose graph leads to its parameters, freed by a backward or not."""
    runs = {
        run.node for run in frame.runs.values() if run.text.split(".")[0] == name and run.node in frame.graphs.nodes
    }
    for other, value in sorted(frame.notes.dropped.get(statement.at, {}).items()):
        reached = runs & frame.graphs.closure(value.src)
        if other == name or not any(frame.graphs.nodes[node].definite for node in reached):
            continue
        made = [spot.statement for spot in everything if other in names_bound_by(spot.statement)]
        made = [one for one in made if one.at < release.spot.statement.at]
        if made:
            yield _Holder(other, "graph", made[-1], "high")


def _is_shared(frame: Frame, everything: list[Spot], name: str) -> bool:
    """Whether something else than the function's own statements may read a name of it."""
    function = frame.function
    if any(
        reads(spot.statement, name) for spot in everything if isinstance(spot.statement, ir.FunctionDef | ir.ClassDef)
    ) or any(
        isinstance(part, ir.Lambda)
        and any(isinstance(one, ir.Name) and one.id == name for one in parts((ir.Return(part.at, part.body),)))
        for part in parts(function.body)
    ):
        return True
    if function.node is not None:
        return name not in function.locals
    units = frame.module.index.units
    others = (number for number, unit in enumerate(units) if number != function.unit and name in unit.names)
    return any(
        name not in {param.name for param in one.params} | assigned_names(one.body)[0]
        and any(isinstance(part, ir.Name) and part.id == name for part in parts(one.body))
        for number in others
        for one in walk_statements(frame.module.lowered(number).body)
        if isinstance(one, ir.FunctionDef)
    )


# -------------------------------------------------------------------------------------- what runs meanwhile


def _needed(analyser: Analyser, frame: Frame, life: Afterlife, holder: _Holder) -> _Alive | None:
    """What needs memory while the holder lives: what runs a model first, and what does so in this round."""
    found = []
    for again, region in ((False, life.after), (True, life.again)):
        for spot in region:
            for call in _calls_of(spot.statement):
                runs = _runs(analyser, frame, call)
                if runs or _makes_model(analyser, frame, call):
                    found.append(_Alive(holder, call, runs, again))
    return min(found, key=lambda one: (not one.runs, one.again, one.call.at), default=None)


def _calls_of(statement: ir.Stmt) -> Iterator[ir.Call]:
    if isinstance(statement, ir.FunctionDef | ir.ClassDef):
        return
    for expr in expressions(statement):
        yield from (part for part in walk_expression(expr) if isinstance(part, ir.Call))


def _runs(analyser: Analyser, frame: Frame, call: ir.Call) -> bool:
    """Whether a call runs a model: by itself, in what it calls, or as a trainer's method."""
    if runs_model(analyser, frame, call, _DEPTH):
        return True
    func = call.func
    return (
        isinstance(func, ir.Attr)
        and _TRAINS.search(func.name) is not None
        and _TRAINER.search(last_name(func.value).lower()) is not None
    )


def _doubt(frame: Frame, everything: list[Spot], release: Release, holders: list[_Holder]) -> str:
    """Why the holders cannot simply be deleted beside the name."""
    if frame.function.node is None:
        return "another module may import it"
    made = {id(spot.statement): spot for spot in everything}
    if not all(made[id(one.statement)].follows_from(release.spot.around) for one in holders):
        return "it may not be bound there"
    return ""
