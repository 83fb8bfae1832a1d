"""Which names in a function are modules, and which hold states that modules return, by the function's text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.index.program import Function, Program
from memlint.analysis.index.roles_by_name import names_model
from memlint.analysis.syntax.bindings import names_bound_by, unpacked_targets
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, parts, under_calls, walk_statements
from memlint.ir import nodes as ir
from memlint.knowledge import module_evidence
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


@kept
def states_made(body: tuple[ir.Stmt, ...]) -> set[tuple[str, str, str]]:
    """(state, name, method) of each ``state = name.method(…)``."""
    made: set[tuple[str, str, str]] = set()
    for statement in walk_statements(body):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
            func = statement.value.func
            if isinstance(func, ir.Attr) and isinstance(func.value, ir.Name):
                names = [one.id for one in unpacked_targets(statement) if isinstance(one, ir.Name)]
                made |= {(name, func.value.id, func.name) for name in names}
    return {(state, name, method) for state, name, method in made if name != state}


@kept
def fed_to(body: tuple[ir.Stmt, ...]) -> set[tuple[str, str]]:
    """(root of the callee, variable that is an argument) of each call."""
    fed: set[tuple[str, str]] = set()
    for part in parts(body, into_definitions=True):
        if isinstance(part, ir.Call):
            root = dotted(part.func).partition(".")[0]
            given = part.passed
            fed |= {
                (root, item.id)
                for value in given
                for item in (value.elements if isinstance(value, ir.Display) else (value,))
                if isinstance(item, ir.Name)
            }
    return fed


@kept
def methods_held(body: tuple[ir.Stmt, ...]) -> dict[str, tuple[ir.Expr, ...]]:
    """The variables that hold nothing but bound methods (or other attributes), with the objects that these belong to:
    ``encode = a.encode if forth else b.encode``."""
    held: dict[str, tuple[ir.Expr, ...]] = {}
    others: set[str] = set()
    for statement in walk_statements(body):
        target = statement.targets[0] if isinstance(statement, ir.Assign) and len(statement.targets) == 1 else None
        value = statement.value if isinstance(statement, ir.Assign) else None
        ways = (value.body, value.orelse) if isinstance(value, ir.IfExp) else (value,)
        holders = tuple(way.value for way in ways if isinstance(way, ir.Attr))
        if isinstance(target, ir.Name) and len(holders) == len(ways):
            held[target.id] = held.get(target.id, ()) + holders
        else:
            others |= names_bound_by(statement)
    return {name: holders for name, holders in held.items() if name not in others}


def uses_of(program: Program, function: Function) -> frozenset[str]:
    """The dotted names on which a function calls methods, or whose attributes it reads, that only modules have."""
    unit = function.module.index.units[function.unit]
    shows = not unit.calls.isdisjoint(("train", "zero_grad", "detach")) or not unit.calls.isdisjoint(module_evidence())
    if not shows and "_modules" not in unit.names:
        return frozenset()
    used, run_by_forward = _module_uses(function.body)
    used |= detached_models(function.body)
    if run_by_forward - used and _has_other_forward(program):
        return used.union(name for name in run_by_forward if names_model(name))
    return used | run_by_forward


_FORWARD = "forward"
#: if more files than this define a forward, their classes are not read
_MAX_FILES = 100


@kept
def _has_other_forward(program: Program) -> bool:
    """Whether a class of the project has a forward and is known to be no module (a rotation, the inverse of which is
    its ``inverse``): neither its bases nor those of its subclasses are unknown."""
    keys = program.words.defining(_FORWARD)
    modules = [program.module(key) for key in keys] if len(keys) <= _MAX_FILES else []
    named = ((module, one) for module in modules for one in module.index.definitions if _FORWARD in one.methods)
    classes = (module.cls(one.name) for module, one in named)
    return any(
        cls is not None and all(program.ancestors(one)[1] <= {"?.object"} for one in (cls, *program.below(cls)))
        for cls in classes
    )


@kept
def _module_uses(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """The dotted names that a body uses as only modules are used (``x.eval()``, ``x.parameters()``, ``x._modules``),
    and those whose ``forward`` it calls."""
    found: set[str] = set()
    forward: set[str] = set()
    #: dotted names that are called with arguments, and those that own an optimizer
    run: set[str] = set()
    owners: set[str] = set()
    evidence = module_evidence()
    for part in parts(body, into_definitions=True):
        if isinstance(part, ir.Attr) and part.name == "_modules" and (place := dotted(part.value)):
            found.add(place)
        if not isinstance(part, ir.Call):
            continue
        found |= _spread_layers(part)
        if part.args:
            run.add(dotted(part.func))
        if not isinstance(part.func, ir.Attr):
            continue
        name = part.func.name
        if name == "zero_grad" and (owner := _owner(part.func.value)):
            owners.add(owner)
        if name in evidence or (
            name == "train" and len(part.args) + len(part.keywords) <= 1 and _passes_only_a_flag(part)
        ):
            if name in ("state_dict", "load_state_dict") and _has_other_state_dict(dotted(part.func.value)):
                continue
            if (name == "eval" and part.args) or (name in ("eval", "train") and is_no_network(part.func)):
                continue
            place = dotted(receiver_of(part.func.value))
            if place:
                (forward if name == _FORWARD else found).add(place)
    return frozenset(found | (owners & run)), frozenset(forward)


@kept
def detached_models(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The dotted names of models that give what a body detaches: ``self.model.encode(x).cpu().detach()``. Where nothing
    has a graph there is nothing to detach. None where the body also reads derivatives, such as an output's forces: a
    model may differentiate for them by itself, and raises under a guard."""
    bound: dict[str, list[ir.Expr | None]] = {}
    for statement in walk_statements(body):
        for name in () if isinstance(statement, ir.AugAssign) else names_bound_by(statement):
            bound.setdefault(name, []).append(statement.value if isinstance(statement, ir.Assign) else None)
    found: set[str] = set()
    for call in calls(body):
        if isinstance(call.func, ir.Attr) and call.func.name == "detach":
            models, root = _called_first(call.func.value)
            given = bound.get(root, ())
            if not models and len(given) == 1 and given[0] is not None:
                models, _ = _called_first(given[0])
            found |= models
    return frozenset() if found and _reads_derivatives(body) else frozenset(found)


#: parts of an output that a model derives from another part, and keywords that ask for them
_DERIVATIVE = lazy_pattern(r"(?!requires_|no_)(\w+_)?(forces?|stress(es)?|virials?|gradients?|hessian|jacobian)")


def _reads_derivatives(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body reads a part that is named like a derivative of another output, or asks for one by a keyword."""
    for part in parts(body):
        match part:
            case ir.Subscript(index=ir.Const(value=str(name))) | ir.Attr(name=name):
                named = [name]
            case ir.Call(keywords=keywords):
                named = [word.name or "" for word in keywords]
            case _:
                continue
        if any(_DERIVATIVE.fullmatch(name.lower()) for name in named):
            return True
    return False


def _called_first(expr: ir.Expr) -> tuple[set[str], str]:
    """The models that the first call of a chain runs, and the variable that the chain begins with: {``net``} and
    ``net`` of ``net(x)[0].cpu()``."""
    made: ir.Call | None = None
    while isinstance(expr, ir.Call | ir.Attr | ir.Subscript):
        made = expr if isinstance(expr, ir.Call) else made
        expr = expr.func if isinstance(expr, ir.Call) else expr.value
    root = expr.id if isinstance(expr, ir.Name) else ""
    if made is None or not made.passed:
        return set(), root
    places = (made.func, made.func.value) if isinstance(made.func, ir.Attr) else (made.func,)
    return {dotted(place) for place in places if names_model(dotted(place))}, root


def _owner(optimizer: ir.Expr) -> str:
    """``self.net`` of ``self.net.optimizer``: if it is also called, it is a network with its own optimizer."""
    if not isinstance(optimizer, ir.Attr) or not optimizer.name.lower().startswith("opt"):
        return ""
    return dotted(optimizer.value)


#: names of objects with modes that are no networks: an environment, a data set (but ``env_model`` is one)
_NO_NETWORK = lazy_pattern(
    r"(?:^|_)(?:loss|criterion|metric|score|transform|augment(?:ation)?|scheduler|env|environment|dataset|tokenizer)s?$"
)


def is_no_network(func: ir.Expr) -> bool:
    """Whether the receiver's name says that it is no network: ``self.env.eval()``, ``task.scheduler.train()``."""
    named = func.value if isinstance(func, ir.Attr) else func
    return _NO_NETWORK.search(dotted(named).rsplit(".", 1)[-1].lower()) is not None


def _spread_layers(call: ir.Call) -> set[str]:
    """``model`` of ``nn.Sequential(*model[:3])``, whose members are layers."""
    if dotted(call.func).rsplit(".", 1)[-1] != "Sequential":
        return set()
    spread = (arg.value for arg in call.args if isinstance(arg, ir.Starred))
    places = (dotted(item.value if isinstance(item, ir.Subscript) else item) for item in spread)
    return {place for place in places if place}


def receiver_of(expr: ir.Expr) -> ir.Expr:
    """``model`` of ``model.cuda().eval()``: these methods return the module itself."""
    return under_calls(expr, _RETURN_SELF)


_RETURN_SELF = frozenset(
    {"to", "cuda", "cpu", "half", "float", "double", "bfloat16", "eval", "train", "requires_grad_"}
)


def _passes_only_a_flag(call: ir.Call) -> bool:
    """Whether a call of ``train`` passes at most a flag: ``model.train()``, ``model.train(is_train)``; not a data
    set."""
    if _is_call_on_self(call.func):
        return False
    flags = [*call.passed]
    return (
        not flags
        or (isinstance(flags[0], ir.Const) and flags[0].kind == "bool")
        or isinstance(flags[0], ir.Compare)
        or (isinstance(flags[0], ir.Name) and _FLAG.fullmatch(flags[0].id) is not None)
        or bool(call.keywords and call.keywords[0].name == "mode")
    )


#: names of flags; a variable called ``train`` may be a data set
_FLAG = lazy_pattern(r"(is|do|in)_train(ing)?|training|train(ing)?_(mode|flag)|mode")


def _is_call_on_self(func: ir.Expr) -> bool:
    """``self.train()``, which shows that ``self`` is a module only if its class is one"""
    return isinstance(func, ir.Attr) and isinstance(func.value, ir.Name) and func.value.id in ("self", "trainer")


def _has_other_state_dict(place: str) -> bool:
    """Whether a name is that of an optimizer, scheduler or scaler, which have state dicts too."""
    name = place.rsplit(".", 1)[-1].lower()
    return any(
        word in name for word in ("optim", "sched", "scaler", "opt_", "sampler", "loader", "trainer", "ema")
    ) or name in ("opt", "self")


def of_module(analyser: Analyser, function: Function) -> bool:
    """Whether a function is a method of a module, or nested in one."""
    while function.enclosing is not None:
        function = function.enclosing
    return function.cls is not None and analyser.program.is_module(function.cls)
