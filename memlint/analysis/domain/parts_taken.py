"""What a part of a value inherits from the whole: device, size, and whether it is a module."""

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
    LOADER,
    MODULE,
    OF_LOADERS,
    OF_MODULES,
    OF_OBJECTS,
    OUTPUT,
    SAMPLE,
    SOME_SIZE,
    TENSORS,
    UNKNOWN,
    Ref,
    V,
)

#: parts of a language model's output that have a vector for each token
_OF_SEQUENCES = frozenset({"last_hidden_state", "encoder_last_hidden_state", "encoder_hidden_states"})


#: the keyword of a reference to a module container of torch under which the join of its modules is kept
CONTAINED = "contained"


def contained(container: V) -> frozenset[Ref]:
    """What the modules in a module container refer to; empty where that is unknown for one of those that it may be."""
    each = [next((held for word, held in ref.keywords if word == CONTAINED), None) for ref in container.refs]
    return frozenset(ref for one in each if one is not None for ref in one.refs) if None not in each else frozenset()


def held_member(item: V, container: V, name: str | None) -> V:
    """The member of a container at a key (any key if ``name`` is None), with the module, loader or object that another
    function is known to have put there; else the item unchanged."""
    if refs := contained(container):
        return item.as_module().but(refs=item.refs | refs) if item.may_be_module() else item
    if OF_LOADERS in container.refs and item.is_only(UNKNOWN):
        return V(LOADER, syms=item.syms)
    known = [ref.self_ for ref in container.refs if ref.kind == "member" and (name is None or ref.name in (name, ""))]
    if OF_MODULES in container.refs:
        known.append(V(MODULE))
    elif not known or (name is None and OF_OBJECTS not in container.refs):
        return item
    refs = item.refs.union(*(one.refs for one in known))
    if all(one.kinds & MODULE for one in known):
        return item.as_module().but(refs=refs) if item.may_be_module() else item
    kinds = functools.reduce(operator.or_, (one.kinds for one in known))
    return item.but(kinds=kinds, src=EMPTY, refs=refs) if item.is_only(UNKNOWN) else item


def placed(value: V, device: int) -> V:
    """A part of a value that was moved to a device."""
    return value.but(device=device) if value.device == ANYWHERE and device != ANYWHERE else value


def sized(value: V, name: str) -> V:
    """A part of a batch or of a model's output under a name. If the name stands for numbers, its size is unknown.
    Hidden states have three dimensions: a sum over one of them still leaves a vector for each sample."""
    if value.size == OUTPUT and name in _OF_SEQUENCES:
        return value.but(size=ACTIVATION)
    extent = by_name.of_name(name) if name and value.is_only(TENSORS) else None
    if name and (
        (value.size == OUTPUT and names_number(name)) or (value.size in (BATCH, OUTPUT) and names_labels(name))
    ):
        return value.but(size=SOME_SIZE, extent=extent)
    return value if extent is None else value.but(extent=extent)


def named(value: V, name: str) -> V:
    """A value bound to a name that tells its size: a small one becomes of unknown size. For a function's argument, the
    name describes the part of the batch that a caller passes."""
    if value.is_only(UNKNOWN) and names_labels(name) and _is_part(value):
        return value.but(size=SAMPLE)
    number = value.size == OUTPUT and names_number(name)
    if number:
        value = value.but(extent=None)  # of a model that returns its loss beside its prediction, it is the loss
    if value.extent is None and value.is_only(TENSORS) and (extent := by_name.of_name(name)) is not None:
        value = value.but(extent=extent)
    if number or (value.size == BATCH and names_labels(name)):
        return value.but(size=SOME_SIZE)
    return value


def _is_part(value: V) -> bool:
    """Whether a value is a member of an argument: ``images, labels = batch``."""
    return bool(value.syms) and all(path.steps and path.steps[-1].startswith("[") for path in value.syms)
