"""Optimizers of large models whose step makes temporaries of all parameters at once: the foreach implementations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.bound_names import argument
from memlint.flow.devices import code, touches_an_accelerator
from memlint.flow.frame import Frame
from memlint.flow.practice_events import StepTemporaries
from memlint.flow.practices.layers import Scope, bound, literal_parameters, maker, outside_name
from memlint.flow.program import in_tests
from memlint.flow.syntax import calls, is_false, last_name, text
from memlint.ir import nodes as ir
from memlint.knowledge.sizes import parameters_made_by, parameters_of
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: optimizers whose foreach implementation was measured, by qualified name
_FOREACH = frozenset(f"torch.optim.{place}{name}" for name in ("Adam", "AdamW") for place in ("", f"{name.lower()}."))
_NAMES = frozenset({"Adam", "AdamW"})
#: models of fewer parameters need more for their activations
LARGE = 300_000_000
#: parameters are not all trained, or not all here
_NOT_ALL = lazy_pattern(
    r"requires_grad|get_peft_model|\bpeft\b|LoRA|lora_|freeze|FullyShardedDataParallel|\bFSDP|fsdp|deepspeed|DeepSpeed"
    r"|ZeroRedundancyOptimizer|fully_shard|load_in_[48]bit|BitsAndBytes|DTensor|distribute_tensor|parallelize_module"
)
#: arguments by which another model, a part of it, or one that is spread over devices is loaded
_OTHER_MODEL = frozenset({None, "subfolder", "device_map", "quantization_config", "config", "num_hidden_layers"})
_TWO_BYTES = lazy_pattern(r"\b(b?float16|half|bf16|fp16)\b")
#: the first release whose optimizers choose foreach by themselves
_SINCE = (2, 0)


def events(analyser: Analyser, frame: Frame) -> Iterator[StepTemporaries]:
    """The optimizers of large models that one function makes."""
    if "parameters" not in frame.function.names or frame.module.names.isdisjoint(_NAMES):
        return
    for call in calls(frame.function.body):
        if not isinstance(call.func, ir.Name | ir.Attr):
            continue
        name = analyser.program.outside(frame.module, call.func, frame.function)
        if name not in _FOREACH or not _chooses_foreach(analyser, frame, call):
            continue
        model = _model(argument(call, 0, "params"))
        known = _parameters(analyser, frame, model) if model is not None else None
        if model is None or known is None or known[0] < LARGE or not touches_an_accelerator(analyser, frame):
            continue
        yield StepTemporaries(
            site=frame.site(call.at),
            function=frame.function.qual,
            # (a configuration of its own may spread the model over processes)
            certainty="medium" if "Accelerator" in frame.module.text else "high",
            text=text(call.func),
            model=text(model),
            parameters=known[0],
            bytes=known[0] * known[1],
        )


def _chooses_foreach(analyser: Analyser, frame: Frame, call: ir.Call) -> bool:
    """Whether nothing says that another implementation is to be taken, or that parameters are few or elsewhere."""
    if any(word.name is None for word in call.keywords) or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    words = {word.name: word.value for word in call.keywords}
    if "fused" in words and not is_false(words["fused"]):
        return False
    foreach = words.get("foreach")
    if foreach is not None and not (isinstance(foreach, ir.Const) and foreach.value in (True, None)):
        return False
    if "differentiable" in words or "capturable" in words:
        return False
    newest = analyser.program.project.newest_torch
    if newest is not None and newest < _SINCE:
        return False
    return not in_tests(frame.module.key) and _NOT_ALL.search(code(frame.module.text)) is None


def _model(params: ir.Expr | None) -> ir.Expr | None:
    """``model`` of ``model.parameters()``, or of ``list(model.parameters())``."""
    if isinstance(params, ir.Call) and last_name(params.func) == "list" and len(params.args) == 1:
        params = params.args[0]
    if not isinstance(params, ir.Call) or not isinstance(params.func, ir.Attr) or params.args or params.keywords:
        return None
    return params.func.value if params.func.name == "parameters" else None


def _parameters(analyser: Analyser, frame: Frame, model: ir.Expr) -> tuple[int, int] | None:
    """(how many parameters a model has, the bytes of each)"""
    found = maker(analyser, model, Scope(frame.function))
    if found is None or not isinstance(found.expr, ir.Call):
        return None
    made = found.expr
    halved = any(_TWO_BYTES.search(text(word.value, 200)) for word in made.keywords) or _is_halved(frame)
    count = _published(analyser, found.scope, made) or literal_parameters(analyser, made, found.scope)
    return count, 2 if halved else 4


def _is_halved(frame: Frame) -> bool:
    """Whether something in the file makes parameters half as wide."""
    return any(
        isinstance(call.func, ir.Attr)
        and (
            call.func.name in ("half", "bfloat16")
            or (call.func.name == "to" and any(_TWO_BYTES.search(text(arg, 200)) for arg in call.args))
        )
        for function in (frame.module.main, frame.function)
        for call in calls(function.body)
    )


def _published(analyser: Analyser, scope: Scope, made: ir.Call) -> int | None:
    """Of ``SomeModel.from_pretrained("…-7b")``, or of a library's function for one model."""
    if not isinstance(made.func, ir.Attr) or made.func.name != "from_pretrained":
        return parameters_made_by(outside_name(analyser, made, scope))
    name = argument(made, 0, "pretrained_model_name_or_path")
    if isinstance(name, ir.Name):
        found = bound(analyser, name, scope)
        name = found.expr if found is not None and not found.steps else None
    if not isinstance(name, ir.Const) or not isinstance(name.value, str):
        return None
    for word in made.keywords:
        part = isinstance(word.value, ir.Const) and word.value.value == "unet"
        if word.name in _OTHER_MODEL and not part:
            return None
    return parameters_of(name.value, last_name(made.func.value))
