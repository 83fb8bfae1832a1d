"""Several reports of one run: where they go, and what happens where one of them cannot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest

from memlint.cli import main
from memlint.report import FORMATS

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


def test_several_reports_of_one_run(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    words = ["--output-format", "text", "--output", "sarif:a.sarif", "--output", "junit:a:b.xml", "--output", "json:c"]
    assert main(["train.py", *words]) == 1
    assert "train.py:1:1: warning MEM901[toy-leak]" in capsys.readouterr().out
    (one,) = json.loads((root / "a.sarif").read_text("utf-8"))["runs"][0]["results"]
    assert one["ruleId"] == "MEM901"
    assert ElementTree.parse(root / "a:b.xml").getroot().get("failures") == "1"
    assert json.loads((root / "c").read_text("utf-8"))["summary"]["warnings"] == 1


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_goes_to_standard_output_or_a_file(toy: Toy, capsys: Capture, name: str) -> None:
    root = toy({"train.py": "leak(1)\n"})
    printed = []
    for words in (["--output-format", name], ["--output", name], ["--output", f"{name}:-"], ["--output", f"{name}:"]):
        assert main(["train.py", *words]) == 1
        printed.append(capsys.readouterr().out)
    assert all("MEM901" in text for text in printed)
    assert main(["train.py", "--output", f"{name}:report"]) == 1
    assert "MEM901[toy-leak]" in capsys.readouterr().out, "the text is what standard output gets by itself"
    assert "MEM901" in (root / "report").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "sraif:x"], "did you mean `sarif`?"),
        (["--output", "junti"], "did you mean `junit`?"),
        (["--output-format", "gitlb"], "did you mean `gitlab`?"),
        (["--output", "sarif", "--output", "junit:-"], "two reports, sarif and junit, go to standard output"),
        (["--output-format", "text", "--output", "json"], "two reports, text and json, go to standard output"),
        (["--output", "sarif:x", "--output", "junit:./x"], "two reports, sarif and junit, go to one file, ./x"),
        (["-o", "x", "--output", "junit:x"], "two reports, text and junit, go to one file, x"),
        (["--output", "json:/dev/stdout", "-o", "-"], "two reports, text and json, go to standard output"),
        (["-o", "train.py"], "--output-file: train.py is a program, which no report replaces"),
        (
            ["--output", "json:./train.py"],
            "--output json:./train.py: train.py is a program, which no report replaces",
        ),
        (["--output", "json:link"], "--output json:link: link is a program, which no report replaces"),
        (["--fix", "-o", "notes.ipynb"], "--output-file: notes.ipynb is a program, which no report replaces"),
        (["--diff", "--output", "sarif:x"], "--diff prints no report, so --output means nothing beside it"),
    ],
)
def test_what_cannot_be_meant_is_an_error_before_the_run(
    toy: Toy, capsys: Capture, words: list[str], said: str
) -> None:
    root = toy({"train.py": "leak(1)\n", "notes.ipynb": '{"cells": []}'})
    (root / "link").symlink_to("train.py")
    assert main(["train.py", *words]) == 2
    out, error = capsys.readouterr()
    assert said in error and not out
    assert not (root / "x").exists()
    assert (root / "train.py").read_text() == "leak(1)\n" and (root / "notes.ipynb").read_text() == '{"cells": []}'


@pytest.mark.parametrize("words", [["-o", "-"], ["-o", "/dev/stdout"], ["--output", "text:/dev/stdout"]])
def test_standard_output_may_be_named(toy: Toy, capsys: Capture, words: list[str]) -> None:
    root = toy({"train.py": "leak(1)\n"})
    assert main(["train.py", *words]) == 1
    assert capsys.readouterr().out.count("warning MEM901") == 1
    assert not (root / "-").exists()


@pytest.mark.skipif(os.name == "nt", reason="files have no such modes there")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664])
def test_a_file_that_is_written_again_stays_as_private_as_it_was(toy: Toy, mode: int) -> None:
    root = toy({"train.py": "leak(1)\n"})
    for name, words in (("report", ["-o", "report"]), ("baseline.json", ["--write-baseline", "baseline.json"])):
        (root / name).touch()
        (root / name).chmod(mode)
        main(["train.py", *words])
        assert "MEM901" in (root / name).read_text()
        assert (root / name).stat().st_mode & 0o777 == mode


@pytest.mark.parametrize(
    ("output", "said"),
    [("sarif:no/such/a.sarif", "a.sarif cannot be written: No such file"), ("json:taken", "Is a directory")],
)
def test_an_output_that_cannot_be_written_ends_the_run_before_it_begins(
    toy: Toy, capsys: Capture, output: str, said: str
) -> None:
    root = toy({"train.py": "leak(1)\n"})
    (root / "taken").mkdir()
    assert main(["train.py", "--exit-zero", "--output=gitlab:good.json", f"--output={output}"]) == 2
    out, error = capsys.readouterr()
    assert not out and f"--output {output}: " in error and said in error
    assert not (root / "good.json").exists()
    assert not list(root.glob(".memlint-*.new"))


def test_one_output_that_fails_loses_no_other(toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    root = toy({"train.py": "leak(1)\n"})
    (root / "old.xml").write_text("old")
    (root / "gone").mkdir()
    monkeypatch.setattr("memlint.report.junit.render", lambda *_: (root / "gone").rmdir() or 1 / 0)
    words = [f"--output={one}" for one in ("junit:old.xml", "json:gone/a.json", "gitlab:good.json")]
    assert main(["train.py", "--exit-zero", *words]) == 2
    out, error = capsys.readouterr()
    assert "MEM901[toy-leak]" in out
    assert "--output json:gone/a.json: gone/a.json cannot be written: No such file" in error
    assert "the junit report" in error and "ZeroDivisionError" in error
    assert json.loads((root / "good.json").read_text("utf-8"))[0]["check_name"] == "MEM901[toy-leak]"
    assert (root / "old.xml").read_text() == "old", "what was there is whole"
    assert not list(root.glob(".memlint-*.new"))


def test_failures_are_told_where_no_report_shows_them(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    for words, told in (
        (["--output", "sarif"], True),
        (["--output", "sarif:x"], False),
        (["-o", "x"], True),
        (["--output-format", "concise", "--output", "json:x"], False),
    ):
        assert main(["train.py", "missing.py", *words]) == 2
        out, error = capsys.readouterr()
        assert ("error: missing.py:" in error) is told
        assert ("missing.py: failed:" in out) is not told


def test_statistics_leave_what_programs_read_alone(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    for name in ("json", "sarif", "gitlab", "rdjson"):
        main(["train.py", "--statistics", "--output", name])
        out, error = capsys.readouterr()
        assert json.loads(out) and "1  MEM901  toy-leak" in error


def test_fixed_runs_write_every_report(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    assert main(["train.py", "--fix", "--output", "sarif:x.sarif"]) == 1
    assert "MEM901" in capsys.readouterr().out and "MEM901" in (root / "x.sarif").read_text("utf-8")
    assert main(["train.py", "--fix", "--output", "sarif:no/such/x"]) == 2


def test_paths_are_those_of_the_repository_for_who_reads_them_there(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({"sub/train.py": "leak(1)\n", ".git/HEAD": ""})
    monkeypatch.chdir(root / "sub")
    for name in ("sarif", "github", "gitlab", "junit"):
        main(["train.py", "--output", name])
        assert "sub/train.py" in capsys.readouterr().out
    for name in ("json", "rdjson", "concise"):
        main(["train.py", "--output", name])
        assert "sub/train.py" not in capsys.readouterr().out


def test_annotations_follow_the_text_in_a_job_of_github(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({"train.py": "leak(1)\n"})
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["train.py"]) == 1
    *text, annotation = capsys.readouterr().out.splitlines()
    assert text[0].startswith("train.py:1:1: warning MEM901[toy-leak] This leaks.")
    assert annotation.startswith("::warning title=MEM901[toy-leak],file=train.py,line=1,col=1,")
    for words in (
        ["--no-annotations"],
        ["--output-format", "concise"],
        ["--output-format", "json"],
        ["-o", "report.txt"],
        ["--output", "sarif:x", "--no-annotations"],
    ):
        main(["train.py", *words])
        assert "::warning" not in capsys.readouterr().out
    assert "::warning" not in (root / "report.txt").read_text()
    monkeypatch.setenv("GITHUB_ACTIONS", "false")
    main(["train.py"])
    assert "::warning" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "after"),
    [([], ["::warning"]), (["--no-annotations"], []), (["--output-format", "concise"], [])],
)
def test_names_in_what_people_read_command_nothing_in_a_job_of_github(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], after: list[str]
) -> None:
    toy({"::add-mask::x.py": "leak(1)\n"})
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main([".", *words])
    lines = capsys.readouterr().out.splitlines()
    token = lines[0].removeprefix("::stop-commands::")
    end = lines.index(f"::{token}::")
    assert any(line.startswith("::add-mask::") for line in lines[1:end])
    assert [line.split()[0] for line in lines[end + 1 :]] == after


@pytest.mark.skipif(os.name == "nt", reason="names of files may not hold these characters")
@pytest.mark.parametrize("name", [b"two\nlines.py", b"a\\b.py", b"\x1b[31m.py", b"caf\xe9.py", b"sub/\x7f.py"])
def test_files_of_odd_names_are_excerpted(toy: Toy, capsys: Capture, name: bytes) -> None:
    toy({"sub/a.py": "x = 1\n"})
    try:
        Path(os.fsdecode(name)).write_text("leak(12345)\n")
    except OSError:
        pytest.skip("the file system takes no such name")
    assert main(["."]) == 1
    assert "1 | leak(12345)\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "text"])
def test_a_format_imports_no_other(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n")
    script = (
        "import sys, memlint.cli\n"
        f"memlint.cli.main(['a.py', '--isolated', '--output', {name + ':out'!r}, '--output', 'text:b'])\n"
        "print(sorted(one for one in sys.modules if one.startswith('memlint.report.')))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    for other in set(FORMATS) - {name, "text", "concise"}:
        assert f"memlint.report.{ {'json': 'as_json'}.get(other, other) }'" not in done.stdout
