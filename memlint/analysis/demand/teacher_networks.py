"""Networks that others learn from and that do not learn themselves: teachers in eval mode beside trained networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.graph_origins import gives_no_gradient
from memlint.analysis.domain.state import OFF, ON
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, last_name, parts, walk_expression, withs_around
from memlint.analysis.transfer.modules.optimizer_parameters import made_of
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_TEACHERS = lazy_pattern(r"teacher|(^|_)(target|ema|momentum|reference|frozen|pretrained)(_|$)|(^|_)ref(_model|_net)?$")
#: names of methods and functions that train or freeze parameters
_OF_PARAMETERS = lazy_pattern(r"param|apply|children|modules|requires_grad|freez|optim|adam|sgd|clip|grad")


#: through how many callers a backward is looked for
_LEVELS = 3


def teaches(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a run in eval mode is that of a teacher: a backward reaches it and also another model that learns, which
    is in train mode or in a framework's training step.

    A backbone in eval mode for its statistics alone does not count, as its name is no teacher's. A student that is in
    train mode in a single phase learns in that phase.
    """
    named = _TEACHERS.search(run.text.rsplit(".", 1)[-1].lower())
    return run.origin is None and named is not None and _teaches(analyser, summary, run, 0)


def _teaches(analyser: Analyser, summary: Summary, run: ModelRun, depth: int) -> bool:
    """As `teaches`, for a run that is ``depth`` calls above the function that makes it. If no backward reaches it here,
    all callers have to agree."""
    if not gives_no_gradient(analyser, summary, run) or _is_trained_or_frozen(summary, run.text):
        return False
    backwards = [one for one in summary.backwards if run.node in one.reached]
    if not backwards and depth < _LEVELS:
        above = [
            (caller, lifted)
            for caller, _ in analyser.facts.calls_of(summary.function)
            for lifted in caller.run_index.lifted(summary, run)
        ]
        return bool(above) and all(_teaches(analyser, *one, depth + 1) for one in above)
    if depth and _may_be_owned(summary, run):
        return False
    stepping = summary.hook is not None and summary.hook.returns == "backward"
    return any(
        (
            other.mode is False
            or (stepping and other.mode is None and other.text != run.text)
            or _learns(summary, other, run)
        )
        and other.marks & one.reached
        for other in summary.runs.values()
        for one in backwards
    )


def _may_be_owned(summary: Summary, run: ModelRun) -> bool:
    """Whether an optimizer that the function makes takes the module's parameters, or an unknown selection."""
    keys = {*run.module.syms, *made_of(run.module)}
    return any(not entry or not keys.isdisjoint(entry) for entry in summary.notes.owned)


def _learns(summary: Summary, other: ModelRun, run: ModelRun) -> bool:
    """Whether both runs record in the same single phase, for which the function puts the other model into train
    mode."""
    by_phases = run.grad == other.grad == ON | OFF and _guards(summary, other) == _guards(summary, run)
    if not by_phases or other.mode is not None or other.text == run.text:
        return False
    made = (call.func for call in calls(summary.function.body) if isinstance(call.func, ir.Attr))
    return any(func.name == "train" and text(func.value) == other.text for func in made)


def _guards(summary: Summary, run: ModelRun) -> list[ir.With]:
    """The ``with set_grad_enabled(…)`` blocks around a run."""
    around = withs_around(summary.function.body, run.site.at)
    return [one for one in around if any("set_grad_enabled" in text(item.context) for item in one.items)]


def _is_trained_or_frozen(summary: Summary, model: str) -> bool:
    """Whether the file passes a model, or its parameters, to code that trains or freezes them: an optimizer, a list for
    one, a helper by its name. Under ``zip``, a teacher that follows its student does not count."""
    name = model.rsplit(".", 1)[-1]
    for body in summary.module.bodies:
        made = [part for part in parts(body, into_definitions=True) if isinstance(part, ir.Call)]
        zipped = {id(inner) for call in made if last_name(call.func) == "zip" for inner in walk_expression(call)}
        for call in made:
            if not _OF_PARAMETERS.search(last_name(call.func).lower()) or id(call) in zipped:
                continue
            owner = call.func.value if isinstance(call.func, ir.Attr) else call.func
            arguments = call.passed
            if last_name(owner) == name or any(_names(arg, name) for arg in arguments):
                return True
    return False


def _names(expr: ir.Expr, name: str) -> bool:
    return any(isinstance(part, ir.Name | ir.Attr) and last_name(part) == name for part in walk_expression(expr))


__all__ = ["teaches"]
