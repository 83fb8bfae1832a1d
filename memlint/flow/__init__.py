"""What the code does with memory: one abstract interpreter, summaries of functions, and events for rules."""

from memlint.flow.analyse import Analysis, AnalysisOptions, analyse

__all__ = ["Analysis", "AnalysisOptions", "analyse"]
