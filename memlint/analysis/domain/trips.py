"""The number of iterations of a loop, if a literal tells it: of a range, a display, or a list made of one."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER, INSTANCE, MODULE, NOTHING
from memlint.analysis.syntax.bindings import assigned_names, names_bound_by
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import bodies, calls, calls_named, dotted, is_name, last_name, walk_statements
from memlint.ir import nodes as ir

#: how many bindings of a container are followed
_DEPTH = 6
#: functions that iterate over their argument, or copy it
_SAME_MEMBERS = ("enumerate", "list", "reversed", "sorted", "tqdm", "tuple", "zip")
#: functions that make a tensor with a row for each member of their argument, and methods that keep the rows
_MAKES_ROWS = frozenset(
    {"array", "asarray", "as_tensor", "from_numpy", "tensor", "FloatTensor", "LongTensor", "Tensor", "Variable"}
)
_KEEPS_ROWS = frozenset({"cpu", "cuda", "double", "float", "half", "long", "to"})
_ADDS = frozenset({"append", "appendleft", "add", "extend", "insert", "setdefault", "update"})
#: functions that draw a number of members: ``random.sample(rows, 4)``, ``np.random.choice(n, 4)``
_DRAWS = frozenset({"sample", "choice", "choices", "islice"})


def _drawn(fn: FunctionState, state: State, iterable: ir.Expr) -> int | None:
    """How many members a draw or a slice takes, if a literal tells; else None."""
    if isinstance(iterable, ir.Subscript) and isinstance(iterable.index, ir.Slice):
        part = iterable.index
        start = _literal(fn, state, part.lower) if part.lower is not None else 0
        stop = _usual(fn, state, part.upper) if part.upper is not None else None
        return stop - start if start is not None and stop is not None and 0 <= start <= stop else None
    if not isinstance(iterable, ir.Call):
        return None
    name = dotted(iterable.func).rsplit(".", 1)[-1]
    if name in ("enumerate", "list", "tqdm", "sorted") and iterable.args:
        return _drawn(fn, state, iterable.args[0])
    if name not in _DRAWS:
        return None
    words = {word.name: word.value for word in iterable.keywords}
    count = words.get("size") or words.get("k") or (iterable.args[1] if len(iterable.args) == 2 else None)
    return _usual(fn, state, count) if count is not None else None


def _usual(fn: FunctionState, state: State, arg: ir.Expr) -> int | None:
    """A literal number, or the default of a parameter; None for another expression."""
    value = _literal(fn, state, arg)
    if value is not None or not isinstance(arg, ir.Name) or arg.id in assigned_names(fn.function.body)[0]:
        return value
    for param in fn.function.params:
        if param.name == arg.id and isinstance(param.default, ir.Const):
            return _literal(fn, state, param.default)
    return None


def _bound_source(summary: Summary, iterable: ir.Expr) -> ir.Expr:
    """The expression that a name is bound to, if a single statement binds it; else the name itself."""
    if not isinstance(iterable, ir.Name) or iterable.id not in summary.function.locals:
        return iterable
    one = _bound_once(summary.function.body).get(iterable.id)
    plain = isinstance(one, ir.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ir.Name)
    parameter = any(param.name == iterable.id for param in summary.function.params)
    return one.value if isinstance(one, ir.Assign) and plain and not parameter else iterable


@kept
def _bound_once(body: tuple[ir.Stmt, ...]) -> dict[str, ir.Stmt | None]:
    """By name, the one statement outside of blocks that binds it; None if several statements do."""
    found: dict[str, ir.Stmt | None] = {}
    for statement in body:
        within = [] if isinstance(statement, ir.FunctionDef | ir.ClassDef) else bodies(statement)
        for name in names_bound_by(statement):
            found[name] = None if name in found else statement
        for block in within:
            found.update(dict.fromkeys(assigned_names(block)[0]))
    return found


def literal_trips(fn: FunctionState, state: State, iterable: ir.Expr) -> int | None:
    """The number of iterations of a loop over an iterable, if a literal tells; else None."""
    drawn = _drawn(fn, state, _bound_source(fn, iterable))
    return drawn if drawn is not None else _members(fn, state, iterable, _DEPTH)


def _members(fn: FunctionState, state: State, over: ir.Expr, depth: int) -> int | None:
    """The number of members of an iterable: a display or a range, a list of the same length (``[x] * 3``, ``[f(x) for x
    in xs]``), or a name for it that nothing else gets. None if unknown."""
    if depth == 0:
        return None
    match over:
        case ir.Display(elements=elements) if not any(isinstance(item, ir.Starred) for item in elements):
            return len(elements)
        case ir.DictDisplay(keys=keys) if None not in keys:
            return len(keys)
        case ir.Comprehension(fors=(one,)):
            return _members(fn, state, one.iter, depth - 1)
        case ir.Binary(op="*", left=ir.Display() as left, right=right):
            times = _literal(fn, state, right)
            return times * len(left.elements) if times is not None else None
        case ir.Name(id=name):
            source = _bound_source(fn, over)
            alone = source is not over and not _is_handed_on(fn, over) and not _is_changed(fn, name)
            return _members(fn, state, source, depth - 1) if alone and not _holds_networks(state, name) else None
        case ir.Call():
            return _called(fn, state, over, depth)
    return None


def _called(fn: FunctionState, state: State, call: ir.Call, depth: int) -> int | None:
    """The number of members of a call's result; None if unknown."""
    name = last_name(call.func)
    if name in ("range", "trange"):
        bounds = [_literal(fn, state, arg) for arg in call.args]
        numbers = [int(bound) for bound in bounds if bound is not None]
        try:
            return len(range(*numbers)) if len(numbers) == len(bounds) > 0 else None
        except (ValueError, TypeError, OverflowError):
            return None
    if name in _MAKES_ROWS and call.args:
        return _members(fn, state, call.args[0], depth - 1)
    if name in _KEEPS_ROWS and isinstance(call.func, ir.Attr):
        return _members(fn, state, call.func.value, depth - 1)
    if name in _SAME_MEMBERS and call.args:
        each = [_members(fn, state, arg, depth - 1) for arg in (call.args if name == "zip" else call.args[:1])]
        return min((count for count in each if count is not None), default=None)
    if isinstance(call.func, ir.Attr) and name in ("items", "keys", "values") and not call.args:
        return _members(fn, state, call.func.value, depth - 1)
    return None


def _holds_networks(state: State, name: str) -> bool:
    """Whether members of a container are networks, which differ between iterations."""
    held = [obj for _, obj in state.objects(state.env.get(name, NOTHING))]
    return any(part.kinds & (MODULE | INSTANCE) for obj in held for part in obj.members)


def _is_changed(fn: FunctionState, name: str) -> bool:
    """Whether a function adds members to a container, or assigns some."""
    body = fn.function.body
    if any(isinstance(call.func, ir.Attr) and is_name(call.func.value, name) for call in calls_named(body, _ADDS)):
        return True
    return any(
        (isinstance(one, ir.AugAssign) and is_name(one.target, name))
        or (
            isinstance(one, ir.Assign)
            and any(isinstance(to, ir.Subscript) and is_name(to.value, name) for to in one.targets)
        )
        for one in walk_statements(body)
    )


def _longest(summary: Summary, state: State, counted: ir.Expr) -> int | None:
    """The most members of a variable over all paths, if each binds it to a tuple or list of known members; else
    None."""
    value = state.env.get(counted.id) if isinstance(counted, ir.Name) else None
    if value is None or not value.objs or not value.is_only(CONTAINER):
        return None
    held = [state.heap.get(key) for key in value.objs]
    if any(obj is None or obj.kind not in ("tuple", "list") or obj.elem.kinds for obj in held):
        return None
    if any(obj is not None and obj.kind == "list" for obj in held) and _is_handed_on(summary, counted):
        return None  # the callee may add members
    return max(len(obj.ordered) for obj in held if obj is not None)


#: functions that do not change a list argument
_READ_ONLY = (*_SAME_MEMBERS, "len", "print", "torch.cat", "torch.stack")


def _is_handed_on(summary: Summary, counted: ir.Expr) -> bool:
    return isinstance(counted, ir.Name) and any(
        is_name(arg, counted.id) and dotted(call.func) not in _READ_ONLY
        for call in calls(summary.function.body)
        for arg in call.passed
    )


def _literal(summary: Summary, state: State, arg: ir.Expr) -> int | None:
    """A literal number, the constant value of a local variable, or the length of a display; None for another
    expression."""
    if isinstance(arg, ir.Call) and dotted(arg.func) == "len" and len(arg.args) == 1:
        return _longest(summary, state, arg.args[0])
    value = arg.value if isinstance(arg, ir.Const) else None
    if isinstance(arg, ir.Name) and arg.id in state.env:
        value = state.env[arg.id].const
    return value if isinstance(value, int) and not isinstance(value, bool) else None
