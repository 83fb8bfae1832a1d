"""Hooks that are added to modules and tensors, as they were met: what runs, under which tests, in which loop."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import Args, V, Words
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
#: methods of tensors that do; other libraries have one of the first name too
OF_TENSORS = frozenset({"register_hook", "register_post_accumulate_grad_hook"})
ADDING = OF_MODULES | OF_TENSORS


@dataclass(slots=True)
class HookCall:
    """``loop``: the innermost loop around it whose rounds are iterations; ``tests``: those of the ifs around it in the
    function; ``hook``: what will be called."""

    name: str
    expr: ir.Call
    loop: LoopState | None
    tests: tuple[ir.Expr, ...]
    hook: V

    @property
    def owner(self) -> ir.Expr:
        """What the hook is added to."""
        assert isinstance(self.expr.func, ir.Attr)
        return self.expr.func.value


def noted(frame: FunctionState, name: str, expr: ir.Call, args: Args, words: Words) -> None:
    """A method that may add a hook is called."""
    hook = args[0] if args else words.get("hook")
    if hook is not None:
        frame.notes.hooks[expr.at] = HookCall(name, expr, frame.innermost(()), tuple(frame.tests), hook)
