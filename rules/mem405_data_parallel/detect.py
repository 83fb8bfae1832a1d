"""Models that one process replicates over several devices, whose outputs all return to the first one."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import Confidence, lazy_pattern
from memlint.sdk.project import Analyser, Names, Summary, argument, in_tests, is_of_script, without_comments
from memlint.sdk.syntax import calls, calls_backward, dotted, ir, statement_at, text, walk_expression, walk_statements

from .rule import SingleProcess

#: names that show that the program can also run with several processes, which is decided at its start
_OFFERS_MORE = frozenset({"DistributedDataParallel", "DDP", "init_process_group", "Accelerator"})
#: a program that restricts itself to one device
_SEES_ONE = lazy_pattern(r"CUDA_VISIBLE_DEVICES['\"]\s*[\],]\s*=?\s*['\"]\d*['\"]")
#: names of inference code, and of models that are not trained
_RUNS = lazy_pattern(
    r"(^|_)(tests?|tester|testing|eval|evaluate|evaluator|evaluation|infer|inference|demo|predict|prediction|sample"
    r"|generate|visuali[sz]e|export|valid|validate)(_|$)"
)
_FROZEN = lazy_pattern(
    r"inception|teacher|vgg|lpips|percept|(^|_)ema($|_)|(^|_)(fid|attack|frozen|pretrained)_|average"
)
#: names of other wrapped objects, wrapped for `.module`
_NO_MODEL = lazy_pattern(r"optim|(^|\.|_)opt($|_)|sched")
#: expressions for the number of devices
_COUNT = lazy_pattern(
    r"device_count|n_?gpus?|num_(gpus?|devices?|cards?)|ngpus?|gpus?_?(num|count|ids|list)|device_ids|gpus\b"
)
#: classes that replicate a model over the devices of one process
CALLS = frozenset(f"torch.nn.{place}DataParallel" for place in ("", "parallel.", "parallel.data_parallel."))


def detect(analyser: Analyser, summary: Summary) -> Iterator[SingleProcess]:
    """The models that one function replicates over several devices; the first of each name."""
    made = [call for _, call in sorted(summary.notes.outside.items()) if call.name in CALLS]
    if not made or in_tests(summary.module.key) or not _trains(analyser, summary):
        return
    seen: set[str] = set()
    for call in made:
        model = argument(call.expr, 0, "module")
        certainty = _several(analyser, summary, call.expr, call.tests)
        if model is None or certainty is None:
            continue
        name = ".".join(text(model, 200).split(".")[: 2 if text(model).startswith("self.") else 1])
        if name in seen or _is_not_trained(summary, call.expr, name):  # mostly the other branch of a test
            continue
        seen.add(name)
        yield SingleProcess(
            site=summary.site(call.expr.at),
            function=summary.function.qual,
            certainty=certainty,
            text=text(call.expr),
        )


def _several(analyser: Analyser, summary: Summary, call: ir.Call, tests: tuple[ir.Expr, ...]) -> Confidence | None:
    """The confidence that there are several devices; None if there is one as far as known."""
    if any(word.name is None for word in call.keywords) or any(isinstance(arg, ir.Starred) for arg in call.args):
        return "low"
    given = argument(call, 1, "device_ids")
    if given is None or (isinstance(given, ir.Const) and given.kind == "None"):
        return None if _SEES_ONE.search(without_comments(summary.module.text)) else "high"
    number = _number(_bound(analyser, summary, given))
    if number is not None:
        return "high" if number > 1 else None
    return "medium" if any(_asks_for_several(test) for test in tests) else "low"


def _bound(analyser: Analyser, summary: Summary, expr: ir.Expr) -> ir.Expr:
    """The value of a name that a single statement binds; the expression itself otherwise."""
    names = Names(analyser, summary)
    for _ in range(4):
        bound = names.value(expr.id, expr.at) if isinstance(expr, ir.Name) else None
        if bound is None or bound[1]:
            break
        expr = bound[0]
    return expr


def _number(expr: ir.Expr) -> int | None:
    """The number of devices in a list; 2 for all that exist, None if unknown."""
    if isinstance(expr, ir.Display):
        return None if any(isinstance(one, ir.Starred) for one in expr.elements) else len(expr.elements)
    if isinstance(expr, ir.Const):
        return 1 if expr.kind in ("int", "str") else None
    name = dotted(expr.func).rsplit(".", 1)[-1] if isinstance(expr, ir.Call) else ""
    if not isinstance(expr, ir.Call) or len(expr.args) != 1:
        return None
    if name in ("list", "tuple", "sorted"):
        return _number(expr.args[0])
    if name == "device":
        return 1
    if name != "range":
        return None
    (stop,) = expr.args
    if isinstance(stop, ir.Const) and isinstance(stop.value, int):
        return stop.value
    return 2 if isinstance(stop, ir.Call) and dotted(stop.func).endswith(".device_count") else None


def _asks_for_several(test: ir.Expr) -> bool:
    """Whether a test is for several devices: ``torch.cuda.device_count() > 1``, ``len(args.gpus) > 1``."""
    return any(
        isinstance(part, ir.Compare)
        and part.ops in ((">",), (">=",), ("!=",))
        and isinstance(part.rights[0], ir.Const)
        and part.rights[0].value == (2 if part.ops == (">=",) else 1)
        and _COUNT.search(text(part.left, 200).lower()) is not None
        for part in walk_expression(test)
    )


def _trains(analyser: Analyser, summary: Summary) -> bool:
    """Whether the program trains, in one process as far as known: for a script by its own text, for an imported module
    by that of the whole project."""
    names = summary.module.names
    if names & _OFFERS_MORE:
        return False
    if "backward" in names or any("optim" in name.lower() for name in names):
        return True
    if is_of_script(summary):
        return False
    return bool(analyser.program.words.files("backward"))


def _is_not_trained(summary: Summary, call: ir.Call, model: str) -> bool:
    """Whether names show that the model only infers, or is wrapped only for the names in a checkpoint."""
    statement = statement_at(summary.function.body, call.at)
    targets = statement.targets if isinstance(statement, ir.Assign) else ()
    wrapped = {text(target, 200) for target in targets}
    if any(_FROZEN.search(name.lower()) or _NO_MODEL.search(name.lower()) for name in (model, *wrapped)):
        return True
    if calls_backward(summary.function.body):
        return False
    stem = summary.module.key.rsplit("/", 1)[-1].removesuffix(".py").lower()
    if any(_RUNS.search(name) or _FROZEN.search(name) for name in (stem, summary.function.name.lower())):
        return True
    methods = {
        one.func.name
        for one in calls(summary.function.body)
        if isinstance(one.func, ir.Attr)
        and (
            text(one.func.value, 200) in wrapped or any(part.at == call.at for part in walk_expression(one.func.value))
        )
    }
    if "eval" in methods and "train" not in methods:
        return True
    if "load_state_dict" in methods and "backward" not in summary.module.names:
        return True
    return any(
        isinstance(other, ir.Assign) and isinstance(other.value, ir.Attr)
        and other.value.name == "module" and text(other.value.value, 200) in wrapped
        for other in walk_statements(summary.function.body, into_definitions=False)
    )  # fmt: skip
