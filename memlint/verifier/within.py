"""`memlint.verify`: measures the block of a ``with`` statement in this process."""

from __future__ import annotations

import ast
import builtins
import html
import io
import linecache
import os
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import msgspec

from memlint.engine.options import Options
from memlint.engine.rules.selection import Overrides
from memlint.finding import Finding
from memlint.measure.probing import instrument, probes
from memlint.verifier.block import Block, BlockError, Skipped, with_code_of
from memlint.verifier.here import WANTED, verify_here
from memlint.verifier.model import BAD, LoopBill, Report, Unattributed, Verified
from memlint.verifier.probing.planning import Target
from memlint.verifier.probing.targets import loops_to_watch
from memlint.verifier.run import Program, read

_DEVICES = ("auto", "cuda", "cpu")


class Verification:
    """The results of measuring a block; empty until it has ended. ``report`` is all of it."""

    def __init__(self) -> None:
        self.report: Report | None = None
        self._instead = "not measured yet: its block has not ended"

    @property
    def verdicts(self) -> tuple[Verified, ...]:
        """Each finding that the block reached, or that is in it, with its verdict."""
        return () if self.report is None else self.report.verified

    @property
    def confirmed(self) -> tuple[Verified, ...]:
        """The findings that are confirmed to waste memory."""
        return tuple(one for one in self.verdicts if one.verdict.verdict in BAD)

    @property
    def unattributed(self) -> tuple[Unattributed, ...]:
        """Growth that no finding explains."""
        return () if self.report is None else self.report.unattributed

    @property
    def loops(self) -> tuple[LoopBill, ...]:
        return () if self.report is None else self.report.loops

    @property
    def bytes_per_iteration(self) -> dict[str, int]:
        """The memory that an iteration leaves on each device, for the loop that leaves most there."""
        found: dict[str, int] = {}
        for loop in self.loops:
            for device, count in (loop.bytes_per_iteration or {}).items():
                found[device] = max(count, found.get(device, 0))
        return found

    @property
    def peak(self) -> dict[str, int]:
        """The most bytes that were held on each device."""
        return {} if self.report is None else self.report.peak

    def __repr__(self) -> str:
        if self.report is None:
            return f"<memlint.Verification: {self._instead}>"
        from memlint.report.verify_text import write

        out = io.StringIO()
        write(self.report, out)
        return "\n".join(row.rstrip() for row in out.getvalue().splitlines())

    def _repr_html_(self) -> str:
        if self.report is None:
            return f"<p>memlint: {html.escape(self._instead)}</p>"
        from memlint.report.verify_text import an_iteration, claim, summary

        rows = [["site", "claim", "verdict", "an iteration"]]
        for one in self.verdicts:
            place = f"{one.finding.path}:{one.finding.line}"
            rows.append([place, claim(one.finding), one.verdict.verdict, an_iteration(one.verdict)])
        table = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        return (
            f"<p><b>memlint: {html.escape(summary(self.report))}</b></p>"
            + (f"<table>{table}</table>" if self.verdicts else "")
            + f"<details><summary>all of it</summary><pre>{html.escape(repr(self))}</pre></details>"
        )


class verify:  # noqa: N801 - used as a function is
    """``with memlint.verify() as report:`` runs its block, measures what is found in it and in what it calls, and fills
    the report at its end. ``select`` and ``ignore``: rules, as of `lint`. ``device``: auto, cuda or cpu. ``warmup`` and
    ``window``: iterations before judging, and to judge.

    Raises RuntimeError where the block cannot be measured, before it runs, and `memlint.config.ConfigError` for wrong
    rules. What the block itself raises is raised at its end, when the report is there."""

    def __init__(
        self,
        *,
        select: Iterable[str] | None = None,
        ignore: Iterable[str] = (),
        device: str = "auto",
        warmup: int = 3,
        window: int = 12,
    ) -> None:
        if device not in _DEVICES:
            raise ValueError(f"memlint.verify: device={device!r} is none of {', '.join(_DEVICES)}")
        for name, count, least in (("warmup", warmup, 0), ("window", window, 4)):
            if not isinstance(count, int) or isinstance(count, bool) or count < least:
                raise ValueError(f"memlint.verify: {name}={count!r} is not a whole number of at least {least}")
        self._select = None if select is None else _words(select)
        self._ignore = _words(ignore)
        self._wanted = msgspec.structs.replace(WANTED, device=device, warmup=warmup, window=window)
        self._error: BaseException | None = None
        self._put_back: Any = None

    def __enter__(self) -> Verification:
        said = Verification()
        if _is_measured_from_outside():
            said._instead = "`memlint verify` measures this program, and reports on the block with the rest"
            return said
        if probes.is_measuring():
            raise RuntimeError("memlint.verify: a block is being measured already, and they cannot be nested")
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("memlint.verify: only the main thread can be measured, and this is another one")
        _import_torch(self._wanted.device)
        frame = sys._getframe(1)
        try:
            block = Block(_text(frame), frame)
            program, findings = self._read(frame)
        except BlockError as error:
            raise BlockError(f"memlint.verify: {error}") from None
        said.report = self._measure(program, findings, block, said)
        self._put_back = block.skip()
        return said

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool | None:
        if self._put_back is None:
            return None
        self._put_back()
        self._put_back = None
        raised, self._error = self._error, None
        if raised is None:
            return isinstance(error, Skipped)
        context = raised.__context__
        try:
            raise raised
        finally:
            raised.__context__ = context
            del raised

    def _measure(self, program: Program, findings: list[Finding], block: Block, said: Verification) -> Report:
        own = _display(program, block.frame)

        def run(trees: Mapping[str, ast.Module]) -> bool:
            by_path = {str(program.paths[name]): tree for name, tree in trees.items()}
            by_path |= {os.path.realpath(path): tree for path, tree in by_path.items()}
            with with_code_of(by_path):
                try:
                    block.run(trees[own], said)
                except BaseException as error:  # raised again at the end of the block
                    self._error = error
            return self._error is None

        flagged: dict[str, list[int]] = {own: [*block.loops]}
        for one in findings:
            flagged.setdefault(one.path, []).append(one.line)
        loops = loops_to_watch(program.texts, flagged)
        report = verify_here(program, findings, run, self._wanted, loops)
        return msgspec.structs.replace(
            report,
            verified=tuple(
                one
                for one in report.verified
                if one.verdict.verdict != "not-reached" or (one.finding.path == own and one.finding.line in block.lines)
            ),
            loops=tuple(loop for loop in report.loops if loop.iterations),
        )

    def _read(self, frame: FrameType) -> tuple[Program, list[Finding]]:
        """The linted files: the file of a frame and its imports, or the cells of its notebook."""
        name = frame.f_code.co_filename
        shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
        if shell is not None and (not Path(name).is_file() or _is_cell(name)):
            from memlint.plugins.ipython import session_program

            ignore = ",".join(self._ignore) or None
            program, found = session_program(shell, None if self._select is None else ",".join(self._select), ignore)
        else:
            path = Path(name).absolute()
            overrides = Overrides(select=self._select, ignore=self._ignore)
            program = read(Target(str(path), False, path, ()), Options(cwd=Path.cwd(), overrides=overrides))
            found = [*program.result.findings]
        return program, [one for one in found if one.suppressed is None]


def _text(frame: FrameType) -> str:
    name = frame.f_code.co_filename
    text = "".join(linecache.getlines(name, frame.f_globals))
    if not text:
        raise BlockError(f"the source of its block is not known ({name}): put it into a file or a notebook")
    return text


def _display(program: Program, frame: FrameType) -> str:
    name = frame.f_code.co_filename
    for display, path in program.paths.items():
        if str(path) == name or os.path.realpath(path) == os.path.realpath(name):
            return display
    raise BlockError(f"the source of its block cannot be read ({name})")


def _is_cell(name: str) -> bool:
    return "ipykernel_" in name or "ipython-input" in name


def _import_torch(device: str) -> None:
    try:
        torch = __import__("torch")
    except ImportError as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == "torch"
        why = "torch is not installed here" if missing else f"torch cannot be imported: {error}"
        raise RuntimeError(f"memlint.verify: {why}, and only what it holds can be measured") from None
    if device == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("memlint.verify: device='cuda', and torch sees no CUDA device here")


def _is_measured_from_outside() -> bool:
    """Whether `memlint verify` runs this program: its probes are of the same code under another name."""
    probe = getattr(builtins, instrument.ENTER, None)
    return probe is not None and probe.__module__ != "memlint.measure.probing.probes"


def _words(words: Iterable[str]) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)
