"""Modes of modules: eval or train, and frozen or trainable. A mode belongs to the module, not to its name.

A module is identified by the symbols that it came from (`Path`), by the call that made it (its ``store``), and, where
neither is known, by the variable through which it was reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.parts_taken import contained
from memlint.analysis.domain.recorded_modes import (
    MAX_PARTS,
    freeze,
    is_made,
    mode_keys,
    nesting,
    outward,
    recorded_mode,
    whole_of,
)
from memlint.analysis.domain.state import State, without_tag
from memlint.analysis.domain.summary.function_state import resumed
from memlint.analysis.domain.values import DATA, MODULE, UNKNOWN, UNKNOWN_VALUE, Path, Source, V, ordered
from memlint.analysis.index.uses import receiver_of
from memlint.analysis.syntax.bindings import names_read
from memlint.analysis.syntax.syntax import dotted, last_name, walk_statements
from memlint.analysis.transfer.modules.frozen_parts import made_frozen
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.function_state import FunctionState
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Class

#: methods that give the parameters of a module, and its submodules
PARAMETERS = frozenset({"parameters", "named_parameters"})
_OF_MODULES = frozenset({"children", "named_children", "modules", "named_modules"})


def set_mode(state: State, func: ir.Attr, receiver: V, name: str, args: list[V], words: dict[str, V]) -> None:
    """Record the mode that ``model.eval()`` or ``model.train(mode)`` sets."""
    flag = next(iter([*args, *words.values()]), None)
    training: bool | None = name == "train"
    if flag is not None and name == "train":
        training = flag.const if isinstance(flag.const, bool) else None
    for key in mode_keys(receiver, receiver_of(func.value)):
        state.modes[key] = None if training is None else not training


def settle_mode(fn: FunctionState, other: State, statement: ir.If) -> None:
    """Record eval mode in the other branch of ``if model.training: model.eval()``, where the module is in eval mode
    already."""
    test = statement.test
    if not isinstance(test, ir.Attr) or test.name != "training" or not (place := dotted(test.value)):
        return
    for inner in statement.body:
        call = inner.value if isinstance(inner, ir.ExprStmt) else None
        if isinstance(call, ir.Call) and dotted(call.func) == f"{place}.eval":
            for key in mode_keys(fn.interpreter.evaluate(fn, other, test.value), test.value):
                other.modes[key] = True


def frozen_of(summary: Summary, state: State, module: V, expr: ir.Expr | None) -> bool | None:
    """Whether no parameter of the module requires grad; None for unknown, as where a flag decides."""
    frozen, key = recorded_mode(state.modes, mode_keys(module, expr), "frozen") if state.modes else (None, None)
    if key is not None:
        return None if frozen and _part_trains(state, module, expr) else frozen
    for ref in ordered(module.refs):
        if ref.kind == "instance":
            cls = summary.analyser.cls(ref)
            if cls is not None and freezes_itself(summary.analyser, cls):
                # the class of a default that is made here says nothing of a module that was passed in
                return None if module.syms and is_made(module) else True
    return made_frozen(summary, module)


#: modules that hold parameters instead of modules
PARAMETER_CONTAINERS = frozenset({"torch.nn.ParameterDict", "torch.nn.ParameterList"})
#: classes of torch whose objects consist of the modules that they are given
MODULE_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


def member(fn: FunctionState, state: State, module: V) -> V:
    """A submodule of the module, whichever it is, which is frozen as the module is. Its class is known where it is a
    member of containers whose members are known."""
    if any(ref.kind == "extinstance" and ref.name in PARAMETER_CONTAINERS for ref in module.refs):
        return UNKNOWN_VALUE  # a parameter: the operations on it are recorded, not a run of it
    refs = contained(module)
    held = bool(refs) or (bool(state.modes) and frozen_of(fn, state, module, None) is True)
    if not held or not module.store or module.syms:
        return V(MODULE, refs=refs, store=frozenset([item for item in module.store if whole_of(item) is not None]))
    store = frozenset(("part", item, "[]") for item in module.store if nesting(item) < MAX_PARTS)
    return V(MODULE, refs=refs, store=store)


def parts_of(fn: FunctionState, state: State, module: V) -> V:
    """The submodules of ``module.children()``, marked as parts of the module."""
    part = member(fn, state, module)
    if part.store or not part.kinds & MODULE:
        return part
    return V(MODULE, store=frozenset([_inside(item) for item in (*module.syms, *module.store)]))


def _inside(item: Source) -> Source:
    return item if whole_of(item) is not None else ("inside", item)


def _part_trains(state: State, module: V, expr: ir.Expr | None) -> bool:
    """Whether a part of the module was made trainable again."""
    for key, frozen in state.modes.items():
        if frozen or not isinstance(key, tuple) or key[0] != "frozen" or frozen is None:
            continue
        if any(mine in outward(key[1])[1:] for mine in mode_keys(module, expr)):
            return True
    return False


def frozen_class(analyser: Analyser, cls: Class) -> bool:
    """Whether a module class freezes all its own parameters in its constructor."""
    init = analyser.program.method(cls, "__init__")
    if init is None or not any(isinstance(item, ir.For | ir.ExprStmt) for item in init.body):
        return False
    if not init.params:
        return False
    own: Source = ("frozen", Path(f"p:{init.params[0].name}"))
    usual = [param.name for param in init.params if _is_flag(param)]
    switching = analyser.flags(init) if usual else frozenset()
    flags = {
        name: V(DATA, const=flag)
        for name in usual
        if name in switching and (flag := analyser.usual(init, name)) is not None
    }
    # for any arguments, and for those of all known calls
    summaries = [analyser.summary(init), analyser.summary(init, flags)] if flags else [analyser.summary(init)]
    return any(one is not None and one.exit is not None and one.exit.modes.get(own) is True for one in summaries)


def freezes_itself(analyser: Analyser, cls: Class) -> bool:
    """`frozen_class`, for use while a summary is made, which depends on nothing else that the constructor does."""
    value = analyser.summaries.apart(lambda: frozen_class(analyser, cls))
    analyser.summaries.note("frozen", cls.key, cls, value)
    return value


def _is_flag(param: ir.Param) -> bool:
    return isinstance(param.default, ir.Const) and isinstance(param.default.value, bool)


def forget_name(state: State, name: str, value: V) -> None:
    """A variable is assigned: the modes that were recorded by its name alone belong to another module."""
    if not value.kinds & (MODULE | UNKNOWN) or not (value.syms or value.store):
        return
    for key in list(state.modes):
        inner = without_tag(key)
        if (
            isinstance(inner, tuple)
            and not isinstance(inner, Path)
            and inner[0] == "v"
            and (inner[1] == name or inner[1].startswith(f"{name}."))
        ):
            del state.modes[key]


def note_freezing_loop(fn: FunctionState, state: State, statement: ir.For) -> None:
    """Record what ``for p in model.parameters(): p.requires_grad = False`` freezes."""
    iterated = _iterated_modules(statement.target, statement.iter)
    for target, call in iterated:
        effect = _effect_on(fn, state, statement.body, call, target, alone=len(iterated) == 1)
        if effect != "no" and isinstance(call.func, ir.Attr):
            module = fn.interpreter.evaluate(fn, state, call.func.value)
            freeze(state, module, call.func.value, None if effect == "some" else effect == "yes")


def _iterated_modules(target: ir.Expr, iterable: ir.Expr) -> list[tuple[ir.Expr, ir.Call]]:
    """The calls of ``parameters()``, ``children()`` and the like that a loop iterates over, each with its target."""
    if not isinstance(iterable, ir.Call):
        return []
    if isinstance(iterable.func, ir.Attr) and (iterable.func.name in PARAMETERS or iterable.func.name in _OF_MODULES):
        return [(target, iterable)]
    name, args = last_name(iterable.func), iterable.args
    parts = target.elements if isinstance(target, ir.Display) else ()
    if name == "enumerate" and args:
        return _iterated_modules(parts[1] if len(parts) == 2 else target, args[0])
    if name in ("zip", "zip_longest") and len(parts) == len(args):
        return [side for part, one in zip(parts, args, strict=True) for side in _iterated_modules(part, one)]
    if name in ("list", "tuple", "set", "iter", "reversed", "tqdm", "chain"):
        return [side for one in args for side in _iterated_modules(target, one)]
    return []


def _effect_on(
    fn: FunctionState, state: State, body: tuple[ir.Stmt, ...], call: ir.Call, target: ir.Expr, *, alone: bool
) -> str:
    """What a loop over the parameters or submodules of a call does to their requires_grad: "yes" (freezes), "on",
    "some" (a flag or a test decides), "no" (nothing). ``alone``: the loop iterates over nothing else, so that any
    variable may stand for its items."""
    func = call.func
    if isinstance(func, ir.Attr) and func.name in _OF_MODULES:
        return _effect_on_modules(fn, state, body, names_read(target))
    effect = "no"
    for inner in walk_statements(body):
        frozen = _effect_of(fn, state, inner, None if alone else names_read(target))
        if frozen == "no":
            continue
        always = inner in body or any(
            isinstance(around, ir.If)
            and inner in around.body
            and isinstance(around.test, ir.Attr)
            and around.test.name == "requires_grad"
            for around in body
        )
        effect = frozen if always else "some"
    return effect


def _effect_on_modules(fn: FunctionState, state: State, body: tuple[ir.Stmt, ...], names: frozenset[str]) -> str:
    """The same for a loop over submodules: ``for child in net.children(): child.requires_grad_(False)``, or with a
    loop over the parameters of each."""
    effect = "no"
    ends_early = any(isinstance(inner, ir.Jump) and inner.kind != "pass" for inner in walk_statements(body))
    for inner in walk_statements(body):
        frozen = "no"
        if isinstance(inner, ir.For):
            for target, call in _iterated_modules(inner.target, inner.iter):
                owner = call.func.value if isinstance(call.func, ir.Attr) else None
                if owner is not None and _held_by(owner, names):
                    frozen = _effect_on(fn, state, inner.body, call, target, alone=False)
        elif isinstance(inner, ir.ExprStmt):
            frozen = _effect_of(fn, state, inner, names)
        if frozen != "no":
            effect = frozen if inner in body and not ends_early else "some"
    return effect


def _effect_of(summary: Summary, state: State, statement: ir.Stmt, names: frozenset[str] | None) -> str:
    """What a statement does to the requires_grad of a parameter: "yes" (freezes), "on", "some" (a flag decides),
    "no" (nothing). ``names``: variables of which one must hold the parameter or module; None for any."""
    flag: ir.Expr | None = None
    if isinstance(statement, ir.Assign):
        held = [one.value for one in statement.targets if isinstance(one, ir.Attr) and one.name == "requires_grad"]
        if not any(_held_by(one, names) for one in held):
            return "no"
        flag = statement.value
    elif (
        isinstance(statement, ir.ExprStmt)
        and isinstance(statement.value, ir.Call)
        and isinstance(statement.value.func, ir.Attr)
    ):
        call, func = statement.value, statement.value.func
        if func.name not in ("requires_grad_", "detach_") or not _held_by(func.value, names):
            return "no"
        if func.name == "detach_":
            if isinstance(func.value, ir.Attr) and func.value.name in ("grad", "data"):
                return "no"  # gradients that are zeroed by hand
            return "yes"  # on a leaf, it equals ``requires_grad = False``
        arguments = [*call.passed]
        if not arguments:
            return "on"
        flag = arguments[0]
    if flag is None:
        return "no"
    const = summary.interpreter.evaluate(resumed(summary), state, flag).const
    if const is None and isinstance(flag, ir.Name):
        const = summary.analyser.usual(summary.function, flag.id)  # ``requires_grad=False``, which no call overrides
    return "yes" if const is False else "on" if const is True else "some"


def _held_by(place: ir.Expr, names: frozenset[str] | None) -> bool:
    return names is None or (isinstance(place, ir.Name) and place.id in names)
