"""`with memlint.verify():` measures its block where it stands, and leaves the program as it would be without it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from torch_forks import forks
from torch_programs import ROOT
from torch_python import torch_python

_HEAD = """\
import memlint
import torch
from torch import nn

model = nn.Linear(64, 8)
model.train()
batches = [torch.ones(32, 64) for _ in range(40)]
"""


def run(folder: Path, program: str, python: str | None = None, *command: str) -> subprocess.CompletedProcess[str]:
    (folder / "pyproject.toml").touch()
    (folder / "a.py").write_text(program, "utf-8")
    return subprocess.run(
        [python or forks(torch_python()), *(command or ["a.py"])],
        cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


_LEAK = """\
kept = []
with memlint.verify() as report:
    for x in batches:
        kept.append(model(x))
"""
_OTHER_PLACES = {
    "module": _LEAK,
    "function": "def main():\n" + textwrap.indent(_LEAK, "    ") + "    return report\n\n\nreport = main()\n",
    "method": "class Run:\n    def go(self):\n"
    + textwrap.indent(_LEAK, "        ")
    + "        return report\n\n\nreport = Run().go()\n",
    "under a head of several lines": _LEAK.replace("verify()", 'verify(\n    device="cpu",\n)'),
    "beside an optimizer without a state": "class Idle(torch.optim.Optimizer):\n    def __init__(self): pass\n\n\n"
    "idle = Idle()\n" + _LEAK,
    "a function that it calls": "def go():\n    kept = []\n    for x in batches:\n        kept.append(model(x))\n"
    "    return kept\n\n\nwith memlint.verify() as report:\n    kept = go()\n",
    "behind gc.freeze()": "import gc\n\n\ndef go():\n    kept = []\n    for x in batches:\n"
    "        kept.append(model(x))\n    return kept\n\n\n"
    "gc.freeze()\nwith memlint.verify() as report:\n    kept = go()\n",
}


@pytest.mark.parametrize("place", _OTHER_PLACES)
def test_a_leak_is_confirmed_to_the_byte_wherever_the_block_stands(tmp_path: Path, place: str) -> None:
    program = _HEAD + _OTHER_PLACES[place]
    line = next(n for n, row in enumerate(program.splitlines(), 1) if ".append(model(x))" in row)
    program += "for one in report.confirmed:\n    print(one.finding.path, one.finding.line, one.verdict.verdict)\n"
    program += "print(report.bytes_per_iteration)\nprint(report)\nprint(report._repr_html_())\n"
    done = run(tmp_path, program)
    assert f"a.py {line} confirmed\n" in done.stdout, done.stdout + done.stderr
    assert "{'cpu': 1024}" in done.stdout  # 32 x 8 floats
    assert f"a.py:{line}: confirmed: each iteration leaves 1,024 B of tensors on cpu" in done.stdout
    assert f"<td>a.py:{line}</td>" in done.stdout


def test_what_keeps_nothing_is_flat(tmp_path: Path) -> None:
    program = _HEAD + "with memlint.verify() as report:\n    for x in batches:\n        model(x)\n"
    done = run(
        tmp_path, program + "print(report.confirmed, report.unattributed, report.bytes_per_iteration)\nprint(report)"
    )
    assert "() () {'cpu': 0}" in done.stdout, done.stderr
    assert "a.py:9: flat: " in done.stdout


def test_the_program_goes_on_as_without_it(tmp_path: Path) -> None:
    """Variables of all kinds, closures, what is raised, and the tracer of a debugger."""
    program = _HEAD + textwrap.dedent("""\
        import sys


        def main(first, *rest):
            global seen
            late: int
            gone = 1
            count = 0
            with memlint.verify():
                for x in batches:
                    count += 1
                late: int = count
                import os.path as paths
                del gone
                first, (second, *rest) = rest[0], [first, *rest]
                seen = [late for _ in range(2) if (last := x) is not None]
                inner = lambda: (late, second)
            assert count == late == 40 and paths.sep and seen == [40, 40] and last is x
            assert (first, second, rest, inner()) == (2, 1, [2, 3], (40, 1))
            try:
                gone
            except UnboundLocalError:
                return "unbound"


        def tracer(*_):
            return None


        class Own(Exception):
            pass


        sys.settrace(tracer)
        assert main(1, 2, 3) == "unbound" and seen == [40, 40]
        assert sys.gettrace() is tracer
        sys.settrace(None)
        try:
            with memlint.verify() as report:
                total = 5
                raise Own("mine")
        except Own as error:
            assert error.__context__ is None and total == 5 and report.report is not None


        class Mangled:
            __own = 0

            def go(self):
                with memlint.verify():
                    self.__own += 1
                return self._Mangled__own


        assert Mangled().go() == 1
        before = model.forward.__func__.__code__
        with memlint.verify() as Mangled.report:
            first_seen = Mangled.report
            with torch.no_grad():
                y = model(batches[0])
        assert first_seen is Mangled.report and first_seen.report is not None


        def inside():
            with memlint.verify() as report:
                seen = report, report.report, repr(report)
            return seen, report


        (seen, empty, said), after = inside()
        assert seen is after and empty is None and "its block has not ended" in said and after.report is not None
        import gc
        gc.collect()
        assert [one for one in gc.get_objects() if type(one).__name__ == "Here"] == []
        from torch.utils._python_dispatch import _len_torch_dispatch_stack
        assert _len_torch_dispatch_stack() == 0 and model.forward.__func__.__code__ is before
        print("fine")
        """)
    done = run(tmp_path, program)
    assert done.stdout == "fine\n", done.stdout + done.stderr


_REFUSED = {
    "with memlint.verify():\n    with memlint.verify():\n        pass\n": "cannot be nested",
    "import contextlib\nwith contextlib.ExitStack() as stack:\n    stack.enter_context(memlint.verify())\n": (
        "is no `with` statement"
    ),
    "with memlint.verify(), torch.no_grad():\n    pass\n": "the only one in its `with` statement",
    "with memlint.verify(): pass\n": "must begin on a line of its own",
    "with memlint.verify():\n    ...\n": "its block does nothing",
    "def f():\n    with memlint.verify():\n        return 1\nf()\n": "line 10: its block cannot have `return`: put it",
    "for x in batches:\n    with memlint.verify():\n        break\n": "`break` cannot leave its block",
    "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    with memlint.verify():\n"
    "        g()\n        print(n)\nf()\n": "`n` is changed while an inner function shares it",
    "exec('with memlint.verify():\\n    pass')\n": "the source of its block is not known (<string>)",
    "from concurrent.futures import ThreadPoolExecutor\ndef f():\n    with memlint.verify():\n        print(0)\n"
    "with ThreadPoolExecutor() as pool:\n    pool.submit(f).result()\n": "only the main thread can be measured",
    "memlint.verify(window=2)\n": "window=2 is not a whole number of at least 4",
    "memlint.verify(device='gpu')\n": "device='gpu' is none of auto, cuda, cpu",
    "with memlint.verify(select='NONE'):\n    pass\n": "unknown rule `NONE`",
}


def test_what_cannot_be_measured_is_refused_before_it_runs(tmp_path: Path) -> None:
    program = "import importlib\nfor n in range(COUNT):\n    try:\n        importlib.import_module(f'case{n}')\n"
    program += "    except Exception as error:\n        print(f'{n}: {error}')\n"
    for number, text in enumerate(_REFUSED):
        (tmp_path / f"case{number}.py").write_text(_HEAD + text, "utf-8")
    done = run(tmp_path, program.replace("COUNT", str(len(_REFUSED))))
    said = done.stdout.splitlines()
    assert len(said) == len(_REFUSED), done.stdout + done.stderr
    for number, (row, words) in enumerate(zip(said, _REFUSED.values(), strict=True)):
        assert row.startswith(f"{number}: ") and words in row


def test_without_torch_it_says_so(tmp_path: Path) -> None:
    program = "import sys\nsys.modules['torch'] = None\nimport memlint\nwith memlint.verify():\n    print('ran')\n"
    done = run(tmp_path, program, sys.executable)
    assert "RuntimeError: memlint.verify: torch is not installed here" in done.stderr and done.stdout == ""


def test_under_memlint_verify_the_block_just_runs(tmp_path: Path) -> None:
    done = run(tmp_path, _HEAD + _LEAK + "print(repr(report))\n", None, "-m", "memlint", "verify", "a.py", "--full")
    assert "<memlint.Verification: `memlint verify` measures this program" in done.stdout, done.stdout + done.stderr
    assert "a.py:11: confirmed: each iteration leaves 1,024 B" in done.stdout
