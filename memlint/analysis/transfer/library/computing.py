"""What is called on a module: whether it may run layers, by its name or by what the module's class keeps under it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.tensor_ops import names_model
from memlint.analysis.domain.values import UNKNOWN, V, Words

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_BOOKKEEPING = (
    "create_",
    "prepare_",
    "freeze_",
    "unfreeze_",
    "get_",
    "set_",
    "is_",
    "has_",
    "num_",
    "load_",
    "save_",
    "log_",
    "print_",
    "update_",
    "add_",
    "reset_",
    "register_",
    "init_",
    "make_",
    "build_",
    "count_",
    "latest_",
    "clear_",
    "enable_",
    "disable_",
    "remove_",
    "restore_",
    "resume_",
    "download_",
)


_COMPUTED = (
    "feature",
    "features",
    "logits",
    "loss",
    "embedding",
    "embeddings",
    "score",
    "scores",
    "output",
    "outputs",
    "prediction",
    "action",
    "value",
)


def names_computing(name: str) -> bool:
    """Whether a method's name alone lets it run layers."""
    name = name.lstrip("_")
    if "tokeniz" in name or "preprocess" in name or name.endswith("processor"):
        return False
    return (
        not name.startswith(_BOOKKEEPING) and name not in ("npu", "xpu", "mps", "hpu", "ipu", "to_empty")
    ) or name.endswith(_COMPUTED)


def prepares(words: Words) -> bool:
    """Whether a call is one of a tokenizer or a processor, whatever its name: no network takes this word."""
    return "return_tensors" in words


def names_part(steps: tuple[str, ...]) -> bool:
    """Whether a place in a module may hold a layer."""
    return bool(steps) and (not steps[-1].startswith(".") or names_computing(steps[-1][1:]))


def is_any_callable(analyser: Analyser, receiver: V, name: str) -> bool:
    """Whether what is called is an attribute that the module's class was given from outside, and that nothing, not even
    its name, shows to be a module: a similarity, a tokenizer, a hook."""
    classes = [cls for ref in receiver.refs if ref.kind == "instance" and (cls := analyser.cls(ref)) is not None]
    return bool(classes) and all(
        analyser.program.method(cls, name) is None
        and analyser.attribute(cls, name).kinds & UNKNOWN
        and not names_model(name)
        for cls in classes
    )
