"""Data sets that are on the accelerator as a whole from their creation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from memlint.sdk import Confidence, lazy_pattern
from memlint.sdk.project import Analyser, Class, Names, Summary, argument, in_tests
from memlint.sdk.syntax import (
    binds,
    calls,
    expressions,
    ir,
    last_name,
    mentions,
    parts_of,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import ACCELERATOR, CONTAINER, NONE, SAMPLE, TENSORS, UNKNOWN, Path, V

from .rule import DeviceData

#: classes whose instances are read sample by sample, by the qualified names of their bases
_DATA_SET = lazy_pattern(r"torch\.utils\.data\.(dataset\.)?Dataset|torchvision\.datasets\.(\w+\.)*[A-Z]\w*")
#: names of data with a few bytes per sample
_SMALL = lazy_pattern(
    r"label|target|length|weight|index|indices|offset"
    r"|(^|_)(ys?|classe?s?|lens?|idx|ids?|keys?|means?|stds?|scores?|rewards?|scales?|prices?|users?|items?|times?|ts?"
    r"|stamps?|lr|bounds?|counts?|num)($|_)"
)
#: names of data that is no data set, or is there by choice
_OTHER = lazy_pattern(
    r"buffer|replay|rollout|memory|traject|graph|adj|edge|latent|param|cache|preload|pre_?fetch|gpu|cuda|on_?device"
)
#: functions that create a table, a grid or noise, with a few numbers per sample
_NUMBERS = lazy_pattern(
    r"read_(csv|excel|table|sql|json)|DataFrame|\bdf\b|\.values\b|linspace|arange|meshgrid|logspace|sobol|lhs\("
    r"|\brandn?\(|rand_like|randn_like|randint|make_(moons|blobs|circles|regression|classification)|genfromtxt|loadtxt"
)
#: functions that read a data set in a script
_READS = lazy_pattern(r"load|read|open|from_numpy|Dataset|datasets\.|imread|h5py|File\(|fetch|get_data|prepare")
#: up to this number of elements, the device does not matter
_FEW = 1 << 22
#: classes that make a data set of tensors
CALLS = frozenset({"torch.utils.data.TensorDataset", "torch.utils.data.dataset.TensorDataset"})


def detect(analyser: Analyser, summary: Summary) -> Iterator[DeviceData]:
    """The data set that one function puts on the device: in an attribute of its class, or in a script for a loader."""
    if summary.exit is None or in_tests(summary.module.key):
        return
    if summary.function.takes_self:
        yield from _kept(analyser, summary)
    yield from _given_to_loaders(analyser, summary)


# -------------------------------------------------------------------------------------- classes


def _kept(analyser: Analyser, summary: Summary) -> Iterator[DeviceData]:
    """The first attribute with samples on the device that an ``__init__``, or a method that it calls, sets."""
    cls = summary.function.cls
    if (
        cls is None
        or not summary.function.params
        or not is_data_set(analyser, cls)
        or not runs_at_start(analyser, summary, cls)
    ):
        return
    if _OTHER.search(_snake(cls.node.name)):
        return
    own = summary.function.params[0].name
    read = _read_by_index(analyser, cls)
    for statement in walk_statements(summary.function.body, into_definitions=False):
        for name in _set(statement, own):
            if name not in read or _SMALL.search(name.lower()) or _OTHER.search(name.lower()):
                continue
            certainty = _on_device(summary, own, name)
            if certainty is None or not _is_moved(summary, statement):
                continue
            yield DeviceData(
                site=summary.site(statement.at),
                function=summary.function.qual,
                certainty="low" if _asked_for(summary, statement) else certainty,
                place=f"{own}.{name}",
                owner=cls.node.name,
            )
            return


def is_data_set(analyser: Analyser, cls: Class) -> bool:
    """Whether a class is a data set of torch that is read by index."""
    outside = analyser.program.ancestors(cls)[1]
    return any(_DATA_SET.fullmatch(name) for name in outside) and not any("geometric" in name for name in outside)


def runs_at_start(analyser: Analyser, summary: Summary, cls: Class) -> bool:
    """Whether a method runs in the construction of an instance."""
    if summary.function.name == "__init__":
        return True
    init = analyser.program.method(cls, "__init__")
    if init is None or not init.params:
        return False
    called = f"{init.params[0].name}.{summary.function.name}"
    return any(text(call.func, 200) == called for call in calls(init.body))


def _read_by_index(analyser: Analyser, cls: Class) -> frozenset[str]:
    """The attributes from which ``__getitem__`` takes a sample."""
    method = analyser.program.method(cls, "__getitem__")
    if method is None or len(method.params) < 2:
        return frozenset()
    own, derived = method.params[0].name, {method.params[1].name}
    found: set[str] = set()
    for statement in walk_statements(method.body, into_definitions=False):
        for part in parts_of(statement):
            if not isinstance(part, ir.Subscript) or not isinstance(part.value, ir.Attr):
                continue
            if text(part.value.value) == own and any(mentions(part.index, name) for name in derived):
                found.add(part.value.name)
        if isinstance(statement, ir.Assign) and any(mentions(statement.value, name) for name in derived):
            derived.update(target.id for target in statement.targets if isinstance(target, ir.Name))
    return frozenset(found)


def _set(statement: ir.Stmt, own: str) -> Iterator[str]:
    """The attributes that a statement sets, or appends to."""
    if isinstance(statement, ir.Assign):
        whole = [statement.value.elements] if isinstance(statement.value, ir.Display) else []
        if whole and not whole[0]:
            return  # the appended values tell
        for target in statement.targets:
            for part in target.elements if isinstance(target, ir.Display) else (target,):
                if isinstance(part, ir.Attr) and text(part.value) == own:
                    yield part.name
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    if isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and call.func.name in ("append", "extend"):
        place = call.func.value
        if isinstance(place, ir.Attr) and text(place.value) == own:
            yield place.name


def _on_device(summary: Summary, own: str, name: str) -> Confidence | None:
    """The confidence that an attribute holds tensors on the accelerator at the end of the function; None if it may
    not."""
    assert summary.exit is not None
    value = summary.exit.sym.get(Path(f"p:{own}", (f".{name}",)))
    if value is None:
        return None
    if value.is_only(CONTAINER):
        members = [summary.exit.heap[key] for key in value.objs if key in summary.exit.heap]
        inner = [summary.exit.heap[key] for one in members for key in one.elem.objs if key in summary.exit.heap]
        if not members:
            return None
        found = [_certainty(one.elem) for one in members if one.elem.kinds]
        found += [_certainty(field) for one in inner for key, field in one.fields.items() if not _SMALL.search(key)]
        return next((one for one in found if one is not None), None)
    return _certainty(value)


def _certainty(value: V) -> Confidence | None:
    if value.device != ACCELERATOR or value.size == SAMPLE or not value.kinds & (TENSORS | UNKNOWN):
        return None
    return "high" if value.is_only(TENSORS | NONE) else "medium"


def _asked_for(summary: Summary, statement: ir.Stmt) -> bool:
    """Whether the data is moved to a device that is the host by default, or only if a flag says so."""
    for param in summary.function.params:
        default = text(param.default) if param.default is not None else ""
        if (
            "cpu" in default
            and "cuda" not in default
            and any(mentions(one, param.name) for one in expressions(statement))
        ):
            return True
    for other in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(other, ir.If) and _OTHER.search(text(other.test, 200).lower()):
            inside = walk_statements((*other.body, *other.orelse), into_definitions=False)
            if any(one is statement for one in inside) and "is_available" not in text(other.test, 200):
                return True
    return False


# -------------------------------------------------------------------------------------- scripts


def _given_to_loaders(analyser: Analyser, summary: Summary) -> Iterator[DeviceData]:
    """The first ``TensorDataset`` of tensors on the device that a function creates for a loader."""
    names: Names | None = None
    for _, call in sorted(summary.notes.outside.items()):
        if call.name not in CALLS or call.loop is not None or not call.expr.args:
            continue
        samples = call.expr.args[0]
        if _certainty(call.given) != "high" or _OTHER.search(_words(samples)):
            continue
        names = names or Names(analyser, summary)
        source = _source(summary, samples)
        if not _moves(source) or _NUMBERS.search(source) or not _READS.search(source):
            continue
        if not _is_loaded_from(summary, names, call.expr) or _SMALL.search(_words(samples)):
            continue
        yield DeviceData(
            site=summary.site(call.expr.at),
            function=summary.function.qual,
            certainty="medium",
            place=text(samples),
            owner="",
        )
        return


def _is_loaded_from(summary: Summary, names: Names, made: ir.Call) -> bool:
    """Whether the function creates a ``DataLoader`` from it."""
    for loader in summary.notes.loaders.values():
        given = argument(loader, 0, "dataset")
        if given is not None and any(part is made for part in walk_expression(given)):
            return True
    bound = (names.value(name) for name in names.fed)
    return any(one is not None and one[0] is made for one in bound)


def _is_moved(summary: Summary, statement: ir.Stmt) -> bool:
    """Whether this statement moves its tensors there, and they are not known to be small."""
    source = " ".join(_source(summary, expr) for expr in expressions(statement))
    if not _moves(source) or _NUMBERS.search(source):
        return False
    return not any(0 <= number < _FEW for at, (_, _, number) in summary.notes.made.items() if _holds(statement, at))


def _holds(statement: ir.Stmt, at: int) -> bool:
    return any(part.at == at for part in parts_of(statement))


def _source(summary: Summary, expr: ir.Expr) -> str:
    """The text of an expression, of its calls, and of the earlier values of its names."""
    found: list[str] = []
    todo, seen = [expr], {expr.at}
    while todo:
        whole = todo.pop()
        found.append(text(whole, 400))
        for part in walk_expression(whole):
            if isinstance(part, ir.Call):
                found.append(f"{text(part.func, 200)}(" + " ".join(f"{word.name}=" for word in part.keywords))
            if isinstance(part, ir.Name):
                for value in _bound_to(summary, part.id, whole.at):
                    if value.at not in seen:
                        seen.add(value.at)
                        todo.append(value)
    return " ".join(found)


def _bound_to(summary: Summary, name: str, before: int) -> Iterator[ir.Expr]:
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and statement.value.at < before and binds(statement, name):
            yield statement.value


def _moves(source: str) -> bool:
    return ".to(" in source or ".cuda(" in source or "device=" in source


def _words(expr: ir.Expr) -> str:
    """The names in an expression."""
    return " ".join(last_name(part) for part in walk_expression(expr) if isinstance(part, ir.Name)).lower()


def _snake(name: str) -> str:
    """``GpuRows`` as ``gpu_rows``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
