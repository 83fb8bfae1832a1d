"""What the worker keeps between two keystrokes changes nothing of what is found."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from memlint.engine.options import Options, no_progress
from memlint.engine.run import run
from memlint.finding import Finding
from memlint.lsp.projects import Projects
from memlint.lsp.worker import REMEMBERED
from memlint.remembered import remember

HELPER = "import torch\n\n\ndef step(model, x):\n    return model(x).mean()\n"
TRAIN = """\
import torch
from steps import step


def train(model: torch.nn.Module, loader):
    total = 0
    for x in loader:
        loss = step(model, x)
        loss.backward()
        total += loss
    return total


def evaluate(model: torch.nn.Module, loader):
    model.eval()
    return [step(model, x) for x in loader]
"""
LINES = ["total += loss.item()", "loss = step(model, x).detach()", "x = x.to('cuda')", "def f(:", "", "    pass", "# ∑"]


class Bench:
    """A project on the disk, with unsaved texts."""

    def __init__(self, root: Path) -> None:
        self.root, self.unsaved = root, dict[Path, bytes]()
        self.projects = Projects()
        self.train, self.helper = root / "train.py", root / "steps.py"
        (root / "pyproject.toml").write_text("")
        self.train.write_text(TRAIN)
        self.helper.write_text(HELPER)

    def options(self) -> Options:
        return Options(cwd=self.root, unsaved=dict(self.unsaved), jobs=1, trusting=False)

    def found(self, file: Path) -> tuple[Finding, ...]:
        """What is found with what is kept, which has to be what a new run finds."""
        remember(REMEMBERED)
        outcome, _ = self.projects.lint(file, self.options(), no_progress)
        self.projects.tidy()
        remember(0)
        fresh = run([str(file)], self.options())
        assert outcome.result.findings == fresh.result.findings
        assert outcome.result.failures == fresh.result.failures
        return outcome.result.findings


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.mark.parametrize("seed", range(3))
def test_edits_of_several_files(bench: Bench, seed: int) -> None:
    chance = random.Random(seed)
    seen = set[int]()
    for _ in range(12):
        file = chance.choice([bench.train, bench.helper])
        lines = (bench.unsaved.get(file) or file.read_bytes()).decode().split("\n")
        at = chance.randrange(len(lines))
        lines[at : at + chance.choice([0, 0, 1])] = [chance.choice(["        ", "    ", ""]) + chance.choice(LINES)]
        bench.unsaved[file] = "\n".join(lines).encode() if chance.random() < 0.8 else TRAIN.encode()
        seen.add(len(bench.found(chance.choice([bench.train, bench.helper]))))
        if chance.random() < 0.2:
            bench.unsaved.pop(file)
    assert len(seen) > 1


def touch(bench: Bench, file: Path, text: str) -> None:
    file.write_text(text)
    status = file.stat()  # (on systems whose clock is coarse)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 10**7))


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        pytest.param(lambda one: touch(one, one.helper, HELPER + "\n"), False, id="an empty line"),
        pytest.param(lambda one: touch(one, one.helper, HELPER.replace("mean()", "mean().item()")), True, id="helper"),
        pytest.param(lambda one: one.helper.unlink(), True, id="a file goes"),
        pytest.param(
            lambda one: touch(one, one.root / "pyproject.toml", '[tool.memlint]\nignore = ["MEM101"]\n'),
            True,
            id="settings",
        ),
        pytest.param(
            lambda one: touch(one, one.root / "memlint.toml", 'ignore = ["MEM101"]\n'), True, id="settings that come"
        ),
        pytest.param(
            lambda one: one.unsaved.update({one.helper: HELPER.replace("mean()", "mean().item()").encode()}),
            True,
            id="a file is opened",
        ),
    ],
)
def test_changes_on_the_disk_are_seen(bench: Bench, change: Callable[[Bench], None], differs: bool) -> None:
    before = bench.found(bench.train)
    assert before
    change(bench)
    assert (bench.found(bench.train) != before) == differs


def test_a_file_that_comes_is_seen_once_that_is_said(bench: Bench) -> None:
    bench.helper.unlink()
    before = bench.found(bench.train)
    bench.helper.write_text(HELPER)
    bench.projects.forget()
    assert bench.found(bench.train) != before
