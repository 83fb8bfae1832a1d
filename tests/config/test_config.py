"""What [tool.memlint] means, and what is said of a mistake in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main
from memlint.config import ConfigError, find, load, nearest

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def table(folder: Path, text: str, name: str = "memlint.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text)
    return folder / name


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selct = ["MEM101"]', "unknown key `selct` (did you mean `select`?)"),
        ("preview = 1", "`preview`: expected `bool`, got `int`"),
        (
            'min-confidence = "hihg"',
            "`min-confidence`: `hihg` is not one of high, medium, low (did you mean `high`?)",
        ),
        ("min-confidence = 1", "`min-confidence`: expected `str`, got `int`"),
        (
            'unused-code = "notes"',
            "`unused-code`: `notes` is not one of report, note, ignore (did you mean `note`?)",
        ),
        ('select = ["MEM101", 1]', "`select`: item 2: expected `str`, got `int`"),
        (
            'severity = {MEM101 = "note", MEM102 = "eror"}',
            "`severity.MEM102`: `eror` is not one of error, warning, note (did you mean `error`?)",
        ),
        ("severity = 1", "`severity`: expected `object`, got `int`"),
        ('per-file-ignores = {"a" = [], "b/*.py" = "MEM1"}', "`per-file-ignores.b/*.py`: expected `array`, got `str`"),
        ("[memlint]", "the keys of [memlint] belong at the top of this file"),
        ('import-roots = ["scr"]', "`import-roots`:"),
        ('device-memory = "lots"', "`device-memory`: 'lots' is no amount of memory"),
        ('extend = "no.toml"', "`extend`: there is no file"),
        ('rule-paths = ["nowhere"]', "`rule-paths`:"),
        ('exclude = ["!"]', "`exclude`: `!` is no pattern"),
        ('exclude = ["a", "[z-a]"]', "`exclude`: `[z-a]` is no pattern: bad character range z-a"),
        ("select = [", "not valid TOML"),
    ],
)
def test_a_mistake_names_the_key_and_the_file(tmp_path: Path, text: str, said: str) -> None:
    file = table(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        load(file, tmp_path)
    assert str(error.value).startswith(f"{file}: {said}")


def test_a_mistake_exits_with_2(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"}, "prevew = true")
    assert main(["train.py"]) == 2
    assert "unknown key `prevew` (did you mean `preview`?)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("word", "end"),
    [
        ("MEM1", " (did you mean `MEM101`?)"),
        ("MEM11", " (did you mean `MEM101`?)"),
        ("mem20", " (did you mean `MEM201`?)"),
        ("GROWING_CAT", " (did you mean `growing-cat`?)"),
        ("MEM999", ""),
        ("", ""),
    ],
)
def test_the_nearest_word(word: str, end: str) -> None:
    assert nearest(word, ["MEM001", "MEM101", "MEM102", "MEM201", "MEM302", "MEM401", "growing-cat"]) == end
    assert nearest(word, []) == ""


@pytest.mark.parametrize("key", ["select", "extend-select", "ignore"])
def test_an_unknown_rule_names_its_key(toy: Toy, capsys: Capture, key: str) -> None:
    toy({"train.py": "leak(1)\n"}, f'{key} = ["MEM9O1"]')
    assert main(["train.py"]) == 2
    assert f"`{key}`: unknown rule `MEM9O1` (did you mean `MEM901`?)" in capsys.readouterr().err


def test_the_closest_file_with_our_table_counts_up_to_the_repository(tmp_path: Path) -> None:
    table(tmp_path, "[tool.memlint]", "pyproject.toml")
    table(tmp_path / "repo/pkg", "[tool.other]", "pyproject.toml")
    outer = table(tmp_path / "repo", "[tool.memlint]", "pyproject.toml")
    assert find(tmp_path / "repo/pkg") == outer
    own = table(tmp_path / "repo/pkg", "")
    assert find(tmp_path / "repo/pkg") == own
    (tmp_path / "lone/.git").mkdir(parents=True)
    assert find(tmp_path / "lone") is None


def test_extend_is_overridden_and_added_to(tmp_path: Path) -> None:
    table(
        tmp_path / "base",
        'select = ["MEM1"]\nextend-select = ["MEM2"]\nseverity = {MEM101 = "note", MEM102 = "note"}\npreview = true',
    )
    file = table(
        tmp_path,
        'extend = "base/memlint.toml"\nselect = ["MEM3"]\nextend-select = ["MEM4"]\nseverity = {MEM101 = "error"}',
    )
    config = load(file, tmp_path)
    assert config.select == ("MEM3",)
    assert config.extend_select == ("MEM2", "MEM4")
    assert config.severity == {"MEM101": "error", "MEM102": "note"}
    assert config.preview


def test_extend_in_a_circle(tmp_path: Path) -> None:
    file = table(tmp_path, 'extend = "memlint.toml"')
    with pytest.raises(ConfigError, match="comes back to this file"):
        load(file, tmp_path)


@pytest.mark.parametrize(("text", "size"), [('"80 GiB"', 80 * 1024**3), ('"24GB"', 24 * 10**9), ("1000", 1000)])
def test_device_memory(tmp_path: Path, text: str, size: int) -> None:
    assert load(table(tmp_path, f"device-memory = {text}"), tmp_path).device_memory == size


def test_severity_and_per_file_ignores(toy: Toy, capsys: Capture) -> None:
    toy(
        {"train.py": "leak(1)\nburst(1)\n", "tests/test_it.py": "leak(1)\nburst(1)\n"},
        'severity = {toy-burst = "note"}\nper-file-ignores = {"tests/" = ["MEM901"]}',
    )
    main([".", "--output-format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["path"], row["code"], row["severity"]) for row in found] == [
        ("tests/test_it.py", "MEM902", "note"),
        ("train.py", "MEM901", "warning"),
        ("train.py", "MEM902", "note"),
    ]


@pytest.mark.parametrize(
    "table",
    ['{ALL = "error", MEM90 = "note", toy-burst = "warning"}', '{MEM902 = "warning", MEM90 = "note", ALL = "error"}'],
)
def test_the_severity_that_names_a_rule_closest_counts(toy: Toy, capsys: Capture, table: str) -> None:
    toy({"train.py": "leak(1)\nburst(1)\n"}, f"severity = {table}")
    main(["train.py", "--output-format", "json"])
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["code"], row["severity"]) for row in found] == [("MEM901", "note"), ("MEM902", "warning")]


def test_rules_never_come_from_outside_of_the_project(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    (root.parent / "outside").mkdir()
    (root / "memlint.toml").write_text('rule-paths = ["../outside"]')
    assert main(["train.py"]) == 2
    assert "lies outside of the project" in capsys.readouterr().err
    (root / "memlint.toml").unlink()
    (root / "link").symlink_to(root.parent / "outside")
    (root / "memlint.toml").write_text('rule-paths = ["link"]')
    assert main(["train.py"]) == 2


def test_mem000_cannot_be_ignored(toy: Toy, capsys: Capture) -> None:
    toy({"broken.py": "def (:\n"})
    assert main(["broken.py", "--ignore", "MEM000"]) == 2
    assert "MEM000 cannot be ignored" in capsys.readouterr().err
    assert main(["broken.py", "--ignore", "MEM0"]) == 1


def test_config_option_and_isolated(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\nburst(2)\n"})
    (root / "other.toml").write_text('rule-paths = ["lint_rules"]\nignore = ["MEM901"]')
    main(["train.py", "--config", "other.toml", "--output-format", "json"])
    assert [row["code"] for row in json.loads(capsys.readouterr().out)["findings"]] == ["MEM902"]
    assert main(["train.py", "--config", "no.toml"]) == 2
    assert main(["train.py", "--config", "other.toml", "--isolated"]) == 2
