"""Batches that are a whole data set: ``batch_size=len(dataset)``, or a data set's tensor that is passed to a model."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Confidence
from memlint.sdk.project import Analyser, Function, Names, Summary, argument, is_test, last_ordinal, of_module, peel
from memlint.sdk.syntax import calls, dotted, ir, kept, mentions, parts, text, walk_expression, walk_statements

from .rule import OversizedBatch

#: attributes of torchvision's data sets that hold all samples
_ALL_SAMPLES = frozenset({"data", "train_data", "test_data", "tensors", "x", "X", "features", "images"})
#: functions that return a permutation of all rows, of which a slice is a batch
_SHUFFLES = frozenset({"randperm", "permutation"})
#: functions that sample rows, and the position of the argument for their number, without which they sample one
_DRAWS = {"choice": 1, "randint": 2}
#: words in the names of functions that return a batch, not a data set
_BATCHWISE = ("next", "batch", "sample", "iter", "zip", "step", "collate")
_MAX_STEPS = 12


def detect(analyser: Analyser, summary: Summary) -> Iterator[OversizedBatch]:
    """The oversized batches of one function."""
    for at, (made, taken) in sorted(summary.notes.oversized.items()):
        yield OversizedBatch(
            site=summary.site(at), function=summary.function.qual, kind="literal", text=text(made), bytes=taken
        )
    loaders = summary.notes.loaders
    models = summary.notes.models
    if (not loaders and not models) or is_test(summary.function):
        return
    names = Names(analyser, summary)
    for at, expr in sorted(loaders.items()):
        size = argument(expr, 1, "batch_size")
        if size is not None and _length_of_data(names, expr, size):
            yield OversizedBatch(
                site=summary.site(at),
                function=summary.function.qual,
                kind="loader",
                text=_loader_text(expr, size),
                bytes=None,
            )
    for at, expr in sorted(models.items()):
        if _takes_a_graph(expr) or _in_a_batch(summary, expr):
            continue
        for arg in expr.args[:2]:
            certainty = _whole(names, arg, at)
            # slices of a layer's input may be time steps, or parts of a picture
            if certainty and (certainty == "high" or not of_module(analyser, summary.function)):
                yield OversizedBatch(
                    site=summary.site(at),
                    function=summary.function.qual,
                    kind="whole",
                    text=text(expr),
                    bytes=None,
                    certainty=certainty,
                )
                break


def _loader_text(expr: ir.Call, size: ir.Expr) -> str:
    data = argument(expr, 0, "dataset")
    return f"{text(expr.func)}({text(data, 30)}, batch_size={text(size, 30)})"


# -------------------------------------------------------------------------------------- loaders


def _length_of_data(names: Names, call: ir.Call, size: ir.Expr) -> bool:
    """Whether the batch size is the number of samples of the loader's data set."""
    if isinstance(size, ir.Name):
        bound = names.value(size.id, call.at)
        if bound is None or bound[1]:
            return False
        size = bound[0]
    measured = _measured(size)
    data = argument(call, 0, "dataset")
    if measured is None or data is None:
        return False
    shown = text(measured, 200)
    if shown == text(data, 200) or shown.startswith(text(data, 200) + "."):
        return True
    sampler = argument(call, 99, "sampler")
    return any(given is not None and _made_of(names, given, shown, call.at) for given in (data, sampler))


def _measured(size: ir.Expr) -> ir.Expr | None:
    """x of ``len(x)``, ``x.shape[0]``, ``x.size(0)``."""
    if isinstance(size, ir.Call):
        if isinstance(size.func, ir.Name) and size.func.id == "len" and len(size.args) == 1:
            return size.args[0]
        if isinstance(size.func, ir.Attr) and size.func.name == "size" and len(size.args) == 1 and _zero(size.args[0]):
            return size.func.value
    if (
        isinstance(size, ir.Subscript)
        and isinstance(size.value, ir.Attr)
        and size.value.name == "shape"
        and _zero(size.index)
    ):
        return size.value.value
    return None


def _zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == 0 and expr.kind == "int"


def _made_of(names: Names, expr: ir.Expr, shown: str, at: int) -> bool:
    """Whether the data set is built or split from the measured object."""
    for _ in range(4):
        if isinstance(expr, ir.Call) and mentions(expr, shown):
            return True
        if not isinstance(expr, ir.Name):
            return False
        bound = names.value(expr.id, at)
        if bound is None:
            return False
        expr = bound[0]
    return False


# -------------------------------------------------------------------------------------- whole data sets


def _in_a_batch(summary: Summary, call: ir.Call) -> bool:
    """Whether a call is in a loop over a data loader: parts of its batches are no data set."""
    held_rounds = summary.notes.rounds.values()
    rounds = (held for held in held_rounds if held.loop.over == "loader" or "loader" in held.loop.source)
    return any(id(call) in _calls_in(held.body) for held in rounds)


@kept
def _calls_in(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The calls of a body, by identity."""
    return frozenset(map(id, calls(body)))


def _takes_a_graph(call: ir.Call) -> bool:
    """Whether the call is one of a graph network, whose sample is the whole graph."""
    for arg in call.passed:
        name = dotted(arg).rsplit(".", 1)[-1].lower()
        if name.startswith(("adj", "edge", "graph", "lap")) or name in ("g", "a", "data"):
            return True
    return False


def _whole(names: Names, arg: ir.Expr, at: int) -> Confidence | None:
    """The confidence that an argument is a whole data set; None if it is not known to be one."""
    expr = arg
    unpacked = False
    for _ in range(_MAX_STEPS):
        direct = _all_of_a_set(names, expr)
        if direct:
            return direct
        if isinstance(expr, ir.Name):
            if not unpacked and _sliced_in_batches(names.summary.function, frozenset((expr.id,)), at):
                return "medium"
            bound = names.value(expr.id, at)
            if bound is None:
                return None
            expr, unpacked = bound
            if unpacked and isinstance(expr, ir.Call):
                return "medium" if _others_are_sliced(names, expr) else None
            if unpacked and not isinstance(expr, ir.Subscript):
                return None
            continue
        step = peel(expr)
        if step is None:
            return None
        expr = step
    return None


def _all_of_a_set(names: Names, expr: ir.Expr) -> Confidence | None:
    if isinstance(expr, ir.Subscript) and isinstance(expr.value, ir.Attr) and expr.value.name == "tensors":
        expr = expr.value
    if isinstance(expr, ir.Attr) and expr.name in _ALL_SAMPLES and names.is_data_set(expr.value):
        return "high"
    if (
        isinstance(expr, ir.Subscript)
        and isinstance(expr.index, ir.Slice)
        and expr.index.lower is None
        and expr.index.upper is None
    ):
        return "high" if names.is_data_set(expr.value) else None
    if isinstance(expr, ir.Comprehension) and len(expr.fors) == 1 and not expr.fors[0].ifs:
        return "high" if names.is_data_set(expr.fors[0].iter) else None
    return None


def _others_are_sliced(names: Names, call: ir.Call) -> bool:
    """Whether the result of another call of the same function is processed in batches in this module."""
    made = dotted(call.func).rsplit(".", 1)[-1].lower()
    if any(word in made for word in _BATCHWISE):
        return False
    others = frozenset(names.siblings(call))
    if not others:
        return False
    functions = [names.module.main, *names.module.functions.values()]
    return any(_sliced_in_batches(function, others) for function in functions)


def _other_branch(body: tuple[ir.Stmt, ...], at: int, other: int) -> bool:
    """Whether two ordinals are in different branches of one condition, so that one of the two is chosen."""
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.If) and statement.orelse:
            middle = statement.orelse[0].at
            first, second = min(at, other), max(at, other)
            if statement.at <= first < middle <= second <= last_ordinal(statement.orelse[-1]):
                return True
    return False


def _sliced_in_batches(function: Function, names: frozenset[str], at: int = -1) -> bool:
    """Whether a loop of the function processes one of these tensors in batches."""
    cuts = (where for name, where in _batch_cuts(function.body) if name in names)
    return any(at < 0 or not _other_branch(function.body, at, where) for where in cuts)


@kept
def _batch_cuts(body: tuple[ir.Stmt, ...]) -> tuple[tuple[str, int], ...]:
    """(name, ordinal) of every ``tensor[batch]`` of a body."""
    return tuple(_cuts_in(body))


def _cuts_in(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[str, int]]:
    starts: set[str] = set()
    orders: set[str] = set()
    drawn: set[str] = set()
    cuts: list[ir.Subscript] = []
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.For) and isinstance(statement.target, ir.Name):
            source = statement.iter
            if isinstance(source, ir.Call) and len(source.args) == 3 and dotted(source.func).endswith("range"):
                starts.add(statement.target.id)
        if isinstance(statement, ir.For | ir.While):
            written = _written(statement.body)
            cuts.extend(
                part
                for part in parts(statement.body)
                if isinstance(part, ir.Subscript) and isinstance(part.value, ir.Name) and id(part) not in written
            )
        if isinstance(statement, ir.Assign) and isinstance(statement.targets[0], ir.Name):
            _learn_order(statement.targets[0].id, statement.value, orders, drawn)
    for cut in cuts:
        index = cut.index.elements[0] if isinstance(cut.index, ir.Display) and cut.index.elements else cut.index
        ranged = isinstance(index, ir.Slice) and isinstance(index.lower, ir.Name) and index.lower.id in starts
        if isinstance(cut.value, ir.Name) and (ranged or (isinstance(index, ir.Name) and index.id in drawn)):
            yield cut.value.id, cut.at


def _written(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The targets of a body's assignments, by identity; writing rows is no processing."""
    assigns = (one for one in walk_statements(body, into_definitions=False) if isinstance(one, ir.Assign))
    return frozenset(id(target) for one in assigns for target in one.targets)


def _learn_order(name: str, value: ir.Expr, orders: set[str], drawn: set[str]) -> None:
    """Record a variable for a permutation of all rows, or for the rows of one batch."""
    if not isinstance(value, ir.Call | ir.Subscript):
        return
    inside = tuple(walk_expression(value))
    made = tuple(part for part in inside if isinstance(part, ir.Call))
    called = {dotted(part.func).rsplit(".", 1)[-1] for part in made}
    ordered = bool(called & _SHUFFLES) or any(isinstance(part, ir.Name) and part.id in orders for part in inside)
    if any(map(_draws_rows, made)) or (ordered and isinstance(value, ir.Subscript)):
        drawn.add(name)
    elif called & _SHUFFLES:
        orders.add(name)


def _draws_rows(call: ir.Call) -> bool:
    """Whether a call samples several row numbers, not a single one (``random.randint(0, 9)``)."""
    path, _, name = dotted(call.func).rpartition(".")
    if name not in _DRAWS:
        return False
    sized = len(call.args) > _DRAWS[name] or any(word.name in ("size", "k", None) for word in call.keywords)
    return sized or path.split(".")[0] in ("torch", "th")
