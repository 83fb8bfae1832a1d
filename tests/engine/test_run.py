"""Order, fingerprints, rule loading and the public function."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import memlint
from memlint.cli import main
from memlint.engine.rules.rooms import load_rooms, own_rooms

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def fingerprints(toy: Toy, files: dict[str, str | bytes]) -> list[str]:
    toy(files)
    return [finding.fingerprint for finding in memlint.lint(["."]).findings]


def test_fingerprints_survive_moved_lines_and_white_space(toy: Toy) -> None:
    before = fingerprints(toy, {"a.py": "leak(1)\nleak(2)\nleak(1)\n"})
    after = fingerprints(toy, {"a.py": "\n\nleak( 1 )\nx = 1\nleak(\n    2)\nleak(1)  # words\n"})
    assert before == after
    assert len(set(before)) == 3, "the second leak(1) is another occurrence"


def test_fingerprints_do_not_depend_on_the_working_directory(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    root = toy({"sub/a.py": "leak(1)\n"})
    (here,) = memlint.lint(["sub"]).findings
    monkeypatch.chdir(root / "sub")
    (there,) = memlint.lint(["."]).findings
    assert here.fingerprint == there.fingerprint
    assert (here.path, there.path) == ("sub/a.py", "a.py")


def test_findings_are_in_order_and_files_count_once(toy: Toy) -> None:
    toy({"b.py": "leak(1)\nburst(1)\n", "a.py": "burst(1)\nleak(1)\n"})
    result = memlint.lint(["b.py", ".", "a.py", "./b.py"])
    assert [(one.path, one.line) for one in result.findings] == [("a.py", 1), ("a.py", 2), ("b.py", 1), ("b.py", 2)]
    assert result.summary.files == 2


def test_projects_have_their_own_configuration(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n", "inner/pyproject.toml": "[tool.memlint]\n", "inner/code.py": "leak(1)\n"})
    main(["train.py", "inner/code.py", "--output-format", "json"])
    assert [row["path"] for row in json.loads(capsys.readouterr().out)["findings"]] == ["train.py"]
    assert root.is_dir()


def test_lint_raises_for_a_wrong_option(toy: Toy) -> None:
    from memlint.config import ConfigError

    toy({"a.py": "x = 1\n"})
    with pytest.raises(ConfigError, match="unknown rule `MEM9O1`"):
        memlint.lint(["a.py"], select=["MEM9O1"])
    with pytest.raises(ConfigError, match="`hihg` is not one of high, medium, low"):
        memlint.lint(["a.py"], min_confidence="hihg")
    with pytest.raises(ConfigError, match="exclude each other"):
        memlint.lint(["a.py"], config="pyproject.toml", isolated=True)


def test_lint_takes_one_path_and_one_word(toy: Toy) -> None:
    toy({"a.py": "leak(1)\nburst(1)\n", "b.py": "leak(1)\n"})
    assert memlint.lint("a.py").findings == memlint.lint(["a.py"]).findings != ()
    assert memlint.lint(Path("a.py")).findings == memlint.lint(["a.py"]).findings
    assert [one.code for one in memlint.lint("a.py", select="MEM902").findings] == ["MEM902"]
    assert [one.code for one in memlint.lint("a.py", ignore="MEM902").findings] == ["MEM901"]
    assert [one.path for one in memlint.lint(".", exclude="a.py", select="MEM901").findings] == ["b.py"]


def test_a_checkout_uses_its_own_rooms() -> None:
    assert own_rooms() == Path(__file__).resolve().parents[2] / "rules"
    assert {"MEM000", "MEM001", "MEM002"} <= set(load_rooms())


def test_an_installation_without_rules_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr("memlint.engine.rules.rooms.own_rooms", lambda: tmp_path / "rules")
    (tmp_path / "a.py").write_text("import torch\n", encoding="utf-8")
    assert main([str(tmp_path)]) == 2
    assert f"none of its own rules in {tmp_path / 'rules'}" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("raise RuntimeError('no')\n", "RuntimeError: no"),
        ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
        ("x = 1\n", "must define"),
        (
            "from memlint.sdk import Meta\n"
            "META = Meta(code='MEM999', name='a', summary='', severity='note')\n"
            "def check(facts): ...\n",
            "its folder's name says MEM998",
        ),
        (
            "from memlint.sdk import Meta\n"
            "META = Meta(code='MEM998', name='toy-leak', summary='', severity='note')\n"
            "def check(facts): ...\n",
            "two rules have the name toy-leak",
        ),
        (
            "from memlint.sdk import Meta\n"
            "META = Meta(code='MEM998', name='a', summary='', severity='note')\n"
            "CANDIDATES = ('retian',)\n"
            "def check(facts): ...\n",
            "`CANDIDATES` must be a tuple of some of add, carry, retain, tensor, cat, run",
        ),
        *(
            (
                "from memlint.sdk import Event, Meta, Silent\n"
                "META = Meta(code='MEM998', name='a', summary='', severity='note')\n"
                f"SILENT = {silent}\n"
                "def check(facts): ...\n",
                "mem998_bad: `SILENT` must be a tuple of",
            )
            for silent in ("Silent(Event, 'a', '', bool)", "(Silent(Event, 'a', '', bool), 'b')", "None")
        ),
    ],
)
def test_a_room_that_cannot_be_loaded_is_an_error(toy: Toy, capsys: Capture, text: str, said: str) -> None:
    toy({"a.py": "x = 1\n", "lint_rules/mem998_bad/rule.py": text})
    assert main(["a.py"]) == 2
    assert said in capsys.readouterr().err


def test_a_definition_that_is_too_deep_is_not_called_broken(tmp_path: Path) -> None:
    """Python compiles it: what is true is that this one was not checked, and the rest of the file was."""
    deep = "def deep(a):\n    return " + " + ".join(["a"] * 1500) + "\n"
    leak = "def train(model, data, opt):\n    total = 0\n    for x in data:\n        loss = model(x).sum()\n"
    leak += "        loss.backward()\n        opt.step()\n        total += loss\n    return total\n"
    (tmp_path / "train.py").write_text("import torch\n\n\n" + leak + "\n\n" + deep)
    found = memlint.lint([tmp_path]).findings
    assert [(one.code, one.line) for one in found] == [("MEM101", 10), ("MEM000", 14)]
    assert found[1].message == "this was not checked: too deeply nested to analyse"


def test_a_file_that_has_nothing_to_do_with_torch_may_be_deep(tmp_path: Path) -> None:
    """What the screen leaves out is not analysed, so its depth is no failure, whatever it imports."""
    (tmp_path / "util.py").write_text("a = 1\n")
    (tmp_path / "big.py").write_text("import util\n\nx = " + " + ".join(["a"] * 600) + "\n")
    assert memlint.lint([tmp_path]).findings == ()
