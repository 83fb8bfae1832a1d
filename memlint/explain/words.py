"""An abstract value in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import msgspec

from memlint.analysis.domain.events import Fact, Site
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import on_accelerator
from memlint.analysis.domain.values import (
    ACTIVATION,
    BATCH,
    CALLABLE,
    CONTAINER,
    CPU,
    DATA,
    INSTANCE,
    LOADER,
    MODEL,
    MODULE,
    NONE,
    OPTIMIZER,
    OUTPUT,
    SAMPLE,
    SCALAR,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Path,
    V,
)
from memlint.analysis.judge.described import ambient_only, grad_with_callers
from memlint.analysis.syntax.expression_text import text
from memlint.explanation import ValueFacts
from memlint.ir import nodes as ir

_KINDS = (
    (TENSOR, "a tensor"),
    (TREE, "a tensor or a tuple, list or dictionary of tensors"),
    (DATA, "a number, text or other data without tensors"),
    (MODULE, "a module"),
    (OPTIMIZER, "an optimizer"),
    (LOADER, "a data loader"),
    (CONTAINER, "a container"),
    (INSTANCE, "an object"),
    (CALLABLE, "a function or class"),
    (NONE, "None"),
    (UNKNOWN, "unknown"),
)
_SIZES = {
    SCALAR: "0-d",
    SAMPLE: "a number for each sample",
    BATCH: "of batch size",
    ACTIVATION: "an activation of batch size",
    MODEL: "as large as the model",
    OUTPUT: "as large as the model's output",
}
#: the most graphs of one value that are named
_NAMED = 3


class Places(Protocol):
    """Positions as users count them: the cell of a notebook (None in other files) and the line, and both in words."""

    def shown(self, site: Site) -> tuple[int | None, int]: ...
    def words(self, site: Site) -> str: ...


class Words:
    """The values of one function in words. ``places``: positions of sites; ``analyser``: for queries."""

    def __init__(self, analyser: Any, summary: Summary, places: Places) -> None:
        self._analyser = analyser
        self._summary = summary
        self._places = places

    def facts(
        self, expr: ir.Expr, place: tuple[int, int], value: V, state: State, mode: str = "", unknown: str = ""
    ) -> ValueFacts:
        """The facts about the value of an expression at a line and column."""
        said = ValueFacts(
            expression=text(expr, 80),
            line=place[0],
            column=place[1],
            kinds=tuple(self._kinds(value, state)),
            device=_device(value) if value.kinds & (TENSORS | MODULE) else "",
            size=_SIZES.get(value.size, "unknown") if value.kinds & TENSORS else "",
            mode=mode,
            unknown=unknown,
        )
        graph = self.attached(value) if value.kinds & (TENSORS | UNKNOWN) else ""
        if isinstance(expr, ir.Call) and state.grad == OFF and not value.src:
            graph = "no"  # nothing is recorded here
        if graph and graph != "no":
            freed = sorted(set(self._freed_by(value)), key=lambda at: (at[0] or 0, at[1]))
            said = msgspec.structs.replace(
                said,
                made_by=tuple(self._made_by(value)),
                freed_by=tuple(line for _, line in freed),
                freed_in=tuple(cell for cell, _ in freed if cell is not None),
                needed_by=tuple(self._needed_by(value)),
                freed_inside=self._is_freed_inside(value, state),
                unknown=unknown or (self._missing(value) if graph == "unknown" else ""),
            )
        said = msgspec.structs.replace(said, graph=graph)
        return msgspec.structs.replace(said, text=sentence(said))

    def attached(self, value: V) -> Fact:
        """Whether a value has a graph."""
        summary = self._summary
        fact = summary.graphs.attached(value.src, None)[0]
        if (
            fact == "yes"
            and ambient_only(summary, value.src)
            and not grad_with_callers(self._analyser, summary, AMBIENT) & ON
        ):
            return "no"
        if fact == "yes" and value.bare:
            return "some"
        return "unknown" if fact == "no" and value.kinds & UNKNOWN and not value.is_plain() else fact

    def _kinds(self, value: V, state: State) -> Iterator[str]:
        for bit, words in _KINDS:
            if not value.kinds & bit or (bit == INSTANCE and value.kinds & MODULE):
                continue  # an instance of a module's class is a module
            objects = [state.heap[key] for key in value.objs if key in state.heap]
            if bit == CONTAINER and objects:
                yield " or ".join(sorted({f"a {one.kind}" for one in objects}))
            elif bit in (INSTANCE, MODULE) and (named := sorted(_classes(value))):
                yield f"{words} of class {' or '.join(f'`{name}`' for name in named)}"
            elif bit == DATA and value.const is not None:
                yield f"the constant {value.const!r}"
            else:
                yield words

    def _made_by(self, value: V) -> Iterator[str]:
        """The calls that recorded the graph: models first, then other definite ones, then unresolved ones."""
        nodes = [
            (not node.model, not node.definite, node.at, node)
            for item in self._summary.graphs.closure(value.src)
            if (node := self._summary.graphs.nodes.get(item)) is not None
            and (node.definite or node.model or node.unknown)
        ]
        nodes.sort(key=lambda row: row[:3])
        if nodes and nodes[0][0] is False:
            nodes = [row for row in nodes if row[0] is False]
        seen: list[str] = []
        for *_, node in nodes:
            shown = f"`{node.what}` ({self._places.words(self._summary.site(node.at))})"
            if shown not in seen:
                seen.append(shown)
        yield from seen[:_NAMED]
        if len(seen) > _NAMED:
            yield f"{len(seen) - _NAMED} more"

    def _freed_by(self, value: V) -> Iterator[tuple[int | None, int]]:
        own = {item for item in self._summary.graphs.closure(value.src) if item in self._summary.graphs.nodes}
        for backward in self._summary.backwards:
            if own & backward.reached:
                yield self._places.shown(backward.site)

    def _is_freed_inside(self, value: V, state: State) -> bool:
        """Whether a callee has freed the graph, here or later."""
        exit_ = self._summary.exit
        freed = state.freed_may if exit_ is None else state.freed_may | exit_.freed_may
        return any(item in freed for item in value.src if item in self._summary.graphs.nodes)

    def _needed_by(self, value: V) -> Iterator[str]:
        summary = self._summary
        own = {item for item in value.src if item in summary.graphs.nodes}
        if own & summary.notes.returned:
            yield "the caller, to whom it is returned"
        if own & summary.left and not own <= summary.notes.logged:
            yield "code that cannot be resolved, to which it is passed"
        for store in summary.stores.values():
            if own & store.entering.src:
                yield f"`{store.place_text}`, which keeps it ({self._places.words(store.site)})"

    def _missing(self, value: V) -> str:
        """What would decide whether there is a graph."""
        for item in sorted(self._summary.graphs.closure(value.src), key=repr):
            node = self._summary.graphs.nodes.get(item)
            if node is not None and node.unknown:
                return f"the definition of what `{node.what}` calls would tell"
        paths = [item for item in value.src if isinstance(item, Path)]
        return (
            source_words(min(paths)) if paths else "an assignment or annotation that the analysis can follow would tell"
        )


def source_words(path: Path) -> str:
    """What would tell more about a symbol."""
    name = path.text
    kind = path.root.partition(":")[0]
    if kind == "p" and path.steps:
        return f"what is assigned to `{name}` would tell, or an annotation"
    if kind == "p":
        return f"a call that passes `{name}`, or an annotation of it, would tell"
    return f"what is assigned to `{name}` would tell"


def _device(value: V) -> str:
    return "accelerator" if on_accelerator(value.device) else "cpu" if value.device == CPU else "unknown"


def _classes(value: V) -> set[str]:
    return {ref.name.rpartition(".")[2] for ref in value.refs if ref.kind in ("instance", "foreign") and ref.name}


def sentence(one: ValueFacts) -> str:
    """All facts of a value as one sentence without its name."""
    said = [" or ".join(one.kinds) or "nothing"]
    if one.kinds == ("unknown",):
        said = ["unknown"]
    if one.mode:
        said.append(one.mode)
    by = " and ".join(one.made_by)
    if one.graph == "yes":
        said.append(f"with the autograd graph of {by}" if by else "with an autograd graph")
    elif one.graph == "some":
        said.append(f"on some paths with the autograd graph of {by}" if by else "on some paths with an autograd graph")
    elif one.graph == "no":
        said.append("without an autograd graph")
    elif one.graph == "unknown" and one.kinds != ("unknown",):
        said.append("whether it has an autograd graph is unknown")
    if one.freed_in:
        places = zip(one.freed_in, one.freed_by, strict=True)
        said.append(f"freed by backward() at {' and '.join(f'cell {cell}, line {line}' for cell, line in places)}")
    elif one.freed_by:
        lines = " and ".join(map(str, one.freed_by))
        said.append(f"freed by backward() at line {lines}")
    elif one.freed_inside:
        said.append("freed by a backward() in a called function")
    elif one.graph in ("yes", "some"):
        said.append("which no backward() here frees")
    if one.needed_by:
        said.append(f"held by {', '.join(one.needed_by)}")
    if one.device:
        said.append("device unknown" if one.device == "unknown" else f"on the {_DEVICES[one.device]}")
    if one.size:
        said.append("size unknown" if one.size == "unknown" else one.size)
    if one.unknown:
        said.append(one.unknown)
    return "; ".join(said)


_DEVICES = {"accelerator": "accelerator", "cpu": "CPU"}
