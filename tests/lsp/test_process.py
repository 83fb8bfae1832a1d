"""The process: how it begins and ends, what it makes of broken messages, and what a mistake costs."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pytest_lsp")

from editor import LEAK, ROOT, SECONDS, command, editing, environment

INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}
SHUTDOWN = {"jsonrpc": "2.0", "id": 2, "method": "shutdown"}
EXIT = {"jsonrpc": "2.0", "method": "exit"}


def message(content: dict[str, Any] | bytes) -> bytes:
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def talk(*said: bytes) -> tuple[int, list[dict[str, Any]], str]:
    """Say all of it and hang up: the exit code, the answers, and what was said on standard error."""
    done = subprocess.run(
        command(), env=environment(), input=b"".join(said), capture_output=True, timeout=SECONDS, check=False
    )
    answers, rest = [], done.stdout
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        length = int(dict(line.split(b": ") for line in head.split(b"\r\n"))[b"Content-Length"])
        answers.append(json.loads(rest[:length]))
        rest = rest[length:]
    return done.returncode, answers, done.stderr.decode()


@pytest.mark.parametrize(
    ("said", "code", "answered"),
    [
        pytest.param([INITIALIZE, SHUTDOWN, EXIT], 0, {1, 2}, id="in order"),
        pytest.param([INITIALIZE, EXIT], 1, {1}, id="exit without shutdown"),
        pytest.param([INITIALIZE], 1, {1}, id="the client hangs up"),
        pytest.param([], 1, set(), id="nothing at all"),
        pytest.param([INITIALIZE, b"{", SHUTDOWN, EXIT], 0, {1, 2}, id="no JSON"),
        pytest.param([INITIALIZE, b"\xff\xfe", SHUTDOWN, EXIT], 0, {1, 2}, id="no UTF-8"),
        pytest.param([INITIALIZE, b"[1]", b"null", b"7", SHUTDOWN, EXIT], 0, {1, 2}, id="JSON that is no message"),
        pytest.param([INITIALIZE, {"jsonrpc": "2.0", "method": "no/such"}, SHUTDOWN, EXIT], 0, {1, 2}, id="unknown"),
        pytest.param(
            [INITIALIZE, {"jsonrpc": "2.0", "method": "textDocument/didChange", "params": {}}, SHUTDOWN, EXIT],
            0,
            {1, 2},
            id="parameters of another kind",
        ),
    ],
)
def test_exit_codes_and_broken_messages(said: list[dict[str, Any] | bytes], code: int, answered: set[int]) -> None:
    ended, answers, _ = talk(*map(message, said))
    assert (ended, {one["id"] for one in answers if "id" in one}) == (code, answered)


@pytest.mark.parametrize("cut", [b"Content-Len", b"Content-Length: 200\r\n\r\n{", b"Content-Length: x\r\n\r\n{}"])
def test_half_a_message_is_the_end(cut: bytes) -> None:
    ended, answers, _ = talk(message(INITIALIZE), cut)
    assert ended == 1 and [one["id"] for one in answers if "id" in one] == [1]


def test_without_pygls_it_says_how_to_get_it() -> None:
    script = "import sys; sys.modules['pygls'] = None; from memlint.cli import main; sys.exit(main(['lsp']))"
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "memlint: error: the language server needs pygls: pip install 'torch-memlint[lsp]'\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--tcp", "here"], "HOST:PORT"), (["--tcp", "localhost:99999"], "HOST:PORT"), (["src"], "src"), (["--x"], "--x")],
)
def test_a_wrong_command_line(arguments: list[str], said: str) -> None:
    done = subprocess.run([*command(), *arguments], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 2 and said in done.stderr


def test_a_client_may_come_by_a_port() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([*command(), "--tcp", f"127.0.0.1:{port}"], env=environment(), stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                client = socket.create_connection(("127.0.0.1", port), timeout=SECONDS)
                break
            except ConnectionRefusedError:
                assert time.monotonic() < deadline and server.poll() is None
                time.sleep(0.05)
        with client:
            client.sendall(message(INITIALIZE))
            assert client.recv(64).startswith(b"Content-Length: ")
            client.sendall(message(SHUTDOWN) + message(EXIT))
            assert server.wait(SECONDS) == 0
    finally:
        server.kill()
        server.communicate()


def worker_of(server: int) -> int:
    """The process that analyses for a server."""
    tasks = (task / "children" for task in Path(f"/proc/{server}/task").iterdir())
    (worker,) = [int(word) for task in tasks if task.exists() for word in task.read_text().split()]
    return worker


def waiting_bytes(process: int) -> int:
    """How much a process has not read yet of its standard input."""
    import fcntl
    import termios

    with open(f"/proc/{process}/fd/0", "rb", buffering=0) as pipe:  # noqa: PTH123
        return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


@pytest.mark.asyncio
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the worker")
async def test_an_analysis_that_is_killed_is_said_and_the_next_one_works(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEAK)
    async with editing(tmp_path) as editor:
        uri = editor.open(tmp_path / "train.py")
        assert len(await editor.found(uri)) == 1
        assert editor.client._server is not None
        worker = worker_of(editor.client._server.pid)
        os.kill(worker, signal.SIGSTOP)
        version = editor.change(uri, ((0, 0, 0, 0), "\n"))
        deadline = time.monotonic() + SECONDS
        while not waiting_bytes(worker):
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        os.kill(worker, signal.SIGKILL)
        (found,) = await editor.found(uri, version)
        assert "was not checked" in found.message and "killed by signal 9" in found.message
        version = editor.change(uri, ((0, 0, 0, 0), "\n"))
        assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]
        # one that had nothing to do is nothing to speak of
        os.kill(worker_of(editor.client._server.pid), signal.SIGKILL)
        version = editor.change(uri, ((0, 0, 0, 0), "\n"))
        assert [one.code for one in await editor.found(uri, version)] == ["MEM101"]


@pytest.mark.asyncio
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the worker")
@pytest.mark.parametrize("hangs", [False, True])
async def test_an_edit_supersedes_the_analysis_that_runs_and_nothing_else_waits(tmp_path: Path, hangs: bool) -> None:
    (tmp_path / "train.py").write_text(LEAK)
    (tmp_path / "other.py").write_text(LEAK)
    async with editing(tmp_path) as editor:
        uri, other = editor.open(tmp_path / "train.py"), editor.open(tmp_path / "other.py")
        await editor.found(uri)
        (found,) = await editor.found(other)
        assert editor.client._server is not None
        worker = worker_of(editor.client._server.pid)
        os.kill(worker, signal.SIGSTOP)
        superseded = editor.change(uri, ((0, 0, 0, 0), "\n"))
        while not (request := waiting_bytes(worker)):
            await asyncio.sleep(0.01)
        assert "MEM101" in await editor.hover(other, found.range.start.line, found.range.start.character)
        newest = editor.change(uri, ((0, 0, 0, 0), "\n"))
        while waiting_bytes(worker) == request:  # until it is told that nobody waits
            await asyncio.sleep(0.01)
        if not hangs:
            os.kill(worker, signal.SIGCONT)
        (found,) = await editor.found(uri, newest)
        assert (found.code, found.range.start.line) == ("MEM101", LEAK.splitlines().index("        total += loss") + 2)
        assert superseded not in [one.version for one in editor.published]
        assert (worker_of(editor.client._server.pid) != worker) == hangs


@pytest.mark.asyncio
async def test_a_mistake_of_ours_is_logged_and_nothing_ends(tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.mkdir()
    (patch / "sitecustomize.py").write_text(
        "import memlint.lsp.hover\n"
        "def broken(*_): raise ZeroDivisionError('broken hover')\n"
        "memlint.lsp.hover.hover = broken\n"
    )
    (tmp_path / "train.py").write_text(LEAK)
    env = environment(PYTHONPATH=os.pathsep.join((str(patch), str(ROOT))))
    async with editing(tmp_path, env=env) as editor:
        uri = editor.open(tmp_path / "train.py")
        (found,) = await editor.found(uri)
        assert await editor.hover(uri, found.range.start.line, found.range.start.character) == ""
        assert "ZeroDivisionError" in await editor.logged("broken hover")
        version = editor.change(uri, "")
        assert await editor.found(uri, version) == []


@pytest.mark.asyncio
async def test_nothing_of_the_project_runs(tmp_path: Path) -> None:
    """Neither its own rules, be they trusted elsewhere, nor modules that have the names of ours."""
    root, mark = tmp_path / "project", tmp_path / "ran"
    rule = root / "lint" / "mem950_their_own"
    rule.mkdir(parents=True)
    ran = f"open({str(mark)!r}, 'w').close()\n"
    (rule / "rule.py").write_text(ran)
    (rule / "README.md").write_text("# their-own (MEM950)\n\nTheirs.\n")
    for name in ("libcst", "msgspec", "lsprotocol", "sitecustomize", "torch", "conftest"):
        (root / f"{name}.py").write_text(ran)
    (root / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["lint"]\n')
    (root / "train.py").write_text(LEAK)
    cwd = Path.cwd()
    os.chdir(root)
    try:
        async with editing(root, env=environment(MEMLINT_LOCAL_RULES="1")) as editor:
            uri = editor.open(root / "train.py")
            assert [one.code for one in await editor.found(uri)] == ["MEM101"]
            assert "did not run" in await editor.logged("rules")
    finally:
        os.chdir(cwd)
    assert not mark.exists()
