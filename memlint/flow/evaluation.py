"""Models that run while autograd records: is it an evaluation, and does anybody want the gradients?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from memlint.flow.events import Fact, Loop, ModelCall, Step
from memlint.flow.frame import Frame, ModelRun
from memlint.flow.program import Function
from memlint.flow.state import AMBIENT, OFF, ON
from memlint.flow.syntax import dotted, expressions, walk_expression, walk_statements
from memlint.flow.values import MODULE, Path, Source
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analysis import Analyser

_NAMES = ("valid", "eval", "test", "predict", "infer", "generate", "sample", "extract", "encode_all", "embed_all", "export", "inference")


def model_calls(analyser: Analyser, frame: Frame) -> Iterator[ModelCall]:
    """One event for each evaluation loop (or function) that records: its first model call."""
    if not frame.runs or _is_layer_code(analyser, frame):
        return
    evaluations: set[Source] = set()
    seen: set[Source] = set()
    wanted = _wanted_here(frame)
    for run in sorted(frame.runs.values(), key=lambda run: run.site):
        if not _records(analyser, frame, run):
            continue
        mode = _mode(analyser, frame, run)
        named = _named_evaluation(frame.function)
        evaluation: Literal["eval", "name", ""] = "eval" if mode is True else "name" if named and mode is None else ""
        why = wanted or _reaches_backward(frame, run)
        if not evaluation or why or _updates(frame):
            continue
        if evaluation == "eval":
            evaluations.add(run.node)
        group = run.loop.id if run.loop is not None else ("function",)
        if group in seen:
            continue
        seen.add(group)
        yield ModelCall(
            site=run.site, function=frame.function.qual, certainty="high" if run.mode is not None else "medium",
            trace=_trace(run), module=run.text, loop=_loop(analyser, frame, run), evaluation=evaluation, wanted=why,
            retained=False, owner=_owner(), guard="", consumed=_consumed(frame, run),
        )
    frame.extra["evaluations"] = frozenset(evaluations)


def _owner() -> Fact:
    return "unknown"


def _trace(run: ModelRun) -> tuple[Step, ...]:
    return run.trace


def _is_layer_code(analyser: Analyser, frame: Frame) -> bool:
    """A forward runs under whatever mode its caller has."""
    function: Function | None = frame.function
    while function is not None:
        if function.cls is not None and function.name in ("forward", "__call__", "training_step", "compute_loss") and analyser.program.is_module(function.cls):
            return True
        function = function.enclosing
    return False


def _records(analyser: Analyser, frame: Frame, run: ModelRun) -> bool:
    """Whether autograd records for certain on the way that leads here."""
    if run.grad == ON:
        return True
    if run.grad == AMBIENT:
        return analyser.facts.grad_of(frame.function) == ON
    return False


def _mode(analyser: Analyser, frame: Frame, run: ModelRun) -> bool | None:
    """Whether the module is in eval mode: here, or where every caller calls from."""
    if run.mode is not None or run.mode_key is not None:
        return run.mode
    records = analyser.facts.calls_of(frame.function)
    if not records:
        return None
    modes: set[bool | None] = set()
    for caller, record in records:
        modes.add(_mode_at(frame, run, record.modes, record.args))
    return modes.pop() if len(modes) == 1 else None


def _mode_at(frame: Frame, run: ModelRun, modes: dict[Source, bool | None], args: dict[str, object]) -> bool | None:
    from memlint.flow.values import V

    for path in run.module.syms:
        name = path.root.split(":", 1)[1]
        given = args.get(name)
        if path.root.startswith("p:") and isinstance(given, V):
            for base in given.syms:
                full = Path(base.root, base.steps + path.steps)
                for size in range(len(full.steps), -1, -1):
                    mode = modes.get(Path(full.root, full.steps[:size]))
                    if mode is not None:
                        return mode
        if path.root.startswith("g:") and path in modes:
            return modes[path]
        local = modes.get(("v", name + "".join(path.steps)))
        if local is not None:
            return local
    return None


def _named_evaluation(function: Function) -> bool:
    name = function.name.lower().lstrip("_")
    return any(name.startswith(word) or f"_{word}" in name for word in _NAMES)


def _reaches_backward(frame: Frame, run: ModelRun) -> str:
    tips = {run.node, *run.value.src}
    if any(tips & reached for reached, _, _ in frame.backwards):
        return "a backward() reaches it"
    return ""


def _updates(frame: Frame) -> bool:
    """Whether the function trains: it steps an optimizer or calls backward on something of unknown origin."""
    return any(not reached for reached, _, _ in frame.backwards)


def _wanted_here(frame: Frame) -> str:
    """Gradients are asked for in this function: autograd.grad, requires_grad, saliency, an optimizer step."""
    if frame.extra.get("gradients"):
        return "autograd.grad is called"
    for statement in walk_statements(frame.function.body):
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Attr) and target.name == "requires_grad" and _true(statement.value):
                    return "an input requires grad"
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if not isinstance(part, ir.Call):
                    continue
                name = dotted(part.func).rsplit(".", 1)[-1] if not isinstance(part.func, ir.Attr) else part.func.name
                if name in ("requires_grad_", "enable_grad", "backward", "manual_backward") and not (part.args and _false(part.args[0])):
                    return "gradients are asked for"
                if any(word.name == "requires_grad" and _true(word.value) for word in part.keywords):
                    return "an input requires grad"
    return ""


def _true(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is True


def _false(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value is False


def _loop(analyser: Analyser, frame: Frame, run: ModelRun) -> Loop | None:
    """The loop around the call, here or around every call of this function."""
    if run.loop is not None:
        return run.loop.loop
    for caller, record in analyser.facts.calls_of(frame.function):
        if record.counts:
            return Loop("calls", "unknown", "iteration", None, f"each call of {frame.function.name}", frame.site(frame.function.node.at if frame.function.node else 0))
    return None


def _consumed(frame: Frame, run: ModelRun) -> Literal["detached", "escapes", "loss", "dropped"]:
    marks = {run.node, *run.value.src}
    if marks & frame.extra.get("returned", set()) or marks & frame.escaped:
        return "escapes"
    return "detached" if marks & frame.used else "dropped"


__all__ = ["MODULE", "OFF", "model_calls"]
