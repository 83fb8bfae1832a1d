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
from memlint.lsp.edited import Functions, edit_between, functions_of
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


EDITED = """\
import torch


def helper(model, x):
    return model(x).mean()


def train(model: torch.nn.Module, loader):
    total = 0
    for x in loader:
        loss = helper(model, x)
        loss.backward()
        total += loss
    return total


class Evaluation:
    def run(self, model: torch.nn.Module, loader):
        model.eval()
        for x in loader:
            print(model(x).sum())

    def other(self, net: torch.nn.Module, loader):
        return 1
"""


class Edits:
    """A file in an editor whose findings are known."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.file = bench, bench.root / "edited.py"
        self.file.write_text(EDITED)
        self.change(EDITED)
        self.whole()

    def change(self, text: str) -> None:
        self.bench.unsaved[self.file] = text.encode()

    def whole(self) -> list[Finding]:
        return list(self.bench.found(self.file))

    def partial(self) -> list[Finding] | None:
        found = self.bench.projects.lint_edited(self.file, self.bench.options(), no_progress)
        self.bench.projects.tidy()
        return None if found is None else list(found[0])


@pytest.mark.parametrize(
    ("old", "new", "codes"),
    [
        pytest.param("total += loss", "total += loss.item()", ["MEM201"], id="in the function of a finding"),
        pytest.param("total += loss", "total += loss\n        kept = x", ["MEM101", "MEM201"], id="a line more"),
        pytest.param("        model.eval()\n", "", ["MEM101", "MEM201"], id="a line less"),
        pytest.param("return 1", "return 2", ["MEM101", "MEM201"], id="beside"),
        pytest.param(
            "return 1",
            "return map(lambda x: print(net.eval()(x)), loader)",
            ["MEM101", "MEM201", "MEM201"],
            id="a lambda",
        ),
        pytest.param("import torch\n", "import torch\n\nx = 1\n\n", ["MEM101", "MEM201"], id="outside of functions"),
        pytest.param("\n\nclass", "\n\f\nclass", ["MEM101", "MEM201"], id="a form feed"),
        pytest.param("    def run(self", "    @torch.no_grad()\n    def run(self", ["MEM101"], id="a decorator"),
        pytest.param(
            "def train(model", "def more():\n    pass\n\n\ndef train(model", ["MEM101", "MEM201"], id="a function more"
        ),
        pytest.param(EDITED[EDITED.index("    def other") :], "", ["MEM101", "MEM201"], id="a function less"),
        pytest.param("class Evaluation:", "class Renamed:", ["MEM101", "MEM201"], id="a class with another name"),
    ],
)
def test_an_edit_of_one_function(bench: Bench, old: str, new: str, codes: list[str]) -> None:
    edits = Edits(bench)
    edits.change(EDITED.replace(old, new, 1))
    partial, whole = edits.partial(), edits.whole()
    assert [one.code for one in whole] == codes
    assert partial == whole


def test_what_an_edit_does_to_other_functions_is_told_by_the_whole(bench: Bench) -> None:
    edits = Edits(bench)
    edits.change(EDITED.replace(".mean()", ".mean().item()  # a number"))
    partial = edits.partial()
    assert partial is not None
    assert "MEM101" in [one.code for one in partial]
    assert "MEM101" not in [one.code for one in edits.whole()]


def test_a_fix_that_would_change_an_edited_line_is_dropped(bench: Bench) -> None:
    edits = Edits(bench)
    fixes = {one.code: one.fix for one in edits.whole()}
    assert fixes["MEM101"] is not None
    changed = EDITED.replace("import torch\n", "import torch  # again\n")
    edits.change(changed)
    partial = edits.partial()
    assert partial is not None
    for one in partial:
        for edit in () if one.fix is None else one.fix.edits:
            assert edit.span.line > 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda edits: None, id="nothing"),
        pytest.param(lambda edits: edits.change(EDITED + "def f(:\n"), id="does not parse"),
        pytest.param(
            lambda edits: (edits.change(EDITED + "\n"), touch(edits.bench, edits.bench.helper, HELPER + "\n")),
            id="another file on the disk",
        ),
        pytest.param(
            lambda edits: (edits.change(EDITED + "\n"), edits.bench.unsaved.update({edits.bench.helper: b"x = 1\n"})),
            id="another open file",
        ),
    ],
)
def test_when_everything_is_analysed(bench: Bench, change: Callable[[Edits], object]) -> None:
    edits = Edits(bench)
    change(edits)
    assert edits.partial() is None
    edits.whole()


@pytest.mark.parametrize("seed", range(3))
def test_edits_between_two_complete_answers(bench: Bench, seed: int) -> None:
    """Several edits after the last complete answer, in any functions: at last all of them are seen."""
    chance = random.Random(seed)
    edits, text = Edits(bench), EDITED
    for _ in range(6):
        lines = text.split("\n")
        at = chance.randrange(2, len(lines))
        lines.insert(at, chance.choice(["", "    # a comment", "# another"]))
        text = "\n".join(lines)
        edits.change(text)
        partial = edits.partial()
        assert partial is not None
        if chance.random() < 0.4:
            assert partial == edits.whole()
    edits.change(text.replace("total += loss", "total += float(loss)"))
    partial = edits.partial()
    assert partial == edits.whole()


TRAIN_LOOP = EDITED[EDITED.index("def train") : EDITED.index("\n\nclass")].replace("helper(model, x)", "model(x).sum()")
#: two definitions of one name
TWICE = f"import torch\n\n\n{TRAIN_LOOP}\n\n{TRAIN_LOOP}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            TWICE,
            TWICE.replace(TRAIN_LOOP, f'"""\n{TRAIN_LOOP}"""\n', 1),
            id="the first of two definitions gets into a string",
        ),
        pytest.param(EDITED, EDITED.replace("def train", '"""\ndef train') + '"""\n', id="one gets into a string"),
        pytest.param(
            EDITED + EDITED.replace("Evaluation", "Second"),
            EDITED.replace("Evaluation", "Second") + EDITED,
            id="two classes change their names",
        ),
    ],
)
def test_definitions_that_come_and_go_with_their_lines_unchanged(bench: Bench, old: str, new: str) -> None:
    edits = Edits(bench)
    edits.change(old)
    edits.whole()
    edits.change(new)
    partial, whole = edits.partial(), edits.whole()
    assert partial == whole


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("".join(f"    elif x == {one}:\n        pass\n" for one in range(1_500)), id="alternatives"),
        pytest.param("    y = x" + "".join(f" + {one}" for one in range(1_500)) + "\n", id="sums"),
    ],
)
def test_deep_code_is_no_mistake(bench: Bench, text: str) -> None:
    edits = Edits(bench)
    for comment in ("", "# a comment\n"):
        edits.change(EDITED + "\n\ndef deep(x):\n    if x:\n        pass\n" + text + comment)
        edits.partial()
        assert "MEM101" in [one.code for one in edits.whole()]


def test_many_new_lines_are_not_compared_with_many_old_ones() -> None:
    def with_lines(*lines: str) -> Functions:
        found = functions_of("\n".join(lines))
        assert found is not None
        return found

    old, more = with_lines("x = 1", *["", "#"] * 400, "y = 1"), ["", "#"] * 10_000
    assert edit_between(old, with_lines("x = 2", *more, "y = 2")) is None
    added = edit_between(old, with_lines("x = 1", *more, *["", "#"] * 400, "y = 1"))
    assert added is not None
    assert added.lines[802] == 20_802
