"""Files in the grammar of Python 2, or of Python before 3.7, rewritten to today's grammar.

Every change keeps the offset of each character: positions in the analysed text are positions in the file. (Fixes are
not applied to such files, as they would be in today's grammar.)
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
import warnings

from memlint.patterns import lazy_pattern

#: said of a file in an older grammar, behind what is wrong with it today
CHECKED_AS_OLD = " (it was checked as Python 2 code, or as code of Python 3 before 3.7)"

#: text that no newer Python parses as code: `async` as a name, a second word in ``except``; and a word after a former
#: statement
_OLD = tuple(
    map(
        re.compile,
        (
            r"async[ \t]*=(?!=)",
            r"\.async\b",
            r"except[ \t][^\n:#]*,[ \t]*\w+[ \t]*:",
            r"raise[ \t]+[\w.]+[ \t]*,",
            r"exec[ \t]*[\"']",
        ),
    )
)
_PRINT = lazy_pattern(r"print(?:[ \t]*[\"']|[ \t]+\w)")
_STATEMENTS = frozenset({"print", "exec"})
#: a name of the same length for one that is a keyword now
_ASYNC = "sync_"
#: words that continue an expression: ``print if x else y`` refers to the function
_GOES_ON = frozenset({"if", "else", "in", "is", "and", "or", "for"})
_LAYOUT = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING})
_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")


def modern(text: str) -> str:
    """The text in today's grammar, of the same length; unchanged if it is new, or too unclear."""
    if not _seems_old(text) or _parses(text):
        return text
    try:
        changed = _changed(text)
    except (tokenize.TokenError, SyntaxError, IndexError):
        return text
    return changed if _parses(changed) else text


def _seems_old(text: str) -> bool:
    """Whether a text may contain old grammar, possibly in a comment."""
    if any(each.search(text) for each in _OLD):
        return True
    for found in _PRINT.finditer(text):
        before = text[text.rfind("\n", 0, found.start()) + 1 : found.start()].rstrip()
        if not before or before[-1] in ":;":
            return True
    return False


def _parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _changed(text: str) -> str:
    lines = [list(line) for line in io.StringIO(text, newline="")]
    tokens = list(tokenize.generate_tokens(io.StringIO(text, newline="").readline))

    def put(place: tuple[int, int], new: str) -> None:
        row, column = place
        lines[row - 1][column : column + len(new)] = new

    def text_of(token: tokenize.TokenInfo, after: tokenize.TokenInfo) -> str:
        return token.string + (after.string if token.string == "<" and token.end == after.start else "")

    depth, first, header = 0, True, ""
    for number, token in enumerate(tokens[:-1]):
        after = tokens[number + 1]
        if token.type in _LAYOUT:
            continue
        if token.type == tokenize.NEWLINE:
            first, header = True, ""
            continue
        if token.string in _OPEN:
            depth += 1
        elif token.string in _CLOSE:
            depth -= 1
        if first:
            header = token.string
        if token.string == "async" and (after.string == "=" or (number and tokens[number - 1].string == ".")):
            put(token.start, _ASYNC)
        elif first and token.string in _STATEMENTS and token.end[0] == after.start[0] and _is_value(after):
            gap = after.start[1] > token.end[1]
            put(token.end if gap else (token.end[0], token.end[1] - 1), ",")
        elif token.string == "," and not depth and header in ("except", "raise"):
            put(token.start, "|")
        elif text_of(token, after) == "<>":
            put(token.start, "!=")
        elif token.type == tokenize.NUMBER and after.start == token.end:
            if after.string in ("L", "l"):
                put(after.start, " ")
            elif token.string == "0" and after.type == tokenize.NUMBER:
                put(after.start, "o" if len(after.string) > 1 else " ")
        elif token.string.lower() == "ur" and after.type == tokenize.STRING and after.start == token.end:
            put(token.start, " ")
        first = token.string in (":", ";") and not depth
    return "".join("".join(line) for line in lines)


def _is_value(token: tokenize.TokenInfo) -> bool:
    """Whether the token after a name can only be the argument of a statement."""
    if token.type == tokenize.NAME:
        return token.string not in _GOES_ON and (not keyword.iskeyword(token.string) or token.string in _PREFIXES)
    return token.type in (tokenize.STRING, tokenize.NUMBER) or token.string in ("{", "~")


#: keywords that an expression may begin with
_PREFIXES = frozenset({"not", "None", "True", "False", "lambda"})
