"""Guards without effect: created and dropped, ignored since PyTorch 0.4, or ended before the model runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from memlint import knowledge
from memlint.analysis.domain.events import Guard, GuardKind, ModelCall
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import V, ordered
from memlint.analysis.index.program import Class
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import last_name, parts, parts_of, walk_expression, walk_statements, way_to
from memlint.analysis.transfer.modules.guards import inert_decorators, is_guard
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: calls that prepare a batch or a model, and run neither
_PREPARES = frozenset({
    "to", "cuda", "cpu", "eval", "train", "float", "long", "half", "double", "int", "bool", "type", "Variable",
    "tensor", "as_tensor", "from_numpy", "zeros", "ones", "next", "iter", "len", "print", "size", "view", "reshape",
    "unsqueeze", "squeeze", "permute", "transpose", "contiguous", "get", "items", "keys", "format", "dict", "list",
    "tuple",
})  # fmt: skip


_Asks = Callable[[ModelRun], bool]

#: the first release that ignores volatile
_LAST_VOLATILE = (0, 4)


def note_dropped(fn: FunctionState, state: State, statement: ir.ExprStmt, value: V) -> None:
    """Record ``torch.no_grad()`` or ``torch.no_grad`` as a statement of its own."""
    if not value.resolved() or state.grad == OFF:
        return
    expr = statement.value
    if isinstance(expr, ir.Call):
        if not any(ref.kind == "guard" for ref in value.refs):
            return
        value = fn.interpreter.evaluate(fn, state, expr.func)
    elif not isinstance(expr, ir.Name | ir.Attr):
        return
    for ref in ordered(value.refs):
        row = knowledge.function(ref.name) if ref.kind == "ext" else None
        if row is not None and row.context == "off":
            fn.notes.inert[statement.at] = ("bare", text(expr))
            return


def _over_class(analyser: Analyser, summary: Summary, cls: Class, shown: str) -> Iterator[Guard]:
    """The guard ``@torch.no_grad()`` over a class, reported once, for the first of its methods in which a model runs
    unguarded."""
    for method in sorted(cls.methods.values(), key=lambda one: one.node.at if one.node is not None else 0):
        inner = analyser.summary(method)
        if inner is not None and _records(analyser, inner):
            if inner.function is summary.function:
                yield Guard(site=summary.site(cls.node.at), function=cls.qual, kind="class", text=shown)
            return


def _guard_over(analyser: Analyser, cls: Class) -> str:
    """The source text of the guard that decorates a class; "" for none."""
    for decorator in cls.node.decorators:
        func = decorator.func if isinstance(decorator, ir.Call) else decorator
        row = knowledge.function(analyser.program.outside(cls.module, func, cls.enclosing))
        if row is not None and row.context == "off":
            return f"@{text(decorator)}"
    return ""


def _records(analyser: Analyser, summary: Summary) -> bool:
    """Whether a model runs unguarded in a method other than the constructor."""
    if summary.function.name in ("__init__", "__new__") or analyser.facts.modes.of(summary.function) == OFF:
        return False
    return any(run.grad & (AMBIENT | ON) for run in summary.runs.values())


def guards_in_its_time(summary: Summary) -> bool:
    """Whether a function has volatile inputs, in a file for a release of torch in which they disable recording."""
    known = summary.module.key
    return any(kind == "volatile" for kind, _ in summary.notes.inert.values()) and not (
        summary.analyser.program.project.knows_grad_mode(known)
    )


def note_volatile(fn: FunctionState, state: State, expr: ir.Call, flag: V) -> None:
    """Record ``Variable(x, volatile=True)``, unless a test of the release guards it."""
    if flag.const is True and state.grad != OFF and not any("version" in text(test).lower() for test in fn.tests):
        fn.notes.inert[expr.at] = ("volatile", "volatile=True")


def note_unentered(fn: FunctionState, state: State, statement: ir.With, before: int) -> None:
    """Record ``with torch.no_grad() and other:``, which enters the other context manager alone, unless grad mode is
    off in the block."""
    for item in statement.items if OFF not in (before, state.grad) else ():
        if _hides_guard(fn, item.context):
            fn.notes.inert[item.context.at] = ("and", text(item.context))


def _hides_guard(fn: FunctionState, context: ir.Expr) -> bool:
    """Whether an operand before the last one of ``… and …`` is a guard."""
    if not isinstance(context, ir.BoolOp) or context.op != "and":
        return False
    return is_guard(fn, fn.function, context.left) or _hides_guard(fn, context.left)


def note_block(fn: FunctionState, statement: ir.With, before: int, inside: int) -> None:
    """Record a with block that turns grad mode off, which may end before the model runs."""
    if inside == OFF and before != OFF:
        fn.notes.blocks[statement.at] = statement


def _is_followed_by_a_block(summary: Summary, at: int) -> bool:
    """Whether a with block that guards follows, and no model runs later outside of it."""
    behind = any(block > at for block in summary.notes.blocks)
    return behind and not any(run.site.at > at for run in summary.runs.values())


def guards(
    analyser: Analyser, summary: Summary, calls: Sequence[ModelCall], is_small: _Asks, is_frozen: _Asks
) -> Iterator[Guard | ModelCall]:
    """The guards without effect, and the model calls, each with the guard that was meant for it."""
    cls = summary.function.cls
    # the callers are looked up last, since few functions have such guards
    over = _guard_over(analyser, cls) if cls is not None and cls.node.decorators else ""
    over = over if over and _records(analyser, summary) else ""
    if cls is not None and over:
        yield from _over_class(analyser, summary, cls, over)
    inert = summary.notes.inert
    inert = inert if inert and analyser.facts.modes.of(summary.function) != OFF else {}
    above = list(_over_function(analyser, summary, is_small, is_frozen))
    yield from above
    over = over or (above[0].text if above else "")
    newest = analyser.program.project.newest_torch
    working = (newest is not None and newest < _LAST_VOLATILE) or (bool(inert) and _takes_numbers_apart(summary))
    for at, (kind, shown) in sorted(inert.items()):
        if kind == "volatile" and (working or not _meant_for_a_model(summary, at)):
            continue
        if kind == "bare" and _is_followed_by_a_block(summary, at):
            continue
        missed = _is_missed(summary, at, _end_of(summary, at, kind)) if kind == "and" else True
        if missed is False:
            continue
        yield Guard(
            site=summary.site(at),
            function=summary.function.qual,
            kind=kind,
            text=shown,
            certainty="medium" if missed is None else "high",
            dated=kind == "volatile" and not analyser.program.project.knows_grad_mode(summary.module.key),
            small=missed is None or _runs_small(summary, is_small),
        )
    blocks = summary.notes.blocks
    reported: set[int] = set()
    for call in calls:
        if working and any(kind == "volatile" and at < call.site.at for at, (kind, _) in inert.items()):
            continue
        if over or any(at < call.site.at <= _end_of(summary, at, kind) for at, (kind, _) in inert.items()):
            yield msgspec.structs.replace(call, guard="a guard that has no effect")
            continue
        early = (
            _ended_before(summary, blocks, call.site.at)
            if blocks and call.evaluation not in ("", "cut", "beside")
            else None
        )
        if early is None:
            yield call
            continue
        if early.at not in reported:
            reported.add(early.at)
            shown = f"with {text(early.items[0].context)}"
            small = _runs_small(summary, is_small)
            yield Guard(
                site=summary.site(early.at), function=summary.function.qual, kind="early", text=shown, small=small
            )
        yield msgspec.structs.replace(call, guard="a guard that ends before it")


def _over_function(analyser: Analyser, summary: Summary, is_small: _Asks, is_frozen: _Asks) -> Iterator[Guard]:
    """The guards over a function under which its body does not run."""
    found = inert_decorators(summary, summary.function) if summary.function.decorators else []
    # one that runs no known network may only move tensors, or serve another framework
    if not found or not _is_missed(summary, -math.inf, math.inf) or all(map(is_frozen, summary.runs.values())):
        return
    if analyser.facts.modes.of(summary.function) == OFF:
        return
    for item, kind in found:
        yield Guard(
            site=summary.site(item.at),
            function=summary.function.qual,
            kind=kind,
            text=f"@{text(item)}",
            small=_runs_small(summary, is_small),
        )


def _end_of(summary: Summary, at: int, kind: GuardKind) -> float:
    """The last ordinal of the code that a guard without effect was meant for."""
    return last_ordinal(_block_at(summary, at)) if kind == "and" else math.inf


def _block_at(summary: Summary, at: int) -> ir.With:
    """The with block of a context."""
    blocks = (one for one in walk_statements(summary.function.body) if isinstance(one, ir.With))
    return next(one for one in blocks if any(item.context.at == at for item in one.items))


def _is_missed(summary: Summary, at: float, last: float) -> bool | None:
    """Whether a model runs between two ordinals, and no backward reaches its graph. None if no code there is known to
    be a model, none of it is guarded, and the function has no backward."""
    runs = [run for run in summary.runs.values() if at < run.site.at <= last]
    if not runs and not any(at < site <= last for site in summary.notes.models):
        guarded = any(at < block <= last for block in summary.notes.blocks)
        return False if guarded or summary.backwards or summary.notes.blind_backward else None
    return any(
        run.grad & (AMBIENT | ON) and not any(run.node in reached for reached, *_ in summary.backwards) for run in runs
    )


def _runs_small(summary: Summary, is_small: _Asks) -> bool:
    """Whether all networks that a function runs save little, or it runs none."""
    return summary.notes.models.keys() <= summary.runs.keys() and all(map(is_small, summary.runs.values()))


def _meant_for_a_model(summary: Summary, at: int) -> bool:
    """Whether a volatile input reaches a model, unlike the targets of a loss and the constants of an object. An
    input of a model that a backward reaches wherever it is volatile never was: before 0.4 that raised."""
    if summary.function.name == "__init__":
        return False
    if not summary.backwards:
        return not _freezes(summary)
    names = _assigned_from(summary, {at})
    models = summary.notes.models
    outputs = _assigned_from(summary, set(models))
    nodes = summary.graphs.nodes
    sides = _sides_around(summary, at)
    trained = {
        nodes[item].at
        for one in summary.backwards
        if sides <= _sides_around(summary, one.site.at)
        for item in one.reached
        if item in nodes
    }
    return any(
        part.at == at or (isinstance(part, ir.Name) and part.id in names)
        for call in models.values()
        if call.at not in trained and not _compares(call, outputs - names)
        for arg in call.args
        for part in walk_expression(arg)
    )


def _sides_around(summary: Summary, at: int) -> set[tuple[int, bool]]:
    """The branches of ifs around an ordinal: code in the same or more branches runs only if it does."""
    return {
        (one.at, side)
        for one in walk_statements(summary.function.body, into_definitions=False)
        if isinstance(one, ir.If)
        for side, block in ((True, one.body), (False, one.orelse))
        if block and block[0].at <= at <= last_ordinal(block[-1])
    }


def _takes_numbers_apart(summary: Summary) -> bool:
    """Whether a function indexes a loss as an array, ``loss.data.cpu().numpy()[0]``, which raises since 0.4."""
    return any(
        isinstance(part, ir.Subscript)
        and isinstance(part.index, ir.Const)
        and part.index.kind == "int"
        and isinstance(part.value, ir.Call)
        and isinstance(part.value.func, ir.Attr)
        and part.value.func.name == "numpy"
        and _is_number(part.value.func.value)
        for part in parts(summary.function.body)
    )


def _is_number(expr: ir.Expr) -> bool:
    """Whether a chain of attributes and calls starts at a loss, or reduces a tensor to one number."""
    while isinstance(expr, ir.Attr | ir.Call):
        if isinstance(expr, ir.Call):
            reduces = isinstance(expr.func, ir.Attr) and expr.func.name in ("sum", "mean") and not expr.args
            if reduces and not expr.keywords:
                return True
            expr = expr.func
        else:
            expr = expr.value
    return isinstance(expr, ir.Name) and expr.id.lower().endswith("loss")


def _freezes(summary: Summary) -> bool:
    """Whether a function freezes parameters, ``for parameter in model.parameters(): parameter.requires_grad =
    False``, so that its runs record nothing."""
    modes = summary.exit.modes.items() if summary.exit is not None else ()
    return any(frozen is True and isinstance(key, tuple) and key[0] == "frozen" for key, frozen in modes)


def _assigned_from(summary: Summary, ordinals: set[int]) -> set[str]:
    """The variables that are assigned from one of the expressions, or from an expression that contains it."""
    return {
        part.id
        for statement in walk_statements(summary.function.body)
        if isinstance(statement, ir.Assign) and any(part.at in ordinals for part in walk_expression(statement.value))
        for target in statement.targets
        for part in walk_expression(target)
        if isinstance(part, ir.Name)
    }


def _compares(call: ir.Call, outputs: set[str]) -> bool:
    """Whether a call is a loss of a model's output: ``criterion(model(x), y)``."""
    return len(call.args) > 1 and any(isinstance(arg, ir.Name) and arg.id in outputs for arg in call.args)


def _ended_before(summary: Summary, blocks: dict[int, ir.With], at: int) -> ir.With | None:
    """The last guarding block before a model call that only prepares inputs or models, in the same block of
    statements; None for none."""
    candidates = [block for block in blocks.values() if block.at < at and _only_prepares(block)]
    for block in sorted(candidates, key=lambda block: -block.at):
        statements, place = way_to(summary.function.body, block.at)[-1]
        rest = statements[place + 1 :]
        if rest and rest[0].at <= at and at <= last_ordinal(rest[-1]):
            return block
    return None


#: attributes for parameters and their values
_PARAMETERS = frozenset({"data", "grad", "weight", "bias"})


def _only_prepares(block: ir.With) -> bool:
    """Whether a with block only calls what prepares a batch or a model."""
    calls = 0
    for statement in walk_statements(block.body):
        if not isinstance(statement, ir.Assign | ir.AnnAssign | ir.ExprStmt | ir.AugAssign):
            return False
        if any(isinstance(one, ir.Attr) and one.name in _PARAMETERS for one in targets(statement)):
            return False  # setting weights is what the guard is for
        for part in parts_of(statement):
            if not isinstance(part, ir.Call):
                continue
            calls += 1
            func = part.func
            name = last_name(func)
            if name not in _PREPARES:
                return False
    return calls > 0


def last_ordinal(statement: ir.Stmt) -> int:
    """The highest ordinal in a statement."""
    last = statement.at
    for part in parts((statement,), into_definitions=True):
        last = max(last, part.at)
    return last
