"""Networks beside the trained one whose output no backward can use: a target, a teacher, a reference."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.demand.graph_origins import gives_no_gradient
from memlint.analysis.demand.used_up_graphs import is_trial, trains_inside, trains_otherwise, used_up
from memlint.analysis.domain.state import OFF, ON
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Ref, Source
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.index.program import Class
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import (
    calls,
    is_true,
    last_name,
    parts,
    walk_expression,
    walk_statements,
    withs_around,
)
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.modes import frozen_class
from memlint.analysis.transfer.modules.optimizer_parameters import made_of
from memlint.analysis.transfer.modules.touched_parameters import of_other_networks
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def records_unneeded_graph(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a run in training code (or in a forward) records a graph that nothing needs: every use of the output cuts
    the graph. The module's class has to be known, or the module also trains here, and the file must not freeze
    modules."""
    marks = run.marks & summary.graphs.nodes.keys()
    if not marks or marks & summary.notes.returned or run.origin is not None or is_differentiated(summary, marks):
        return False
    if run.text.rsplit(".", 1)[-1].startswith("train") or is_trial(summary.function):
        return False  # a method that trains itself
    if trains_inside(analyser, summary, run):
        return False
    classes = analyser.classes(run.module)
    known = bool(classes) or any(ref.kind == "extinstance" for ref in run.module.refs)
    if any(frozen_class(analyser, cls) or _runs_backward(analyser, cls, run.method) for cls in classes):
        return False
    if run.module.refs and all(_has_no_parameters(summary, ref) for ref in run.module.refs):
        return False
    if not known and not (run.method == "forward" and trains_otherwise(summary, run)):
        return False
    if (
        not (summary.backwards or summary.notes.trains_below or gives_a_graph(summary))
        or context_mode(analyser, summary, run.module, "frozen") is not None
    ):
        return False
    return used_up(analyser, summary, marks, of_gradients=True) and not may_freeze(summary, run)


def is_differentiated(summary: Summary, marks: AbstractSet[Source]) -> bool:
    """Whether `autograd.grad` may go through these graphs, here or in a callee that gets one of them."""
    end = summary.exit
    if summary.notes.unknown_gradients or end is None:
        return True
    records = [record for record in summary.calls.values() if record.at in summary.notes.gradient_calls]
    if summary.notes.gradient_calls - {record.at for record in records}:
        return True
    arguments = (value for record in records for value in record.args.values())
    return any(marks & summary.graphs.closure(tensors_within(summary, end, value).src) for value in arguments)


def _runs_backward(analyser: Analyser, cls: Class, method: str) -> bool:
    """Whether the method runs a backward itself, as a wrapper's forward may."""
    summary = analyser.summary(analyser.program.method(cls, method))
    return summary is not None and bool(summary.backwards or summary.notes.blind_backward)


def _has_no_parameters(summary: Summary, ref: Ref) -> bool:
    """Whether it is a torch layer that has parameters only on request, and the file requests none. Its output has no
    graph if its input has none."""
    plain = ref.kind == "extinstance" and ref.name.startswith("torch.nn.InstanceNorm")
    return plain and "affine=True" not in summary.module.text.replace(" ", "")


#: names that may freeze a network
_FREEZES = lazy_pattern(r"(?<!un)freeze|requires?_?grad")
#: in a Lightning module with several optimizers, Lightning freezes the parameters of all but the current one
_TOGGLES = frozenset({"toggle_optimizer", "toggle_model", "optimizer_idx"})
#: torch's own names, which may also unfreeze
_FLAGS = frozenset({"requires_grad", "requires_grad_"})


def may_freeze(summary: Summary, run: ModelRun) -> bool:
    """Whether the file turns requires_grad off anywhere, as a helper may do so for the run's network. Code of this
    function that names another network does not count if the function also trains the run's network."""
    names = summary.module.names
    if any(_FREEZES.search(name.lower()) for name in names - _FLAGS):
        return True
    if not _TOGGLES.isdisjoint(names) and _is_of_lightning(summary):
        return True
    if not _FLAGS & names:
        return False
    others = of_other_networks(summary.function.body, run.text) if trains_otherwise(summary, run) else frozenset()
    return any(id(place) not in others for body in summary.module.bodies for place in _turned_off(body))


def _is_of_lightning(summary: Summary) -> bool:
    """Whether the function is a method of a Lightning module."""
    cls = summary.function.cls
    return cls is not None and any(
        name.endswith("LightningModule") for name in summary.analyser.program.ancestors(cls)[1]
    )


def _turned_off(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Expr]:
    """The objects whose ``requires_grad`` is not set to True: ``p`` and ``net`` in ``p.requires_grad = False``,
    ``net.requires_grad_(flag)``."""
    for statement in walk_statements(body):
        targets = statement.targets if isinstance(statement, ir.Assign) and not is_true(statement.value) else ()
        for target in targets:
            if isinstance(target, ir.Attr) and target.name == "requires_grad":
                yield target.value
    for call in calls(body, into_definitions=True):
        arguments = call.passed
        if last_name(call.func) == "requires_grad_" and not all(map(is_true, arguments)):
            yield call.func.value if isinstance(call.func, ir.Attr) else call.func


def gives_a_graph(summary: Summary) -> bool:
    """Whether a forward returns a value with a model's graph. A forward that returns only labels belongs to an
    evaluation."""
    nodes = summary.graphs.nodes
    return any(item in nodes and nodes[item].model for item in summary.graphs.closure(summary.notes.returned))


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
