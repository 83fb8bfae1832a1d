"""What is said of options of ``memlint verify`` that compare, or start ranks, and cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for variable in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    Path("train.py").write_text("print('it runs')\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--compare-fix", "--compare-with", "train.py"], "not allowed with argument --compare-fix"),
        (["--compare-with", "gone.py"], "the script gone.py does not exist"),
        (["--compare-with", "."], "the script . is a folder"),
        (["--compare-fixes"], "did you mean `--compare-fix`?"),
        (["--compare-with"], "expected one argument"),
        (["--nproc-per-node", "0"], "`0` is not a whole number of at least 1"),
        (["--nproc-per-node", "two"], "`two` is not a whole number of at least 1"),
    ],
)
def test_what_cannot_be_meant(words: list[str], said: str, capsys: Capture) -> None:
    assert main(["verify", "train.py", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--compare-fix"], ["--compare-with", "train.py"], ["--nproc-per-node", "2"]])
def test_one_rank_of_several_neither_compares_nor_starts_ranks(
    words: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert main(["verify", "train.py", *words]) == 2
    assert f"{words[0]} does not go with a launcher around memlint" in capsys.readouterr().err
    assert not list(tmp_path.glob("memlint-*"))
