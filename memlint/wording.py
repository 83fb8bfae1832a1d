"""How long a message may be, and what gives way where it is longer."""

from __future__ import annotations

import ast

from memlint.patterns import lazy_pattern

#: characters of a message
MOST = 200
#: characters that each name keeps
_LEAST = 9
_NAME = lazy_pattern(r"`([^`]+)`")
#: the end of an expression that is moved to the host
_MOVE = lazy_pattern(r"""\.(cpu\(\)|to\((device=)?(["']cpu["']|(torch\.)?device\(["']cpu["']\))[^()]*\))$""")


def fitted(message: str) -> str:
    """The message with the longest of its names (code in backticks) shortened until it has `MOST` characters."""
    length = max((len(name) for name in _NAME.findall(message)), default=0)
    found = message
    while len(found) > MOST and length > _LEAST:
        length -= 1
        found = _NAME.sub(lambda name: f"`{_shortened(name[1], length)}`", message)  # noqa: B023
    return found


def _shortened(name: str, length: int) -> str:
    """The beginning and the end of a name that is longer."""
    if len(name) <= length:
        return name
    end = (length - 1) // 3
    return f"{name[: length - 1 - end].rstrip()}…{name[-end:].lstrip()}"


def detached(code: str) -> str:
    """An expression without its graph: ``x.detach().cpu()`` for ``x.cpu()``, which moves the tensor and keeps its
    graph."""
    before, move = _moved(code)
    return f"{before}.detach(){move}"


def as_number(code: str) -> str:
    """The number that a tensor of one element holds, which is on the host wherever the tensor is."""
    return f"{_moved(code)[0]}.item()"


def _moved(code: str) -> tuple[str, str]:
    """An expression that a method can be called on, and the call behind it that moves it to the host."""
    move = _MOVE.search(code) if grouped(code) == code else None
    return (code[: move.start()], move[0]) if move else (grouped(code), "")


def grouped(code: str) -> str:
    """An expression in parentheses where a method that is called on it would be called on its last part alone."""
    try:
        node = ast.parse(code.replace("…", "_"), mode="eval").body
    except (SyntaxError, ValueError):
        return f"({code})"
    primary = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.List | ast.Dict | ast.ListComp)
    return code if primary else f"({code})"
