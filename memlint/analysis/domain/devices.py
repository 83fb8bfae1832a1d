"""Whether a program may have tensors on another device than the host."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

_ACCELERATOR = lazy_pattern(r"cuda|device|\bxpu\b|\bnpu\b|\bmps\b|accelerat|\bgpus?\b", re.IGNORECASE)
_WORDS = ("cuda", "device", "xpu", "npu", "mps", "accelerator")
_OF_CUDA = "is of cuda"
_SCRIPT = lazy_pattern(r"__name__\s*==\s*['\"]__main__")


def names_an_accelerator(words: str) -> bool:
    """Whether a text names an accelerator."""
    return _ACCELERATOR.search(words) is not None


def touches_an_accelerator(analyser: Analyser, summary: Summary) -> bool:
    """Whether the program may have tensors on an accelerator: by its own text for a script, or else by the whole
    project's."""
    if _in_code(summary.module.text):
        return True
    if is_of_script(summary):
        return False
    return any(analyser.program.words.files(word) for word in _WORDS)


def is_of_cuda(analyser: Analyser) -> bool:
    """Whether the project names CUDA, and so is taken to run its models there."""
    project = analyser.program.project
    if _OF_CUDA not in project.kept:
        project.kept[_OF_CUDA] = any("cuda" in source.text for source in project.sources.values())
    found: bool = project.kept[_OF_CUDA]
    return found


def is_of_script(summary: Summary) -> bool:
    """Whether the code belongs to a program, and not to a module for import."""
    return summary.function.node is None or _is_script(summary.module.text)


@functools.lru_cache(maxsize=8)
def _is_script(file: str) -> bool:
    return _SCRIPT.search(file) is not None


@functools.lru_cache(maxsize=8)
def _in_code(file: str) -> bool:
    return names_an_accelerator(without_comments(file))


@functools.lru_cache(maxsize=8)
def without_comments(file: str) -> str:
    """The text of a file without its comments, which may describe former code."""
    return "\n".join(line.partition("#")[0] for line in file.splitlines())
