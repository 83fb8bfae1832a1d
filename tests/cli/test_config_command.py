"""What ``memlint config`` says of each setting, and where it comes from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlint.cli import main
from memlint.config_table import KEYS

Capture = pytest.CaptureFixture[str]

PYPROJECT = """[tool.memlint]
extend = "shared/base.toml"
ignore = ["MEM102"]
per-file-ignores = {"a/*" = ["MEM1"]}
evidence = "proof.json"
"""
BASE = """min-confidence = "high"
extend-select = ["MEM3"]
ignore = ["MEM103"]
per-file-ignores = {"b/*" = ["MEM2"]}
import-roots = ["lib"]
severity = {MEM101 = "note"}
"""
FILE, EXTENDED = "pyproject.toml", "shared/base.toml"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    (root / "shared" / "lib").mkdir(parents=True)
    (root / FILE).write_text(PYPROJECT)
    (root / EXTENDED).write_text(BASE)
    monkeypatch.chdir(root)
    return root


def settings(capsys: Capture, *arguments: str) -> dict[str, tuple[Any, list[str]]]:
    assert main(["config", *arguments, "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["version"] == 1
    return {
        row["key"]: (row["value"], [one["file"] or one["option"] or "default" for one in row["from"]])
        for row in report["settings"]
    }


CASES: list[tuple[list[str], str, Any, list[str]]] = [
    ([], "min-confidence", "high", [EXTENDED]),
    ([], "ignore", ["MEM102"], [FILE]),
    ([], "extend-select", ["MEM3"], [EXTENDED]),
    ([], "per-file-ignores", {"a/*": ["MEM1"], "b/*": ["MEM2"]}, [FILE, EXTENDED]),
    ([], "import-roots", ["shared/lib"], [EXTENDED]),
    ([], "evidence", ["proof.json"], [FILE]),
    ([], "severity", {"MEM101": "note"}, [EXTENDED]),
    ([], "unused-code", "report", ["default"]),
    ([], "select", ["ALL"], ["default"]),
    ([], "device-memory", None, ["default"]),
    (["--min-confidence", "low"], "min-confidence", "low", ["--min-confidence"]),
    (["--ignore", "MEM1,MEM2"], "ignore", ["MEM102", "MEM1", "MEM2"], ["--ignore", FILE]),
    (["--extend-exclude", "x"], "extend-exclude", ["x"], ["--extend-exclude"]),
    (["--select", "MEM1"], "select", ["MEM1"], ["--select"]),
    (["--select", "MEM1"], "ignore", [], ["default"]),
    (["--select", "MEM1"], "extend-select", [], ["default"]),
    (["--preview"], "preview", True, ["--preview"]),
    (["--no-unsafe-fixes"], "unsafe-fixes", False, ["--no-unsafe-fixes"]),
    (["--isolated"], "min-confidence", "medium", ["default"]),
    (["--config", EXTENDED], "ignore", ["MEM103"], [EXTENDED]),
    (["shared"], "ignore", ["MEM102"], [FILE]),
]


@pytest.mark.parametrize(("arguments", "key", "value", "origins"), CASES)
def test_a_setting_and_its_origins(
    capsys: Capture, arguments: list[str], key: str, value: Any, origins: list[str]
) -> None:
    assert settings(capsys, *arguments)[key] == (value, origins)


def test_each_key_is_there(capsys: Capture) -> None:
    assert set(settings(capsys)) == set(KEYS) - {"extend"}


def test_the_text_is_toml_with_the_origins_as_comments(capsys: Capture, project: Path) -> None:
    assert main(["config", "--min-confidence", "low"]) == 0
    out = capsys.readouterr().out
    rows = [line.split("  # ") for line in out.splitlines() if " = " in line]
    assert [" ".join(row).split() for row in rows if row[0].startswith("min-confidence")] == [
        ["min-confidence", "=", '"low"', "--min-confidence"]
    ]
    assert "MEM101" in out.splitlines()[-1] and "MEM102" not in out.splitlines()[-1]
    # it can be read back
    (project / FILE).write_text("[tool.memlint]\n" + "\n".join(line for line in out.splitlines()))
    assert main(["config"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a", "b"], "one path"),
        (["none"], "there is no file or folder none"),
        (["--output-format", "sarif"], "text or json"),
        (["--select", "MEM9"], "unknown rule"),
        (["--config", "none.toml"], "there is no file"),
        (["--selct", "MEM1"], "did you mean `--select`?"),
    ],
)
def test_what_cannot_be_meant(capsys: Capture, arguments: list[str], said: str) -> None:
    assert main(["config", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_a_wrong_configuration_is_an_error(capsys: Capture, project: Path) -> None:
    (project / EXTENDED).write_text("min-confidence = 3\n")
    assert main(["config"]) == 2
    assert "base.toml: `min-confidence`" in capsys.readouterr().err
