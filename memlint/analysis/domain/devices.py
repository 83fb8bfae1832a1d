"""Whether a program can have tensors anywhere but on the host."""

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
    """Whether words of a program tell of one."""
    return _ACCELERATOR.search(words) is not None


def touches_an_accelerator(analyser: Analyser, summary: Summary) -> bool:
    """Whether the program can have tensors anywhere but on the host: its own words tell of a script, those of the
    whole project of what others import."""
    if _in_code(summary.module.text):
        return True
    if is_of_script(summary):
        return False
    return any(analyser.program.words.files(word) for word in _WORDS)


def is_of_cuda(analyser: Analyser) -> bool:
    """Whether the project names CUDA: what it runs, it runs there."""
    project = analyser.program.project
    if _OF_CUDA not in project.kept:
        project.kept[_OF_CUDA] = any("cuda" in source.text for source in project.sources.values())
    found: bool = project.kept[_OF_CUDA]
    return found


def is_of_script(summary: Summary) -> bool:
    """Whether the code is that of a program, and not of what others import."""
    return summary.function.node is None or _is_script(summary.module.text)


@functools.lru_cache(maxsize=8)
def _is_script(file: str) -> bool:
    return _SCRIPT.search(file) is not None


@functools.lru_cache(maxsize=8)
def _in_code(file: str) -> bool:
    return names_an_accelerator(without_comments(file))


@functools.lru_cache(maxsize=8)
def without_comments(file: str) -> str:
    """The text of a file without its comments, which tell of what the code no longer does."""
    return "\n".join(line.partition("#")[0] for line in file.splitlines())
