"""Deep nesting either works or is a SyntaxProblem; it never ends the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from memlint.frontend.index import index
from memlint.frontend.libcst_spans import libcst_spans
from memlint.frontend.lower import SyntaxProblem, lower
from memlint.frontend.nesting import depth
from memlint.frontend.units import split

NESTED = {
    "parentheses": lambda n: "(" * n + "a" + ")" * n,
    "lists": lambda n: "[" * n + "a" + "]" * n,
    "dicts": lambda n: "{1: " * n + "a" + "}" * n,
    "calls": lambda n: "f(" * n + "a" + ")" * n,
    "comprehensions": lambda n: "[a for a in " * n + "a" + "]" * n,
    "f-strings": lambda n: 'f"{' * n + "a" + '}"' * n,
    "sums": lambda n: "+".join("a" * n),
    "powers": lambda n: "**".join("a" * n),
    "comparisons": lambda n: " in ".join("a" * n),
    "conjunctions": lambda n: " and ".join("a" * n),
    "signs": lambda n: "-" * n + "a",
    "negations": lambda n: "not " * n + "a",
    "attributes": lambda n: "a" + ".b" * n,
    "call chains": lambda n: "a" + ".b()" * n,
    "conditions": lambda n: "a if b else " * n + "a",
    "lambdas": lambda n: "lambda a, b: " * n + "a",
    "strings": lambda n: " ".join(["'a'"] * n),
    "elifs": lambda n: "if a: b\n" + "elif a: b\n" * n,
    "indentation": lambda n: "".join(" " * i + "if a:\n" for i in range(n)) + " " * n + "b",
}


@pytest.mark.parametrize("name", sorted(set(NESTED) - {"f-strings"}))
def test_ninety_levels_work(name):
    for unit in split(NESTED[name](90)):
        assert len(libcst_spans(unit)) == lower(unit).count > 1


@pytest.mark.parametrize("name", sorted(set(NESTED) - {"indentation", "elifs", "comparisons", "strings", "f-strings"}))
def test_a_problem_at_five_thousand_levels(name):
    with pytest.raises(SyntaxProblem, match="too deeply nested"):
        lower(split(NESTED[name](5000))[0])


@pytest.mark.parametrize("name", ["sums", "attributes", "elifs", "conditions", "comparisons"])
def test_chains_of_four_hundred_work(name):
    unit = split(NESTED[name](400))[0]
    assert len(libcst_spans(unit)) == lower(unit).count > 400


@pytest.mark.parametrize("name", sorted(set(NESTED) - {"indentation", "elifs", "strings", "f-strings"}))
@pytest.mark.parametrize("wrap", ['f"{' + "%s" + '}"', """f"{'"'}" + %s""", "x = 'a' 'b\\\n' + %s"])
def test_deep_expressions_are_found_where_strings_hide_them(name, wrap):
    assert max(depth(wrap % NESTED[name](5000))) > 500


@pytest.mark.slow
@pytest.mark.parametrize("name", NESTED)
def test_the_process_survives(name):
    code = (
        "import sys\n"
        "from memlint.frontend.lower import SyntaxProblem, lower\n"
        "from memlint.frontend.libcst_spans import libcst_spans\n"
        "from memlint.frontend.units import split\n"
        "text = sys.stdin.read()\n"
        "try:\n"
        "    [(lower(unit), libcst_spans(unit)) for unit in split(text)]\n"
        "except SyntaxProblem:\n"
        "    pass\n"
    )
    for levels in (195, 300, 1000, 5000):
        text = NESTED[name](min(levels, 1000) if name == "indentation" else levels)
        done = subprocess.run([sys.executable, "-c", code], input=text, text=True, capture_output=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "text",
    [
        "x = {" + "'k': torch.nn.functional.x(lambda a, b: 1),\n" * 2000 + "}\n",
        "x = '''" + "{" * 2000 + "'''\n",
        "x = f'''" + "{a}{{ b: c; d.e(f) }}\n" * 2000 + "'''\n",
        # (the end of a call's name is no prefix)
        "x = dedent('''" + "@article{key, title = {{A}},\n" * 300 + "''')\n",
        "x = get('" + "{" * 300 + "')\n",
        "x = (" + "# (\n" * 2000 + "1)\n",
        "x = '('\n" * 2000,
        "x = a.b(c) + d[e]\n" * 2000,
        "x = [" + "-1, " * 2000 + "]\n",
    ],
)
def test_long_is_not_deep(text):
    brackets, everything = depth(text)
    assert brackets < 10 and everything < 30
    assert index(text).complete


@pytest.mark.parametrize(
    "text", ["'''" + "a" * 50_000, "(" * 50_000, "'" * 50_001, "a" * 50_000, "\\" * 50_000, '"\\' * 25_000]
)
def test_the_bound_is_found_in_linear_time(text):
    depth(text)
