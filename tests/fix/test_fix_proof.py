"""Fixes are right: each program of ``fixtures/fixes`` is run as it is and as it was fixed, from the same seed.

A line with ``# fix: [MEM101] safe`` has that finding and a fix of that safety, and no other line has any. After safe
fixes everything that the program returns is the same to the last bit; after unsafe ones so is all but what ``DIFFERS``
names, with the difference that the fix's doubt speaks of: ``value`` (other numbers) or ``requires_grad``. ``MEMORY`` is
what the program needs less of when it is fixed: bytes of ``saved`` tensors, ``nodes`` of graphs or bytes of
``storages``, each at its peak, or all bytes that it ever has ``made``.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memlint

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {path.stem: path for path in sorted((ROOT / "fixtures" / "fixes").glob("*.py"))}
FIXABLE = ("101", "102", "103", "104", "201", "202", "203", "301", "302")
_MARK = re.compile(r"# fix: \[(MEM\d{3})\] (safe|unsafe)")

each_program = pytest.mark.parametrize("name", PROGRAMS)

State = dict[str, Path]


def marks(text: str) -> set[tuple[int, str, str]]:
    """(line, code, safety) of each mark."""
    return {
        (number, code, safety)
        for number, line in enumerate(text.splitlines(), 1)
        for code, safety in _MARK.findall(line)
    }


def constant(name: str, key: str) -> Any:
    for node in ast.parse(PROGRAMS[name].read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == key:
            return ast.literal_eval(node.value)
    return {}


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, State]:
    """Each program as it was, after --fix, and after --fix --unsafe-fixes; a project of its own in each."""
    found: dict[str, State] = {}
    for state, flags in {"before": None, "safe": ["--fix"], "unsafe": ["--fix", "--unsafe-fixes"]}.items():
        folder = tmp_path_factory.mktemp(state)
        found[state] = {}
        for name, path in PROGRAMS.items():
            (folder / name).mkdir()
            (folder / name / "pyproject.toml").touch()
            found[state][name] = Path(shutil.copy(path, folder / name))
        if flags is not None:
            command = [sys.executable, "-m", "memlint", *PROGRAMS, "--isolated", "--preview", "--exit-zero", *flags]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=_environment())
            assert done.returncode == 0 and "not applied" not in done.stderr, done.stderr
    return found


@pytest.fixture(scope="module")
def measured(states: dict[str, State], tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each program computes and needs, in each state."""
    import torch

    out = tmp_path_factory.mktemp("measured") / "all.pt"
    files = [str(path) for state in states.values() for path in state.values()]
    script = str(Path(__file__).with_name("measured.py"))
    subprocess.run([sys.executable, script, str(out), *files], check=True, env=_environment())
    found = torch.load(out, weights_only=False)
    return {state: {name: found[str(path)] for name, path in files.items()} for state, files in states.items()}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


@each_program
def test_the_findings_and_the_safety_of_their_fixes(name: str, states: dict[str, State]) -> None:
    path = states["before"][name]
    result = memlint.lint([path], isolated=True, preview=True)
    found = {(one.line, one.code, "none" if one.fix is None else one.fix.safety) for one in result.findings}
    assert found == marks(path.read_text())


@each_program
def test_fixing_changes_what_it_may_and_leaves_no_finding(name: str, states: dict[str, State]) -> None:
    before = states["before"][name].read_text()
    safeties = {safety for _, _, safety in marks(before)}
    assert (states["safe"][name].read_text() != before) == ("safe" in safeties)
    assert states["unsafe"][name].read_text() != before
    assert not memlint.lint([states["unsafe"][name]], isolated=True, preview=True).findings


@pytest.mark.torch
@each_program
def test_safe_fixes_change_no_bit(name: str, measured: dict[str, dict[str, Any]]) -> None:
    before, after = (measured[state][name]["values"] for state in ("before", "safe"))
    assert before.keys() == after.keys()
    assert {key: _difference(before[key], after[key]) for key in before} == dict.fromkeys(before, "")


@pytest.mark.torch
@each_program
def test_unsafe_fixes_change_what_their_doubt_says(name: str, measured: dict[str, dict[str, Any]]) -> None:
    before, after = (measured[state][name]["values"] for state in ("before", "unsafe"))
    assert before.keys() == after.keys()
    expected = dict.fromkeys(before, "") | constant(name, "DIFFERS")
    assert {key: _difference(before[key], after[key], grad=True) for key in before} == expected


@pytest.mark.torch
@each_program
def test_fixes_need_less_memory(name: str, measured: dict[str, dict[str, Any]]) -> None:
    before, after = (measured[state][name]["memory"] for state in ("before", "unsafe"))
    kind = constant(name, "MEMORY")
    if kind is not None:
        assert after[kind] < before[kind] * 0.8
    for other in before:
        assert after[other] <= before[other] * 1.01, other


@pytest.mark.torch
@each_program
def test_safe_fixes_need_less_memory(name: str, measured: dict[str, dict[str, Any]]) -> None:
    if {safety for _, _, safety in marks(PROGRAMS[name].read_text())} != {"safe"}:
        pytest.skip("not all fixes are safe")
    before, after = (measured[state][name]["memory"] for state in ("before", "safe"))
    kind = constant(name, "MEMORY")
    assert kind is None or after[kind] < before[kind] * 0.8


def test_each_fixable_rule_has_programs() -> None:
    for rule in FIXABLE:
        assert sum(name.startswith(f"mem{rule}_") for name in PROGRAMS) >= 2, rule


def _difference(one: Any, other: Any, grad: bool = False) -> str:
    """ "" where two results are the same in type, dtype, device and every bit; else what differs."""
    import torch

    if type(one) is not type(other):
        return "value" if None in (one, other) else "type"
    if isinstance(one, torch.Tensor):
        if (one.dtype, one.device, one.shape) != (other.dtype, other.device, other.shape):
            return "type"
        if not torch.equal(one, other):
            return "value"
        return "requires_grad" if grad and one.requires_grad != other.requires_grad else ""
    if isinstance(one, list | tuple):
        if len(one) != len(other):
            return "value"
        return next(filter(None, (_difference(*pair, grad) for pair in zip(one, other, strict=True))), "")
    return "" if one == other else "value"
