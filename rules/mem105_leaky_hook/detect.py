"""Hooks that store their arguments in each forward, and hooks that accumulate as one is added repeatedly."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import Confidence, Loop, Step
from memlint.sdk.project import (
    Analyser,
    Function,
    Summary,
    each_call,
    goes_on,
    in_tests,
    layer_code,
    touches_an_accelerator,
)
from memlint.sdk.syntax import (
    call_at,
    calls,
    dotted,
    ir,
    mentions,
    names_bound_by,
    text,
    under_calls,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import (
    CPU,
    DATA,
    OF_MODULES,
    PARAMETERS,
    SAMPLE,
    SCALAR,
    HookCall,
    LoopState,
    Path,
    Store,
    V,
    ordered,
)

from .hook_conditions import asks_for_gradient, is_of_type, may_be_cached, may_be_skipped
from .hook_handles import dropped
from .hook_inputs import added_for_each_input, runs_on_inputs
from .hook_places import Place, Span, emptied, outlives, place_of
from .hook_runs import (
    ITSELF,
    MAX_DEPTH,
    given_for,
    indexed_by,
    is_from_outside,
    loop_behind,
    loop_of_callees,
    loop_of_callers,
    loop_of_network,
    loop_of_object,
    names_it,
    rebinds,
    root_of,
)
from .rule import HookAdded

#: attributes of modules that hold their hooks; code that changes them removes hooks by hand
_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_post_accumulate_grad_hooks")


class _Kept(NamedTuple):
    """What a hook stores: the hook's summary, the store, and whether the value may have a graph."""

    summary: Summary
    store: Store
    attached: bool


class _Runs(NamedTuple):
    """The loop that runs the module repeatedly; None if none is known."""

    loop: Loop | None
    certainty: Confidence
    records: bool = True
    #: the hook is removed after the loop
    removed: bool = False
    #: the last ordinal at which it runs the module, in the function that adds the hook
    end: int | None = None


def detect(analyser: Analyser, summary: Summary) -> Iterator[HookAdded]:
    """The leaky hooks that one function adds."""
    if not summary.notes.hooks or in_tests(summary.module.key):
        return
    seen: set[tuple[str, int]] = set()
    for _, call in sorted(summary.notes.hooks.items()):
        kept = [
            one for function, skipped in _functions(analyser, call.hook) for one in _stores(analyser, function, skipped)
        ]
        loop = _added_again(analyser, summary, call)
        if loop is not None:
            yield _piling(analyser, summary, call, loop, kept)
            continue
        for one in kept:
            place = place_of(analyser, summary, one.summary, one.store)
            at = (one.summary.function.qual, one.store.site.at)
            if place is None or at in seen:
                continue
            runs = _runs(analyser, summary, call, place)
            attached = runs is not None and one.attached and runs.records
            if runs is None or (not attached and not touches_an_accelerator(analyser, summary)):
                continue
            span = Span(summary.function, call.expr.at, runs.end) if runs.end is not None else None
            if emptied(analyser, place, span):
                continue
            seen.add(at)
            yield HookAdded(
                site=one.store.site,
                function=one.summary.function.qual,
                certainty=runs.certainty,
                problem="keeps",
                added=text(call.expr.func),
                loop=runs.loop,
                place=one.store.place_text,
                value=one.store.text,
                attached=attached,
                backward="backward" in call.name or call.name not in OF_MODULES,
                removed=runs.removed,
                trace=(Step(summary.site(call.expr.at), "the hook is added here"),),
            )


def _piling(analyser: Analyser, summary: Summary, call: HookCall, loop: Loop, kept: list[_Kept]) -> HookAdded:
    own = next((one for one in kept if _made_for_it(analyser, summary, one)), None)
    return HookAdded(
        site=summary.site(call.expr.at),
        function=summary.function.qual,
        problem="piles",
        added=text(call.expr.func),
        loop=loop,
        place=own.store.place_text if own is not None else "",
        value=own.store.text if own is not None else "",
        attached=own is not None and own.attached,
        backward="backward" in call.name or call.name not in OF_MODULES,
    )


def _made_for_it(analyser: Analyser, summary: Summary, kept: _Kept) -> bool:
    """Whether the container that a hook appends to is created by the call that adds the hook, so that nothing else
    holds it for long."""
    place = place_of(analyser, summary, kept.summary, kept.store)
    return place is not None and place.local_to is summary.function


# -------------------------------------------------------------------------------------- what a hook keeps


def _functions(analyser: Analyser, hook: V) -> Iterator[tuple[Function, int]]:
    """The functions that a hook may be, each with the number of leading parameters that are bound already."""
    for ref in ordered(hook.refs):
        if ref.kind == "func":
            function = analyser.function(ref)
            if function is not None:
                yield function, 1 if function.takes_self else 0
        elif ref.kind == "partial":
            for function, skipped in _functions(analyser, ref.self_):
                yield function, skipped + len(ref.args)
        elif ref.kind == "instance":
            method = analyser.program.method(analyser.cls(ref), "__call__")
            if method is not None:
                yield method, 1


def _stores(analyser: Analyser, function: Function, skipped: int) -> Iterator[_Kept]:
    """The stores of a function's tensor arguments into places that outlive it."""
    summary = analyser.summary(function)
    if summary is None or summary.cut_short:
        return
    given = {f"p:{param.name}" for param in function.params[skipped:]}
    for store in summary.stores.values():
        if store.kind != "retain" or store.how not in ("append", "extend", "add", "put") or store.tests:
            continue
        if may_be_skipped(function.body, store.site.at):
            continue
        value = store.value
        if value.size in (SCALAR, SAMPLE) or value.device == CPU or value.is_only(DATA):
            continue
        nodes = [summary.graphs.nodes[one] for one in value.src if one in summary.graphs.nodes]
        if any(node.unknown for node in nodes):
            continue
        reached = summary.graphs.closure(value.src)
        attached = any(isinstance(one, Path) and one.root in given and _of_tensors(one) for one in reached)
        if attached or (not value.src and _made_of(summary, store, given)):
            yield _Kept(summary, store, attached)


def _of_tensors(path: Path) -> bool:
    """Whether a path may be a tensor that a hook receives: not ``module.weight``, nor another attribute of a module."""
    return all(not step.startswith(".") for step in path.steps)


def _made_of(summary: Summary, store: Store, given: set[str]) -> bool:
    """Whether the stored value is a tensor derived from an argument without a graph: ``output.detach()``."""
    for call in calls(summary.function.body):
        for arg in call.args:
            if text(arg) == store.text and any(mentions(arg, one[2:]) for one in given):
                return any(
                    isinstance(part, ir.Attr) and part.name in ("detach", "data") for part in walk_expression(arg)
                )
    return False


# -------------------------------------------------------------------------------------- how often the module runs


def _runs(analyser: Analyser, summary: Summary, call: HookCall, place: Place) -> _Runs | None:
    """The loop that repeatedly runs the module with the hook while the place lives; None if there is none."""
    owner = root_of(summary, call.owner)
    if owner is None:
        return None
    anew = _of_new_tensors(analyser, summary, call, owner, place)
    if anew is not None:
        return anew
    removed = _removed_at(summary, call)
    loop = loop_behind(summary, owner, call.expr.at, removed, place)
    loop = loop or loop_of_callees(analyser, summary, owner, call.expr.at, removed, 0)
    if loop is not None:
        return _Runs(loop.loop, "high", loop.records, removed is not None, loop.end)
    sure = removed is not None or dropped(analyser, summary, call)  # no other code may remove it before the loop
    loop = loop_of_network(summary, owner, call.expr.at, removed, place) if sure else None
    if loop is not None:
        return _Runs(loop.loop, "medium", loop.records, removed is not None, loop.end)
    if removed is not None or place.local_to is not None:
        return None
    around = loop_of_callers(analyser, summary, owner, 0)
    if around is not None:
        return _Runs(around.loop, "high", around.records)
    around = loop_of_object(analyser, summary, owner) if sure else None
    if around is not None:
        return _Runs(around.loop, "medium", around.records)
    own = summary.function.cls
    if own is not None and owner == "self" and analyser.program.is_module(own):
        return _Runs(None, "medium")
    return None


def _of_new_tensors(analyser: Analyser, summary: Summary, call: HookCall, owner: str, place: Place) -> _Runs | None:
    """The loop that makes a tensor anew and adds the hook to each, which the next backward runs; the calls of a forward
    where no loop does. None for a module, and for a tensor that is made once."""
    if call.name in OF_MODULES or not all(is_of_type(test) or asks_for_gradient(test) for test in call.tests):
        return None
    if may_be_skipped(summary.function.body, call.expr.at):
        return None
    if call.loop is not None:
        repeats = owner in call.loop.bound and goes_on(call.loop) and outlives(analyser, summary, call, place)
        return _Runs(summary.seen(call.loop), "high") if repeats else None
    made = owner in {name for one in summary.function.body for name in names_bound_by(one)}
    repeats = made and layer_code(analyser, summary.function) and outlives(analyser, summary, call, place)
    return _Runs(None, "medium") if repeats else None


# -------------------------------------------------------------------------------------- hooks that are added again


def _added_again(analyser: Analyser, summary: Summary, call: HookCall) -> Loop | None:
    """The loop that repeatedly adds the hook to the same module while none is removed; None if there is none."""
    if not _unconditional(summary, call) or not dropped(analyser, summary, call) or _tables_touched(analyser):
        return None
    of_module = call.name in OF_MODULES
    root = root_of(summary, call.owner)
    if root is None or (not of_module and not _is_parameter(summary, call.owner)) or _made_here(summary, call.owner):
        return None
    if call.loop is not None:
        index = indexed_by(call.owner)
        other = index is not None and any(names_it(index, name) for name in call.loop.targets)
        stays = not other and root not in call.loop.bound and goes_on(call.loop) and not _returns(call.loop)
        return summary.seen(call.loop) if stays else None
    function = summary.function
    if layer_code(analyser, function) and root == "self" and text(call.owner) != "self":
        return each_call(function)
    if (may_be_cached(function) and not summary.answers) or rebinds(function, root) or _put_anew(summary, call.owner):
        return None
    again = _repeated(analyser, summary, root_of(summary, call.owner, as_given=True) or root, 0)
    return again if again is not None or not of_module else added_for_each_input(analyser, summary, call)


def _made_here(summary: Summary, owner: ir.Expr) -> bool:
    """Whether the function puts a new module where it adds the hook (``layer.probe = nn.Identity()``), so that the one
    before it goes, with its hooks."""
    path = f"{dotted(owner)}."
    return any(
        isinstance(target, ir.Attr) and path.startswith(f"{dotted(target)}.")
        for statement in walk_statements(summary.function.body, into_definitions=False)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call)
        for target in statement.targets
    )


def _put_anew(summary: Summary, owner: ir.Expr) -> bool:
    """Whether a method other than the constructor may put another module where the hook is added: ``self.model`` of
    ``self.model.layer4``."""
    own, cls, shown = summary.function.own_name, summary.function.cls, dotted(owner).split(".")
    if cls is None or shown[0] != own or len(shown) < 2:
        return False
    return any(
        isinstance(target, ir.Attr) and target.name == shown[1] and dotted(target.value) == method.own_name
        for method in summary.analyser.program.methods(cls)
        if method.name != "__init__"
        for statement in walk_statements(method.body, into_definitions=False)
        if isinstance(statement, ir.Assign) and not dotted(under_calls(statement.value, ITSELF)).startswith(f"{own}.")
        for target in statement.targets
    )


def _repeated(analyser: Analyser, summary: Summary, root: str, depth: int) -> Loop | None:
    """What calls the function with the same module again and again: a loop over data, or a runtime for each request.
    None if nothing is known to."""
    if depth >= MAX_DEPTH or summary.function.node is None:
        return None
    outside = is_from_outside(summary.function, root)
    if summary.answers:
        stays = outside or (root == summary.function.own_name and not summary.is_made_anew)
        return each_call(summary.function) if stays else None
    if may_be_cached(summary.function) or rebinds(summary.function, root):
        return None
    if not outside and root not in {param.name for param in summary.function.params}:
        return None
    for caller, record in analyser.facts.calls_of(summary.function):
        expr = call_at(caller.function.body, record.at)
        if expr is None or _under_test(caller.function.body, expr):
            continue
        given = root if outside else given_for(caller, summary.function, expr, root)
        if given is None:
            continue
        loops = () if outside else reversed(record.loops)
        around = [held for one in loops if (held := caller.notes.rounds.get(one)) is not None]
        own = given_for(caller, summary.function, expr, summary.function.own_name or "") or given
        for held in around:
            if given in held.bound | held.targets:
                break
            innermost = record.counts and held is around[0] and goes_on(held)
            if not _returns(held) and (innermost or runs_on_inputs(held, expr, own)):
                return caller.seen(held)
        if around:
            continue
        loop = _repeated(analyser, caller, given, depth + 1)
        if loop is not None:
            return loop
    return None


def _under_test(body: tuple[ir.Stmt, ...], expr: ir.Call) -> bool:
    """Whether a call is conditional."""
    return any(
        any(call is expr for call in calls((*statement.body, *statement.orelse)))
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.If)
    )


def _returns(held: LoopState) -> bool:
    return any(isinstance(one, ir.Return) for one in walk_statements(held.body, False))


def _unconditional(summary: Summary, call: HookCall) -> bool:
    """Whether the call depends on no condition but the type of a layer."""
    return all(is_of_type(test) for test in call.tests) and not may_be_skipped(summary.function.body, call.expr.at)


def _is_parameter(summary: Summary, owner: ir.Expr) -> bool:
    """Whether a name is bound by a loop over parameters."""
    return isinstance(owner, ir.Name) and any(
        isinstance(statement, ir.For)
        and names_it(statement.target, owner.id)
        and any(isinstance(part, ir.Attr) and part.name in PARAMETERS for part in walk_expression(statement.iter))
        for statement in walk_statements(summary.function.body, into_definitions=False)
    )


def _removed_at(summary: Summary, call: HookCall) -> int | None:
    """The ordinal at which the function itself removes hooks after the call; None if it does not."""
    found = (
        other.at
        for other in calls(summary.function.body)
        if isinstance(other.func, ir.Attr)
        and other.func.name == "remove"
        and not other.args
        and other.at > call.expr.at
    )
    return min(found, default=None)


def _tables_touched(analyser: Analyser) -> bool:
    """Whether the project removes hooks from the modules' own tables."""
    return any(analyser.program.words.files(name) for name in _TABLES)
