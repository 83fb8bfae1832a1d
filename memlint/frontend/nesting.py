"""An upper bound of how deeply a text nests, before it is parsed.

libcst's native parser recurses without a limit: about 10 KB of C stack for each bracket, call or comprehension, 2.5 KB
for each operator of a chain. On 5,000 nested calls it kills the process.
"""

from __future__ import annotations

import re

from memlint.patterns import lazy_pattern

#: CPython's own tokenizer refuses more brackets than this ("too many nested parentheses").
MAX_BRACKETS = 200
#: The most that may nest in one expression: brackets, operators of a chain, attributes, lambdas. libcst takes time
#: quadratic in it, and every later stage recurses as deeply.
MAX_DEPTH = 500
#: ``elif`` nests as well: each is an If in the orelse of the one before. (CPython follows some 3,000 in one chain.)
MAX_ELIFS = 10_000

_STRING = (
    r'"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"{3}|\Z)'
    r"|'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:'{3}|\Z)"
    r'|"[^"\\\n]*(?:\\.[^"\\\n]*)*"'
    r"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'"
)
# A quote inside an f-string's braces can look like an unclosed string.
_BROKEN = r"""["'][^\n]*"""
_SKIPPED = r"\#[^\n]*|\\\n"
# Each match starts with a run of irrelevant characters, which is much faster than trying every token at each.
_LAYOUT = lazy_pattern(
    r"""[^"'\#\\()\[\]{}\n]*"""
    rf"(?:{_SKIPPED}|(?P<string>{_STRING})|(?P<flat>\([^()\[\]{{}}\"'\#\\]*\))|(?P<open>[(\[{{])|(?P<close>[)\]}}])"
    rf"|(?P<newline>\n[\n ]*)|(?P<broken>{_BROKEN})|.|\Z)",
    re.DOTALL,
)
_TOKEN = lazy_pattern(
    rf"{_SKIPPED}|(?P<string>{_STRING})|(?P<broken>{_BROKEN})|(?P<open>[(\[{{])|(?P<close>[)\]}}])|(?P<comma>,)|(?P<colon>:)"
    r"|(?P<lambda>\blambda\b)|(?P<link>[.]|[-+*/%@&|^~<>=!]+|\b(?:not|if|and|or|in|is|await|yield|from)\b)",
    re.DOTALL,
)
_SIGN = lazy_pattern(r"[-+~]")
_OPEN = lazy_pattern(r"[(\[{]")
#: What makes a string an f-string or t-string, right before its quote.
_PREFIX = lazy_pattern(r"(?<!\w)(?:[ft]r?|r[ft])\Z", re.IGNORECASE)
#: In an f-string: its braces, and all that may nest between them.
_PART = lazy_pattern(r"\{\{|\}\}|[^\w,:\"']")
#: A statement of fewer characters cannot nest too deeply, except by brackets.
_SHORT = 200


def depth(text: str) -> tuple[int, int]:
    """Upper bounds of the nesting in the expressions of ``text``: (of brackets, of everything).

    Lines of ``text`` end in line feeds. Statements of up to 200 characters count as 0 in the second. Indentation
    is not counted: libcst itself refuses more than 100 levels.
    """
    start = strings = level = brackets = deepest = 0
    for match in _LAYOUT.finditer(text):
        kind = match.lastgroup
        if kind == "newline":
            if level == 0:
                end = match.end()
                if end - start - strings > _SHORT:
                    deepest = max(deepest, _nested(text[start:end]))
                start, strings = end, 0
        elif kind == "flat":
            brackets = max(brackets, level + 1)
        elif kind == "open":
            level += 1
            brackets = max(brackets, level)
        elif kind == "close":
            level = max(level - 1, 0)
        elif kind == "string":
            nested = _formatted(text, match)
            brackets = max(brackets, level + nested)
            if not nested:
                strings += match.end("string") - match.start("string") - 1
        elif kind == "broken":
            level += len(_OPEN.findall(match["broken"]))
            brackets = max(brackets, level)
    if len(text) - start - strings > _SHORT:
        deepest = max(deepest, _nested(text[start:]))
    return brackets, deepest


def _formatted(text: str, match: re.Match[str]) -> int:
    """The nesting of a string's replacement expressions; 0 if it is not an f-string or t-string."""
    start = match.start("string")
    if not _PREFIX.search(text[max(start - 3, 0) : start]):
        return 0
    level = links = deepest = 0
    for part in _PART.findall(match["string"]):
        if part[0] == "{" and (level or part == "{"):
            level += len(part)
        elif part[0] == "}":
            level = max(level - len(part), 0)
        elif level:
            links += 1
        deepest = max(deepest, level + links)
        links = links if level else 0
    return deepest


#: Characters that are not part of a word.
_SIGNS = {ord(sign): None for sign in "!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~"}


def _nested(statement: str) -> int:
    """An upper bound of the nesting in one statement. Up to 200, the bound is by its signs and words alone."""
    if statement.isascii() and not _FORMATTED.search(statement):
        most = 2 * (len(statement) - len(statement.translate(_SIGNS))) + len(statement.split())
        if most <= _SHORT:
            return most
    return _links(statement)


_FORMATTED = lazy_pattern(r"""[fFtT][rR]?["']""")


def _links(text: str) -> int:
    """The nesting in one statement: the open brackets, each with the operators, dots and keywords before it."""
    counts = [0]
    lambdas = [0]
    total = deepest = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        if kind == "open":
            counts.append(1)
            lambdas.append(0)
            total += 1
        elif kind == "close":
            if len(counts) > 1:
                # a call or subscript nests around what precedes it
                total += 1 - counts.pop()
                lambdas.pop()
                counts[-1] += 1
        elif kind == "comma":
            if not lambdas[-1]:
                total -= counts[-1]
                counts[-1] = 0
        elif kind == "colon":
            lambdas[-1] -= lambdas[-1] > 0
        else:
            # several signs in a row are several operators: `--x`, `~~x`
            links = 1 + len(_SIGN.findall(match[0][1:])) if kind == "link" else 1
            if kind == "lambda":
                lambdas[-1] += 1
            elif kind == "string":
                links += _formatted(text, match)
            elif kind == "broken":
                links += len(_PART.findall(match["broken"]))
            counts[-1] += links
            total += links
        deepest = max(deepest, total)
    return deepest
