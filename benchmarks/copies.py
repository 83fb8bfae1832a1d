"""Projects of any size out of the training code in ``fixtures/``: each copy under names of its own, so that nothing is
shared."""

from __future__ import annotations

import re
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"
SOURCES = sorted(path for path in FIXTURES.glob("mem*/*.py") if "__future__" not in path.read_text(encoding="utf-8"))
_DEFINITION = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


def copy_of(text: str, number: int) -> str:
    """The source with its top-level definitions renamed, and its main block left out: one copy among many."""
    text = text.split('if __name__ == "__main__"', 1)[0]
    for name in sorted(set(_DEFINITION.findall(text)), key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", f"{name}_{number}", text)
    return text


def copy_at(number: int) -> str:
    """A copy of one source after the other."""
    return copy_of(SOURCES[number % len(SOURCES)].read_text(encoding="utf-8"), number)


def many_files(folder: Path, count: int) -> None:
    """``count`` files in packages of 50."""
    for number in range(count):
        package = folder / f"part_{number // 50:03}"
        package.mkdir(exist_ok=True)
        (package / f"module_{number:04}.py").write_text(copy_at(number), encoding="utf-8")


def long_text(lines: int) -> list[str]:
    """Copies until there are so many lines."""
    found: list[str] = []
    total = 0
    while total < lines:
        found.append(copy_at(len(found)))
        total += found[-1].count("\n")
    return found
