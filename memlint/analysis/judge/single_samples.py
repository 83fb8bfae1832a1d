"""Models that run on a single sample: a batch that is made of one, or the state of an environment."""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.domain.bound_names import argument, bindings, peel
from memlint.analysis.domain.extents import by_name
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.frame import Frame
from memlint.analysis.syntax.syntax import call_at, last_name, walk_expression
from memlint.analysis.transfer.library.extent_ops import literal
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

_Question = Callable[[ir.Expr, bool], bool]

_ENVIRONMENT = lazy_pattern(r"([a-z]\w*_)?(v?envs?|environment|gym)(_\w+)?")
_NEW_AXIS = frozenset({"unsqueeze", "expand_dims"})
#: functions that read a picture
_READS = frozenset({"imread", "imdecode"})
_RESHAPES = frozenset({"view", "reshape"})
_DISPLAYED = frozenset({"tensor", "as_tensor", "Tensor", "FloatTensor", "LongTensor", "array", "asarray"})


def runs_on_one_sample(frame: Frame, run: ModelRun) -> bool:
    """Whether all that a model is given is a batch of one sample, which is no picture."""
    return _runs_on(frame, run, _is_batch_of_one) and not _shows_a_picture(frame, run)


def runs_on_one_state(frame: Frame, run: ModelRun) -> bool:
    """Whether a model is given what an environment showed in its last step."""
    return _runs_on(frame, run, _is_observed)


def _runs_on(frame: Frame, run: ModelRun, asked: _Question) -> bool:
    if run.origin is not None and _runs_on(*run.origin, asked):
        return True
    call = call_at(frame.function.body, run.site.at)
    if call is None or not call.args or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    return _holds(frame, call.args[0], asked, set()) is True


def _shows_a_picture(frame: Frame, run: ModelRun) -> bool:
    call = call_at(frame.function.body, run.site.at)
    if call is None:
        return True
    names = {last_name(part) for part in walk_expression(call.args[0])} if call.args else set()
    own = bindings(frame.function.body)
    for name in [*names]:
        names |= {last_name(part) for value, _ in own.get(name, []) for part in walk_expression(value)}
    return any(name in _READS or by_name.of_name(name) is by_name.PICTURE for name in names if name)


def _holds(frame: Frame, expr: ir.Expr, asked: _Question, seen: set[str]) -> bool | None:
    """Whether something is so of an expression, and of all that its name is bound to; None for a name that is asked
    about already."""
    step: ir.Expr | None = expr
    while step is not None:
        expr = step
        if asked(expr, False):
            return True
        step = peel(expr)
    if not isinstance(expr, ir.Name):
        return False
    if expr.id in seen:
        return None
    if any(param.name == expr.id for param in frame.function.params):
        return False
    seen.add(expr.id)
    found = [
        True if asked(value, unpacked) else False if unpacked else _holds(frame, value, asked, seen)
        for value, unpacked in bindings(frame.function.body).get(expr.id, [])
    ]
    return any(found) and False not in found


def _is_observed(expr: ir.Expr, unpacked: bool) -> bool:
    """``env.reset()``, ``env.step(action)``"""
    if isinstance(expr, ir.Subscript) and literal(expr.index) == 0:
        expr = expr.value
    func = expr.func if isinstance(expr, ir.Call) else None
    if not isinstance(func, ir.Attr) or func.name not in ("reset", "step"):
        return False
    return _ENVIRONMENT.fullmatch(last_name(func.value).lower()) is not None


def _is_batch_of_one(expr: ir.Expr, unpacked: bool) -> bool:
    """``x.unsqueeze(0)``, ``x[None]``, ``torch.tensor([x])``, ``x.view(1, -1)``"""
    if unpacked:
        return False
    if isinstance(expr, ir.Subscript):
        first = expr.index.elements[0] if isinstance(expr.index, ir.Display) and expr.index.elements else expr.index
        return (isinstance(first, ir.Const) and first.kind == "None") or last_name(first) == "newaxis"
    if not isinstance(expr, ir.Call):
        return False
    name = last_name(expr.func)
    if name in _NEW_AXIS:
        by_axis = argument(expr, 99, "dim") or argument(expr, 99, "axis") or (expr.args[-1] if expr.args else None)
        return by_axis is not None and literal(by_axis) == 0
    if name in _RESHAPES and expr.args:
        return literal(expr.args[0]) == 1
    if name not in _DISPLAYED or not expr.args:
        return False
    given = expr.args[0]
    # (a list of one number may be a token)
    return isinstance(given, ir.Display) and given.kind == "list" and len(given.elements) == 1
