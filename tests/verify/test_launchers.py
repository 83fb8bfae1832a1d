"""Programs that an installed module runs, and what memlint leaves behind once all is measured."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import ROOT, verify

from memlint.measure.processes.started import script_at

LEAK = """\
import sys
import torch
from torch import nn

model = nn.Linear(8, 8)
kept = []
for step in range(int(sys.argv[1])):
    kept.append(model(torch.randn(64, 8)))
print("kept", len(kept))
"""

#: starts a script as a process of its own, as launchers do
STARTER = "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, '-u', *sys.argv[1:]]))\n"
#: the same from another folder, which is not given by its name
ELSEWHERE = """\
import os, subprocess, sys
here = os.getcwd()
os.chdir("/")
words = [sys.executable, *sys.argv[1:]]
sys.exit(subprocess.Popen(words, -1, None, None, None, None, None, True, False, os.fsencode(here)).wait())
"""
#: imports it, with a finder of its own in front, as pytest does
RUNNER = """\
import importlib, sys
sys.path.insert(0, ".")
sys.argv[1:] = sys.argv[2:]
importlib.import_module("leak")
"""


@pytest.mark.slow
def test_what_an_installed_module_runs_is_measured(tmp_path: Path) -> None:
    site, here = tmp_path / "site", tmp_path / "here"
    for folder, text in (("starter", STARTER), ("elsewhere", ELSEWHERE), ("runner", RUNNER)):
        (site / folder).mkdir(parents=True)
        (site / folder / "__init__.py").touch()
        (site / folder / "__main__.py").write_text(text)
    here.mkdir()
    (here / "leak.py").write_text(LEAK)
    path = os.pathsep.join([str(ROOT), str(site)])
    for module in ("starter", "elsewhere", "runner"):
        words = ("--isolated", "--device", "cpu", "--output-format", "json", "-m", module, "leak.py", "40")
        done = verify(*words, cwd=here, more={"PYTHONPATH": path})
        verdicts = {one["code"]: one["verdict"]["verdict"] for one in json.loads(done.stdout)["findings"]}
        assert verdicts["MEM102"] == "confirmed", done.stderr
        assert done.returncode == 1
    done = verify("--isolated", "-m", "nowhere_to_be_found", cwd=here)
    assert (done.returncode, "nor in the program's environment" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "at"),
    [
        ([sys.executable, "a.py", "b.py"], 1),
        ([sys.executable, "-u", "-X", "dev", "a.py"], 4),
        ([sys.executable, "-m", "module"], None),
        ([sys.executable, "-c", "print()"], None),
        ([sys.executable, "-"], None),
        ([sys.executable], None),
        (["/bin/sh", "a.py"], None),
        ("python a.py", None),
        ([Path("a.py")], None),
        ([], None),
    ],
)
def test_a_script_is_told_from_what_else_a_python_runs(words: Any, at: int | None) -> None:
    assert script_at(words) == at


RUNS_ON = """\
import torch
from torch import nn

model = nn.Linear(8, 8)
later = {}
keep = getattr(later, "__setitem__")


def modes(when):
    print(when, torch._C._len_torch_dispatch_stack())


modes("begin")
for step in range(60):
    model(torch.randn(4, 8)).sum().backward()
modes("first loop")
for step in range(1100):
    model(torch.randn(4, 8)).sum().backward()
modes("second loop")
for step in range(60):
    model(torch.randn(4, 8)).sum().backward()
    keep(step, torch.randn(1000))
    if step == 10:
        modes("third loop")
modes("waits for its end")
"""


def test_nothing_of_memlint_runs_on_once_all_is_measured_until_a_new_loop_comes(tmp_path: Path) -> None:
    (tmp_path / "on.py").write_text(RUNS_ON)
    words = ("on.py", "--isolated", "--device", "cpu", "--full")
    done = verify(*words, cwd=tmp_path, forked=True)
    said = [
        line for line in done.stdout.splitlines() if line.startswith(("begin", "first", "second", "third", "waits"))
    ]
    assert said == ["begin 1", "first loop 1", "second loop 0", "third loop 1", "waits for its end 0"]
    assert "each iteration leaves 4,000 B on cpu that no finding explains" in done.stdout
    assert done.returncode == 0
    assert verify(*words, "--fail-on", "growth", cwd=tmp_path, forked=True).returncode == 1
