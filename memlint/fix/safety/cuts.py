"""Where the graph of a stored value can be cut, and whether the program could notice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.events import Cut, Site
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER, DATA, INSTANCE, NONE, SCALAR, TENSOR, TREE, UNKNOWN, Path, V
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import expressions, parts, statement_at, walk_expression, walk_statements
from memlint.analysis.transfer.stores.class_places import MADE
from memlint.fix.safety.bindings import is_sum
from memlint.fix.safety.hosts import met_on_device
from memlint.fix.safety.membership import holds_others
from memlint.fix.safety.proofs import is_guessed
from memlint.fix.safety.reasons import unresolved
from memlint.fix.safety.reflection import is_used, reached
from memlint.fix.safety.states import detached_state
from memlint.fix.safety.watch import Watch
from memlint.ir import nodes as ir
from memlint.knowledge import MODULE_BASES, PLAIN_BASES

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


_HOLDS = ir.Display | ir.DictDisplay | ir.Comprehension


def cut_of(analyser: Analyser, summary: Summary, store: Store) -> Cut | None:
    """The expressions in the store's statement whose graph it keeps; None if unknown."""
    function, place = summary.function, store.place_text
    here = (store.site.path, store.site.unit) == (summary.module.key, function.unit)
    statement = statement_at(function.body, store.site.at) if here else None
    own = True
    if store.lifted and isinstance(statement, ir.Assign | ir.AnnAssign | ir.AugAssign):
        return None  # what a callee stores is not its return value
    if statement is None:
        method = _callee_at(analyser, store.site)
        if method is None:
            return None
        function, statement, place, own = method
    known = summary if function is summary.function else analyser.summary(function)
    found = list(_kept(known, function, statement, store, place))
    if not found:
        return _whole(analyser, summary, store, statement) if function is summary.function else None
    doubts = [_no_tensor(known, function, statement, expr, value, place) for expr, value in found]
    if None in doubts:
        return None
    doubt = next((doubt for doubt in doubts if doubt), "") or (
        _noticed(analyser, summary, store, statement)
        if function is summary.function
        else _noticed_on_self(analyser, function, store, statement, place.partition(".")[2])
        if own
        else f"`{place}` is not used by `{function.name}` alone, and others may need its graph"
    )
    if doubt and store.kind == "carry" and store.place_kind == "attribute" and _is_read(function, statement, place):
        return None
    sites = tuple(Site(store.site.path, store.site.unit, expr.at) for expr, _ in found)
    met = "" if store.value.src else met_on_device(function, place)
    return Cut(sites, ", ".join(dict.fromkeys(text(expr) for expr, _ in found)), doubt, met=met)


def _whole(analyser: Analyser, summary: Summary, store: Store, statement: ir.Stmt) -> Cut | None:
    """A state that a call computes from the old one, which is detached as a whole at the start of an iteration."""
    if (
        store.kind != "carry"
        or store.how != "call"
        or not isinstance(store.place, tuple)
        or isinstance(store.place, Path)
    ):
        return None
    named = store.place[0] == "var" and store.loop is not None and store.loop.loop.kind != "calls"
    start = detached_state(summary, store.place_text, store.value) if named else ""
    if not start:
        return None
    doubt = ""
    if summary.backwards or summary.notes.gradients:
        doubt = "gradients then stop at the start of each iteration"
    return Cut((), store.place_text, doubt or _noticed(analyser, summary, store, statement), start)


def _callee_at(analyser: Analyser, site: Site) -> tuple[Function, ir.Stmt, str, bool] | None:
    """(function, statement, place, whether that is an attribute of its own object) of a store's site in a callee, from
    whose summary the caller has it."""
    module = analyser.program.module(site.path)
    for function in list(module.by_place.get(site.unit, {}).values()):
        statement = statement_at(function.body, site.at)
        target: ir.Expr | None = None
        match statement:
            case ir.AugAssign() | ir.AnnAssign():
                target = statement.target
            case ir.Assign() if len(statement.targets) == 1:
                target = statement.targets[0]
            case ir.ExprStmt() if isinstance(statement.value, ir.Call) and isinstance(statement.value.func, ir.Attr):
                target = statement.value.func.value
        if statement is None or target is None:
            continue
        first = function.own_name
        own = isinstance(target, ir.Attr) and text(target.value) == first
        if own or isinstance(statement, ir.ExprStmt | ir.AugAssign):
            return function, statement, text(target), own
    return None


def _kept(
    summary: Summary | None, function: Function, statement: ir.Stmt, store: Store, place: str
) -> Iterator[tuple[ir.Expr, V]]:
    """The expressions through which the graph enters, each with its value; of a display, each member."""
    value = store.entering
    for expr in _entering(statement, store, place):
        if isinstance(expr, ir.Display | ir.DictDisplay):
            yield from _members(expr, store)
        elif isinstance(expr, ir.Comprehension):
            if not value.kinds & ~TENSOR and not isinstance(expr.element, _HOLDS):
                yield expr.element, value
        elif not holds_others(summary, function, statement, expr):
            yield expr, value


def _entering(statement: ir.Stmt, store: Store, place: str) -> Iterator[ir.Expr]:
    match statement:
        case ir.AugAssign():
            yield statement.value
        case ir.Assign() | ir.AnnAssign() if statement.value is not None:
            if store.kind == "retain" and not _is_nameless(place):
                yield statement.value
            elif store.kind == "retain":  # a container inside the value, whose result may be no tensor: a sum, a tuple
                inner = (expr for expr in walk_expression(statement.value) if isinstance(expr, ir.Comprehension))
                yield from (expr for expr in inner if expr.at == store.site.at)
            elif isinstance(statement.value, ir.Binary | ir.IfExp):
                yield from _terms(statement.value, place)
        case ir.ExprStmt() if isinstance(statement.value, ir.Call):
            call = statement.value
            given = call.passed
            # which of several equal arguments is meant is unknown
            same = [arg for arg in given if text(arg) == store.text]
            if len(same) == 1:
                yield same[0]


def _is_nameless(place: str) -> bool:
    """Whether a container is called by its own text, as no variable or attribute refers to it."""
    return place.startswith(("[", "{"))


def _terms(expr: ir.Expr, place: str) -> Iterator[ir.Expr]:
    """The summands that do not contain the place's previous value."""
    if isinstance(expr, ir.Binary) and expr.op in ("+", "-"):
        yield from _terms(expr.left, place)
        yield from _terms(expr.right, place)
    elif isinstance(expr, ir.IfExp):
        yield from _terms(expr.body, place)
        yield from _terms(expr.orelse, place)
    elif not mentions(expr, place) and not isinstance(expr, ir.Const):
        yield expr


def _members(expr: ir.Display | ir.DictDisplay, store: Store) -> Iterator[tuple[ir.Expr, V]]:
    """The members of a display that have a graph."""
    if isinstance(expr, ir.Display):
        named = [(str(position), element) for position, element in enumerate(expr.elements)]
    else:
        named = [
            (key.value, element)
            for key, element in zip(expr.keys, expr.values, strict=True)
            if isinstance(key, ir.Const) and isinstance(key.value, str)
        ]
    valued = [(element, store.parts[name]) for name, element in named if name in store.parts]
    found = [
        (element, value) for element, value in valued if value.src or (not store.entering.src and value.kinds & TENSOR)
    ]
    # if one member surely has a graph, a mere argument beside it is mostly a label or a name
    yield from [(element, value) for element, value in found if not _is_handed_in(value)] or found


def _is_handed_in(value: V) -> bool:
    """Whether nothing is known of a value but its place in the caller."""
    return not value.kinds & (TENSOR | TREE) and all(isinstance(source, Path) for source in value.src)


def _no_tensor(
    summary: Summary | None, function: Function, statement: ir.Stmt, expr: ir.Expr, value: V, place: str
) -> str | None:
    """Why the value may not have `.detach()`; None if it always has."""
    shown = text(expr, 40)
    if value.kinds & (CONTAINER | INSTANCE) or not value.kinds & (TENSOR | TREE | UNKNOWN):
        return None
    if value.kinds & (TREE | DATA | NONE) and not _is_used_as_tensor(function, expr):
        # a sum that starts as a number still is one if nothing was added
        if value.kinds & (TREE | NONE) or not is_sum(function, expr):
            return None
        return f"`{shown}` is a number on some paths, and has no `.detach()` there"
    if value.kinds & ~TENSOR or is_guessed(summary, function, statement, expr, value, place):
        why = unresolved(summary.analyser, function, expr) if summary is not None else ""
        return f"`{shown}` may not be a tensor here{': ' if why else ''}{why}"
    return ""


def _is_read(function: Function, update: ir.Stmt, place: str) -> bool:
    """Whether the function reads the place outside of its update, as a state through which the gradients of a training
    step flow."""
    if "." not in place:
        return False
    for statement in walk_statements(function.body, into_definitions=False):
        if statement is update:
            continue
        targets = statement.targets if isinstance(statement, ir.Assign) else ()
        for expr in expressions(statement):
            if expr not in targets and not isinstance(expr, ir.Compare) and mentions(expr, place):
                return True
    return False


def _is_used_as_tensor(function: Function, expr: ir.Expr) -> bool:
    """Whether the function calls a method on the expression that only tensors have."""
    return any(
        isinstance(part, ir.Call)
        and isinstance(part.func, ir.Attr)
        and part.func.name in ("backward", "item", "detach")
        and text(part.func.value) == text(expr)
        for part in parts(function.body)
    )


def _noticed(analyser: Analyser, summary: Summary, store: Store, statement: ir.Stmt) -> str:
    """Why the graph of the stored value may be needed, as a clause; "" if it is proven not to be."""
    watch = _watch(analyser, summary.function, store, statement)
    place = store.place
    root = store.place_text.split("[")[0].split(".")[0]
    if not isinstance(place, Path):
        if not root.isidentifier():
            return f"not every use of `{store.place_text}` is resolved, and one may need its graph"
        watch.name(summary.function, root)
        return watch.run()
    names = [step[1:] for step in place.steps if step.startswith(".")]
    params = summary.function.params
    own = summary.function.takes_self and bool(params) and place.root == f"p:{params[0].name}"
    if place.root.startswith(("p:", MADE)) and not own:
        return f"`{store.place_text}` belongs to the caller, which may need its graph"
    if names and store.place_kind in ("attribute", "buffer"):
        if store.place_kind == "buffer":
            return f"`{store.place_text}` is a buffer of the module, and its users may need the graph"
        return _noticed_on_self(analyser, summary.function, store, statement, names[-1])
    if place.root.startswith(("g:", "c:")) and root.isidentifier():
        watch.name(summary.function, root)
        return watch.run()
    return f"`{store.place_text}` belongs to the caller, which may need its graph"


def _noticed_on_self(analyser: Analyser, method: Function, store: Store, statement: ir.Stmt, name: str) -> str:
    watch = _watch(analyser, method, store, statement)
    watch.attribute(name)
    watch.doubtful(_reached(analyser, method, name))
    return watch.run()


def _watch(analyser: Analyser, function: Function, store: Store, statement: ir.Stmt) -> Watch:
    return Watch(
        analyser,
        analyser.facts.partners.together(function.module.key),
        frozenset({(function.module.key, function.unit, statement.at)}),
        stored=frozenset((store.text,)),
        number=store.kind == "carry" and store.how == "add" and store.value.size == SCALAR,
    )


def _reached(analyser: Analyser, function: Function, name: str) -> str:
    """Code that may read an attribute without naming it, as a clause; "" if there is none."""
    cls = function.cls
    if cls is not None:
        program = analyser.program
        outside = {base for one in (cls, *program.below(cls)) for base in program.ancestors(one)[1]}
        if not all(MODULE_BASES.fullmatch(base) or base in PLAIN_BASES for base in outside):
            return f"a base class of `{cls.node.name}` is not resolved, and may use `{name}` with its graph"
        if not is_used(analyser, cls):
            return f"no use of `{cls.node.name}` is found, and unknown users may need the graph of `{name}`"
    return reached(analyser, name, function.module)
