"""What ``memlint PATHS`` prints, and how it exits."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]


def codes(capsys: Capture) -> list[str]:
    return [finding["code"] for finding in json.loads(capsys.readouterr().out)["findings"]]


def as_json(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def test_findings_exit_with_1_and_check_is_the_default(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["train.py", "--output-format", "concise"]) == 1
    implicit = capsys.readouterr().out
    assert main(["check", "train.py", "--output-format", "concise"]) == 1
    assert implicit.splitlines()[0] == capsys.readouterr().out.splitlines()[0]
    assert implicit.splitlines()[0] == "train.py:1:1: warning MEM901[toy-leak] This leaks."


def test_clean_code_and_notes_exit_with_0(toy: Toy, capsys: Capture) -> None:
    toy({"clean.py": "x = 1\n", "note.py": "whisper(1)\n"})
    assert main(["clean.py"]) == 0
    assert main(["note.py", "--min-confidence", "low"]) == 0
    assert "1 note" in capsys.readouterr().out


def test_exit_zero_hides_findings_but_no_failure(toy: Toy) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["--exit-zero", "train.py"]) == 0
    assert main(["--exit-zero", "train.py", "missing.py"]) == 2


@pytest.mark.parametrize("path", ["nonexistent/", "nonexistent.py", "notes.txt", "book.ipynb", "books/b.ipynb"])
@pytest.mark.parametrize("options", [[], ["--exit-zero"], ["--fix"], ["--fix", "--exit-zero"], ["-q", "--no-cache"]])
def test_a_named_path_that_cannot_be_linted_is_a_failure(
    toy: Toy, capsys: Capture, path: str, options: list[str]
) -> None:
    toy({"train.py": "leak(1)\n", "notes.txt": "hi", "book.ipynb": "{}", "books/b.ipynb": "{}"})
    assert main(["train.py", path, *options]) == 2
    out = capsys.readouterr().out
    assert f"{path.rstrip('/')}: failed:" in out
    assert "MEM901" in out, "the other files go on"


def test_what_is_no_notebook_from_standard_input_is_a_failure(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy({})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    assert main(["-", "--stdin-filename", "book.ipynb", "--exit-zero"]) == 2
    assert "book.ipynb: failed: not a notebook" in capsys.readouterr().out


def test_an_undecodable_file_is_a_failure_and_the_others_go_on(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": b"x = '\xff'\n", "b.py": "leak(1)\n", "c.py": "# coding: klingon\n"})
    assert main([".", "--output-format", "json"]) == 2
    report = as_json(capsys)
    reasons = {row["path"]: row["reason"] for row in report["failures"]}
    assert reasons["a.py"].startswith("not valid utf-8 (byte 0xff in line 1)")
    assert "klingon" in reasons["c.py"]
    assert [row["path"] for row in report["findings"]] == ["b.py"]
    assert report["summary"]["files"] == 1


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbfleak('\xc3\xa9')\n",
        "# -*- coding: latin-1 -*-\nleak('é')\n".encode("latin-1"),
        b"leak(1)\r\n",
        "# -*- coding: future_fstrings -*-\nleak(f'é')\n".encode(),
    ],
    ids=["bom", "latin-1", "crlf", "of-a-package"],
)
def test_encodings_and_newlines(toy: Toy, capsys: Capture, text: bytes) -> None:
    toy({"train.py": text})
    main(["train.py", "--output-format", "json"])
    (finding,) = as_json(capsys)["findings"]
    assert (finding["line"], finding["column"]) == (2 if b"coding" in text else 1, 1)


def test_a_file_that_does_not_parse_is_a_finding(toy: Toy, capsys: Capture) -> None:
    toy({"broken.py": "def (:\n", "train.py": "leak(1)\n"})
    assert main([".", "--select", "MEM901", "--output-format", "json"]) == 1
    broken, leak = as_json(capsys)["findings"]
    assert (broken["code"], broken["severity"], broken["path"], broken["line"]) == ("MEM000", "warning", "broken.py", 1)
    assert leak["path"] == "train.py"


@pytest.mark.parametrize(
    ("arguments", "nearest"),
    [
        (["--select", "MEM9O1"], "MEM901"),
        (["--ignore", "toy-leek"], "toy-leak"),
        (["--output-format", "jsn"], "json"),
        (["--selct", "MEM901"], "--select"),
        (["--min-confidence", "hihg"], "high"),
    ],
)
def test_a_typo_exits_with_2_and_names_the_nearest(
    toy: Toy, capsys: Capture, arguments: list[str], nearest: str
) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["train.py", *arguments]) == 2
    captured = capsys.readouterr()
    assert f"did you mean `{nearest}`?" in captured.err
    assert not captured.out


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.py", "--preview", "b.py"],
        ["--preview", "a.py", "--statistics", "b.py"],
        ["a.py", "--select", "MEM9", "--", "b.py"],
        ["--jobs", "1", "--", "a.py", "b.py"],
        # an option whose name is that of a command
        ["--config", "pyproject.toml", "a.py", "b.py"],
        ["--config=pyproject.toml", "a.py", "b.py"],
    ],
)
def test_options_stand_where_they_like(toy: Toy, capsys: Capture, arguments: list[str]) -> None:
    toy({"a.py": "leak(1)\n", "b.py": "leak(1)\n"})
    assert main(arguments) == 1
    out = capsys.readouterr().out
    assert "a.py" in out and "b.py" in out


def test_a_file_that_looks_like_an_option(toy: Toy, capsys: Capture) -> None:
    toy({"--preview.py": "leak(1)\n"})
    assert main(["-q", "--output-format", "concise", "--", "--preview.py"]) == 1
    assert capsys.readouterr().out.startswith("--preview.py:1:1: warning MEM901")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--preview=yes"], "--preview: takes no value"),
        (["-z"], "unknown option `-z`\n"),
        (["--jobs"], "-j/--jobs: expected one argument"),
        (["rules"], "there is no file or command `rules` (did you mean `rule`?)"),
        (["chek", "a.py"], "there is no file or command `chek` (did you mean `check`?)"),
        ([""], "a path is empty; `.` is the working directory"),
        (["a.py", "--exclude", "[z-a]"], "--exclude: `[z-a]` is no pattern: bad character range z-a"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_line(toy: Toy, capsys: Capture, arguments: list[str], said: str) -> None:
    toy({"a.py": "x = 1\n"})
    assert main(arguments) == 2
    assert capsys.readouterr().err.startswith(f"memlint: error: {said}")


def test_a_file_may_be_called_almost_like_a_command(toy: Toy) -> None:
    toy({"rules/a.py": "leak(1)\n", "check/b.py": "x = 1\n"})
    assert main(["rules"]) == 1
    assert main(["./check"]) == 0


def test_selecting_rules(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\nburst(2)\nwhisper(3)\n"})
    for arguments, expected in (
        ([], ["MEM901", "MEM902"]),
        (["--select", "MEM902"], ["MEM902"]),
        (["--select", "MEM9"], ["MEM901", "MEM902"]),
        (["--select", "MEM9", "--ignore", "toy-burst"], ["MEM901"]),
        (["--ignore", "MEM9"], []),
        (["--ignore", "MEM90", "--extend-select", "MEM901"], ["MEM901"]),
        (["--preview"], ["MEM901", "MEM904", "MEM902"]),
        (["--min-confidence", "low"], ["MEM901", "MEM902", "MEM903"]),
    ):
        main(["train.py", "--output-format", "json", *arguments])
        assert codes(capsys) == expected, arguments


@pytest.mark.parametrize(
    ("source", "arguments", "said"),
    [
        ("x = 1", [], "Found nothing in 1 file ("),
        ("whisper(1)", [], "Found nothing in 1 file; 1 more of low confidence (--min-confidence low) ("),
        ("whisper(1)", ["--min-confidence", "low"], "Found 1 note in 1 file ("),
        (
            "leak(1)\nburst(1)\nburst(2)  # noqa: MEM902\nwhisper(1)\nwhisper(2)",
            [],
            "Found 1 error and 1 warning in 1 file; 2 more of low confidence (--min-confidence low), "
            "1 in preview rules (--preview), 1 suppressed (",
        ),
        ("leak(1)", [], "Found 1 warning in 1 file; 1 more in preview rules (--preview) ("),
        ("leak(1)", ["--preview"], "Found 2 warnings in 1 file ("),
        ("leak(1)  # noqa: MEM901, MEM904", [], "Found nothing in 1 file; 1 suppressed ("),
        ("leak(1)", ["--ignore", "MEM904"], "Found 1 warning in 1 file ("),
        ("leak(1)", ["--select", "MEM902"], "Found nothing in 1 file ("),
        ("whisper(1)", ["--ignore", "MEM903"], "Found nothing in 1 file ("),
    ],
)  # fmt: skip
def test_the_summary_says_what_was_held_back(
    toy: Toy, capsys: Capture, source: str, arguments: list[str], said: str
) -> None:
    toy({"train.py": f"{source}\n"})
    for output in ("text", "concise"):
        main(["train.py", "--output-format", output, *arguments])
        assert capsys.readouterr().out.splitlines()[-1].startswith(said)


def test_a_preview_rule_that_is_named_without_preview_is_mentioned(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["train.py", "--extend-select", "MEM904"]) == 1
    assert "MEM904 [toy-preview] is a preview rule" in capsys.readouterr().err
    assert main(["train.py", "--select", "MEM904"]) == 2
    assert "no rule is selected" in capsys.readouterr().err


def test_json_has_exactly_the_documented_keys(toy: Toy, capsys: Capture) -> None:
    toy({"sub/train.py": "x = 1\n\nleak(1)\n"})
    main(["sub", "--output-format", "json"])
    report = as_json(capsys)
    assert list(report) == ["version", "findings", "failures", "summary"]
    assert report["version"] == 1
    counts = ["files", "skipped", "errors", "warnings", "notes", "seconds", "suppressed", "silenced_by_evidence"]
    assert list(report["summary"]) == [*counts, "held_back", "baselined"]
    # (one more finding than is shown: a preview rule's)
    assert report["summary"].pop("held_back") == {
        "medium_confidence": 0,
        "low_confidence": 0,
        "preview": 1,
        "unused_code": 0,
        "unchanged_lines": 0,
    }
    (finding,) = report["findings"]
    assert len(finding.pop("fingerprint")) == len(finding["statement"].pop("fingerprint")) == 16
    assert finding == {
        "code": "MEM901", "name": "toy-leak", "severity": "warning", "confidence": "high",
        "message": "This leaks.", "help": "Do not leak.", "path": "sub/train.py", "line": 3, "column": 1, "end_line": 3,
        "end_column": 8, "cell": None, "growth": {"memory": "host", "kind": "per-iteration"},
        "reach": "used", "reach_reason": "",
        "trace": [{"path": "sub/train.py", "line": 3, "column": 1, "message": "it begins here", "cell": None}],
        "fix": None, "alternatives": [], "evidence": None, "suppressed": None,
        "statement": {"function": "toy", "line": 3, "end_line": 3},
    }  # fmt: skip


def test_paths_are_relative_to_the_working_directory_or_absolute(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = toy({"sub/train.py": "leak(1)\n", "other/a.py": "x = 1\n"})
    monkeypatch.chdir(root / "sub")
    main(["../sub/train.py", "--output-format", "json"])
    assert as_json(capsys)["findings"][0]["path"] == "train.py"
    monkeypatch.chdir(root / "other")
    main(["../sub/train.py", "--output-format", "json"])
    assert as_json(capsys)["findings"][0]["path"] == (root / "sub/train.py").as_posix()


def test_standard_input(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "x = 1\n"})
    script = "import memlint.cli, sys; sys.exit(memlint.cli.main())"
    done = subprocess.run(
        [sys.executable, "-c", script, "-", "--stdin-filename", "train.py", "--output-format", "json"],
        input=b"def (:\n", capture_output=True, cwd=root, check=False,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["findings"][0]["path"] == "train.py"


def test_output_file_is_written_whole(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    (root / "report.json").write_text("old")
    assert main(["train.py", "--output-format", "json", "--output-file", "report.json"]) == 1
    assert json.loads((root / "report.json").read_text())["version"] == 1
    assert not capsys.readouterr().out
    assert not list(root.glob(".report.json*"))


@pytest.mark.parametrize("words", [["-o"], ["--output-format", "json", "--output-file"]])
@pytest.mark.parametrize("wrong", ["no/such/folder", "."])
def test_a_report_that_cannot_be_written_ends_the_run_before_it_begins(
    toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], wrong: str
) -> None:
    toy({"train.py": "leak(1)\n"})
    monkeypatch.setattr("memlint.cli.commands.check.run", lambda *_, **__: pytest.fail("it was linted"))
    assert main(["train.py", *words, wrong]) == 2
    assert f"--output-file: {wrong} cannot be written:" in capsys.readouterr().err


def test_an_output_file_that_is_a_symlink_or_a_pipe_stays_one(toy: Toy) -> None:
    root = toy({"train.py": "leak(1)\n"})
    (root / "link.txt").symlink_to("target.txt")
    assert main(["train.py", "--output-file", "link.txt"]) == 1
    assert (root / "link.txt").is_symlink()
    assert "MEM901" in (root / "target.txt").read_text()
    os.mkfifo(root / "pipe")
    done = shell("memlint missing.py -o pipe & cat pipe; wait", root)
    assert "no such file" in done.stdout
    assert stat.S_ISFIFO((root / "pipe").lstat().st_mode)
    assert "no such file" in shell("memlint missing.py -o /dev/stdout | cat", root).stdout


def test_statistics_count_by_rule(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "burst(1)\nleak(1)\nleak(2)\nleak(3)  # noqa: MEM901\n"})
    main(["train.py", "--statistics"])
    assert capsys.readouterr().out.splitlines()[-2:] == ["2  MEM901  toy-leak", "1  MEM902  toy-burst"]


def test_nothing_to_lint_is_said(toy: Toy, capsys: Capture) -> None:
    toy({"data/readme.txt": "hi", "build/code.py": "leak(1)\n"})
    assert main(["data", "build"]) == 1
    assert "skipped data: no Python files found" in capsys.readouterr().err
    assert main(["data"]) == 0
    assert "skipped data: no Python files found" in capsys.readouterr().err
    assert main(["build", "--exclude", "build"]) == 2
    assert "excluded by `build`" in capsys.readouterr().out
    assert main(["build"]) == 1, "a folder named build is code like any other"


def test_a_named_file_is_skipped_only_by_force_exclude_and_that_is_said(toy: Toy, capsys: Capture) -> None:
    toy({"gen/code.py": "leak(1)\n"}, 'exclude = ["gen"]')
    assert main(["gen/code.py"]) == 1
    capsys.readouterr()
    assert main(["gen/code.py", "--force-exclude"]) == 0
    assert "skipped gen/code.py: excluded by `gen`" in capsys.readouterr().err


def test_verbose_says_what_was_skipped_and_cut_short(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "x = 1\n", "gen/code.py": "leak(1)\n"}, 'exclude = ["gen"]')
    assert main([".", "--verbose"]) == 0
    captured = capsys.readouterr()
    assert "skipped gen/code.py: excluded by `gen`" in captured.err
    assert "toy remark" in captured.err
    assert " skipped (" in captured.out


@pytest.mark.parametrize("error", ["KeyError('oops')", "SystemExit(0)"])
def test_a_rule_that_raises_is_an_internal_error_and_the_others_go_on(toy: Toy, capsys: Capture, error: str) -> None:
    bad = (
        "from memlint.sdk import Meta\n"
        "META = Meta(code='MEM999', name='toy-bad', summary='Toy.', severity='note')\n"
        f"def check(facts):\n    raise {error}\n"
    )
    toy({"train.py": "leak(1)\n", "lint_rules/mem999_toy_bad/rule.py": bad})
    assert main(["train.py", "--exit-zero", "--output-format", "json"]) == 2
    report = as_json(capsys)
    assert [row["code"] for row in report["findings"]] == ["MEM901"]
    (failure,) = report["failures"]
    assert failure["path"] == "train.py"
    assert f"the rule MEM999: {error.partition('(')[0]}: " in failure["reason"]
    assert "(rule.py:4)" in failure["reason"]


def test_accepted_options(toy: Toy) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["train.py", "--no-cache", "--no-screen", "--jobs", "2", "--quiet"]) == 1
    assert main(["train.py", "--isolated"]) == 0, "the toy rules come from the configuration"


def test_no_arguments_lint_the_working_directory(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main([]) == 1
    assert "train.py:1:" in capsys.readouterr().out


def test_the_help_goes_to_standard_output(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert "exit codes" in out
    assert "--no-cache" in out
    assert "clean [PATHS]" in out


def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path) -> None:
    command = f"{sys.executable} -m memlint rule --all | head -1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command line in which ``memlint`` is this memlint."""
    line = command.replace("memlint", f'"{sys.executable}" -m memlint', 1)
    path = str(Path(__file__).parents[2])
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("memlint a.py >&-", 0, ""),
        ("memlint --version >&-", 0, ""),
        ("memlint a.py 2>&-", 0, ""),
        ("memlint missing.py >&- 2>&-", 2, ""),
        ("memlint - <&-", 2, "memlint: error: `-` among the paths, but standard input is closed\n"),
    ],
)
def test_a_closed_stream_is_no_crash(tmp_path: Path, command: str, code: int, said: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = shell(command, tmp_path)
    assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", ["a.py", "a.py --output-format json", "rule --all", "--version"])
def test_a_full_disk_is_a_failure(tmp_path: Path, arguments: str) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    done = shell(f"memlint {arguments} > /dev/full", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "memlint: error: the report cannot be written: No space left on device\n"


def test_a_working_directory_that_is_gone(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = shell("cd gone; rmdir ../gone; memlint .", tmp_path)
    assert (done.returncode, done.stderr) == (2, "memlint: error: the working directory is not there any more\n")
