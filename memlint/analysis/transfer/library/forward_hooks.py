"""Calls that add hooks to modules and tensors, and whether a module has hooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import LoopState, ModelRun
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Args, V, Words
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, last_name
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


_HOOKS = frozenset({"register_forward_hook", "register_forward_pre_hook", "register_module_forward_hook"})


def is_hooked(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a hook may be on the module that runs: the function, its class, its callees, its callers, the class of
    the module or the file's own statements add one."""
    around = [summary, *(caller for caller, _ in analyser.facts.calls_of(summary.function))]
    bodies = [body for one in around for body in _bodies(analyser, one)]
    bodies += [method.body for cls in analyser.classes(run.module) for method in analyser.program.methods(cls)]
    return any(map(_adds_hooks, (*bodies, summary.module.main.body)))


def _bodies(analyser: Analyser, summary: Summary) -> Iterator[tuple[ir.Stmt, ...]]:
    """The bodies of a function, the functions around it, its callees, and the methods of their classes."""
    outer: Function | None = summary.function
    while outer is not None:
        yield outer.body
        yield from (method.body for method in analyser.program.methods(outer.cls))
        outer = outer.enclosing
    for record in summary.calls.values():
        called = analyser.function_at(record.callee)
        if called is not None:
            yield called.body
            made = called.cls if called.name == "__init__" else None
            yield from (method.body for method in analyser.program.methods(made))


@kept
def _adds_hooks(body: tuple[ir.Stmt, ...]) -> bool:
    return any(last_name(call.func) in _HOOKS for call in calls(body, into_definitions=True))


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
