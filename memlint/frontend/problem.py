"""What is wrong with a file that cannot be parsed."""

from __future__ import annotations

import ast
import warnings

from memlint.project.old_syntax import CHECKED_AS_OLD

#: what is said of code that parses, and nests deeper than anything here follows
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
        """Whether the code is right and only too deep; the other definitions of its file are analysed then."""
        return self.message == TOO_DEEP

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.message}"


def rejected(text: str) -> SyntaxProblem | None:
    """Why the Python that runs here does not read a text; None where it does, or cannot tell."""
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
    """What is wrong with a file in an older grammar, all of which was checked."""
    problem = rejected(text)
    if problem is None:
        return None
    return SyntaxProblem(problem.message + CHECKED_AS_OLD, problem.line, problem.column)
