"""Which files are linted, which are context, and what is said of the rest."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.project import Discovery, Named, Patterns, discover, find_root


def make(root: Path, *files: str) -> Path:
    root = root.resolve()
    for file in files:
        target = root / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x = 1\n")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


def find(root: Path, *named: str, exclude: tuple[str, ...] = (), force: bool = False) -> Discovery:
    paths = [Named(root / name if name != "." else root) for name in named]
    return discover(root, paths, cwd=root, excludes=[Patterns(root, exclude)], force_exclude=force)


@pytest.fixture(params=["git", "walk"])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same tree under git and without it."""
    root = make(
        tmp_path / "tree", "a.py", "pkg/__init__.py", "pkg/b.py", "build/c.py", "notes.txt", ".venv/lib/d.py",
        "env/pyvenv.cfg", "env/lib/e.py", "node_modules/f.py", "out/g.py", "out/keep.py", "pkg/__pycache__/b.py",
    )  # fmt: skip
    (root / ".gitignore").write_text("out/*\n!out/keep.py\n")
    if request.param == "git":
        git(root, "init", "-q")
        git(root, "add", "a.py", "pkg/b.py")
    return root


def test_a_folder_is_searched_as_git_sees_it(tree: Path) -> None:
    found = find(tree, ".")
    assert found.project.linted == ("a.py", "build/c.py", "out/keep.py", "pkg/__init__.py", "pkg/b.py")
    reasons = {row.path: row.reason for row in found.skipped}
    assert reasons[".venv"] == "folders named .venv are not searched"
    assert reasons["env"] == "a virtual environment"
    assert not found.failures


@pytest.mark.parametrize("named", ["out", "out/g.py", ".venv", ".venv/lib", "env/lib", "node_modules"])
def test_an_ignored_place_that_is_named_is_linted(tree: Path, named: str) -> None:
    linted = find(tree, named).project.linted
    assert linted and all(path.startswith(named) for path in linted)


def test_the_context_is_the_whole_project(tree: Path) -> None:
    project = find(tree, "pkg/b.py").project
    assert project.linted == ("pkg/b.py",)
    assert {"a.py", "build/c.py", "pkg/__init__.py"} <= set(project.sources)
    assert "node_modules/f.py" not in project.sources
    assert project.sources["pkg/b.py"].linted and not project.sources["a.py"].linted


def test_a_deleted_file_is_no_file(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py", "b.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    (root / "b.py").unlink()
    assert find(root, ".").project.linted == ("a.py",)


def test_a_repository_inside_is_part_of_the_tree(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py", "third_party/lib/b.py")
    git(root, "init", "-q")
    git(root / "third_party/lib", "init", "-q")
    assert find(root, ".").project.linted == ("a.py", "third_party/lib/b.py")


@pytest.mark.parametrize("files", [(), ("third_party/lib/b.py", "third_party/lib/out/c.py")])
def test_a_submodule_that_was_never_checked_out(tmp_path: Path, files: tuple[str, ...]) -> None:
    root = make(tmp_path / "repo", "a.py", *files)
    (root / "third_party/lib").mkdir(parents=True, exist_ok=True)
    git(root, "init", "-q")
    git(root, "update-index", "--add", "--cacheinfo", f"160000,{'5bc2a53e' * 5},third_party/lib")
    assert find(root, ".").project.linted == ("a.py", *files)
    inner = tuple(name.removeprefix("third_party/lib/") for name in files)
    assert find(root / "third_party/lib", ".").project.linted == inner


def test_nothing_of_the_linted_repository_runs(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py")
    git(root, "init", "-q")
    hook = root / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {root}/ran\n")
    hook.chmod(0o755)
    git(root, "config", "core.fsmonitor", str(hook))
    assert find(root, ".").project.linted == ("a.py",)
    assert not (root / "ran").exists()


def test_the_environment_of_a_git_hook_does_not_mislead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, other = make(tmp_path / "repo", "a.py"), make(tmp_path / "other", "b.py")
    git(root, "init", "-q")
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert find(root, ".").project.linted == ("a.py",)


@pytest.mark.parametrize("under_git", [True, False])
def test_symlinks(tmp_path: Path, under_git: bool) -> None:
    root = make(tmp_path / "tree", "pkg/a.py")
    outside = make(tmp_path / "outside", "c.py")
    (root / "pkg/loop").symlink_to(root)
    (root / "pkg/again.py").symlink_to(root / "pkg/a.py")
    (root / "pkg/dangling.py").symlink_to(root / "nowhere.py")
    (root / "c.py").symlink_to(outside / "c.py")
    for name in ("itself", "itself.py"):
        (root / name).symlink_to(root / name)
    (root / "beside").symlink_to(outside)
    if under_git:
        git(root, "init", "-q")
    found = find(root, ".")
    assert found.project.linted == ("pkg/a.py",)
    skipped = {row.path: row.reason for row in found.skipped}
    assert skipped["c.py"] == "a link that leads out of the project"
    assert skipped["beside"] in ("a link that leads out of the project", "a symlink to a folder")
    assert find(root, "c.py").project.linted == ("c.py",), "what is named is read"
    assert find(root, "beside").project.linted == ("beside/c.py",)


def test_a_folder_that_became_a_link_is_not_read(tmp_path: Path) -> None:
    """The index of git still holds the files that were below it."""
    root = make(tmp_path / "tree", "pkg/a.py", "sub/c.py")
    outside = make(tmp_path / "outside", "c.py")
    git(root, "init", "-q")
    git(root, "add", ".")
    (root / "sub/c.py").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    assert find(root, ".").project.linted == ("pkg/a.py",)


def test_a_named_symlink_without_a_file_is_a_failure_that_says_so(tmp_path: Path) -> None:
    root = make(tmp_path / "tree", "a.py")
    (root / "b.py").symlink_to(root / "nowhere")
    (root / "c.py").symlink_to(root / "c.py")
    dangling, circle = find(root, "b.py", "c.py").failures
    assert (dangling.path, dangling.reason) == ("b.py", "a symlink that leads nowhere")
    assert (circle.path, circle.reason) == ("c.py", "too many levels of symbolic links")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    root = make(tmp_path / "tree", "a.py")
    os.mkfifo(root / "pipe.py")
    assert find(root, ".").project.linted == ("a.py",)
    (failure,) = find(root, "pipe.py").failures
    assert failure.reason == "not a file: a pipe or a device"


def test_excluded_files(tmp_path: Path) -> None:
    root = make(tmp_path / "tree", "a.py", "gen/b.py", "c_pb2.py")
    found = find(root, ".", exclude=("gen/", "*_pb2.py"))
    assert found.project.linted == ("a.py",)
    assert set(found.project.sources) == {"a.py"}
    assert {row.path: row.reason for row in found.skipped} == {
        "gen/b.py": "excluded by `gen/`",
        "c_pb2.py": "excluded by `*_pb2.py`",
    }
    assert find(root, "gen/b.py", exclude=("gen/",)).project.linted == ("gen/b.py",)
    forced = find(root, "gen/b.py", exclude=("gen/",), force=True)
    assert not forced.project.linted
    assert [row.path for row in forced.said] == ["gen/b.py"]


def test_a_gitignore_with_lines_that_are_no_patterns(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    root = make(tmp_path / "tree", "a.py", "gen/b.py")
    (root / ".gitignore").write_text("[z-a]\n!\nx\\\n[[:space:]]*\ngen/\n")
    assert find(root, ".").project.linted == ("a.py",)
    assert not recwarn.list


def test_a_missing_file_names_its_neighbour(tmp_path: Path) -> None:
    (failure,) = find(make(tmp_path / "tree", "train.py"), "trian.py").failures
    assert failure.reason == "no such file or directory; did you mean train.py?"


def test_a_script_without_a_suffix(tmp_path: Path) -> None:
    root = make(tmp_path / "tree", "train", "data")
    (root / "train").write_text("#!/usr/bin/env python3\n")
    found = find(root, "train", "data")
    assert found.project.linted == ("train",)
    assert [row.reason for row in found.failures] == ["not a Python file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file_says_so(tmp_path: Path) -> None:
    root = make(tmp_path / "tree", "a.py")
    (root / "a.py").chmod(0)
    assert find(root, ".").project.sources["a.py"].unreadable == "permission denied"


def as_nobody(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """memlint as somebody who may not read everything; a test that runs as root gives up that right first."""
    command = [sys.executable, "-m", "memlint", "check", "--output-format", "concise", *arguments]
    if os.geteuid() == 0:
        rights = "-dac_override,-dac_read_search"
        command = ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", *command]
    path = str(Path(__file__).parents[2])
    return subprocess.run(command, cwd=root, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)


@pytest.mark.skipif(os.geteuid() == 0 and shutil.which("setpriv") is None, reason="root reads everything")
@pytest.mark.parametrize("under_git", [True, False])
def test_a_folder_that_may_not_be_looked_into_leaves_the_others_alone(tmp_path: Path, under_git: bool) -> None:
    root = make(tmp_path / "tree", "pyproject.toml", "a.py", "data/b.py", "c.py")
    (root / "pyproject.toml").write_text("")
    if under_git:
        git(root, "init", "-q")
    (root / "c.py").chmod(0)
    (root / "data").chmod(0)
    try:
        whole, folder, file = as_nobody(root, "."), as_nobody(root, "data"), as_nobody(root, "data/b.py")
    finally:
        (root / "data").chmod(0o755)
    assert (whole.returncode, whole.stdout.splitlines()[0]) == (2, "c.py: failed: permission denied")
    assert "in 1 file" in whole.stdout, "a.py was checked"
    assert (folder.returncode, folder.stdout.splitlines()[0]) == (
        2,
        "data: failed: cannot be listed: permission denied",
    )
    assert (file.returncode, file.stdout.splitlines()[0]) == (2, "data/b.py: failed: permission denied")


def test_the_context_of_a_named_file_in_an_ignored_tree_is_that_tree(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "a.py", "trees/one/x.py", "trees/one/lib/y.py", "trees/two/z.py")
    (root / ".gitignore").write_text("trees/\n")
    git(root, "init", "-q")
    inside = root / "trees/one"
    project = discover(root, [Named(inside / "x.py")], cwd=inside).project
    assert {"x.py", "lib/y.py"} <= set(project.sources)
    assert not any(path.endswith("z.py") for path in project.sources)


def test_roots(tmp_path: Path) -> None:
    root = make(tmp_path / "repo", "pyproject.toml", "src/pkg/a.py", "inner/setup.py", "inner/b.py").resolve()
    assert find_root(root / "src/pkg/a.py", root / "src") == root
    assert find_root(root / "inner/b.py", root) == root / "inner"
    loose = make(tmp_path / "loose", "pkg/__init__.py", "pkg/sub/__init__.py", "pkg/sub/c.py")
    assert find_root(loose / "pkg/sub/c.py", loose) == loose
    assert find_root(loose / "pkg/sub/c.py", root) == loose, "the folder around the package"


def test_a_package_among_others_has_itself_as_context(tmp_path: Path) -> None:
    place = make(tmp_path / "site-packages", "one/__init__.py", "one/sub/__init__.py", "one/sub/a.py", "two/b.py")
    for named in (place / "one", place / "one/sub", place / "one/sub/a.py"):
        root = find_root(named, Path("/"))
        project = discover(root, [Named(named)], cwd=Path("/")).project
        assert set(project.sources) == {path.as_posix()[1:] for path in (place / "one").rglob("*.py")}


def test_a_dotfile_repository_at_home_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from memlint.project import roots

    home = make(tmp_path / "home", "work/train.py", "other/huge.py", "lone.py", "beside.py")
    (home / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    roots._too_wide.cache_clear()
    try:
        assert find_root(home / "work/train.py", Path("/")) == home / "work"
        assert find_root(home / "lone.py", Path("/")) == home
        project = discover(home, [Named(home / "lone.py")], cwd=home).project
        assert set(project.sources) == {"lone.py", "beside.py"}
    finally:
        roots._too_wide.cache_clear()


def test_files_of_macos_beside_others_are_no_python(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("x = 1\n")
    (tmp_path / "._net.py").write_bytes(b"\x00\x05\x16\x07\xb0")
    found = discover(tmp_path.resolve(), [Named(tmp_path.resolve())], cwd=tmp_path.resolve())
    assert not found.failures
    assert list(found.project.linted) == ["net.py"]
    assert [row.path for row in found.skipped] == ["._net.py"]


def test_a_template_that_is_not_filled_in_is_no_python(tmp_path: Path) -> None:
    made = make(tmp_path.resolve() / "project", "net.py", "template/{{cookiecutter.name}}/{{cookiecutter.name}}/net.py")
    (made / "template/{{cookiecutter.name}}/{{cookiecutter.name}}/net.py").write_text("from {{name}} import x\n")
    found = discover(made, [Named(made)], cwd=made)
    assert not found.failures
    assert list(found.project.linted) == ["net.py"]
    assert [row.reason for row in found.skipped] == ["a template that is not filled in"]
