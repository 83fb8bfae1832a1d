"""Data sets of many small Python objects that the workers of a DataLoader read.

Reading an object writes its reference count, so that the pages which a forked worker shared with its parent become its
own, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from memlint.finding import Confidence
from memlint.flow.bound_names import Names, argument
from memlint.flow.frame import Frame
from memlint.flow.kept import kept
from memlint.flow.practice_events import WorkerCopies
from memlint.flow.practices.datasets import is_data_set, runs_at_start
from memlint.flow.practices.outside import LOADERS, PARTS, OutsideCall
from memlint.flow.practices.records import Content, Contents, Places
from memlint.flow.practices.sample_reads import Taken, read_by_sample
from memlint.flow.program import Class, Function, Module, in_tests
from memlint.flow.syntax import binds, calls, expressions, last_name, text, walk_expression, walk_statements
from memlint.flow.values import INSTANCE, V, ordered
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: an index of annotations, of which there are hundreds of thousands in a file
_COCO = frozenset({"pycocotools.coco.COCO", "lvis.LVIS", "lvis.lvis.LVIS"})
_CORES = frozenset(
    {"os.cpu_count", "multiprocessing.cpu_count", "torch.multiprocessing.cpu_count", "os.process_cpu_count"}
)
#: what must be taken of a sample's entry to show that it has several parts
_NEEDS: Mapping[Content, Taken] = {"records": "entry", "splits": "entry", "parsed": "field"}
_OPTION = lazy_pattern(r"add_argument$|^option$|add_option$")


def events(analyser: Analyser, frame: Frame) -> Iterator[WorkerCopies]:
    """The first attribute of many small objects that a method fills when an instance is made."""
    cls = frame.function.cls
    if cls is None or not frame.function.takes_self or not frame.function.params or in_tests(frame.module.key):
        return
    if not is_data_set(analyser, cls) or not runs_at_start(analyser, frame, cls):
        return
    read = read_by_workers(analyser)
    readers = [one for one in read if cls in analyser.program.ancestors(one)[0]]
    if not readers:
        return
    own = frame.function.params[0].name
    for place, at, index in _filled(analyser, frame.function, own, readers):
        statements = walk_statements(frame.function.body, into_definitions=False)
        statement = next((one for one in statements if one.at == at), None)
        if statement is None:
            continue
        yield WorkerCopies(
            site=frame.site(at),
            function=frame.function.qual,
            certainty="high" if any(read[one] == "high" for one in readers) else "low",
            place=f"{own}.{place}",
            owner=cls.node.name,
            source=_source(statement),
            annotations=index,
        )
        return


def _filled(analyser: Analyser, function: Function, own: str, readers: list[Class]) -> Iterator[tuple[str, int, bool]]:
    """The attributes that hold many small objects, each with the statement that fills it."""
    methods = [method for one in readers if (method := analyser.program.method(one, "__getitem__")) is not None]
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Call):
            target = statement.targets[0]
            if (
                isinstance(target, ir.Attr)
                and text(target.value) == own
                and analyser.program.outside(function.module, statement.value.func, function) in _COCO
                and any(_mentions(analyser, one, method, target.name) for one in readers for method in methods)
            ):
                yield target.name, statement.at, True
    read = {
        entry
        for one in readers
        if (method := analyser.program.method(one, "__getitem__")) is not None
        for entry in read_by_sample(analyser.program, one, method)
    }
    if not read:
        return
    contents = Contents(analyser, function, _begun(analyser, function))
    # (which one is the first is the text's to say: what branches leave is put together in no order)
    for place, content in sorted(contents.places.items(), key=lambda item: contents.made.get(item[0], -1)):
        name = place.removeprefix(f"{own}.")
        if name == place or not contents.reads or place not in contents.made:
            continue
        pair = content == "splits" and (name, "pair") in read and (name, "field") not in read
        if (name, _NEEDS.get(content)) in read and not pair:
            yield name, contents.made[place], False


def _begun(analyser: Analyser, function: Function) -> Places:
    """The attributes that are empty containers when ``__init__`` calls a method."""
    init = analyser.program.method(function.cls, "__init__") if function.cls is not None else None
    if init is None or init is function or not init.params:
        return {}
    before, after = f"{init.params[0].name}.", f"{function.params[0].name}."
    places = Contents(analyser, init).places.items()
    return {
        place.replace(before, after, 1): content
        for place, content in places
        if content == "empty" and place.startswith(before)
    }


def _mentions(analyser: Analyser, cls: Class, method: Function, name: str) -> bool:
    """Whether a method, or one of the same object that it calls, reads an attribute."""
    own = method.params[0].name if method.params else ""
    called = (analyser.program.method(cls, last_name(call.func)) for call in calls(method.body)
              if isinstance(call.func, ir.Attr) and text(call.func.value) == own)  # fmt: skip
    wanted = {method, *filter(None, called)}
    return any(
        isinstance(part, ir.Attr) and part.name == name and isinstance(part.value, ir.Name)
        for one in wanted
        for statement in walk_statements(one.body, into_definitions=False)
        for expr in expressions(statement)
        for part in walk_expression(expr)
    )


def _source(statement: ir.Stmt) -> str:
    """What a statement puts there, as its source."""
    if isinstance(statement, ir.Assign):
        return text(statement.value)
    value = getattr(statement, "value", None)
    return text(value) if value is not None else ""


# -------------------------------------------------------------------------------------- loaders


@kept
def read_by_workers(analyser: Analyser) -> dict[Class, Confidence]:
    """The project's data sets that a DataLoader with workers reads, and how sure it is that it has some."""
    found: dict[Class, Confidence] = {}
    for frame in analyser.frames():
        noted = [call for _, call in sorted(frame.notes.outside.items()) if call.name in LOADERS | PARTS]
        made = [(call, _workers(analyser, frame, call)) for call in noted if call.name in LOADERS]
        best = "high" if any(sure == "high" for _, sure in made) else "low"
        # (a part of a data set is what a loader reads of which nothing is known)
        unknown = any(not call.given.is_only(INSTANCE) for call, _ in made)
        parts = [call for call in noted if call.name in PARTS] if unknown else []
        read = [*made, *((call, best) for call in parts if any(sure for _, sure in made))]
        for call, sure in read:
            for cls in _classes(analyser, call.given) if sure is not None else ():
                if found.get(cls) != "high":
                    found[cls] = "high" if sure == "high" else "low"
    return found


def _classes(analyser: Analyser, given: V) -> Iterator[Class]:
    for ref in ordered(given.refs):
        cls = analyser.cls(ref) if ref.kind == "instance" else None
        if cls is not None:
            yield cls


def _workers(analyser: Analyser, frame: Frame, call: OutsideCall) -> Confidence | None:
    """How sure it is that a loader has workers: low for what a configuration says that cannot be read; None for none,
    as it is unless somebody asks for them."""
    number = argument(call.expr, 5, "num_workers")
    if number is None:
        return None
    if _is_positive(analyser, frame, number):
        return "high"
    told = isinstance(number, ir.Attr | ir.Subscript) and last_name(number) not in _options(analyser)
    return "low" if told else None


def _is_positive(analyser: Analyser, frame: Frame, expr: ir.Expr, depth: int = 0) -> bool:
    if isinstance(expr, ir.Const):
        return isinstance(expr.value, int) and expr.value > 0
    if depth > 4:
        return False
    if isinstance(expr, ir.IfExp):
        return _is_positive(analyser, frame, expr.body, depth + 1) or _is_positive(
            analyser, frame, expr.orelse, depth + 1
        )
    if isinstance(expr, ir.Binary):
        return expr.op in ("*", "//", "+") and all(
            _is_positive(analyser, frame, side, depth + 1) for side in (expr.left, expr.right)
        )
    if isinstance(expr, ir.Call):
        if analyser.program.outside(frame.module, expr.func, frame.function) in _CORES:
            return True
        args = expr.args[0].elements if expr.args and isinstance(expr.args[0], ir.Display) else expr.args
        return (
            last_name(expr.func) in ("int", "min", "max")
            and bool(args)
            and all(_is_positive(analyser, frame, arg, depth + 1) for arg in args)
        )
    if isinstance(expr, ir.Name):
        default = next((param.default for param in frame.function.params if param.name == expr.id), None)
        if default is not None and not any(binds(statement, expr.id) for statement in frame.function.body):
            return _is_positive(analyser, frame, default, depth + 1)
        if all(param.name != expr.id for param in frame.function.params):
            bound = Names(analyser, frame).value(expr.id, expr.at)
            if bound is not None and not bound[1]:
                return _is_positive(analyser, frame, bound[0], depth + 1)
        return False
    return isinstance(expr, ir.Attr) and _options(analyser).get(expr.name, False)


@kept
def _options(analyser: Analyser) -> dict[str, bool]:
    """The command line's options for workers: whether they are positive numbers by default, wherever one is told."""
    known: dict[str, list[bool]] = {}
    for word in ("add_argument", "add_option"):
        for key in analyser.program.words.files(word):
            for call in _all_calls(analyser.program.module(key)):
                if isinstance(call.func, ir.Attr) and _OPTION.search(call.func.name):
                    _note_option(call, known)
    return {name: all(positive) for name, positive in known.items()}


def _note_option(call: ir.Call, known: dict[str, list[bool]]) -> None:
    words = {word.name: word.value for word in call.keywords}
    flags = [one.value for one in call.args if isinstance(one, ir.Const) and isinstance(one.value, str)]
    told = words.get("dest")
    name = told.value if isinstance(told, ir.Const) else max(flags, key=len, default="").lstrip("-").replace("-", "_")
    if not isinstance(name, str) or "worker" not in name:
        return
    default = words.get("default")
    positive = isinstance(default, ir.Const) and isinstance(default.value, int) and default.value > 0
    known.setdefault(name, []).append(positive)


def _all_calls(module: Module) -> Iterator[ir.Call]:
    for body in module.bodies:
        yield from calls(body, into_definitions=True)
