"""What callers, classes and files say of a module: its mode, and whether it is frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.frame import CallRecord, Frame
from memlint.flow.modes import look_up
from memlint.flow.state import OFF
from memlint.flow.values import DATA, NONE, UNKNOWN, Path, V

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


#: how many calls away the caller is that says how a helper is used
MAX_CALLERS_UP = 4


def told(analyser: Analyser, frame: Frame, module: V, tag: str) -> bool | None:
    """What the function's callers, its class's ``__init__`` or its file say of a module's mode (``tag`` ""), or
    of whether it is frozen: None where they do not say, or do not agree."""
    return _told_of(analyser, frame, sorted(module.syms), tag, 0)


def _told_of(analyser: Analyser, frame: Frame, paths: list[Path], tag: str, depth: int) -> bool | None:
    """What is told so many calls up. (Kept: the ways between functions that call one another are without number.)"""
    kept = analyser.facts.told
    key = (frame, tuple(paths), tag, depth)
    if key not in kept:
        kept[key] = _ask(analyser, frame, paths, tag, depth)
    return kept[key]


def _ask(analyser: Analyser, frame: Frame, paths: list[Path], tag: str, depth: int) -> bool | None:
    answers: set[bool | None] = set()
    for caller, record in analyser.facts.calls_of(frame.function) if depth < MAX_CALLERS_UP else ():
        if caller is not frame:
            answer = _told_at(analyser, caller, record, paths, tag, depth)
            silent = answer is None and not tag and record.grad != OFF
            if silent and _gives(frame) and _may_train(analyser, caller, depth):
                return None
            answers.add(answer)
    # a caller that says nothing does not contradict one that does: one that is given the output may train by it, and
    # where flow can follow the output, its backward is asked for apart
    answers.discard(None)
    if answers:
        return answers.pop() if len(answers) == 1 else None
    for path in paths:
        told = _told_by_class(analyser, frame, path, tag)
        if told is None and path.root.startswith("g:"):
            told = _told_by_file(analyser, path, tag)
        if told is not None:
            return told
    return None


def _gives(frame: Frame) -> bool:
    """Whether the function returns what may hold a model's output."""
    return frame.result is not None and not frame.result.is_only(NONE | DATA)


def _may_train(analyser: Analyser, caller: Frame, depth: int) -> bool:
    """Whether a caller, or one that it gives on what it is given, runs a backward."""
    if caller.backwards or caller.notes.blind_backward or caller.notes.blind_calls:
        return True
    if depth >= MAX_CALLERS_UP or not _gives(caller):
        return False
    kept = analyser.facts.may_train
    if (caller, depth) not in kept:
        kept[caller, depth] = any(
            record.grad != OFF and _may_train(analyser, outer, depth + 1)
            for outer, record in analyser.facts.calls_of(caller.function)
            if outer is not caller
        )
    return kept[caller, depth]


def _told_at(
    analyser: Analyser, caller: Frame, record: CallRecord, paths: list[Path], tag: str, depth: int
) -> bool | None:
    outer: list[Path] = []
    for path in paths:
        kind, name = path.root.split(":", 1)
        given = record.args.get(name) if kind == "p" else None
        place = "".join(step if step.startswith(".") else "" for step in path.steps)
        if given is None and kind in ("c", "g"):
            name = name.rsplit(":", 1)[-1]
            told = look_up(record.modes, V(UNKNOWN), name + place, tag)
            if told is not None:
                return told
            own = caller.exit.env.get(name) if caller.exit is not None else None
            given = (
                own if own is not None and (own.syms or own.store) else V(UNKNOWN, syms=frozenset((Path(path.root),)))
            )
        if given is None:
            continue
        moved = given.but(syms=frozenset(Path(base.root, base.steps + path.steps) for base in given.syms))
        told = look_up(record.modes, moved, "", tag)
        if told is not None:
            return told
        outer += [item for item in sorted(moved.syms) if isinstance(item, Path)]
    return _told_of(analyser, caller, outer, tag, depth + 1) if outer else None


def _told_by_class(analyser: Analyser, frame: Frame, path: Path, tag: str) -> bool | None:
    """``self.net.eval()`` in ``__init__``, and no method that puts it back."""
    function = frame.function
    if function.cls is None or not function.params or path.root != f"p:{function.params[0].name}" or not path.steps:
        return None
    if not tag and analyser.program.is_module(function.cls):
        return None  # who trains or evaluates the whole sets the mode of its parts
    return analyser.facts.made_mode(function.cls, path.steps, tag)


def _told_by_file(analyser: Analyser, path: Path, tag: str) -> bool | None:
    """``model.eval()`` among a module's own statements, for a function that nobody is seen to call."""
    key, name = path.root[2:].rsplit(":", 1)
    summary = analyser.summary(analyser.program.module(key).main)
    if summary is None or summary.exit is None:
        return None
    value = summary.exit.env.get(name, V(UNKNOWN))
    return look_up(summary.exit.modes, value, name + "".join(path.steps), tag)
