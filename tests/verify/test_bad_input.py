"""What goes wrong around a verification: the right message, the right exit code, and nothing left behind.

Most of these programs never import torch, which takes longer than all the rest.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import environment, verify, verify_command
from torch_python import torch_python

from memlint.cli import main
from memlint.verifier.processes import child

Put = Callable[[str], Path]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes the program ``p.py`` and returns its folder."""

    def write(text: str) -> Path:
        (tmp_path / "p.py").write_text(text, encoding="utf-8")
        return tmp_path

    return write


def _alone(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [torch_python(), "p.py", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def _running(mark: str) -> list[str]:
    """The command lines of the processes that were given ``mark``."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        except OSError:
            continue
        if mark in words:
            found.append(" ".join(words))
    return found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.py"], "the script missing.py does not exist"),
        (["."], "the script . is a folder"),
        (["-m", "missing"], "-m missing: there is no such module"),
        ([], "name one script, or a module by -m"),
        (["p.py", "--window", "3"], "`3` is not a whole number of at least 4"),
        (["p.py", "--warmup", "-1"], "--warmup"),
        (["p.py", "--max-steps", "0"], "at least 1"),
        (["p.py", "--timeout", "never"], "`never` is not a time in seconds"),
        (["p.py", "--gpu-memory", "much"], "`much` is no amount of memory"),
        (["p.py", "--device", "gpu"], "gpu"),
        (["p.py", "--output-format", "xml"], "xml"),
        (["p.py", "--nproc-per-node", "0"], "at least 1"),
        (["p.py", "--windwo", "12"], "did you mean `--window`"),
        (["p.py", "--windwo", "12"], "If it is the program's own, it follows `--`"),
        (["--epochs", "3", "p.py"], "options of the program follow its name"),
        (["p.py", "--gpu-memory", "8GiB", "--device", "cpu"], "--gpu-memory needs a GPU"),
        (["p.py", "--fail-on", "anything"], "anything"),
        (["p.py", "--limit", "little"], "`little` is no amount of memory"),
        (["p.py", "--select", "MEM999"], "MEM999"),
        (["p.py", "--python", "/nowhere/python"], "/nowhere/python cannot be run"),
        (["p.py", "--config", "missing.toml"], "there is no file missing.toml"),
        (["p.py", "--config", "missing.toml", "--isolated"], "--config and --isolated exclude each other"),
        (["p.py", "-o", "nowhere/report.json"], "report.json cannot be written: No such file or directory"),
        (["p.py", "-o", "."], "cannot be written: Is a directory"),
        (["p.py", "-o", "p.py"], "p.py is a program, which no report replaces"),
    ],
)
def test_what_cannot_be_meant_is_said_and_exits_with_2(put: Put, arguments: list[str], said: str) -> None:
    cwd = put("print('ran')\n")
    done = verify(*arguments, cwd=cwd)
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert "ran" not in done.stdout


def test_a_notebook_is_verified_in_its_kernel(put: Put) -> None:
    cwd = put("print('ran')\n")
    (cwd / "train.ipynb").write_text("{}")
    done = verify("train.ipynb", cwd=cwd)
    assert (done.returncode, "`%%memlint` verifies its cells" in done.stderr) == (2, True), done.stderr


def test_an_environment_without_torch_is_told_what_to_install(put: Put, tmp_path: Path) -> None:
    cwd = put("print('ran')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    done = verify("p.py", "--python", str(python), cwd=cwd)
    assert done.returncode == 2
    assert "there is no torch in the environment" in done.stderr
    assert "-m pip install torch" in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.parametrize(
    ("text", "code", "end"),
    [
        ("", 0, "finished"),
        ("import sys\nsys.exit()\n", 0, "finished"),
        ("import sys\nsys.exit(3)\n", 3, "failed"),
        ("import sys\nsys.exit('no data')\n", 3, "failed"),
        ("import os\nos._exit(0)\n", 0, "finished"),
        ("import os\nos._exit(5)\n", 3, "failed"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", 3, "killed"),
        ("import os\nos.abort()\n", 3, "killed"),
        ("raise KeyboardInterrupt\n", 130, "interrupted"),
        ("import os, sys\nif os.fork() == 0:\n    sys.exit(4)\nos.wait()\n", 0, "finished"),
        ("import os\nif os.fork() == 0:\n    os._exit(4)\nos.wait()\n", 0, "finished"),
        ("import os\nos.chdir('/')\n", 0, "finished"),
        ("import sys\nsys.stdout.close()\n", 0, "finished"),
        ("import os, sys\nos.execv(sys.executable, [sys.executable, '-c', ''])\n", 0, "finished"),
        ("import sys\nsys.setrecursionlimit(100)\n", 0, "finished"),
        ("import builtins\nbuiltins.__dict__.clear\n", 0, "finished"),
    ],
)
def test_how_a_program_ended_is_said(put: Put, text: str, code: int, end: str) -> None:
    cwd = put(text)
    done = verify("p.py", "--output-format", "json", "-o", "report.json", cwd=cwd)
    assert done.returncode == code, done.stderr
    assert json.loads((cwd / "report.json").read_text())["run"]["end"] == end


@pytest.mark.parametrize("keeps", ["float(y.sum())", "y"])
def test_probes_that_fail_are_no_clean_end(put: Put, keeps: str) -> None:
    """The program takes from them what they ask."""
    cwd = put(
        "import os\nimport torch\nmodel = torch.nn.Linear(8, 8)\nkept = []\nos.sysconf = None\n"
        "for _ in range(40):\n    y = model(torch.ones(2, 8))\n    kept.append(" + keeps + ")\nprint('ran on')\n"
    )
    done = verify("p.py", cwd=cwd, forked=True)
    assert done.returncode == 2
    assert "ran on" in done.stdout
    assert "memlint's probes failed in this program, which is a mistake of memlint" in done.stdout
    assert "probes broken" in done.stdout and "finished" not in done.stdout


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    return 1 / x\n\n\nfor i in range(3):\n    f(1 - i)\n",
        "try:\n    {}['a']\nexcept KeyError as error:\n    raise ValueError('é') from error\n",
        "import json\njson.loads('{')\n",
        "assert False, 'no'\n",
        "raise ExceptionGroup('two', [ValueError(1), TypeError(2)])\n",
        "import sys\nsys.exit('no data')\n",
        "import sys\nsys.excepthook = lambda kind, error, trace: print('hook', kind, error, trace.tb_lineno)\n1 / 0\n",
        "class Silent(Exception):\n    def __str__(self):\n        raise RuntimeError\nraise Silent\n",
    ],
)
def test_a_programs_traceback_is_pythons_own(put: Put, text: str) -> None:
    cwd = put(text)
    alone = _alone(cwd)
    done = verify("p.py", cwd=cwd)
    assert done.returncode == 3
    # Python names the script as it was typed
    assert done.stderr.replace(f"{cwd}/p.py", "p.py") == alone.stderr.replace(f"{cwd}/p.py", "p.py")
    assert done.stdout.startswith(alone.stdout)


def test_a_syntax_error_is_pythons_own_and_no_verdict(put: Put) -> None:
    cwd = put("x = 1\nfor x in range(3)\n    print(x)\n")
    done = verify("p.py", cwd=cwd)
    assert done.returncode in (2, 3)
    assert "SyntaxError: expected ':'" in done.stderr
    assert "launch.py" not in done.stderr


def test_standard_input_is_the_programs(put: Put) -> None:
    cwd = put("import sys\nprint(sys.stdin.read().upper())\n")
    done = verify("p.py", cwd=cwd, given="some words")
    assert (done.returncode, "SOME WORDS" in done.stdout) == (0, True)


def test_output_that_is_no_text_comes_through(put: Put) -> None:
    cwd = put("import sys\nsys.stdout.buffer.write(bytes(range(256)))\n")
    done = subprocess.run(
        verify_command("p.py"), cwd=cwd, env=environment(), capture_output=True, check=False, timeout=60
    )
    assert done.returncode == 0
    assert bytes(range(256)) in done.stdout


def test_a_report_on_standard_output_is_alone_there(put: Put) -> None:
    cwd = put("import os\nprint('said')\nos.system('echo told')\n")
    done = verify("p.py", "--output-format", "json", cwd=cwd)
    assert json.loads(done.stdout)["run"]["end"] == "finished"
    assert "said" in done.stderr
    assert "told" in done.stderr


def test_a_program_that_hangs_is_ended_in_time(
    put: Put, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mark = f"hang-{os.getpid()}"
    cwd = put(
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)', *sys.argv[1:]])\n"
        "while True:\n"
        "    try:\n"
        "        time.sleep(600)\n"
        "    except KeyboardInterrupt:\n"
        "        pass\n"
    )
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(child, "_GRACE", 0.5)
    words = ["verify", "p.py", "--python", torch_python(), "--timeout", "2", "--output-format", "json", "--", mark]
    assert main(words) == 0, "nothing is confirmed: it has not failed"
    assert json.loads(capfd.readouterr().out)["run"]["end"] == "timeout"
    assert _running(mark) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupted_verification_leaves_nothing_behind(put: Put, number: signal.Signals, tmp_path: Path) -> None:
    mark = f"interrupted-{os.getpid()}-{number}"
    cwd = put("import pathlib, sys, time\npathlib.Path('began').touch()\ntime.sleep(600)\n")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        verify_command("p.py", "--output-format", "json", "-o", "report.json", "--", mark),
        cwd=cwd,
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in the background, or under nohup, ignore it, and so would what they start
        preexec_fn=functools.partial(signal.signal, number, signal.SIG_DFL),
    )
    for _ in range(1200):
        if (cwd / "began").exists() or process.poll() is not None:
            break
        time.sleep(0.05)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "Traceback" not in said
    assert _running(mark) == []
    assert list(temporary.iterdir()) == []
    report = cwd / "report.json"
    assert not report.exists() or json.loads(report.read_text())["run"]["end"] == "interrupted"


def test_a_device_that_is_not_there_is_asked_for(put: Put) -> None:
    cwd = put("import torch\nprint('ran')\n")
    done = verify("p.py", "--device", "cuda", cwd=cwd, more={"CUDA_VISIBLE_DEVICES": ""})
    assert done.returncode == 2
    assert "sees no CUDA device here" in done.stderr
    assert "ran" not in done.stdout


@pytest.mark.slow
def test_a_thread_that_waits_for_a_stopped_program_is_ended(put: Put) -> None:
    mark = f"feeder-{os.getpid()}"
    cwd = put(
        "import queue, sys, threading\n"
        "import torch\n"
        "batches = queue.Queue(maxsize=4)\n"
        "def feed():\n"
        "    while True:\n"
        "        batches.put(torch.randn(4, 8))\n"
        "threading.Thread(target=feed).start()\n"
        "model = torch.nn.Linear(8, 8)\n"
        "kept = []\n"
        "while True:\n"
        "    kept.append(model(batches.get()).sum())\n"
        "    kept[-1].backward()\n"
    )
    done = verify("p.py", "--output-format", "json", "--", mark, cwd=cwd, timeout=120)
    report = json.loads(done.stdout)
    assert (done.returncode, report["run"]["end"], report["run"]["exit"]) == (1, "stopped", None)
    assert _running(mark) == []
