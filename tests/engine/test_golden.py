"""What the screen leaves out has no event and no finding, hidden or shown (`benchmarks/golden.py`)."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "golden.py"
#: a folder of unpacked packages, see `benchmarks/golden.py`
PACKAGES = os.environ.get("MEMLINT_PACKAGES")


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["fixtures", "fixtures_each"])
def test_the_screen_changes_nothing_in_the_fixtures(golden: ModuleType, tmp_path: Path, name: str) -> None:
    one = golden.inputs(golden.own_fixtures(tmp_path), None, None)[name]
    found = sorted(golden.lines(*one, True))
    assert len(found) > 100
    assert found == sorted(golden.lines(*one, False))


@pytest.mark.slow
@pytest.mark.skipif(PACKAGES is None, reason="MEMLINT_PACKAGES names no folder of packages")
@pytest.mark.parametrize("name", ["timm", "transformers", "torchrl"])
def test_the_screen_changes_nothing_in_packages(golden: ModuleType, tmp_path: Path, name: str) -> None:
    known = golden.inputs(tmp_path, Path(str(PACKAGES)), None)
    if name not in known:
        pytest.skip(f"{PACKAGES} has no {name}")
    assert sorted(golden.lines(*known[name], True)) == sorted(golden.lines(*known[name], False))


def test_what_one_run_has_and_another_lacks_is_told(
    golden: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, text in (("one", "a\nb\nb\n"), ("two", "a\nb\nc\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "timm.jsonl").write_text(text, "utf-8")
    assert golden.compare(tmp_path / "one", tmp_path / "one", 10) == 0
    assert golden.compare(tmp_path / "one", tmp_path / "two", 10) == 1
    assert "timm: 3 lines, 1 lost, 1 new\n  - b\n  + c\n" in capsys.readouterr().out
