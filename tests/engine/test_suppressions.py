"""Which comments suppress which findings, and what is said of those that suppress nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlint.cli import main
from memlint.engine.comments.suppressions import read

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def lint(toy: Toy, capsys: Capture, text: str, *arguments: str) -> Any:
    toy({"train.py": text})
    main(["train.py", "--output-format", "json", *arguments])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "text",
    [
        "leak(1)  # noqa\n",
        "leak(1)  # noqa: MEM901\n",
        "leak(1)  # NOQA:E501,MEM901\n",
        "leak(1)  # type: ignore  # noqa: E501 MEM901 -- why\n",
        "leak(1)  # memlint: ignore[MEM901]\n",
        "leak(1)  # Memlint: Ignore[mem901]\n",
        "leak(1)  # memlint: ignore[toy-leak] -- why\n",
        "leak(  # noqa: MEM901\n    1,\n)\n",
        "leak(\n    1,\n)  # noqa: MEM901\n",
        "# noqa: MEM901\nleak(1)\n",
        "# memlint: ignore[MEM901] -- why\n# more words\nleak(\n    1\n)\n",
        "x = 1\n# memlint: ignore-file[MEM901]\n\n\nleak(1)\n",
        "if x:\n    # noqa: MEM901\n    leak(1)\n",
        "leak('''\n# not here''')  # noqa: MEM901\n",
        "leak(1)  # noqa: MEM901\r\n",
    ],
)
def test_suppressed(toy: Toy, capsys: Capture, text: str) -> None:
    report = lint(toy, capsys, text)
    (finding,) = report["findings"]
    assert finding["code"] == "MEM901"
    assert finding["suppressed"]["reason"] == ("why" if "why" in text else None)
    assert report["summary"]["warnings"] == 0
    assert main(["train.py"]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "leak('# noqa: MEM901')\n",
        "leak('''\n# noqa: MEM901\n''')\n",
        "leak(\n    1,  # noqa: MEM901\n    2,\n)\n",
        "leak(1)\n# noqa: E501\n",
        "leak(1)  # noqa: E501\n",
        "leak(1)  # noqable\n",
        "leak(1)  # memlint is a linter\n",
    ],
)
def test_not_suppressed(toy: Toy, capsys: Capture, text: str) -> None:
    found = lint(toy, capsys, text)["findings"]
    assert [row["suppressed"] for row in found if row["code"] == "MEM901"] == [None]


def test_above_a_decorated_definition() -> None:
    (one,) = read("# noqa: MEM901\n@decorator\n@other(\n    1)\ndef f():\n    pass\n").suppressions
    assert (one.first, one.last) == (2, 5)


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("x = 1  # noqa: MEM901\n", "MEM001", "MEM901"),
        ("leak(1)  # memlint: ignore[MEM901, MEM902]\n", "MEM001", "MEM902"),
        ("# memlint: ignore-file[MEM901]\n", "MEM001", "MEM901"),
        ("x = 1  # noqa: MEM9O1\n", "MEM002", "did you mean `MEM901`?"),
        ("x = 1  # memlint: ignore[toy-leek]\n", "MEM002", "did you mean `toy-leak`?"),
        ("x = 1  # memlint: ignore[E501]\n", "MEM002", "`E501`"),
        ("x = 1  # memlint: ignore\n", "MEM002", "write `ignore[MEM101]`"),
        ("x = 1  # memlint: ingore[MEM901]\n", "MEM002", "unknown directive `ingore`"),
    ],
)
def test_useless_suppressions_are_warnings(toy: Toy, capsys: Capture, text: str, code: str, said: str) -> None:
    report = lint(toy, capsys, text)
    (finding,) = [row for row in report["findings"] if row["suppressed"] is None]
    assert (finding["code"], finding["severity"]) == (code, "warning")
    assert said in finding["message"]
    assert finding["column"] == text.index("#") + 1


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("x = 1  # noqa: MEM901\n", "delete it"),
        ("x = 1  # noqa: MEM901, MEM902\n", "delete it"),
        ("leak(1)  # noqa: MEM901, MEM902\n", "remove MEM902 from it"),
        ("x = 1  # noqa: E501, MEM902\n", "remove MEM902 from it"),
    ],
)
def test_what_is_needed_of_a_suppression_stays(toy: Toy, capsys: Capture, text: str, advice: str) -> None:
    (finding,) = [row for row in lint(toy, capsys, text)["findings"] if row["code"] == "MEM001"]
    assert finding["help"] == advice


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("x = 1  # noqa\n", []),
        ("x = 1  # noqa: E501, ABC123\n", []),
        ("x = 1  # noqa: MEM901\n", ["--ignore", "MEM901"]),
        ("x = 1  # noqa: MEM904\n", []),
        ("x = 1  # noqa: MEM901, MEM001\n", []),
        ("x = 1  # noqa: MEM901\n", ["--select", "MEM9"]),
        ("whisper(1)  # noqa: MEM903\n", []),
    ],
    ids=["bare", "foreign", "did-not-run", "preview", "kept-on-purpose", "not-selected", "hidden-by-confidence"],
)
def test_not_called_useless(toy: Toy, capsys: Capture, text: str, arguments: list[str]) -> None:
    found = lint(toy, capsys, text, *arguments)["findings"]
    assert [row["code"] for row in found if row["suppressed"] is None] == []


def test_a_broken_file_is_not_called_over_suppressed(toy: Toy, capsys: Capture) -> None:
    found = lint(toy, capsys, "x = 1  # noqa: MEM901\ndef (:\n")["findings"]
    assert [row["code"] for row in found] == ["MEM000"]
