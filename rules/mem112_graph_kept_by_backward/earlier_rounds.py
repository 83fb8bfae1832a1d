"""What a round takes over from the rounds before: variables, attributes, members of objects and containers."""

from __future__ import annotations

from memlint.sdk.project import Analyser, Summary, captured
from memlint.sdk.syntax import ir, names_bound_by, text, unpacked_targets, walk_statements
from memlint.sdk.values import Backward, Path, Source, V, tensors_within

from .brought_graphs import named
from .member_writers import may_be_written


def from_earlier(analyser: Analyser, summary: Summary, item: Source, last: Backward) -> bool:
    """Whether a source stands for a value of an earlier iteration of a loop around the backward: the previous value of
    a variable, or the members of a container that the iteration does not create."""
    if not isinstance(item, tuple) or isinstance(item, Path):
        return False
    if item[:1] == ("prev",):
        if isinstance(item[2], tuple) and not isinstance(item[2], Path):
            return item[1] in last.loops and not _is_unwritten(analyser, summary, item, last)
        return item[1] in last.loops and not _is_bare(summary, item[1], item[2], last)
    if item[:1] != ("elem",):
        return False
    assert summary.exit is not None
    obj = summary.exit.heap.get(item[1])
    return obj is None or obj.loops[: len(last.loops)] != last.loops


def _is_bare(summary: Summary, loop: Source, name: Source, last: Backward) -> bool:
    """Whether a variable or attribute holds nothing with a graph at the end of an iteration: sampled words, numbers."""
    assert summary.exit is not None
    value = summary.exit.env.get(name) if isinstance(name, str) else summary.exit.sym.get(name)
    statements = list(walk_statements(summary.function.body))
    around = next((one for one in statements if one.at == loop[1] and isinstance(one, ir.For | ir.While)), None)
    if value is None or around is None:
        return False
    inside = {one.at for one in walk_statements(around.body)}
    if any(_binds(one, name) and one.at > around.at and one.at not in inside for one in statements):
        return False  # its final value is another one
    return not _brings(summary, value, last)


def _is_unwritten(analyser: Analyser, summary: Summary, mark: Source, last: Backward) -> bool:
    """Whether a member of an object that the function makes brings no graph, as nothing can have written it since the
    loop began: a value that is written has no mark of the round before."""
    assert summary.exit is not None and isinstance(mark, tuple)
    key, name = mark[2]
    obj = summary.exit.heap.get(key)
    if obj is None or captured(summary, {mark}) or _is_handed_on(summary, mark):
        return False
    if obj.cls is not None and may_be_written(analyser, obj.cls, name, summary.function):
        return False
    members = (*obj.fields.items(), ("", obj.elem))
    values = [value for one, value in members if name in ("", one) and mark in value.src]
    return bool(values) and not any(_brings(summary, value, last) for value in values)


def _is_handed_on(summary: Summary, mark: Source) -> bool:
    """Whether code that cannot be followed may get the object of a member, and with it all members, or a method."""
    assert summary.exit is not None and isinstance(mark, tuple)
    _, loop, (key, _) = mark
    obj = summary.exit.heap[key]
    members = (*obj.fields.items(), ("", obj.elem))
    marks = {mark for name, value in members if (mark := ("prev", loop, (key, name))) in value.src}
    handed = {function for function, _ in summary.handed_on}
    return marks <= summary.escaped | summary.left or (
        obj.cls is not None and any(method.key in handed for method in obj.cls.methods.values())
    )


def _brings(summary: Summary, value: V, last: Backward) -> bool:
    """Whether a value at the exit may bring the graph of an earlier round into the next one, beside what its marks of
    earlier rounds stand for. Arguments that the backward reaches are judged with it (`_is_sure`)."""
    assert summary.exit is not None
    reached = summary.graphs.closure(tensors_within(summary, summary.exit, value).src)
    return any(
        item in summary.graphs.nodes or (item not in last.reached if isinstance(item, Path) else item[0] != "prev")
        for item in reached
    )


def _binds(statement: ir.Stmt, name: Source) -> bool:
    """Whether a statement binds a variable or an attribute."""
    if isinstance(name, str):
        return name in names_bound_by(statement)
    place = named(name) if isinstance(name, Path) else ""
    return any(text(part, 200) == place for part in unpacked_targets(statement))
