"""The order of analyses, and what becomes of those that something else interrupts."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from memlint.lsp.messages import Answer, Explain, Fix, Lint
from memlint.lsp.scheduler import REST, Crew, Scheduler

pytestmark = pytest.mark.asyncio


class Asked:
    """A worker that answers when it is told to. ``cancelled``: the numbers of cancelled requests."""

    def __init__(self) -> None:
        self.requests = asyncio.Queue[tuple[Lint | Fix | Explain, asyncio.Future[Answer]]]()
        self.cancelled = set[int]()
        self._number = 0

    async def ask(self, request: Lint | Fix | Explain) -> Answer:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.requests.put_nowait((request, answer))
        return await answer

    def cancel(self, number: int) -> None:
        self.cancelled.add(number)

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def close(self) -> None:
        pass


class Table:
    """A scheduler, its worker, and the answers that it has passed on: whether they were partial ones."""

    def __init__(self) -> None:
        self.asked, self.partial = Asked(), list[bool]()
        self.scheduler = Scheduler(
            cast(Crew, self.asked),
            lambda uri, number, quick: Lint(number, uri, "", {}, quick=quick),
            lambda _, __, answer: self.partial.append(answer.partial),
            pytest.fail,
        )

    async def next(self) -> tuple[Lint | Fix | Explain, asyncio.Future[Answer]]:
        return await asyncio.wait_for(self.asked.requests.get(), 10)


async def test_a_complete_answer_follows_a_partial_one_that_something_more_urgent_met() -> None:
    table = Table()
    table.scheduler.schedule("a", 0)
    lint, answer = await table.next()
    assert isinstance(lint, Lint) and lint.quick
    fix = asyncio.ensure_future(table.scheduler.fix(lambda number: Fix(number, "a", "", {})))
    await asyncio.sleep(0)
    assert table.asked.cancelled == {lint.number}
    answer.set_result(Answer(lint.number, partial=True))  # (the cancellation came too late)
    urgent, answer = await table.next()
    assert isinstance(urgent, Fix)
    answer.set_result(Answer(urgent.number))
    await fix
    again, answer = await table.next()
    assert isinstance(again, Lint) and not again.quick
    answer.set_result(Answer(again.number))
    await asyncio.sleep(0.05)
    assert table.partial == [True, False]
    assert not table.scheduler.has("a")
    table.scheduler.close()


async def test_a_complete_analysis_cancels_no_query_but_an_edit_does() -> None:
    table = Table()
    table.scheduler.schedule("a", 0)
    lint, answer = await table.next()
    answer.set_result(Answer(lint.number, partial=True))
    known = asyncio.ensure_future(table.scheduler.explain(lambda n: Explain(n, "a", "", {}, line=1, column=1)))
    query, answer = await table.next()
    assert isinstance(query, Explain)
    await asyncio.sleep(2 * REST)
    assert table.asked.cancelled == set()
    table.scheduler.schedule("a", 0)
    await asyncio.sleep(REST)
    assert table.asked.cancelled == {query.number}
    answer.set_result(Answer(query.number, cancelled=True))
    assert (await known).cancelled
    table.scheduler.close()
