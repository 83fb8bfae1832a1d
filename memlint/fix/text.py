"""Whether a text is still a valid program after edits: it parses, and binds every name."""

from __future__ import annotations

import ast
import functools
import warnings

from memlint.fix.names import unbound, unbound_by_libcst
from memlint.frontend.problem import SyntaxProblem


def harm(before: str, after: str) -> str | None:
    """The damage that an edit does to a file, a clause for the user; None if there is none. If the text compiled
    before, it must compile afterwards; otherwise (newer syntax) it must parse with libcst."""
    if _compile_error(before) is None:
        error = _compile_error(after)
        names = None if error else unbound(after) - unbound(before)
    elif _parse_error(before) is None:
        error = _parse_error(after)
        names = None if error else unbound_by_libcst(before, after)
    else:
        return "the file does not parse"
    if error is not None:
        return f"the file would no longer compile: {error}"
    if names:
        said = " and ".join(f"`{name}`" for name in sorted(names))
        return f"{said} would be undefined"
    return None


@functools.lru_cache(maxsize=32)
def _compile_error(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # a notebook may use a top-level await, which no fix writes
            compile(text, "<fixed>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
            unbound(text)  # it may hit limits of its own
    except SyntaxError as error:
        return f"{error.msg} (line {error.lineno})"
    except (ValueError, RecursionError, MemoryError) as error:
        return str(error) or type(error).__name__
    return None


@functools.lru_cache(maxsize=32)
def _parse_error(text: str) -> str | None:
    from memlint.frontend.deep_stack import normalised
    from memlint.frontend.parsing import with_tree

    try:
        with_tree(normalised(text), lambda tree: None)
    except SyntaxProblem as problem:
        return f"{problem.message} (line {problem.line})"
    return None
