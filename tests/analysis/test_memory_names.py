"""Names and readings of memory: what torch does not have, what it calls otherwise, and what is taken for another thing.

With torch installed, the table of names is held against it."""

from __future__ import annotations

import functools
import importlib
import sys
import warnings
from pathlib import Path

import pytest

import memlint
from memlint.finding import Finding
from memlint.knowledge import memory


def found(folder: Path, code: str, **files: str) -> list[Finding]:
    (folder / "pyproject.toml").touch()
    for name, text in {"program": code, **files}.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    findings = memlint.lint([folder / "program.py"], isolated=True, preview=True).findings
    return [one for one in findings if one.code.startswith("MEM5")]


def codes(folder: Path, *body: str, head: str = "import torch", **files: str) -> list[str]:
    lines = "\n    ".join(body)
    code = f"import gc\nimport sys\n{head}\n\n\ndef run(x, log, model, **options):\n    {lines}\n"
    return [one.code for one in found(folder, code, **files)]


# ------------------------------------------------------------------------------------------------ names


@pytest.mark.parametrize(
    "body",
    [
        "torch.cuda.clear_cache()",
        "log(torch.cuda.memory_free(0) / 2**30)",
        "log(f'{torch.mps.memory_allocated()} bytes')",
        "free = torch.cuda.memory_info",
        "from torch.cuda import MemoryPool",
        "y = torch.zeros(4).cuda()\n    y.free()",
        "torch.randn(4).clear()",
        "try:\n        torch.cuda.reset_memory_stats()\n    except Exception:\n        pass",
        "if torch.cuda.is_available():\n        torch.cuda.set_allocator_settings('expandable_segments:True')",
    ],
)
def test_what_torch_does_not_have(tmp_path: Path, body: str) -> None:
    assert codes(tmp_path, body) == ["MEM501"]


def test_it_says_what_to_use(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "import torch\n\ntorch.cuda.clear_cache()\n")
    assert one.severity == "warning"
    assert "torch has no `torch.cuda.clear_cache`" in one.message and "AttributeError" in one.message
    assert "torch.cuda.empty_cache" in one.help


@pytest.mark.parametrize(
    "body",
    [
        "if hasattr(torch.cuda, 'clear_cache'):\n        torch.cuda.clear_cache()",
        "torch.cuda.clear_cache() if 'clear_cache' in dir(torch.cuda) else None",
        "getattr(torch.cuda, 'clear_cache', gc.collect)()",
        "try:\n        torch.cuda.clear_cache()\n    except (AttributeError, RuntimeError):\n        pass",
        "try:\n        from torch.cuda import MemoryPool\n    except ImportError:\n        MemoryPool = None",
        "if torch.__version__ >= '3':\n        torch.cuda.clear_cache()",
        "torch.cuda.clear_cache = torch.cuda.empty_cache\n    torch.cuda.clear_cache()",
        "x.cuda.clear_cache()",
        "x.clear()",
        "y = {}\n    y.clear()",
        "y = torch.zeros(4)\n    y = log(y)\n    y.clear()",
        "y = torch.zeros(4)\n    y.free = 1",
        "baton = torch.utils.file_baton.FileBaton('lock')\n    baton.release()",
        "torch.cuda.empty_cache()",
        "torch.cuda.memory.empty_cache()",
        "torch = model\n    torch.cuda.clear_cache()",
    ],
)
def test_names_that_are_none_of_torch(tmp_path: Path, body: str) -> None:
    assert codes(tmp_path, body) == []


@pytest.mark.parametrize("head", ["import torch_tools as torch", "from tools import torch", "from . import torch"])
def test_another_torch(tmp_path: Path, head: str) -> None:
    assert codes(tmp_path, "torch.cuda.clear_cache()", head=f"import torchvision\n{head}") == []


def test_a_name_that_another_file_puts_into_torch(tmp_path: Path) -> None:
    patch = "import torch\n\ntorch.cuda.clear_cache = torch.cuda.empty_cache\n"
    assert codes(tmp_path, "torch.cuda.clear_cache()", compat=patch) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.memory_cached(0)", "torch.cuda.memory_reserved(0)"),
        ("cuda.max_memory_cached()", "cuda.max_memory_reserved()"),
        ("torch.cuda.memory.reset_max_memory_cached()", "torch.cuda.memory.reset_peak_memory_stats()"),
    ],
)
def test_names_of_old(tmp_path: Path, old: str, new: str) -> None:
    code = "import torch\nfrom torch import cuda\n\nprint({})\n"
    (one,) = found(tmp_path, code.replace("{}", old))
    assert (one.code, one.severity) == ("MEM502", "note")
    assert one.fix is not None and one.fix.safety == "safe"
    (edit,) = one.fix.edits
    assert edit.content == new.partition("(")[0]


def test_an_import_by_an_old_name_has_no_fix(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "from torch.cuda import memory_cached as cached\n\nprint(cached())\n")
    assert (one.code, one.line, one.fix) == ("MEM502", 1, None)


@pytest.mark.parametrize("error", ["", " AttributeError", " Exception as error"])
def test_the_name_of_today_is_tried_first(tmp_path: Path, error: str) -> None:
    tried = f"try:\n        log(torch.cuda.memory_reserved())\n    except{error}:\n        "
    assert codes(tmp_path, tried + "log(torch.cuda.memory_cached())") == []


@pytest.mark.parametrize(("pin", "number"), [("torch==1.3.1", 0), ("torch>=1.0", 1), ("torch==2.1", 1)])
def test_the_release_that_a_project_is_held_to(tmp_path: Path, pin: str, number: int) -> None:
    (tmp_path / "requirements.txt").write_text(f"{pin}\n")
    assert codes(tmp_path, "log(torch.cuda.memory_cached())") == ["MEM502"] * number


# --------------------------------------------------------------------------------------------- readings


@pytest.mark.parametrize(
    "body",
    [
        "allocated = torch.cuda.memory_reserved()",
        "mem_alloc = round(torch.cuda.memory_reserved(0) / 1024**3, 1)",
        "model.gpu_allocated = torch.cuda.max_memory_reserved() // 2**20",
        "log['allocated'] = torch.cuda.memory_reserved()",
        "log({'memory/allocated': torch.cuda.memory_reserved() / 1e9})",
        "log(allocated=torch.cuda.memory_reserved())",
        "print('Allocated:', torch.cuda.memory_reserved() / 1e9, 'GB')",
        "total = torch.cuda.memory_allocated() + torch.cuda.memory_reserved()",
        "a, r = torch.cuda.memory_allocated() / 2, torch.cuda.memory_reserved() / 2\n    log(a + r)",
        "size = sys.getsizeof(torch.zeros(4))",
        "y = x.float() * torch.ones(3)\n    y = torch.zeros(9, device='cuda')\n    log(sys.getsizeof(y))",
        "mb = torch.cuda.memory_usage()",
        "log(torch.cuda.memory_usage() / (1024 ** 2))",
        "num_objects = gc.get_count()",
        "log({'objects': sum(gc.get_count())})",
        "a = gc.get_count()\n    model(x)\n    b = gc.get_count()\n    assert b <= a",
        "a = sum(gc.get_count())\n    model(x)\n    log(sum(gc.get_count()) - a)",
    ],
)
def test_readings_that_are_taken_for_another(tmp_path: Path, body: str) -> None:
    assert codes(tmp_path, body) == ["MEM503"]


@pytest.mark.parametrize(
    "body",
    [
        "reserved = torch.cuda.memory_reserved()",
        "used = torch.cuda.memory_reserved()",
        "unallocated = torch.cuda.memory_reserved()",
        "allocated_and_cached = torch.cuda.memory_reserved()",
        "total_allocated = torch.cuda.memory_reserved()",
        "allocated = torch.cuda.memory_allocated()",
        "allocated = log(torch.cuda.memory_reserved())",
        "allocated = torch.cuda.memory_reserved() - torch.cuda.memory_stats()['inactive_split_bytes.all.current']",
        "print('Allocated:', x, torch.cuda.memory_reserved())",
        "log(torch.cuda.memory_allocated() + x)",
        "log(torch.cuda.max_memory_allocated() + torch.cuda.memory_reserved())",
        "log(torch.cuda.memory_reserved() - torch.cuda.memory_allocated())",
        "log(sys.getsizeof(x))",
        "log(sys.getsizeof([torch.zeros(4)]))",
        "log(sys.getsizeof(torch.zeros(4).untyped_storage()))",
        "log(sys.getsizeof(torch.zeros(4).numpy()))",
        "baton = torch.utils.file_baton.FileBaton('lock')\n    log(sys.getsizeof(baton))",
        "log(sys.getsizeof(torch.zeros(4).tolist()))",
        "log(sys.getsizeof(x) + x.nelement() * x.element_size())",
        "log(torch.cuda.memory_usage() / 100)",
        "percent = torch.cuda.memory_usage()",
        "counts = gc.get_count()",
        "log(gc.get_count()[0] > gc.get_threshold()[0])",
        "gc.disable()\n    a = gc.get_count()\n    model(x)\n    log(gc.get_count() > a)",
        "a = len(gc.get_objects())\n    model(x)\n    objects = len(gc.get_objects())\n    log(objects - a)",
    ],
)
def test_readings_as_they_are(tmp_path: Path, body: str) -> None:
    assert codes(tmp_path, body) == []


def test_a_module_is_some_bytes_whatever_it_holds(tmp_path: Path) -> None:
    (one,) = found(tmp_path, "import sys\n\nimport torch\n\nprint(sys.getsizeof(torch.nn.Linear(8, 8)))\n")
    assert "50 bytes" in one.message and "parameters()" in one.help


# -------------------------------------------------------------------------------------- what torch says


def resolve(name: str) -> object:
    """What a qualified name is. Raises AttributeError."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        return functools.reduce(getattr, parts[size:], module)
    raise AttributeError(name)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(memory.missing()))
def test_a_missing_name_is_missing(name: str) -> None:
    resolve(name.rpartition(".")[0])
    with pytest.raises(AttributeError):
        resolve(name)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted({row.use for row in memory.missing().values() if row.use}))
def test_what_is_to_be_used_is_there(name: str) -> None:
    assert callable(resolve(name))


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(memory.missing_methods()))
def test_a_missing_method_is_missing(name: str) -> None:
    import torch

    assert not hasattr(torch.Tensor, name)


@pytest.mark.torch
@pytest.mark.parametrize("name", sorted(memory.renamed()))
def test_a_name_of_old_warns_and_calls_that_of_today(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("torch.cuda.memory")
    today = memory.renamed()[name].use
    assert callable(resolve(f"{name.rpartition('.')[0]}.{today}"))
    monkeypatch.setattr(module, today, lambda device=None: ("today", device))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert resolve(name)(1) == ("today", 1)  # type: ignore[operator]
    assert [one.category for one in warned] == [FutureWarning]


@pytest.mark.torch
@pytest.mark.parametrize("number", [1, 1 << 20])
def test_the_size_of_an_object_is_not_that_of_its_tensors(number: int) -> None:
    import torch

    assert sys.getsizeof(torch.zeros(number)) < 200
    assert sys.getsizeof(torch.nn.Linear(number, 2)) < 200
    assert sys.getsizeof(torch.zeros(number).untyped_storage()) >= 4 * number


@pytest.mark.torch
def test_memory_usage_is_a_percentage() -> None:
    import torch

    assert "percent" in (torch.cuda.memory_usage.__doc__ or "")
