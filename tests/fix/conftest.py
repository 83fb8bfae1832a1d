"""A toy rule that plans mends, so that applying them is tested without the real rules.

The statement ``mend(SAFETY, TEXT)`` is a finding of MEM911 (a warning) whose fix writes TEXT in its place; SAFETY is
``safe``, ``unsafe`` or ``display``. ``mend(SAFETY, TEXT, NAME)`` replaces each ``twin(NAME)``, ``bare(NAME)`` and
``tail(NAME)`` of the project as well, by TEXT. ``bare()`` is a finding without a fix, ``spill()`` one of MEM912, and so
is ``tail()``, whose fix writes ``.done()`` behind it. ``cause(…)`` is as ``mend(…)``, but of MEM913, whose fixes come
first. An ``x.mend(…)`` is none of these, nor is what stands in a string.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memlint.analysis.domain.events import Event, Reached, Site
from memlint.finding import Span
from memlint.frontend.problem import SyntaxProblem
from memlint.project import Project

sys.path.insert(0, str(Path(__file__).parent))  # fixed_programs.py, under any import mode of pytest

_RULE = """
from memlint.sdk import After, Event, Growth, Meta, Plan, Replace, Report

META = Meta(code="{code}", name="{name}", summary="Toy.", severity="warning", fix_rank={rank})


def check(facts):
    for event in facts.of(Event):
        if event.function in {calls}:
            yield Report(
                site=event.site, message="This leaks.", help="", severity="warning", confidence="high",
                growth=Growth("host", "per-iteration"), fix=plan(event, facts),
            )


def plan(event, facts):
    if event.function == "tail":
        return Plan(title="be done", changes=(After(event.site, ".done()"),))
    if event.function == "scalar":
        return Plan(title="mend it", changes=(Replace(event.site, facts.scalar_fix + "()"),))
    if event.function not in ("mend", "cause"):
        return None
    safety, text = event.words[:2]
    changes = tuple(Replace(site, text) for site in (event.site, *event.twins))
    doubt = "it is a toy" if safety == "unsafe" else ""
    return Plan(title="mend it", changes=changes, doubt=doubt, display=safety == "display")
"""


class ToyEvent(Event, frozen=True):
    """``words``: the arguments of the call, which are strings; ``twins``: the places that its name means."""

    words: tuple[str, ...] = ()
    twins: tuple[Site, ...] = ()


class ToyAnalysis:
    """Events at the calls of mend, bare and tail that are statements."""

    def __init__(self, project: Project) -> None:
        self.events: dict[str, tuple[Event, ...]] = {}
        self.failures: list[tuple[str, SyntaxProblem]] = []
        self.remarks = ()
        self.errors: dict[tuple[str, str], Exception] = {}
        self.failed: dict[tuple[str, str], Exception] = {}
        self._nodes: dict[Site, ast.Expr] = {}
        self._lines: dict[str, list[str]] = {}
        trees = {}
        for path in project.linted:
            text = project.sources[path].text.replace("\r\n", "\n").replace("\r", "\n")
            self._lines[path] = text.split("\n")
            try:
                trees[path] = ast.parse(text)
            except SyntaxError as error:
                self.failures.append((path, SyntaxProblem(error.msg, error.lineno or 1, error.offset or 1)))
        calls = [(path, *call) for path, tree in trees.items() for call in self._calls(path, tree)]
        for path in trees:
            self.events[path] = tuple(
                ToyEvent(
                    site=site,
                    function=name,
                    words=words,
                    twins=tuple(there for _, there, _, named in twins(calls) if set(named) & set(words[2:])),
                )
                for where, site, name, words in calls
                if where == path and name != "twin"
            )

    def _calls(self, path: str, tree: ast.Module) -> Iterator[tuple[Site, str, tuple[str, ...]]]:
        for node in ast.walk(tree):
            match node:
                case ast.Expr(
                    value=ast.Call(
                        func=ast.Name(id="mend" | "bare" | "tail" | "twin" | "scalar" | "spill" | "cause" as name)
                    )
                ):
                    assert isinstance(node.value, ast.Call)
                    site = Site(path, 0, len(self._nodes))
                    self._nodes[site] = node
                    yield site, name, tuple(one.value for one in node.value.args if isinstance(one, ast.Constant))

    def span(self, site: Site) -> Span:
        node = self._nodes[site]
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._column(site.path, node.lineno, node.col_offset)
        return Span(node.lineno, start, node.end_lineno, self._column(site.path, node.end_lineno, node.end_col_offset))

    def _column(self, path: str, line: int, offset: int) -> int:
        return len(self._lines[path][line - 1].encode()[:offset].decode()) + 1

    extent = span

    def statement(self, site: Site) -> tuple[Span, str]:
        return self.span(site), ast.unparse(self._nodes[site])

    def reach(self, site: Site) -> Reached:
        return Reached("used", "", site)

    def qualified_name(self, site: Site) -> str:
        return "toy"

    def keep(self) -> None:
        """Nothing is stored."""


def twins(calls: list) -> list:
    return [call for call in calls if call[2] in ("twin", "bare", "tail")]


@pytest.fixture
def toy(toy_of: Callable[..., Callable[..., Path]]) -> Callable[..., Path]:
    """Makes a project of the given files that the toy rules apply to, and goes there. ``config``: more of its table."""
    rules = (
        ("MEM911", "toy-mend", ("mend", "bare"), 1),
        ("MEM912", "toy-tail", ("tail", "scalar", "spill"), 1),
        ("MEM913", "toy-cause", ("cause",), 0),
    )
    return toy_of(
        ToyAnalysis,
        {
            f"lint_rules/{code.lower()}_{name.replace('-', '_')}/rule.py": _RULE.format(
                code=code, name=name, calls=calls, rank=rank
            )
            for code, name, calls, rank in rules
        },
    )
