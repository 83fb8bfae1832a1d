"""What a part of a value takes over from what it is a part of: device, size, and whether it is a module."""

from __future__ import annotations

import functools
import operator

from memlint.analysis.domain.extents import by_name
from memlint.analysis.domain.tensor_ops import names_labels, names_number
from memlint.analysis.domain.values import (
    ACTIVATION,
    ANYWHERE,
    BATCH,
    EMPTY,
    MODULE,
    OF_MODULES,
    OF_OBJECTS,
    OUTPUT,
    SAMPLE,
    SOME_SIZE,
    TENSORS,
    UNKNOWN,
    V,
)

#: parts of a language model's output with a vector for each token
_OF_SEQUENCES = frozenset({"last_hidden_state", "encoder_last_hidden_state", "encoder_hidden_states"})


def held_member(item: V, container: V, name: str | None) -> V:
    """What stands at a key of a container, any key where ``name`` is None: the module or the object that another
    function is told of; the item itself where none is."""
    told = [ref.self_ for ref in container.refs if ref.kind == "member" and (name is None or ref.name in (name, ""))]
    if OF_MODULES in container.refs:
        told.append(V(MODULE))
    elif not told or (name is None and OF_OBJECTS not in container.refs):
        return item
    refs = item.refs.union(*(one.refs for one in told))
    if all(one.kinds & MODULE for one in told):
        return item.as_module().but(refs=refs) if item.may_be_module() else item
    kinds = functools.reduce(operator.or_, (one.kinds for one in told))
    return item.but(kinds=kinds, src=EMPTY, refs=refs) if item.is_only(UNKNOWN) else item


def placed(value: V, device: int) -> V:
    """A part of something that was moved to a device."""
    return value.but(device=device) if value.device == ANYWHERE and device != ANYWHERE else value


def sized(value: V, name: str) -> V:
    """A part of a batch or of a model's output under a name that speaks of numbers: its size is not known. States of a
    sequence have three dimensions: what is summed over one is still a vector a sample."""
    if value.size == OUTPUT and name in _OF_SEQUENCES:
        return value.but(size=ACTIVATION)
    said = by_name.of_name(name) if name and value.is_only(TENSORS) else None
    if name and (
        (value.size == OUTPUT and names_number(name)) or (value.size in (BATCH, OUTPUT) and names_labels(name))
    ):
        return value.but(size=SOME_SIZE, extent=said)
    return value if said is None else value.but(extent=said)


def named(value: V, name: str) -> V:
    """A value bound to a name that says that it is small (its size is not known), or how large it is. Who calls the
    function with a batch is told so of its parts."""
    if value.is_only(UNKNOWN) and names_labels(name) and _is_part(value):
        return value.but(size=SAMPLE)
    number = value.size == OUTPUT and names_number(name)
    if number:
        value = value.but(extent=None)  # (of a model that gives its loss beside what it predicts, it is the loss)
    if value.extent is None and value.is_only(TENSORS) and (said := by_name.of_name(name)) is not None:
        value = value.but(extent=said)
    if number or (value.size == BATCH and names_labels(name)):
        return value.but(size=SOME_SIZE)
    return value


def _is_part(value: V) -> bool:
    """Whether a value is a member of what the function is given: ``images, labels = batch``."""
    return bool(value.syms) and all(path.steps and path.steps[-1].startswith("[") for path in value.syms)
