"""The shape of the package: the layers of its analysis, no cycles, and files that can be read at one sitting."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

import pytest
from test_walls import PACKAGE, ROOT, imports, modules, tree_of

ANALYSIS = PACKAGE / "analysis"
#: each may import those before it
LAYERS = ("syntax", "index", "reach", "domain", "transfer", "calls", "facts", "demand", "judge", "driver")
MAX_LINES, MAX_FUNCTION, MAX_FILES, MAX_DOCUMENTED = 400, 60, 25, 15


@functools.cache
def named() -> dict[str, Path]:
    """Each module of the package by its dotted name."""
    parts = {path: path.relative_to(ROOT).with_suffix("").parts for path in modules()}
    return {".".join(one[:-1] if one[-1] == "__init__" else one): path for path, one in parts.items()}


@functools.cache
def imported(name: str) -> frozenset[str]:
    """The modules of the package that a module imports as it runs."""
    return frozenset(imports(named()[name], annotations=False)) & named().keys() - {name}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_imports_those_below_it_alone(layer: str) -> None:
    above = LAYERS[LAYERS.index(layer) + 1 :]
    wrong = [
        f"{name} imports {target}"
        for name in named()
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
    left = {name: set(imported(name)) for name, path in named().items() if path.name != "__init__.py"}
    while True:
        done = [name for name, targets in left.items() if not targets & left.keys()]
        if not done:
            break
        for name in done:
            del left[name]
    assert sorted(left) == []


def test_every_file_can_be_read_at_one_sitting() -> None:
    lines = {path: len(path.read_text("utf-8").splitlines()) for path in (*modules(), *(ROOT / "rules").rglob("*.py"))}
    assert [f"{path.relative_to(ROOT)}: {count}" for path, count in lines.items() if count > MAX_LINES] == []


def test_every_function_fits_on_a_screen() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in (*modules(), *(ROOT / "rules").rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno is not None
        and node.end_lineno - node.lineno >= MAX_FUNCTION
    ]
    assert wrong == []


def test_no_folder_is_crowded() -> None:
    files = Counter(path.parent for path in modules())
    assert [f"{folder.relative_to(ROOT)}: {count}" for folder, count in files.items() if count > MAX_FILES] == []


@pytest.mark.parametrize(
    "init", sorted(PACKAGE.rglob("__init__.py")), ids=lambda init: str(init.parent.relative_to(ROOT))
)
def test_a_package_says_in_few_lines_what_it_answers(init: Path) -> None:
    documented = ast.get_docstring(tree_of(init))
    assert documented and len(documented.splitlines()) <= MAX_DOCUMENTED
