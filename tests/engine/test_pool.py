"""Large projects are linted in parts: who works on them, and how many, changes nothing that is found."""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import pytest

from memlint.cli import main
from memlint.engine.options import Options
from memlint.engine.run import run
from memlint.engine.workers import parts, pool
from memlint.engine.workers.parts import parts_of
from memlint.finding import Result
from memlint.project import Project

MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x):
        return self.layer(x)
"""
TRAIN = """
import torch
from model import Net
from step import step{number} as step

def train(loader):
    model, total = Net().cuda(), 0
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, y in loader:
        optimizer.zero_grad()
        loss = step(model, x, y)
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""
STEP = """
def step{number}(model, x, y):
    return ((model(x) - y) ** 2).mean()
"""
#: a rule that does to its process what the linted text says
DEADLY = """
import os, signal, time
from pathlib import Path
from memlint.sdk import Event, Meta

META = Meta(code="MEM950", name="deadly", summary="Toy.", severity="warning")

def check(facts):
    for event in facts.of(Event):
        if event.site.path.endswith("train2.py"):
            {deed}
    return ()
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four training scripts, each of which keeps its losses' graphs by a step that another file defines."""
    files = {"model.py": MODEL, "step.py": "".join(STEP.format(number=number) for number in range(4))}
    files |= {f"train{number}.py": TRAIN.format(number=number) for number in range(4)}
    root = tmp_path / "project"
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    (root / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of about one file."""
    monkeypatch.setattr(parts, "LEAST", 300)
    monkeypatch.setattr(parts, "MOST", 300)


def lint(root: Path, *, jobs: int = 1, executor: str | None = None) -> Result:
    return run(["."], Options(cwd=root, jobs=jobs, executor=executor)).result


def grow(root: Path) -> None:
    """Make each file so large that the project is linted in parts."""
    for file in root.glob("*.py"):
        file.write_text(file.read_text() + ("#" * 99 + "\n") * 10_000)


def deadly(root: Path, deed: str) -> None:
    room = root / "rooms" / "mem950_deadly"
    room.mkdir(parents=True)
    (room / "rule.py").write_text(DEADLY.format(deed=deed))
    (room / "README.md").write_text("# deadly\n")
    (root / "memlint.toml").write_text('rule-paths = ["rooms"]\n')


def test_parts_hold_every_linted_file_once_and_in_order(project: Path, small: None) -> None:
    found = Project(project, project, sorted(project.glob("*.py")), ())
    groups = parts_of(found)
    assert len(groups) > 3
    assert tuple(display for group in groups for display in group) == found.linted


def test_a_small_project_is_one_part(project: Path) -> None:
    assert len(parts_of(Project(project, project, sorted(project.glob("*.py")), ()))) == 1


def test_parts_find_what_the_whole_project_has(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = lint(project)
    assert [finding.code for finding in whole.findings] == ["MEM101"] * 4
    monkeypatch.setattr(parts, "LEAST", 300)
    monkeypatch.setattr(parts, "MOST", 300)
    assert lint(project).findings == whole.findings


HELPER = """
import torch

def evaluate(model, loader, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        total += criterion(model(x.cuda()), y.cuda()).item()
    return total / len(loader)

def run_model(model, batch):
    return model(batch[0].cuda()), batch[1].cuda()
"""
BETWEEN = """
from helper import evaluate as validate

def checked(model, loader, criterion):
    return validate(model, loader, criterion)
"""
GUARDED = """
import torch
from between import checked

def main(loader):
    model = torch.nn.Linear(8, 8).cuda()
    with torch.no_grad():
        print(checked(model, loader, torch.nn.MSELoss()))
"""
SHARED = """
import torch
from helper import run_model

def validate(loader):
    model = torch.nn.Linear(8, 8).cuda()
    model.eval()
    right = 0
    for batch in loader:
        out, y = run_model(model, batch)
        right += (out.argmax(1) == y).sum().item()
    return right
"""
TRAINS = """
import torch
from helper import run_model

def train(loader):
    model = torch.nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for batch in loader:
        out, y = run_model(model, batch)
        loss = ((out - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        pytest.param({"helper": HELPER}, ["helper.py"], id="a helper that nobody calls"),
        pytest.param({"helper": HELPER, "between": BETWEEN, "main": GUARDED}, [], id="a guard two calls up"),
        pytest.param(
            {"helper": HELPER, "between": BETWEEN} | {f"main{number}": GUARDED for number in range(30)},
            [],
            id="many callers, all guarded",
        ),
        pytest.param({"helper": HELPER, "shared": SHARED, "trains": TRAINS}, ["helper.py", "shared.py"], id="shared"),
    ],
)
def test_what_hangs_on_other_files_is_found_in_parts_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], expected: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    whole = lint(tmp_path)
    assert [finding.path for finding in whole.findings] == expected
    monkeypatch.setattr(parts, "LEAST", 100)
    monkeypatch.setattr(parts, "MOST", 100)
    assert lint(tmp_path).findings == whole.findings


@pytest.mark.parametrize(
    "folder",
    [
        "projects/rollouts",
        "demo",
        "projects/segtrain",
    ],
)
def test_real_projects_have_the_same_findings_in_parts(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(Path(__file__).parents[2] / "fixtures" / folder, tmp_path / "project")
    (root / "pyproject.toml").write_text("")  # a project of its own
    monkeypatch.chdir(root)
    options = Options(cwd=root, jobs=1, isolated=True)
    whole = run(["."], options).result
    monkeypatch.setattr(parts, "LEAST", 1000)
    monkeypatch.setattr(parts, "MOST", 1000)
    assert whole.findings
    assert run(["."], options).result.findings == whole.findings


@pytest.mark.usefixtures("small")
def test_workers_find_what_one_process_finds(project: Path) -> None:
    alone, together = lint(project), lint(project, jobs=2)
    assert alone.findings
    assert (together.findings, together.failures) == (alone.findings, alone.failures)


@pytest.mark.usefixtures("small")
def test_workers_have_the_configuration(project: Path) -> None:
    table = 'exclude = ["train0.py"]\nseverity = {MEM101 = "note"}\nper-file-ignores = {"train[1]*" = ["MEM101"]}\n'
    (project / "memlint.toml").write_text(table)
    alone, together = lint(project), lint(project, jobs=2)
    assert [(finding.path, finding.severity) for finding in together.findings] == [
        ("train2.py", "note"), ("train3.py", "note")
    ]  # fmt: skip
    assert together.findings == alone.findings


@pytest.mark.usefixtures("small")
def test_workers_have_what_the_command_line_says(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--min-confidence", "low", "--select", "MEM101", "--extend-select", "MEM201", "--ignore", "MEM305"]
    words += ["--exclude", "train0.py", "--extend-exclude", "train1.py", "--force-exclude", "--preview"]
    said = []
    for jobs in ("1", "2"):
        assert main([*words, "--jobs", jobs, "--no-cache", "--output-format", "json", "."]) == 1
        said.append(json.loads(capsys.readouterr().out)["findings"])
    assert said[0] == said[1]
    assert [finding["path"] for finding in said[0]] == ["train2.py", "train3.py"]


@pytest.mark.usefixtures("small")
def test_standard_input_is_linted_in_parts_too(project: Path) -> None:
    changed = (project / "train1.py").read_bytes().replace(b"total += loss", b"total += loss.item()")
    options = Options(cwd=project, jobs=2, stdin=changed, stdin_filename="train1.py")
    found = run([".", "-"], options).result.findings
    assert {finding.path for finding in found} == {"train0.py", "train2.py", "train3.py"}


@pytest.mark.usefixtures("small")
def test_a_killed_worker_costs_the_file_that_killed_it(project: Path) -> None:
    deadly(project, "os.kill(os.getpid(), signal.SIGKILL)")
    result = lint(project, jobs=2)
    assert {finding.path for finding in result.findings} == {"train0.py", "train1.py", "train3.py"}
    assert [failure.path for failure in result.failures] == ["train2.py"]
    assert "was killed" in result.failures[0].reason


class _None:
    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self, workers: int) -> Executor:
        raise self._error


def _ends_at_once(workers: int) -> Executor:
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=os._exit, initargs=(1,))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "start", [_None(OSError("no")), _None(NotImplementedError("no")), _None(EOFError("no")), _ends_at_once]
)
def test_where_no_worker_can_start_one_process_does_it(
    project: Path, start: Callable[[int], Executor], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = lint(project)
    monkeypatch.setattr(pool, "_processes", start)
    found = lint(project, jobs=2)
    assert (found.findings, found.failures) == (alone.findings, ())
    assert any("one process did all of the work" in remark for remark in found.remarks)


def _pids(folder: Path) -> list[int]:
    return [int(file.name) for file in folder.iterdir()]


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_workers_end_with_the_run(project: Path, tmp_path: Path, sent: signal.Signals, code: int) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    deadly(project, f"Path({str(marks)!r}, str(os.getpid())).touch(); time.sleep(600)")
    grow(project)
    command = [sys.executable, "-c", _ANSWERS_CTRL_C, "--no-cache", "-j", "2", "."]
    process = subprocess.Popen(command, cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    limit = time.monotonic() + 60
    while not (pids := _pids(marks)) and time.monotonic() < limit:
        time.sleep(0.05)
    process.send_signal(sent)
    assert process.wait(30) == code
    while not all(map(_gone, pids)) and time.monotonic() < limit:
        time.sleep(0.05)
    assert pids
    assert all(map(_gone, pids))


#: a test run in the background is one that ignores Ctrl-C, and so would what it starts
_ANSWERS_CTRL_C = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from memlint.cli import main
if __name__ == "__main__":
    sys.exit(main())
"""


def test_a_script_without_a_guard_may_lint(project: Path) -> None:
    grow(project)
    script = project.parent / "script.py"
    script.write_text("import memlint\nprint(len(memlint.lint('.', jobs=2, isolated=True).findings))\n")
    done = subprocess.run([sys.executable, str(script)], cwd=project, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("4\n", "")


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Dask cluster of two worker processes on this machine."""
    if importlib.util.find_spec("distributed") is None:
        pytest.skip("distributed is not installed")
    script = (
        "import sys\n"
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=2, dashboard_address=None) as cluster:\n"
        "        print(cluster.scheduler_address, flush=True)\n"
        "        sys.stdin.read()\n"
    )
    file = tmp_path_factory.mktemp("cluster") / "cluster.py"
    file.write_text(script)
    process = subprocess.Popen(
        [sys.executable, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        yield process.stdout.readline().strip().replace("tcp://", "dask://")
    finally:
        process.stdin.close()
        process.wait(30)


@pytest.mark.usefixtures("small")
def test_a_cluster_finds_what_this_machine_finds(project: Path, scheduler: str) -> None:
    here = lint(project)
    there = lint(project, executor=scheduler)
    assert here.findings
    assert (there.findings, there.failures) == (here.findings, here.failures)


@pytest.mark.usefixtures("small")
def test_a_cluster_reads_a_changed_file_anew(project: Path, scheduler: str) -> None:
    assert len(lint(project, executor=scheduler).findings) == 4
    changed = project / "train1.py"
    changed.write_text(changed.read_text().replace("total += loss", "total += loss.item()"))
    assert {finding.path for finding in lint(project, executor=scheduler).findings} == {
        "train0.py", "train2.py", "train3.py"
    }  # fmt: skip


def test_a_cluster_is_named_on_the_command_line(
    project: Path, scheduler: str, capsys: pytest.CaptureFixture[str]
) -> None:
    grow(project)
    assert main(["--executor", scheduler, "--output-format", "json", "."]) == 1
    assert len(json.loads(capsys.readouterr().out)["findings"]) == 4


@pytest.mark.parametrize("address", ["dask://", "localhost:8786", "task://localhost:8786", "dask://localhost"])
def test_an_address_that_is_none_is_an_error(project: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--executor", address, "."]) == 2
    assert "expected dask://HOST:PORT" in capsys.readouterr().err


@pytest.mark.usefixtures("small")
def test_a_scheduler_that_does_not_answer_is_an_error(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed")
    from memlint.engine.workers import cluster

    monkeypatch.setattr(cluster, "PATIENCE", 1)
    assert main(["--executor", "dask://127.0.0.1:9", "."]) == 2
    assert "no scheduler answers" in capsys.readouterr().err
