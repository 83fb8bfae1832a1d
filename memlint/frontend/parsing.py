"""Parsing with libcst so that no input ends the process."""

from __future__ import annotations

import ast
import re
import sys
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

import libcst as cst

from memlint.frontend.nesting import MAX_BRACKETS, MAX_DEPTH, MAX_ELIFS, depth
from memlint.frontend.problem import SyntaxProblem

T = TypeVar("T")

#: Up to these the caller's stack serves: each takes about 500 KB of it.
_SHALLOW_BRACKETS = 40
_SHALLOW_DEPTH = 200
_DEEP_STACK = 64 << 20
_DEEP_RECURSION = 20_000
_PLACE = re.compile(r"error at (\d+):(\d+): (.*)")
_NEWLINE = re.compile(r"\r\n?")
_TOO_DEEP = "too deeply nested to analyse"
_stack_size = threading.Lock()


def normalised(text: str) -> str:
    """``text`` with \\n newlines, which libcst gives back as they were (it does not for a lone \\r)."""
    return _NEWLINE.sub("\n", text) if "\r" in text else text


def with_tree(text: str, use: Callable[[cst.Module], T]) -> T:
    """``use(tree of text)``, on a stack that is large enough for both.

    Raises SyntaxProblem with places in ``text``.
    """
    brackets, deepest = depth(text)
    elifs = text.count("elif ")
    if brackets > MAX_BRACKETS or deepest > MAX_DEPTH or elifs > MAX_ELIFS:
        raise SyntaxProblem(_TOO_DEEP, 1, 1)

    def work() -> T:
        return use(_parse(text))

    try:
        shallow = brackets <= _SHALLOW_BRACKETS and max(deepest, elifs) <= _SHALLOW_DEPTH
        return work() if shallow else _on_deep_stack(work)
    except RecursionError:
        raise SyntaxProblem(_TOO_DEEP, 1, 1) from None


def _parse(text: str) -> cst.Module:
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise _problem(text, error.message) from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        raise SyntaxProblem("a lone surrogate is not a character", line, column) from None


def _problem(text: str, message: str) -> SyntaxProblem:
    """The problem in the words of CPython where it rejects the text too: they say more than libcst's."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return SyntaxProblem(error.msg, error.lineno or 1, max(error.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError):
        pass
    place = _PLACE.search(message)
    if place is None:
        return SyntaxProblem(message.removeprefix("tokenizer error: ").splitlines()[0], 1, 1)
    # libcst counts these columns from 1.
    return SyntaxProblem(place[3], int(place[1]), int(place[2]))


def _on_deep_stack(work: Callable[[], T]) -> T:
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
