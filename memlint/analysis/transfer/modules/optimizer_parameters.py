"""The parameters that a function's optimizers own, the modules that escape from it, and those whose gradients it
uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import mode_keys, outward, whole_of
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import EMPTY, MODULE, UNKNOWN, Path, Source, Sources, V, ordered
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.flags import own_calls
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Function


#: names of sources of batches
_DATA = lazy_pattern(r"loader|dataset|iter")
#: calls that return data without a graph
_DATA_CALLS = (
    "sample", "next", "get_batch", "next_batch", "fetch", "load", "read", "prepare_batch", "preprocess", "add_noise",
    "tokenize", "tokenizer", "collate",
)  # fmt: skip
#: most modules that are recorded as escaping from a function; past it, any may have escaped
MAX_GIVEN = 64
ANY = ("any",)


def marks_of_parameters(module: V, expr: ir.Expr | None) -> Sources:
    """The storage marks of the parameters that ``module.parameters()`` gives."""
    return frozenset(("params", key) for key in (*_keys(mode_keys(module, expr)), *made_of(module)))


def made_of(module: V) -> set[Source]:
    """The keys of the calls that made a module, or the module of which it is a part."""
    found: set[Source] = set()
    for item in module.store:
        whole = whole_of(item)
        found.add(whole if isinstance(whole, Path) else ("made", item if whole is None else whole))
    return found


def parameters_of(value: V) -> set[Source]:
    """The keys of the modules of which a value is a parameter."""
    return {item[1] for item in value.store if isinstance(item, tuple) and item[0] == "params"}


def _keys(keys: list[Source]) -> list[Source]:
    """The keys, with the symbol of ``self.net`` beside a variable of that text."""
    found: list[Source] = []
    for key in keys:
        if isinstance(key, tuple) and not isinstance(key, Path) and key[0] == "v" and str(key[1]).startswith("self."):
            root, *steps = str(key[1]).split(".")
            found.append(Path(f"p:{root}", tuple(f".{step}" for step in steps)))
        found.append(key)
    return found


def note_optimizer(fn: FunctionState, state: State, params: V | None) -> None:
    """Record whose parameters a new optimizer owns; None where that is unknown."""
    fn.notes.owned.append(_owned_keys(fn, state, params) if params is not None else None)


def _owned_keys(fn: FunctionState, state: State, params: V) -> Sources | None:
    """The keys of the modules whose parameters an optimizer gets; None where some are unknown."""
    if _are_leaves(fn, state, params):
        return EMPTY
    inner = tensors_within(fn, state, params, 5)
    marks, leaves = frozenset(parameters_of(inner)), False
    for source in ordered(inner.src):
        node = fn.graphs.nodes.get(source)
        if isinstance(source, Path) or (node is not None and (node.unknown or not node.definite)):
            return None
        leaves = leaves or (node is not None and node.leaf)
    if not marks and (inner.kinds & UNKNOWN or not leaves):
        return None
    return marks


def _are_leaves(fn: FunctionState, state: State, params: V) -> bool:
    """Whether all that an optimizer gets are leaves that the function made: ``[image.clone().requires_grad_()]``. An
    optimizer takes no tensor with a graph behind it."""
    held = [obj for _, obj in state.objects(params)]
    members = [one for obj in held for one in obj.members if one.kinds]
    return bool(members) and all(_is_made_leaf(fn, one) for one in members)


def _is_made_leaf(fn: FunctionState, value: V) -> bool:
    made_here = bool(value.store) and all(isinstance(item, int) for item in value.store)
    return made_here and any(node.leaf for node in fn.graphs.nodes_of(value.src))


def note_escaped_modules(fn: FunctionState, state: State, values: list[V]) -> None:
    """Record modules that escape to code that may put them into another module or an optimizer."""
    for value in values:
        if value.kinds & (MODULE | UNKNOWN) or value.objs:
            inner = tensors_within(fn, state, value)
            add_keys(fn.notes.given, mode_keys(inner, None))


def add_keys(noted: set[Source], keys: Iterable[Source]) -> None:
    """Add the keys of modules to those that a function notes; past so many, `ANY` stands for all."""
    if ANY not in noted:
        noted.update(keys)
        if len(noted) > MAX_GIVEN:
            noted.clear()
            noted.add(ANY)


def is_touched(summary: Summary, mine: set[Source]) -> bool:
    """Whether a function changes requires_grad, or reads gradients, of a module with these keys or of a part of it."""
    touched = summary.notes.switched | summary.notes.learned
    if ANY in touched or any(same in mine or mine & set(outward(same)) for same in _keys([*touched])):
        return True
    for key, frozen in summary.exit.modes.items() if summary.exit is not None else ():
        if isinstance(key, tuple) and not isinstance(key, Path) and key[0] == "frozen" and frozen is not False:
            for same in _keys([key[1]]):
                if same in mine or mine & set(outward(same)):
                    return True
    return False


@kept_for
def is_step(analyser: Analyser, function: Function) -> bool:
    """Whether a method is the step of an optimizer, or one that the step calls."""
    cls = function.cls
    if cls is None or not function.takes_self:
        return False
    bases = analyser.program.ancestors(cls)[1]
    if not any(name.startswith(("torch.optim.", "?.optim.")) or name == "?.Optimizer" for name in bases):
        return False
    step = analyser.program.method(cls, "step")
    return step is not None and (function.key == step.key or function.name in own_calls(step))


def is_setting(value: V) -> bool:
    """Whether a value is a setting of an optimizer: ``group["lr"]`` of ``self.param_groups``."""
    paths = [path.steps for path in value.syms if isinstance(path, Path)]
    return bool(paths) and all(_names_setting(steps) for steps in paths)


def _names_setting(steps: tuple[str, ...]) -> bool:
    if ".param_groups" not in steps:
        return False
    inner = [step for step in steps[steps.index(".param_groups") + 1 :] if step != "[]"]
    return bool(inner) and inner[0] != "[params]"
