"""What a test implies for the values in its branches."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.declared_values import as_declared
from memlint.analysis.domain.graphs import PICKED
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    ANYWHERE,
    BATCH,
    CONTAINER,
    DATA,
    LOADER,
    NONE,
    NONE_VALUE,
    SCALAR,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    V,
)
from memlint.analysis.syntax.bindings import assigned_names, mentions, names_bound_by, names_read, unpacked_targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, dotted, is_none, last_name, walk_expression, walk_statements
from memlint.analysis.transfer.heap import derive
from memlint.ir import nodes as ir


def last_case(tests: list[ir.Expr], test: ir.Expr) -> bool:
    """Whether an ``if`` is the last ``elif``, without ``else``, of a chain of comparisons of one expression with
    constants. Such a chain is meant to be exhaustive, so that the path on which no case holds is dropped."""
    before = tests[-1] if tests else None
    if not isinstance(before, ir.Unary) or not isinstance(test, ir.Compare) or test.ops != ("==",):
        return False
    first = before.operand
    return (
        isinstance(first, ir.Compare)
        and first.ops == ("==",)
        and isinstance(test.rights[0], ir.Const)
        and isinstance(first.rights[0], ir.Const)
        and text(first.left) == text(test.left)
    )


#: every tensor is a Variable since torch 0.4
_TENSOR_TYPES = frozenset({"Tensor", "Variable"})


def narrow(summary: Summary, state: State, test: ir.Expr, truth: bool) -> None:
    """Narrow the variables of a test in the branch where it is ``truth``: isinstance, is_tensor, is None, and
    combinations of them."""
    number = _number_by(test, truth)
    if number is not None:
        _narrow_to(state, number, DATA, True)
        return
    match test:
        case ir.Unary(op="not"):
            narrow(summary, state, test.operand, not truth)
        case ir.BoolOp():
            if (test.op == "and") == truth:
                narrow(summary, state, test.left, truth)
                narrow(summary, state, test.right, truth)
        case ir.Compare() if (
            len(test.ops) == 1 and isinstance(test.rights[0], ir.Const) and test.rights[0].kind == "None"
        ):
            if test.ops[0] in ("is", "==", "is not", "!="):
                _narrow_to(state, test.left, NONE, truth == (test.ops[0] in ("is", "==")))
        case ir.Compare(left=ir.Call() as left) if len(test.ops) == 1 and dotted(left.func) == "type" and left.args:
            named = dotted(test.rights[0]).rsplit(".", 1)[-1]
            if named in _TENSOR_TYPES and test.ops[0] in ("is", "==", "is not", "!="):
                _narrow_to(state, left.args[0], TENSOR, truth == (test.ops[0] in ("is", "==")))
        case ir.Name() if truth and test.id in state.env:
            value = state.env[test.id]
            if (rest := no_batch(value)) is not value and _is_member(summary, test.id):
                state.env[test.id] = rest
        case ir.Call() if isinstance(test.func, ir.Name | ir.Attr) and test.args:
            name = dotted(test.func)
            if name.endswith("is_tensor"):
                _narrow_to(state, test.args[0], TENSOR, truth)
            elif name == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ir.Const):
                if test.args[1].value in ("item", "detach", "backward", "grad_fn", "requires_grad", "cpu", "mean"):
                    _narrow_to(state, test.args[0], TENSOR, truth)
            elif name == "isinstance" and len(test.args) == 2:
                types = _types(test.args[1])
                names = [last_name(one) for one in types]
                if names[:1] == ["Variable"]:
                    names[0] = "Tensor"
                if truth and len(types) == 1 and _is_loader(summary, types[0]):
                    _narrow_to(state, test.args[0], LOADER, True)
                elif "Tensor" in names:
                    _narrow_to(state, test.args[0], TENSOR, truth)
                elif truth and len(types) == 1:
                    _narrow_to_class(summary, state, test.args[0], types[0])
        case _:
            pass


def narrow_branches(fn: FunctionState, state: State, other: State, statement: ir.If) -> None:
    """Narrow the variables of a test in its ``if``, and on the path around the body (``other``). An attribute becomes
    None there only where the body writes it (``if self.h is not None: self.h = self.h.detach()``): what is narrowed
    counts as written by the function."""
    narrow(fn, state, statement.test, True)
    narrow(fn, other, statement.test, False)
    pick_members(fn, state, statement.test, True)
    pick_members(fn, other, statement.test, False)
    left = _asked_for_value(statement.test)
    written = list(_without_value(statement, left)) if left is not None else []
    for one in written if left is not None and text(left) in map(text, written) else ():
        holders = fn.interpreter.evaluate(fn, other, one.value).syms
        other.sym.update((path.then(f".{one.name}"), NONE_VALUE) for path in holders if len(holders) == 1)


def _asked_for_value(test: ir.Expr) -> ir.Attr | None:
    """The attribute of which a test is whether it has a value: ``self.h is not None``, ``self.h``; None for another
    test."""
    if isinstance(test, ir.Attr):
        return test
    match test:
        case ir.Compare(left=ir.Attr() as left, ops=("is not" | "!=",), rights=(ir.Const(kind="None"),)):
            return left
        case _:
            return None


def _without_value(statement: ir.If, tested: ir.Attr) -> Iterator[ir.Attr]:
    """The attributes that the body of an ``if`` writes, and that have no value where its test is false if the tested
    one is among them: that one, and those that are cut beside it (``self.h, self.c = self.h.detach(),
    self.c.detach()``), which are set together. Where the test is of the attribute's truth, it has to be written by its
    own value: what is false may also be a flag or a number."""
    for one in statement.body:
        if isinstance(one, ir.Assign):
            cuts = any(last_name(call.func) == "detach" for call in calls((one,)))
            for part in unpacked_targets(one):
                asked, by_itself = text(part) == text(tested), mentions(one.value, text(part))
                if isinstance(part, ir.Attr) and (
                    (by_itself and (cuts or asked)) or (asked and statement.test is not tested)
                ):
                    yield part
        elif isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Call):
            func = one.value.func
            if isinstance(func, ir.Attr) and func.name == "detach_" and isinstance(func.value, ir.Attr):
                yield func.value


def pick_members(fn: FunctionState, state: State, test: ir.Expr, truth: bool) -> None:
    """Make the members of a dictionary that a test picks unknown parts of it, by the test (``for name, part in
    parts.items(): if name.startswith("loss"):``): what is known of these is not known of others. (What a test of types
    picks are the tensors.)"""
    loop = fn.loops[-1] if fn.loops else None
    if loop is None or not any(each in loop.loop.text for each in (".items()", ".values()")):
        return
    while isinstance(test, ir.Unary) and test.op == "not":
        test, truth = test.operand, not truth
    if _is_of_type(test) or names_read(test).isdisjoint(loop.targets):
        return
    picked = f"{PICKED}{'' if truth else 'not '}{text(test, 80)}]"
    for name in loop.targets & state.env.keys():
        if state.env[name].src:
            state.env[name] = derive(fn, state.env[name], picked)


def _is_of_type(test: ir.Expr) -> bool:
    """Whether a test is of a value's type, or for None."""
    if isinstance(test, ir.Compare):
        return any(map(is_none, test.rights))
    return isinstance(test, ir.Call) and last_name(test.func) in ("isinstance", "is_tensor")


def _number_by(test: ir.Expr, truth: bool) -> ir.Expr | None:
    """The expression that a test proves to be a number, text or array: ``isinstance(x, float)``, ``type(x) in (int,
    float)``, or a disjunction of such tests of one expression. None for another test."""
    match test:
        case ir.Unary(op="not"):
            return _number_by(test.operand, not truth)
        case ir.BoolOp() if (test.op == "or") == truth:
            one, other = _number_by(test.left, truth), _number_by(test.right, truth)
            return one if one is not None and other is not None and text(one) == text(other) else None
        case ir.Call() if truth and dotted(test.func) == "isinstance" and len(test.args) == 2:
            return test.args[0] if _are_numbers(test.args[1]) else None
        case ir.Compare(left=ir.Call() as left) if len(test.ops) == 1 and dotted(left.func) == "type" and left.args:
            same = ("==", "is", "in") if truth else ("!=", "is not", "not in")
            return left.args[0] if test.ops[0] in same and _are_numbers(test.rights[0]) else None
        case _:
            return None


#: types of what has no graph
_NUMBERS = frozenset({"float", "int", "str", "bool", "Number", "ndarray"})


def _are_numbers(types: ir.Expr) -> bool:
    names = [last_name(one) for one in _types(types)]
    return bool(names) and _NUMBERS.issuperset(names)


def _types(types: ir.Expr) -> tuple[ir.Expr, ...]:
    """The types in the second argument of isinstance: one, or those of a tuple."""
    return types.elements if isinstance(types, ir.Display) else (types,)


def asked_for_tensor(test: ir.Expr) -> ir.Expr | None:
    """The ``value`` of a test ``isinstance(value, Tensor)`` or ``is_tensor(value)``; None for another test."""
    if not isinstance(test, ir.Call) or not test.args:
        return None
    kind = dotted(test.args[1]).rsplit(".", 1)[-1] if len(test.args) == 2 else ""
    asks = dotted(test.func).endswith("is_tensor") or (dotted(test.func) == "isinstance" and kind in _TENSOR_TYPES)
    return test.args[0] if asks else None


def asked_member(test: ir.Expr, body: tuple[ir.Stmt, ...] = ()) -> str:
    """The text of the member that a test checks for being a tensor, ``args[i]``; "" for another test, or where the
    body rebinds a variable of it."""
    tested = asked_for_tensor(test)
    if not isinstance(tested, ir.Subscript):
        return ""
    names = names_read(tested)
    return "" if names & assigned_names(body)[0] else text(tested, 200)


def tells_tensors(test: ir.Expr, names: frozenset[str]) -> bool:
    """Whether a test checks whether one of these variables is a tensor."""
    tested = asked_for_tensor(test)
    return isinstance(tested, ir.Name) and tested.id in names


def _is_member(summary: Summary, name: str) -> bool:
    """Whether every binding of a variable takes a member out of something. A batch as a whole may be a dictionary,
    which does have a truth value."""
    binders = [one for one in walk_statements(summary.function.body, False) if name in names_bound_by(one)]
    return bool(binders) and all(isinstance(one, ir.Assign) and is_taken_out(one.value) for one in binders)


def is_taken_out(expr: ir.Expr) -> bool:
    """Whether an expression reads a member: ``batch["x"]``, ``batch.get("x")``, or either with an ``or`` behind."""
    if isinstance(expr, ir.BoolOp):
        return is_taken_out(expr.left)
    return isinstance(expr, ir.Subscript) or (isinstance(expr, ir.Call) and last_name(expr.func) in ("get", "pop"))


def no_batch(value: V) -> V:
    """The value without tensors of several elements, which have no truth value, where it is a member of a batch."""
    return no_tensor(value) if value.is_only(TREE) and value.size == BATCH and not value.src else value


def no_tensor(value: V) -> V:
    """The value that a test has proved to be no tensor."""
    return value.but(kinds=value.kinds & ~TENSORS or UNKNOWN, src=frozenset(), syms=frozenset())


def narrow_to_number(state: State, test: ir.Expr) -> None:
    """``if loss == 0.0: return loss``: narrow the compared variable to a number."""
    match test:
        case ir.Compare(left=ir.Name() as left, ops=("==",), rights=(ir.Const(kind="int" | "float"),)):
            _narrow_to(state, left, DATA, True)
        case _:
            pass


def _is_loader(summary: Summary, cls: ir.Expr) -> bool:
    kind, what = summary.analyser.program.find_expression(summary.module, cls, summary.function)
    return kind == "ext" and str(what).startswith("torch.utils.data.") and str(what).endswith("DataLoader")


def _narrow_to(state: State, expr: ir.Expr, kind: int, truth: bool) -> None:
    """Narrow a variable to a kind, or to its other kinds where ``truth`` is false."""
    if not isinstance(expr, ir.Name) or expr.id not in state.env:
        return
    value = state.env[expr.id]
    if truth and kind == TENSOR:
        state.env[expr.id] = value.but(kinds=TENSOR, objs=frozenset(), bare=value.bare)
    elif truth:
        state.env[expr.id] = V(kind, size=SCALAR, device=ANYWHERE)
    elif kind == TENSOR:
        state.env[expr.id] = no_tensor(value)
    else:
        state.env[expr.id] = value.but(kinds=value.kinds & ~kind or UNKNOWN)


def _narrow_to_class(summary: Summary, state: State, expr: ir.Expr, cls: ir.Expr) -> None:
    """Narrow a variable of which nothing is known to a module, or an object of the project's class."""
    value = state.env.get(expr.id) if isinstance(expr, ir.Name) else None
    if isinstance(expr, ir.Name) and value is not None and value.kinds & UNKNOWN:
        state.env[expr.id] = as_declared(summary, value, summary.analyser.annotated(summary.module, cls))


#: exceptions of a call of a tensor's method on a number
_NO_MEMBER = frozenset({"AttributeError", "TypeError"})
#: methods and attributes of every tensor
_OF_TENSORS = frozenset({"item", "detach", "cpu", "numpy", "tolist", "data", "clone", "float", "mean"})


def narrow_to_raised(state: State, body: tuple[ir.Stmt, ...], handler: ir.Handler) -> None:
    """``try: return x.item()``, ``except AttributeError:``: in the handler, ``x`` lacks the method, so it is no
    tensor."""
    tested = body[0].value if len(body) == 1 and isinstance(body[0], ir.Return | ir.Assign | ir.ExprStmt) else None
    if tested is None or handler.type is None:
        return
    caught = handler.type.elements if isinstance(handler.type, ir.Display) else (handler.type,)
    if any(dotted(one) not in _NO_MEMBER for one in caught):
        return
    parts = [part for part in walk_expression(tested) if isinstance(part, ir.Attr)]
    first = [part for part in parts if isinstance(part.value, ir.Name)]
    if len(first) == 1 and first[0].name in _OF_TENSORS and all(part.name in _OF_TENSORS for part in parts):
        _narrow_to(state, first[0].value, TENSOR, False)


def broken_number(test: ir.Expr, truth: bool = True) -> bool:
    """Whether a test holds for a value that is infinite or NaN: ``not torch.isfinite(loss)``."""
    match test:
        case ir.Unary(op="not"):
            return broken_number(test.operand, not truth)
        case ir.BoolOp():
            return broken_number(test.left, truth) or broken_number(test.right, truth)
        case ir.Call():
            inside = (test, test.func.value) if isinstance(test.func, ir.Attr) else (test,)
            names = {dotted(part.func).rsplit(".", 1)[-1] for part in inside if isinstance(part, ir.Call)}
            return bool(names & ({"isnan", "isinf"} if truth else {"isfinite"}))
        case _:
            return False


def leaves_numbers(fn: FunctionState, state: State, statement: ir.If) -> bool:
    """``if isinstance(value, Tensor): values[key] = value.item()`` in a loop over all of ``values``: whether the
    members for which the test is false have no graph."""
    loop = fn.loops[-1] if fn.loops else None
    if loop is None or not loop.replaces or not tells_tensors(statement.test, loop.targets):
        return False
    tested = asked_for_tensor(statement.test)
    left = state.env.get(tested.id) if isinstance(tested, ir.Name) else None
    return left is None or not (left.objs or left.kinds & CONTAINER)  # a list of tensors is no tensor, but holds graphs
