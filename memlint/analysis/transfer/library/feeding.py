"""Loops that feed the accelerator: they move an item of each round to the device.

An iterable whose items are moved one by one holds more than the device should: it is a data loader, under any name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from memlint.analysis.domain.bound_names import bindings
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import LOADER, UNKNOWN, V
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import names_bound_by, names_read, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import (
    calls,
    dotted,
    last_name,
    parts,
    parts_of,
    spreads,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.narrowing import tells_tensors
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: a single moved item may be an object with a ``to`` method of its own: the iterable's name must say that it is data
_SOURCE = lazy_pattern(
    r"loader|dataset|batch|iter|queue|stream|sampler|prefetch"
    r"|(^|[._(\s])(data|dl|val|test|train|images|frames|inputs|(image|img|audio|wav|video)_(paths|files|list))(?=\)*$|,)"
)
#: names of loaders among several, and of batch sizes
_LOADER = lazy_pattern(r"loader|dl$")
_BATCH = lazy_pattern(r"batch|(^|[._])bs$")
#: names of iterables over batches
_LOADS = lazy_pattern(r"loader|dataset|iter|queue|stream|sampler|prefetch|(^|[._])dl$")
_MOVES = frozenset({"cuda", "to", "xpu", "npu", "pin_memory"})
_HELPERS = (
    "to_device", "to_gpu", "to_cuda", "move_data_to_device", "send_to_device", "convert_tensor", "batch_to_device",
    "cudafy", "move_to",
)  # fmt: skip
_WRAPPERS = frozenset(
    {"tqdm", "enumerate", "zip", "iter", "islice", "track", "trange", "progress_bar", "auto_tqdm", "prefetch"}
)


@kept_for
def feeds_device(target: ir.Expr | None, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the body moves the loop's item (``target``), a slice of it, or a batch that it draws, to a device."""
    variables = names_read(target) if target is not None else frozenset[str]()
    return any(
        _moves(call, names) or _moves_slice(call, names) for call, names in _calls_with_items(variables, body, True)
    )


def feeds_by_callee(fn: FunctionState, state: State, target: ir.Expr | None, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the body passes the loop's item to a function of the project that moves this argument to a device:
    ``predict(model, batch)``, ``self.step(batch)``."""
    for call, names in _calls_with_items(names_read(target) if target is not None else frozenset(), body, True):
        given = [at for at, arg in enumerate(call.args) if _is_item(arg, names, names, True)]
        named = [word for word in call.keywords if _is_item(word.value, names, names, True)]
        callee = _callee(fn, state, call) if given or named else None
        if callee is None or spreads(call):
            continue
        taken = {callee.given[at].name for at in given if at < len(callee.given)} | {word.name for word in named}
        if any(param.name in taken and _moves_argument(callee.body, param.name) for param in callee.given):
            return True
    return False


def _callee(fn: FunctionState, state: State, call: ir.Call) -> Function | None:
    """The function that a call names, or the method of the one class that its receiver has; None for any other."""
    program = fn.analyser.program
    kind, what = program.find_expression(fn.module, call.func, fn.function)
    if kind == "function" or not isinstance(call.func, ir.Attr) or not dotted(call.func):
        return what if kind == "function" else None
    owner = fn.interpreter.evaluate(fn, fn.fork(state), call.func.value)
    classes = [cls for ref in owner.refs if ref.kind in ("instance", "class") and (cls := fn.analyser.cls(ref))]
    return program.method(classes[0], call.func.name) if len(classes) == 1 else None


@kept_for
def _moves_argument(body: tuple[ir.Stmt, ...], name: str) -> bool:
    """Whether a function's body moves its parameter, or a part of it, to a device. (What it goes through in a loop is
    a loader of its own.)"""
    return any(_moves(call, names) for call, names in _calls_with_items(frozenset((name,)), body, False))


def _calls_with_items(
    variables: frozenset[str], body: tuple[ir.Stmt, ...], drawn: bool
) -> Iterator[tuple[ir.Call, AbstractSet[str]]]:
    """The calls of a body, each with the names that stand for an item there: the variables, their parts and, if
    ``drawn``, what they index, their members in loops, and what is drawn from an iterator."""
    items: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign) and _is_item(statement.value, variables, items, drawn):
            items |= names_bound_by(statement)
        elif drawn and isinstance(statement, ir.For) and reads_any(statement.iter, variables | items):
            items |= names_read(statement.target)
        inside = list(parts_of(statement))
        for part in inside:
            for one in part.fors if drawn and isinstance(part, ir.Comprehension) else ():
                if reads_any(one.iter, variables | items):
                    items |= names_read(one.target)
        names = variables | items
        yield from ((part, names) for part in inside if isinstance(part, ir.Call))


def _is_item(value: ir.Expr, variables: AbstractSet[str], items: AbstractSet[str], drawn: bool) -> bool:
    """Whether a value is, or is computed from, an item; if ``drawn``, also ``data[i : i + size]`` and
    ``next(iterator)``."""
    for part in walk_expression(value):
        if isinstance(part, ir.Name) and part.id in items:
            return True
        if isinstance(part, ir.Subscript) and (
            _root(part.value) in variables or (drawn and reads_any(part.index, variables))
        ):
            return True
        if (
            drawn
            and isinstance(part, ir.Call)
            and (dotted(part.func) == "next" or dotted(part.func).endswith((".next", ".get_batch", ".next_batch")))
        ):
            return True
    return _root(value) in variables


def _root(expr: ir.Expr) -> str:
    """The variable that a chain of attributes, subscripts and conversions starts from; "" for none."""
    while True:
        match expr:
            case ir.Name():
                return expr.id
            case ir.Attr() | ir.Subscript() | ir.Starred():
                expr = expr.value
            case ir.Call(func=ir.Attr() as func) if dotted(func).startswith(("torch.", "np.", "numpy.")) and expr.args:
                expr = expr.args[0]
            case ir.Call(func=ir.Attr() as func):
                expr = func.value
            case ir.Call() if expr.args:
                expr = expr.args[0]
            case _:
                return ""


def _moves(call: ir.Call, names: AbstractSet[str]) -> bool:
    if isinstance(call.func, ir.Attr) and call.func.name in _MOVES:
        moved = _moved(call)
        return moved is not None and _root(moved) in names
    name = (call.func.name if isinstance(call.func, ir.Attr) else dotted(call.func)).lower()
    return any(word in name for word in _HELPERS) and any(_root(arg) in names for arg in call.args)


def _moved(call: ir.Call) -> ir.Expr | None:
    """What a call moves to a device: ``x`` of ``x.cuda()``; None if it moves nothing by a method of the value."""
    if not isinstance(call.func, ir.Attr) or call.func.name not in _MOVES:
        return None
    return None if call.func.name == "to" and not _to_device(call) else call.func.value


def _moves_slice(call: ir.Call, names: AbstractSet[str]) -> bool:
    """Whether a call moves a slice of an array by the loop's variable: ``torch.from_numpy(data[i : i + n]).cuda()``."""
    moved = _moved(call)
    inner = moved.args[0] if isinstance(moved, ir.Call) and moved.args else moved
    return isinstance(inner, ir.Subscript) and reads_any(inner.index, names)


def _to_device(call: ir.Call) -> bool:
    """Whether ``to`` gets a device, not only a dtype."""
    shown = [dotted(arg) for arg in call.args] + [dotted(word.value) for word in call.keywords if word.name == "device"]
    return bool(call.args or call.keywords) and not all(name.startswith("torch.") for name in shown)


#: calls that make a tensor of an array's rows
_OF_ARRAY = frozenset({"from_numpy", "as_tensor", "tensor", "FloatTensor", "LongTensor", "Tensor", "cuda", "to"})


@functools.lru_cache(maxsize=4096)
def cuts_rows(counters: frozenset[str], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a loop over numbers makes tensors of rows of an array: ``torch.from_numpy(rows[i : i + size])``."""
    return any(
        dotted(call.func).rsplit(".", 1)[-1] in _OF_ARRAY
        and any(
            isinstance(operand, ir.Subscript) and reads_any(operand.index, counters)
            for operand in (*call.args, *((call.func.value,) if isinstance(call.func, ir.Attr) else ()))
        )
        for call in calls(body)
    )


#: methods and functions that draw a batch from a replay memory
_DRAWS = frozenset({"sample", "sample_batch", "choices"})
#: the least members of a transition: a state, an action and a reward
_TRANSITION = 3


def gives_transitions(body: tuple[ir.Stmt, ...], iterable: ir.Expr, target: ir.Expr) -> bool:
    """Whether a loop runs over the transitions of one batch: ``for state, action, reward in random.sample(memory,
    32)``."""
    if not isinstance(target, ir.Display) or len(target.elements) < _TRANSITION:
        return False
    made = [value for value, _ in bindings(body).get(dotted(iterable), [])] or [iterable]
    return all(isinstance(one, ir.Call) and last_name(one.func) in _DRAWS for one in made)


def names_source(shown: str) -> bool:
    """Whether an expression is named like a source of data."""
    return _SOURCE.search(shown.lower()) is not None


def names_loader(iterable: ir.Expr) -> bool:
    """Whether an iterable is named like one loader."""
    return dotted(_unwrapped(iterable)).lower().endswith(("loader", "dl"))


def _unwrapped(iterable: ir.Expr) -> ir.Expr:
    """The iterable within ``tqdm(enumerate(loader))``."""
    while isinstance(iterable, ir.Call) and dotted(iterable.func).rsplit(".", 1)[-1] in _WRAPPERS and iterable.args:
        iterable = iterable.args[0]
    return iterable


def gives_loaders(targets: AbstractSet[str], body: tuple[ir.Stmt, ...]) -> bool:
    """Whether each round is given a loader, over which an inner loop runs, instead of a batch."""
    loaders = {name for name in targets if _LOADER.search(name)}
    return bool(loaders) and any(
        isinstance(statement, ir.For)
        and isinstance(inner := _unwrapped(statement.iter), ir.Name)
        and inner.id in loaders
        for statement in walk_statements(body, into_definitions=False)
    )


def gives_arguments(iterable: ir.Expr, target: ir.Expr, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether each round tests whether its item is a tensor: the iterable holds the arguments of a call or the
    members of one batch, unless its name says that it loads data."""
    if not isinstance(target, ir.Name) or _LOADS.search(text(_unwrapped(iterable)).lower()):
        return False
    return any(
        tells_tensors(part, frozenset({target.id}))
        for statement in body
        if isinstance(statement, ir.If)
        for part in walk_expression(statement.test)
    )


def cuts_batches(iterable: ir.Expr, target: ir.Expr, body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a loop slices batches: ``for i in range(0, len(rows), batch_size)``, with a slice that begins at
    ``i``."""
    steps = _unwrapped(iterable)
    if not isinstance(steps, ir.Call) or dotted(steps.func).rsplit(".", 1)[-1] not in ("range", "trange"):
        return False
    if len(steps.args) != 3 or not _BATCH.search(text(steps.args[2]).lower()):
        return False
    names = names_read(target)
    return any(
        isinstance(part, ir.Slice) and part.lower is not None and reads_any(part.lower, names) for part in parts(body)
    )


def assume_loader(fn: FunctionState, state: State, iterable: ir.Expr, target: ir.Expr) -> bool:
    """Take the iterable for a loader, where nothing else is known of it; whether it was."""
    iterable = _unwrapped(iterable)
    names = names_read(target)
    if names & fn.modules_by_use or not (isinstance(target, ir.Display) or names_source(dotted(iterable))):
        return False
    if isinstance(iterable, ir.Name):
        value = state.env.get(iterable.id)
        # inside a loop, an earlier round has taken it for one; tensors in a list may have a graph of the round before
        assumed = UNKNOWN | LOADER if names_source(dotted(iterable)) else UNKNOWN
        if value is not None and value.kinds & UNKNOWN and value.is_only(assumed):
            state.env[iterable.id] = V(LOADER, syms=value.syms, device=value.device)
            return True
    return False
