"""Which loops are running, told by what the probes of real functions report."""

from __future__ import annotations

import asyncio
import builtins
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from memlint.measure.loops.running import Running
from memlint.measure.plan import LoopPlan
from memlint.measure.probing import instrument


class Loops:
    """Runs text whose loops are all probed; ``here()`` notes the lines of the loops around it, outermost first."""

    def __init__(self) -> None:
        self.running = Running()
        self.seen: list[list[int]] = []
        self.counts: list[list[int]] = []
        self._number = 0

    def enter(self, loop: int, around: tuple[int, ...]) -> None:
        self._number += 1
        self.running.enter(loop, around, sys._getframe(1), self._number)

    def top(self, loop: int) -> None:
        run = self.running.top(loop, sys._getframe(1))
        assert run is not None
        run.count += 1

    def leave(self, loop: int) -> None:
        assert self.running.exit(loop, sys._getframe(1))

    def here(self) -> None:
        self.running.settle(sys._getframe(1))
        self.seen.append([run.loop for run in self.running.runs])
        self.counts.append([run.count for run in self.running.runs])

    def run(self, text: str) -> list[list[int]]:
        import ast

        text = textwrap.dedent(text).lstrip("\n")
        found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.For, ast.While, ast.AsyncFor))]
        plans = [LoopPlan(node.lineno, node.lineno, node.col_offset + 1) for node in found]
        tree, missing = instrument.parse(text, "p.py", (), plans)
        assert missing == []
        exec(compile(tree, "p.py", "exec"), {"here": self.here, "asyncio": asyncio, "threading": threading})
        return self.seen


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loops]:
    found = Loops()
    probes: tuple[tuple[str, Callable[..., Any]], ...] = (
        (instrument.ENTER, found.enter),
        (instrument.LOOP, found.top),
        (instrument.EXIT, found.leave),
    )
    for name, probe in probes:
        monkeypatch.setattr(builtins, name, probe, raising=False)
    yield found


def test_a_loop_left_by_an_exception_is_not_around_the_next(loops: Loops) -> None:
    seen = loops.run(
        """
        try:
            for a in range(3):
                for b in range(3):
                    1 / 0
        except ZeroDivisionError:
            pass
        for c in range(2):
            here()
        here()
        """
    )
    assert seen == [[7], [7], []]


def test_a_loop_that_a_call_returned_from_is_over(loops: Loops) -> None:
    seen = loops.run(
        """
        def first():
            for a in range(3):
                while True:
                    return a

        for b in range(2):
            first()
            here()
        """
    )
    assert seen == [[6], [6]]


def test_a_recursion_runs_its_loop_within_itself(loops: Loops) -> None:
    seen = loops.run(
        """
        def walk(depth):
            for a in range(2):
                if depth:
                    walk(depth - 1)
                else:
                    here()
            return depth

        walk(1)
        """
    )
    assert seen == [[2, 2]] * 4
    assert loops.counts == [[1, 1], [1, 2], [2, 1], [2, 2]]


def test_a_generators_loop_is_around_its_own_body_alone(loops: Loops) -> None:
    seen = loops.run(
        """
        def numbers():
            for a in range(2):
                here()
                yield a

        for b in numbers():
            here()
        """
    )
    assert seen == [[6, 2], [6], [6, 2], [6]]
    assert loops.counts == [[0, 1], [1], [1, 2], [2]]


def test_generators_that_take_turns_are_not_around_each_other(loops: Loops) -> None:
    seen = loops.run(
        """
        def numbers(show):
            for a in range(3):
                for b in range(1):
                    pass
                if show:
                    here()
                yield a

        one, other = numbers(True), numbers(False)
        for c in zip(one, other):
            pass
        """
    )
    assert seen == [[10, 2]] * 3
    assert [counts[-1] for counts in loops.counts] == [1, 2, 3]


def test_tasks_that_take_turns_are_not_around_each_other(loops: Loops) -> None:
    seen = loops.run(
        """
        async def work():
            for a in range(3):
                await asyncio.sleep(0)
                here()

        async def main():
            await asyncio.gather(work(), work())

        asyncio.run(main())
        """
    )
    assert seen == [[2]] * 6
    assert sorted(counts[0] for counts in loops.counts) == [1, 1, 2, 2, 3, 3]


def test_threads_have_loops_of_their_own(loops: Loops) -> None:
    seen = loops.run(
        """
        def work():
            for a in range(1):
                here()

        for b in range(2):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            here()
        """
    )
    assert seen == [[2], [5], [2], [5]]


def test_abandoned_generators_are_forgotten(loops: Loops) -> None:
    loops.run(
        """
        def numbers():
            for a in range(3):
                yield a

        kept = [numbers() for _ in range(1000)]
        for each in kept:
            next(each)
        """
    )
    assert len(loops.running._waiting) <= 256
