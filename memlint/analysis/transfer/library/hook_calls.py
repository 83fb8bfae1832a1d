"""Calls that add hooks to modules and tensors, with the hook, and the tests and the loop around each."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.recorded_modes import outward
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    ACTIVATION,
    EMPTY,
    TENSOR,
    UNKNOWN_VALUE,
    Args,
    Source,
    Sources,
    V,
    Words,
    ordered,
)
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.modules.optimizer_parameters import made_of
from memlint.ir import nodes as ir

#: methods of modules that add a hook
OF_MODULES = frozenset(
    {
        "register_forward_hook",
        "register_forward_pre_hook",
        "register_backward_hook",
        "register_full_backward_hook",
        "register_full_backward_pre_hook",
    }
)
#: methods of tensors that add a hook; other libraries have one of the first name, too
OF_TENSORS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
ADDING = OF_MODULES | OF_TENSORS


@dataclass(slots=True)
class HookCall:
    """``loop``: the innermost iteration loop around the call; ``tests``: those of the ifs around it in the function;
    ``hook``: the callable."""

    name: str
    expr: ir.Call
    loop: LoopState | None
    tests: tuple[ir.Expr, ...]
    hook: V

    @property
    def owner(self) -> ir.Expr:
        """The expression of the object to which the hook is added."""
        assert isinstance(self.expr.func, ir.Attr)
        return self.expr.func.value


@dataclass(slots=True)
class AddedHook:
    """A forward hook. ``modules``: the keys of the modules that call it, or of those that they are parts of.
    ``loops``: the loops around the call that adds it."""

    modules: Sources
    hook: V
    loops: tuple[Source, ...]


def note_hook(frame: FunctionState, name: str, expr: ir.Call, receiver: V, args: Args, words: Words) -> None:
    """Record a call of a method that may add a hook."""
    hook = args[0] if args else words.get("hook")
    if hook is None:
        return
    frame.notes.hooks[expr.at] = HookCall(name, expr, frame.innermost(()), tuple(frame.tests), hook)
    keys = keys_of_module(receiver)
    if keys and name == "register_forward_hook" and "with_kwargs" not in words:
        frame.notes.added_hooks[expr.at] = AddedHook(keys, hook, frame.loop_ids)


def keys_of_module(module: V) -> Sources:
    """What a module is known by: symbols, and the calls that made it or the module of which it is a part."""
    return frozenset({*module.syms, *made_of(module)})


def run_hooks(frame: FunctionState, state: State, expr: ir.Call, module: V, output: V) -> None:
    """Call the forward hooks of a module, and of its parts, on what they compute with a graph. A hook that is added in
    a loop around the run is a new one with each iteration, and is left out."""
    src = tensors_within(frame, state, output).src if frame.notes.added_hooks else EMPTY
    if not src:
        return
    here = keys_of_module(module)
    given = V(TENSOR, src, size=ACTIVATION, device=output.device, store=frozenset(((expr.at, "hooked"),)))
    names = tuple(ir.Name(expr.at, name) for name in ("module", "inputs", "output"))
    for one in list(frame.notes.added_hooks.values()):
        around = {outer for key in one.modules for outer in outward(key)}
        again = not set(one.loops).isdisjoint(frame.loop_ids)
        if not again and not here.isdisjoint(around) and not _may_be_emptied(frame, one.hook):
            call = ir.Call(expr.at, ir.Name(expr.at, "hook"), names, ())
            frame.interpreter.call_value(frame, state, one.hook, [module, UNKNOWN_VALUE, given], {}, call)


#: methods that take members out of a container
_TAKES = frozenset({"clear", "pop", "popleft", "popitem"})


def _may_be_emptied(frame: FunctionState, hook: V) -> bool:
    """Whether a hook is a closure that another function has made, and what it keeps may be emptied here or in methods
    of the same object: the analysis does not know it by the name that it has here."""
    functions = (frame.analyser.function(ref) for ref in ordered(hook.refs) if ref.kind == "func")
    makers = [one.enclosing for one in functions if one is not None and one.enclosing is not None]
    return any(
        maker.key != frame.function.key and (maker.takes_self or not frame.function.names.isdisjoint(_TAKES))
        for maker in makers
    )
