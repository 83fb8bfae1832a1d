"""The real pre-commit runs our hooks on a git repository, with this checkout as the hooks' repository."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from notebooks import notebook
from programs_run import ENVIRONMENT, LEAK, ROOT

pytest.importorskip("pre_commit")
yaml = pytest.importorskip("yaml")

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))}
#: a finding that can be mended safely: nobody is given the sum
MENDABLE = """\
import torch
from torch.nn import functional as F


def train(loader):
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss
    print(float(total))
"""
CLEAN = LEAK.format(comment="").replace("append(loss)", "append(loss.detach())")


def git(*arguments: str, cwd: Path) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of what a hook's installation needs, as this checkout has it now."""
    folder = tmp_path_factory.mktemp("hooks") / "memlint"
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("memlint", "rules"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for name in (".pre-commit-hooks.yaml", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, folder / name)
    git("init", "-q", cwd=folder)
    git("add", ".", cwd=folder)
    git("commit", "-q", "-m", "all", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environments that it installs."""
    return tmp_path_factory.mktemp("home")


def project(folder: Path, hooks: Path, hook: str, files: dict[str, str]) -> Path:
    """A repository that uses the hook, with the files staged."""
    folder.mkdir()
    config = {"repos": [{"repo": str(hooks), "rev": git("rev-parse", "HEAD", cwd=hooks), "hooks": [{"id": hook}]}]}
    for name, text in {**files, ".pre-commit-config.yaml": yaml.safe_dump(config)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    git("init", "-q", cwd=folder)
    git("add", ".", cwd=folder)
    return folder


def pre_commit(folder: Path, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pre_commit", "run", "--verbose", *arguments]
    # the installed hook must not find this checkout by itself
    environment = {**ENVIRONMENT, "PRE_COMMIT_HOME": str(home), "PYTHONPATH": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_says_how_it_must_be_run(hook: str) -> None:
    said = HOOKS[hook]
    assert (said["language"], said["types_or"], said["require_serial"]) == ("python", ["python", "jupyter"], True)
    assert said["entry"].split()[:2] == ["memlint", "check"] and "--force-exclude" in said["entry"]


@pytest.mark.slow  # it installs memlint into an environment of pre-commit's own
def test_the_hook_fails_on_a_finding_and_passes_on_clean_code(tmp_path: Path, hooks: Path, home: Path) -> None:
    leak = LEAK.format(comment="")
    files = {"train.py": leak, "notes.txt": "x", "train.ipynb": notebook("!ls", leak)}
    bad = project(tmp_path / "bad", hooks, "memlint", files)
    done = pre_commit(bad, home)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "train.py:12:9: warning MEM102[retained-graph]" in done.stdout and "notes.txt" not in done.stdout
    assert "train.ipynb:cell 2:12:9: warning MEM102[retained-graph]" in done.stdout
    good = project(tmp_path / "good", hooks, "memlint", {"train.py": CLEAN})
    done = pre_commit(good, home)
    assert done.returncode == 0 and "Passed" in done.stdout, done.stdout + done.stderr
    # only staged files are linted, and those with the others as context
    git("commit", "-q", "-m", "bad", cwd=bad)
    (bad / "other.py").write_text("from train import train\n")
    git("add", ".", cwd=bad)
    done = pre_commit(bad, home)
    assert done.returncode == 0 and "MEM102" not in done.stdout, done.stdout + done.stderr
    # as the README has it
    done = pre_commit(bad, home, "memlint", "--all-files")
    assert done.returncode == 1 and "MEM102" in done.stdout


@pytest.mark.slow
def test_the_fixing_hook_mends_and_says_so(tmp_path: Path, hooks: Path, home: Path) -> None:
    """pre-commit fails where a hook has changed a file, and passes when the change is staged."""
    folder = project(tmp_path / "bad", hooks, "memlint-fix", {"train.py": MENDABLE})
    done = pre_commit(folder, home)
    assert done.returncode == 1 and "files were modified by this hook" in done.stdout, done.stdout + done.stderr
    assert (folder / "train.py").read_text() == MENDABLE.replace("+= loss", "+= loss.detach()")
    git("add", ".", cwd=folder)
    done = pre_commit(folder, home)
    assert done.returncode == 0, done.stdout + done.stderr
