"""Graphs that a backward keeps or records, and that nothing differentiates again."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Summary

from .kept_rounds import kept_by_rounds
from .recorded_gradients import GRAD, recorded
from .retained_graphs import retained
from .rule import KeptGraph

CALLS = frozenset({GRAD})


def detect(analyser: Analyser, summary: Summary) -> Iterator[KeptGraph]:
    """The backwards of one function that keep or record an unused graph."""
    yield from retained(analyser, summary)
    yield from kept_by_rounds(analyser, summary)
    yield from recorded(analyser, summary)
