"""Summaries on demand, each with the queries that were made during its interpretation.

In stratum 1 the call sites are known, and tell the values of parameters and attributes. A summary is then recomputed
only if an answer that it depends on has changed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from memlint.analysis.domain.state import OBJECT_FIELDS, STATE_FIELDS, Obj, State
from memlint.analysis.domain.summary.compact import emptied
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.observations import Observations
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Flags, V
from memlint.analysis.index.program import Function

_T = TypeVar("_T")

#: the most nested interpretations; deeper calls are unknown
MAX_NESTING = 24

#: the most specialisations of one function; other calls get the general summary
MAX_VARIANTS = 7

#: how many of the last used summaries keep the caches of their graphs
MAX_WARM = 500

#: module, qualified name, constant arguments
Key = tuple[str, str, Flags]
#: a query: its kind, and its identity among queries of that kind
Query = tuple[str, Any]


class Summaries:
    """``make`` interprets a function; ``ask`` answers a query that is not about a summary; ``spare``: save memory."""

    def __init__(
        self, make: Callable[[Function, Flags], Summary], ask: Callable[[str, Any], Any], *, spare: bool
    ) -> None:
        self._spares = spare
        self._make = make
        self._ask = ask
        self._known: dict[Key, Summary | None] = {}
        #: by summary, its queries, and their answers in the same order
        self._dependencies: dict[Key, tuple[tuple[Query, ...], tuple[Any, ...]]] = {}
        #: the interned queries, each with its arguments
        self._interned: dict[Query, tuple[Query, Any]] = {}
        self._variants: dict[tuple[str, str], set[Flags]] = {}
        self._previous: dict[Key, Summary | None] = {}
        self._running: list[Key] = []
        self._recursive: set[Key] = set()
        self._recorded: list[dict[Query, Any]] = []
        self._warm: OrderedDict[Key, Summary] = OrderedDict()
        #: for each running interpretation, the stack position of the outermost one that it needs, directly or not
        self._lowest: list[int] = []
        #: summaries that were computed without a running one that they need, with that one's stack position
        self._cut_recursion: dict[Key, tuple[int, Function, Flags]] = {}
        self._remaking = False
        #: summaries of recursive functions that were computed without their inner calls
        self._incomplete: set[Key] = set()

    def get(self, function: Function, flags: Flags = ()) -> Summary | None:
        """The function's summary, specialised to these constant arguments; None if it is being analysed (recursion), or
        if the call depth is too large."""
        known = self._variants.get(function.key)
        if known is None:
            known = self._variants[function.key] = set()
        if flags and flags not in known and len(known) >= MAX_VARIANTS:
            flags = ()
        known.add(flags)
        summary = self._get(function, flags)
        key = (*function.key, flags)
        self.note("summary", key, (function, flags), None if key in self._running else summary)
        if summary is not None and self._spares:
            self._warm_up(key, summary)
        return summary

    def _warm_up(self, key: Key, summary: Summary) -> None:
        """Record that a summary is used. The least recently used one drops its caches."""
        self._warm[key] = summary
        self._warm.move_to_end(key)
        if len(self._warm) > MAX_WARM:
            self._warm.popitem(last=False)[1].graphs.forget()

    def calls_itself(self, function: Function) -> bool:
        """Whether the running interpretation calls its own function, which has no summary yet. Other paths of the
        recursion have to end first."""
        if not self._running or self._running[-1][:2] != function.key or self._running[-1] in self._known:
            return False
        self._recursive.add(self._running[-1])
        return True

    def is_running(self, function: Function) -> bool:
        """Whether the function is being interpreted, with any constant arguments."""
        return any(key[:2] == function.key for key in self._running)

    def note(self, kind: str, identity: Any, about: Any, answer: Any) -> None:
        """Record that the summary in the making depends on this answer."""
        if not self._recorded:
            return
        query, answers = (kind, identity), self._recorded[-1]
        if query not in answers:
            known = self._interned.get(query)
            if known is None:
                known = self._interned[query] = (query, about)
            answers[known[0]] = answer

    def apart(self, find: Callable[[], _T]) -> _T:
        """Compute an answer without recording the queries that it makes. The summary in the making depends on the
        answer alone, which is recomputed to check it."""
        if not self._recorded:
            return find()
        self._recorded.append({})
        try:
            return find()
        finally:
            self._recorded.pop()

    def _get(self, function: Function, flags: Flags) -> Summary | None:
        key = (*function.key, flags)
        if key in self._known:
            self._note_dependency(self._cut_recursion[key][0] if key in self._cut_recursion else MAX_NESTING)
            return self._known[key]
        if key in self._running:
            self._note_dependency(self._running.index(key))
            return None
        if len(self._running) >= MAX_NESTING:
            return None
        self._running.append(key)
        self._lowest.append(MAX_NESTING)
        self._recorded.append({})
        try:
            if key in self._previous and key not in self._incomplete and self._holds(key):
                summary = self._previous[key]
            else:
                self._recorded[-1] = {}
                summary = self._make(function, flags)
                if key in self._recursive and not summary.cut_short:
                    if not self._remaking and self._lowest[-1] < len(self._running) - 1:
                        self._incomplete.add(key)  # it needs a running one, and is recomputed after that
                    else:
                        # a recursive function: once more, with its other paths as the effect of the inner call
                        self._known[key] = summary
                        summary = self._make(function, flags)
                queries = self._recorded[-1]
                self._dependencies[key] = (*queries,), (*queries.values(),)
                previous = self._previous.get(key)
                if previous is not None and same_summary(previous, summary):
                    summary = previous  # so that the summaries that depend on it stay valid
                elif previous is not None and not self._remaking:
                    previous.retire()  # while remaking, summaries that read the old one are kept
        finally:
            self._recursive.discard(key)
            self._running.pop()
            self._recorded.pop()
            met = self._lowest.pop()
        self._known[key] = summary
        if met < len(self._running):
            self._cut_recursion[key] = (met, function, flags)
            self._note_dependency(met)
        else:
            self._complete()
        return summary

    def _note_dependency(self, place: int) -> None:
        """Record that the running interpretation needs one that runs further down the stack: they are in one strongly
        connected component."""
        if self._lowest and place < self._lowest[-1]:
            self._lowest[-1] = place

    def is_cut(self, function: Function) -> bool:
        """Whether the summary was computed without another one of its strongly connected component."""
        return (*function.key, ()) in self._cut_recursion

    def _complete(self) -> None:
        """Recompute the summaries of a strongly connected component that lacked another one, so that the result does
        not depend on which of them was requested first."""
        place = len(self._running)
        cut = {
            key: self._cut_recursion.pop(key)
            for key in [key for key, (met, *_) in self._cut_recursion.items() if met >= place]
        }
        if self._remaking:
            return
        self._remaking = True
        for key in cut:
            self._previous[key] = self._known.pop(key)
        for _, function, flags in cut.values():
            self._get(function, flags)
        self._incomplete.difference_update(cut)
        self._remaking = False

    def _holds(self, key: Key) -> bool:
        """Whether every answer that a summary depends on is unchanged."""
        for query, answer in zip(*self._dependencies[key], strict=True):
            about = self._interned[query][1]
            if query[0] == "summary":
                if self._get(*about) is not answer:
                    return False
            elif self._ask(query[0], about) != answer:
                return False
        return True

    def renew(self) -> None:
        """Mark all summaries as possibly outdated."""
        self._previous, self._known = self._known, {}

    def settle(self) -> None:
        """Drop what only the computation of summaries needs. From here on they are only read."""
        self._previous = {key: summary for key, summary in self._previous.items() if key not in self._known}
        self._dependencies = {key: self._dependencies[key] for key in self._previous if key in self._dependencies}
        needed = {query for queries, _ in self._dependencies.values() for query in queries}
        self._interned = {query: kept for query, kept in self._interned.items() if query in needed}
        for summary in self._known.values():
            if summary is not None:
                summary.compact()

    def general(self) -> Iterator[Summary]:
        """All general (not specialised) summaries that are known now: the reader's queries may add others."""
        return (summary for summary in tuple(self._known.values()) if summary is not None and not summary.flags)

    def close(self) -> None:
        """Drop all summaries, which refer to each other."""
        for known in (self._known, self._previous):
            for summary in known.values():
                if summary is not None:
                    vars(summary).clear()
            known.clear()
        for held in (self._dependencies, self._interned, self._variants, self._warm):
            held.clear()


#: fields of a summary that only its interpretation uses, or that follow from its function alone
_TRANSIENT = frozenset({
    "analyser", "applying", "depth", "function", "handlers", "loops", "module", "modules_by_state", "modules_by_use",
    "operands", "outward", "passes", "returns", "spent", "statement", "tests",
})  # fmt: skip
#: fields of a loop: the states that left an iteration
_ROUND = frozenset({"breaks", "continues"})


def same_summary(a: Summary, b: Summary) -> bool:
    """Whether everything that callers, rules and facts read of two summaries of one function is equal."""
    return a.cut_short == b.cut_short and _same_fields(vars(a), vars(b), _TRANSIENT)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is V:
        return bool(a == b) and type(a.const) is type(b.const)
    if kind is dict:
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if kind is list or kind is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if kind is State or kind is Obj:
        names = STATE_FIELDS if kind is State else OBJECT_FIELDS
        return all(_same(getattr(a, name), getattr(b, name)) for name in names)
    if kind is Observations:
        return _same_fields(vars(a), vars(b))
    if issubclass(kind, Summary):
        return False  # the summaries of unchanged callees are identical objects
    if dataclasses.is_dataclass(kind):
        left_out = _ROUND if kind is LoopState else ()
        return all(_same(getattr(a, name), getattr(b, name)) for name in _fields(kind) if name not in left_out)
    return bool(a == b)


def _same_fields(a: dict[str, Any], b: dict[str, Any], left_out: frozenset[str] = frozenset()) -> bool:
    return all(
        _same(a[name], b[name]) if name in a and name in b else emptied(a[name] if name in a else b[name])
        for name in a.keys() | b.keys()
        if name not in left_out
    )


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass, without its private ones."""
    return tuple(field.name for field in dataclasses.fields(kind) if not field.name.startswith("_"))
