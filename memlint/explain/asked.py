"""The tests that the rules' own detection applies to a line, with their results.

A detector consists of functions with a question as docstring (``Whether the handle that removes the hook is
discarded.``) and drops a candidate at a result against it. To find the tests, the calls of the rule's functions are
recorded while it runs once more.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from types import FrameType
from typing import TYPE_CHECKING, Any

from memlint.analysis.domain.summary.summary import Summary

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_ANSWERS = {True: "yes", False: "no", None: "nothing"}
#: the most questions that are shown, the last ones
_MOST = 3


def asked(analyser: Analyser, summary: Summary, ordinals: Collection[int]) -> dict[str, str]:
    """By rule: the questions about nodes (by ordinal) of a function, with their results, for the rules that report none
    of these nodes."""
    found: dict[str, str] = {}
    for detector in analyser.detectors:
        watch = _Watch(detector.package, ordinals)
        before = sys.getprofile()
        sys.setprofile(watch.noted)
        try:
            events = detector.events(analyser, summary)
        except (Exception, SystemExit):  # an error in a rule is reported by the run itself
            continue
        finally:
            sys.setprofile(before)
        if watch.said and not any(event.site.at in ordinals for event in events):
            found[detector.code] = "; ".join(list(watch.said)[-_MOST:])
    return found


class _Watch:
    """A profiling hook. ``said``: the questions about the nodes, each with its result, in order. ``package``: the
    prefix of the modules whose functions are recorded."""

    def __init__(self, package: str, ordinals: Collection[int]) -> None:
        self._package = package
        self._ordinals = ordinals
        self.said: dict[str, None] = {}

    def noted(self, frame: FrameType, event: str, answer: Any) -> None:
        if event != "return" or not (answer is None or isinstance(answer, bool)):
            return
        code = frame.f_code
        if not str(frame.f_globals.get("__name__", "")).startswith(self._package):
            return
        question = code.co_consts[0] if code.co_consts else None
        if not isinstance(question, str) or code.co_name.startswith("<"):
            return
        given = (frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount])
        if any(self._is_here(one) for one in given):
            said = f"{_sentence(question)}: {_ANSWERS[answer]}"
            self.said.pop(said, None)
            self.said[said] = None

    def _is_here(self, value: Any) -> bool:
        """Whether an argument is one of the nodes, or holds one (such as the record of a call)."""
        return any(getattr(one, "at", None) in self._ordinals for one in (value, getattr(value, "expr", None)))


def _sentence(question: str) -> str:
    """The first sentence of a docstring, as a clause."""
    text = " ".join(question.replace("``", "`").split()).partition(". ")[0].partition("; ")[0].rstrip(".")
    return text[:1].lower() + text[1:]
