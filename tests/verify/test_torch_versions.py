"""The same verdicts by other versions of torch: MEMLINT_TORCH_PYTHONS names Pythons that have one each, the oldest and
the newest at least, with what separates paths here."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from commands import environment
from table import PROGRAMS, arguments, expected, expected_exit, runs, said

pytestmark = pytest.mark.slow

_PYTHONS = [each for each in os.environ.get("MEMLINT_TORCH_PYTHONS", "").split(os.pathsep) if each]
#: of each kind of verdict, and of each way to see one
_NAMES = frozenset(
    {
        "accumulation", "cache_that_fills", "growing_cat", "hook_keeps_activations", "loss_list_after_backward",
        "outputs_on_device", "reference_cycle", "runs_of_short_loops", "unflagged_leak",
    }
)  # fmt: skip


@pytest.mark.parametrize("python", _PYTHONS or [pytest.param("", marks=pytest.mark.skip("no MEMLINT_TORCH_PYTHONS"))])
@pytest.mark.parametrize("name", sorted(_NAMES))
def test_verdicts_are_the_same_by_each_torch(python: str, name: str) -> None:
    run = next(one for one in runs() if one.script.stem == name)
    command = [sys.executable, "-m", "memlint", "verify", "--python", python, *arguments(run, "cpu")]
    done = subprocess.run(
        command, cwd=PROGRAMS, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert said(json.loads(done.stdout)) == expected(run.script), done.stderr
    assert done.returncode == expected_exit(run.script), done.stderr
