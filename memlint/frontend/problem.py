"""What is wrong with a file that cannot be parsed."""

from __future__ import annotations

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
