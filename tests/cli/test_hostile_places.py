"""Names that look like options, and modules beside the linted files: none of them is obeyed or run."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.cli import main

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
HOOKS = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
#: names of files in a stranger's commit
NAMES = ("-oX.py", "--output-file=X.py", "--fix.py", "-q.py", "--config=evil.py", "--local-rules.py", "--exit-zero.py")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook["id"])
def test_a_hook_takes_names_for_names(
    hook: dict[str, object], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: object
) -> None:
    """As pre-commit runs it: the entry, its arguments, the file names."""
    monkeypatch.chdir(tmp_path)
    for file in (name, "X.py", "train.py"):
        (tmp_path / file).write_text("import torch\n")
    words = [*shlex.split(str(hook["entry"])), *hook["args"], name, "train.py"]  # type: ignore[misc]
    assert words[0] == "memlint"
    assert main(words[1:]) == 0
    assert [path.read_text() for path in tmp_path.glob("*.py")] == ["import torch\n"] * 3


@pytest.mark.parametrize("name", ["-oX.py", "--output-file=X.py", "-q", "--fix", "--local-rules"])
@pytest.mark.parametrize("command", [[], ["check", "--force-exclude"], ["clean"]])
def test_options_that_are_names_of_files_are_refused(
    name: str, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing ends the options: a hook with arguments of its user's own, or `memlint *`."""
    monkeypatch.chdir(tmp_path)
    for file in (name, "X.py"):
        (tmp_path / file).write_text("import torch\n")
    assert main([*command, "X.py", name]) == 2
    assert f"`{name}` is an option and the name of a file" in " ".join(capsys.readouterr().err.split())
    assert (tmp_path / "X.py").read_text() == "import torch\n"
    assert main(["check", "X.py", "--quiet", "--", name]) in (0, 2)


#: modules that Python or memlint imports, none of which is there before memlint starts
SHADOWS = ("typing", "__future__", "argparse", "json", "tomllib", "msgspec", "libcst", "pathspec", "sqlite3", "rich")


def test_a_module_beside_the_linted_files_is_not_imported(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in SHADOWS:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\nraise SystemExit(7)\n")
    (folder / "train.py").write_text("import torch\nx = 1\n")
    (folder / "pyproject.toml").write_text("[tool.memlint]\n")
    for words in (["."], ["rule", "MEM101"], ["--version"]):
        done = subprocess.run(
            [sys.executable, "-m", "memlint", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert not mark.exists(), mark.read_text()
        assert done.returncode == 0, done.stderr


def test_workers_import_no_module_beside_the_linted_files(tmp_path: Path) -> None:
    """They are Pythons that start in the working directory."""
    mark = tmp_path / "ran"
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in ("multiprocessing", "signal", "socket", "selectors", "struct", "pickle", "threading"):
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write({name!r})\n")
    for number in range(4):
        (folder / f"train{number}.py").write_text("import torch\nx = 1\n")
    script = (
        "import sys\n"
        "from memlint.engine.workers import parts\n"
        "parts.LEAST = parts.MOST = 10\n"
        "from memlint.cli import main\n"
        "if __name__ == '__main__':\n    sys.exit(main(['.', '--jobs', '2', '--no-cache', '--verbose']))\n"
    )
    (tmp_path / "start.py").write_text(script)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "start.py")], cwd=folder, capture_output=True, text=True, check=False
    )
    assert not mark.exists(), mark.read_text()
    assert done.returncode == 0, done.stderr
    if sys.version_info < (3, 11):
        assert "would be taken for Python's own module" in done.stderr
