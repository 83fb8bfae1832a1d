"""Networks beside the trained one whose output no backward can use: a target, a teacher, a reference."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memlint.analysis.demand.used_up_graphs import is_trial, trains_inside, trains_otherwise, used_up
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Ref, Source
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.index.program import Class
from memlint.analysis.syntax.syntax import calls, is_true, last_name, walk_statements
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.modes import frozen_class
from memlint.analysis.transfer.modules.parameter_loops import of_other_networks
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
    return used_up(analyser, summary, marks, of_gradients=True) and not _freezes(summary, run)


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
    function = analyser.program.method(cls, method)
    summary = analyser.summary(function) if function is not None else None
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


def _freezes(summary: Summary, run: ModelRun) -> bool:
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
