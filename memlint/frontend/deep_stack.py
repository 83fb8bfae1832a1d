"""A deep stack for what walks a syntax tree, so that no input overflows it and ends the process."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from memlint.frontend.nesting import MAX_BRACKETS, MAX_DEPTH, MAX_ELIFS, depth
from memlint.frontend.problem import TOO_DEEP, SyntaxProblem
from memlint.patterns import lazy_pattern

T = TypeVar("T")

#: up to these depths the caller's stack is used: each needs about 500 KB of it
_SHALLOW_BRACKETS = 40
_SHALLOW_DEPTH = 200
_DEEP_STACK = 64 << 20
_DEEP_RECURSION = 20_000
_NEWLINE = lazy_pattern(r"\r\n?")
_stack_size = threading.Lock()


def normalised(text: str) -> str:
    """``text`` with \\n newlines only: libcst does not reproduce a lone \\r."""
    return _NEWLINE.sub("\n", text) if "\r" in text else text


def on_deep_stack(text: str, work: Callable[[], T]) -> T:
    """``work()``, which recurses as deeply as ``text`` (normalised) nests, on a stack that is large enough.

    Raises SyntaxProblem if ``text`` nests deeper than memlint analyses.
    """
    brackets, deepest = depth(text)
    elifs = text.count("elif ")
    if brackets > MAX_BRACKETS or deepest > MAX_DEPTH or elifs > MAX_ELIFS:
        raise SyntaxProblem(TOO_DEEP, 1, 1)
    shallow = brackets <= _SHALLOW_BRACKETS and max(deepest, elifs) <= _SHALLOW_DEPTH
    try:
        return work() if shallow else _in_thread(work)
    except RecursionError:
        raise SyntaxProblem(TOO_DEEP, 1, 1) from None


def _in_thread(work: Callable[[], T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    with _stack_size:
        recursion, stack = sys.getrecursionlimit(), threading.stack_size(_DEEP_STACK)
        sys.setrecursionlimit(max(recursion, _DEEP_RECURSION))
        try:
            thread = threading.Thread(target=run, name="memlint-deep")
            thread.start()
            thread.join()
        finally:
            threading.stack_size(stack)
            sys.setrecursionlimit(recursion)
    if failure:
        raise failure[0]
    return outcome[0]
