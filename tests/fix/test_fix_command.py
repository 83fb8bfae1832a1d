"""What --fix, --diff and --fix-only write, print and exit with."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from toy_process import memlint

from memlint.cli import main

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

SAFE = 'mend("safe", "fixed = 1")\n'
UNSAFE = 'mend("unsafe", "fixed = 2")\n'
SHOWN = 'mend("display", "fixed = 3")\n'


def as_json(capsys: Capture) -> Any:
    return json.loads(capsys.readouterr().out)


def test_fix_mends_what_is_safe_and_reports_the_rest(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": f"x = 0  # stays\n{SAFE}{UNSAFE}{SHOWN}bare()\n"})
    assert main(["a.py", "--fix", "--output-format", "concise"]) == 1
    assert (root / "a.py").read_text() == f"x = 0  # stays\nfixed = 1\n{UNSAFE}{SHOWN}bare()\n"
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(" ")[0] for line in lines[:3]] == ["a.py:3:1:", "a.py:4:1:", "a.py:5:1:"]
    assert lines[3].startswith("Found 4 findings (1 fixed, 3 remaining: 3 warnings) in 1 file (")
    assert lines[4] == "1 fixable with --fix --unsafe-fixes.", "no line is marked"


def test_unsafe_fixes_are_asked_for_and_displayed_ones_never_made(toy: Toy) -> None:
    root = toy({"a.py": SAFE + UNSAFE + SHOWN})
    assert main(["a.py", "--fix", "--unsafe-fixes"]) == 1
    assert (root / "a.py").read_text() == f"fixed = 1\nfixed = 2\n{SHOWN}"


def test_all_mended_exits_with_0_and_a_second_fix_changes_nothing(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": SAFE})
    assert main(["a.py", "--fix"]) == 0
    assert capsys.readouterr().out.startswith("Found 1 finding (1 fixed, 0 remaining) in 1 file (")
    before = (root / "a.py").stat().st_ino
    assert main(["a.py", "--fix", "--exit-non-zero-on-fix"]) == 0
    assert (root / "a.py").stat().st_ino == before, "it was not written again"
    assert capsys.readouterr().out.startswith("Found nothing in 1 file (")


def test_without_fix_nothing_is_written(toy: Toy) -> None:
    root = toy({"a.py": SAFE + UNSAFE})
    for arguments in ([], ["--unsafe-fixes"], ["--diff"], ["--diff", "--unsafe-fixes"], ["--fix", "--diff"]):
        assert main(["a.py", *arguments]) == 1
        assert (root / "a.py").read_text() == SAFE + UNSAFE
    assert sorted(path.name for path in root.iterdir()) == ["a.py", "lint_rules", "pyproject.toml"]


CONFIGURED = "unsafe-fixes = true"


@pytest.mark.parametrize(
    ("config", "arguments", "marked", "closing"),
    [
        ("", [], [True, False, False, False], "[*] 1 fixable with --fix (1 more with --unsafe-fixes)."),
        ("", ["--unsafe-fixes"], [True, True, False, False], "[*] 2 fixable with --fix --unsafe-fixes."),
        (CONFIGURED, [], [True, True, False, False], "[*] 2 fixable with --fix."),
        (
            CONFIGURED,
            ["--no-unsafe-fixes"],
            [True, False, False, False],
            "[*] 1 fixable with --fix (1 more with --unsafe-fixes).",
        ),
    ],
)
def test_concise_output_marks_what_is_fixable(
    toy: Toy, capsys: Capture, config: str, arguments: list[str], marked: list[bool], closing: str
) -> None:
    toy({"a.py": f"{SAFE}{UNSAFE}{SHOWN}bare()\n"}, config)
    main(["a.py", "--output-format", "concise", *arguments])
    lines = capsys.readouterr().out.splitlines()
    assert ["[toy-mend] [*] This leaks." in line for line in lines[:4]] == marked
    assert lines[-1] == closing


def test_the_hint_names_the_options_that_are_needed(toy: Toy, capsys: Capture) -> None:
    """What it promises, the run with these options does."""
    root = toy({"a.py": UNSAFE}, CONFIGURED)
    main(["a.py"])
    assert capsys.readouterr().out.splitlines()[-1] == "1 fixable with --fix."
    assert main(["a.py", "--diff"]) == 1
    assert capsys.readouterr().err == "memlint: would fix 1 finding in 1 file\n"
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == "fixed = 2\n"


def test_each_project_marks_what_its_configuration_makes(toy: Toy, capsys: Capture) -> None:
    inner = f'[tool.memlint]\nrule-paths = ["rules"]\n{CONFIGURED}\n'
    root = toy({"a.py": UNSAFE, "inner/pyproject.toml": inner, "inner/b.py": UNSAFE})
    (root / "lint_rules").rename(root / "inner/rules")
    (root / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["inner/rules"]\n')
    main(["a.py", "inner/b.py", "--output-format", "concise"])
    first, second, *_, last = capsys.readouterr().out.splitlines()
    assert ("[*]" in first, "[*]" in second) == (False, True)
    assert last == "[*] 1 fixable with --fix (1 more with --unsafe-fixes)."
    assert main(["a.py", "inner/b.py", "--fix"]) == 1
    assert ((root / "a.py").read_text(), (root / "inner/b.py").read_text()) == (UNSAFE, "fixed = 2\n")


def test_text_output_says_how_safe_a_fix_is(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": SAFE + UNSAFE + SHOWN})
    main(["a.py"])
    lines = capsys.readouterr().out.splitlines()
    said = [line for line in lines if " = fix: " in line]
    assert said == [
        "  = fix: mend it [safe fix]",
        "  = fix: mend it [unsafe fix: it is a toy]",
        "  = fix: mend it [not applied by --fix]",
    ]
    assert lines[-1] == "1 fixable with --fix (1 more with --unsafe-fixes)."


def test_json_carries_the_edits_and_the_doubt(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": SAFE + UNSAFE + "bare()\n"})
    main(["a.py", "--output-format", "json"])
    safe, unsafe, none = as_json(capsys)["findings"]
    span = {"line": 1, "column": 1, "end_line": 1, "end_column": len(SAFE)}
    edits = [{"path": "a.py", "span": span, "content": "fixed = 1", "cell": None}]
    assert safe["fix"] == {"safety": "safe", "title": "mend it", "doubt": None, "edits": edits}
    assert (unsafe["fix"]["title"], unsafe["fix"]["doubt"]) == ("mend it", "it is a toy")
    assert none["fix"] is None


def test_what_was_fixed_is_told_with_its_doubt(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": SAFE + UNSAFE})
    assert main(["a.py", "--fix", "--unsafe-fixes", "--verbose"]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if ": fixed" in line]
    assert said == [
        "memlint: fixed MEM911 at a.py:1: mend it",
        "memlint: fixed MEM911 at a.py:2: mend it (unsafe: it is a toy)",
    ]


def test_json_of_a_run_that_fixes_holds_what_remains(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": SAFE + "bare()\n"})
    assert main(["a.py", "--fix", "--output-format", "json"]) == 1
    report = as_json(capsys)
    assert [(one["line"], one["fix"]) for one in report["findings"]] == [(2, None)]
    assert report["summary"]["warnings"] == 1


def test_suppressed_findings_are_left_alone(toy: Toy, capsys: Capture) -> None:
    text = 'mend("safe", "fixed = 1")  # noqa: MEM911\n'
    root = toy({"a.py": text + SAFE})
    assert main(["a.py", "--fix", "--unsafe-fixes"]) == 0
    assert (root / "a.py").read_text() == text + "fixed = 1\n"
    assert "(1 fixed, 0 remaining) in 1 file" in capsys.readouterr().out


def test_other_comments_of_a_fixed_line_stay(toy: Toy) -> None:
    root = toy({"a.py": 'mend("safe", "fixed = 1")  # noqa: E501  # why: é\n'})
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == "fixed = 1  # noqa: E501  # why: é\n"


def test_several_fixes_in_several_files(toy: Toy) -> None:
    root = toy({"a.py": f'tail()\nmend("safe", "x = 1")\n{SAFE}tail()\n', "b.py": "tail()\n"})
    assert main([".", "--fix"]) == 0
    assert (root / "a.py").read_text() == "tail().done()\nx = 1\nfixed = 1\ntail().done()\n"
    assert (root / "b.py").read_text() == "tail().done()\n"


def test_a_rule_that_names_a_cause_is_mended_first(toy: Toy) -> None:
    """What the other rule found is gone then, and is not mended for nothing."""
    root = toy({"a.py": 'tail("one")\ncause("safe", "x = 1", "one")\n'})
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == "x = 1\nx = 1\n"


def test_lines_of_a_fix_end_as_the_line_that_they_replace(toy: Toy) -> None:
    call, block = b'mend("safe", "if 1:\\n    x = 1")', b"if 1:\n    x = 1"
    rest = b'\r\nb = """\n\r\n"""\n'
    root = toy({"a.py": b"a = 1\r\n" + call + rest + call})
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_bytes() == b"a = 1\r\n" + block.replace(b"\n", b"\r\n") + rest + block


def test_fix_only_reports_nothing_of_what_remains(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": SAFE + "bare()\n", "b.py": SAFE})
    assert main([".", "--fix-only"]) == 0
    assert (root / "a.py").read_text() == "fixed = 1\nbare()\n"
    assert capsys.readouterr().out == "Fixed 2 findings in 2 files.\n"
    assert main([".", "--fix-only"]) == 0
    assert capsys.readouterr().out == ""
    assert main([".", "missing.py", "--fix-only"]) == 2
    assert "missing.py: no such file" in capsys.readouterr().err


def test_exit_non_zero_on_fix(toy: Toy) -> None:
    toy({"a.py": SAFE})
    assert main(["a.py", "--fix", "--exit-non-zero-on-fix"]) == 1
    assert main(["a.py", "--fix-only", "--exit-non-zero-on-fix"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--exit-non-zero-on-fix"], "--exit-non-zero-on-fix needs --fix"),
        (["--fix", "--exit-zero", "--exit-non-zero-on-fix"], "exclude each other"),
        (["--diff", "--statistics"], "--diff prints no report, so --statistics means nothing beside it"),
        (["--fix-only", "--output-format", "json"], "--fix-only prints no report"),
        (["--fixx"], "did you mean `--fix`?"),
    ],
)
def test_contradictions_are_errors(toy: Toy, capsys: Capture, arguments: list[str], said: str) -> None:
    root = toy({"a.py": SAFE})
    assert main(["a.py", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert (root / "a.py").read_text() == SAFE


def test_diff_is_one_that_patch_applies(toy: Toy, capsys: Capture) -> None:
    files = {"a.py": f"# é\r\n{SAFE.rstrip()}\r\nbare()\r\n", "sub dir/b.py": SAFE.rstrip(), "c.py": "x = 1\n"}
    root = toy(files)
    assert main([".", "--diff"]) == 1
    captured = capsys.readouterr()
    assert "--- a.py\n+++ a.py\n" in captured.out and "+fixed = 1\n\\ No newline at end of file\n" in captured.out
    assert captured.err.splitlines() == ["memlint: would fix 2 findings in 2 files"]
    done = subprocess.run(["patch", "-p0", "--binary"], input=captured.out.encode(), cwd=root, check=False)
    assert done.returncode == 0
    assert (root / "a.py").read_bytes() == "# é\r\nfixed = 1\r\nbare()\r\n".encode()
    assert (root / "sub dir/b.py").read_bytes() == b"fixed = 1"
    capsys.readouterr()
    assert main([".", "--diff"]) == 0
    assert capsys.readouterr().out == ""
    assert main([".", "no.py", "--diff"]) == 2


def test_diff_says_what_else_there_is(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": UNSAFE})
    assert main(["a.py", "--diff"]) == 0
    captured = capsys.readouterr()
    assert captured.err == "memlint: there is nothing to fix (1 more with --unsafe-fixes)\n"
    assert main(["a.py", "--diff", "--quiet"]) == 0
    assert capsys.readouterr().err == ""


def test_standard_input_comes_out_fixed_and_the_report_beside_it(toy: Toy) -> None:
    root = toy({"a.py": "x = 1\n"})
    content = "\ufeffé = 1\r\n".encode() + SAFE.encode() + b"bare()\n"
    done = memlint(root, "-", "--fix", "--stdin-filename", "./a.py", "--output-format", "concise", content=content)
    assert done.returncode == 1
    assert done.stdout == "\ufeffé = 1\r\nfixed = 1\nbare()\n".encode()
    assert done.stderr.decode().splitlines()[0] == "a.py:3:1: warning MEM911[toy-mend] This leaks."
    assert (root / "a.py").read_text() == "x = 1\n", "the file that it stands for is not written"
    assert memlint(root, "-", "--fix-only", content=content).stdout == done.stdout


@pytest.mark.parametrize("content", [b"def (:\n", b"\xff\n", b"x = 1\r"])
def test_standard_input_that_cannot_be_fixed_comes_out_as_it_was(toy: Toy, content: bytes) -> None:
    done = memlint(toy({}), "-", "--fix", content=content)
    assert done.stdout == content
    assert b"Traceback" not in done.stderr


def test_standard_input_that_is_excluded_comes_out_as_it_was(toy: Toy) -> None:
    root = toy({}, 'exclude = ["gen/"]')
    options = ("--stdin-filename", "gen/a.py", "--force-exclude")
    done = memlint(root, "-", "--fix", *options, content=SAFE.encode())
    assert (done.returncode, done.stdout) == (0, SAFE.encode())
    assert done.stderr.decode().startswith("memlint: skipped gen/a.py: excluded by `gen/` (--force-exclude)\n")
    assert memlint(root, "-", *options, content=SAFE.encode()).returncode == 0


def test_standard_input_as_a_diff(toy: Toy) -> None:
    done = memlint(toy({}), "-", "--diff", content=SAFE.encode())
    assert done.returncode == 1
    assert done.stdout.splitlines()[:2] == [b"--- <stdin>", b"+++ <stdin>"]
    assert done.stdout.endswith(b"+fixed = 1\n")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("unsafe-fixes = true", "fixed = 1\nfixed = 2\ntail().done()\n"),
        ('unfixable = ["MEM911"]', f"{SAFE}{UNSAFE}tail().done()\n"),
        ('fixable = ["toy-mend"]', f"fixed = 1\n{UNSAFE}tail()\n"),
        ('fixable = ["MEM9"]\nunfixable = ["MEM912"]', f"fixed = 1\n{UNSAFE}tail()\n"),
        ('fixable = ["MEM912"]\nunfixable = ["MEM9"]', f"{SAFE}{UNSAFE}tail().done()\n"),
        ('fixable = ["ALL"]', f"fixed = 1\n{UNSAFE}tail().done()\n"),
        ("fixable = []", f"{SAFE}{UNSAFE}tail()\n"),
    ],
)
def test_configuration(toy: Toy, config: str, expected: str) -> None:
    root = toy({"a.py": f"{SAFE}{UNSAFE}tail()\n"}, config)
    main(["a.py", "--fix"])
    assert (root / "a.py").read_text() == expected


def test_the_command_line_takes_configured_unsafe_fixes_back(toy: Toy) -> None:
    root = toy({"a.py": UNSAFE}, "unsafe-fixes = true")
    assert main(["a.py", "--fix", "--no-unsafe-fixes"]) == 1
    assert (root / "a.py").read_text() == UNSAFE


@pytest.mark.parametrize(("config", "call"), [("", "detach()"), ('scalar-fix = "item"', "item()")])
def test_rules_are_told_what_a_scalar_becomes(toy: Toy, config: str, call: str) -> None:
    root = toy({"a.py": "item = detach = print\nscalar()\n"}, config)
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == f"item = detach = print\n{call}\n"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ('fixable = ["toy-tial"]', "`fixable`: unknown rule `toy-tial` (did you mean `toy-tail`?)"),
        ('unfixable = ["toy-mnd"]', "`unfixable`: unknown rule `toy-mnd` (did you mean `toy-mend`?)"),
        ('scalar-fix = "detatch"', "`scalar-fix`: `detatch` is not one of detach, item (did you mean `detach`?)"),
        ("unsafe-fix = true", "unknown key `unsafe-fix` (did you mean `unsafe-fixes`?)"),
    ],
)
def test_mistakes_in_the_configuration_name_the_nearest(toy: Toy, capsys: Capture, config: str, said: str) -> None:
    toy({"a.py": SAFE}, config)
    assert main(["a.py", "--fix"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("text", ["::error::no error", "  ::set-env name=PATH::.", "x ##[command]", "\t::group::all"])
def test_no_line_of_a_diff_is_a_command_in_a_job_of_github(
    toy: Toy, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    root = toy({"a.py": f'text = """\n{text}\n"""\n{SAFE}'})
    assert main(["a.py", "--diff"]) == 1
    plain = capfdbinary.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    assert main(["a.py", "--diff"]) == 1
    shown = capfdbinary.readouterr().out
    first, _, rest = shown.partition(b"\n")
    token = first.removeprefix(b"::stop-commands::")
    assert token != first and rest == plain + b"::" + token + b"::\n"
    subprocess.run(["git", "apply", "-"], input=shown, cwd=root, check=True)
    assert "fixed = 1" in (root / "a.py").read_text(), "what is around a patch harms none that reads it"


def test_a_diff_without_a_command_is_the_same_in_a_job(
    toy: Toy, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    toy({"a.py": SAFE})
    main(["a.py", "--diff"])
    plain = capfdbinary.readouterr().out
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    main(["a.py", "--diff"])
    assert capfdbinary.readouterr().out == plain
