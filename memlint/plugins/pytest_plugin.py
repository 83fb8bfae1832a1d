"""Limits for tests: the memory that a test keeps each time that it runs, and its peak.

::

    @pytest.mark.limit_memory_growth("0 B", device="cuda", warmups=3, iterations=8)
    def test_a_step_keeps_nothing(trainer, batch):
        trainer.step(batch)

    @pytest.mark.limit_peak_memory("2 GiB")
    def test_it_fits(model, batch): ...

    def test_an_epoch(memory_growth, trainer, loader):
        with memory_growth("1 KiB", warmups=3) as growth:
            for batch in growth.steps(loader):
                trainer.step(batch)

``limit_memory_growth`` calls the test function warmups + iterations times, with the same fixtures: growth of the
objects in them counts. Without a device, CPU tensors and every CUDA device are measured. ``-p no:memlint`` disables the
plugin."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from memlint.patterns import lazy_pattern
from memlint.plugins.pytest_places import amount, kept

if TYPE_CHECKING:
    from memlint.measure.growth import Watch

_GROWTH, _PEAK, _HOST = "limit_memory_growth", "limit_peak_memory", "limit_host_growth"
#: the option of pytest's configuration with the growth limit of tests without the mark
_DEFAULT = "memory_growth_limit"
_MARKS = {
    _GROWTH: '(limit, device=None, warmups=3, iterations=8): fail when what each run of the test keeps ("0 B") is more',
    _HOST: '(limit, warmups=3, iterations=8): the same for host memory beside tensors ("1 MiB")',
    _PEAK: '(limit, device=None): fail when the test has more memory ("2 GiB") at once than that',
}
_DEVICE = lazy_pattern(r"cpu|cuda(:\d+)?")


@dataclass(frozen=True)
class _Growing:
    limit: int
    device: str | None = None
    warmups: int = 3
    iterations: int = 8


@dataclass(frozen=True)
class _Peak:
    limit: int
    device: str | None = None


@dataclass
class _Limits:
    growth: _Growing | None = None
    host: _Growing | None = None
    peak: _Peak | None = None
    wrong: str | None = None
    off: bool = False


_LIMITS: pytest.StashKey[_Limits] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        _DEFAULT, "what a run of a test may keep that has no mark limit_memory_growth, such as 0 B", default=""
    )
    group = parser.getgroup("memlint")
    group.addoption("--memlint-report", action="store_true", help="list what each test keeps once it is over")


def pytest_configure(config: pytest.Config) -> None:
    _default(config)  # a wrong value is an error here, before pytest-xdist starts workers
    if config.getoption("--memlint-report"):
        from memlint.plugins.pytest_report import Reporter

        config.pluginmanager.register(Reporter(), "memlint-report")
    for name, text in _MARKS.items():
        config.addinivalue_line("markers", name + text)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    default = _default(config)
    for item in items:
        for mark in item.iter_markers():
            if mark.name in _MARKS:
                _note(item, mark)
        if default is not None and _is_measurable(item):
            limits = item.stash.setdefault(_LIMITS, _Limits())
            if limits.growth is None and not limits.off and "torch" in sys.modules:
                limits.growth = default


def _default(config: pytest.Config) -> _Growing | None:
    limit = str(config.getini(_DEFAULT)).strip()
    try:
        return _Growing(_bytes(limit)) if limit else None
    except ValueError as error:
        raise pytest.UsageError(f"{_DEFAULT}: {error}") from None


def _is_measurable(item: pytest.Item) -> bool:
    return isinstance(item, pytest.Function) and not (
        inspect.iscoroutinefunction(item.obj) or inspect.isasyncgenfunction(item.obj)
    )


def _note(item: pytest.Item, mark: pytest.Mark) -> None:
    """Store the limit of a mark, unless a closer mark has the same name. Raises UsageError."""
    limits = item.stash.setdefault(_LIMITS, _Limits())
    try:
        if mark.name == _GROWTH and limits.growth is None and not limits.off:
            limits.off = mark.args == (None,) and not mark.kwargs
            limits.growth = None if limits.off else _parse_growth(*mark.args, **mark.kwargs)
        elif mark.name == _HOST and limits.host is None:
            limits.host = _parse_host(*mark.args, **mark.kwargs)
        elif mark.name == _PEAK and limits.peak is None:
            limits.peak = _parse_peak(*mark.args, **mark.kwargs)
        if not isinstance(item, pytest.Function):
            raise ValueError("only test functions and methods can be measured")
        if inspect.iscoroutinefunction(item.obj) or inspect.isasyncgenfunction(item.obj):
            raise ValueError("async tests cannot be measured: tasks beside the test would be counted as its own")
    except (TypeError, ValueError) as error:
        said = re.sub(r"^_parse_\w+\(\)", "the mark", str(error))
        limits.wrong = f"{item.nodeid}: {mark.name}: {said}"
        if not hasattr(item.config, "workerinput"):  # in a worker of pytest-xdist, the test fails in its setup
            raise pytest.UsageError(limits.wrong) from None


def _parse_growth(
    limit: Any = "0 B", *, device: Any = None, warmups: Any = 3, iterations: Any = 8, **unknown: Any
) -> _Growing:
    _refuse(unknown)
    return _Growing(_bytes(limit), _device(device), _count("warmups", warmups, 0), _count("iterations", iterations, 2))


def _parse_host(limit: Any, *, warmups: Any = 3, iterations: Any = 8, **unknown: Any) -> _Growing:
    _refuse(unknown)
    return dataclasses.replace(_parse_growth(limit, warmups=warmups, iterations=iterations), device="host")


def _parse_peak(limit: Any, *, device: Any = None, **unknown: Any) -> _Peak:
    _refuse(unknown)
    return _Peak(_bytes(limit), _device(device))


def _refuse(unknown: dict[str, Any]) -> None:
    if unknown:
        raise ValueError(f"unknown argument {', '.join(map(repr, unknown))}")


def _bytes(limit: Any) -> int:
    from memlint.amounts import bytes_in

    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0:
        return limit
    found = bytes_in(limit) if isinstance(limit, str) else None
    if found is None:
        raise ValueError(f"{limit!r} is no amount of memory; write for example '16 KiB'")
    return found


def _device(device: Any) -> str | None:
    if device is not None and not (isinstance(device, str) and _DEVICE.fullmatch(device)):
        raise ValueError(f"device={device!r} is none of 'cpu', 'cuda' and 'cuda:N'")
    return device


def _count(name: str, number: Any, least: int) -> int:
    if not isinstance(number, int) or isinstance(number, bool) or number < least:
        raise ValueError(f"{name}={number!r} is not a whole number of at least {least}")
    return number


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    limits = item.stash.get(_LIMITS, None)
    if limits is not None:
        if limits.wrong is not None:
            pytest.fail(limits.wrong, pytrace=False)
        for limit, name in ((limits.growth, _GROWTH), (limits.host, _HOST), (limits.peak, _PEAK)):
            if limit is not None:
                _gauges(limit.device, name)


def _gauges(device: str | None, name: str) -> list[Any]:
    """The gauges of a device. Skips the test if the device cannot be measured."""
    torch = _torch(name)
    from memlint.measure.growth import UnmeasurableError, gauges

    try:
        return list(gauges(device, torch))
    except UnmeasurableError as error:
        pytest.skip(f"{name}: {error}")


def _torch(name: str) -> Any:
    try:
        return __import__("torch")
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        pytest.skip(f"{name}: {'torch is not installed' if missing else f'torch cannot be imported: {error}'}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    limits = item.stash.get(_LIMITS, None)
    if limits is None or not isinstance(item, pytest.Function) or not (limits.growth or limits.host or limits.peak):
        yield
        return
    test = item.obj
    item.obj = _measured(test, limits, item)
    try:
        yield
    finally:
        item.obj = test


def _measured(test: Callable[..., Any], limits: _Limits, item: pytest.Item) -> Callable[..., Any]:
    """A function that runs the test as often as its limits require, and fails if one is exceeded."""

    @functools.wraps(test)
    def run(*arguments: Any, **options: Any) -> None:
        grown: list[str] = []
        for wanted, name in ((limits.growth, _GROWTH), (limits.host, _HOST)):
            if wanted is None:
                continue
            watch = _watch(wanted.device, wanted.warmups, name)
            with watch:
                for _ in range(wanted.warmups + wanted.iterations):
                    test(*arguments, **options)
                    watch.mark()
            grown += _growth_failures(watch, wanted.limit, wanted.warmups, item.config, item.path)
        if limits.peak is not None:
            watch = _watch(limits.peak.device, 0, _PEAK)
            with watch:
                test(*arguments, **options)
            grown += _peak_failures(watch, limits.peak.limit)
        if grown:
            pytest.fail("\n".join(grown), pytrace=False)

    return run


def _watch(device: str | None, warmups: int, name: str) -> Watch:
    from memlint.measure.growth import Watch

    return Watch(_gauges(device, name), warmups)


def _growth_failures(watch: Watch, limit: int, warmups: int, config: pytest.Config, test: Path) -> list[str]:
    said = []
    for growth in watch.growth():
        if growth.per_iteration > limit:
            how = f"{watch.iterations} iterations after {warmups} of warm-up"
            said.append(
                f"memory grows by {amount(growth.per_iteration)} an iteration on {growth.device} ({how}); "
                f"the limit is {amount(limit)}"
            )
            said += kept(growth, config, test)
    return said


def _peak_failures(watch: Watch, limit: int) -> list[str]:
    return [
        f"memory peaks at {amount(peak)} on {device}; the limit is {amount(limit)}"
        for device, peak in watch.peaks().items()
        if peak > limit
    ]


class MemoryGrowth:
    """Measures the iterations of a loop inside a test, as ``limit_memory_growth`` measures whole tests.

    Set at the end: ``per_iteration``, the growth in bytes of the device that grows most, and ``peaks``, bytes by
    device."""

    def __init__(self, limits: _Growing, request: pytest.FixtureRequest) -> None:
        self._limits = limits
        self._request = request
        self._watch = _watch(limits.device, limits.warmups, "memory_growth")
        self.per_iteration: int | None = None
        self.peaks: dict[str, int] = {}

    def __enter__(self) -> MemoryGrowth:
        self._watch.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._watch.__exit__()
        if kind is not None:
            return
        limits, done = self._limits, self._watch.iterations
        if done < 2:
            pytest.fail(
                f"memory_growth saw {done} iteration{'s' * (done != 1)} after {limits.warmups} of warm-up, and needs "
                "at least 2: go through growth.steps(…), or call growth.step() after each",
                pytrace=False,
            )
        self.peaks = self._watch.peaks()
        self.per_iteration = max(math.ceil(growth.per_iteration) for growth in self._watch.growth())
        node = self._request.node
        said = _growth_failures(self._watch, limits.limit, limits.warmups, node.config, node.path)
        if said:
            pytest.fail("\n".join(said), pytrace=False)

    def step(self) -> None:
        """An iteration has ended."""
        self._watch.mark()

    def steps(self, over: int | Iterable[Any]) -> Iterator[Any]:
        """The items of ``over``, or of ``range(over)``. An iteration ends after each item."""
        for each in range(over) if isinstance(over, int) else over:
            yield each
            self._watch.mark()


@pytest.fixture
def memory_growth(request: pytest.FixtureRequest) -> Callable[..., MemoryGrowth]:
    """``with memory_growth("0 B", device=None, warmups=3) as growth: for batch in growth.steps(loader): …``"""
    _torch("memory_growth")

    def make(limit: Any = "0 B", *, device: Any = None, warmups: Any = 3) -> MemoryGrowth:
        try:
            limits = _parse_growth(limit, device=device, warmups=warmups)
        except ValueError as error:
            raise pytest.UsageError(f"{request.node.nodeid}: memory_growth: {error}") from None
        return MemoryGrowth(limits, request)

    return make
