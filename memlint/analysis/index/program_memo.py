"""Memoised facts about a whole program, which live as long as the program."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

from memlint.analysis.index.program import Program

_P = ParamSpec("_P")
_R = TypeVar("_R")


def memoized_in_program(answer: Callable[Concatenate[Program, _P], _R]) -> Callable[Concatenate[Program, _P], _R]:
    """Memoise a function of a program and further hashable positional arguments; the program holds the results."""

    @functools.wraps(answer)
    def ask(program: Program, /, *args: _P.args, **_: _P.kwargs) -> _R:
        question = (answer, *args)
        if question not in program.answers:
            program.answers[question] = answer(program, *args, **_)
        return cast("_R", program.answers[question])

    return ask
