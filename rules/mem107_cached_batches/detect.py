"""Iterators that keep every batch of a data loader: ``itertools.cycle(loader)``, ``list(loader)``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memlint.sdk import Confidence, lazy_pattern
from memlint.sdk.project import MAX_PERIOD, Analyser, Function, Names, Summary, feeds_device, is_test, knowledge
from memlint.sdk.syntax import (
    bodies,
    calls,
    calls_backward,
    expressions,
    ir,
    last_name,
    mentions,
    names_bound_by,
    parts,
    statement_at,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import (
    CONTAINER,
    LOADER,
    MODULE,
    NONE,
    UNKNOWN,
    UNKNOWN_VALUE,
    OutsideCall,
    V,
    join_all,
    over_loader,
)

from .rule import CachedBatches, KeepsBatches

_HOW: dict[str, KeepsBatches] = {
    "itertools.cycle": "cycle",
    "itertools.tee": "tee",
    "builtins.list": "list",
    "builtins.tuple": "list",
}
#: names of a data loader, or of a function that returns one
_LOADER = lazy_pattern(
    r"(?<!down)loader(_(?!cls|class|conf|cfg|k?w?args|opt|names?$|keys|fn|func|factory|list|files?|paths?|len|size|type)\w+)?$"
    r"|(^|_)dl$"
)
#: classes of data sets that generate samples while they are iterated over
_STREAMS = frozenset({"torch.utils.data.IterableDataset", "torch.utils.data.dataset.IterableDataset"})
#: functions that iterate over their argument without storing it
_PASSES = frozenset({"iter", "enumerate", "tqdm", "track", "progress_bar"})
#: names of inner loops with few iterations
_FEW = lazy_pattern(r"inner|accum|adapt|warm|sanity|debug|shot|(^|[^a-z])few|preview|example|plot|visuali[sz]")
#: functions that keep all items of their argument
CALLS = frozenset({"itertools.cycle", "itertools.tee"})
LOADER_CALLS = frozenset({"builtins.list", "builtins.tuple"})


def detect(analyser: Analyser, summary: Summary) -> Iterator[CachedBatches]:
    """The iterators of one function that keep the batches of loaders."""
    noted = [call for _, call in sorted(summary.notes.outside.items()) if call.name in _HOW]
    if not noted or is_test(summary.function):
        return
    names = Names(analyser, summary)
    for call in noted:
        expr = call.expr
        if not expr.args or isinstance(expr.args[0], ir.Starred):
            continue
        source = _source(expr.args[0])
        certainty = _is_loader(analyser, summary, call, source)
        if certainty is None or _takes_few(summary, expr) or _takes_part(expr.args[0]):
            continue
        how = _HOW[call.name]
        if how == "tee" and _in_step(summary, expr):
            continue
        if how == "cycle" and _drawn_now_and_then(summary, expr):
            certainty = "low"
        if how == "list" and certainty != "high":
            continue
        plain = how == "cycle" and certainty == "high" and source is expr.args[0]
        again = plain and names.made_by(source).startswith("torch.utils.data.")
        yield CachedBatches(
            site=summary.site(expr.at),
            function=summary.function.qual,
            certainty=certainty,
            how=how,
            text=text(expr),
            loader=text(source),
            given=summary.site(source.at) if again else None,
        )


def _source(expr: ir.Expr) -> ir.Expr:
    """The underlying iterable: ``loader`` of ``enumerate(tqdm(loader))``."""
    while isinstance(expr, ir.Call) and last_name(expr.func) in _PASSES and expr.args:
        expr = expr.args[0]
    return expr


def _is_loader(analyser: Analyser, summary: Summary, call: OutsideCall, source: ir.Expr) -> Confidence | None:
    """The confidence that an iterable is a data loader; None if it is not known to be one."""
    value = call.given
    if value.kinds & LOADER and value.syms and _assumed(analyser, summary, source):
        return "medium" if _LOADER.search(_name(source).lower()) else "low"
    if value.is_only(LOADER | NONE) and value.kinds & LOADER:
        return "high"
    if over_loader(value) and not value.kinds & LOADER:
        return "high"
    if _of_class(
        analyser, value, lambda base: (row := knowledge.function(base)) is not None and row.returns == "loader"
    ):
        return "high"
    if call.name.endswith(".cycle") and _of_class(analyser, value, lambda base: base in _STREAMS):
        return "medium"
    if (
        isinstance(source, ir.Attr)
        and value.is_only(NONE | UNKNOWN)
        and _assigned_loader(analyser, summary, source.name)
    ):
        return "medium"
    name = _name(source).lower()
    if not _LOADER.search(name) or value.objs or value.kinds & (CONTAINER | MODULE):
        return None
    if value.resolved():
        return None
    if value.kinds & LOADER:
        return "medium"
    if not value.kinds & UNKNOWN:
        return None
    return "medium" if _trains(summary) else "low"


def _assumed(analyser: Analyser, summary: Summary, source: ir.Expr) -> bool:
    """Whether the only sign of a loader is a loop that moves its items to the device: they may also be those of a list,
    which keeps them anyway."""
    param = next(
        (one for one in summary.function.params if isinstance(source, ir.Name) and one.name == source.id), None
    )
    if param is None:
        return False
    annotation = analyser.annotated(summary.module, param.annotation) if param.annotation is not None else None
    known = annotation or analyser.facts.parameter(summary.function, param.name)
    return known is None or not known.kinds & LOADER


def _assigned_loader(analyser: Analyser, summary: Summary, name: str) -> bool:
    """Whether all assignments in this file to an attribute of that name, on any object, are loaders: ``handlers.data =
    make_loader(options)``."""
    module = summary.module
    found = [
        value
        for function in (module.main, *module.functions.values())
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.Assign)
        for target in statement.targets
        for value in _given_to(analyser, function, target, statement.value, name)
    ]
    return any(one.kinds & LOADER for one in found) and all(one.is_only(LOADER | NONE) for one in found)


def _given_to(analyser: Analyser, function: Function, target: ir.Expr, value: ir.Expr, name: str) -> Iterator[V]:
    """The values that an assignment, also of a tuple, gives an attribute of that name."""
    if isinstance(target, ir.Attr) and target.name == name:
        yield analyser.evaluate_constant(function.module, value)
    for position, part in enumerate(target.elements if isinstance(target, ir.Display) else ()):
        if isinstance(part, ir.Attr) and part.name == name:
            yield _returned_part(analyser, function, value, position)


def _returned_part(analyser: Analyser, function: Function, value: ir.Expr, position: int) -> V:
    """One member of a tuple, written as such or returned by a function of the project."""
    if isinstance(value, ir.Display) and position < len(value.elements):
        return analyser.evaluate_constant(function.module, value.elements[position])
    if isinstance(value, ir.Call):
        kind, called = analyser.program.find_expression(function.module, value.func, function)
        known = analyser.summary(called) if kind == "function" and called is not None else None
        if known is not None and known.exit is not None and known.result is not None:
            made = [known.exit.heap.get(key) for key in known.result.objs]
            return join_all(obj.fields.get(str(position), UNKNOWN_VALUE) if obj else UNKNOWN_VALUE for obj in made)
    return UNKNOWN_VALUE


def _name(source: ir.Expr) -> str:
    """The name of a loader: ``get_loader`` of a call, ``loader`` of ``loaders["train"]``."""
    if isinstance(source, ir.Subscript):
        return last_name(source.value).removesuffix("s")
    return last_name(source.func if isinstance(source, ir.Call) else source)


def _of_class(analyser: Analyser, value: V, known: Callable[[str], bool]) -> bool:
    """Whether a value is an instance of a project's subclass of a known library class."""
    refs = [ref for ref in value.refs if ref.kind == "instance"]
    classes = [analyser.cls(ref) for ref in refs]
    return bool(classes) and all(
        cls is not None and any(map(known, analyser.program.ancestors(cls)[1])) for cls in classes
    )


def _trains(summary: Summary) -> bool:
    """Whether the function works on batches: it runs a model, or moves the items to a device."""
    body = summary.function.body
    return bool(summary.notes.models) or calls_backward(body) or feeds_device(None, body)


def _takes_few(summary: Summary, expr: ir.Call) -> bool:
    """``zip(range(4), cycle(loader))``, ``next(cycle(loader))``: only the first batches are drawn."""
    if _drawn_once(summary, expr):
        return True
    for part in parts(summary.function.body):
        if not isinstance(part, ir.Call) or not any(_contains(arg, expr) for arg in part.args):
            continue
        name = last_name(part.func)
        others = [arg for arg in part.args if not _contains(arg, expr)]
        if name == "next":
            return True
        if name in ("zip", "islice") and any(_is_short(one, name) for one in others):
            return True
    return False


def _drawn_once(summary: Summary, expr: ir.Call) -> bool:
    """Whether an iterator is only used by ``next``, once or a small literal number of times."""
    body = summary.function.body
    made = statement_at(body, expr.at)
    target = made.targets[0] if isinstance(made, ir.Assign) else None
    if not isinstance(target, ir.Name) or summary.function.node is None:
        return False
    mentioned = sum(isinstance(part, ir.Name) and part.id == target.id for part in parts(body, into_definitions=True))
    bound = sum(target.id in names_bound_by(statement) for statement in walk_statements(body))
    drawn = sum(
        isinstance(part, ir.Call) and last_name(part.func) == "next" and mentions(part, target.id)
        for statement in _outside_loops(body)
        for whole in expressions(statement)
        if not any(isinstance(part, ir.Comprehension) for part in walk_expression(whole))
        for part in walk_expression(whole)
    )
    return drawn > 0 and mentioned == bound + drawn


def _drawn_now_and_then(summary: Summary, expr: ir.Call) -> bool:
    """Whether an iterator is created in each iteration of a loop, and used only in some iterations of the inner loops
    (``if step % 50 == 0``): it is released before it has yielded many batches."""
    body = summary.function.body
    loops = [one for one in walk_statements(body) if isinstance(one, ir.For | ir.While)]
    made = statement_at(body, expr.at)
    if not isinstance(made, ir.Assign) or made.value is not expr or not isinstance(made.targets[0], ir.Name):
        return False
    if not any(one is made for loop in loops for one in walk_statements(loop.body)):
        return False
    draws = [
        call.at
        for call in calls(body)
        if last_name(call.func) == "next" and any(mentions(arg, made.targets[0].id) for arg in call.args)
    ]
    seldom = [
        call.at
        for loop in loops
        for one in walk_statements(loop.body)
        if isinstance(one, ir.If)
        and _comes_seldom(one.test)
        and not any(isinstance(inner, ir.For | ir.While) for inner in walk_statements(one.body))
        for call in calls(one.body)
    ]
    named = made.targets[0].id
    mentioned = sum(isinstance(part, ir.Name) and part.id == named for part in parts(body, into_definitions=True))
    return bool(draws) and set(draws) <= set(seldom) and mentioned == 1 + len(draws)


def _comes_seldom(test: ir.Expr) -> bool:
    """Whether a test holds in few iterations: ``step % every == 0``, if ``every`` is not a small number."""
    if not isinstance(test, ir.Compare) or test.ops != ("==",) or not isinstance(test.left, ir.Binary):
        return False
    right, every = test.rights[0], test.left.right
    few = isinstance(every, ir.Const) and isinstance(every.value, int) and every.value < MAX_PERIOD
    return test.left.op == "%" and isinstance(right, ir.Const) and right.value == 0 and not few


def _outside_loops(body: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
    """The statements of a body that run once, or a small literal number of times."""
    for statement in body:
        yield statement
        few = isinstance(statement, ir.For) and isinstance(statement.iter, ir.Call) and _is_short(statement.iter, "zip")
        if few or not isinstance(statement, ir.For | ir.While | ir.FunctionDef | ir.ClassDef):
            for block in bodies(statement):
                yield from _outside_loops(block)


def _contains(whole: ir.Expr, expr: ir.Expr) -> bool:
    return any(part is expr for part in walk_expression(whole))


def _is_short(expr: ir.Expr, name: str) -> bool:
    """Whether a number of iterations is a small literal, or has the name of a small one."""
    if isinstance(expr, ir.Display):
        return True
    if isinstance(expr, ir.Call):
        if last_name(expr.func) not in ("range", "trange"):
            return False
        return all(_is_short(arg, "") for arg in expr.args)
    if isinstance(expr, ir.Const):
        return expr.kind == "int" and isinstance(expr.value, int) and expr.value <= MAX_PERIOD
    return name != "zip" and _FEW.search(text(expr, 200).lower()) is not None


def _in_step(summary: Summary, expr: ir.Call) -> bool:
    """Whether both iterators are advanced together, so that neither runs ahead."""
    statement = statement_at(summary.function.body, expr.at)
    if not isinstance(statement, ir.Assign):
        return True
    target = statement.targets[0]
    names = [one.id for one in target.elements if isinstance(one, ir.Name)] if isinstance(target, ir.Display) else []
    if len(names) < 2:
        return True
    return any(
        last_name(call.func) == "zip" and all(any(mentions(arg, name) for arg in call.args) for name in names)
        for call in calls(summary.function.body)
    )


#: functions that use a part of their argument, or keep the batches themselves
_TAKES_PART = frozenset({"islice", "takewhile", "cycle"})


def _takes_part(expr: ir.Expr) -> bool:
    """Whether a call uses a fixed number of batches: ``list(islice(loader, n))``, ``list(zip(range(n), loader))``."""
    for part in walk_expression(expr):
        name = last_name(part.func) if isinstance(part, ir.Call) else ""
        if name in _TAKES_PART or (isinstance(part, ir.Call) and name == "zip" and _counts(part)):
            return True
    return False


def _counts(call: ir.Call) -> bool:
    return any(isinstance(arg, ir.Call) and last_name(arg.func) in ("range", "trange") for arg in call.args)
