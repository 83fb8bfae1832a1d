"""How tensors that a loop collects are used, in the function and in its callers."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.summary.effects import ModelRun, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Sources
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.bindings import mentions, names_bound_by, names_read, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    bodies,
    calls,
    calls_backward,
    calls_named,
    dotted,
    expressions,
    is_true,
    parts,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: calls that show pictures, which do not take a whole data set
_PICTURES = frozenset({"save_image", "make_grid", "add_image", "add_images", "imshow", "imsave"})
#: products of two tensors: of a sample with all that was collected
_AGAINST_ALL = frozenset({"mm", "matmul", "bmm", "addmm", "baddbmm", "einsum", "cdist", "inner", "tensordot"})
#: methods whose result is on the host
TO_HOST = frozenset({"cpu", "numpy", "tolist", "item"})
#: functions of numpy that turn their argument, or each member of it, into an array
_MAKE_ARRAYS = frozenset({"array", "asarray", "concatenate", "stack", "vstack", "hstack"})
_ARRAYS = frozenset(f"{numpy}.{name}" for numpy in ("np", "numpy") for name in _MAKE_ARRAYS)


#: how many callers up a returned collection is followed
_UP = 2


def trained_on(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the collection, or what is built from it, is used in a later training loop or closure: in this
    function, in a callee that receives it, or in a caller. It is training data then, which is needed on the device."""
    return any(_trained_on(analyser, *held) for held in holders(analyser, summary, store))


class Held(NamedTuple):
    """The names of a collection in one function, from a statement on."""

    summary: Summary
    names: set[str]
    since: int


def holders(analyser: Analyser, summary: Summary, store: Store) -> Iterator[Held]:
    """The function that collects into a local container, and the callers to which it returns the container."""
    if not store.local:
        return
    held = [Held(summary, made_from(summary, {_holder(store)}), store.site.at)]
    for _ in range(_UP + 1):
        yield from held
        held = [other for one in held for other in _returned_to(analyser, one)]


def _returned_to(analyser: Analyser, held: Held) -> Iterator[Held]:
    """The callers that assign a returned collection to variables."""
    statements = walk_statements(held.summary.function.body, into_definitions=False)
    if not any(
        isinstance(one, ir.Return) and one.value is not None and mention(one.value, held.names) for one in statements
    ):
        return
    for caller, record in analyser.facts.calls_of(held.summary.function):
        assigns = _assigns(caller.function.body)
        # a part of a statement has a higher ordinal than the statement
        last = bisect.bisect_right(assigns, record.at, key=_at)
        statement = assigns[last - 1] if last else None
        if statement is not None and any(part.at == record.at for part in walk_expression(statement.value)):
            names = set(names_bound_by(statement) - {"_"})
            yield Held(caller, made_from(caller, names), statement.at)


@kept
def _assigns(body: tuple[ir.Stmt, ...]) -> tuple[ir.Assign, ...]:
    """The assignments of a body, in source order."""
    return tuple([one for one in walk_statements(body, into_definitions=False) if isinstance(one, ir.Assign)])


def _at(statement: ir.Stmt) -> int:
    return statement.at


def _trained_on(analyser: Analyser, summary: Summary, names: set[str], since: int) -> bool:
    """Whether a training loop or closure after ``since``, or a callee that may train, reads one of the names."""
    loops = {loop for backward in summary.backwards for loop in backward.loops}
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if statement.at <= since:
            continue
        if isinstance(statement, ir.For | ir.While):
            trains = ("loop", statement.at) in loops
        elif isinstance(statement, ir.FunctionDef):
            trains = calls_backward(statement.body)
        else:
            continue
        if trains and _reads(statement.body, names):
            return True
    training_calls = {record.at for record in summary.calls.values() if _trains(analyser, record.callee)}
    return bool(training_calls) and any(
        call.at in training_calls and any(mention(arg, names) for arg in call.passed)
        for call in calls(summary.function.body)
    )


def _reads(body: tuple[ir.Stmt, ...], names: AbstractSet[str]) -> bool:
    """Whether a body reads one of the variables before it rebinds it. (An evaluation in each epoch and one before the
    first often bind the same names, without a read in between.)"""
    unbound = set(names)
    #: by test, the names that were rebound where it held (``if rank == 0:``, which may be tested again)
    rebound_under: dict[str, set[str]] = {}
    for statement in body:
        if isinstance(statement, ir.If):  # the test itself reads a number at most
            rebound = rebound_under.setdefault(text(statement.test, 200), set())
            if _reads(statement.body, unbound - rebound) or _reads(statement.orelse, unbound):
                return True
            rebound.update(*(names_bound_by(one) for one in statement.body if isinstance(one, ir.Assign)))
            continue
        own = (statement.value, *_places(statement.targets)) if isinstance(statement, ir.Assign) else None
        if any(reads_any(expr, unbound) for expr in own or expressions(statement)):
            return True
        if isinstance(statement, ir.Assign):
            unbound -= names_bound_by(statement)
        elif any(_reads(block, unbound) for block in bodies(statement)):
            return True
    return False


def _places(targets: tuple[ir.Expr, ...]) -> Iterator[ir.Expr]:
    """The targets that are no variables."""
    for target in targets:
        if isinstance(target, ir.Display):
            yield from _places(target.elements)
        elif not isinstance(target, ir.Name):
            yield target


def _trains(analyser: Analyser, callee: tuple[str, str]) -> bool:
    summary = analyser.summary(analyser.function_at(callee))
    return summary is not None and summary.may_train


def is_multiplied(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether other tensors are multiplied with the whole collection, here, in a callee that receives it, or in a
    caller: a bank of features, which is needed on the device."""
    return any(_is_multiplied_in(analyser, held.summary, held.names) for held in holders(analyser, summary, store))


def _is_multiplied_in(analyser: Analyser, summary: Summary, names: set[str]) -> bool:
    """Whether a function, or a callee that receives one of the names, multiplies it with something."""
    names = _with_holders(summary, names)
    if _is_multiplied(summary.function, names):
        return True
    known = {call.at: call for call in calls(summary.function.body)}
    for record in summary.calls.values():
        call, callee = known.get(record.at), analyser.function_at(record.callee)
        if call is None or callee is None:
            continue
        parameters = given_as(callee, call, lambda arg: mention(arg, names))
        if parameters and _is_multiplied(callee, parameters):
            return True
    return False


def given_as(callee: Function, call: ir.Call, is_meant: Callable[[ir.Expr], bool]) -> set[str]:
    """The parameters whose arguments satisfy ``is_meant``."""
    params = callee.params[callee.takes_self :]
    parameters = {param.name for param, arg in zip(params, call.args, strict=False) if is_meant(arg)}
    return parameters | {word.name for word in call.keywords if word.name is not None and is_meant(word.value)}


def _is_multiplied(function: Function, names: set[str]) -> bool:
    """Whether a function multiplies one of the names with something."""
    return any(
        len(operands) > 1 and any(mention(one, names) for one in operands)
        for part in parts(function.body)
        for operands in (_multiplied(part),)
    )


def _multiplied(part: ir.Expr) -> tuple[ir.Expr, ...]:
    """The operands of ``a @ b``, ``torch.mm(a, b)`` and ``a.mm(b)``."""
    if isinstance(part, ir.Binary) and part.op == "@":
        return (part.left, part.right)
    if not isinstance(part, ir.Call) or dotted(part.func).rsplit(".", 1)[-1] not in _AGAINST_ALL:
        return ()
    return (part.func.value, *part.args) if isinstance(part.func, ir.Attr) else part.args


def ends_in_picture(summary: Summary, store: Store) -> bool:
    """Whether a collection of a loop that runs over no data ends in a picture."""
    if not store.local or store.loop is None or store.loop.loop.over == "loader":
        return False
    shown = calls_named(summary.function.body, _PICTURES)
    names = made_from(summary, {_holder(store)}) if shown else set()
    return any(mention(arg, names) for call in shown for arg in call.args)


def becomes_array(summary: Summary, store: Store) -> bool:
    """Whether numpy makes an array of the stored value or of the whole collection, which raises for a tensor with a
    graph or on an accelerator."""
    if store.kind != "retain" or not store.local:
        return False
    body = summary.function.body
    for call in calls_named(body, _MAKE_ARRAYS):
        if not call.args or dotted(call.func) not in _ARRAYS:
            continue
        argument = call.args[0]
        taken = [argument] if text(argument) == store.place_text else []
        if isinstance(argument, ir.Display):
            taken += [one for one in argument.elements if text(one) == store.text]
        if any(not _bound_between(body, names_read(one), store.site.at, call.at) for one in taken):
            return True
    return False


def _bound_between(body: tuple[ir.Stmt, ...], names: AbstractSet[str], store: int, call: int) -> bool:
    """Whether one of these variables gets another value between a store and a call, whichever comes first."""
    first, last = min(store, call), max(store, call)
    between = [one for one in walk_statements(body, into_definitions=False) if first < one.at < last]
    if last == call and between:
        del between[-1]  # the statement of the call itself: ``rows = np.stack(rows)``
    return any(not names.isdisjoint(names_bound_by(one)) for one in between)


def proved_free(summary: Summary, sources: Sources, tests: tuple[ir.Expr, ...]) -> bool:
    """Whether these graphs do not exist wherever ``tests`` hold, since a call of ``numpy()``, which raises for a
    tensor with a graph, takes a value that is surely computed from them. (An unresolved call may return a metric
    beside the loss, which proves nothing.)"""
    nodes = {source for source in sources if source in summary.graphs.nodes}
    return bool(nodes) and any(
        all(test in tests for test in around) and nodes <= summary.graphs.sure(taken)
        for taken, around, _ in summary.notes.arrays
    )


def gives_no_graph(summary: Summary, run: ModelRun) -> bool:
    """Whether numpy() takes the output of a run wherever it runs, so that the run recorded nothing. A call in one
    branch is no proof where the output is unpacked: indices beside scores have no graph of their own."""
    nodes = frozenset((run.node,))
    return proved_free(summary, nodes, ()) or (
        bool(run.tests)
        and proved_free(summary, nodes, run.tests)
        and not any(is_unpacked(one, run) for one in walk_statements(summary.function.body, into_definitions=False))
    )


def may_give_no_graph(summary: Summary, run: ModelRun) -> bool:
    """Whether numpy() takes the output of a run where some test holds."""
    return any(run.node in summary.graphs.sure(taken) for taken, *_ in summary.notes.arrays)


def is_unpacked(statement: ir.Stmt, run: ModelRun) -> bool:
    """Whether a statement unpacks the output of this run: ``scores, indices = model(x)``."""
    return (
        isinstance(statement, ir.Assign)
        and any(isinstance(target, ir.Display) for target in statement.targets)
        and any(part.at == run.site.at for part in walk_expression(statement.value))
    )


def is_moved_later(summary: Summary, store: Store) -> bool:
    """Whether the function later moves the whole collection to the host (``torch.cat(rows).cpu()``,
    ``rows.numpy(force=True)``), so that it is on the device until then."""
    if not store.local or store.loop is None:
        return False
    names = {_holder(store)}
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if statement.at <= store.site.at:
            continue
        for part in parts_of(statement):
            if isinstance(part, ir.Call) and _moves(part) and _joined(part, names):
                return True
        if isinstance(statement, ir.Assign) and _joined(statement.value, names):
            names |= names_bound_by(statement) - {"_"}
    return False


def _holder(store: Store) -> str:
    """The variable that holds the collection: ``rows`` of ``rows["a"]``."""
    return store.place_text.partition("[")[0]


def _moves(call: ir.Call) -> bool:
    """Whether a call moves a tensor to the host, ``x.cpu()`` or ``x.numpy(force=True)``, so that it is not there
    yet."""
    forced = any(word.name == "force" and is_true(word.value) for word in call.keywords)
    return isinstance(call.func, ir.Attr) and (call.func.name == "cpu" or (call.func.name == "numpy" and forced))


def _joined(expr: ir.Expr, names: set[str]) -> bool:
    """Whether an expression uses the whole collection, not a member of it."""
    members = (part.value for part in walk_expression(expr) if isinstance(part, ir.Subscript))
    return mention(expr, names) and not any(isinstance(one, ir.Name) and one.id in names for one in members)


def made_from(summary: Summary, names: set[str]) -> set[str]:
    """The names of the containers, and of what is built from their members and stays on the device."""
    for statement in walk_statements(summary.function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and mention(statement.value, names):
            bound = names_bound_by(statement) - {"_"}
            names = names - bound if goes_to_host(statement.value) else names | bound
    return names


def _with_holders(summary: Summary, names: set[str]) -> set[str]:
    """The names, and those of the containers into which they are put."""
    puts = (_put_into(statement) for statement in walk_statements(summary.function.body, into_definitions=False))
    into = {put.holder for put in puts if put and mention(put.value, names) and not goes_to_host(put.value)}
    return made_from(summary, names | into)


class _Put(NamedTuple):
    """A variable that holds a container, and a value that is put into it."""

    holder: str
    value: ir.Expr


def _put_into(statement: ir.Stmt) -> _Put | None:
    """The container and the value of ``banks.append(bank)`` or ``banks[task] = bank``; None for another statement."""
    match statement:
        case ir.ExprStmt(value=ir.Call(func=ir.Attr(value=ir.Name(id=holder), name=name), args=(*_, value))):
            return _Put(holder, value) if name in ("append", "extend", "insert") else None
        case ir.Assign(targets=(ir.Subscript(value=ir.Name(id=holder)),), value=value):
            return _Put(holder, value)
    return None


def goes_to_host(expr: ir.Expr) -> bool:
    """Whether an expression calls a method whose result is on the host: ``torch.cat(rows).cpu()``, ``rows.numpy()``."""
    return any(
        isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.name in TO_HOST
        for part in walk_expression(expr)
    )


def mention(expr: ir.Expr, names: AbstractSet[str]) -> bool:
    """Whether an expression reads one of these names."""
    return any(mentions(expr, name) for name in names)
