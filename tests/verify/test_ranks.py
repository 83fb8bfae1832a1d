"""Programs of several processes: torchrun, a launcher around memlint, processes that the program starts itself."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from runs import verified
from torch_python import torch_python

from memlint.finding import Finding, Growth
from memlint.measure.processes.agreement import Agreement, Alone, agreement
from memlint.verifier.model import Run, Verdict
from memlint.verifier.processes.child import Ran, read_ranks
from memlint.verifier.processes.group import Group, group
from memlint.verifier.processes.ranks import merged

#: rank 0 alone keeps losses
DISTRIBUTED = """\
import sys
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(100_000):
    if step == 5 and rank == 1 and "fail" in sys.argv:
        raise ValueError("rank 1 is broken")
    loss = model(torch.randn(8, 16)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if rank == 0:
        losses.append(loss)
print("it came to its end")
"""

SPAWNED = """\
import sys
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def train(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(nn.Linear(16, 4))
    losses = []
    for step in range(100_000):
        loss = model(torch.randn(8, 16)).pow(2).mean()
        loss.backward()
        losses.append(loss)


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
    print("all have come back")
"""

FORKED = """\
import multiprocessing
import torch
from torch import nn


def train():
    torch.set_num_threads(1)
    model, losses = nn.Linear(4, 4), []
    for step in range(30):
        loss = model(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        losses.append(loss)


process = multiprocessing.get_context("fork").Process(target=train)
process.start()
process.join()
"""


def agree(folder: Path, rank: int, ranks: int = 2) -> Agreement:
    return Agreement(str(folder), rank, ranks)


def test_ranks_stop_at_one_top_that_lies_ahead(tmp_path: Path) -> None:
    one, other = agree(tmp_path, 0), agree(tmp_path, 1)
    assert not one.reached(7, {7: 20}, [])
    assert not other.reached(7, {7: 19}, [])
    stops = [
        next(top for top in range(20, 100) if rank.reached(7, {7: top}, [])) for rank in (one, other)
    ]  # fmt: skip
    assert stops[0] == stops[1] > 21


def test_they_do_not_stop_before_each_place_was_measured_somewhere(tmp_path: Path) -> None:
    one, other = agree(tmp_path, 0), agree(tmp_path, 1)
    for top in range(20, 60):
        assert not one.reached(7, {7: top}, [3])
        assert not other.reached(7, {7: top}, [3])
    assert not one.reached(7, {7: 60}, [])
    assert any(other.reached(7, {7: top}, [3]) for top in range(60, 80))


def test_they_stop_in_a_loop_that_all_of_them_run(tmp_path: Path) -> None:
    one, other = agree(tmp_path, 0), agree(tmp_path, 1)
    assert not other.reached(7, {7: 30}, [])
    for top in range(20, 50):
        assert not one.reached(8, {7: 30, 8: top}, [])
    assert any(one.reached(7, {7: top, 8: 50}, []) for top in range(31, 45))


def test_who_agrees_is_told_by_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(variable, raising=False)
    assert agreement(str(tmp_path)) is None
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert isinstance(agreement(str(tmp_path)), Agreement)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert isinstance(agreement(str(tmp_path)), Alone)
    monkeypatch.setenv("WORLD_SIZE", "1")
    assert agreement(str(tmp_path)) is None


def data(rank: int, end: str = "finished", tops: int = 20) -> dict[str, object]:
    return {"rank": rank, "end": {"kind": end}, "loops": [{"tops": tops}], "sites": [{"hits": tops}]}


def test_the_worst_verdict_speaks_and_others_are_listed() -> None:
    finding = Finding(
        code="MEM102", name="x", severity="error", confidence="high", message="m", path="a.py", line=1, column=1,
        end_line=1, end_column=2, growth=Growth("host", "per-iteration"), fingerprint="f",
    )  # fmt: skip
    refuted, confirmed = (Verdict(verdict=name, reason="r") for name in ("refuted", "confirmed"))
    run = Run("3", "2", "cpu", "cpu", 20, 1.0, 0, "finished")
    verified, ranks = merged({1: finding}, [{1: refuted}, {1: confirmed}], [data(0), data(1, tops=19)], run)
    assert [verdict.verdict for _, verdict in verified] == ["confirmed"]
    assert [(rank.rank, rank.steps, rank.verdicts) for rank in ranks] == [(0, 20, {"f": "refuted"}), (1, 19, {})]


def test_a_process_that_only_spawned_others_is_no_rank(tmp_path: Path) -> None:
    (tmp_path / "rank-0.json").write_text(json.dumps(data(0, tops=0)))
    (tmp_path / "rank-spawned-12.json").write_text(json.dumps(data(1)))
    (tmp_path / "rank-spawned-11.json").write_text(json.dumps(data(0)))
    (tmp_path / "rank-spawned-10.json").write_text('{"rank": ')
    assert [(one["rank"], one["loops"][0]["tops"]) for one in read_ranks(tmp_path)] == [(0, 20), (1, 20)]


def test_a_group_is_what_the_launcher_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert group({}) is None
    assert group({"RANK": "0", "WORLD_SIZE": "1"}) is None
    found = group({"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_PORT": "../x"})
    assert found is not None
    assert (found.rank, found.local, found.count, found.world, found.leads) == (3, 1, 2, 4, False)
    assert found.folder.parent == tmp_path and not found.folder.exists()
    assert found.meet().is_dir() and found.meet().stat().st_mode & 0o77 == 0


def test_the_first_gathers_and_the_others_take_its_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (Group(rank, rank, 2, 2, tmp_path / "meet") for rank in (0, 1))
    first.meet()
    (first.folder / "rank-0.json").write_text(json.dumps(data(0)))
    (first.folder / "rank-1.json").write_text(json.dumps(data(1, "failed")))
    codes = []
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def follow() -> None:
        second.gathered(Ran((), 7))
        codes.append(second.code(0))

    other = threading.Thread(target=follow)
    other.start()
    ran = first.gathered(Ran((), -9))
    assert ([one["rank"] for one in ran.measured], ran.exit) == ([0, 1], 7)
    first.finish(3)
    other.join()
    assert codes == [3]
    assert not first.folder.exists()


def test_ranks_of_torchrun_stop_together(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DISTRIBUTED)
    done = verified("train.py", "--nproc-per-node", "2", "--timeout", "200", cwd=tmp_path)
    assert done.code == 1, done.said
    assert done.report["run"]["end"] == "stopped"
    (row,) = done.report["findings"]
    assert row["verdict"]["verdict"] == "confirmed-host"
    ranks = done.report["ranks"]
    assert [(rank["rank"], rank["end"]) for rank in ranks] == [(0, "stopped"), (1, "stopped")]
    assert ranks[0]["steps"] == ranks[1]["steps"] < 5000
    assert (ranks[0]["verdicts"], ranks[1]["verdicts"]) == ({}, {row["fingerprint"]: "not-reached"})


@pytest.mark.slow
def test_one_rank_that_fails_is_the_programs_failure(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DISTRIBUTED)
    done = verified("train.py", "--nproc-per-node", "2", "--timeout", "200", "--", "fail", cwd=tmp_path)
    assert done.code == 3
    assert "ValueError: rank 1 is broken" in done.said
    assert done.report["run"]["end"] == "failed"


@pytest.mark.slow
def test_under_torchrun_the_first_rank_reports_on_all(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DISTRIBUTED)
    launcher = (torch_python(), "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")
    memlint = (*launcher, "--no-python", sys.executable)
    done = verified("train.py", "--timeout", "200", cwd=tmp_path, before=memlint)
    assert done.code == 1, done.said
    assert [(rank["rank"], rank["end"]) for rank in done.report["ranks"]] == [(0, "stopped"), (1, "stopped")]
    assert [row["verdict"]["verdict"] for row in done.report["findings"]] == ["confirmed-host"]


@pytest.mark.slow
def test_processes_that_the_program_spawns_are_its_ranks(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SPAWNED)
    done = verified("train.py", "--timeout", "200", "--", str(tmp_path), cwd=tmp_path)
    assert done.code == 1, done.said
    assert [(rank["rank"], rank["end"]) for rank in done.report["ranks"]] == [(0, "stopped"), (1, "stopped")]
    assert [row["verdict"]["verdict"] for row in done.report["findings"]] == ["confirmed-host"]


def test_what_only_forked_processes_reach_is_not_called_unreached(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FORKED)
    done = verified("train.py", cwd=tmp_path)
    assert done.code == 0, done.said
    name, reason = done.verdicts["MEM102"]
    assert name == "unmeasurable" and "forked" in reason
