"""Which modules an optimizer owns, and which networks run with a graph that nothing needs.

A module's parameters carry marks (``("params", key)`` among their storages) from ``parameters()`` through lists,
groups, chains and filters to the optimizer that takes them. The answer "no" requires that every known optimizer is
resolved, that known code made the module and gave it to nothing that could own it, and that its input has no graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.given_networks import is_trained_by_nobody, parameter_of
from memlint.analysis.demand.graph_origins import gives_no_gradient, networks_beside
from memlint.analysis.demand.idle_optimizers import is_never_stepped
from memlint.analysis.demand.private_copies import is_private
from memlint.analysis.domain.events import Fact
from memlint.analysis.domain.recorded_modes import outward, whole_of
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path, Source, V, ordered
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import walk_statements
from memlint.analysis.transfer.modules.modes import frozen_class
from memlint.analysis.transfer.modules.optimizer_parameters import ANY, is_touched
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def owner_of(analyser: Analyser, summary: Summary, run: ModelRun) -> Fact:
    """Whether an optimizer owns the module of a run. "no" only if the run needs no graph at all."""
    owner = _owner(analyser, summary, run)
    if owner != "no":
        return owner
    no_gradient = gives_no_gradient(analyser, summary, run) and not _is_differentiated(analyser, summary, run)
    return "no" if no_gradient else "unknown"


def _is_differentiated(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the gradients of a run's module are the purpose of a backward: it goes through no trained network.
    Examples are a test that reads gradients, a benchmark, pruning scores and a Fisher diagonal."""
    for backward in summary.backwards:
        if run.node in backward.reached or run.value.src & backward.reached:
            others = networks_beside(analyser, summary, run, backward)
            if others is not None and all(_owner(analyser, summary, other) == "no" for other in others):
                return True
    return False


def _owner(analyser: Analyser, summary: Summary, run: ModelRun) -> Fact:
    """Whether an optimizer owns the module of a run, whatever its graph is used for."""
    if run.origin is not None or not summary.backwards:
        return "unknown"
    if _in_training(summary, run) and is_private(analyser, summary, run):
        return "no"
    if summary.exit is None:
        return "unknown"
    param = parameter_of(summary, run)
    if param and _in_training(summary, run) and not _writes_gradients(summary):
        untrained = is_trained_by_nobody(analyser, summary, param) and not _is_frozen_class(analyser, run)
        return "no" if untrained else "unknown"
    keys, home = _home(analyser, summary, run.module)
    if not keys or home is None or home.exit is None:
        return "unknown"
    if run.text.replace(".", "").isidentifier():
        keys = {*keys, ("v", run.text), ("v", _without_method(analyser, run))}
    owned = [entry for one in _of_class(analyser, summary) for entry in one.notes.owned]
    known = bool(owned) or is_never_stepped(analyser, summary, run)
    if not known or None in owned or not _in_training(summary, run) or _writes_gradients(summary):
        return "unknown"
    mine = {outer for key in keys for outer in outward(key)}
    for entry in owned:
        for key in entry or ():
            if key in mine or any(outer in keys for outer in outward(key)):
                return "yes"
    given: set[Source] = summary.notes.given | home.notes.given
    if ANY in given or given & (keys | {key for entry in owned for key in entry or ()}):
        return "unknown"  # one of the modules may hold the other
    if _owned_elsewhere(analyser, run.module) or _touched_anywhere(analyser, summary, home, run, mine):
        return "unknown"
    return "no"


def _without_method(analyser: Analyser, run: ModelRun) -> str:
    """The text of the module whose method a run calls: ``net`` for ``net.encode``, if one of its possible classes
    defines that method. Otherwise the run's own text."""
    module, _, name = run.text.rpartition(".")
    defined = any(analyser.program.method(cls, name) is not None for cls in analyser.classes(run.module))
    return module if defined else run.text


def _in_training(summary: Summary, run: ModelRun) -> bool:
    """Whether a backward runs in the same iteration, possibly after an inner loop over steps, or goes through the run
    in each round of a later loop."""
    return any(
        run.loops[: len(loops)] == loops or (loops[: len(run.loops)] == run.loops and bool(run.marks & reached))
        for reached, loops, *_ in summary.backwards
    )


def _writes_gradients(summary: Summary) -> bool:
    """Whether the function assigns gradients, so that one network steps by another's: ``shared.grad = local.grad``."""
    return _assigns_gradients(summary.function.body)


@kept
def _assigns_gradients(body: tuple[ir.Stmt, ...]) -> bool:
    return any(
        isinstance(target, ir.Attr) and target.name in ("grad", "_grad")
        for statement in walk_statements(body)
        if isinstance(statement, ir.Assign)
        for target in statement.targets
    )


def _home(analyser: Analyser, summary: Summary, module: V) -> tuple[set[Source], Summary | None]:
    """The keys of the module, and the summary of the function that made it. An empty set and None if unknown."""
    if len(module.syms) > 1 or len(module.store) > 1 or any(whole_of(item) is not None for item in module.store):
        return set(), None
    for path in ordered(module.syms):
        cls = summary.function.cls
        if cls is None or path.root != f"p:{summary.function.own_name}" or not path.steps:
            return set(), None
        init = analyser.program.method(cls, "__init__")
        home = analyser.summary(init) if init is not None else None
        if home is None or home.exit is None:
            return set(), None
        value = home.exit.sym.get(Path("p:self", path.steps[:1]))
        if value is None or len(value.store) + len(value.syms) != 1:
            return set(), None
        keys: set[Source] = {path, *(("made", item) for item in value.store)}
        keys |= {Path(base.root, base.steps + path.steps[1:]) for base in value.syms}
        return (keys, home) if not value.syms else (set(), None)
    return {("made", item) for item in module.store}, summary


def _of_class(analyser: Analyser, summary: Summary) -> list[Summary]:
    """The function's own summary, and those of all methods of its class."""
    order = analyser.program.ancestors(summary.function.cls)[0] if summary.function.cls is not None else []
    methods = (analyser.summary(method) for item in order for method in item.methods.values())
    return [summary, *(one for one in methods if one is not None and one is not summary)]


def _owned_elsewhere(analyser: Analyser, module: V) -> bool:
    """Whether some optimizer of the project takes the parameters of an attribute of that name."""
    names = {path.steps[-1] for path in module.syms if path.steps}
    return bool(names & analyser.facts.owned_attributes)


def _touched_anywhere(analyser: Analyser, summary: Summary, home: Summary, run: ModelRun, mine: set[Source]) -> bool:
    """Whether known code sets requires_grad of the module or of a part of it, or reads its gradients."""
    return any(is_touched(one, mine) for one in (home, *_of_class(analyser, summary))) or _is_frozen_class(
        analyser, run
    )


def _is_frozen_class(analyser: Analyser, run: ModelRun) -> bool:
    return any(frozen_class(analyser, cls) for cls in analyser.classes(run.module))
