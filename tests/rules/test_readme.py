"""The README tells the truth: its table is that of the rules, and its commands run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pages
import pytest
from test_rooms import load
from torch_python import torch_python

import memlint

README = (pages.ROOT / "README.md").read_text(encoding="utf-8")
START = "<!-- rules: generated from each rule's META; tests/rules/test_readme.py compares -->\n"
END = "<!-- end of rules -->"
COMMANDS = [
    line[2:]
    for block in re.findall(r"(?s)```console\n(.*?)```", README)
    for line in block.splitlines()
    if line.startswith("$ ")
]
OWN = [command for command in COMMANDS if command.startswith("memlint ")]
#: these run a program, or read what that gave
MEASURED = [command for command in OWN if " verify " in command or "--evidence" in command]
#: of other tools that run memlint; tests/plugins runs them
TOOLS = [command for command in COMMANDS if command.startswith(("flake8 ", "pre-commit "))]


def table() -> str:
    """The table of all rules, as the README must show it."""
    lines = ["| code | name | severity | what it finds |", "|---|---|---|---|"]
    for room in pages.ROOMS:
        meta = load(room).META
        severity = f"{meta.severity}, *preview*" if meta.preview else meta.severity
        lines.append(f"| [{meta.code}](rules/{room.name}/README.md) | {meta.name} | {severity} | {meta.summary} |")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the README's configuration and the demo as its ``src``."""
    folder = tmp_path_factory.mktemp("project")
    toml = re.search(r"(?s)```toml\n(.*?)```", README)
    assert toml
    (folder / "pyproject.toml").write_text(toml.group(1), encoding="utf-8")
    shutil.copytree(pages.ROOT / "fixtures" / "demo", folder / "src")
    return folder


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    python = f'"{sys.executable}" -m memlint '
    path = os.pathsep.join([str(pages.ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        python + command.removeprefix("memlint "),
        shell=True,
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path},
    )


def test_table_is_that_of_the_rules() -> None:
    shown = README.split(START)[1].split(END)[0]
    assert shown.strip() == table().strip(), f"put this into README.md:\n\n{table()}"


@pytest.mark.parametrize("command", [c for c in OWN if "new-rule" not in c and c not in MEASURED])
def test_command_runs(command: str, project: Path, tmp_path: Path) -> None:
    if "--fix" in command:  # on a copy: the other commands want the findings
        project = shutil.copytree(project, tmp_path / "project")
    done = run(command, project)
    assert done.returncode in ((0,) if " rule " in command else (0, 1)), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_commands_that_measure_run(project: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(project, tmp_path / "project")
    for command in MEASURED:
        named = f"{command} --python {torch_python()}" if " verify " in command else command
        done = run(named, folder)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
    assert {"report.html", "proof.json"} <= {path.name for path in folder.iterdir()}


def test_new_rule_command_makes_a_room(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["lint"]\n', encoding="utf-8")
    (tmp_path / "lint").mkdir()
    (command,) = (c for c in OWN if "new-rule" in c)
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in (tmp_path / "lint").glob("*/*")} >= {"rule.py", "README.md"}


def test_the_two_first_commands_are_those_of_ci() -> None:
    install, tests = (command for command in COMMANDS if command not in (*OWN, *TOOLS))
    assert install.endswith("memlint fixtures/demo/") and tests.endswith("pytest -q")
    ci = (pages.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "fixtures/demo" in ci and "'.[test]'" in ci and "pytest -q" in ci


def test_python_example_runs(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    monkeypatch.chdir(project)
    code = next(block for block in re.findall(r"(?s)```python\n(.*?)```", README) if "import memlint" in block)
    exec(compile(code, "README.md", "exec"), {"memlint": memlint})
    assert "MEM" in capsys.readouterr().out


def test_first_screen_shows_a_finding_of_the_demo() -> None:
    first = re.search(r"(?s)```text\n(.*?)```", README)
    assert first
    shown = " ".join(first.group(1).split())
    found = memlint.lint([pages.ROOT / "fixtures" / "demo"], isolated=True).findings
    said = [
        f"{item.line}:{item.column}: {item.severity} {item.code}[{item.name}] {item.message} ({item.confidence}"
        for item in found
    ]
    assert any(" ".join(one.split()) in shown for one in said)
