"""Networks that each make an optimizer of their own, one of which is never stepped: a target network beside
learners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path
from memlint.analysis.index.definitions import Class
from memlint.analysis.syntax.syntax import dotted, last_name, parts, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

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
    summary = analyser.summary(init) if init is not None else None
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
    order, _ = analyser.program.ancestors(cls)
    steps = (
        last_name(part.value)
        for one in order
        for method in one.methods.values()
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


__all__ = ["is_never_stepped"]
