"""Suites that use the pytest plugin. Some of their tests fail, as they should."""

CPU = """
import unittest

import pytest
import torch
from helper import make

kept, cache, calls = [], {}, []


@pytest.mark.limit_memory_growth("0 B", device="cpu")
def test_keeps():
    kept.append(torch.ones(4097))  # here


@pytest.mark.limit_memory_growth("16388 B")
def test_keeps_as_much_as_it_may():
    kept.append(torch.ones(4097))


@pytest.mark.limit_memory_growth
def test_keeps_nothing():
    torch.ones(4097)


@pytest.mark.limit_memory_growth(iterations=8)
def test_fills_a_cache_once():
    calls.append(0)
    if len(calls) == 6:
        cache["x"] = torch.ones(100)


@pytest.mark.limit_memory_growth()
def test_holds_one_batch_of_growing_size():
    calls.append(0)
    cache["y"] = torch.ones(len(calls))


@pytest.mark.limit_memory_growth()
def test_leaves_cycles():
    cycle = [torch.ones(9)]
    cycle.append(cycle)


@pytest.mark.limit_memory_growth(warmups=1, iterations=4)
@pytest.mark.parametrize("size", [1, 2])
def test_each(size, tmp_path):
    assert tmp_path.is_dir()
    kept.append(make(size))  # there


@pytest.mark.limit_memory_growth(warmups=0, iterations=2)
def test_many_places():
    # fmt: off
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))
    kept.append(torch.ones(1))


@pytest.mark.limit_memory_growth()
def test_fails_itself():
    raise ValueError("of its own")


@pytest.mark.limit_memory_growth("0 B", device="cuda:7")
def test_no_such_device():
    raise AssertionError("must not run")


class TestUnit(unittest.TestCase):
    def setUp(self):
        self.ready = True

    @pytest.mark.limit_memory_growth("0 B", iterations=4)
    def test_unit(self):
        assert self.ready
        kept.append(torch.ones(10))

    @pytest.mark.limit_memory_growth("0 B", device="cuda:7")
    def test_unit_without_device(self):
        raise AssertionError("must not run")


@pytest.mark.limit_peak_memory("2 MB")
def test_peaks_too_high():
    ones = torch.ones(250_001)
    ones + 1


@pytest.mark.limit_peak_memory("2000008 B")
def test_peaks_as_high_as_it_may():
    ones = torch.ones(250_001)
    ones + 1


def test_loop(memory_growth):
    with memory_growth(device="cpu") as growth:
        for number in growth.steps(range(10)):
            kept.append(torch.ones(5))
            number += 1


def test_loop_that_may(memory_growth):
    with memory_growth("20 B", device="cpu", warmups=0) as growth:
        for _ in range(6):
            kept.append(torch.ones(5))
            growth.step()
    assert growth.per_iteration == 20
    assert growth.peaks["cpu"] >= 120


def test_loop_too_short(memory_growth):
    with memory_growth() as growth:
        for _ in growth.steps(4):
            pass


def test_loop_that_raises(memory_growth):
    with memory_growth() as growth:
        for _ in growth.steps(9):
            raise ValueError("of its own")
"""

HELPER = "import torch\n\n\ndef make(size):\n    return torch.ones(size)\n"

#: a torch whose allocator is made of counters: each `torch.ones` takes 512 B of a device until `release()`
FAKE_CUDA = """
import sys

import pytest
import torch

live = []
peak = [0]
recording = [False]


def take(size=500):
    frame = sys._getframe(1)
    frames = [{"filename": frame.f_code.co_filename, "line": frame.f_lineno, "name": "f"}]
    live.append((size, frames if recording[0] else []))
    peak[0] = max(peak[0], 512 * len(live))


def stats(index):
    now, most = (512 * len(live), peak[0]) if index == 0 else (0, 0)
    asked = sum(size for size, _ in live) if index == 0 else 0
    return {
        "allocated_bytes": {"all": {"current": now, "peak": most}},
        "requested_bytes": {"all": {"current": asked, "peak": 0}},
    }


def reset(index=0):
    peak[0] = 512 * len(live)


def snapshot(include_traces=True):
    blocks = [
        {"state": "active_allocated", "size": 512, "requested_size": size, "frames": frames} for size, frames in live
    ]
    return [{"device": 0, "address": 0, "blocks": blocks}, {"device": 1, "address": 0, "blocks": []}]


def record(enabled, **options):
    recording[0] = enabled is not None


torch.cuda.is_available = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.init = lambda: None
torch.cuda.get_allocator_backend = lambda: BACKEND
torch.cuda.reset_peak_memory_stats = reset
torch.cuda.memory.reset_peak_memory_stats = reset
torch.cuda.memory_snapshot = snapshot
torch.cuda.memory._record_memory_history = record
torch._C._cuda_memoryStats = stats
torch._C._cuda_isHistoryEnabled = lambda: recording[0]
"""

CUDA = """
import fake
import pytest
import torch


@pytest.mark.limit_memory_growth("0 B", device="cuda")
def test_keeps():
    fake.take()  # here


@pytest.mark.limit_memory_growth("0 B", device="cuda:1")
def test_keeps_elsewhere():
    fake.take()


@pytest.mark.limit_memory_growth("0 B")
def test_every_device():
    fake.take()


@pytest.mark.limit_memory_growth("0 B", device="cuda:2")
def test_no_such_device():
    raise AssertionError("must not run")


@pytest.mark.limit_peak_memory("1 KiB", device="cuda")
def test_peak_that_the_test_itself_resets():
    before = list(fake.live)
    fake.take(), fake.take(), fake.take()
    fake.live[:] = before
    torch.cuda.reset_peak_memory_stats()


@pytest.mark.limit_peak_memory("1536 B", device="cuda")
def test_peak_beside_what_was_there():
    fake.take(), fake.take(), fake.take()


def test_all_is_put_back():
    assert torch.cuda.reset_peak_memory_stats is fake.reset
    assert not fake.recording[0]
"""

REAL_CUDA = """
import pytest
import torch

kept = []


@pytest.mark.limit_memory_growth("0 B", device="cuda")
def test_keeps():
    kept.append(torch.ones(4097, device="cuda"))  # here


@pytest.mark.limit_memory_growth("0 B", device="cuda")
def test_keeps_nothing():
    torch.nn.Linear(64, 64, device="cuda")(torch.ones(8, 64, device="cuda")).sum().backward()


@pytest.mark.limit_peak_memory("1 MiB", device="cuda")
def test_peaks_too_high():
    torch.ones(1 << 20, device="cuda")
"""

#: no marks; a fixture that a test fills is let go of at its end
UNMARKED = """
import pytest
import torch

kept = []


@pytest.fixture
def bag():
    return []


def test_keeps():
    kept.append(torch.ones(4097))


def test_keeps_less(bag):
    kept.append(torch.ones(5))
    bag[:] = [torch.ones(4097)]


def test_keeps_nothing(bag):
    bag[:] = [torch.ones(4097)]


def test_fails():
    kept.append(torch.ones(4097))
    raise ValueError("of its own")


@pytest.mark.limit_memory_growth("16388 B")
def test_may_keep():
    kept.append(torch.ones(4097))


@pytest.mark.limit_memory_growth(None)
def test_is_left_out():
    kept.append(torch.ones(4097))


async def test_async():
    pass
"""

HOST = """
import pytest
import torch

kept = []


@pytest.mark.limit_host_growth("10 kB")
def test_keeps():
    kept.append(bytearray(1_000_000))


@pytest.mark.limit_host_growth("2 MB")
def test_keeps_less_than_it_may():
    kept.append(bytearray(1_000_000))


@pytest.mark.limit_host_growth("0 B", warmups=2, iterations=4)
def test_tensors_are_counted_elsewhere():
    bytearray(1_000_000)
    kept.append(torch.ones(100_000))
"""

ASIDE = """
import atexit
import gc
import os
import weakref

import pytest
import torch


class Node:
    def __init__(self):
        self.me = self


KEPT, LEFT = [Node()], []
limited = pytest.mark.limit_memory_growth("0 B", warmups=1, iterations=2)


@pytest.fixture
def unfrozen_passes():
    passes = []

    def note(phase, info):
        if phase == "start" and info["generation"] == 2 and not gc.get_freeze_count():
            passes.append(info)

    gc.disable()
    gc.callbacks.append(note)
    yield
    gc.callbacks.remove(note)
    gc.enable()
    assert not passes


@pytest.fixture
def frozen():
    gc.freeze()
    atexit.register(lambda: os.write(1, b"still frozen" if gc.get_freeze_count() else b"thawed"))


@limited
def test_looks_through_its_own_objects_only(unfrozen_passes):
    cycle = [torch.ones(3)]
    cycle.append(cycle)


def test_releases_an_older_object():
    assert not gc.get_freeze_count()
    released = weakref.ref(KEPT[0])
    KEPT.clear()
    gc.collect()
    assert released() is None


@pytest.fixture
def nodes():
    return [Node() for _ in range(30)]


@limited
def test_keeps_nothing_but_garbage_that_was_put_aside(nodes):
    nodes.pop().payload = torch.ones(3)


@limited
def test_keeps():
    LEFT.append(torch.ones(3))


@limited
def test_leaves_a_freeze_of_its_user_alone(frozen):
    cycle = [torch.ones(3)]
    cycle.append(cycle)


def test_a_freeze_is_still_there():
    assert gc.get_freeze_count()
"""
