"""What the code does with memory: one abstract interpreter, summaries of functions, and events for rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlint.analysis.driver.run import Analysis, AnalysisOptions, analyse

__all__ = ["Analysis", "AnalysisOptions", "analyse"]


def __getattr__(name: str) -> Any:
    """The analysis is a hundred modules: rules, which import only events, do not wait for them."""
    if name not in __all__:
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module("memlint.analysis.driver.run"), name)
