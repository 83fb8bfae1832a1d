"""Masking of IPython syntax in code cells and exported notebooks: shell commands, magics, help. A mask has the length
of the original, so that all other positions stay the same."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

import msgspec

from memlint.patterns import lazy_pattern

#: a line and its end
_LINE = lazy_pattern(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+\Z")
#: text that may need a mask; most code has none
_MAY_BE_MASKED = lazy_pattern(
    r"^[ \t\f]*(?:[!%?]|[^=\"'()#\r\n]+=[ \t]*[!%]\w|[\w.*]+\?\??[ \t]*(?:#[^\r\n]*)?\r?$)", re.MULTILINE
)
#: ``files = !ls``, ``path = %pwd``
_ASSIGNED = lazy_pattern(r"([ \t]*[^=!%#()\s'\"][^=!%#()\r\n'\"]*(?:\[[^\]\r\n]*\])?[ \t]*=[ \t]*)(?:!|%(?=[A-Za-z]))")
#: line magics that run the statement after them, and their options
_RUNS = lazy_pattern(r"([ \t]*)(%(?:time|timeit|memit)[ \t]+(?:-(?:[nrpti][ \t]*[\d.]+|[a-zA-Z]+)[ \t]+)*)(?=[^\s-])")
#: names of magics that are used without the sign
_AUTOMAGIC = lazy_pattern(
    r"[ \t]*(?:pip3?|conda|mamba|uv|cd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|less|more|man|load_ext|reload_ext|autoreload"
    r"|matplotlib|env|run|who|whos|time|timeit|alias|pylab|store)[ \t]"
)
_CELL_MAGIC = lazy_pattern(r"%%(\w+|!)(?!\S*\?[ \t]*$)", re.MULTILINE)
#: cell magics whose cell is Python that runs in the notebook
_OF_PYTHON = frozenset(
    {"capture", "debug", "ipytest", "memit", "memlint", "mprun", "prun", "px", "scalene", "time", "timeit"}
)
#: those whose cell is not Python, or runs elsewhere
_OF_OTHERS = frozenset({
    "!", "HTML", "R", "SVG", "bash", "bigquery", "cmd", "configure", "cpp", "cu", "cuda", "cython", "file", "html",
    "javascript", "js", "julia", "latex", "markdown", "perl", "pypy", "python", "python2", "python3", "ruby", "script",
    "sh", "shell", "sql", "svg", "sx", "system", "writefile", "writetemplate", "zsh",
})  # fmt: skip
#: what begins a cell in a Python file
_BEGINS_CELL = lazy_pattern(r"#\s*(?:%%|In ?\[|<codecell>|\+)")
_PART = lazy_pattern(
    r"(?P<comment>\#)|(?P<quote>'''|\"\"\"|['\"])|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<joined>\\(?:\r\n?|\n|\Z))"
)
_CLOSED = {
    quote: re.compile(rf"(?:[^\\]|\\.)*?{quote}" if len(quote) == 3 else rf"(?:[^\\\r\n]|\\.)*?{quote}", re.DOTALL)
    for quote in ("'''", '"""', "'", '"')
}


class Mask(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The original text of a mask of the same length."""

    start: int
    text: str


def masks_of(original: str, text: str, start: int = 0) -> Iterator[Mask]:
    """The masks: the lines of a file that differ in its module. ``start``: the offset of both."""
    if original == text:
        return
    for was, now in zip(original.split("\n"), text.split("\n"), strict=True):
        if was != now:
            yield Mask(start, was)
        start += len(was) + 1


def parse_error(text: str) -> SyntaxError | ValueError | None:
    """Why this Python does not parse a text; None if it does, or if the text is too deeply nested."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return error
    except (RecursionError, MemoryError):
        pass
    return None


def python_of_export(text: str) -> str:
    """A Python file with masks, if it does not parse because of IPython syntax; else the text."""
    if not _may_be_masked(text) or parse_error(text) is None:
        return text
    return _Masker(text).masked()


def _may_be_masked(text: str) -> bool:
    """Whether a text may need masks. (The signs are searched first, which is much faster than splitting all files into
    lines.)"""
    if "\r" in text:
        return _MAY_BE_MASKED.search(text) is not None
    for sign in "!%?":
        at = text.find(sign)
        while at >= 0:
            # (most are of a comparison, and no command of a shell begins like one)
            if text.startswith("!=", at):
                at = text.find(sign, at + 1)
                continue
            if _MAY_BE_MASKED.match(text, text.rfind("\n", 0, at) + 1) is not None:
                return True
            end = text.find("\n", at)  # (a line is looked at as a whole)
            at = text.find(sign, end) if end >= 0 else -1
    return False


def python_of_cell(text: str) -> str:
    """A code cell with its masks."""
    if parse_error(text) is None:
        return text
    lines, at, is_known = _LINE.findall(text), 0, True
    # a cell magic stands on the first line; a form's title may stand over it, and another magic below it
    while at < len(lines) and is_known:
        line = lines[at]
        if line.strip() and not line.startswith("#"):
            magic = _CELL_MAGIC.match(line)
            if magic is None:
                break
            if magic[1] in _OF_OTHERS:
                return _blank(text)
            is_known = magic[1] in _OF_PYTHON
            lines[at] = _blank(line)
        at += 1
    made = "".join(lines)
    found = _Masker(made).masked() if _may_be_masked(made) else made
    if parse_error(found) is not None:
        found = _Masker(made, automagic=True).masked()
        if not is_known and parse_error(found) is not None:
            return _blank(text)
    return found


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


class _Masker:
    """Masks a text line by line. ``automagic``: magics without their sign count too."""

    def __init__(self, text: str, *, automagic: bool = False) -> None:
        self._lines: list[str] = _LINE.findall(text)
        self._automagic = automagic
        #: what is open at a line's end: brackets, a string's quote, a backslash
        self._depth, self._quote, self._joined = 0, "", False

    def masked(self) -> str:
        """The text with its masks."""
        lines, at, start = self._lines, 0, 0
        while at < len(lines):
            line = lines[at]
            if not (self._depth or self._quote or self._joined):
                start = at
                if (mask := self._mask(line)) is not None:
                    end = self._end(at)
                    lines[at:end] = [mask, *map(_blank, lines[at + 1 : end])]
                    at = end
                    continue
            code = self._scan(line)
            if code.endswith("?") and not (self._depth or self._quote):
                lines[start : at + 1] = [_nothing(lines[start]), *map(_blank, lines[start + 1 : at + 1])]
            at += 1
        return "".join(lines)

    def _mask(self, line: str) -> str | None:
        """The mask of a line that begins a statement; None if it seems to be Python."""
        sign = line.lstrip()[:1]
        if sign and sign in "!%?":
            return _run(line) or _nothing(line)
        if self._automagic:
            if _AUTOMAGIC.match(line) and parse_error(line.strip()) is not None:
                return _nothing(line)
            if sign and sign in ",;/":  # (calls and quotes what follows)
                return _nothing(line)
        if (assigned := _ASSIGNED.match(line)) is not None:
            # a name of which nothing is known
            return f"{assigned[1]}__{_blank(line[assigned.end(1) + 2 :])}"
        return None

    def _end(self, at: int) -> int:
        """The index of the line after a command, with continuation lines; or after the cell, for a magic whose cell is
        no Python."""
        lines, first = self._lines, at
        while at < len(lines) - 1 and lines[at].rstrip("\r\n").endswith("\\"):
            at += 1
        magic = _CELL_MAGIC.match(lines[first])
        if magic is not None and magic[1] in _OF_OTHERS:
            while at < len(lines) - 1 and _BEGINS_CELL.match(lines[at + 1]) is None:
                at += 1
        return at + 1

    def _scan(self, line: str) -> str:
        """Track the brackets and strings of a line; returns its code without a trailing comment."""
        position, self._joined = 0, False
        while position < len(line):
            if self._quote:
                closed = _CLOSED[self._quote].match(line, position)
                if closed is None:
                    if len(self._quote) == 1 and not line.rstrip("\r\n").endswith("\\"):
                        self._quote = ""
                    return ""
                self._quote, position = "", closed.end()
                continue
            part = _PART.search(line, position)
            if part is None:
                break
            if part.lastgroup == "comment":
                return line[: part.start()].rstrip()
            position = part.end()
            if part.lastgroup == "quote":
                self._quote = part[0]
            elif part.lastgroup == "joined":
                self._joined = True
            else:
                self._depth = self._depth + 1 if part.lastgroup == "open" else max(self._depth - 1, 0)
        return line.rstrip()


def _run(line: str) -> str | None:
    """``%time loss = step()`` as an ``if`` statement at the same position."""
    found = _RUNS.match(line)
    if found is None:
        return None
    made = f"{found[1]}if 1:{' ' * (len(found[2]) - 5)}{line[found.end() :]}"
    return made if parse_error(made.strip()) is None else None


def _nothing(line: str) -> str:
    """A no-op statement of the same length; blanks if none is needed."""
    indent = line[: len(line) - len(line.lstrip(" \t\f"))]
    blank = _blank(line[len(indent) :])
    return f"{indent}0{blank[1:]}" if indent and blank.strip("\r\n") else _blank(line)
