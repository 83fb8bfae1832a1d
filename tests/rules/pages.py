"""Reads the pages of the rooms (see `memlint.engine.rules.programs`)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from memlint.engine.rules.programs import Example, Mark, Marks, examples, marks, sections, slug, unmarked

ROOT = Path(__file__).resolve().parents[2]
ROOMS = sorted(path for path in (ROOT / "rules").iterdir() if (path / "rule.py").is_file())
HEADINGS = (
    "What it does",
    "Why it costs memory",
    "Bad",
    "Good",
    "Fix safety",
    "Known limits",
    "Measured",
    "References",
)


def script(path: Path) -> ModuleType:
    """A script outside the package, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def all_examples() -> list[Example]:
    return [
        example for room in ROOMS for example in examples(room.name, (room / "README.md").read_text(encoding="utf-8"))
    ]


__all__ = [
    "HEADINGS",
    "ROOMS",
    "ROOT",
    "Example",
    "Mark",
    "Marks",
    "all_examples",
    "examples",
    "marks",
    "script",
    "sections",
    "slug",
    "unmarked",
]
