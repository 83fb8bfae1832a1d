"""How deeply a text nests, bounded before it is parsed.

libcst's native parser recurses without a guard: about 10 KB of C stack for each bracket, call or
comprehension, 2.5 KB for each operator of a chain. On 5,000 nested calls it kills the process.
"""

from __future__ import annotations

import re

#: CPython's own tokenizer refuses more brackets than this ("too many nested parentheses").
MAX_BRACKETS = 200
#: All that nests in one expression: brackets, operators of a chain, attributes, lambdas. libcst takes time
#: quadratic in it, and every later stage recurses as deeply.
MAX_DEPTH = 500
#: ``elif`` nests as well: each is an If in the orelse of the one before.
MAX_ELIFS = 500

_TOKEN = re.compile(
    r"""(?P<string>\"{3}(?:[^\\"]|\\.|\"(?!\"\"))*\"{3}|'{3}(?:[^\\']|\\.|'(?!''))*'{3}"""
    r"""|\"(?:[^\\\n"]|\\.)*\"|'(?:[^\\\n']|\\.)*')"""
    r"""|\#[^\n]*|\\\n|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<newline>\n)|(?P<colon>:)"""
    r"""|(?P<lambda>\blambda\b)|(?P<link>[.]|[-+*/%@&|^~<>=!]+|\b(?:not|if|and|or|in|is|await|yield|from)\b)""",
    re.DOTALL,
)


def depth(text: str) -> tuple[int, int]:
    """An upper bound of what nests in the expressions of ``text``: (brackets, everything).

    ``text`` has \\n newlines. Indentation is not counted: libcst itself refuses more than 100 levels.
    """
    counts = [0]
    lambdas = [0]
    total = deepest = brackets = 0
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        if kind is None:
            continue
        if kind == "open":
            counts.append(1)
            lambdas.append(0)
            total += 1
            brackets = max(brackets, len(counts) - 1)
        elif kind == "close":
            if len(counts) > 1:
                total -= counts.pop()
                lambdas.pop()
                # A call or subscript that follows nests around what came before it.
                counts[-1] += 1
                total += 1
        elif kind == "newline":
            if len(counts) == 1:
                total = counts[0] = lambdas[0] = 0
        elif kind == "comma":
            if not lambdas[-1]:
                total -= counts[-1]
                counts[-1] = 0
        elif kind == "colon":
            lambdas[-1] -= lambdas[-1] > 0
        else:
            links = 1
            if kind == "lambda":
                lambdas[-1] += 1
            elif kind == "string":
                links += match.group().count("{")
            elif kind == "link":
                # Only signs can stand side by side as operators of their own: `--x`, `~~x`.
                links = len(match.group())
            counts[-1] += links
            total += links
        deepest = max(deepest, total)
    return brackets, deepest
