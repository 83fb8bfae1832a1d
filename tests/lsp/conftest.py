"""The folder that the server's tests work in, and a session for those that need no other than it begins as."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from editor import Editor


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pyproject.toml").write_text("")
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session() -> AsyncIterator[Editor]:
    """One server for the tests of a module: a start of it, and of what analyses for it, takes longer than most."""
    from editor import editing

    async with editing() as editor:
        yield editor


@pytest_asyncio.fixture(loop_scope="module")
async def editor(session: Editor, root: Path) -> AsyncIterator[Editor]:
    """The editor of that server, in the test's own folder."""
    session.enter(root)
    yield session
    await session.leave(root)
