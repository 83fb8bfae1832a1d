"""Whether a call on a module may run layers, by the called name or by the attribute of the module's class."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import UNKNOWN, V, Words
from memlint.analysis.index.roles_by_name import names_environment, names_model

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_BOOKKEEPING = (
    "create_", "prepare_", "freeze_", "unfreeze_", "get_", "set_", "is_", "has_", "num_", "load_", "save_", "log_",
    "print_", "update_", "add_", "reset_", "register_", "init_", "make_", "build_", "count_", "latest_", "clear_",
    "enable_", "disable_", "remove_", "restore_", "resume_", "download_",
)  # fmt: skip


_COMPUTED = (
    "feature", "features", "logits", "loss", "embedding", "embeddings", "score", "scores", "output", "outputs",
    "prediction", "action", "value",
)  # fmt: skip


def names_computing(name: str) -> bool:
    """Whether a method may run layers by its name."""
    name = name.lstrip("_")
    if "tokeniz" in name or "preprocess" in name or name.endswith("processor"):
        return False
    return (
        not name.startswith(_BOOKKEEPING) and name not in ("npu", "xpu", "mps", "hpu", "ipu", "to_empty")
    ) or name.endswith(_COMPUTED)


def prepares(words: Words) -> bool:
    """Whether a call is one of a tokenizer or a processor: no network has the keyword."""
    return "return_tensors" in words


def names_part(steps: tuple[str, ...]) -> bool:
    """Whether an attribute path in a module may lead to a layer."""
    if any(names_environment(step.lstrip(".")) for step in steps):
        return False
    return bool(steps) and (not steps[-1].startswith(".") or names_computing(steps[-1][1:]))


def is_any_callable(analyser: Analyser, receiver: V, name: str) -> bool:
    """Whether the callee is an attribute whose value the class does not know, and that not even its name makes a
    module: a similarity, a tokenizer, a hook."""
    classes = [cls for ref in receiver.refs if ref.kind == "instance" and (cls := analyser.cls(ref)) is not None]
    return bool(classes) and all(
        analyser.program.method(cls, name) is None
        and analyser.attribute(cls, name).kinds & UNKNOWN
        and not names_model(name)
        for cls in classes
    )
