"""The layers of the analysis: what may import what, no cycles, and files that can be read at one sitting."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "memlint"
ANALYSIS = PACKAGE / "analysis"
#: each may import those before it
LAYERS = (
    *("syntax", "index", "reach", "domain", "transfer", "calls", "facts", "demand", "safety", "judge", "detectors"),
    *("driver", "explained"),
)
MAX_LINES, MAX_FILES, MAX_DOCUMENTED = 400, 25, 15


@functools.cache
def modules() -> dict[str, Path]:
    """Each module of the package by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What runs as imports, wherever it stands: a module, and a name of it ("" for none)."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue  # for annotations alone
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        yield from imports(node)


@functools.cache
def imported(name: str) -> frozenset[str]:
    """The modules of the package that a module imports."""
    tree = ast.parse(modules()[name].read_text("utf-8"))
    names = ((module, f"{module}.{member}") for module, member in imports(tree))
    targets = (longer if longer in modules() else module for module, longer in names)
    return frozenset(target for target in targets if target in modules() and target != name)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_those_below_it_alone(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    wrong = [
        f"{name} imports {target}"
        for name in modules()
        if name.startswith(f"memlint.analysis.{layer}.")
        for target in imported(name)
        if target.startswith(tuple(f"memlint.analysis.{other}." for other in above))
    ]
    assert wrong == []


def test_every_package_of_the_analysis_is_a_layer() -> None:
    assert {path.name for path in ANALYSIS.iterdir() if (path / "__init__.py").is_file()} == set(LAYERS)


def test_no_modules_import_each_other_in_a_circle() -> None:
    """What imports nothing that is left is taken away, again and again: what stays is a circle, and those who import
    it. (A package's `__init__` gives what its modules have, and is asked for its version by them.)"""
    left = {name: set(imported(name)) for name, path in modules().items() if path.name != "__init__.py"}
    while True:
        done = [name for name, targets in left.items() if not targets & left.keys()]
        if not done:
            break
        for name in done:
            del left[name]
    assert sorted(left) == []


@pytest.mark.parametrize("path", sorted(ANALYSIS.rglob("*.py")), ids=lambda path: str(path.relative_to(ANALYSIS)))
def test_a_file_can_be_read_at_one_sitting(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= MAX_LINES


@pytest.mark.parametrize(
    "init", sorted(ANALYSIS.rglob("__init__.py")), ids=lambda init: str(init.parent.relative_to(PACKAGE))
)
def test_a_package_says_in_few_lines_what_it_answers(init: Path) -> None:
    documented = ast.get_docstring(ast.parse(init.read_text("utf-8")))
    assert documented and len(documented.splitlines()) <= MAX_DOCUMENTED
    assert len(list(init.parent.glob("*.py"))) <= MAX_FILES
