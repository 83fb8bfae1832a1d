"""The step of a project's optimizer. It runs once an iteration; the numbers and state tensors of its object have no
graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import Path, V
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.transfer.modules.flags import own_calls

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Function


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
