"""The GitHub action: its steps are run by bash, as a runner would, and its matcher reads what memlint prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from programs_run import ENVIRONMENT, LEAK, ROOT

yaml = pytest.importorskip("yaml")

ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
INSTALL, LINT = (step for step in ACTION["runs"]["steps"] if "run" in step)


def run_step(step: dict[str, Any], folder: Path, temp: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run one step in ``folder`` with bash, as a runner does: inputs come from the environment alone."""
    values = {name: said.get("default", "") for name, said in ACTION["inputs"].items()} | inputs
    filled = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: values[match[1]], text)
        for name, text in step["env"].items()
    }
    assert "${{" not in step["run"], "what a user wrote must not become part of a program"
    environment = {**ENVIRONMENT, **filled, "RUNNER_TEMP": str(temp), "GITHUB_ACTION_PATH": str(ROOT)}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A runner's folder for temporary files in which this checkout is installed."""
    program = tmp_path / "memlint" / "bin" / "memlint"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m memlint "$@"\n')
    program.chmod(0o755)
    return tmp_path


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text(LEAK.format(comment=""))
    (folder / "fine.py").write_text("x = 1\n")
    return folder


def annotations(output: str) -> list[tuple[str, ...]]:
    """What a runner would make of the output: the file, line, column, severity and code of each annotation."""
    name = re.search(r"::add-matcher::(\S+)", output)[1]
    (matcher,) = json.loads(Path(name).read_text("utf-8"))["problemMatcher"]
    (pattern,) = matcher["pattern"]
    assert f"::remove-matcher owner={matcher['owner']}::" in output
    rows = [re.search(pattern["regexp"], line) for line in output.splitlines()]
    keys = ("file", "line", "column", "severity", "code")
    assert all(row[pattern["message"]][0] == "`" for row in rows if row), "a message begins with what it is about"
    return [tuple(row[pattern[key]] for key in keys) for row in rows if row]


def test_findings_become_annotations_and_fail_the_job(installed: Path, code: Path) -> None:
    done = run_step(LINT, code, installed)
    assert annotations(done.stdout) == [("src/train.py", "12", "9", "warning", "MEM102")]
    assert (done.returncode, done.stderr) == (1, "")


def test_annotations_do_not_say_what_can_be_fixed_here(installed: Path, code: Path) -> None:
    done = run_step(LINT, code, installed, args="--unsafe-fixes")
    assert "MEM102[retained-graph] [*] `history`" in done.stdout
    assert annotations(done.stdout) == [("src/train.py", "12", "9", "warning", "MEM102")]


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({"paths": "fine.py"}, 0),
        ({"paths": "fine.py src"}, 1),
        ({"args": "--ignore MEM102 --preview"}, 0),
        ({"args": "--exit-zero"}, 0),
        ({"args": "--ingore MEM102"}, 2),
        ({"paths": "fine.py; true $(echo src)"}, 2),
    ],
)
def test_inputs_are_words(inputs: dict[str, str], status: int, installed: Path, code: Path) -> None:
    done = run_step(LINT, code, installed, **inputs)
    assert done.returncode == status, done.stdout + done.stderr


def test_what_is_printed_commands_nothing(installed: Path, code: Path) -> None:
    """A runner obeys lines of `::…`, which names of files may begin with; it does not between two tokens."""
    (code / "::set-env name=X::y.py").write_text(LEAK.format(comment=""))
    (code / "::stop-commands::x.py").write_text("(\n")
    lines = []
    for _ in range(2):
        done = run_step(LINT, code, installed)
        obeyed, token = [], None
        for line in done.stdout.splitlines():
            if token is None and line.startswith("::"):
                obeyed.append(line.partition(" ")[0].partition("::")[2].partition("::")[0])
                token = line.removeprefix("::stop-commands::") if line.startswith("::stop-commands::") else None
            elif line == f"::{token}::":
                token = None
        assert obeyed == ["add-matcher", "stop-commands", "remove-matcher"]
        lines.append(done.stdout.partition("::stop-commands::")[2].partition("\n")[0])
        assert "::set-env name=X::y.py:12:9: warning MEM102" in done.stdout
    assert lines[0] != lines[1] and len(lines[0]) == 32


@pytest.mark.parametrize("name", ["venv", "pip", "ensurepip"])
def test_no_module_of_the_checkout_is_run(name: str, installed: Path, code: Path) -> None:
    for folder in (name, "memlint"):
        (code / folder).mkdir(exist_ok=True)
        (code / folder / "__init__.py").write_text("raise SystemExit('it ran')\n")
        (code / folder / "__main__.py").write_text("raise SystemExit('it ran')\n")
    commands = [line for line in INSTALL["run"].splitlines() if " -m " in line]
    assert len(commands) == 2 and all('" -I -m ' in line for line in commands)


def test_every_input_is_used_and_explained() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    for name, said in ACTION["inputs"].items():
        assert said["description"] and f"inputs.{name}" in text


@pytest.mark.slow  # it installs memlint into an environment of its own
def test_the_action_installs_what_it_runs(tmp_path: Path, code: Path) -> None:
    done = run_step(INSTALL, code, tmp_path / "runner temp")
    assert done.returncode == 0, done.stdout + done.stderr
    done = run_step(LINT, code, tmp_path / "runner temp")
    assert [row[4] for row in annotations(done.stdout)] == ["MEM102"]
