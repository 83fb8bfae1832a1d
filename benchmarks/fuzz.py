#!/usr/bin/env python3
"""Programs that nobody would write, by hypothesis: ``python benchmarks/fuzz.py [--programs 20000] [--seed 0]``.

Real files (``fixtures/`` and memlint's own) are cut, spliced, repeated, nested and strewn with odd tokens and bytes;
other programs are generated. Each is linted in a process whose strings hash by seed 1 and in one by seed 2, twice in
each, and what can be fixed is fixed in memory. A program that gives an exception, takes longer than ``--limit``
seconds, or differs between two runs is shrunk and kept in ``tests/fuzz/corpus/``, whose files are tests. Exits with 1
where there was one.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import tokenize
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

import memlint

HERE = Path(__file__).resolve().parent
CORPUS = HERE.parent / "tests" / "fuzz" / "corpus"
#: how the reasons of failures begin that are no mistakes: the bytes of the file are no text
TRUE_OF_THE_FILE = ("not valid ", "cannot be decoded: ")
#: what is put between tokens, lines and bytes
TOKENS = (
    "loss", "model(x)", "total", "+=", "=", ":=", "lambda:", "await", "yield", "*", "**", "->", "...", "@", "(", ")",
    "[", "]", "{", "}", ",", ":", ";", "\\\n", "\n", "\n\n", "    ", "\t", "\f", "\r", "if", "else", "elif", "for",
    "in", "while", "with", "try:", "except:", "finally:", "def f():", "class A:", "return", "break", "continue", "del",
    "global x", "nonlocal x", "import torch", "from . import *", "from __future__ import annotations", "async",
    "match x:", "case _:", "type", "'", '"', '"""', "f'{x!r:{y}}'", "b'b'", '"a" b"b"', "rb''", "0x", "1_0", "1e999",
    "1j", "0777", "9" * 5000, "\u00e9", "\u540d", "\U0001f525", "\u202e", "\ufeff", "\0", "# memlint: ignore[MEM101]",
    "# noqa: MEM102", "# type: ignore", "print x", "torch.no_grad()", ".backward()", ".detach()", ".item()", "self.x",
    "super()", "__class__",
)  # fmt: skip
#: what a line may be put into, by how its body is indented
AROUND = (
    "if x:",
    "for x in y:",
    "while x:",
    "with torch.no_grad():",
    "def f(x):",
    "class A(nn.Module):",
    "try:",
    "async def f():",
)


@functools.cache
def real_files() -> tuple[str, ...]:
    """Texts of programs that people wrote, the same ones everywhere."""
    paths = [*(HERE.parent / "fixtures").rglob("*.py"), *(HERE / "programs").glob("*.py")]
    paths += (HERE.parent / "memlint").glob("*/*.py")
    return tuple(path.read_text("utf-8") for path in sorted(paths) if path.stat().st_size < 20_000)


def _lines(draw: Callable[[Any], Any], text: str) -> str:
    """One change of whole lines."""
    lines = text.split("\n")
    at = draw(st.integers(0, len(lines) - 1))
    end = min(at + draw(st.integers(1, 12)), len(lines))
    part = lines[at:end]
    change = draw(st.integers(0, 6))
    if change == 0:
        lines[at:end] = []
    elif change == 1:
        lines[end:end] = part * draw(st.integers(1, 8))
    elif change == 2:
        other = draw(st.sampled_from(real_files())).split("\n")
        start = draw(st.integers(0, len(other) - 1))
        lines[at:end] = other[start : start + draw(st.integers(1, 20))]
    elif change == 3:
        margin = part[0][: len(part[0]) - len(part[0].lstrip())]
        lines[at:end] = [margin + draw(st.sampled_from(AROUND)), *("    " + line for line in part)]
    elif change == 4:
        lines[at:end] = [line[draw(st.integers(1, 4)) :] for line in part]
    elif change == 5:
        lines[at:end] = part[::-1]
    else:
        lines = lines[:end]
    return "\n".join(lines)


def _tokens(draw: Callable[[Any], Any], text: str) -> str:
    """One change of a token: removed, repeated, replaced, or something put before it."""
    try:
        found = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return _characters(draw, text)
    starts = [0]
    for line in io.StringIO(text):
        starts.append(starts[-1] + len(line))
    token = found[draw(st.integers(0, len(found) - 1))]
    start, end = (
        min(starts[min(row, len(starts)) - 1] + column, len(text)) for row, column in (token.start, token.end)
    )
    new = draw(st.sampled_from(TOKENS) | st.sampled_from(found).map(lambda one: one.string))
    what = draw(
        st.sampled_from(
            (f"{new} {token.string}", f"{token.string} {new}", new, "", token.string * 2, f"({token.string})")
        )
    )
    return text[:start] + what + text[end:]


def _characters(draw: Callable[[Any], Any], text: str) -> str:
    """One change of characters, wherever they stand."""
    at = draw(st.integers(0, len(text)))
    end = min(at + draw(st.integers(0, 30)), len(text))
    return text[:at] + draw(st.sampled_from(TOKENS) | st.text(max_size=5)) + text[end:]


@st.composite
def mutated(draw: Callable[[Any], Any]) -> bytes:
    """A real file after a few changes."""
    text = draw(st.sampled_from(real_files()))
    for _ in range(draw(st.integers(1, 6))):
        text = draw(st.sampled_from((_lines, _tokens, _tokens, _characters)))(draw, text)[:60_000]
    newline = draw(st.sampled_from(("\n", "\n", "\n", "\r\n", "\r")))
    raw: bytes = text.replace("\n", newline).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(raw)))
        raw = raw[:at] + draw(st.binary(max_size=4)) + raw[at:]
    return raw


_NAMES = st.sampled_from(("x", "loss", "losses", "model", "total", "self", "torch", "loader", "y"))
_ATOMS = _NAMES | st.sampled_from(
    ("1", "None", "[]", "{}", "model(x)", "loss.item()", "torch.zeros(8)", "x.cuda()", "f'{x}'")
)
_EXPRESSIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("({0[0]} + {0[1]})".format),
        st.tuples(inner, inner).map("{0[0]}({0[1]})".format),
        st.tuples(inner, _NAMES).map("({0[0]}).{0[1]}".format),
        st.tuples(inner, inner).map("[{0[0]} for x in {0[1]}]".format),
        st.tuples(inner, inner).map("(lambda x={0[0]}: {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]} if x else {0[1]})".format),
        st.tuples(inner, inner).map("({0[0]})[{0[1]}:]".format),
        inner.map("(y := {})".format),
        inner.map("[*{0}, 1]".format),
    ),
    max_leaves=10,
)
_SIMPLE = st.one_of(
    st.tuples(_NAMES, _EXPRESSIONS).map("{0[0]} = {0[1]}".format),
    st.tuples(_NAMES, _EXPRESSIONS).map("{0[0]} += {0[1]}".format),
    st.tuples(_NAMES, _EXPRESSIONS).map("{0[0]}.append({0[1]})".format),
    st.tuples(_NAMES, _EXPRESSIONS).map("self.{0[0]} = {0[1]}".format),
    _EXPRESSIONS.map("return {}".format),
    _EXPRESSIONS,
    st.sampled_from(
        (
            "loss.backward()",
            "optimizer.step()",
            "model.eval()",
            "break",
            "global total",
            "del x",
            "raise",
            "import torch",
        )
    ),
)


def _around(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    heads = st.sampled_from(
        (*AROUND, "for x, y in loader:", "def train(model, loader):", "def forward(self, x):", "class Net(nn.Module):")
    )
    bodies = st.lists(inner, min_size=1, max_size=4).map("\n".join)
    return st.tuples(heads, bodies).map(
        lambda pair: pair[0] + "\n" + "\n".join(f"    {line}" for line in pair[1].split("\n"))
    )


def generated() -> st.SearchStrategy[bytes]:
    """Programs of training code without any sense."""
    statements = st.recursive(_SIMPLE, _around, max_leaves=25)
    texts = st.lists(_around(statements) | statements, max_size=6).map("\n".join)
    return texts.map(lambda text: f"import torch\nfrom torch import nn\n{text}\n".encode())


PROGRAMS = mutated() | mutated() | generated()


class WrongError(AssertionError):
    """What is wrong with a program."""


def check(folder: Path, raw: bytes, limit: float = 60) -> str:
    """What tells that two processes found the same of a program. Raises WrongError."""
    (folder / "main.py").write_bytes(raw)
    with _limited(limit):
        first, second = (_lint(folder) for _ in range(2))
        if first != second:
            raise WrongError("two runs differ")
        if any(one["fix"] for one in json.loads(first)["findings"]):
            fixed = memlint.apply_fixes([folder], unsafe=True, write=False, isolated=True, preview=True)
            _no_failures(fixed.result)
    return hashlib.sha256(first).hexdigest()[:16]


def _lint(folder: Path) -> bytes:
    result = memlint.lint([folder], isolated=True, preview=True, min_confidence="low")
    _no_failures(result)
    said = {"findings": result.findings, "failures": result.failures, "remarks": result.remarks}
    return msgspec.json.encode(said).replace(str(folder).encode(), b"")


def _no_failures(result: memlint.Result) -> None:
    wrong = [failure.reason for failure in result.failures if not failure.reason.startswith(TRUE_OF_THE_FILE)]
    if wrong:
        raise WrongError("; ".join(wrong))


class _limited:  # noqa: N801
    """Raises WrongError in what takes longer than ``seconds``, where the system can tell."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        if hasattr(signal, "setitimer"):
            self._before = signal.signal(signal.SIGALRM, self._late)
            signal.setitimer(signal.ITIMER_REAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _late(self, number: int, frame: FrameType | None) -> None:
        raise WrongError(f"it takes longer than {self._seconds:g} seconds")


def _work(programs: int, number: int, limit: float) -> int:
    """Check programs, and say of each what it is and what was found in it."""
    wrong: dict[str, bytes | str] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "pyproject.toml").touch()

        @seed(number)
        @settings(max_examples=programs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
        @given(PROGRAMS)
        def run(raw: bytes) -> None:
            try:
                said = check(folder, raw, limit)
            except Exception as error:
                wrong.update(raw=raw, reason=f"{type(error).__name__}: {error}")
                raise
            print(json.dumps([hashlib.sha256(raw).hexdigest(), said]), flush=True)

        try:
            run()
        except Exception as error:
            if not wrong:
                raise
            print(
                json.dumps(
                    {"reason": wrong["reason"], "raw": wrong["raw"].decode("latin-1"), "error": str(error)[:500]}
                )
            )  # type: ignore[union-attr]
            sys.stdout.flush()
            os._exit(1)  # what hangs goes on in a thread
    return 0


def _said(programs: int, number: int, limit: float, hashing: int) -> Iterator[Any]:
    command = [
        sys.executable,
        __file__,
        "--work",
        "--programs",
        str(programs),
        "--seed",
        str(number),
        "--limit",
        str(limit),
    ]
    environment = {**os.environ, "PYTHONHASHSEED": str(hashing)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            yield json.loads(line)
    if worker.returncode not in (0, 1):
        yield {"reason": f"the process ended with {worker.returncode}", "raw": "", "error": ""}


def keep(raw: bytes) -> Path:
    """Add a program to those that are tests."""
    CORPUS.mkdir(parents=True, exist_ok=True)
    path = CORPUS / f"{hashlib.sha256(raw).hexdigest()[:12]}.txt"
    path.write_bytes(raw)
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--programs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=60, help="seconds a program may take")
    parser.add_argument("--chunk", type=int, default=500, help="programs a process")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    parsed = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if parsed.work:
        return _work(parsed.programs, parsed.seed, parsed.limit)
    started, done, wrong = time.perf_counter(), 0, 0
    for number in range(-(-parsed.programs // parsed.chunk)):
        found: list[dict[str, str]] = [{}, {}]
        for hashing in (1, 2):
            for row in _said(parsed.chunk, parsed.seed * 1_000_000 + number, parsed.limit, hashing):
                if isinstance(row, dict):
                    wrong += 1
                    where = keep(row["raw"].encode("latin-1")) if row["raw"] else "nothing"
                    print(f"WRONG: {row['reason']} ({where})", flush=True)
                else:
                    found[hashing - 1][row[0]] = row[1]
        both = found[0].keys() & found[1].keys()
        differ = [one for one in both if found[0][one] != found[1][one]]
        wrong += len(differ)
        done += len(both)
        if differ:
            print(
                f"WRONG: {len(differ)} programs of chunk {number} differ by the seed of hashes: {differ[:3]}",
                flush=True,
            )
        print(f"{done} programs, {wrong} wrong, {time.perf_counter() - started:.0f} s", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
