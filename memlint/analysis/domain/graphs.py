"""The autograd graph of one function: nodes, their parents, and whether a value is attached.

A node stands for what one call recorded. It is *definite* if a model or a parameter takes part, so that there certainly
is a graph; *unknown* if the callee is unresolved; otherwise it is attached if a parent is. A node recorded in the
caller's grad mode is *ambient*.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from memlint.analysis.domain.events import Fact
from memlint.analysis.domain.values import EMPTY, Path, Source, Sources

#: the most closures of one function in memory; each may hold all of its nodes
MAX_CLOSURES = 200


@dataclass(slots=True)
class Node:
    """One recorded operation. ``what``: its source text; ``callee``: the symbol that was called, if it was one;
    ``via``: a chain of (site, message) through callees."""

    at: int
    what: str
    definite: bool = False
    unknown: bool = False
    ambient: bool = False
    parents: Sources = EMPTY
    callee: Path | None = None
    via: tuple[Any, ...] = ()
    #: a model recorded it
    model: bool = False
    #: attached if a parent is, as the use of the unresolved callee suggests
    guess: bool = False
    #: a leaf, such as a parameter: it is attached, but keeping it keeps no recorded operation
    leaf: bool = False
    #: the output of an unresolved model, whose parts are unknown
    opaque: bool = False
    #: the loops around its recording
    loops: tuple[Any, ...] = ()
    #: the parents that it has only through unresolved calls
    loose: Sources = EMPTY
    #: the call records it on some paths only
    partial: bool = False
    #: a callee returns it: a later part of the output of an unresolved model, which is a parent
    beside: bool = False


def part_of(item: Source, root: Source) -> bool:
    """Whether a node is a part (an item, an attribute) of another node's result."""
    head = root if isinstance(root, tuple) else (root,)
    return isinstance(item, tuple) and len(item) > len(head) and item[: len(head)] == head and isinstance(item[-1], str)


#: begins the step to the members of a container that a test picks; the step to each of them, none left out
PICKED, EACH = "[if ", "[each]"


def _proves(item: Source, root: Source) -> bool:
    """Whether what has a graph is a part of a node's result that gives it one, or each member beside it: members that a
    test picks tell of the container, and of no other member of it."""
    if isinstance(root, tuple) and item == (*root[:-1], EACH):
        return True
    elements = isinstance(root, tuple) and root[-1] == "[]"
    return part_of(item, root) and not (elements and any(str(step).startswith(PICKED) for step in item[len(root) :]))


#: methods of environments, queues and data sets, which no model has
_DATA = frozenset({"reset", "step", "sample", "next", "next_batch", "get_batch", "recv", "fetch", "read"})


def _gives_data(node: Node) -> bool:
    """Whether a node is the call of a data source: ``env.reset()``, ``env.step(action)``, ``buffer.sample(32)``."""
    method = node.what.partition("(")[0].rpartition(".")
    return bool(method[0]) and method[2] in _DATA


@dataclass(slots=True)
class Graphs:
    """All nodes of a function, and the evidence of its backward() calls."""

    nodes: dict[Source, Node] = field(default_factory=dict)
    #: sources of values that received a backward: each set holds an attached one
    evidence: set[Sources] = field(default_factory=set)
    _ancestry: dict[Source, Sources] = field(default_factory=dict)
    _sure: dict[Sources, Sources] = field(default_factory=dict)
    #: closures since the graph last changed, and the union of them
    _closures: dict[Sources, Sources] = field(default_factory=dict)
    _reached: set[Source] = field(default_factory=set)
    #: the models of single sources, since a node last changed
    _models: dict[Source, Sources] = field(default_factory=dict)
    _digests: dict[Source, tuple[list[tuple[Path, bool]], list[Node], int | str]] = field(default_factory=dict)
    #: the positions of the nodes in a finished graph
    _places: dict[Source, int] = field(default_factory=dict)
    _work: int = 0
    #: the number of records so far, and the last record of each source
    _clock: int = 0
    _recorded: dict[Source, int] = field(default_factory=dict)

    @property
    def clock(self) -> int:
        return self._clock

    def made_between(self, sources: Sources, start: int, end: int) -> Sources:
        """Those of the sources that were last recorded between two readings of the graphs' clock."""
        return frozenset(source for source in sources if start < self._recorded.get(source, 0) <= end)

    def record(self, key: Source, node: Node) -> Source:
        old = self.nodes.get(key)
        if old is not None:
            node.loose = (node.loose - (old.parents - old.loose)) | (old.loose - (node.parents - node.loose))
            node.parents |= old.parents
            node.definite |= old.definite
            node.model |= old.model
        if key in self._reached if old is None else node.parents != old.parents:
            self._forget_closures()
        self._models.clear()
        self.nodes[key] = node
        self._clock += 1
        self._recorded[key] = self._clock
        return key

    def settle(self) -> None:
        """Infer from each backward which graph it went through: if a single unresolved call can have recorded it, that
        call did (the model in ``criterion(model(x), y).backward()``)."""
        for evidence in sorted(self.evidence, key=lambda sources: sorted(map(repr, sources))):
            reached = self.closure(evidence)
            nodes = {item: node for item in reached if (node := self.nodes.get(item)) is not None}
            if any(node.definite for node in nodes.values()):
                continue
            unknown = {item for item, node in nodes.items() if node.unknown}
            unknown = {item for item in unknown if not _gives_data(nodes[item])} or unknown
            self._settle_nearest(evidence, frozenset(unknown))
            roots = [item for item in unknown if not (self.closure(nodes[item].parents) & unknown)]
            if len(roots) == 1:
                nodes[roots[0]].definite = True
                nodes[roots[0]].model = True
                if not nodes[roots[0]].opaque:
                    self._settle_parts(roots[0], evidence, nodes)
        self._settle_others()
        self._models.clear()

    def _settle_others(self) -> None:
        """Mark all calls of an unresolved callee as definite if one of its calls was inferred to record a graph without
        getting one from its arguments: ``G(fixed_noise)``, where ``D(G(noise))`` is trained."""
        proved = {
            (node.callee, node.what.partition("(")[0])
            for node in self.nodes.values()
            if node.unknown and node.model and node.callee is not None and self._brings(node)
        }
        for node in self.nodes.values() if proved else ():
            if node.unknown and (node.callee, node.what.partition("(")[0]) in proved:
                node.definite = node.model = True

    def _brings(self, node: Node) -> bool:
        """Whether the arguments of a call have no graph: they were created here, or drawn from data."""
        reached = self.closure(node.parents)
        return not any(item in self.nodes for item in reached) and all(
            "[]" in item.steps for item in reached if isinstance(item, Path)
        )

    def _settle_nearest(self, evidence: Sources, unknown: Sources) -> None:
        """If every path from a backward leads through one unresolved call, mark its result as definite, whatever its
        arguments (``policy(env.reset())``). For an unpacked result, mark the first part."""
        nearest, seen = set[Source](), set[Source]()
        todo = list(evidence)
        while todo:
            source = todo.pop()
            if source in seen:
                continue
            seen.add(source)
            if source in unknown:
                nearest.add(source)
            elif source in self.nodes:
                todo.extend(self.nodes[source].parents)
        if len(nearest) > 1:
            wholes = {whole for whole in unknown if all(part_of(item, whole) for item in nearest)}
            nearest = {item for item in nearest if item[-1] == "[0]"} | wholes if len(wholes) == 1 else set()
        for item in nearest:
            self.nodes[item].definite = True

    def _settle_parts(self, root: Source, evidence: Sources, nodes: dict[Any, Node]) -> None:
        """Mark the parts of a result as definite too if the loss was computed from the whole result, which then is one
        tensor: its parts are views."""
        whole = root in evidence or any(
            root in node.parents and not part_of(item, root) for item, node in nodes.items()
        )
        if not whole:
            return
        for item, node in self.nodes.items():
            if part_of(item, root):
                node.definite = True

    def nodes_of(self, sources: Iterable[Source]) -> list[Node]:
        """The operations of this function among some sources."""
        return [node for item in sources if (node := self.nodes.get(item)) is not None]

    def closure(self, sources: Iterable[Source]) -> Sources:
        """The sources and all their ancestors."""
        sources = frozenset(sources)
        known = self._closures.get(sources)
        if known is None:
            if len(self._closures) > MAX_CLOSURES:
                self._forget_closures()
            known = self._closures[sources] = self._closure(sources)
            self._reached |= known
        self._work += len(known)
        return known

    def add_parents(self, key: Source, parents: Sources) -> None:
        """Add to the parents of a node, if the node exists."""
        node = self.nodes.get(key)
        if node is not None and not parents <= node.parents:
            node.parents |= parents
            self._forget_closures()
            self._models.clear()

    def models_of(self, tip: Source) -> Sources:
        """The models that took part in a graph; if none is known, the unresolved calls."""
        known = self._models.get(tip)
        if known is None:
            reached = [(item, node) for item in self.closure((tip,)) if (node := self.nodes.get(item)) is not None]
            models = frozenset(item for item, node in reached if node.model)
            known = self._models[tip] = models or frozenset(item for item, node in reached if node.unknown)
        return known

    def models_in(self, sources: Iterable[Source]) -> Sources:
        """The models among the sources and their ancestors."""
        return frozenset(item for item in self.closure(sources) if item in self.nodes and self.nodes[item].model)

    def mark_model(self, tip: Source) -> None:
        """Mark a node as recorded by a model."""
        self.nodes[tip].model = True
        self._models.clear()

    def mark_output(self, tip: Source) -> None:
        """Mark a node of unknown kind as one that has a graph."""
        self.nodes[tip].definite, self.nodes[tip].unknown = True, False
        self._models.clear()

    def _closure(self, sources: Sources) -> Sources:
        nodes, closures = self.nodes, self._closures
        seen: set[Source] = set(sources)
        todo = list(seen)
        while todo:
            node = nodes.get(todo.pop())
            if node is not None and not seen.issuperset(node.parents):
                known = closures.get(node.parents)
                if known is not None:
                    seen |= known
                    continue
                new = node.parents - seen
                seen |= new
                todo.extend(new)
        return frozenset(seen)

    def _forget_closures(self) -> None:
        self._closures.clear()
        self._reached.clear()

    def sure(self, sources: Sources) -> Sources:
        """The sources with those ancestors whose graph they contain on every path, in a finished graph. An unresolved
        call may have detached its arguments, so its ancestors are left out."""
        known = self._sure.get(sources)
        if known is not None:
            return known
        seen: set[Source] = set()
        todo = list(sources)
        while todo:
            source = todo.pop()
            if source in seen:
                continue
            seen.add(source)
            node = self.nodes.get(source)
            if node is not None and (node.definite or not node.unknown):
                todo.extend(node.parents - node.loose)
            elif node is not None:
                # values beside a loss may be numbers for display
                todo.extend(
                    parent
                    for parent in node.parents
                    if part_of(source, parent) or (node.beside and parent not in node.loose)
                    if not ((whole := self.nodes.get(parent)) is not None and whole.guess)
                )
        self._work += len(seen)
        self._sure[sources] = frozenset(seen)
        return self._sure[sources]

    def beside(self, source: Source) -> bool:
        """Whether a source is a later part (not the first) of an unresolved model's output."""
        node = self.nodes.get(source)
        if node is None or not node.unknown or node.beside:
            return node is not None and node.beside
        wholes = (self.nodes.get(item) for item in node.parents if part_of(source, item))
        return any(whole is not None and whole.opaque for whole in wholes)

    def digest(self, source: Source) -> tuple[list[tuple[Path, bool]], list[Node], int | str]:
        """The ancestry of a source in a finished graph: its symbols, each with whether it is sure; the sure nodes; and
        a checksum that distinguishes the symbols."""
        known = self._digests.get(source)
        if known is None:
            sure, ancestry = self.sure(frozenset((source,))), self.ancestry(source)
            symbols = [(item, item in sure) for item in ancestry if isinstance(item, Path)]
            found = [self.nodes[item] for item in self.in_order(ancestry & sure)]
            roots = sorted(item for item, _ in symbols)
            mark: int | str = zlib.crc32(repr(roots).encode()) if roots else ""
            known = self._digests[source] = symbols, found, mark
        return known

    def in_order(self, sources: Iterable[Source]) -> list[Source]:
        """Those of the sources that are nodes, in the order in which they were recorded first, in a finished graph.
        (The order of a set differs from run to run.)"""
        found = [source for source in sources if source in self.nodes]
        if len(found) > 1:
            if not self._places:
                self._places.update((source, place) for place, source in enumerate(self.nodes))
            found.sort(key=self._places.__getitem__)
        return found

    def forget(self) -> None:
        """Drop caches, and what only the interpretation needs."""
        self._forget_closures()
        for known in (self._ancestry, self._sure, self._models, self._digests, self._recorded, self._places):
            known.clear()

    def take_work(self) -> int:
        """The number of nodes visited since the last call."""
        work, self._work = self._work, 0
        return work

    def ancestry(self, source: Source) -> Sources:
        """The closure of one source in a finished graph."""
        known = self._ancestry.get(source)
        if known is None:
            known = self._ancestry[source] = self.closure((source,))
        return known

    def attached(self, sources: Sources, symbols: Any = None) -> tuple[Fact, bool]:
        """Whether a value with these sources carries a graph ("yes", "no" or "unknown"), and whether a backward is the
        only evidence.

        ``symbols``: whether a `Path` is attached (None for unknown).
        """
        if not sources:
            return "no", False
        for evidence in self.evidence:
            if evidence and evidence <= sources:
                return "yes", not any(self._source(source, symbols, set()) == "yes" for source in sources)
        verdict: Fact = "no"
        for source in sources:
            node = self.nodes.get(source)
            if node is not None and node.leaf:
                continue
            one = self._source(source, symbols, set())
            if one == "yes":
                return "yes", False
            if one == "unknown":
                verdict = "unknown"
        return verdict, False

    def _is_weight(self, source: Source, evidence: Sources) -> bool:
        """Whether a source is computed only from members of a batch, beside a model's output that is enough for the
        backward: the mask in ``loss.sum() / mask.sum()``."""
        reached = self.closure((source,))
        drawn = all("[]" in item.steps for item in reached if isinstance(item, Path))
        if not drawn or any(node.unknown or node.definite for item in reached if (node := self.nodes.get(item))):
            return False
        others = self.closure(evidence - {source})
        return any(node.definite or node.model for item in others if (node := self.nodes.get(item)))

    def _source(self, source: Source, symbols: Any, seen: set[Source]) -> Fact:
        if source in seen:
            return "no"
        seen.add(source)
        if isinstance(source, Path):
            known = symbols(source) if symbols else None
            return "unknown" if known is None else "yes" if known else "no"
        node = self.nodes.get(source)
        if node is None:
            return "no"
        if node.definite:
            return "yes"
        if any(source in evidence and not self._is_weight(source, evidence) for evidence in self.evidence):
            return "yes"
        if node.unknown:
            # what is known to have a graph may be a part of it: ``sum(parts.values()).backward()``
            return "yes" if any(_proves(item, source) for held in self.evidence for item in held) else "unknown"
        verdict: Fact = "no"
        for parent in node.parents:
            one = self._source(parent, symbols, seen)
            if one == "yes":
                return "yes"
            if one == "unknown":
                verdict = "unknown"
        return verdict
