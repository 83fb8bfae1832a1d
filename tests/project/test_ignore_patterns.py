"""Patterns mean what git takes them for, and take no time to speak of, however they are written."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from memlint.cli import main
from memlint.project import Patterns, mistake
from memlint.project.listing import list_files, walk

PATHS = (
    "a.py", "b.py", "ab.py", "a", "build/x.py", "src/build/x.py", "src/a.py", "src/deep/er/a.py", "x/y/z/w.py",
    "x/z/w.py", "foo/bar.py", "foo/baz/bar.py", "doc/frotz/a.py", "a/doc/frotz/a.py", "hello world.py", "[x].py",
    "#hash.py", "!bang.py", "x-y.py", "x_y.py", "aXb.py", "a1.py", "a12.py", ".hidden/a.py", "trailing .py",
    "foo/build/bar.py", "aaaaaaaab.py", "x\\y.py", "é/e.py", "a/b/c/d/e.py", "out/keep.py", "out/lost.py",
)  # fmt: skip
LISTS = (
    ["*.py"], ["a.py"], ["/a.py"], ["build/"], ["build"], ["/build/"], ["src/*.py"], ["src/**"], ["src/**/a.py"],
    ["**/a.py"], ["**/build/**"], ["x/**/w.py"], ["x/**/z/**/w.py"], ["foo/**/bar.py"], ["doc/frotz/"], ["frotz/"],
    ["/doc/frotz"], ["a?.py"], ["a??.py"], ["a[0-9].py"], ["a[!0-9]b.py"], ["[ab].py"], ["[^a].py"], ["x[-_]y.py"],
    ["x[_-]y.py"], [r"\[x\].py"], [r"\#hash.py"], [r"\!bang.py"], ["#hash.py"], ["hello world.py"], ["hello*"],
    ["*.py", "!a.py"], ["src/", "!src/a.py"], ["/*", "!/src"], ["out/*", "!out/keep.py"], ["*", "!*/", "!*.py"],
    ["a*a*a*b.py"], ["*a*"], ["**"], ["*"], ["a/**/e.py"], ["a/**/d/**"], ["**/d/e.py"], ["**/**/e.py"], ["a/*/c"],
    ["a/*/*/d/*"], [".*"], [".hidden"], ["[[:digit:]]*"], ["a[[:alnum:]].py"], ["a[[:upper:]]b.py"], [r"x\\y.py"],
    ["trailing .py"], [r"trailing\ .py"], ["é"], ["?.py"], ["foo**bar.py"], ["src/deep*"],
    ["src/deep/"], ["[]x].py"], ["a/b/**"], ["/**/a.py"], ["build/**/x.py"], ["", "#", "a.py  "], ["/"], ["*.p[y]"],
    ["[x]*"], ["!a.py"], ["**/"], ["**/x.py", "!**/build/x.py"], ["x*/*/w.py"], ["a.py/"], ["a/"],
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for path in PATHS:
        if path != "a":
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).touch()
    return root


@pytest.mark.parametrize("lines", LISTS, ids=" ".join)
def test_a_list_means_what_git_means(lines: list[str], tree: Path) -> None:
    (tree / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = ["git", "-c", "core.quotepath=off", "ls-files", "-o", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=tree, capture_output=True, check=True).stdout.decode().split("\0")
    ours = Patterns(tree, tuple(lines))
    files = {str(path.relative_to(tree)) for path in tree.rglob("*.py") if path.is_file()}
    assert {path for path in files if ours.match(tree / path) is None} == files & set(listed)
    assert {str(path.relative_to(tree)) for path in walk(tree).python} == files & set(listed)


HOSTILE = {
    "stars": "a*" * 60 + "b",
    "stars in a row": "*" * 4000,
    "stars and a letter": "*a" * 1500 + "*b",
    "marks": "?*" * 1000 + "x",
    "double stars": "**/a/" * 800 + "b",
    "double stars of stars": "**/*a*a*/" * 300 + "b",
    "classes": "[a-z]*" * 600 + "9",
    "folders": "*/" * 1500 + "x",
    "stars at the end": "a" * 10 + "*a" * 500 + "/**",
}
LONG = "a" * 250


@pytest.mark.parametrize("kind", HOSTILE)
def test_no_pattern_takes_long(kind: str, tmp_path: Path) -> None:
    """Each path is looked at within a blink, where the plain way would take longer than the universe has."""
    ours = Patterns(tmp_path, (HOSTILE[kind],))
    start = time.process_time()
    for path in (f"{LONG}.py", "/".join([LONG] * 14) + ".py", "/".join("a" * 1500) + "/c.py"):
        ours.match(tmp_path / path)
    assert time.process_time() - start < 20


def test_a_pattern_that_is_too_long_is_refused_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("x = 1\n")
    for line, said in (
        (f'exclude = ["a", "{"b*" * 3000}"]', "`exclude`: `b*b*"),
        (f"exclude = {['a'] * 6000}", "`exclude`: more than 5,000 patterns"),
        (f'per-file-ignores = {{"{"b*" * 3000}" = []}}', "`per-file-ignores`: `b*b*"),
    ):
        (tmp_path / "memlint.toml").write_text(line)
        assert main(["a.py"]) == 2
        error = capsys.readouterr().err
        assert said in error and len(error) < 500


@pytest.mark.parametrize("line", ["!", "x\\", "[z-a]", "[[:nope:]]", "a" * 5000])
def test_what_is_no_pattern(line: str) -> None:
    assert mistake(line) is not None


def test_git_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own patterns take time exponential in their stars: the files are then found without it."""
    monkeypatch.setattr("memlint.project.listing.GIT_SECONDS", 0.5)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / ".gitignore").write_text("a*" * 40 + "b\nlost.py\n")
    for name in (f"{'a' * 200}.py", "kept.py", "lost.py"):
        (tmp_path / name).touch()
    found = list_files(tmp_path)
    assert [path.name for path in found.python] == [f"{'a' * 200}.py", "kept.py"]
    assert ("git did not list it within" in str(found.skipped)) or not found.skipped[1:]


def test_repositories_in_each_other(tmp_path: Path) -> None:
    folder = tmp_path
    for _ in range(30):
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        (folder / "a.py").touch()
        folder = folder / "r"
        folder.mkdir()
    assert len(list_files(tmp_path).python) == 30
