"""Parsing with libcst so that no input ends the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import libcst as cst

from memlint.frontend.deep_stack import on_deep_stack
from memlint.frontend.problem import SyntaxProblem, rejected
from memlint.patterns import lazy_pattern

T = TypeVar("T")

_PLACE = lazy_pattern(r"error at (\d+):(\d+): (.*)")


def with_tree(text: str, use: Callable[[cst.Module], T]) -> T:
    """``use(tree of text)``, on a stack that is large enough for both. Raises SyntaxProblem with positions in
    ``text``."""
    return on_deep_stack(text, lambda: use(_parse(text)))


def _parse(text: str) -> cst.Module:
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        raise _problem(text, error.message) from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        raise SyntaxProblem("a lone surrogate is not a character", line, column) from None
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # libcst's validator rejects the tree, or its native code panics
        raise _problem(text, str(error) or type(error).__name__) from None


def _problem(text: str, message: str) -> SyntaxProblem:
    """The problem in CPython's words if it rejects the text too, as they say more; else in libcst's."""
    known = rejected(text)
    if known is not None:
        return known
    place = _PLACE.search(message)
    if place is None:
        return SyntaxProblem(message.removeprefix("tokenizer error: ").splitlines()[0], 1, 1)
    return SyntaxProblem(place[3], int(place[1]), int(place[2]))
