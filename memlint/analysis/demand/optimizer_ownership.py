"""Which modules an optimizer owns, and which networks run with a graph that nothing needs.

A module's parameters carry marks (``("params", key)`` among their storages) from ``parameters()`` through lists,
groups, chains and filters to the optimizer that takes them. The answer "no" requires that every known optimizer is
resolved, that known code made the module and gave it to nothing that could own it, and that its input has no graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.given_networks import is_trained_by_nobody, parameter_of
from memlint.analysis.demand.gradient_demand import asked_for
from memlint.analysis.demand.graph_origins import gives_no_gradient, networks_beside
from memlint.analysis.domain.events import Fact
from memlint.analysis.domain.recorded_modes import outward, whole_of
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE, Path, Source, V, ordered
from memlint.analysis.index.definitions import Class
from memlint.analysis.index.uses import receiver_of
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, expressions, is_name, last_name, parts, walk_statements, with_lambdas
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
        home = analyser.summary(analyser.program.method(cls, "__init__"))
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
    methods = map(analyser.summary, analyser.program.methods(summary.function.cls))
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


#: if more files than this mention a name, none is read
MAX_FILES = 40


def is_never_stepped(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether no known code touches the optimizer that a run's module made for its own parameters, while this function
    steps that of another module: ``self.q_eval.optimizer.step()`` beside ``self.q_next(x)``."""
    place = next(iter(run.module.syms)) if len(run.module.syms) == 1 else None
    classes = analyser.classes(run.module)
    if place is None or len(place.steps) != 1 or not classes:
        return False
    name = place.steps[0].lstrip(".")
    own = [_own_optimizers(analyser, cls) for cls in classes]
    return all(own) and all(
        _steps_another(summary, held, name) and not _is_touched(analyser, name, held) for held in own
    )


def _own_optimizers(analyser: Analyser, cls: Class) -> frozenset[str]:
    """The attributes of a module that hold optimizers of all its parameters; empty if it steps one itself."""
    init = analyser.program.method(cls, "__init__")
    summary = analyser.summary(init)
    if init is None or summary is None or not init.params:
        return frozenset()
    me = init.params[0].name
    if not any(entry is not None and Path(f"p:{me}") in entry for entry in summary.notes.owned):
        return frozenset()
    found = {
        target.name
        for statement in walk_statements(init.body, into_definitions=False)
        if isinstance(statement, ir.Assign) and _takes_all(statement.value, me)
        for target in statement.targets
        if isinstance(target, ir.Attr) and dotted(target.value) == me
    }
    steps = (
        last_name(part.value)
        for method in analyser.program.methods(cls)
        for part in parts(method.body)
        if isinstance(part, ir.Attr) and part.name == "step"
    )
    return frozenset() if found & set(steps) else frozenset(found)


def _takes_all(value: ir.Expr, me: str) -> bool:
    """Whether an expression makes an optimizer of all own parameters: ``Adam(self.parameters(), lr=lr)``."""
    return isinstance(value, ir.Call) and any(
        isinstance(arg, ir.Call) and dotted(arg.func) == f"{me}.parameters" for arg in value.args[:1]
    )


def _steps_another(summary: Summary, held: frozenset[str], name: str) -> bool:
    return any(
        isinstance(part, ir.Attr)
        and part.name == "step"
        and isinstance(part.value, ir.Attr)
        and part.value.name in held
        and last_name(part.value.value) != name
        for part in parts(summary.function.body)
    )


def _is_touched(analyser: Analyser, name: str, held: frozenset[str]) -> bool:
    """Whether some code may reach the optimizer: by the network's name, or through a list of networks."""
    files = analyser.program.words.files(name)
    return len(files) > MAX_FILES or any(
        _reaches(part, name, held)
        for key in files
        for body in analyser.program.module(key).bodies
        for part in parts(body, into_definitions=True)
    )


def _reaches(part: ir.Expr, name: str, held: frozenset[str]) -> bool:
    match part:
        case ir.Attr(name=attribute, value=value) if attribute in held:
            return last_name(value) == name
        case ir.Display(elements=elements):
            return any(isinstance(one, ir.Name | ir.Attr) and last_name(one) == name for one in elements)
        case _:
            return False


#: methods that expose no parameter that requires grad
_QUIET = frozenset({"load_state_dict", "state_dict", "zero_grad"})


def is_private(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the run's name is a private copy of another network that is only called, loaded and placed: ``old =
    Policy(4); old.load_state_dict(policy.state_dict())``."""
    function = summary.function
    name = run.text
    if function.node is None or not name.isidentifier() or any(param.name == name for param in function.params):
        return False
    scoped, mentioned = _mentions(function.body)
    statements = mentioned.get(name, [])
    if name in scoped:
        return False
    known: set[int] = set()
    loaded = False
    for statement in statements:
        if isinstance(statement, ir.Assign) and is_name(statement.targets[0], name) and len(statement.targets) == 1:
            made = receiver_of(statement.value)
            copied = _copies_what_trains(summary, made)
            if not copied and not is_name(made, name) and not _is_its_own(analyser, summary, made):
                return False
            loaded = loaded or copied
            known.update(id(part) for part in (statement.targets[0], made if is_name(made, name) else None) if part)
        elif isinstance(statement, ir.ExprStmt) and is_name(receiver_of(statement.value), name):
            known.add(id(receiver_of(statement.value)))
        for part in with_lambdas(expressions(statement)):
            if not isinstance(part, ir.Call):
                continue
            if is_name(part.func, name):
                known.add(id(part.func))
            elif isinstance(part.func, ir.Attr) and part.func.name in _QUIET and is_name(part.func.value, name):
                known.add(id(part.func.value))
                loaded = loaded or part.func.name == "load_state_dict"
    mentions = (
        part for statement in statements for part in with_lambdas(expressions(statement)) if is_name(part, name)
    )
    if not loaded or any(id(part) not in known for part in mentions):
        return False
    # a request for the gradient of its input needs the graph
    return not any(asked_for(one) for one in (summary, *(caller for caller, _ in analyser.facts.calls_of(function))))


@kept
def _mentions(body: tuple[ir.Stmt, ...]) -> tuple[set[str], dict[str, list[ir.Stmt]]]:
    """The names that a body declares global or nonlocal, and, by name, the statements that mention it."""
    scoped: set[str] = set()
    found: dict[str, list[ir.Stmt]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.Scope):
            scoped.update(statement.names)
        for name in {part.id for part in with_lambdas(expressions(statement)) if isinstance(part, ir.Name)}:
            found.setdefault(name, []).append(statement)
    return scoped, found


def _copies_what_trains(summary: Summary, made: ir.Expr) -> bool:
    """Whether an expression is ``copy.deepcopy(model)`` of a model that a backward reaches here. The copy of a frozen
    model is frozen itself."""
    if not isinstance(made, ir.Call) or last_name(made.func) != "deepcopy" or len(made.args) != 1:
        return False
    source = dotted(made.args[0])
    return bool(source) and any(
        f"{run.text}.".startswith(f"{source}.") and run.marks & one.reached
        for run in summary.runs.values()
        for one in summary.backwards
    )


def _is_its_own(analyser: Analyser, caller: Summary, made: ir.Expr) -> bool:
    """Whether a call makes a module of a known class that stores only plain data of its arguments, so that it shares no
    part with another module."""
    if not isinstance(made, ir.Call):
        return False
    kind, what = analyser.program.find_expression(caller.function.module, made.func, caller.function)
    if kind != "class" or not isinstance(what, Class) or not analyser.program.is_module(what):
        return False
    init = analyser.program.method(what, "__init__")
    summary = analyser.summary(init) if init is not None and init.params else None
    if init is None or summary is None or summary.exit is None or summary.cut_short or summary.left or summary.escaped:
        return False
    own = f"p:{init.params[0].name}"
    kept = (path for value in summary.exit.sym.values() if not value.is_only(DATA | NONE) for path in value.syms)
    return all(path.root == own for path in kept)
