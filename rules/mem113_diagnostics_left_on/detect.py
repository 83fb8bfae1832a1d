"""Diagnostics that stay on for a whole run: anomaly detection, memory history, profilers, metrics that are never
reset."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memlint.sdk import Loop, lazy_pattern
from memlint.sdk.project import Analyser, Class, Summary, argument, each_call, functions_of, goes_on, in_tests
from memlint.sdk.syntax import calls, ir, last_name, parts_of, text, under_calls, walk_statements
from memlint.sdk.values import LoopState, MetricUse, OutsideCall

from .rule import DiagnosticLeftOn

#: files and functions for diagnosis
_LOOKS = lazy_pattern(r"debug|profil|sanity|bench|trace|diagnos|(^|[/_])tests?([/_.]|$)|repro|overfit")
#: calls that train, by frameworks
_TRAINS = frozenset({"backward", "manual_backward", "fit", "train_one_epoch"})
#: metrics of torchmetrics and torcheval whose state is all their input
_KEEP_ALL = lazy_pattern(
    r"(Binary|Multiclass|Multilabel)?(AUROC|AUPRC|AveragePrecision|PrecisionRecallCurve|ROC|PrecisionAtFixedRecall"
    r"|RecallAtFixedPrecision|SpecificityAtSensitivity|CalibrationError)"
    r"|SpearmanCorrCoef|KendallRankCorrCoef|CosineSimilarity|CatMetric|Cat|Retrieval\w+|MeanAveragePrecision"
    r"|BERTScore|InceptionScore|KernelInceptionDistance"
)
#: methods of metric objects that do not clear the state
_OF_METRICS = frozenset({"update", "compute", "forward", "to"})
#: diagnostics that stay on until they are switched off
_ANOMALIES = frozenset(
    f"torch.autograd.{place}{name}"
    for place in ("", "anomaly_mode.")
    for name in ("set_detect_anomaly", "detect_anomaly")
)
_HISTORY = frozenset({"torch.cuda.memory._record_memory_history", "torch.cuda._record_memory_history"})
CALLS = _ANOMALIES | _HISTORY | {"torch.profiler.profile", "torch.autograd.profiler.profile"}


def detect(analyser: Analyser, summary: Summary) -> Iterator[DiagnosticLeftOn]:
    """The diagnostics that one function leaves on."""
    if in_tests(summary.module.key):
        return
    for _, call in sorted(summary.notes.outside.items()):
        if call.tests or call.name not in CALLS:
            continue
        if _LOOKS.search(summary.module.key.rsplit("/", 1)[-1].lower()) or _LOOKS.search(summary.function.name.lower()):
            continue
        found = _left_on(analyser, summary, call)
        if found is not None:
            yield found
    seen: set[str] = set()
    for _, use in sorted(summary.notes.metrics.items()):
        held = text(use.held)
        metric = _never_reset(analyser, summary, use) if held not in seen else None
        if metric is not None:
            seen.add(held)
            yield metric


def _left_on(analyser: Analyser, summary: Summary, call: OutsideCall) -> DiagnosticLeftOn | None:
    block = _block_of(summary, call.expr)
    if call.name in _ANOMALIES:
        return _anomaly(analyser, summary, call, block)
    if call.name in _HISTORY:
        return _history(analyser, summary, call)
    return _profiler(summary, call, block) if block is not None else None


def _block_of(summary: Summary, expr: ir.Call) -> ir.With | None:
    """The with statement whose context a call creates; None if there is none."""
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.With) and any(item.context is expr for item in statement.items):
            return statement
    return None


def _is_statement(summary: Summary, expr: ir.Call) -> bool:
    return any(
        isinstance(statement, ir.ExprStmt) and statement.value is expr
        for statement in walk_statements(summary.function.body, into_definitions=False)
    )


# -------------------------------------------------------------------------------------- anomalies


def _anomaly(analyser: Analyser, summary: Summary, call: OutsideCall, block: ir.With | None) -> DiagnosticLeftOn | None:
    """``torch.autograd.set_detect_anomaly(True)`` for the whole run, or around training steps."""
    sets = call.name.endswith("set_detect_anomaly")
    mode = argument(call.expr, 0, "mode")
    if sets and not (isinstance(mode, ir.Const) and mode.value is True):
        return None
    loop: Loop | None = None
    if block is not None:
        held = _loop_in(summary, block, trains=True) or _loop_around(call)
        if held is None or not any(_trains(one) for one in (block.body, held.body)):
            return None
        loop = summary.seen(held)
    elif not sets or not _stays_on(analyser, summary, call.expr, "mode"):
        return None
    return DiagnosticLeftOn(
        site=summary.site(call.expr.at),
        function=summary.function.qual,
        kind="anomaly",
        text=text(call.expr),
        loop=loop,
    )


def _stays_on(analyser: Analyser, summary: Summary, expr: ir.Call, keyword: str) -> bool:
    """Whether a program that trains switches something on by a statement, and nothing switches it off."""
    if not _is_statement(summary, expr) or not _project_trains(analyser, summary):
        return False
    return not _switched_off(analyser, last_name(expr.func), 0, keyword)


def _loop_around(call: OutsideCall) -> LoopState | None:
    return call.loop if call.loop is not None and goes_on(call.loop) else None


def _trains(body: tuple[ir.Stmt, ...]) -> bool:
    return any(last_name(call.func) in _TRAINS for call in calls(body))


def _project_trains(analyser: Analyser, summary: Summary) -> bool:
    """Whether the file, or one that it may import, trains."""
    if any(_trains(function.body) for function in functions_of(summary.module)):
        return True
    if summary.function.node is not None and summary.function.name != "main":
        return False
    imported = any(isinstance(one, ir.Import | ir.ImportFrom) for one in summary.module.statements)
    return imported and any(analyser.program.words.files(word) for word in ("backward", "fit"))


def _switched_off(analyser: Analyser, name: str, position: int, keyword: str) -> bool:
    """Whether the project calls a function of that name with an argument that may switch it off."""
    for key in analyser.program.words.files(name):
        for function in functions_of(analyser.program.module(key)):
            for call in calls(function.body):
                given = argument(call, position, keyword) if last_name(call.func) == name else None
                if given is not None and not _records_all(given):
                    return True
    return False


def _records_all(given: ir.Expr) -> bool:
    return isinstance(given, ir.Const) and (given.value is True or given.value == "all")


# -------------------------------------------------------------------------------------- memory history


def _history(analyser: Analyser, summary: Summary, call: OutsideCall) -> DiagnosticLeftOn | None:
    """``_record_memory_history()``, which records each allocation with its stack until it is switched off."""
    words = {word.name for word in call.expr.keywords}
    if words & {None, "max_entries", "trace_alloc_max_entries", "clear_history"} or len(call.expr.args) > 3:
        return None
    enabled = argument(call.expr, 0, "enabled")
    if enabled is not None and not (isinstance(enabled, ir.Const) and enabled.value == "all"):
        return None  # True is the old form, which keeps the last one
    if not _stays_on(analyser, summary, call.expr, "enabled"):
        return None
    read = any(analyser.program.words.files(word) for word in ("_dump_snapshot", "_snapshot"))
    return DiagnosticLeftOn(
        site=summary.site(call.expr.at),
        function=summary.function.qual,
        kind="history",
        text=text(call.expr),
        loop=None,
        read=read,
    )


# -------------------------------------------------------------------------------------- profilers


def _profiler(summary: Summary, call: OutsideCall, block: ir.With) -> DiagnosticLeftOn | None:
    """``with torch.profiler.profile():`` around a loop over data, without a schedule."""
    words = {word.name: word.value for word in call.expr.keywords}
    if None in words or "schedule" in words:
        return None
    enabled = words.get("enabled") or (call.expr.args[0] if call.expr.args else None)
    if (
        "autograd" in call.name
        and enabled is not None
        and not (isinstance(enabled, ir.Const) and enabled.value is True)
    ):
        return None
    held = _loop_in(summary, block, trains=False)
    if held is None:
        return None
    return DiagnosticLeftOn(
        site=summary.site(call.expr.at),
        function=summary.function.qual,
        kind="profiler",
        text=text(call.expr.func),
        loop=summary.seen(held),
    )


def _loop_in(summary: Summary, block: ir.With, *, trains: bool) -> LoopState | None:
    """The first loop over data in a block without a break."""
    inside = {one.at for one in walk_statements(block.body) if isinstance(one, ir.For | ir.While)}
    for held in sorted(summary.notes.rounds.values(), key=lambda one: one.loop.site.at):
        if held.loop.site.at in inside and goes_on(held) and (not trains or _trains(held.body)):
            return held
    return None


# -------------------------------------------------------------------------------------- metrics


def _never_reset(analyser: Analyser, summary: Summary, use: MetricUse) -> DiagnosticLeftOn | None:
    """A metric object that keeps all its inputs and is updated in each step of all epochs."""
    if _KEEP_ALL.fullmatch(use.name.rsplit(".", 1)[-1]) is None or not use.name.startswith(
        ("torchmetrics", "torcheval")
    ):
        return None
    function = summary.function
    held = use.held
    if isinstance(held, ir.Attr) and isinstance(held.value, ir.Name) and held.value.id == function.own_name:
        if summary.hook is None or summary.hook.every != "iteration" or function.cls is None:
            return None
        if not _is_left_alone(analyser, function.cls, held.name):
            return None
        loop = each_call(function)
    elif isinstance(held, ir.Name):
        found = _over_epochs(summary, use, held.id)
        if found is None:
            return None
        loop = found
    else:
        return None
    return DiagnosticLeftOn(
        site=summary.site(use.expr.at),
        function=function.qual,
        kind="metric",
        text=text(held),
        loop=loop,
        name=use.name.rsplit(".", 1)[-1],
    )


def _is_left_alone(analyser: Analyser, cls: Class, name: str) -> bool:
    """Whether the project only creates an attribute once, updates it and reads it."""
    for key in analyser.program.words.files(name):
        for function in functions_of(analyser.program.module(key)):
            foreign = "" if function.cls is None or _related(analyser, function.cls, cls) else function.own_name

            def is_it(part: ir.Expr, foreign: str = foreign) -> bool:
                if not isinstance(part, ir.Attr) or part.name != name:
                    return False
                return not foreign or not isinstance(part.value, ir.Name) or part.value.id != foreign

            if any(_does_else(statement, name, is_it) for statement in walk_statements(function.body, False)):
                return False
            if function.module is cls.module and any(_resets_others(call) for call in calls(function.body)):
                return False
    return all(_keeps_all(value) for value in _made(cls, name))


def _related(analyser: Analyser, one: Class, other: Class) -> bool:
    """Whether one of two classes is the other or inherits from it."""
    return one in analyser.program.ancestors(other)[0] or other in analyser.program.ancestors(one)[0]


def _does_else(statement: ir.Stmt, name: str, is_it: Callable[[ir.Expr], bool]) -> bool:
    """Whether a statement does anything with a metric but create, update or read it."""
    if isinstance(statement, ir.Delete):
        return any(map(is_it, statement.targets))
    allowed: list[ir.Expr] = list(statement.targets) if isinstance(statement, ir.Assign) else []
    everything = list(parts_of(statement))
    for part in everything:
        if isinstance(part, ir.Call):
            allowed.append(part.func)
            if isinstance(part.func, ir.Attr) and part.func.name in _OF_METRICS:
                allowed.append(part.func.value)
            if last_name(part.func) == "getattr" and any(getattr(arg, "value", None) == name for arg in part.args):
                return True
    return any(is_it(part) and not any(part is one for one in allowed) for part in everything)


def _resets_others(call: ir.Call) -> bool:
    """Whether a call resets an object that is no named attribute (``metric.reset()``): it may be any metric."""
    func = call.func
    return isinstance(func, ir.Attr) and func.name == "reset" and not isinstance(func.value, ir.Attr)


def _made(cls: Class, name: str) -> Iterator[ir.Expr]:
    for method in cls.methods.values():
        for statement in walk_statements(method.body, into_definitions=False):
            if isinstance(statement, ir.Assign) and any(
                isinstance(target, ir.Attr) and target.name == name for target in statement.targets
            ):
                yield statement.value
                if method.name != "__init__":
                    yield ir.Const(statement.at, "None", None)  # it is rebound


def _keeps_all(made: ir.Expr) -> bool:
    """Whether a metric is created with arguments that keep all inputs; thresholds bin them."""
    made = under_calls(made, {"to", "cuda"})
    if not isinstance(made, ir.Call):
        return False
    words = {word.name: word.value for word in made.keywords}
    bins = words.get("thresholds")
    return None not in words and (bins is None or (isinstance(bins, ir.Const) and bins.kind == "None"))


def _over_epochs(summary: Summary, use: MetricUse, name: str) -> Loop | None:
    """The inner of two loops, if the metric is created before both and the function does nothing else with it."""
    loops = [held for held in use.loops if held.counts]
    if len(loops) < 2 or any(name in held.bound for held in loops) or not goes_on(loops[-1]):
        return None
    body = summary.function.body
    made = [
        statement.value
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.Assign)
        and any(isinstance(target, ir.Name) and target.id == name for target in statement.targets)
    ]
    if len(made) != 1 or not _keeps_all(made[0]):
        return None
    if any(
        _does_else(statement, name, lambda part: isinstance(part, ir.Name) and part.id == name)
        for statement in walk_statements(body)
    ):
        return None
    return summary.seen(loops[-1])
