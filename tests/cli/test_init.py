"""What ``memlint init`` writes, and what it leaves."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from pre_commit.clientlib import load_config

from memlint.cli import main
from memlint.config import load
from memlint.printable import printable

Capture = pytest.CaptureFixture[str]
HOOKS, WORKFLOW = ".pre-commit-config.yaml", ".github/workflows/memlint.yml"


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    project = tmp_path / "project"
    project.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    monkeypatch.chdir(project)
    return project


def files(root: Path) -> dict[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}


def test_a_project_without_anything_gets_all_three(root: Path, capsys: Capture) -> None:
    assert main(["init"]) == 0
    assert set(files(root)) == {"memlint.toml", HOOKS, WORKFLOW}
    assert load(root / "memlint.toml", root).min_confidence == "medium"
    (hook,) = load_config(str(root / HOOKS))["repos"][0]["hooks"]
    assert hook["id"] == "memlint" and hook["args"] == ["--"]
    (job,) = yaml.safe_load((root / WORKFLOW).read_text())["jobs"].values()
    assert job["steps"][-1] == {"run": "memlint ."}
    out = capsys.readouterr().out
    for text in files(root).values():
        assert all(f"    {line}".rstrip() in out.splitlines() for line in text.decode().splitlines())
    before = files(root)
    assert main(["init"]) == 0
    assert files(root) == before
    assert capsys.readouterr().out.count("memlint is there") == 3


def test_a_dry_run_prints_the_same_and_writes_nothing(root: Path, capsys: Capture) -> None:
    (root / "pyproject.toml").write_text("[project]\n")
    before = files(root)
    assert main(["init", "--dry-run"]) == 0
    assert files(root) == before
    dry = capsys.readouterr().out
    main(["init"])
    told = capsys.readouterr().out
    assert dry.replace("would be written", "written").replace("would get a table", "has a table now") == told


@pytest.mark.parametrize(
    "before",
    [b"", b"[project]\nname = 'a'\n", b"[project]\r\nname = 'a'\r\n", b"\xef\xbb\xbf[tool.ruff]\nline-length = 9"],
)
def test_a_pyproject_gets_a_table_behind_what_it_holds(root: Path, before: bytes) -> None:
    (root / "pyproject.toml").write_bytes(before)
    assert main(["init"]) == 0
    after = (root / "pyproject.toml").read_bytes()
    assert after.startswith(before)
    assert (b"\r\n" in before) == (b"\r\n" in after) and after.count(b"\n") - after.count(b"\r\n") in (
        0,
        after.count(b"\n"),
    )
    assert load(root / "pyproject.toml", root).min_confidence == "medium"
    assert not (root / "memlint.toml").exists()


KEPT = {
    "our table": ({"pyproject.toml": "[tool.memlint]\npreview = true\n"}, set(), "pyproject.toml: memlint is there"),
    "our file": ({"memlint.toml": ""}, set(), "memlint.toml: memlint is there"),
    "a table that is a value": ({"pyproject.toml": "tool = {a = 1}\n"}, {"memlint.toml"}, "memlint.toml: written"),
    "our hook": ({HOOKS: "repos:\n- repo: x\n  hooks:\n  - id: memlint\n"}, set(), f"{HOOKS}: memlint is there"),
    "other hooks": ({HOOKS: "repos: []\n"}, set(), f"{HOOKS}: is there: add this under `repos`"),
    "our workflow": ({".github/workflows/ci.yaml": "# memlint\n"}, set(), "ci.yaml: memlint is there"),
    "other workflows": ({".github/workflows/ci.yaml": "on: push\n"}, {WORKFLOW}, f"{WORKFLOW}: written"),
    "GitLab": ({".gitlab-ci.yml": "stages: []\n"}, set(), ".gitlab-ci.yml: is there: add this job"),
    "GitLab with our job": ({".gitlab-ci.yml": "memlint: {}\n"}, set(), ".gitlab-ci.yml: memlint is there"),
}


@pytest.mark.parametrize(("given", "new", "said"), KEPT.values(), ids=KEPT)
def test_what_is_there_stays_as_it_is(
    root: Path, capsys: Capture, given: dict[str, str], new: set[str], said: str
) -> None:
    for name, text in given.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    before = files(root)
    assert main(["init"]) == 0
    assert said in capsys.readouterr().out
    after = files(root)
    assert {name: after[name] for name in before} == before
    assert new <= set(after)


def test_a_project_in_a_folder_gets_its_hook_at_the_top(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "pyproject.toml").touch()
    assert main(["init", "sub"]) == 0
    assert set(files(root)) == {"sub/pyproject.toml", HOOKS, WORKFLOW}


def test_without_a_repository_there_is_a_configuration_alone(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "setup.py").touch()
    monkeypatch.chdir(tmp_path / "plain")
    assert main(["init"]) == 0
    assert set(files(tmp_path / "plain")) == {"setup.py", "memlint.toml"}
    assert "is in no git repository" in capsys.readouterr().out


def test_links_out_of_the_repository_are_not_followed(root: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "elsewhere").mkdir()
    (root / ".github").symlink_to(tmp_path / "elsewhere")
    assert main(["init"]) == 2
    assert "leads out of" in capsys.readouterr().err
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "said"), [("[tool", "not valid TOML"), ("[tool.memlint]\nx = 1\n", "memlint is there")]
)
def test_a_pyproject_that_is_wrong_is_left(root: Path, capsys: Capture, text: str, said: str) -> None:
    (root / "pyproject.toml").write_text(text)
    main(["init"])
    captured = capsys.readouterr()
    assert printable(said) in captured.err + captured.out
    assert (root / "pyproject.toml").read_text() == text
