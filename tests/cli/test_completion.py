"""What a shell completes."""

from __future__ import annotations

import builtins
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from memlint.cli import COMMANDS, main

Capture = pytest.CaptureFixture[str]

COMPLETE = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
_shtab_memlint
printf '%s\\n' "${COMPREPLY[@]}"
"""
TABLE: list[tuple[list[str], set[str]]] = [
    (["ver"], {"verify"}),
    (["tra"], {"train.py"}),
    (["--prev"], {"--preview"}),
    (["--min-confidence", ""], {"high", "medium", "low"}),
    (["--output-format", "sa"], {"sarif"}),
    (["train.py", "--stat"], {"--statistics"}),
    (["check", "tra"], {"train.py"}),
    (["check", "--baseline", "tra"], {"train.py"}),
    (["config", "--sch"], {"--schema"}),
    (["verify", "--pyth"], {"--python"}),
]


@pytest.fixture
def script(tmp_path: Path, capsys: Capture) -> Path:
    assert main(["--print-completion", "bash"]) == 0
    (tmp_path / "completion.bash").write_text(capsys.readouterr().out)
    (tmp_path / "train.py").touch()
    return tmp_path / "completion.bash"


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.parametrize(("words", "expected"), TABLE)
def test_bash_completes(script: Path, words: list[str], expected: set[str]) -> None:
    command = ["bash", "-c", COMPLETE, "bash", str(script), "memlint", *words]
    done = subprocess.run(command, cwd=script.parent, capture_output=True, text=True, check=True)
    assert not done.stderr
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_each_shell_gets_the_commands(capsys: Capture, shell: str) -> None:
    assert main(["--print-completion", shell]) == 0
    out = capsys.readouterr().out
    assert [command for command in COMMANDS if command not in out] == []
    if shell == "zsh":
        commands, _, _ = out.partition("}")
        assert "_files" in commands


def test_the_option_stands_alone(capsys: Capture) -> None:
    assert main(["--print-completion=bash"]) == 0
    assert "_shtab_memlint" in capsys.readouterr().out
    assert main([".", "--print-completion", "bash"]) == 2
    assert "stands alone" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["fish"], ["bsh"], ["bash", "zsh"]])
def test_another_shell_is_an_error(capsys: Capture, arguments: list[str]) -> None:
    assert main(["--print-completion", *arguments]) == 2
    assert "is not one of bash, zsh, tcsh" in capsys.readouterr().err


def test_without_shtab_it_says_how_to_get_it(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *others: Any, **more: Any) -> Any:
        if name == "shtab":
            raise ImportError(name)
        return original(name, *others, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    assert main(["--print-completion", "bash"]) == 2
    assert "torch-memlint[completion]" in capsys.readouterr().err
