"""Why a file cannot be parsed."""

from __future__ import annotations

import ast
import warnings

from memlint.project.old_syntax import CHECKED_AS_OLD

#: the message for code that is valid, but nests deeper than memlint analyses
TOO_DEEP = "too deeply nested to analyse"


class SyntaxProblem(Exception):  # noqa: N818
    """A unit that libcst cannot parse, or that is nested too deeply to analyse (MEM000).

    ``line`` and ``column`` count from 1, in the file; columns in characters.
    """

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message, line, column)
        self.message = message
        self.line = line
        self.column = column

    @property
    def parses(self) -> bool:
        """Whether the code is valid and only too deep, so that the other definitions of its file are analysed."""
        return self.message == TOO_DEEP

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


def rejected(text: str) -> SyntaxProblem | None:
    """Why the running Python rejects a text; None if it does not, or if that is unknown."""
    error = _error(text)
    if error is None:
        return None
    return SyntaxProblem(error.msg, error.lineno or 1, max(error.offset or 1, 1))


def _error(text: str) -> SyntaxError | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as error:
        return error
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def outdated(text: str) -> SyntaxProblem | None:
    """The problem of a file in an older grammar, which was checked nevertheless; None if it is valid today."""
    problem = rejected(text)
    if problem is None:
        return None
    return SyntaxProblem(problem.message + CHECKED_AS_OLD, problem.line, problem.column)
