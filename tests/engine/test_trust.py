"""The rules of a project are programs: they run where the user says so, and never by themselves."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import memlint
from memlint.cli import main

Capture = pytest.CaptureFixture[str]
RULE = """
from pathlib import Path
Path({mark!r}).touch()
from memlint.sdk import Meta
META = Meta(code="MEM950", name="their-own", summary="Theirs.", severity="warning")

def check(facts):
    Path({mark!r}).touch()
    return ()
"""
DETECT = """
def detect(analyser, summary):
    return ()
"""


@pytest.fixture
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], bool]:
    """Goes to a project that brings a rule along; says whether anything of the rule has run since it was asked last."""
    root, mark = tmp_path / "checkout", tmp_path / "ran"
    for name in ("lint/mem950_their_room", "src"):
        (root / name).mkdir(parents=True)
    (root / "lint/mem950_their_room/rule.py").write_text(RULE.format(mark=str(mark)))
    for name in ("probe", "detect", "beside"):
        (root / f"lint/mem950_their_room/{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n{DETECT}")
    (root / "lint/mem950_their_room/README.md").write_text("# their-own (MEM950)\n\nTheirs.\n")
    (root / "pyproject.toml").write_text(
        '[tool.memlint]\nrule-paths = ["lint"]\nextend-exclude = ["lint"]\nignore = ["their-own"]\n'
        'extend-select = ["MEM950"]\n[tool.memlint.severity]\nMEM95 = "note"\n'
    )
    (root / "src/a.py").write_text("import torch\nx = 1  # memlint: ignore[their-own]\n")
    monkeypatch.chdir(root)
    monkeypatch.delenv("MEMLINT_LOCAL_RULES")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def has_run() -> bool:
        ran = mark.exists()
        mark.unlink(missing_ok=True)
        for name in [name for name in sys.modules if "mem950" in name]:
            del sys.modules[name]  # it runs anew where it is loaded anew
        return ran

    return has_run


@pytest.mark.parametrize(
    "arguments",
    [
        ["."],
        ["src/a.py", "--no-cache"],
        ["src", "--fix"],
        ["src", "--diff"],
        ["src", "--config", "pyproject.toml"],
        ["src", "--jobs", "2"],
        ["explain", "src/a.py:2"],
        ["rule"],
        ["rule", "MEM950"],
        ["rule", "their-own", "--output-format", "json"],
        ["new-rule", "MEM951", "another-one"],
        ["clean"],
        ["verify", "--rules", "MEM950"],
    ],
)
def test_no_command_runs_them(arguments: list[str], stranger: Callable[[], bool]) -> None:
    command = [sys.executable, "-m", "memlint", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert not stranger()
    assert "Traceback" not in done.stderr
    assert done.returncode == (2 if "verify" in arguments else 0), done.stdout + done.stderr


def test_their_presence_is_said_in_one_line(stranger: Callable[[], bool], capsys: Capture) -> None:
    assert main(["src"]) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the project's own rules (lint) did not run" in said and "--local-rules" in said
    assert "did not run" in memlint.lint("src").remarks[0]
    assert not stranger()


def test_what_names_them_is_no_mistake(stranger: Callable[[], bool], capsys: Capture) -> None:
    """Neither in the configuration nor in a comment; a word that is no rule of theirs still is."""
    assert main(["src", "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main(["src", "--ignore", "MEM951"]) == 2
    assert not stranger()


def test_standard_input_and_flake8_run_none(stranger: Callable[[], bool]) -> None:
    for command in (
        ["memlint", "-", "--stdin-filename", "src/a.py"],
        ["flake8", "--select", "MEM", "src"],
        ["flake8", "--select", "MEM", "--stdin-display-name", "src/a.py", "-"],
    ):
        text = Path("src/a.py").read_text()
        done = subprocess.run(
            [sys.executable, "-m", *command], input=text, capture_output=True, text=True, check=False, timeout=120
        )
        assert not stranger()
        assert (done.returncode, done.stdout.count("MEM")) == (0, 0), done.stdout + done.stderr
        assert done.stderr.count("did not run") == 1 == done.stderr.count("\n"), done.stderr


def test_who_asks_for_them_gets_them(
    stranger: Callable[[], bool], monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert main(["src", "--no-cache", "--local-rules"]) == 0
    assert stranger()
    memlint.lint("src", local_rules=True)
    assert stranger()
    monkeypatch.setenv("MEMLINT_LOCAL_RULES", "1")
    assert main(["src", "--no-cache"]) == 0
    assert stranger()
    assert "did not run" not in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "trusted"), [("checkout", True), (".", True), ("other", False), ("check", False)])
def test_the_users_own_file_trusts_folders(
    folder: str, trusted: bool, stranger: Callable[[], bool], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "config/memlint").mkdir(parents=True)
    (tmp_path / "config/memlint/memlint.toml").write_text(f'trusted = ["{tmp_path / folder}"]\n')
    assert main(["src", "--no-cache"]) == 0
    assert stranger() == trusted


def test_a_project_does_not_trust_itself(
    stranger: Callable[[], bool], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in its configuration, nor as the home of the user's file."""
    (tmp_path / "checkout/memlint").mkdir()
    (tmp_path / "checkout/memlint/memlint.toml").write_text(f'trusted = ["{tmp_path}"]\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "checkout"))
    assert main(["src", "--no-cache"]) == 0
    monkeypatch.setenv("MEMLINT_LOCAL_RULES", "0")
    assert main(["src", "--no-cache"]) == 0
    assert not stranger()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('trustd = ["/"]', "unknown key `trustd` (did you mean `trusted`?)"),
        ("trusted = 1", "`trusted`: expected a list of folders"),
        ('trusted = ["work"]', "`trusted`: work is no absolute path"),
        ('trusted = ["~nosuchuser/x"]', "`trusted`: ~nosuchuser/x: "),
    ],
)
def test_a_mistake_in_the_users_file_is_an_error(
    text: str, said: str, stranger: Callable[[], bool], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "config/memlint").mkdir(parents=True)
    (tmp_path / "config/memlint/memlint.toml").write_text(text)
    assert main(["src"]) == 2
    assert said in capsys.readouterr().err
    assert not stranger()
