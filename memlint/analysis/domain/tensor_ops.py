"""The result of one tensor operation: its graph, size, device and storage."""

from __future__ import annotations

import re

from memlint.analysis.domain.literal_values import device_word
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ACTIVATION,
    ANYWHERE,
    BATCH,
    CPU,
    DATA,
    EMPTY,
    OUTPUT,
    SAMPLE,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Source,
    Sources,
    V,
)
from memlint.patterns import lazy_pattern

_NUMBER = lazy_pattern(
    r"loss|criterion|metric|error|accuracy|(^|_)(err|acc|nll|kl|kld|elbo|iou|miou|dice|psnr|ssim|lpips|fid|mse|mae|bce|rmse|reg|lr|norm)s?(_|$)"
)
_COUNT = lazy_pattern(
    r"(.*_)?batch_?size|bsz|num_.+|n_.+|.+_count|epochs?|(.*_)?steps?|(total|num)_(ops|flops|macs)|width|height"
)
_COUNTED = lazy_pattern(r"(get_)?(.*_)?batch_?size|(get_)?num_\w+|(get_)?\w+_count")
_TEXT = lazy_pattern(r"\w*names?|datasets?|subsets?|splits?|domains?|captions?|sentences?|texts?")
_LABELS = lazy_pattern(
    r"(.*_)?(y|ys|yb|y_(true|mb|b|i|gt)|b?box(es)?|difficult\w*|lbls?|lab|targets?|tgts?|idx|idxs|inds?|index|indexs|indices|indexes|ids?|id|pids?|camids?|classes|cls|"
    r"lengths?|lens?|name|names|paths?|fnames?|filenames?|gt|truth|ages?|genders?|weights?|scale|scales|time|times|timestep|t|ts|steps?|"
    r"rewards?|rews?|dones?|actions?|scores?|domains?|valid|num|counts?|sizes?|meta|info|"
    r"transcripts?|transcriptions?|captions?|sentences?|texts?|questions?|answers?|utterances?|keys|words)|(.*\W\w*_)?\w*labels?|\w*(labels|targets)_(batch|b|all)"
)


def tensor_op(
    fn: FunctionState,
    state: State,
    key: Source,
    inputs: list[V],
    shown: str,
    *,
    what: str = "",
    size: int | None = None,
    certain: bool = False,
) -> V:
    """The result of an operation that autograd records if an input is attached.

    ``certain``: the result is a tensor for any inputs. Operations on scalars save nothing worth a node, so their result
    has the inputs' sources.
    """
    sources: Sources = EMPTY
    kinds = TENSOR if certain else 0
    largest = SCALAR
    device = 0
    placed = False
    bare = False
    for value in inputs:
        sources = sources | value.src if sources and value.src else sources or value.src
        bare = bare or value.bare
        kinds |= value.kinds & (TENSOR | UNKNOWN | DATA) | (TENSOR if value.kinds & TREE else 0)
        if value.kinds & (TENSORS | UNKNOWN):
            largest = max(largest, value.size)
            device |= value.device & (CPU | ACCELERATOR)
            placed = placed or value.device & ~ANYWHERE == ACCELERATOR
    if kinds & TENSOR:
        kinds &= ~(UNKNOWN | DATA)
    elif kinds & UNKNOWN:
        kinds &= ~DATA
    result_size = largest if size is None else size
    # an operation runs on one device, possibly with a number from the host
    device = ACCELERATOR if placed else device
    at = key if isinstance(key, int) else key[0]
    if not sources or state.grad == OFF:
        return V(kinds or UNKNOWN, size=result_size, device=device or ANYWHERE, store=frozenset((key,)))
    if largest == SCALAR or (largest == SOME_SIZE and not kinds & TENSOR):
        return V(kinds, sources, bare=bare, size=result_size, device=device or ANYWHERE, store=frozenset((key,)))
    src = fn.record(state, key, at, what or shown, sources)
    return V(kinds, src, bare=bare, size=result_size, device=device or ANYWHERE, store=frozenset((key,)))


def cut(value: V, kinds: int | None = None, size: int | None = None) -> V:
    """The value without its graph."""
    return V(
        (value.kinds & (TENSORS | UNKNOWN) or TENSOR) if kinds is None else kinds,
        size=value.size if size is None else size,
        device=value.device,
        store=value.store,
        extent=value.extent,
    )


def moved(value: V, device: int) -> V:
    """The value on another device, with the same graph."""
    return value.but(device=device)


def reduced(size: int) -> int:
    """The size after a reduction over some dimension, as the rank of a batch is unknown."""
    return SAMPLE if size in (BATCH, OUTPUT, SOME_SIZE) else BATCH if size == ACTIVATION else size


def on_accelerator(device: int) -> bool:
    """Whether all known devices of a value are accelerators."""
    return device & (CPU | ACCELERATOR) == ACCELERATOR


def names_number(shown: str) -> bool:
    """Whether a name stands for a loss or a metric: weak evidence that a model's output is a number."""
    return _NUMBER.search(shown.lower()) is not None


def names_count(shown: str) -> bool:
    """Whether a key stands for an integer, which has no graph: ``batch["batch_size"]``, ``info["num_items"]``."""
    return _COUNT.fullmatch(shown.lower()) is not None


def asks_for_count(name: str) -> bool:
    """Whether a method or attribute is named like a count: ``task.batch_size(batch)``, ``graph.num_nodes``."""
    return _COUNTED.fullmatch(name.lower()) is not None


def names_metric(shown: str) -> bool:
    """Whether a callable is named like a metric."""
    return re.fullmatch(r"(.*_)?metrics?(_fn|_func|\[.*\])?", shown.rsplit(".", 1)[-1].lower()) is not None


def names_labels(shown: str) -> bool:
    """Whether a name stands for labels, lengths or indices: weak evidence that a part of a batch is small."""
    return _LABELS.fullmatch(shown.lower()) is not None


def names_text(shown: str) -> bool:
    """Whether a key stands for labels, or for files and parts of a data set: its value is small, or text."""
    return names_labels(shown) or _TEXT.fullmatch(shown.lower()) is not None


def device_named(name: object) -> int:
    """The device of a literal such as ``"cuda:0"``."""
    if not isinstance(name, str):
        return ACCELERATOR if isinstance(name, int) and not isinstance(name, bool) else ANYWHERE
    return device_word(name)


def batch_tree(device: int = ANYWHERE) -> V:
    """A loader's batch: tensors of batch size without a graph, in any structure."""
    return V(TREE, size=BATCH, device=device)
