"""Keys that identify one sample of a data set: each batch has new ones."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.syntax.bindings import names_bound_by, names_read
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.analysis.transfer.stores.collected import goes_to_host
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names of variables and keys that identify a sample
_OF_SAMPLE = lazy_pattern(
    r"(?:(?:im(?:a)?ge?|img|file|wav|audio|video|clip|sample|base)_?)?(?:names?|paths?|files?|stems?)|f_?names?"
    r"|(?:image|img|sample)_?ids?|u(?:tt_?|u)?ids?|ids?|urls?"
)
#: names of iterables over files
_OF_FILES = lazy_pattern(r"listdir|glob|scandir|iterdir|files?\b|paths?\b|filenames\b")
#: operations on a text or number that keep it unique
_OF_TEXT = frozenset({
    "Path", "basename", "cpu", "decode", "int", "item", "join", "replace", "split", "splitext", "str", "strip",
    "tolist",
})  # fmt: skip
#: calls that iterate over their arguments
_IN_TURN = frozenset({"enumerate", "zip"})


def by_sample(fn: FunctionState, target: ir.Subscript) -> tuple[LoopState, ...]:
    """The loops over batches whose loop variable has the identifier of a sample by which a dictionary's member is
    set: ``names[0]``, ``batch["image_id"]``, or the variable of an inner loop over it. (A key that is computed from
    a batch may recur.)"""
    return tuple(loop for loop in identified_by(fn, target.index) if not _is_moved_on(loop, target))


def identified_by(fn: FunctionState, expr: ir.Expr, given: str = "") -> tuple[LoopState, ...]:
    """The loops over batches whose loop variable has the identifiers of samples that an expression is or comes from.
    ``given``: what the callee that gets the expression calls it, which tells where the caller has no name for it: a
    part of the loop's only variable by its position (``batch[0]``)."""
    unnamed = names_read(expr) if identifies(given, "") else frozenset()
    return tuple(
        loop
        for loop in fn.loops
        if loop.counts
        and loop.loop.over == "loader"
        and _has_many_items(loop)
        and any(
            name in own and (identifies(name, member) or (not member and name in unnamed and len(own) == 1))
            for own in (loop.targets - loop.counters,)
            for name, member in _roots(loop.body, loop.targets, expr)
        )
    )


def _has_many_items(loop: LoopState) -> bool:
    """Whether a loop surely runs over samples or batches: by what it runs over, or by the name of that. The keys of a
    mapping (``for name, data in sets.items()``) are most often a handful."""
    if not loop.loop.assumed or _OF_FILES.search(loop.loop.source) is not None:
        return True
    return loop.loop.over_data and ".items()" not in loop.loop.source


def by_parameter(fn: FunctionState, expr: ir.Expr) -> tuple[str, str] | None:
    """The parameter that has the identifier of a sample that an expression is or comes from, and the key of the member
    that it is; "" for the parameter itself. None for another expression."""
    body = fn.function.body
    names = frozenset(param.name for param in fn.function.given) - _made_in(body).keys()
    found = list(_roots(body, names, expr))
    return next((one for one in found if identifies(*one)), next(iter(found), None))


def identifies(name: str, member: str) -> bool:
    """Whether a name, or the key of a member of what it names, is one by which a sample is known."""
    return _OF_SAMPLE.fullmatch((member or name).lower()) is not None


def _roots(
    body: tuple[ir.Stmt, ...], names: AbstractSet[str], expr: ir.Expr, depth: int = 3
) -> Iterator[tuple[str, str]]:
    """Those of some names that an expression identifies a sample by, each with the key of the member that does; "" for
    the name itself. ``depth``: variables that are followed."""
    match expr:
        case _ if depth == 0:
            return
        case ir.Name(id=name) if name in names:
            yield name, ""
        case ir.Name(id=name):
            made = _made_in(body).get(name, ())
            if len(made) == 1:
                yield from _roots(body, names, made[0], depth - 1)
        case ir.Subscript(value=ir.Name(id=name), index=ir.Const(value=str(key))):
            if name in names:
                yield name, key
        case ir.Subscript(value=value, index=ir.Const() | ir.Name() | ir.Unary()) | ir.Attr(value=value, name="stem"):
            yield from _roots(body, names, value, depth)
        case ir.Call(func=ir.Attr(value=value, name=name)) if name in _OF_TEXT:
            for one in (value, *expr.args):
                yield from _roots(body, names, one, depth)
        case ir.Call(func=ir.Name(id=name), args=(value,)) if name in _OF_TEXT:
            yield from _roots(body, names, value, depth)
        case ir.FormattedString(parts=parts) | ir.Display(elements=parts):
            for part in parts:
                yield from _roots(body, names, part, depth)
        case ir.Binary(op="+", left=left, right=right):
            yield from _roots(body, names, left, depth)
            yield from _roots(body, names, right, depth)


def _is_moved_on(loop: LoopState, target: ir.Subscript) -> bool:
    """Whether the loop later replaces the member by a copy on the host: ``kept[name] = kept[name].cpu()``."""
    shown = text(target, 200)
    return any(
        isinstance(one, ir.Assign) and goes_to_host(one.value) and any(text(each, 200) == shown for each in one.targets)
        for one in walk_statements(loop.body, into_definitions=False)
    )


@kept
def _made_in(body: tuple[ir.Stmt, ...]) -> dict[str, tuple[ir.Expr, ...]]:
    """By variable that a loop's body binds, the values of its assignments, and the iterables of its loops; a binding
    of another kind has the value `_NOTHING`."""
    found: dict[str, tuple[ir.Expr, ...]] = {}
    for statement in walk_statements(body, into_definitions=False):
        bound: dict[str, ir.Expr] = {}
        if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
            bound = _bound(statement.targets[0], statement.value)
        elif isinstance(statement, ir.For):
            bound = _bound(statement.target, statement.iter)
        for name in names_bound_by(statement):
            known = found.get(name, ())
            found[name] = (*known, bound.get(name, _NOTHING))
    return found


#: stands for a value that is not followed
_NOTHING = ir.Const(0, "None", None)


def _bound(target: ir.Expr, value: ir.Expr) -> dict[str, ir.Expr]:
    """The variables of a target with the expressions that they are, or are members of: ``name`` of ``for name, row
    in zip(names, rows)`` is one of ``names``."""
    if isinstance(target, ir.Name):
        return {target.id: value}
    if not isinstance(target, ir.Display) or not isinstance(value, ir.Call) or dotted(value.func) not in _IN_TURN:
        return {}
    if dotted(value.func) == "enumerate":
        return _bound(target.elements[-1], value.args[0]) if len(target.elements) == 2 and value.args else {}
    pairs = zip(target.elements, value.args, strict=False)
    return {part.id: given for part, given in pairs if isinstance(part, ir.Name)}
