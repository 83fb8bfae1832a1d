"""Expressions that rebuild a container from its own members: which members get a new value, and from which old ones.
Also containers that are truncated while they grow."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.syntax.bindings import mentions
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, last_name, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: a member's key as source text (None if unknown), and the expression of its new value
Member = tuple[str | None, ir.Expr]

#: functions that copy the members of their argument into a new container
_COPIES = frozenset({"dict", "OrderedDict", "list", "tuple", "sorted", "reversed", "copy", "defaultdict", "Counter"})


def members_anew(expr: ir.Expr, shown: str) -> list[Member] | None:
    """The members of ``shown`` that an expression gives new values; all others keep theirs or are dropped. None if
    unknown, as for ``step(state)``."""
    match expr:
        case ir.Name() | ir.Attr() | ir.Subscript() if text(expr, 200) == shown:
            return []
        case ir.DictDisplay():
            return _of_display(expr, shown)
        case ir.Display():
            if any(isinstance(one, ir.Starred) for one in expr.elements):
                return None
            return [(str(i), one) for i, one in enumerate(expr.elements)]
        case ir.Binary(op="|"):
            sides = [members_anew(side, shown) for side in (expr.left, expr.right)]
            return None if sides[0] is None or sides[1] is None else [*sides[0], *sides[1]]
        case ir.Call():
            return _of_call(expr, shown)
        case ir.Comprehension():
            return _of_comprehension(expr, shown)
        case _:
            return None


def _of_display(expr: ir.DictDisplay, shown: str) -> list[Member] | None:
    found: list[Member] = []
    for key, item in zip(expr.keys, expr.values, strict=True):
        if key is not None:
            found.append((text(key, 200), item))
            continue
        inner = members_anew(item, shown) if mentions(item, shown) else [(None, item)]
        if inner is None:
            return None
        found.extend(inner)
    return found


def _of_call(expr: ir.Call, shown: str) -> list[Member] | None:
    method = expr.func
    if isinstance(method, ir.Attr) and method.name in ("items", "copy") and not expr.args and not expr.keywords:
        return members_anew(method.value, shown)
    if dotted(expr.func).rsplit(".", 1)[-1] not in _COPIES or len(expr.args) != 1:
        return None
    inner = members_anew(expr.args[0], shown)
    if inner is None or any(word.name is None for word in expr.keywords):
        return None
    named = [(repr(word.name), word.value) for word in expr.keywords if word.name not in ("key", "reverse")]
    return [*inner, *named]


def _of_comprehension(expr: ir.Comprehension, shown: str) -> list[Member] | None:
    """The members for ``{k: v for k, v in info.items() if v}``, which only filters."""
    if len(expr.fors) != 1 or not isinstance(expr.element, ir.Name):
        return None
    target = expr.fors[0].target
    if isinstance(target, ir.Display) and target.elements:
        target = target.elements[-1]
    same = isinstance(target, ir.Name) and target.id == expr.element.id
    return members_anew(expr.fors[0].iter, shown) if same else None


def reads_others_only(expr: ir.Expr, shown: str, key: str | None) -> bool:
    """Whether an expression reads members of ``shown``, and none of them is ``key``: ``{"last": info["loss"]}``."""
    if key is None or not mentions(expr, shown):
        return False
    keys = [*_keys(expr, shown)]
    whole = sum(text(part, 200) == shown for part in walk_expression(expr))
    return len(keys) == whole and all(one is not None and one != key for one in keys)


def _keys(expr: ir.Expr, shown: str) -> Iterator[str | None]:
    """The keys of the members that are read, as source text; None for a computed key."""
    for part in walk_expression(expr):
        if isinstance(part, ir.Subscript) and text(part.value, 200) == shown:
            yield text(part.index, 200) if isinstance(part.index, ir.Const) else None
        if isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and text(part.func.value, 200) == shown:
            known = part.func.name in ("get", "pop") and part.args and isinstance(part.args[0], ir.Const)
            yield text(part.args[0], 200) if known else None


def summed_members(expr: ir.Expr, shown: str) -> ir.Expr | None:
    """The sum that makes each new member from the old one: ``t + x`` of ``[t + x for t, x in zip(sums, losses)]``,
    ``sums.get(k, 0) + x`` of ``{k: sums.get(k, 0) + x for …}``. None for another expression."""
    if not isinstance(expr, ir.Comprehension) or len(expr.fors) != 1:
        return None
    made, (target, iterable) = expr.element, (expr.fors[0].target, expr.fors[0].iter)
    old, each = _bound_to_members(target, iterable, shown), _bound_to_rows(target, iterable, shown)
    if isinstance(made, ir.Call) and dotted(made.func) == "sum" and len(made.args) == 1:
        given = made.args[0]
        return made if isinstance(given, ir.Name) and given.id == each else None
    if not isinstance(made, ir.Binary) or made.op != "+":
        return None
    sides = [_is_member(side, shown, old) for side in (made.left, made.right)]
    return made if sides[0] != sides[1] else None


def is_old_member(side: ir.Expr, expr: ir.Comprehension, shown: str) -> bool:
    """Whether an operand of the sum that `summed_members` returned is the old member."""
    return _is_member(side, shown, _bound_to_members(expr.fors[0].target, expr.fors[0].iter, shown))


def _is_member(side: ir.Expr, shown: str, old: str) -> bool:
    if isinstance(side, ir.Name):
        return side.id == old
    if isinstance(side, ir.Subscript):
        return text(side.value, 200) == shown
    method = side.func if isinstance(side, ir.Call) else None
    return isinstance(method, ir.Attr) and method.name == "get" and text(method.value, 200) == shown


def _bound_to_members(target: ir.Expr, iterable: ir.Expr, shown: str) -> str:
    """The variable that a loop binds to each member of ``shown``; "" for none."""
    names = [one.id if isinstance(one, ir.Name) else "" for one in _parts(target)]
    if text(iterable, 200) == shown:
        return names[0] if isinstance(target, ir.Name) else ""
    if not isinstance(iterable, ir.Call):
        return ""
    called = text(iterable.func, 200)
    if called == f"{shown}.items" and len(names) == 2:
        return names[1]
    if called == "enumerate" and len(names) == 2 and iterable.args and text(iterable.args[0], 200) == shown:
        return names[1]
    if called == "zip" and len(names) == len(iterable.args):
        return next((name for name, one in zip(names, iterable.args, strict=True) if text(one, 200) == shown), "")
    return ""


def _bound_to_rows(target: ir.Expr, iterable: ir.Expr, shown: str) -> str:
    """The variable that a loop binds to each tuple of ``zip``, if ``shown`` is one of its arguments; "" otherwise."""
    zipped = isinstance(target, ir.Name) and isinstance(iterable, ir.Call) and dotted(iterable.func) == "zip"
    if not zipped or not isinstance(iterable, ir.Call) or not isinstance(target, ir.Name):
        return ""
    return target.id if any(text(one, 200) == shown for one in iterable.args) else ""


def _parts(target: ir.Expr) -> tuple[ir.Expr, ...]:
    return tuple(target.elements) if isinstance(target, ir.Display) else (target,)


@kept
def windows(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The texts of the containers whose oldest members (or all but some) a body drops: ``kept = kept[-n:]``, ``del
    kept[0]``, ``heappop(kept)``."""
    found: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Subscript):
            part = statement.value
            if _cuts(part.index):
                shown = text(part.value, 200)
                found.update(shown for target in statement.targets if text(target, 200) == shown)
        elif isinstance(statement, ir.Delete):
            found.update(
                text(target.value, 200)
                for target in statement.targets
                if isinstance(target, ir.Subscript) and (_cuts(target.index) or _is_zero(target.index))
            )
    for call in calls(body):
        name = last_name(call.func)
        if name == "pop" and isinstance(call.func, ir.Attr) and len(call.args) == 1 and _is_zero(call.args[0]):
            found.add(text(call.func.value, 200))
        elif name in ("heappop", "heapreplace", "heappushpop") and call.args:
            found.add(text(call.args[0], 200))
    return frozenset(found)


def _cuts(index: ir.Expr) -> bool:
    """Whether a slice drops members: ``[1:]``, ``[-n:]``, ``[:n]``, but not ``[:]`` or ``[0:]``."""
    return (
        isinstance(index, ir.Slice)
        and index.step is None
        and (index.upper is not None or not (index.lower is None or _is_zero(index.lower)))
    )


def _is_zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == 0
