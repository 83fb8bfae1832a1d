"""An index of the model runs of a finished function, for queries that compare runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import ModelRun
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.domain.values import Source

Key = tuple[str, str]


class RunIndex:
    def __init__(self, summary: Summary) -> None:
        self._by_text: dict[str, list[ModelRun]] = {}
        self._by_origin: dict[tuple[Key, Source], list[ModelRun]] = {}
        for run in summary.runs.values():
            self._by_text.setdefault(run.text, []).append(run)
            if run.origin is not None:
                inner, origin = run.origin
                self._by_origin.setdefault((inner.function.key, origin.key), []).append(run)
        #: the union of what the function's backwards reach
        self.reached: set[Source] = set().union(*{id(one.reached): one.reached for one in summary.backwards}.values())

    def of_text(self, text: str) -> list[ModelRun]:
        return self._by_text.get(text, [])

    def lifted(self, summary: Summary, run: ModelRun) -> list[ModelRun]:
        """The runs that were lifted from this run of a callee."""
        return self._by_origin.get((summary.function.key, run.key), [])


__all__ = ["RunIndex"]
