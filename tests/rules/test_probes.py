"""The probes of the rooms: what they claim, what was measured of it, and that linting leaves them alone."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pages
import pytest

import memlint
from memlint.verifier.rules import why_not

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from torch_forks import forks
from torch_python import torch_python

PROBES = [room / "probe.py" for room in pages.ROOMS if (room / "probe.py").is_file()]
RESULTS = pages.ROOT / "benchmarks" / "results"
EACH = pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.parent.name)
#: what the linter cannot see in a generator that does not know its device or its caller's loop
NOT_REPORTED = {"MEM104", "MEM301"}
#: what these say of names and readings is no matter of bytes: tests/analysis/test_memory_names.py asks torch
NOT_MEASURED = {"MEM501", "MEM502", "MEM503"}


def sections() -> ModuleType:
    return pages.script(pages.ROOT / "benchmarks/measured_sections.py")


def code_of(probe: Path) -> str:
    return probe.parent.name[:6].upper()


def test_each_rule_of_memory_has_a_probe() -> None:
    measured = {room for room in pages.ROOMS if room.name[:6].upper() not in NOT_MEASURED}
    assert {probe.parent for probe in PROBES} == {room for room in measured if not room.name.startswith("mem0")}


def test_pages_say_what_was_measured() -> None:
    tool = sections()
    wrong = [page for page, (old, new) in tool.pages(pages.ROOT / "rules", tool.results(RESULTS)).items() if old != new]
    assert wrong == [], "run `python benchmarks/measured_sections.py --write`"


@pytest.mark.parametrize("file", sorted(RESULTS.glob("rules-*.json")), ids=lambda file: file.stem)
def test_every_claim_was_shown(file: Path) -> None:
    run = json.loads(file.read_text("utf-8"))
    assert {rule["code"] for rule in run["rules"]} == {code_of(probe) for probe in PROBES}
    assert [case for rule in run["rules"] for case in rule["cases"] if not case["shown"]] == []
    assert run["machine"].keys() == {"device", "hardware", "python", "torch", "system"}
    assert run["command"].startswith("memlint verify --rules")


@EACH
def test_what_was_measured_is_what_the_probe_says(probe: Path) -> None:
    """A result is of the probe as it is: its cases, and what they are called."""
    functions = {
        node.name: node for node in ast.parse(probe.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
    }
    for file in RESULTS.glob("rules-*.json"):
        rule = next(rule for rule in json.loads(file.read_text("utf-8"))["rules"] if rule["code"] == code_of(probe))
        for case in rule["cases"]:
            for kind in ("bad", "good"):
                function = functions[f"{kind}_{case['case']}" if case["case"] else kind]
                assert ast.get_docstring(function) == case[kind]["title"]


@EACH
def test_the_linter_reports_bad_and_is_silent_on_good(probe: Path, tmp_path: Path) -> None:
    code = code_of(probe)
    alone = shutil.copy(probe, tmp_path)  # in the checkout, hundreds of files would be its context
    result = memlint.lint([alone], isolated=True, preview=code not in NOT_REPORTED)
    found = [each for each in result.findings if each.code == code]
    bad, good = set(), []
    for node in ast.parse(probe.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            inside = [each for each in found if node.lineno <= each.line <= node.end_lineno]
            if node.name.startswith("bad") and inside:
                bad.add(node.name)
            elif inside:
                good.append(node.name)
    assert good == []
    assert bool(bad) != (code in NOT_REPORTED)


_BYTES = {"min": 0, "max": 0, "exact": 0}


@pytest.mark.parametrize(
    ("claim", "bad", "good", "why"),
    [
        ("device", {"bytes_per_iteration": {"min": 4, "max": 8}}, {"bytes_per_iteration": _BYTES}, ""),
        ("device", {"bytes_per_iteration": {"min": 0, "max": 8}}, {"bytes_per_iteration": _BYTES}, "bad keeps no"),
        ("device", {"bytes_per_iteration": {"min": 4, "max": 4}}, {"bytes_per_iteration": {"min": 0, "max": 4}},
         "good keeps 4 bytes"),
        ("host", {"graph_nodes_per_iteration": {"min": 0, "max": 0}}, {"graph_nodes_per_iteration": _BYTES},
         "bad keeps no graph nodes"),
        ("peak", {"peak_bytes": 12}, {"peak_bytes": 10}, ""),
        ("peak", {"peak_bytes": 11}, {"peak_bytes": 10}, "bad needs only 1.10 times as much at once"),
        ("time", {"seconds_per_iteration": 1.0}, {"seconds_per_iteration": 1.0}, "bad needs only 1.00 times"),
    ],
)  # fmt: skip
def test_a_claim_is_shown_by_both_sides(claim: str, bad: dict[str, Any], good: dict[str, Any], why: str) -> None:
    said = why_not(claim, bad, good)
    assert said.startswith(why) and bool(said) == bool(why)


_RULE = """
from memlint.sdk import Meta

META = Meta(code="{code}", name="{name}", summary="Toy.", severity="warning")


def check(facts):
    return iter(())
"""
_PROBE = """
import os

import torch

open({mark!r}, "a").close()
CLAIMS = {{"": "device"}}


def bad(device):
    '''it is kept'''
    kept = []
    while True:
        kept.append(torch.ones(256, device=device))
        yield


def good(device):
    '''it is dropped'''
    while True:
        {body}
        yield
"""
#: what a user's own rule may do in its probe, and what is said of it
_USERS: dict[str, tuple[str, str]] = {
    "MEM901": ("torch.ones(256, device=device)", ""),
    "MEM902": ("bad.kept = getattr(bad, 'kept', ()) + (torch.ones(1),)", "NOT shown: good keeps 4 bytes"),
    "MEM903": ("raise ValueError('of its own')", "the probe failed: Traceback"),
    "MEM904": ("os._exit(7)", "the probe failed: the process ended with exit code 7"),
    "MEM905": ("return", "the probe failed: good(device) ended"),
    "MEM906": ("torch.ones(256, device=device)", ""),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Rules of a user's own, each with a probe that leaves a mark where it is loaded."""
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["own"]\n')
    for code, (body, _) in _USERS.items():
        room = tmp_path / "own" / f"{code.lower()}_toy_{code[3:]}"
        room.mkdir(parents=True)
        (room / "rule.py").write_text(_RULE.format(code=code, name=f"toy-{code[3:]}"))
        (room / "probe.py").write_text(_PROBE.format(mark=str(tmp_path / "loaded"), body=body))
    return tmp_path


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "memlint", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_linting_loads_no_probe(project: Path) -> None:
    (project / "train.py").write_text("import torch\n")
    assert run(project, ".").returncode == 0
    assert run(project, "rule", "MEM901").returncode == 0
    assert not (project / "loaded").exists()


def test_rules_of_a_user_are_measured_as_well(project: Path) -> None:
    python = forks(torch_python())
    done = run(project, "verify", "--rules", *_USERS, "--device", "cpu", "--python", python, "-o", "measured.json")
    assert done.returncode == 1, done.stderr
    for code, (_, said) in _USERS.items():
        lines = "\n".join(line for line in done.stdout.splitlines() if line.startswith(code))
        assert said in lines if said else re.search(r"1,024 B an iteration \(good: 0 B\): shown", lines), done.stdout
    assert "not shown: MEM902, MEM903, MEM904, MEM905" in done.stdout
    written = json.loads((project / "measured.json").read_text())
    assert [rule["code"] for rule in written["rules"]] == list(_USERS)
    assert written["rules"][0]["cases"][0]["bad"]["bytes_per_iteration"] == {"min": 1024, "max": 1024, "exact": 1024}
    assert python not in written["command"]


def test_an_absent_device_is_said(project: Path) -> None:
    python = forks(torch_python())
    check = subprocess.run([python, "-c", "import torch, sys; sys.exit(torch.cuda.is_available())"], check=False)
    if check.returncode:
        pytest.skip("there is a CUDA device")
    done = run(project, "verify", "--rules", "MEM901", "--device", "cuda", "--python", python)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "memlint: error: torch finds no CUDA device")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["MEM999"], "unknown rule `MEM999`"),
        (["MEM001"], "MEM001 has no probe.py: there is nothing to measure"),
        (["MEM101", "--device", "gpu"], "--device"),
        (["MEM101", "--window", "1"], "`1` is not a whole number of at least 2"),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path: Path, words: list[str], said: str) -> None:
    done = run(tmp_path, "verify", "--rules", *words)
    assert done.returncode == 2
    assert said in done.stderr
