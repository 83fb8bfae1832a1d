"""Assignments that should freeze a network and do nothing: ``net.requires_grad = False`` gives the module an attribute
that torch does not read, and ``parameter.require_grad = False`` misspells the one that it reads."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Summary
from memlint.sdk.syntax import (
    bodies,
    calls,
    dotted,
    ir,
    is_false,
    is_true,
    last_name,
    loops_around,
    parts,
    text,
    walk_expression,
    walk_statements,
    with_lambdas,
)
from memlint.sdk.values import MODULE, OFF, ModelRun

from .rule import IneffectiveFreeze

#: names for the attribute ``requires_grad`` of a parameter that torch does not know
_MISSPELLED = lazy_pattern(r"requires?_grads|requires_grad_|requires?_?gradients?|required?_grads?|requiresgrad")
#: what assigns to all parameters of a network
_PARAMETERS = frozenset({"parameters", "named_parameters"})
#: what gives the modules of a network
_MODULES = frozenset({"modules", "named_modules", "children", "named_children"})
#: names of functions that may freeze what they get
_FREEZING = lazy_pattern(r"(?i)freez|frozen|requires?_?grad")
#: names without which a function freezes nothing
_WORD = lazy_pattern(r"require[sd]?_?grad")


def detect(analyser: Analyser, summary: Summary) -> Iterator[IneffectiveFreeze]:
    """The assignments of one function that freeze nothing, where a run of the network records."""
    if not any(_WORD.match(name) for name in summary.function.names):
        return
    for assignment, network in _assignments(analyser, summary, summary.function.body, ()):
        target = assignment.targets[0]
        assert isinstance(target, ir.Attr)
        if _is_used_otherwise(analyser, summary, target):
            continue
        run = next(_runs(analyser, summary, network, assignment.at), None)
        if run is not None:
            yield IneffectiveFreeze(
                site=summary.site(assignment.at),
                function=summary.function.qual,
                text=text(assignment.targets[0]),
                network=network,
                misspelled=target.name != "requires_grad",
                run=run.site,
            )


def _assignments(
    analyser: Analyser, summary: Summary, body: tuple[ir.Stmt, ...], loops: tuple[ir.For, ...]
) -> Iterator[tuple[ir.Assign, str]]:
    """The assignments without effect in a body, each with the place of its network."""
    for statement in body:
        around = (*loops, statement) if isinstance(statement, ir.For) else loops
        for inner in bodies(statement) if not isinstance(statement, ir.FunctionDef | ir.ClassDef) else ():
            yield from _assignments(analyser, summary, inner, around)
        if not isinstance(statement, ir.Assign) or len(statement.targets) != 1 or not is_false(statement.value):
            continue
        target = statement.targets[0]
        if not isinstance(target, ir.Attr):
            continue
        wrong = _MISSPELLED.fullmatch(target.name) is not None
        if not wrong and target.name != "requires_grad":
            continue
        network = _network(analyser, summary, target.value, loops, of_parameters=wrong)
        if network:
            yield statement, network


def _network(
    analyser: Analyser, summary: Summary, owner: ir.Expr, loops: tuple[ir.For, ...], *, of_parameters: bool
) -> str:
    """The place of the network that an assignment to an attribute of ``owner`` should freeze; "" for none."""
    place = dotted(owner)
    if not place:
        return ""
    for loop in reversed(loops):
        if place not in {dotted(part) for part in (loop.target, *getattr(loop.target, "elements", ()))}:
            continue
        call = loop.iter
        if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr):
            return ""
        taken = _MODULES | _PARAMETERS if of_parameters else _MODULES
        return dotted(call.func.value) if last_name(call.func) in taken else ""
    return place if _is_module(analyser, summary, place) else ""


def _is_module(analyser: Analyser, summary: Summary, place: str) -> bool:
    """Whether a name or an attribute of ``self`` is a module."""
    first, _, rest = place.partition(".")
    if place in summary.modules_by_use:
        return True
    if not rest:
        value = summary.last.env.get(place) if summary.last is not None else None
        return value is not None and value.is_only(MODULE)
    cls = summary.function.cls
    of_self = cls is not None and first == summary.function.own_name and "." not in rest
    return of_self and cls is not None and analyser.attribute(cls, rest).is_only(MODULE)


def _is_used_otherwise(analyser: Analyser, summary: Summary, target: ir.Attr) -> bool:
    """Whether the file also freezes networks by what has an effect, or something reads the attribute that is assigned:
    who sets both may know that only one of them counts."""
    if analyser.methods_named(target.name, summary.function):
        return True
    read = {dotted(target), f"self.{target.name}"}
    return any(_freezes(body) or _reads(body, read) for body in summary.module.bodies)


def _reads(body: tuple[ir.Stmt, ...], places: set[str]) -> bool:
    """Whether a body reads one of the attributes, or names it in a string (``getattr(net, "requires_grad", True)``)."""
    targets = {id(one) for item in walk_statements(body) if isinstance(item, ir.Assign) for one in item.targets}
    names = {place.rpartition(".")[2] for place in places}
    return any(
        (isinstance(part, ir.Attr) and id(part) not in targets and dotted(part) in places)
        or (isinstance(part, ir.Const) and part.value in names)
        for part in with_lambdas(parts(body, into_definitions=True))
    )


def _freezes(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body freezes by a call, or in a loop that sets what torch reads."""
    for call in calls(body, into_definitions=True):
        name = last_name(call.func)
        by_default = not call.passed and name != "requires_grad_"
        if _FREEZING.search(name) and (by_default or not all(map(is_true, call.passed))):
            return True
    return any(isinstance(loop, ir.For) and _freezes_parameters(loop) for loop in walk_statements(body))


def _freezes_parameters(loop: ir.For) -> bool:
    """Whether a loop, over what are no modules, turns requires_grad of its variable off."""
    if isinstance(loop.iter, ir.Call) and last_name(loop.iter.func) in _MODULES:
        return False
    members = {dotted(part) for part in walk_expression(loop.target)}
    return any(
        isinstance(to, ir.Attr) and to.name == "requires_grad" and dotted(to.value) in members
        for one in walk_statements(loop.body)
        if isinstance(one, ir.Assign) and not is_true(one.value)
        for to in one.targets
    )


def _runs(analyser: Analyser, summary: Summary, network: str, at: int) -> Iterator[ModelRun]:
    """The recorded runs of a network or of one that holds it: in this function, after an assignment to it or in a loop
    around that, and for an attribute of ``self`` in the methods of its class."""
    cls = summary.function.cls
    own = cls is not None and network.startswith(f"{summary.function.own_name}.")
    others = [analyser.summary(method) for method in cls.methods.values()] if own and cls is not None else []
    rounds = loops_around(summary.function.body, at)
    first = min([at, *(loop.at for loop in rounds)])
    for inner in (summary, *(one for one in others if one is not None and one is not summary)):
        if analyser.facts.modes.of(inner.function) == OFF:
            continue
        for run in inner.runs.values():
            if run.grad & ~OFF and _concerns(run, network) and (inner is not summary or run.site.at > first):
                yield run


def _concerns(run: ModelRun, network: str) -> bool:
    holds = f"{network}.".startswith(f"{run.text}.") or run.text.startswith(f"{network}.")
    return run.origin is None and holds
