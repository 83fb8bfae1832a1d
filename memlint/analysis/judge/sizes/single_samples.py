"""Models that run on a single sample: a batch made from one sample, or the state of an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.bound_names import argument, bindings, peel
from memlint.analysis.domain.extents import by_name
from memlint.analysis.domain.extents.extents import SAME
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.roles_by_name import names_environment
from memlint.analysis.syntax.bindings import binds, names_bound_by
from memlint.analysis.syntax.syntax import (
    call_at,
    dotted,
    is_member,
    is_none,
    last_name,
    parts,
    walk_expression,
    way_to,
)
from memlint.analysis.transfer.library.extent_ops import literal
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_Predicate = Callable[[ir.Expr, bool], bool]

_TOKENIZER = lazy_pattern(r"(\w+_)?(tokenizer|processor|encode|encode_plus)")
#: a vector of at most so many written numbers is small
_FEW_NUMBERS = 64
#: how many callers up an argument is followed
_CALLERS_UP = 2
_NEW_AXIS = frozenset({"unsqueeze", "expand_dims"})
#: functions that read a picture
_READS = frozenset({"imread", "imdecode"})
#: operations along each row, which return as many numbers or some of them
_SORTED = frozenset({"sort", "topk", "argsort", "softmax", "log_softmax"})
#: how many bindings of a layer's output are followed
_STEPS = 8
_RESHAPES = frozenset({"view", "reshape"})
_MAKE_ARRAYS = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "array", "asarray", "float32", "stack"})
_DISPLAYED = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "array", "asarray"})


def runs_on_one_sample(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether all inputs of the model are batches made from one sample."""
    return _runs_on(analyser, summary, run, _is_batch_of_one)


def runs_on_one_state(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the model's input is the last observation of an environment."""
    return _runs_on(analyser, summary, run, _is_observed)


def runs_on_written_numbers(summary: Summary, run: ModelRun) -> bool:
    """Whether the model's input is, on some way to the call, a vector that the function writes down: ``state = (0, 0)``
    and ``model(torch.tensor(state))``. What it is on other ways has the same width then."""
    call = call_at(summary.function.body, run.site.at)
    return call is not None and bool(call.args) and _is_written(call.args[0], summary.function.body, call.at, _STEPS)


def _is_written(expr: ir.Expr, body: tuple[ir.Stmt, ...], before: int, depth: int) -> bool:
    """``before``: the ordinal at which the expression is evaluated."""
    if depth == 0:
        return False
    if isinstance(expr, ir.Name):
        found, _ = _reaching(body, expr.id, before)
        return any(_is_written(value, body, value.at, depth - 1) for value, unpacked in found if not unpacked)
    if isinstance(expr, ir.Display):
        return 0 < len(expr.elements) <= _FEW_NUMBERS and all(map(_is_number, expr.elements))
    if isinstance(expr, ir.Call) and last_name(expr.func) in _MAKE_ARRAYS and expr.args:
        return _is_written(expr.args[0], body, before, depth - 1)
    step = peel(expr)
    return step is not None and _is_written(step, body, before, depth - 1)


def _is_number(expr: ir.Expr) -> bool:
    value = expr.operand if isinstance(expr, ir.Unary) and expr.op == "-" else expr
    return isinstance(value, ir.Const) and value.kind not in ("str", "None")


def gives_one_row(summary: Summary, run: ModelRun) -> bool:
    """Whether a layer's output must be one row, because it, or one of its elements, becomes a Python number:
    ``int(layer(x).softmax(-1).argmax())``, ``probs = torch.softmax(layer(x), -1); float(probs[i])``."""
    body = summary.function.body
    call = call_at(body, run.site.at)
    return call is not None and any(_comes_of(one, call, body, indexed) for one, indexed in _numbers(body))


def _numbers(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Expr, bool]]:
    """Expressions that become a Python number, with False; for an indexed element its collection, with True."""
    for part in parts(body):
        if not isinstance(part, ir.Call):
            continue
        source = part.args[0] if dotted(part.func) in ("int", "float") and len(part.args) == 1 else None
        if isinstance(part.func, ir.Attr) and part.func.name == "item" and not part.args:
            source = part.func.value
        if isinstance(source, ir.Call) and last_name(source.func) in ("detach", "cpu", "item"):
            source = source.func.value if isinstance(source.func, ir.Attr) else source
        if isinstance(source, ir.Subscript) and not isinstance(source.index, ir.Display | ir.Slice):
            yield source.value, True
        elif isinstance(source, ir.Call) and last_name(source.func) in ("argmax", "argmin"):
            yield from ((one, False) for one in _operands(source))
        elif source is not None:
            yield source, False


def _comes_of(expr: ir.Expr, call: ir.Call, body: tuple[ir.Stmt, ...], indexed: bool, depth: int = _STEPS) -> bool:
    """Whether an expression has the rows of a call's result. ``indexed``: and an operation on the way shows that a row
    has several numbers: it sorts them or takes a softmax. Without that, an indexed element may itself be a row."""
    if expr is call or depth == 0:
        return expr is call and not indexed
    if isinstance(expr, ir.Name):
        found = bindings(body).get(expr.id, [])
        return any(_comes_of(value, call, body, indexed, depth - 1) for value, _ in found)
    if not isinstance(expr, ir.Call) or last_name(expr.func) not in SAME | _SORTED:
        return False
    indexed = indexed and last_name(expr.func) not in _SORTED
    return any(_comes_of(one, call, body, indexed, depth - 1) for one in _operands(expr))


def _operands(call: ir.Call) -> tuple[ir.Expr, ...]:
    """The possible tensor operand of a call: its first argument, or the receiver of the method."""
    return (*call.args[:1], *((call.func.value,) if isinstance(call.func, ir.Attr) else ()))


def shows_a_picture(summary: Summary, run: ModelRun) -> bool:
    """Whether the model's input may be a picture, by its names or by the function that reads it."""
    call = call_at(summary.function.body, run.site.at)
    if call is None:
        return True
    names = {last_name(part) for part in walk_expression(call.args[0])} if call.args else set()
    own = bindings(summary.function.body)
    for name in [*names]:
        names |= {last_name(part) for value, _ in own.get(name, []) for part in walk_expression(value)}
    return any(name in _READS or by_name.of_name(name) is by_name.PICTURE for name in names if name)


def _runs_on(analyser: Analyser, summary: Summary, run: ModelRun, predicate: _Predicate) -> bool:
    if run.origin is not None and _runs_on(analyser, *run.origin, predicate):
        return True
    call = call_at(summary.function.body, run.site.at)
    source = None if call is None else call.args[0] if call.args else call.keywords[0].value if call.keywords else None
    if call is None or source is None or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    return _Given(analyser, summary, predicate).holds(source, call.at) is True


class _Given:
    """Evaluates a question for an expression of a function, and for the expressions that it is made of."""

    def __init__(self, analyser: Analyser, summary: Summary, predicate: _Predicate, depth: int = _CALLERS_UP) -> None:
        self._analyser, self._summary, self._predicate, self._depth = analyser, summary, predicate, depth
        self._seen: set[tuple[object, ...]] = set()

    def holds(self, expr: ir.Expr, before: int) -> bool | None:
        """The answer for an expression at the ordinal ``before``; None for a name whose answer is being computed."""
        step: ir.Expr | None = expr
        while step is not None:
            expr = step
            if self._is(expr, False):
                return True
            step = peel(expr)
        if isinstance(expr, ir.Name):
            return self._name_holds(expr.id, before)
        if isinstance(expr, ir.Display):
            each = [self.holds(one, before) for one in expr.elements]
            return any(each) and False not in each
        if is_member(expr):
            return self.holds(expr.value, before)
        return isinstance(expr, ir.Call) and self._is_passed_on(expr, before)

    def _is(self, expr: ir.Expr, unpacked: bool) -> bool:
        """The answer for the expression alone. A whole batch reshaped into one row does not count, as it takes as much
        memory."""
        if not self._predicate(expr, unpacked):
            return False
        func = expr.func if isinstance(expr, ir.Call) else None
        reshaped = func.value if isinstance(func, ir.Attr) and func.name in _RESHAPES else None
        return reshaped is None or not self._is_batch(reshaped, set())

    def _is_batch(self, expr: ir.Expr, seen: set[str]) -> bool:
        """Whether an expression may be a loader's batch, or a member of one by name (``batch["image"]``)."""
        while (step := expr.value if is_member(expr) else peel(expr)) is not None:
            expr = step
        if not isinstance(expr, ir.Name) or expr.id in seen:
            return False
        name = expr.id
        seen.add(name)
        loops = [loop.loop for loop in self._summary.notes.rounds.values() if name in loop.targets]
        if any(loop.over == "loader" and not loop.single for loop in loops):
            return True
        bound = bindings(self._summary.function.body).get(name, [])
        if any(self._is_batch(value, seen) for value, _ in bound):
            return True
        return any(given is not None and inner._is_batch(given, set()) for inner, given, _ in self._given(name))

    def _is_passed_on(self, call: ir.Call, before: int) -> bool:
        """Whether the expression is the first argument of a project function, a method of ``self``
        (``self.normalize(state)``) or a function that makes an array, and the answer holds for it."""
        if last_name(call.func) in _MAKE_ARRAYS:
            return bool(call.args) and self.holds(call.args[0], before) is True
        function = self._summary.function
        kind, _ = self._analyser.program.find_expression(function.module, call.func, function)
        own = isinstance(call.func, ir.Attr) and dotted(call.func.value) == function.own_name != ""
        return bool(call.args) and (kind == "function" or own) and self.holds(call.args[0], before) is True

    def _name_holds(self, name: str, before: int) -> bool | None:
        bound, from_entry = _reaching(self._summary.function.body, name, before)
        key = (name, *(value.at for value, _ in bound))
        if key in self._seen:
            return None
        self._seen.add(key)
        found = [self._bound_holds(value, unpacked, value.at) for value, unpacked in bound]
        if from_entry and any(param.name == name for param in self._summary.function.params):
            found.append(self._callers_hold(name))
        return any(found) and False not in found

    def _bound_holds(self, value: ir.Expr, unpacked: bool, before: int) -> bool | None:
        if self._is(value, unpacked):
            return True
        return False if unpacked else self.holds(value, before)

    def _callers_hold(self, name: str) -> bool:
        """Whether the answer is True for the argument of every known call. False if no call is known."""
        passed = [*self._given(name)]
        return bool(passed) and all(one is not None and inner.holds(one, at) is True for inner, one, at in passed)

    def _given(self, name: str) -> Iterator[tuple[_Given, ir.Expr | None, int]]:
        """For each call of the function, the caller's context, the argument for a parameter (None if unknown) and its
        ordinal."""
        function = self._summary.function
        at = next((number for number, param in enumerate(function.given) if param.name == name), None)
        for caller, record in self._analyser.facts.calls_of(function) if self._depth and at is not None else ():
            call = call_at(caller.function.body, record.at)
            given = argument(call, at, name) if call is not None and at is not None else None
            yield _Given(self._analyser, caller, self._predicate, self._depth - 1), given, record.at


def _reaching(body: tuple[ir.Stmt, ...], name: str, before: int) -> tuple[list[tuple[ir.Expr, bool]], bool]:
    """The expressions that a name may be bound to at an ordinal, each with whether the name is unpacked from it, and
    whether its value at the function's entry may be there too."""
    found: list[tuple[ir.Expr, bool]] = []
    for depth, (block, place) in enumerate(reversed(way_to(body, before))):
        around = block[place]
        if isinstance(around, ir.While) or (isinstance(around, ir.For) and depth):
            found += _bound_in(around, name)  # an earlier iteration may bind it
            if name in names_bound_by(around):
                return found, False
        for statement in reversed(block[:place]):
            if binds(statement, name):
                found += _bound_in(statement, name)
            if isinstance(statement, ir.Assign) and name in names_bound_by(statement):
                return found, False
    return found, True


def _bound_in(statement: ir.Stmt, name: str) -> list[tuple[ir.Expr, bool]]:
    """What a statement and those in it bind a name to; an unknown expression where that is not seen."""
    return bindings((statement,)).get(name, []) or [(ir.Const(statement.at, "Ellipsis", None), True)]


def _is_observed(expr: ir.Expr, unpacked: bool) -> bool:
    """``env.reset()``, ``env.step(action)``"""
    if isinstance(expr, ir.Subscript) and literal(expr.index) == 0:
        expr = expr.value
    func = expr.func if isinstance(expr, ir.Call) else None
    if not isinstance(func, ir.Attr) or func.name not in ("reset", "step"):
        return False
    return names_environment(last_name(func.value))


def _is_batch_of_one(expr: ir.Expr, unpacked: bool) -> bool:
    """``x.unsqueeze(0)``, ``x[None]``, ``torch.tensor([x])``, ``x.view(1, -1)``, ``tokenizer("a text")``"""
    if unpacked:
        return False
    if isinstance(expr, ir.Subscript):
        first = expr.index.elements[0] if isinstance(expr.index, ir.Display) and expr.index.elements else expr.index
        if isinstance(first, ir.Call):
            return _is_batch_of_one(first, unpacked)
        return is_none(first) or last_name(first) == "newaxis"
    if not isinstance(expr, ir.Call):
        return False
    name = last_name(expr.func)
    if _TOKENIZER.fullmatch(name.lower()) is not None:
        return bool(expr.args) and isinstance(expr.args[0], ir.Const) and expr.args[0].kind == "str"
    if name in _NEW_AXIS:
        by_axis = argument(expr, 99, "dim") or argument(expr, 99, "axis") or (expr.args[-1] if expr.args else None)
        return by_axis is not None and literal(by_axis) == 0
    if name in _RESHAPES and expr.args:
        return literal(expr.args[0]) == 1
    if name not in _DISPLAYED or not expr.args:
        return False
    given = expr.args[0]
    # a list of one number may be a single token
    return isinstance(given, ir.Display) and given.kind == "list" and len(given.elements) == 1
