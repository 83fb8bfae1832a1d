"""Transfer functions of expressions: the abstract value of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlint.analysis.domain.literal_values import constant
from memlint.analysis.domain.state import State, join_effects, join_states
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import tensor_op
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    CONTAINER,
    CPU,
    DATA,
    DATA_VALUE,
    INSTANCE,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    PER_BATCH,
    SAMPLE,
    SCALAR,
    TENSOR,
    TENSORS,
    UNKNOWN,
    UNKNOWN_VALUE,
    V,
    join,
    join_all,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, walk_expression
from memlint.analysis.transfer import comprehensions, containers, function_tables
from memlint.analysis.transfer.heap import elements_of, make, read_item
from memlint.analysis.transfer.library import extent_ops
from memlint.analysis.transfer.modules.flags import truth
from memlint.analysis.transfer.narrowing import asked_member, is_taken_out, narrow, no_batch, no_tensor
from memlint.analysis.transfer.reading import read_attribute
from memlint.analysis.transfer.scope import known_by_use, lookup
from memlint.analysis.transfer.signatures import only_method
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


def evaluate(fn: FunctionState, state: State, expr: ir.Expr) -> V:
    """The value of an expression; ``state`` takes its effects."""
    fn.spent += 1
    if fn.spent > fn.BUDGET or fn.depth > 120:
        fn.cut_short = True
        return UNKNOWN_VALUE
    # an exception ends the interpretation of the function: the depth need not be restored
    fn.depth += 1
    value = _DISPATCH[type(expr)](fn, state, expr)
    fn.depth -= 1
    return value


def _name(fn: FunctionState, state: State, expr: ir.Name) -> V:
    return lookup(fn, state, expr.id)


def _attr(fn: FunctionState, state: State, expr: ir.Attr) -> V:
    base = evaluate(fn, state, expr.value)
    found = read_attribute(fn, state, base, expr.name)
    if found.kinds & UNKNOWN and fn.modules_by_use:
        found = known_by_use(fn, dotted(expr), found)
    return containers.bound_method(base, expr) if containers.binds(base, expr.name, found) else found


def _call(fn: FunctionState, state: State, expr: ir.Call) -> V:
    return fn.interpreter.evaluate_call(fn, state, expr)


def _subscript(fn: FunctionState, state: State, expr: ir.Subscript) -> V:
    base = evaluate(fn, state, expr.value)
    index = evaluate(fn, state, expr.index)
    if index.const == 0 and isinstance(expr.value, ir.Attr) and expr.value.name == "data" and base.is_only(TENSORS):
        return V(TENSOR, size=SCALAR, device=base.device)  # ``loss.data[0]``, the ``item()`` of old torch
    if (network := function_tables.of_package(fn, state, expr.value)).kinds:
        return network
    if not base.objs and isinstance(expr.value, ir.Name | ir.Attr) and base.may_be(CONTAINER | UNKNOWN):
        found = function_tables.entries(fn, expr.value, index.const)
        if found.kinds:
            return found
    found = _item_by_method(fn, state, base, index, expr) or read_item(fn, state, base, index, expr)
    return no_tensor(found) if fn.no_tensors and text(expr, 200) in fn.no_tensors else found


def _item_by_method(fn: FunctionState, state: State, base: V, index: V, expr: ir.Subscript) -> V | None:
    """The result of the project's own ``__getitem__``; None where the object's classes define none or several, and
    for tensors, containers and modules."""
    if not base.refs or base.kinds & (TENSORS | CONTAINER | MODULE) or not base.objs:
        return None
    method = only_method(fn, base, "__getitem__")
    if method is None:
        return None
    return fn.interpreter.call_function(fn, state, method, [base, index], {}, expr.at, None)


def _slice(fn: FunctionState, state: State, expr: ir.Slice) -> V:
    for part in (expr.lower, expr.upper, expr.step):
        if part is not None:
            evaluate(fn, state, part)
    return DATA_VALUE


def _binary(fn: FunctionState, state: State, expr: ir.Binary) -> V:
    # a chain of binary operators is walked in a loop, not by recursion: generated code has thousands of terms
    chain = [expr]
    while isinstance(chain[-1].left, ir.Binary):
        chain.append(chain[-1].left)
    left = evaluate(fn, state, chain[-1].left)
    for item in reversed(chain):
        left = apply_binary(fn, state, item, left, evaluate(fn, state, item.right))
    return left


def apply_binary(fn: FunctionState, state: State, expr: ir.Binary, left: V, right: V) -> V:
    """The value of a binary operation on two values: by the operands' own operators, on texts, containers, numbers
    or tensors."""
    fn.operands[expr.at] = (left, right)
    added = _by_operator(fn, state, expr, left, right)
    if added is not None:
        return added
    if expr.op == "%" and isinstance(left.const, str):
        return DATA_VALUE  # formatted text
    if expr.op == "+":
        left, right = _text_added(state, expr.left, left, right), _text_added(state, expr.right, right, left)
    if expr.op == "*" and (isinstance(expr.left, ir.Display) or isinstance(expr.right, ir.Display)):
        many = left if left.may_be(CONTAINER) else right
        if many.is_only(CONTAINER | DATA) and many.objs:  # ``[0] * len(names)``
            return make(fn, state, expr.at, "list", elements_of(fn, state, many))
    if expr.op == "+" and left.is_only(CONTAINER | DATA) and left.objs and right.kinds & TENSORS:
        # a model's output is added to a list
        return make(fn, state, expr.at, "list", join(elements_of(fn, state, left), right))
    if (left.may_be(CONTAINER) and right.may_be(CONTAINER | UNKNOWN)) or (
        right.may_be(CONTAINER) and left.is_only(CONTAINER | UNKNOWN)
    ):
        if expr.op == "+":
            joined = _concatenated(fn, state, expr, left, right)
            if joined is not None:
                return joined
            return make(fn, state, expr.at, "list", join(elements_of(fn, state, left), elements_of(fn, state, right)))
        return left if left.may_be(CONTAINER) else right
    if left.is_only(DATA | NONE) and right.is_only(DATA | NONE):
        return V(DATA, left.src | right.src, size=SCALAR)
    result = tensor_op(fn, state, expr.at, [left, right], text(expr), what=text(expr))
    if not result.kinds & TENSORS:
        return result
    product = extent_ops.multiplied(left.extent, right.extent) if expr.op == "@" else None
    return result.but(extent=product if expr.op == "@" else extent_ops.combined([left, right]))


#: the methods by which a class of the project may define an operator
_OPERATORS = {"+": "__add__", "-": "__sub__", "|": "__or__"}


def _by_operator(fn: FunctionState, state: State, expr: ir.Binary, left: V, right: V) -> V | None:
    """The result of the left operand's own operator method (``__add__``); None where its class defines none."""
    if not left.refs or not left.kinds & INSTANCE or left.kinds & ~(INSTANCE | CONTAINER):
        return None
    method = only_method(fn, left, _OPERATORS.get(expr.op, ""))
    if method is None:
        return None
    shown = ir.Call(expr.at, ir.Attr(expr.at, expr.left, method.name), (expr.right,), ())
    return fn.interpreter.call_function(fn, state, method, [left, right], {}, expr.at, shown)


def _text_added(state: State, expr: ir.Expr, value: V, other: V) -> V:
    """``"answer: " + reply``: what is added to a text is a text."""
    if not isinstance(other.const, str) or not other.is_only(DATA) or value.is_only(DATA):
        return value
    if isinstance(expr, ir.Name) and expr.id in state.env:
        state.env[expr.id] = DATA_VALUE
    return DATA_VALUE


def _concatenated(fn: FunctionState, state: State, expr: ir.Binary, left: V, right: V) -> V | None:
    """The list ``[loss] + states``, where the members of the left operand keep their positions; None where they have
    none."""
    if not left.is_only(CONTAINER | DATA) or not right.is_only(CONTAINER | DATA):
        return None
    if len(left.objs) != 1 or len(right.objs) != 1:
        return None
    first, second = (state.heap.get(next(iter(side.objs))) for side in (left, right))
    if first is None or second is None or first.kind not in ("tuple", "list") or not first.fields or first.elem.kinds:
        return None
    fields = {str(at): item for at, item in enumerate(first.ordered)}
    if not second.elem.kinds and second.kind in ("tuple", "list"):
        fields.update({str(len(fields) + at): item for at, item in enumerate(second.ordered)})
        return make(fn, state, expr.at, first.kind, NOTHING, fields)
    return make(fn, state, expr.at, first.kind, elements_of(fn, state, right), fields)


def _unary(fn: FunctionState, state: State, expr: ir.Unary) -> V:
    value = evaluate(fn, state, expr.operand)
    if expr.op == "not":
        return DATA_VALUE
    if isinstance(expr.operand, ir.Const) and isinstance(value.const, (int, float)) and expr.op == "-":
        return V(DATA, size=SCALAR, const=-value.const)
    return tensor_op(fn, state, expr.at, [value], text(expr), what=text(expr)).but(extent=value.extent)


def _boolop(fn: FunctionState, state: State, expr: ir.BoolOp) -> V:
    left = evaluate(fn, state, expr.left)
    if expr.op == "or" and is_taken_out(expr.left):
        left = no_batch(left)
    calling = any(isinstance(part, ir.Call) for part in walk_expression(expr.right))
    skipped = fn.fork(state) if calling else None
    right = evaluate(fn, state, expr.right)
    if skipped is not None:
        join_effects(skipped, state)
    return join(left, right)


def _compare(fn: FunctionState, state: State, expr: ir.Compare) -> V:
    values = [evaluate(fn, state, expr.left), *(evaluate(fn, state, right) for right in expr.rights)]
    for value in values:
        fn.used |= value.src
    if any(value.may_be(TENSORS | UNKNOWN) for value in values) and not any(
        op in ("is", "is not", "in", "not in") for op in expr.ops
    ):
        # element-wise: a tensor of booleans, which never carries a graph
        biggest = max(values, key=lambda value: value.size if value.may_be(TENSORS) else -1)
        kinds = TENSOR if any(value.may_be(TENSORS) for value in values) else DATA | TENSOR
        size = min(biggest.size, SAMPLE) if biggest.may_be(TENSORS) else SCALAR
        return V(kinds, size=size, device=biggest.device, extent=extent_ops.compared(values))
    return DATA_VALUE


#: tests of what hardware the machine has or may use
_AVAILABLE = lazy_pattern(r"cuda|gpu|device|accelerat|mps|xpu|is_available")


def _ifexp(fn: FunctionState, state: State, expr: ir.IfExp) -> V:
    evaluate(fn, state, expr.test)
    known = truth(fn, state, expr.test)
    if known is not None:
        return evaluate(fn, state, expr.body if known else expr.orelse)
    yes, no = fn.fork(state), fn.fork(state)
    narrow(fn, yes, expr.test, True)
    narrow(fn, no, expr.test, False)
    left = evaluate(fn, yes, expr.body)
    fn.no_tensors.append(asked_member(expr.test))
    right = evaluate(fn, no, expr.orelse)
    fn.no_tensors.pop()
    nothing = tested_for_none(expr)
    left, right = (NONE_VALUE if nothing is True else left), (NONE_VALUE if nothing is False else right)
    env = state.env
    merged = join_states(yes, no)
    assert merged is not None
    state.take(merged)
    state.env = {
        **merged.env,
        **{name: value for name, value in env.items() if name in merged.env and not isinstance(expr.body, ir.Walrus)},
    }
    devices = left.is_only(DATA) and right.is_only(DATA) and {left.device, right.device} == {CPU, ACCELERATOR}
    if devices and not _AVAILABLE.search(text(expr.test, 200).lower()):
        # a free choice of device; a test of the hardware instead means the accelerator
        return join(left, right).but(device=ANYWHERE)
    if not_a_tensor(expr):
        right = V(right.kinds & ~TENSORS or DATA, size=SCALAR)
    return join(left, right)


def tested_for_none(expr: ir.IfExp) -> bool | None:
    """The branch whose value the test has found to be None (``x if x is None else x.detach()``): True for the first,
    False for the second, None for neither. (Narrowing covers variables alone; this covers attributes.)"""
    test = expr.test
    if not isinstance(test, ir.Compare) or len(test.ops) != 1 or test.ops[0] not in ("is", "is not"):
        return None
    if not isinstance(test.rights[0], ir.Const) or test.rights[0].kind != "None":
        return None
    first = test.ops[0] == "is"
    return first if text(expr.body if first else expr.orelse, 200) == text(test.left, 200) else None


def not_a_tensor(expr: ir.IfExp) -> bool:
    """Whether the else branch is no tensor: ``x.item() if hasattr(x, "item") else x``, ``x.item() if learned else
    x``."""
    test, number = expr.test, expr.body
    if isinstance(number, ir.Call) and isinstance(number.func, ir.Attr) and number.func.name == "item":
        return text(number.func.value, 200) == text(expr.orelse, 200)
    if not isinstance(test, ir.Call) or not test.args or text(test.args[0], 200) != text(expr.orelse, 200):
        return False
    name = text(test.func)
    if name == "isinstance" and len(test.args) == 2:
        return text(test.args[1]).endswith("Tensor")
    return name.endswith("is_tensor") or (
        name == "hasattr" and isinstance(test.args[1], ir.Const) and test.args[1].value in ("item", "detach")
    )


#: longest list whose members are known by position
_MAX_POSITIONS = 8


def _display(fn: FunctionState, state: State, expr: ir.Display) -> V:
    values = []
    for item in expr.elements:
        if isinstance(item, ir.Starred):
            values.append(elements_of(fn, state, evaluate(fn, state, item.value)))
        else:
            values.append(evaluate(fn, state, item))
    starred = any(isinstance(item, ir.Starred) for item in expr.elements)
    positions = {str(at): value for at, value in enumerate(values)} if not starred else {}
    if expr.kind == "tuple" and not starred:
        plain = all(value.is_only(DATA | NONE) for value in values)
        made = make(fn, state, expr.at, "tuple", join_all(values) if plain else NOTHING, positions)
        return V(DATA | CONTAINER, size=SCALAR, objs=made.objs) if plain else made
    if expr.kind == "list" and 0 < len(positions) <= _MAX_POSITIONS:
        return make(fn, state, expr.at, "list", NOTHING, positions)
    return make(fn, state, expr.at, expr.kind, join_all(values))


def _dict(fn: FunctionState, state: State, expr: ir.DictDisplay) -> V:
    fields: dict[str, V] = {}
    rest = NOTHING
    for key, item in zip(expr.keys, expr.values, strict=True):
        value = evaluate(fn, state, item)
        if key is None:
            rest = join(rest, elements_of(fn, state, value))
            continue
        name = evaluate(fn, state, key).const
        if isinstance(name, (str, int)):
            fields[str(name)] = value
        else:
            rest = join(rest, value)
    return make(fn, state, expr.at, "dict", rest, fields)


def _lambda(fn: FunctionState, state: State, expr: ir.Lambda) -> V:
    return fn.analyser.local_function(fn, expr)


def _walrus(fn: FunctionState, state: State, expr: ir.Walrus) -> V:
    value = evaluate(fn, state, expr.value)
    comprehensions.bind(fn, state, expr.target, value)
    return value


def _starred(fn: FunctionState, state: State, expr: ir.Starred) -> V:
    fn.spread[expr.at] = whole = evaluate(fn, state, expr.value)
    return elements_of(fn, state, whole)


def _await(fn: FunctionState, state: State, expr: ir.Await) -> V:
    return evaluate(fn, state, expr.value)


def _yield(fn: FunctionState, state: State, expr: ir.Yield) -> V:
    value = evaluate(fn, state, expr.value) if expr.value is not None else NONE_VALUE
    passes_on = expr.is_from and PER_BATCH in value.refs
    if expr.is_from:
        value = elements_of(fn, state, value)
    fn.yields.append((value, fn.fork(state)))
    inner = fn.loops[-1] if fn.loops else None
    trains = inner is not None and inner.counts and any(inner.id in one.loops for one in fn.backwards)
    if passes_on or trains or any(loop.loop.over == "loader" for loop in fn.loops):
        fn.notes.gives_batches = True
    fn.escape(value.src)
    return UNKNOWN_VALUE


def _fstring(fn: FunctionState, state: State, expr: ir.FormattedString) -> V:
    for part in expr.parts:
        fn.used |= evaluate(fn, state, part).src
    return DATA_VALUE


_DISPATCH: dict[type, Callable[[FunctionState, State, Any], V]] = {
    ir.Name: _name,
    ir.Const: lambda fn, state, expr: constant(expr.kind, expr.value),
    ir.Attr: _attr,
    ir.Call: _call,
    ir.Subscript: _subscript,
    ir.Slice: _slice,
    ir.Binary: _binary,
    ir.Unary: _unary,
    ir.BoolOp: _boolop,
    ir.Compare: _compare,
    ir.IfExp: _ifexp,
    ir.Display: _display,
    ir.DictDisplay: _dict,
    ir.Comprehension: comprehensions.comprehension,
    ir.Lambda: _lambda,
    ir.Walrus: _walrus,
    ir.Starred: _starred,
    ir.Await: _await,
    ir.Yield: _yield,
    ir.FormattedString: _fstring,
}
