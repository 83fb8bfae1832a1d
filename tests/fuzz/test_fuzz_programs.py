"""A short run of ``benchmarks/fuzz.py``, and all that its long runs have found."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, given, settings

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fuzz.py"
CORPUS = Path(__file__).with_name("corpus")


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("memlint_fuzz", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


fuzz = _script()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz").resolve()
    (made / "pyproject.toml").touch()
    return made


@settings(
    max_examples=int(os.environ.get("MEMLINT_FUZZ", "40")),
    deadline=None,
    database=None,
    derandomize="MEMLINT_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(fuzz.PROGRAMS)
def test_no_program_is_an_exception_or_a_hang_or_differs(folder: Path, raw: bytes) -> None:
    fuzz.check(folder, raw)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.txt")), ids=lambda path: path.stem)
def test_what_was_found(path: Path, folder: Path) -> None:
    fuzz.check(folder, path.read_bytes())


def test_what_is_wrong_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception, a hang, and findings that differ from run to run."""
    program = (Path(__file__).resolve().parents[2] / "fixtures/demo/engine.py").read_bytes()
    fuzz.check(folder, program)

    def fails(*_: object) -> object:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("memlint.analysis.driver.run.callers_of", fails)
        with pytest.raises(fuzz.WrongError, match="internal error in the analysis: ZeroDivisionError"):
            fuzz.check(folder, program)
    with monkeypatch.context() as patch:
        answers = iter("ab")
        patch.setattr(fuzz, "_lint", lambda folder: next(answers).encode())
        with pytest.raises(fuzz.WrongError, match="two runs differ"):
            fuzz.check(folder, program)
    if hasattr(os, "fork"):
        import time

        with monkeypatch.context() as patch:
            patch.setattr(fuzz, "_lint", lambda folder: time.sleep(30))
            with pytest.raises(fuzz.WrongError, match=r"longer than 0\.2 seconds"):
                fuzz.check(folder, program, 0.2)
