"""A toy analysis and toy rules, so that the engine and the command line are tested without the real ones.

In a toy project, the statement ``leak(…)`` is an event that rule MEM901 (a warning) reports; ``burst(…)`` makes
MEM902 (an error) and ``whisper(…)`` MEM903 (a note of low confidence); MEM904 is a preview rule on ``leak(…)``.
"""

from __future__ import annotations

import ast
import gc
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from memlint.analysis.domain.events import Event, Reached, Site
from memlint.finding import Span
from memlint.frontend.problem import SyntaxProblem
from memlint.project import Project

_RULE = """
from memlint.sdk import Event, Growth, Meta, Report, Step

META = Meta(code="{code}", name="{name}", summary="Toy.", severity="{severity}", preview={preview})


def check(facts):
    for event in facts.of(Event):
        if event.function == "{call}":
            yield Report(
                site=event.site,
                message="This leaks.",
                help="Do not leak.",
                severity="{severity}",
                confidence="{confidence}",
                growth=Growth("host", "per-iteration"),
                trace=(Step(event.site, "it begins here"),),
            )
"""

_TOYS = (
    ("MEM901", "toy-leak", "leak", "warning", "high", False),
    ("MEM902", "toy-burst", "burst", "error", "high", False),
    ("MEM903", "toy-whisper", "whisper", "note", "low", False),
    ("MEM904", "toy-preview", "leak", "warning", "high", True),
)


def pytest_collection_finish() -> None:
    """A run that lints in parts collects garbage after each: that need not look through all tests every time."""
    gc.collect()
    gc.freeze()


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("torch") is not None and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")


@pytest.fixture(autouse=True, scope="session")
def _cache_elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test leaves a cache in a checkout, nor meets one of an earlier run of the tests; rules that a test writes may
    run, and no report is annotated because the tests run in a job of GitHub's. Programs with torch compute little: a
    thread for each core would wait for more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GITHUB_ACTIONS", raising=False)
        patch.setenv("MEMLINT_CACHE_DIR", str(tmp_path_factory.mktemp("caches")))
        patch.setenv("MEMLINT_LOCAL_RULES", "1")
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


class ToyAnalysis:
    """Events at the calls of leak, burst and whisper that are statements."""

    def __init__(self, project: Project) -> None:
        self.events: dict[str, tuple[Event, ...]] = {}
        self.failures: list[tuple[str, SyntaxProblem]] = []
        self.remarks = ("toy remark",)
        self.errors: dict[tuple[str, str], Exception] = {}
        self.failed: dict[tuple[str, str], Exception] = {}
        self._nodes: dict[Site, ast.stmt] = {}
        self._texts: dict[str, str] = {}
        for path in project.linted:
            text = self._texts[path] = project.sources[path].text
            try:
                self.events[path] = tuple(self._events(path, ast.parse(text)))
            except SyntaxError as error:
                self.failures.append((path, SyntaxProblem(error.msg, error.lineno or 1, error.offset or 1)))

    def _events(self, path: str, tree: ast.Module) -> Iterator[Event]:
        for node in ast.walk(tree):
            match node:
                case ast.Expr(value=ast.Call(func=ast.Name(id="leak" | "burst" | "whisper" as name))):
                    site = Site(path, 0, len(self._nodes))
                    self._nodes[site] = node
                    yield Event(site=site, function=name)

    def span(self, site: Site) -> Span:
        node = self._nodes[site]
        assert node.end_lineno is not None and node.end_col_offset is not None
        return Span(node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1)

    def extent(self, site: Site) -> Span:
        return self.span(site)

    def statement(self, site: Site) -> tuple[Span, str]:
        source = ast.get_source_segment(self._texts[site.path], self._nodes[site])
        assert source is not None
        return self.span(site), source

    def reach(self, site: Site) -> Reached:
        return Reached("used", "", site)

    def qualified_name(self, site: Site) -> str:
        return "toy"

    def keep(self) -> None:
        """Nothing is stored."""


class _ToyOptions(msgspec.Struct):
    fixes: object
    screen: bool
    jobs: int
    detectors: tuple[object, ...]
    progress: Callable[[str, int, int], None]
    only: frozenset[str] | None


@pytest.fixture
def toy(toy_of: Callable[..., Callable[..., Path]]) -> Callable[..., Path]:
    """Makes a project of the given files that the toy rules apply to, and goes there. ``config``: more of its table."""
    rules = {
        f"lint_rules/{code.lower()}_{name.replace('-', '_')}/rule.py": _RULE.format(
            code=code, name=name, call=call, severity=severity, confidence=confidence, preview=preview
        )
        for code, name, call, severity, confidence, preview in _TOYS
    }
    return toy_of(ToyAnalysis, rules)


@pytest.fixture
def toy_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Callable[..., Path]]:
    """Puts an analysis in place of the real one, and gives what makes projects with these rules (texts by path)."""

    def put(analysis: Callable[[Project], object], rules: dict[str, str]) -> Callable[..., Path]:
        monkeypatch.setattr("memlint.analysis.analyse", lambda project, options: analysis(project), raising=False)
        monkeypatch.setattr("memlint.analysis.AnalysisOptions", _ToyOptions, raising=False)
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        return lambda files, config="": make(rules, files, config)

    def make(rules: dict[str, str], files: dict[str, str | bytes], config: str) -> Path:
        root = tmp_path.resolve() / "project"
        table = f'[tool.memlint]\nrule-paths = ["lint_rules"]\nextend-exclude = ["lint_rules"]\n{config}\n'
        for path, text in {"pyproject.toml": table, **rules, **files}.items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text if isinstance(text, bytes) else text.encode())
        monkeypatch.chdir(root)
        return root

    return put
