"""Probes in a program's tree: each at its place, and the program none the wiser."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
import textwrap
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from memlint.measure.plan import LoopPlan, SitePlan
from memlint.measure.probing import instrument

#: methods that are named like those of containers, and give what is kept: tensors and modules have such
SUM = "class Sum(int):\n    def add(self, n): return int(self) + n\n    put = update = add\n"


class Seen:
    """What the probes of a run reported, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    @property
    def values(self) -> list[Any]:
        return [call[2] for call in self.calls if call[0] in ("next", "value")]

    def of(self, number: int) -> list[Any]:
        return [call[2] for call in self.calls if call[0] in ("next", "value") and call[1] == number]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seen]:
    found = Seen()

    def value(name: str) -> Any:
        def probe(number: int, value: Any) -> Any:
            found.calls.append((name, number, value))
            return value

        return probe

    monkeypatch.setattr(builtins, instrument.NEXT, value("next"), raising=False)
    monkeypatch.setattr(builtins, instrument.VALUE, value("value"), raising=False)

    def whole(number: int, _: None, value: Any) -> Any:
        found.calls.append(("whole", number))
        return value

    monkeypatch.setattr(builtins, instrument.BEGUN, lambda number: found.calls.append(("begun", number)), raising=False)
    monkeypatch.setattr(builtins, instrument.WHOLE, whole, raising=False)
    for name, attribute in (("enter", instrument.ENTER), ("loop", instrument.LOOP), ("exit", instrument.EXIT)):
        monkeypatch.setattr(
            builtins, attribute, lambda *given, _name=name: found.calls.append((_name, *given)), raising=False
        )
    yield found


def _site(text: str, part: str, number: int = 1, *, nth: int = 0) -> SitePlan:
    """The site of the ``nth`` occurrence of ``part``, counted as the linter counts."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(part, at + 1)
    start, end = text[:at], text[: at + len(part)]
    return SitePlan(
        number,
        start.count("\n") + 1,
        len(start) - start.rfind("\n"),
        end.count("\n") + 1,
        len(end) - end.rfind("\n"),
    )


def _run(text: str, *sites: SitePlan, loops: tuple[LoopPlan, ...] = ()) -> dict[str, Any]:
    tree, missing = instrument.parse(text, "p.py", sites, loops)
    assert missing == []
    names: dict[str, Any] = {"__name__": "p"}
    exec(compile(tree, "p.py", "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize(
    ("text", "part", "values"),
    [
        ("kept = []\nkept.append(1 + 1)\n", "kept.append(1 + 1)", [2, None]),
        ("kept = 1\nkept += 2\n", "kept += 2", [2]),
        ("kept: int = 1 + 2\n", "kept: int = 1 + 2", [3]),
        ("a = b = 1 + 2\n", "a = b = 1 + 2", [3]),
        ("kept = [x * x for x in range(3)]\n", "kept = [x * x for x in range(3)]", [0, 1, 4]),
        ("kept = [x * x for x in range(3)]\n", "[x * x for x in range(3)]", [0, 1, 4]),
        ("kept = {x: -x for x in range(2)}\n", "kept = {x: -x for x in range(2)}", [0, -1]),
        ("kept = []\nkeep = lambda v: kept.append(v)\nkeep(5)\n", "kept.append(v)", [5, None]),
        ("kept = []\nkept.extend([*range(2)])\n", "kept.extend([*range(2)])", [[0, 1], None]),
        ("kept = []\nkept.append(5) if not kept else None\n", "kept.append(5)", [5, None]),
        ("kept = []\nkept or kept.append(5)\n", "kept.append(5)", [5, None]),
        ("kept = []\nwhen = True\nwhen and (None if kept else print(5, end=''))\n", "print(5, end='')", [5, "", None]),
        ("kept = []\n[kept.append(x) for x in (5, 6)]\n", "kept.append(x)", [5, None, 6, None]),
        ("kept = set()\n[kept.add(x) for x in (5, 6)]\n", "kept.add(x)", [5, None, 6, None]),
        ("kept = []\n_ = kept.append(5)\n", "kept.append(5)", [5, None]),
        (f"{SUM}x = Sum.add(1, 2)\n", "Sum.add(1, 2)", [3]),
        (f"{SUM}x = 1\nx = Sum.add(x, 2)\n", "Sum.add(x, 2)", [3]),
        (f"{SUM}kept = {{}}\nkept[0] = Sum(1).add(2)\n", "Sum(1).add(2)", [3]),
        (f"{SUM}kept = []\nkept.append(Sum(1).update(2))\n", "Sum(1).update(2)", [3]),
        (f"{SUM}def f(): return Sum(1).put(2)\nf()\n", "Sum(1).put(2)", [3]),
        (f"{SUM}kept = [Sum(n).add(2) for n in (1, 2)]\n", "Sum(n).add(2)", [3, 4]),
        ("x = max(1, 2) or min(3, 4)\n", "max(1, 2)", [2]),
        ("print(*[1, 2], sep='')\n", "print(*[1, 2], sep='')", [[1, 2], "", None]),
        ("def f(*a): return a\nx = f(*(1, 2))\n", "*(1, 2)", [(1, 2)]),
        ("if (n := 1 + 2) > 2:\n    pass\n", "n := 1 + 2", [3]),
        ("def f():\n    return 4\nf()\n", "return 4", [4]),
        ("def f():\n    x = yield 4\nnext(f())\n", "yield 4", [4]),
        ("kept = []\n'ü€😀'; kept.append('ü')\n", "kept.append('ü')", ["ü", None]),
        ("x = (1 +\n     2)\n", "x = (1 +\n     2)", [3]),
        ("match [1, 2]:\n    case [a, b]:\n        x = a + b\n", "x = a + b", [3]),
        ("class A:\n    __x = 1 + 1\n", "__x = 1 + 1", [2]),
        ("class A:\n    def f(self):\n        self.__x = 2\nA().f()\n", "self.__x = 2", [2]),
        ("def name(n):\n    return lambda f: f\n@name(1 + 1)\ndef f():\n    pass\nf()\n", "name(1 + 1)", [()]),
        ("import decimal\nwith decimal.localcontext() as x:\n    y = len('a')\n", "len('a')", [1]),
        ("x = f'{1 + 1} {2}'\n", "x = f'{1 + 1} {2}'", ["2 2"]),
        ("x = [1, 2, 3][0:2]\n", "x = [1, 2, 3][0:2]", [[1, 2]]),
        ("from __future__ import annotations\nx: int = 1 + 1\n", "x: int = 1 + 1", [2]),
        ("x = 1\n\x0c\ny = x + 1\n", "y = x + 1", [2]),
        ("x = 1\r\ny = x + 1\r\n", "y = x + 1", [2]),
        ("#\n# -*- coding: latin-1 -*-\ny = 'é' * 2\n", "y = 'é' * 2", ["éé"]),
    ],
)
def test_a_site_reports_what_its_statement_keeps(seen: Seen, text: str, part: str, values: list[Any]) -> None:
    _run(text, _site(text, part))
    assert seen.values == values


def test_a_hit_begins_once_and_gets_its_further_values(seen: Seen) -> None:
    text = "def keep(a, b=0):\n    pass\nkeep(1, b=2)\nkeep(3)\n"
    _run(text, _site(text, "keep(1, b=2)"), _site(text, "keep(3)", 2))
    assert seen.calls == [
        ("next", 1, 1),
        ("value", 1, 2),
        ("value", 1, None),
        ("next", 2, 3),
        ("value", 2, None),
    ]


@pytest.mark.parametrize(
    ("text", "part", "calls"),
    [
        ("a = [x * 2 for x in range(2)]", "x * 2", "begun next next whole"),
        ("a = {x: x * 2 for x in range(2)}", "x * 2", "begun next next whole"),
        ("a = [[x, y] for x in range(2) for y in range(1)]", "[x, y]", "begun next next whole"),
        ("a = [[x * 2 for x in range(2)] for _ in range(2)]", "x * 2", "begun next next whole begun next next whole"),
        ("a = list(x * 2 for x in range(2))", "x * 2", "next next"),
        ("a = [f(lambda: x) for f in (lambda g: g(),) for x in (1,)]", "x", "next"),
        ("a = [x for x in [1, 2]]", "[1, 2]", "next"),
    ],
)
def test_a_comprehension_is_a_run_of_a_loop_for_its_elements(seen: Seen, text: str, part: str, calls: str) -> None:
    _run(text, _site(text, part))
    assert " ".join(call[0] for call in seen.calls) == calls


CACHED = """
import functools

class Model:
    @functools.lru_cache(maxsize=None)
    def features(self, x, *more, scale=1, **rest):
        "Says what it does."
        def inner():
            return None
        if x:
            return (x, scale)
        return

    @functools.cache
    def plain(self): return "plain"

one = Model()
results = [one.features(3), one.features(3), one.features(0, 7, other=9), one.plain()]
"""


def test_a_definition_is_hit_by_the_calls_that_run_it_with_what_it_is_given_and_gives(seen: Seen) -> None:
    sites = [_site(CACHED, "functools.lru_cache(maxsize=None)", 1), _site(CACHED, "functools.cache", 2)]
    names = _run(CACHED, *sites)
    assert names["results"] == [(3, 1), (3, 1), None, "plain"]
    one = names["one"]
    assert seen.of(1) == [(one, 3, (), 1, {}), (3, 1), (one, 0, (7,), 1, {"other": 9})]
    assert seen.of(2) == [(one,), "plain"]
    assert names["Model"].features.__doc__ == "Says what it does."
    assert [call[0] for call in seen.calls if call[0] in ("next", "value")] == [
        "next",
        "value",
        "next",
        "next",
        "value",
    ]


def test_two_sites_in_a_line_and_two_at_a_place_are_told_apart(seen: Seen) -> None:
    text = "a = 1 + 1; b = 2 + 2\n"
    both = _site(text, "b = 2 + 2", 3)
    _run(text, _site(text, "a = 1 + 1"), _site(text, "b = 2 + 2", 2), both)
    assert (seen.of(1), seen.of(2), seen.of(3)) == ([2], [4], [4])


def test_coroutines_report_what_they_awaited(seen: Seen) -> None:
    text = textwrap.dedent(
        """
        import asyncio
        kept = []
        async def make(n):
            await asyncio.sleep(0)
            return n
        async def numbers():
            for n in range(2):
                yield n
        async def main():
            async for n in numbers():
                x = await make(n)
                kept.append(await make(n + 10))
            async with asyncio.Lock():
                pass
        asyncio.run(main())
        """
    )
    loop = _site(text, "async for n in numbers()", 9)
    _run(
        text,
        _site(text, "x = await make(n)"),
        _site(text, "make(n + 10)", 2),
        loops=(LoopPlan(9, loop.line, loop.column),),
    )
    assert (seen.of(1), seen.of(2)) == ([0, 1], [10, 11])
    assert [call for call in seen.calls if call[1] == 9] == [
        ("enter", 9, ()),
        ("loop", 9),
        ("loop", 9),
        ("exit", 9),
    ]


def test_loops_say_which_loops_of_their_function_they_stand_in(seen: Seen) -> None:
    text = textwrap.dedent(
        """
        for a in range(1):
            while a < 1:
                a += 1
            else:
                pass
            def f():
                for b in range(1):
                    break
            f()
        """
    )
    places = [_site(text, part, number) for number, part in enumerate(("for a", "while a", "for b"), 1)]
    _run(text, loops=tuple(LoopPlan(place.id, place.line, place.column) for place in places))
    assert seen.calls == [
        ("enter", 1, ()),
        ("loop", 1),
        ("enter", 2, (1,)),
        ("loop", 2),
        ("exit", 2),
        ("enter", 3, ()),
        ("loop", 3),
        ("exit", 3),
        ("exit", 1),
    ]


def test_what_is_at_no_statement_is_missing_and_the_rest_is_probed() -> None:
    text = "x = 1\nmatch x:\n    case 1:\n        pass\ny = 2\n"
    sites = [_site(text, "1", 1, nth=1), _site(text, "y", 2), SitePlan(3, 99, 1, 99, 5), _site(text, "y = 2", 4)]
    tree, missing = instrument.parse(text, "p.py", sites, [LoopPlan(5, 1, 1)])
    compile(tree, "p.py", "exec")
    assert missing == [1, 3, 5]


def test_a_program_has_its_own_lines_in_tracebacks_and_sources(
    seen: Seen, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = textwrap.dedent(
        """
        kept = []

        def work(x):
            for n in range(3):
                kept.append(
                    n / x
                )

        class Meter:
            def update(self, value):
                self.value = value
        """
    )
    path = tmp_path / "worker.py"
    path.write_text(text)
    statement = "kept.append(\n            n / x\n        )"
    loop = _site(text, "for n in range(3)")
    tree, missing = instrument.parse(text, str(path), [_site(text, statement)], [LoopPlan(2, loop.line, loop.column)])
    assert missing == []
    plain: dict[str, Any] = {"__name__": "worker"}
    probed: dict[str, Any] = {"__name__": "worker"}
    exec(compile(text, str(path), "exec"), plain)
    exec(compile(tree, str(path), "exec"), probed)
    linecache.checkcache()
    assert inspect.getsource(probed["work"]) == inspect.getsource(plain["work"])
    assert _told(probed["work"]) == _told(plain["work"])
    assert list(probed) == list(plain)
    if sys.version_info >= (3, 13):
        assert probed["Meter"].__firstlineno__ == plain["Meter"].__firstlineno__


def _told(work: Any) -> str:
    try:
        work(0)
    except ZeroDivisionError as error:
        return "".join(traceback.format_exception(error.with_traceback(error.__traceback__.tb_next)))  # type: ignore[union-attr]
    raise AssertionError


def test_docstrings_and_future_imports_stay_first() -> None:
    text = '"""Says."""\nfrom __future__ import annotations\nfor x in ():\n    pass\n'
    tree, _ = instrument.parse(text, "p.py", (), [LoopPlan(1, 3, 1)])
    assert ast.get_docstring(tree) == "Says."
    compile(tree, "p.py", "exec")
