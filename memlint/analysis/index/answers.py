"""Answers about a whole program, each found once and kept with it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar, cast

from memlint.analysis.index.program import Program

_P = ParamSpec("_P")
_R = TypeVar("_R")


def asked_once(answer: Callable[Concatenate[Program, _P], _R]) -> Callable[Concatenate[Program, _P], _R]:
    """Keep the answers to a question about a program, one for each choice of its further arguments (by position)."""

    @functools.wraps(answer)
    def ask(program: Program, /, *args: _P.args, **_: _P.kwargs) -> _R:
        question = (answer, *args)
        if question not in program.answers:
            program.answers[question] = answer(program, *args, **_)
        return cast("_R", program.answers[question])

    return ask
