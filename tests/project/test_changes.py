"""What ``--since`` reports, on real repositories."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.cli import main
from memlint.project import changes
from memlint.project.changes import ALL, Lines, changed_lines

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

LEAKS = "".join(f"leak({number})\n" for number in range(1, 9))


def git(root: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit(root: Path, message: str = "work") -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", message)


@pytest.fixture
def repository(toy: Toy) -> Path:
    """A project with one commit on ``main``, whose a.py has a finding on each of its 8 lines."""
    root = toy({"a.py": LEAKS, "b.py": "x = 1\n"})
    git(root, "init", "-q", "-b", "main")
    commit(root)
    return root


def reported(capsys: Capture, *arguments: str, code: int | None = None) -> list[str]:
    got = main([*arguments, "--output-format", "json"])
    out, err = capsys.readouterr()
    rows = [row for row in json.loads(out or '{"findings": []}')["findings"] if row["suppressed"] is None]
    assert got == (code if code is not None else 1 if rows else 0), err
    return [f"{row['path']}:{row['line']}" for row in rows]


def lines(*numbers: int, path: str = "a.py") -> list[str]:
    return [f"{path}:{number}" for number in numbers]


def edit(root: Path, text: str, name: str = "a.py") -> None:
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).write_bytes(text.encode())


def nothing(root: Path) -> None: ...


def moved_in_place(root: Path) -> None:
    rows = LEAKS.splitlines(keepends=True)
    edit(root, "".join([*rows[4:], *rows[:4]]))


def renamed(root: Path) -> None:
    (root / "a.py").rename(root / "c.py")


def renamed_and_staged(root: Path) -> None:
    git(root, "mv", "a.py", "c.py")


def renamed_and_edited(root: Path) -> None:
    renamed(root)
    edit(root, LEAKS.replace("leak(4)", "leak(44)"), "c.py")


def copied(root: Path) -> None:
    shutil.copy(root / "a.py", root / "c.py")


def left_ignored(root: Path) -> None:
    edit(root, "c.py\n", ".gitignore")
    edit(root, "leak(1)\n", "c.py")


EDITS: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (nothing, []),
    "a line": (lambda root: edit(root, LEAKS.replace("leak(3)", "leak(33)")), lines(3)),
    "lines above": (lambda root: edit(root, "x = 1\n\n" + LEAKS), []),
    "a new line": (lambda root: edit(root, LEAKS.replace("leak(3)", "leak(3)\nburst(1)")), lines(4)),
    "a deleted line": (lambda root: edit(root, LEAKS.replace("leak(3)\n", "")), []),
    "the last line": (lambda root: edit(root, LEAKS + "leak(9)"), lines(9)),
    "moved lines": (moved_in_place, lines(5, 6, 7, 8)),
    "an untracked file": (lambda root: edit(root, "leak(1)\n", "new/c.py"), lines(1, path="new/c.py")),
    "an untracked script": (lambda root: edit(root, "x = 1\nleak(1)\n", "c d\té.py"), ["c d\\té.py:2"]),
    "renamed": (renamed, []),
    "renamed by git": (renamed_and_staged, []),
    "renamed and edited": (renamed_and_edited, lines(4, path="c.py")),
    "copied": (copied, lines(*range(1, 9), path="c.py")),
    "deleted": (lambda root: (root / "a.py").unlink(), []),
    "a statement of several lines": (lambda root: edit(root, LEAKS + "leak(\n    9,\n)\n"), lines(9)),
    "broken": (lambda root: edit(root, LEAKS + "leak(\n"), lines(9)),
}


@pytest.mark.parametrize("staged", [False, True], ids=["work-tree", "committed"])
@pytest.mark.parametrize(("change", "found"), EDITS.values(), ids=EDITS)
def test_changed_lines_alone_are_reported(
    repository: Path, capsys: Capture, change: Callable[[Path], object], found: list[str], staged: bool
) -> None:
    base = git(repository, "rev-parse", "HEAD")
    change(repository)
    if staged:
        git(repository, "add", "-A")
        git(repository, "commit", "-q", "--allow-empty", "-m", "work")
    assert reported(capsys, ".", "--since", base) == found


def test_one_line_of_a_statement_brings_up_the_statement(repository: Path, capsys: Capture) -> None:
    edit(repository, "leak(\n    1,\n    2,\n    3,\n)\nleak(0)\n")
    commit(repository)
    for changed in ("leak(\n    1,\n    20,\n    3,\n)\nleak(0)\n", "leak(\n    1,\n    3,\n)\nleak(0)\n"):
        edit(repository, changed)
        assert reported(capsys, ".", "--since", "HEAD") == lines(1)


def test_the_summary_counts_what_is_on_unchanged_lines(repository: Path, capsys: Capture) -> None:
    edit(repository, LEAKS.replace("leak(3)", "leak(33)"))
    assert main([".", "--since", "HEAD"]) == 1
    assert "; 7 more on unchanged lines (without --since), " in capsys.readouterr().out


def test_a_gitignored_file_that_is_named_is_new(repository: Path, capsys: Capture) -> None:
    left_ignored(repository)
    assert reported(capsys, "c.py", "--since", "HEAD") == lines(1, path="c.py")


@pytest.mark.parametrize("cwd", [".", "sub"])
def test_a_project_in_a_folder_of_a_repository(
    repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, cwd: str
) -> None:
    edit(repository, LEAKS, "sub/c.py")
    commit(repository)
    edit(repository, LEAKS.replace("leak(2)", "leak(22)"), "sub/c.py")
    monkeypatch.chdir(repository / cwd)
    found = reported(capsys, str(repository / "sub"), "--since", "HEAD")
    assert found == lines(2, path="c.py" if cwd == "sub" else "sub/c.py")


def test_a_link_to_the_project_leads_to_its_changes(repository: Path, tmp_path: Path) -> None:
    edit(repository, LEAKS.replace("leak(2)", "leak(22)"))
    (tmp_path / "link").symlink_to(repository)
    file = tmp_path / "link" / "a.py"
    assert changed_lines([file], "HEAD") == {file: Lines(((2, 2),))}


def test_a_repository_in_the_repository_is_compared_with_its_own_history(repository: Path, capsys: Capture) -> None:
    inner = repository / "inner"
    edit(repository, LEAKS, "inner/c.py")
    git(inner, "init", "-q", "-b", "main")
    commit(inner)
    edit(repository, LEAKS.replace("leak(2)", "leak(22)"), "inner/c.py")
    assert reported(capsys, ".", "--since", "HEAD") == lines(2, path="inner/c.py")


def test_without_a_value_it_is_where_the_branch_began(repository: Path, capsys: Capture) -> None:
    git(repository, "checkout", "-q", "-b", "topic")
    edit(repository, LEAKS.replace("leak(2)", "leak(22)"))
    commit(repository)
    git(repository, "checkout", "-q", "main")
    edit(repository, LEAKS.replace("leak(7)", "leak(77)"))
    commit(repository)
    git(repository, "checkout", "-q", "topic")
    assert reported(capsys, ".", "--since") == lines(2)
    assert main(["--output-format", "concise", "--since", "--", "a.py"]) == 1
    assert "a.py:2:1" in capsys.readouterr().out
    assert reported(capsys, ".", "--since", "main") == lines(2, 7)


@pytest.mark.parametrize("name", ["main", "master", "trunk"])
def test_a_clone_knows_the_default_branch_of_its_origin(
    repository: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    git(repository, "branch", "-m", name)
    git(tmp_path, "clone", "-q", str(repository), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-q", "-b", "topic")
    edit(clone, LEAKS.replace("leak(2)", "leak(22)"))
    commit(clone)
    git(clone, "branch", "-D", name)
    monkeypatch.chdir(clone)
    assert reported(capsys, ".", "--since") == lines(2)


def test_fixes_are_made_on_changed_lines_alone(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "    total = 0\n    for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n"
    function = "def {}(model, loader):\n" + body + "        total += loss\n    return total\n"
    edit(tmp_path, "import torch\n" + function.format("old"))
    git(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path)
    edit(tmp_path, "import torch\n" + function.format("new") + function.format("old"))
    monkeypatch.chdir(tmp_path)
    assert reported(capsys, ".", "--since", "HEAD") == lines(7)
    assert reported(capsys, ".", "--since", "HEAD", "--fix", "--unsafe-fixes") == []
    text = (tmp_path / "a.py").read_text()
    assert text.count("total += loss.detach()") == 1
    assert text.index("total += loss.detach()") < text.index("def old")


def without_repository(root: Path) -> None:
    shutil.rmtree(root / ".git")


def unborn(root: Path) -> None:
    shutil.rmtree(root / ".git")
    git(root, "init", "-q", "-b", "main")


def no_real_repository(root: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").mkdir()


def branchless(root: Path) -> None:
    git(root, "branch", "-m", "topic")


def unrelated(root: Path) -> None:
    git(root, "checkout", "-q", "--orphan", "topic")
    commit(root, "another beginning")


WRONG: dict[str, tuple[Callable[[Path], object], list[str], str]] = {
    "no repository": (without_repository, ["--since", "HEAD"], "is in no git repository"),
    "an empty .git": (no_real_repository, ["--since", "HEAD"], "not a git repository"),
    "unknown": (nothing, ["--since", "v9"], "`v9` is no revision of"),
    "a range": (nothing, ["--since", "HEAD..main"], "`HEAD..main` is no revision"),
    "a file": (nothing, ["--since", "HEAD:a.py"], "is no revision"),
    "negated": (nothing, ["--since", "^HEAD"], "is no revision"),
    "an option": (nothing, ["--since=--output=x"], "is no revision"),
    "empty": (nothing, ["--since="], "is no revision"),
    "no commit": (unborn, ["--since"], "has no commit yet"),
    "no default branch": (branchless, ["--since"], "no default branch"),
    "no common commit": (unrelated, ["--since"], "no common commit"),
    "standard input": (nothing, ["-", "--since"], "not standard input"),
    "with a baseline to write": (nothing, ["--since", "HEAD", "--write-baseline", "b.json"], "cannot be combined"),
}


@pytest.mark.parametrize(("change", "arguments", "said"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_told_is_an_error(
    repository: Path, capsys: Capture, change: Callable[[Path], object], arguments: list[str], said: str
) -> None:
    change(repository)
    before = sorted(path.name for path in repository.iterdir())
    assert main([*([] if "-" in arguments else ["."]), *arguments]) == 2
    captured = capsys.readouterr()
    assert said in captured.err and "internal error" not in captured.err
    assert not captured.out
    assert sorted(path.name for path in repository.iterdir()) == before


@pytest.mark.parametrize("revision", ["HEAD", "main"])
def test_a_nested_repository_without_a_commit_is_new(
    repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    inner = repository / "inner"
    inner.mkdir()
    (inner / "c.py").write_text("leak(1)\n")
    git(inner, "init", "-q", "-b", "main")
    assert reported(capsys, ".", "--since", revision) == ["inner/c.py:1"]
    monkeypatch.chdir(inner)
    assert main([".", "--since", revision]) == 2, "alone, it has no such revision"


def test_a_path_behind_the_option_is_told_from_a_revision(repository: Path, capsys: Capture) -> None:
    assert main(["--since", "a.py"]) == 2
    assert "write `memlint a.py --since`" in capsys.readouterr().err


def test_a_shallow_clone_says_how_to_get_its_history(
    repository: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = git(repository, "rev-parse", "HEAD")
    edit(repository, LEAKS + "leak(9)\n")
    commit(repository)
    git(tmp_path, "clone", "-q", "--depth", "1", repository.as_uri(), "clone")
    monkeypatch.chdir(tmp_path / "clone")
    assert main([".", "--since", first]) == 2
    assert "this clone is shallow" in capsys.readouterr().err


def test_without_git_it_is_an_error(repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(repository / "none"))
    assert main([".", "--since", "HEAD"]) == 2
    assert "needs git" in capsys.readouterr().err


def test_git_is_not_waited_for_without_end(
    repository: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "bin").mkdir()
    program(tmp_path / "bin" / "git", "exec sleep 60")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(changes, "SECONDS", 0.2)
    monkeypatch.setattr("memlint.project.listing.GIT_SECONDS", 0.2)
    assert main([".", "--since", "HEAD"]) == 2
    assert "did not answer within" in capsys.readouterr().err


def program(path: Path, line: str) -> Path:
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_nothing_that_a_configuration_names_is_run(repository: Path, capsys: Capture, tmp_path: Path) -> None:
    """Nor does it change what is compared."""
    evil = program(tmp_path / "evil", f"echo ran >> '{tmp_path / 'ran'}'; cat")
    for setting in (
        "diff.external", "core.fsmonitor", "diff.py.textconv", "diff.py.command", "filter.py.clean",
        "filter.py.smudge", "filter.py.process", "core.pager", "pager.diff", "core.sshCommand",
    ):  # fmt: skip
        git(repository, "config", setting, str(evil))
    for setting, value in (
        ("filter.py.required", "true"), ("diff.noprefix", "true"), ("diff.renames", "false"), ("diff.relative", "true"),
        ("diff.interHunkContext", "9"), ("color.ui", "always"), ("diff.orderFile", "none"), ("core.quotePath", "true"),
    ):  # fmt: skip
        git(repository, "config", setting, value)
    for hook in ("post-index-change", "post-checkout"):
        program(repository / ".git" / "hooks" / hook, str(evil))
    renamed_and_edited(repository)
    edit(repository, "*.py diff=py filter=py\n", ".gitattributes")
    (tmp_path / "ran").unlink(missing_ok=True)
    index = (repository / ".git" / "index").read_bytes()
    assert reported(capsys, ".", "--since", "HEAD") == lines(4, path="c.py")
    assert not (tmp_path / "ran").exists()
    assert (repository / ".git" / "index").read_bytes() == index


def test_a_file_that_git_takes_for_binary_has_lines_too(repository: Path, capsys: Capture) -> None:
    edit(repository, "*.py binary\n", ".gitattributes")
    edit(repository, LEAKS.replace("leak(4)", "leak(44)"))
    assert reported(capsys, ".", "--since", "HEAD") == lines(4)


def test_what_looks_like_a_patch_is_none(repository: Path) -> None:
    edit(repository, '"""\n-- a/b.py\n++ b/b.py\n@@ -1 +1 @@\ndiff --git a/b.py b/b.py\n"""\n' + LEAKS)
    assert changed_lines([repository / "a.py", repository / "b.py"], "HEAD") == {repository / "a.py": Lines(((1, 6),))}
    edit(repository, "x = 2", "c.py")
    assert changed_lines([repository / "c.py"], "HEAD") == {repository / "c.py": ALL}


@pytest.mark.parametrize(
    ("first", "last", "touched"),
    [(1, 1, False), (1, 2, True), (3, 9, True), (4, 4, False), (6, 6, False), (6, 7, True)],
)
def test_lines_touch(first: int, last: int, touched: bool) -> None:
    assert Lines(((2, 3),), (6,)).touch(first, last) == touched
