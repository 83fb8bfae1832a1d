"""One body for training and evaluation, selected by a parameter: ``if optimizer is not None:``, ``if mode == "a":``,
directly or under a local name (``training = optimizer is not None``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.analysis.domain.state import AMBIENT, ON
from memlint.analysis.domain.summary.effects import Backward, ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NONE, V
from memlint.analysis.syntax.bindings import names_bound_by, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import call_at, calls, dotted, walk_expression, walk_statements
from memlint.analysis.transfer.modules.flags import test_value
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: stands for any object, such as an optimizer; a flag's other values are literals
_ANY_OBJECT = object()
_Value = object


class Phase(NamedTuple):
    """A phase without training. ``quiet``: a test, as source, that holds where no backward runs; ``training``: one that
    holds where it does."""

    quiet: str
    training: str


def role_of(summary: Summary, backwards: list[Backward], run: ModelRun) -> Phase | None:
    """How a parameter selects evaluation or training. With the parameter off, no backward runs, and either the function
    puts the model into eval mode or a caller shows that it evaluates; the model runs in both cases. None if no
    parameter does so."""
    tests = run.tests
    params = {param.name for param in summary.function.params if param.kind not in ("star", "double-star")}
    body = summary.function.body
    aliases = named_tests(body)
    for test in backwards[0].tests:
        for name in sorted(params & set(_names_tested(test, aliases))):
            if is_guarded(body, name, run.text):
                continue
            for off, on in _values(test, name, aliases):
                if any(holds(one, name, on, aliases) is False for one in (*tests, *backwards[0].tests)):
                    continue
                if any(holds(one, name, off, aliases) is False for one in tests):
                    continue
                silent = all(any(holds(one, name, off, aliases) is False for one in each.tests) for each in backwards)
                quiet = silent and (
                    puts_into_eval_mode(body, name, off, aliases) or _is_off_in_call(summary, name, off)
                )
                if quiet and not (leaves_early(body, name, aliases) or _cannot_be(summary, name, off, aliases)):
                    shown = text(test)
                    return Phase(_negated(test), shown)
    return None


#: the negation of each comparison
_OPPOSITE = {
    "is": "is not",
    "is not": "is",
    "==": "!=",
    "!=": "==",
    "in": "not in",
    "not in": "in",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
}


def _negated(test: ir.Expr) -> str:
    """The negation of a test as source: ``optimizer is None`` for ``optimizer is not None``."""
    if isinstance(test, ir.Unary) and test.op == "not":
        return text(test.operand)
    if isinstance(test, ir.Compare) and len(test.ops) == 1 and test.ops[0] in _OPPOSITE:
        return text(ir.Compare(test.at, test.left, (_OPPOSITE[test.ops[0]],), test.rights))
    return f"not {text(test)}" if isinstance(test, ir.Name | ir.Attr | ir.Call) else f"not ({text(test)})"


@kept
def named_tests(body: tuple[ir.Stmt, ...]) -> dict[str, ir.Expr]:
    """The names that the function binds once, to a test, with these tests: ``training = optimizer is not None``."""
    bound: dict[str, int] = {}
    for statement in walk_statements(body, into_definitions=False):
        for name in names_bound_by(statement):
            bound[name] = bound.get(name, 0) + 1
    found: dict[str, ir.Expr] = {}
    for statement in body:
        if (
            isinstance(statement, ir.Assign)
            and len(statement.targets) == 1
            and isinstance(statement.targets[0], ir.Name)
        ):
            name, value = statement.targets[0].id, statement.value
            if isinstance(value, ir.IfExp) and _is(value.body, True) and _is(value.orelse, False):
                value = value.test  # ``True if optimizer else False``
            if bound[name] == 1 and isinstance(value, ir.Compare | ir.Unary | ir.BoolOp | ir.Name):
                found[name] = value
    return found


def _is(expr: ir.Expr, literal: bool) -> bool:
    return isinstance(expr, ir.Const) and expr.value is literal


def _names_tested(test: ir.Expr, aliases: dict[str, ir.Expr]) -> Iterator[str]:
    """The names that a test reads, directly or through an alias."""
    for part in walk_expression(test):
        if isinstance(part, ir.Name):
            yield part.id
            if part.id in aliases:
                yield from (inner.id for inner in walk_expression(aliases[part.id]) if isinstance(inner, ir.Name))


def _values(test: ir.Expr, name: str, aliases: dict[str, ir.Expr]) -> Iterator[tuple[_Value, _Value]]:
    """Pairs of values that a parameter may have: the one where it is off, and the one where it is on."""
    yield None, _ANY_OBJECT
    yield False, True
    whole = [
        test,
        *(aliases[part.id] for part in walk_expression(test) if isinstance(part, ir.Name) and part.id in aliases),
    ]
    for expr in whole:
        for part in walk_expression(expr):
            if isinstance(part, ir.Compare) and isinstance(part.left, ir.Name) and part.left.id == name:
                for right in part.rights:
                    if isinstance(right, ir.Const) and isinstance(right.value, str):
                        yield _ANY_OBJECT, right.value
                        yield right.value, _ANY_OBJECT


def holds(test: ir.Expr, name: str, value: _Value, aliases: dict[str, ir.Expr]) -> bool | None:
    """Whether a test holds if a parameter is ``value``; None if it tests something else."""

    def asks(part: ir.Expr) -> bool | None:
        match part:
            case ir.Name(id=variable) if variable == name:
                return bool(value)
            case ir.Name(id=variable) if variable in aliases:
                rest = {other: expr for other, expr in aliases.items() if other != variable}
                return holds(aliases[variable], name, value, rest)
            case ir.Compare(
                left=ir.Name(id=variable), ops=("is" | "is not" | "==" | "!=" as op,), rights=(ir.Const() as right,)
            ):
                same = value is None if right.kind == "None" else right.value == value
                return same == (op in ("is", "==")) if variable == name else None
            case ir.Compare(
                left=ir.Name(id=variable), ops=("in" | "not in" as op,), rights=(ir.Display(elements=several),)
            ) if variable == name:
                literals = [one.value for one in several if isinstance(one, ir.Const)]
                if len(literals) != len(several) or (value is _ANY_OBJECT and len(several) > 1):
                    return None  # the value may be any of them, or none
                return (value in literals) == (op == "in")
            case _:
                return None

    return test_value(test, asks)


def _branch(statement: ir.Stmt, name: str, value: _Value, aliases: dict[str, ir.Expr]) -> tuple[ir.Stmt, ...]:
    """The branch of an ``if`` that runs if a parameter is ``value``; empty for another statement, or if unknown."""
    taken = holds(statement.test, name, value, aliases) if isinstance(statement, ir.If) else None
    if not isinstance(statement, ir.If) or taken is None:
        return ()
    return statement.body if taken else statement.orelse


def puts_into_eval_mode(body: tuple[ir.Stmt, ...], name: str, off: _Value, aliases: dict[str, ir.Expr]) -> bool:
    """Whether the function puts a model into eval mode where the parameter is off, and not where it is on."""
    for statement in walk_statements(body, into_definitions=False):
        if any(_calls(inner, "eval") for inner in _branch(statement, name, off, aliases)):
            return True
        if isinstance(statement, ir.ExprStmt) and isinstance(choice := statement.value, ir.IfExp):
            runs = holds(choice.test, name, off, aliases)
            chosen = None if runs is None else choice.body if runs else choice.orelse
            if chosen is not None and _calls(ir.ExprStmt(statement.at, chosen), "eval"):
                return True
        call = _calls(statement, "train")
        flags = [*call.args, *(word.value for word in call.keywords if word.name == "mode")] if call is not None else []
        if len(flags) == 1 and holds(flags[0], name, off, aliases) is False:
            return True
    return False


#: words of evaluation in the names of arguments; ``develop`` and ``latest`` do not match
EVALUATION = lazy_pattern(
    r"(?:^|[^a-z])(?:val|valid|validate|validation|eval|evaluation|test|testing|dev|inference)(?![a-z])"
)
#: names of parameters that select training
_TRAINS = lazy_pattern(r"_?(is_|do_)?train(ing)?(_mode|_flag)?")


def _is_off_in_call(summary: Summary, name: str, off: _Value) -> bool:
    """Whether some caller that records turns the parameter off for an evaluation: by a name or literal such as
    ``"val"``, or by the other arguments: ``run_epoch(val_loader, model, optimizer=None)``."""
    for caller, record in summary.analyser.facts.calls_of(summary.function):
        value = record.args.get(name)
        if value is None or not record.grad & (ON | AMBIENT) or True in record.modes.values():
            continue  # a caller that puts the model into eval mode has to set the guard itself
        if _turns_off(value, off, name) or (_is_off(value, off) and _passes_evaluation(caller, record.at)):
            return True
    return False


def _turns_off(value: V, off: _Value, name: str) -> bool:
    """Whether the argument alone shows that the call evaluates: ``"val"``, ``train=False``."""
    if isinstance(value.const, str):
        return EVALUATION.search(value.const.lower()) is not None and (off is _ANY_OBJECT or off == value.const)
    return off is False and value.const is False and _TRAINS.fullmatch(name.lower()) is not None


def _is_off(value: V, off: _Value) -> bool:
    return value.is_only(NONE) if off is None else off is False and value.const is False


def _passes_evaluation(caller: Summary, at: int) -> bool:
    call = call_at(caller.function.body, at)
    arguments = call.passed if call is not None else ()
    return any(
        isinstance(one, ir.Name | ir.Attr | ir.Subscript) and EVALUATION.search(text(one, 200).lower()) is not None
        for one in arguments
    )


def _cannot_be(summary: Summary, name: str, off: _Value, aliases: dict[str, ir.Expr]) -> bool:
    """Whether the parameter is never off: the function rejects it (``if optimizer is None: raise``), or every known
    caller turns it on."""
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.Assert) and holds(statement.test, name, off, aliases) is False:
            return True
        if any(isinstance(one, ir.Raise) for one in _branch(statement, name, off, aliases)):
            return True
    passed = [record.args.get(name) for _, record in summary.analyser.facts.calls_of(summary.function)]
    return bool(passed) and all(value is not None and _is_on(value, off) for value in passed)


def _is_on(value: V, off: _Value) -> bool:
    if off is None:
        return not value.may_be(NONE)
    if off is False:
        return value.const is True
    return off is not _ANY_OBJECT and isinstance(value.const, str) and value.const != off


def _calls(statement: ir.Stmt, method: str) -> ir.Call | None:
    """The call, if a statement is a call of a method with this name: ``model.eval()``. None if it is not."""
    call = statement.value if isinstance(statement, ir.ExprStmt) else None
    named = isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and call.func.name == method
    return call if named and isinstance(call, ir.Call) else None


def leaves_early(body: tuple[ir.Stmt, ...], name: str, aliases: dict[str, ir.Expr]) -> bool:
    """Whether a branch on the parameter leaves an iteration, or the function, early. The tests around a statement then
    do not decide for which values it runs."""
    return any(
        isinstance(one, ir.Jump | ir.Return)
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.If) and name in set(_names_tested(statement.test, aliases))
        for one in walk_statements((*statement.body, *statement.orelse), into_definitions=False)
    )


#: context managers that do not set the grad mode
_OTHERS = frozenset({"tqdm", "trange", "autocast", "open", "record_function", "Progress", "alive_bar"})
#: calls that enter a context manager
_ENTERS = frozenset({"enter_context", "__enter__", "_set_grad_enabled"})


def is_guarded(body: tuple[ir.Stmt, ...], name: str, model: str) -> bool:
    """Whether a parameter may affect how ``model`` runs other than by a test: the function assigns it (``optimizer =
    optimizer or SGD(..)``), it selects the context manager of a ``with`` (``with cm():``), or the call is an arm of a
    conditional expression that reads it."""
    statements = [*walk_statements(body, into_definitions=False)]
    if any(name in names_bound_by(statement) for statement in statements):
        return True
    chosen = {name}
    while True:
        more = _chosen(body, chosen)
        if more <= chosen:
            break
        chosen |= more
    for statement in statements:
        if isinstance(statement, ir.With) and any(_asks(item.context, chosen) for item in statement.items):
            return True
    if any(dotted(call.func).rsplit(".", 1)[-1] in _ENTERS for call in calls(body)):
        return True
    return any(_runs_on_a_side(statement, chosen, model) for statement in statements)


def _chosen(body: tuple[ir.Stmt, ...], names: set[str]) -> set[str]:
    """The names that are assigned from ``names``, or under a test that reads them."""
    found: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign | ir.AnnAssign | ir.AugAssign):
            bound = set(names_bound_by(statement))
            if statement.value is not None and (bound & names or reads_any(statement.value, names)):
                found |= bound
        elif isinstance(statement, ir.If) and reads_any(statement.test, names):
            for inner in walk_statements((*statement.body, *statement.orelse), into_definitions=False):
                found |= set(names_bound_by(inner))
    return found


def _asks(expr: ir.Expr, names: set[str]) -> bool:
    other = isinstance(expr, ir.Call) and dotted(expr.func).rsplit(".", 1)[-1] in _OTHERS
    return not other and reads_any(expr, names)


def _runs_on_a_side(statement: ir.Stmt, names: set[str], model: str) -> bool:
    value = getattr(statement, "value", None)
    if not isinstance(value, ir.Expr):
        return False
    return any(
        isinstance(part, ir.IfExp)
        and reads_any(part.test, names)
        and any(
            isinstance(call, ir.Call) and text(call.func, 200) == model
            for side in (part.body, part.orelse)
            for call in walk_expression(side)
        )
        for part in walk_expression(value)
    )
