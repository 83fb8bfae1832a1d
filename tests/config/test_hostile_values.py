"""Values that nobody writes by mistake: each works, or is an error that names the key and the file, at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
DEEP, LONG = 100_000, "k" * 500_000

HOSTILE = {
    "a home of nobody": ('extend = "~nosuchuser/x.toml"', "`extend`: `~nosuchuser/x.toml` is no path"),
    "a null byte in extend": ('extend = "a\\u0000b"', "`extend`: `a\\x00b` is no path"),
    "a null byte in a folder": ('import-roots = ["a\\u0000b"]', "`import-roots`: "),
    "a null byte in a file": ('evidence = "a\\u0000b"', "`evidence`: "),
    "a null byte in rules": ('rule-paths = ["\\u0000"]', "`rule-paths`: "),
    "a folder for a file": ('extend = "."', "cannot be read: it is a folder"),
    "a deep list": (f"select = {'[' * DEEP}{']' * DEEP}", "not valid TOML"),
    "a list of some depth": (f"select = {'[' * 60}{']' * 60}", "`select`: item 1: expected `str`, got `array`"),
    "a deep table": (f"severity = {'{a=' * DEEP}1{'}' * DEEP}", "not valid TOML"),
    "a key of many parts": (f"{'a.' * DEEP}b = 1", "not valid TOML: a key has more than 100 parts"),
    "a quoted key of many parts": ('"a" . ' * DEEP + '"b" = 1', "not valid TOML: a key has more than 100 parts"),
    "a table of many parts": (f"[{'a.' * DEEP}b]", "not valid TOML: a key has more than 100 parts"),
    "a number of many digits": (f"device-memory = {'9' * DEEP}", "not valid TOML"),
    "a large number": (f"device-memory = {'9' * 4000}", "`device-memory`: 999"),
    "a large amount": (f'device-memory = "{"9" * 400} TiB"', "`device-memory`: '999"),
    "a fraction of nothing": ("device-memory = 0", "`device-memory`: 0 is no amount"),
    "less than nothing": ("device-memory = -1", "`device-memory`: -1 is no amount"),
    "no number": ("device-memory = nan", "`device-memory`: expected `int | str`, got `float`"),
    "a date": ("preview = 1979-05-27T07:32:00Z", "`preview`: expected `bool`"),
    "a long key": (f"{LONG} = 1", "unknown key `kkk"),
    "a long word": (f'min-confidence = "{LONG}"', "`min-confidence`: `kkk"),
    "a long rule": (f'select = ["{LONG}"]', "`select`: unknown rule `kkk"),
    "a long severity": (f'[severity]\n{LONG} = "note"', "`severity`: unknown rule `kkk"),
    "a long type": (f"[severity]\n{LONG} = 1", "`severity.kkk"),
    "no word": ('select = [""]', "`select`: unknown rule ``"),
    "no key": ('"" = 1', "unknown key ``"),
    "a key that steers": ('"\\u001b[2J" = 1', "unknown key `\\x1b[2J`"),
    "a near folder": ('import-roots = ["scr"]', "is not a folder (did you mean `src`?)"),
    "a near file": ('extend = "othr.toml"', "other.toml`?)"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_value_is_an_error(name: str, toy: Toy, capsys: Capture) -> None:
    text, said = HOSTILE[name]
    root = toy({"train.py": "leak(1)\n", "memlint.toml": text, "other.toml": "", "src/a.py": ""})
    assert main(["train.py"]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith(f"memlint: error: {root / 'memlint.toml'}: ")
    assert said in error
    assert len(error) < 1000 and error.count("\n") == 1
    assert error.isprintable() or error[:-1].isprintable()


def test_files_that_extend_each_other_for_ever(toy: Toy, capsys: Capture) -> None:
    files = {f"{number}.toml": f'extend = "{number + 1}.toml"' for number in range(2000)}
    toy({"train.py": "leak(1)\n", "memlint.toml": 'extend = "0.toml"', **files})
    assert main(["train.py"]) == 2
    assert "`extend`: more than 20 files extend each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"format": "memlint-evidence", "version": 1, "run": ' + "[" * 900 + "]" * 900 + "}",
        '{"format": "memlint-evidence", "version": ' + "9" * 10_000 + "}",
        '{"format": 1e999999999}',
        '"' + "x" * 1_000_000 + '"',
        "\0",
        "",
    ],
    ids=["list", "table", "deep run", "version", "number", "text", "null", "empty"],
)
def test_hostile_evidence(content: str, toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n", "proof.json": content})
    assert main(["train.py", "--evidence", "proof.json"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("memlint: error: --evidence: ") and len(error) < 1000


def test_values_that_are_odd_and_work(toy: Toy, capsys: Capture) -> None:
    toy(
        {"train.py": "leak(1)\n"},
        f'device-memory = "{"1" * 18}"\nper-file-ignores = {{"a\\u0000b" = [], "*" = []}}\n'
        'select = ["mem901", " ALL "]',
    )
    assert main(["train.py", "--output-format", "json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 1
