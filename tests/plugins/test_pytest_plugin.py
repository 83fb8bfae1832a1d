"""The pytest plugin: suites that use it are run in a Python with torch, or in one that pretends to have none."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pytest_suites import ASIDE, CPU, CUDA, FAKE_CUDA, HELPER, HOST, REAL_CUDA, UNMARKED
from torch_forks import _signal, forks
from torch_python import torch_python

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "memlint.plugins.pytest_plugin"

_FAILED = {
    "test_keeps": [
        "memory grows by 16,388 B an iteration on cpu (8 iterations after 3 of warm-up); the limit is 0 B",
        "  test_cpu.py:{here} keeps 16,388 B an iteration",
    ],
    "test_each[1]": ["memory grows by 4 B", "  helper.py:5 (from test_cpu.py:{there}) keeps 4 B an iteration"],
    "test_each[2]": ["memory grows by 8 B", "  helper.py:5 (from test_cpu.py:{there}) keeps 8 B an iteration"],
    "test_many_places": ["memory grows by 28 B", "keeps 4 B an iteration\n  ...and 2 more"],
    "test_fails_itself": ["of its own"],
    "test_unit": ["memory grows by 40 B an iteration on cpu (4 iterations after 3 of warm-up); the limit is 0 B"],
    "test_peaks_too_high": ["memory peaks at 2,000,008 B on cpu; the limit is 2,000,000 B"],
    "test_loop": ["memory grows by 20 B an iteration on cpu (7 iterations after 3 of warm-up)"],
    "test_loop_too_short": ["memory_growth saw 1 iteration after 3 of warm-up, and needs at least 2"],
    "test_loop_that_raises": ["of its own"],
}
_SKIPPED = {"test_no_such_device", "test_unit_without_device"}


class Ran:
    """How a suite ran: its exit code, what it printed, and its tests by name."""

    def __init__(self, code: int, text: str, report: Path) -> None:
        self.code = code
        self.text = text
        self.failed: dict[str, str] = {}
        self.skipped: dict[str, str] = {}
        self.passed: set[str] = set()
        for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
            name = str(case.get("name"))
            wrong = case.find("failure") if case.find("failure") is not None else case.find("error")
            skipped = case.find("skipped")
            if wrong is not None:
                self.failed[name] = f"{wrong.get('message')}\n{wrong.text}"
            elif skipped is not None:
                self.skipped[name] = str(skipped.get("message"))
            else:
                self.passed.add(name)


def suite(
    folder: Path, files: Mapping[str, str], *options: str, python: str = sys.executable, plugin: str = PLUGIN
) -> Ran:
    """Run a suite with one plugin, or with those that entry points name (no ``plugin``)."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(textwrap.dedent(text), "utf-8")
    if "pytest.ini" not in files:
        (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTEST_DISABLE_PLUGIN_AUTOLOAD"},
        **({"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} if plugin else {}),
        "PYTEST_ADDOPTS": "",
        "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
    }
    command = [python, "-m", "pytest", "--strict-markers", "--junitxml=report.xml", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *(("-p", plugin) if plugin else ()), *options],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout + done.stderr, folder / "report.xml")


def line_of(text: str, mark: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.endswith(f"# {mark}"))


@pytest.fixture(scope="module")
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    files = {"test_cpu.py": CPU, "helper.py": HELPER}
    return suite(tmp_path_factory.mktemp("cpu"), files, python=forks(torch_python("pytest")))


@pytest.mark.parametrize("name", _FAILED)
def test_a_limit_that_is_passed_says_where_and_by_how_much(on_cpu: Ran, name: str) -> None:
    marks = {mark: line_of(CPU, mark) for mark in ("here", "there")}
    for words in _FAILED[name]:
        assert words.format(**marks) in on_cpu.failed[name]


def test_only_what_grows_fails(on_cpu: Ran) -> None:
    assert set(on_cpu.failed) == set(_FAILED), on_cpu.text
    assert set(on_cpu.skipped) == _SKIPPED
    assert all("torch finds no CUDA device" in why or "there is no cuda:7" in why for why in on_cpu.skipped.values())
    assert "test_fills_a_cache_once" in on_cpu.passed


def test_cuda_is_measured_by_its_counters(tmp_path: Path) -> None:
    files = {"test_cuda.py": CUDA, "fake.py": FAKE_CUDA.replace("BACKEND", "'native'")}
    ran = suite(tmp_path, files, python=forks(torch_python("pytest")))
    assert set(ran.failed) == {"test_keeps", "test_every_device", "test_peak_that_the_test_itself_resets"}, ran.text
    assert "memory grows by 500 B an iteration on cuda:0" in ran.failed["test_keeps"]
    assert f"test_cuda.py:{line_of(CUDA, 'here')} keeps 500 B an iteration" in ran.failed["test_keeps"]
    assert "memory peaks at 1,536 B on cuda:0" in ran.failed["test_peak_that_the_test_itself_resets"]
    assert "there is no cuda:2: torch finds 2 CUDA devices" in ran.skipped["test_no_such_device"]


def test_an_allocator_without_counters_is_a_reason_to_skip(tmp_path: Path) -> None:
    files = {"test_cuda.py": CUDA, "fake.py": FAKE_CUDA.replace("BACKEND", "'cudaMallocAsync'")}
    ran = suite(tmp_path, files, "-k", "test_keeps", python=forks(torch_python("pytest")))
    assert set(ran.skipped) == {"test_keeps", "test_keeps_elsewhere"}, ran.text
    assert "the allocator is cudaMallocAsync" in ran.skipped["test_keeps"]


@pytest.mark.gpu
def test_cuda_itself(tmp_path: Path) -> None:
    ran = suite(tmp_path, {"test_cuda.py": REAL_CUDA}, python=forks(torch_python("pytest")))
    assert set(ran.failed) == {"test_keeps", "test_peaks_too_high"}, ran.text
    assert "memory grows by 16,388 B an iteration on cuda:0" in ran.failed["test_keeps"]
    assert f"test_cuda.py:{line_of(REAL_CUDA, 'here')} keeps 16,388 B an iteration" in ran.failed["test_keeps"]


@pytest.mark.parametrize("options", [(), ("--memlint-report",)], ids=["limits", "report"])
def test_what_is_put_aside_for_a_limit_is_so_for_no_other_test(tmp_path: Path, options: tuple[str, ...]) -> None:
    ran = suite(tmp_path, {"test_aside.py": ASIDE}, *options, python=torch_python("pytest"))
    assert set(ran.failed) == {"test_keeps"}, ran.text
    assert "memory grows by 12 B" in ran.failed["test_keeps"]
    assert "still frozen" in ran.text


_PLAIN = """
import pytest


@pytest.mark.limit_memory_growth("0 B")
def test_marked():
    raise AssertionError("must not run")


def test_with_fixture(memory_growth):
    raise AssertionError("must not run")


def test_without():
    pass
"""


def test_without_torch_marked_tests_are_skipped_with_the_reason(tmp_path: Path) -> None:
    files = {"test_plain.py": _PLAIN, "sitecustomize.py": "import sys\n\nsys.modules['torch'] = None\n"}
    ran = suite(tmp_path, files)
    assert ran.skipped == {
        "test_marked": "limit_memory_growth: torch is not installed",
        "test_with_fixture": "memory_growth: torch is not installed",
    }
    assert ran.passed == {"test_without"}


@pytest.mark.parametrize("options", [(), ("--memlint-report",)], ids=["limits", "report"])
def test_with_what_only_stands_for_torch_no_other_test_fails(tmp_path: Path, options: tuple[str, ...]) -> None:
    stub = "import sys\nimport types\n\nsys.modules['torch'] = types.ModuleType('torch')\n"
    plain = _PLAIN.replace("def test_with_fixture(memory_growth)", "@pytest.mark.skip\ndef test_with_fixture()")
    ran = suite(tmp_path, {"test_plain.py": plain, "conftest.py": stub}, *options)
    assert set(ran.failed) == {"test_marked"}, ran.text
    assert ran.passed == {"test_without"}


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="forks cannot be waited for here")
def test_a_signal_for_a_program_that_ended_before_it_led_a_group_is_let_go() -> None:
    sent = threading.Event()

    def send() -> None:
        _signal(program.pid, signal.SIGTERM, ended)
        sent.set()

    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as program:
        ended = os.pidfd_open(program.pid)
        threading.Thread(target=send, daemon=True).start()
        assert sent.wait(60)
        os.close(ended)


_WRONG = {
    '@pytest.mark.limit_memory_growth("much")': "limit_memory_growth: 'much' is no amount of memory",
    '@pytest.mark.limit_memory_growth("0 B", device="gpu")': "device='gpu' is none of 'cpu', 'cuda' and 'cuda:N'",
    '@pytest.mark.limit_memory_growth("0 B", warmups=-1)': "warmups=-1 is not a whole number of at least 0",
    '@pytest.mark.limit_memory_growth("0 B", iterations=1)': "iterations=1 is not a whole number of at least 2",
    '@pytest.mark.limit_memory_growth("0 B", iters=9)': "unknown argument 'iters'",
    '@pytest.mark.limit_memory_growth("0 B", "cpu")': "takes from 0 to 1 positional arguments but 2 were given",
    "@pytest.mark.limit_host_growth('1 XiB')": "'1 XiB' is no amount of memory",
    "@pytest.mark.limit_host_growth": "the mark missing 1 required positional argument: 'limit'",
    "@pytest.mark.limit_host_growth('1 B', device='cpu')": "unknown argument 'device'",
    "@pytest.mark.limit_peak_memory": "the mark missing 1 required positional argument: 'limit'",
    "@pytest.mark.limit_peak_memory(True)": "True is no amount of memory",
}


@pytest.mark.parametrize("mark", _WRONG)
def test_a_wrong_argument_is_a_usage_error_that_names_the_test(tmp_path: Path, mark: str) -> None:
    ran = suite(tmp_path, {"test_wrong.py": f"import pytest\n\n\n{mark}\ndef test_it():\n    pass\n"})
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    said = next(line for line in ran.text.splitlines() if line.startswith("ERROR"))
    assert said.startswith("ERROR: test_wrong.py::test_it: limit_")
    assert _WRONG[mark] in said


def test_an_async_test_is_refused(tmp_path: Path) -> None:
    text = "import pytest\n\n\n@pytest.mark.limit_memory_growth\nasync def test_it():\n    pass\n"
    ran = suite(tmp_path, {"test_async.py": text})
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "test_async.py::test_it: limit_memory_growth: async tests cannot be measured" in ran.text


def test_markers_are_listed(tmp_path: Path) -> None:
    ran = suite(tmp_path, {}, "--markers")
    assert "@pytest.mark.limit_memory_growth(limit, device=None, warmups=3, iterations=8): fail when" in ran.text
    assert "@pytest.mark.limit_peak_memory(limit, device=None): fail when" in ran.text


def test_it_is_light_where_nothing_is_marked(tmp_path: Path) -> None:
    text = """
    import sys

    def test_light(request):
        assert request.config.pluginmanager.hasplugin("MODULE")
        heavy = ("torch", "libcst", "msgspec", "rich", "memlint.measure", "memlint.engine", "memlint.config")
        assert [name for name in heavy if name in sys.modules] == []
    """
    assert suite(tmp_path, {"test_light.py": text.replace("MODULE", PLUGIN)}).passed == {"test_light"}


def test_the_entry_point_is_found_and_can_be_blocked(tmp_path: Path) -> None:
    lines = (ROOT / "pyproject.toml").read_text("utf-8").partition("[project.entry-points.pytest11]\n")[2].splitlines()
    files = {
        "toy-1.0.dist-info/entry_points.txt": "[pytest11]\n" + lines[0].replace('"', "") + "\n",
        "toy-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n",
        "test_it.py": "def test_it(pytestconfig):\n    assert pytestconfig.pluginmanager.hasplugin('memlint')\n",
    }
    assert suite(tmp_path, files, plugin="").passed == {"test_it"}
    assert set(suite(tmp_path, files, "-p", "no:memlint", plugin="").failed) == {"test_it"}


def test_workers_of_xdist_measure_as_well(tmp_path: Path) -> None:
    text = """
    import pytest
    import torch

    kept = []

    @pytest.mark.limit_memory_growth("0 B", iterations=4)
    def test_keeps():
        kept.append(torch.ones(3))

    @pytest.mark.limit_memory_growth("0 B", iterations=4)
    def test_keeps_nothing():
        torch.ones(3)

    @pytest.mark.limit_memory_growth("much")
    def test_wrong():
        torch.ones(3)
    """
    ran = suite(
        tmp_path, {"test_it.py": text}, "-p", "xdist.plugin", "-n1", python=torch_python("pytest", "xdist")
    )  # fmt: skip
    assert set(ran.failed) == {"test_keeps", "test_wrong"}, ran.text
    assert "test_it.py::test_wrong: limit_memory_growth: 'much' is no amount" in ran.failed["test_wrong"]
    assert ran.passed == {"test_keeps_nothing"}


def test_host_memory_beside_tensors_has_a_limit_too(tmp_path: Path) -> None:
    ran = suite(tmp_path, {"test_host.py": HOST}, python=forks(torch_python("pytest")))
    assert not ran.skipped, "the C library says nothing here"
    assert set(ran.failed) == {"test_keeps"}, ran.text
    assert re.search(
        r"memory grows by 1,00\d,\d{3} B an iteration on host .*; the limit is 10,000 B", ran.failed["test_keeps"]
    )


def test_the_configuration_gives_all_tests_a_limit(tmp_path: Path) -> None:
    files = {"test_unmarked.py": UNMARKED, "pytest.ini": "[pytest]\nmemory_growth_limit = 20 B\n"}
    ran = suite(tmp_path, files, python=forks(torch_python("pytest")))
    assert {"test_keeps", "test_fails"} == set(ran.failed) - {"test_async"}, ran.text
    assert "memory grows by 16,388 B an iteration on cpu" in ran.failed["test_keeps"]
    assert {"test_keeps_less", "test_may_keep", "test_is_left_out"} <= ran.passed


def test_a_wrong_limit_in_the_configuration_is_a_usage_error(tmp_path: Path) -> None:
    ran = suite(tmp_path, {"test_it.py": "", "pytest.ini": "[pytest]\nmemory_growth_limit = much\n"})
    assert ran.code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: memory_growth_limit: 'much' is no amount of memory; write for example '16 KiB'" in ran.text


@pytest.mark.parametrize("options", [(), ("-p", "xdist.plugin", "-n1")], ids=["one process", "xdist"])
def test_what_tests_keep_is_reported_without_marks(tmp_path: Path, options: tuple[str, ...]) -> None:
    python = forks(torch_python("pytest", *(["xdist"] if options else [])))
    ran = suite(tmp_path, {"test_unmarked.py": UNMARKED}, "--memlint-report", *options, python=python)
    said = ran.text.partition("memlint: what tests keep")[2].splitlines()
    assert "test_unmarked.py::test_keeps keeps 16,388 B on cpu (its peak: 16,388 B)" in said, ran.text
    assert "test_unmarked.py::test_keeps_less keeps 20 B on cpu (its peak: 16,408 B)" in said
    assert not any(name in row for row in said for name in ("test_keeps_nothing keeps", "test_fails keeps"))
    assert 'name="memlint_kept_bytes:cpu" value="20"' in (tmp_path / "report.xml").read_text("utf-8")


def test_without_torch_a_report_says_that_nothing_was_measured(tmp_path: Path) -> None:
    ran = suite(tmp_path, {"test_it.py": "def test_it():\n    pass\n"}, "--memlint-report")
    assert ran.passed == {"test_it"}
    assert "nothing was measured: no test passed while torch was imported" in ran.text
