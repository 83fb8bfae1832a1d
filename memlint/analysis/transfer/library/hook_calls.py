"""Calls that add hooks to modules and tensors, with the hook, and the tests and the loop around each."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import Args, V, Words
from memlint.ir import nodes as ir

#: methods of modules that add a hook
OF_MODULES = frozenset({
    "register_forward_hook", "register_forward_pre_hook", "register_backward_hook", "register_full_backward_hook",
    "register_full_backward_pre_hook",
})  # fmt: skip
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


def note_hook(fn: FunctionState, name: str, expr: ir.Call, args: Args, words: Words) -> None:
    """Record a call of a method that may add a hook."""
    hook = args[0] if args else words.get("hook")
    if hook is not None:
        fn.notes.hooks[expr.at] = HookCall(name, expr, fn.innermost(()), tuple(fn.tests), hook)
