"""``torch_forks.py SOCKET``: a process that has imported torch, and whose forks run what a Python would be given.

Importing torch takes longer than most programs of the tests. `forks` puts an executable in front of such a process: it
hands its command line, environment, working directory and standard streams to a fork, and ends as that ends. For the
program, torch is then imported before it begins (as by a ``sitecustomize``), and what it brings is put aside for good
(``gc.freeze()``): looking through a million objects of torch's takes longer than all else. What hangs on the import, on
those objects, on options of Python or on the process itself is tested with a Python of its own.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import select
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

#: run by a Python that imports nothing else: ``-c CLIENT SOCKET …``
_CLIENT = """
import json, os, signal, socket, struct, sys
server = socket.socket(socket.AF_UNIX)
server.connect(sys.argv[1])
ignores = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
said = {"arguments": sys.argv[2:], "environment": dict(os.environ), "folder": os.getcwd(), "ignores Ctrl-C": ignores}
said = json.dumps(said).encode()
socket.send_fds(server, [struct.pack("!Q", len(said))], [0, 1, 2])
server.sendall(said)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, frame: server.sendall(bytes([number])))
status = int(server.recv(16) or -signal.SIGKILL)
if status < 0:
    signal.signal(-status, signal.SIG_DFL) if status != -signal.SIGKILL else None
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@functools.cache
def forks(python: str) -> str:
    """What stands for a Python with torch in the tests of this process: itself, where forks cannot be waited for."""
    if not hasattr(os, "pidfd_open"):
        return python
    folder = tempfile.TemporaryDirectory(prefix="torch-")
    path, client = f"{folder.name}/socket", Path(folder.name, "python")
    words = shlex.join([sys.executable, "-I", "-S", "-c", _CLIENT, path])
    client.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    client.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [python, __file__, path]
    server = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdin is not None and server.stdout is not None

    def end() -> None:
        server.stdin.close()
        server.wait(30)
        folder.cleanup()

    atexit.register(end)
    assert server.stdout.read(1) == b"."
    return str(client)


def _serve(path: str) -> dict[str, Any]:
    """Fork for each client; returns in the forks alone, with what its client said."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    os.write(1, b".")
    while True:
        ready, _, _ = select.select([listener, 0], [], [], 1)
        while _reaped():
            pass
        if 0 in ready:
            os._exit(0)
        if ready:
            client, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                return _started(client)
            client.close()


def _reaped() -> bool:
    try:
        return os.waitpid(-1, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return False


def _started(client: socket.socket) -> dict[str, Any]:
    """Fork what runs for a client, and look after it; returns in that alone."""
    head, streams, _, _ = socket.recv_fds(client, 8, 3)
    (left,) = struct.unpack("!Q", head)
    said = bytearray()
    while len(said) < left:
        said += client.recv(left - len(said))
    program = os.fork()
    if program:
        _look_after(program, client)
    client.close()
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    found: dict[str, Any] = json.loads(said)
    return found


def _look_after(program: int, client: socket.socket) -> None:
    """Pass signals on, and say how the program ended; without a client, it ends."""
    ended = os.pidfd_open(program)
    os.closerange(0, 3)
    while True:
        ready, _, _ = select.select([client, ended], [], [])
        if ended in ready:
            status = os.waitstatus_to_exitcode(os.waitpid(program, 0)[1])
            try:
                client.sendall(str(status).encode())
            finally:
                os._exit(0)
        for number in client.recv(1) or bytes([signal.SIGKILL]):
            _signal(program, number, ended)


def _signal(program: int, number: int, ended: int) -> None:
    """Send a signal to a program and what it has started, as soon as it leads a group of its own; none where it has
    ended before, as its file descriptor tells."""
    while True:
        try:
            os.killpg(program, number)
        except ProcessLookupError:
            if select.select([ended], [], [], 0.001)[0]:
                return
        else:
            return


def _put_aside() -> None:
    """Leave out of later collections what there is now. It is no program's `gc.freeze()`, which memlint takes back."""
    gc.collect()
    gc.freeze()
    own, count = gc.get_freeze_count(), gc.get_freeze_count
    gc.get_freeze_count = lambda: max(0, count() - own)


def _become(said: dict[str, Any], path: list[str]) -> None:
    """Run what a client was given, as Python would."""
    arguments = said["arguments"]
    for number, name in enumerate(("stdin", "stdout", "stderr")):  # (those there are know of what they were before)
        how = {"mode": "w", "buffering": 1, "errors": "backslashreplace"} if number == 2 else {"mode": "rw"[number]}
        stream = open(number, closefd=False, **how)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGINT, signal.SIG_IGN if said["ignores Ctrl-C"] else signal.default_int_handler)
    os.chdir(said["folder"])
    os.environ.clear()
    os.environ.update(said["environment"])
    if arguments[:2] == ["-W", "ignore"]:
        import warnings

        warnings.simplefilter("ignore")
        arguments = arguments[2:]
    more = [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), *path]
    if arguments[0] == "-m":
        sys.argv[:], sys.path[:] = arguments[1:], [str(Path.cwd()), *more]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    inline = arguments[0] == "-c"
    sys.argv[:] = ["-c", *arguments[2:]] if inline else arguments
    text = arguments[1] if inline else Path(arguments[0]).read_text("utf-8")
    name = "<string>" if inline else arguments[0]
    sys.path[:] = ["" if inline else str(Path(name).resolve().parent), *more]
    module = ModuleType("__main__")
    module.__dict__.update(__builtins__=__builtins__, **({} if inline else {"__file__": name}))
    sys.modules["__main__"] = module
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)


if __name__ == "__main__":
    del sys.path[0]
    importlib.import_module("torch._dynamo")  # (each optimizer imports it)
    _put_aside()
    _become(_serve(sys.argv[1]), list(sys.path))
