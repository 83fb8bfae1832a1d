"""What is said of options of ``memlint verify`` that compare, or start ranks, and cannot be meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.cli import main
from memlint.cli.commands.verify import exit_code
from memlint.cli.parsing.verify_arguments import parse_verify
from memlint.finding import Finding, Growth
from memlint.verifier.model import PerIteration, Report, Run, Unattributed, Verdict, Verified

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


@pytest.mark.parametrize(
    ("words", "own", "device", "full"),
    [
        (["train.py"], [], "auto", False),
        (
            ["train.py", "--epochs", "3", "data", "-1", "--lr=0.1"],
            ["--epochs", "3", "data", "-1", "--lr=0.1"],
            "auto",
            False,
        ),
        (["--device", "cpu", "train.py", "--epochs", "3", "--full"], ["--epochs", "3"], "cpu", True),
        (["train.py", "--epochs", "3", "--", "--full", "more"], ["--epochs", "3", "--full", "more"], "auto", False),
        (["-m", "train", "-k", "one", "-m", "slow", "--device=cpu"], ["-k", "one", "-m", "slow"], "cpu", False),
        (["-oreport.json", "train.py", "-x", "--full"], ["-x"], "auto", True),
        (["train.py", "-opt", "adam", "--full"], ["-opt", "adam"], "auto", True),
    ],
)
def test_what_follows_the_program_and_is_no_option_here_is_its_own(
    words: list[str], own: list[str], device: str, full: bool
) -> None:
    parsed = parse_verify(words)
    assert (parsed.arguments, parsed.device, parsed.full) == (own, device, full)
    assert parsed.target == ("train" if parsed.module else "train.py")


def _report(end: str, verdict: str = "refuted", growth: int = 0, mean: int = 0) -> Report:
    growth_claim = Growth("host", "per-iteration")
    place = Finding(
        code="MEM101", name="loss-accumulation", severity="error", confidence="high", message="m", path="p.py",
        line=1, column=1, end_line=1, end_column=2, growth=growth_claim,
    )  # fmt: skip
    per = PerIteration(mean, mean, mean, mean) if mean else None
    found = Verdict(verdict=verdict, reason="r", bytes_per_iteration=per)
    left = (Unattributed(growth, (), "cpu", "p.py:1"),) if growth else ()
    run = Run("3", "2", "cpu", "cpu", 9, 1.0, 0, end)
    return Report(verified=(Verified(place, found),), failures=(), run=run, unattributed=left)


@pytest.mark.parametrize(
    ("report", "fail_on", "limit", "code"),
    [
        (_report("finished"), "confirmed", 0, 0),
        (_report("timeout"), "confirmed", 0, 0),
        (_report("timeout", "confirmed"), "confirmed", 0, 1),
        (_report("failed"), "never", 0, 3),
        (_report("killed", "confirmed"), "confirmed", 0, 3),
        (_report("interrupted"), "never", 0, 130),
        (_report("stopped", "confirmed-host"), "confirmed", 0, 1),
        (_report("stopped", "confirmed"), "never", 0, 0),
        (_report("stopped", growth=2048), "confirmed", 0, 0),
        (_report("stopped", growth=2048), "growth", 0, 1),
        (_report("stopped", growth=2048), "growth", 4096, 0),
        (_report("stopped", "confirmed", mean=600), "confirmed", 1024, 0),
        (_report("stopped", "confirmed", mean=2048), "confirmed", 1024, 1),
        (_report("stopped", "confirmed-host"), "confirmed", 1024, 1),
    ],
)
def test_exit_codes(report: Report, fail_on: str, limit: int, code: int) -> None:
    assert exit_code(report, fail_on, limit) == code
