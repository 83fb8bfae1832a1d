"""Statements: one function's body, path by path, loops to a fixpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from memlint.flow import carry, inert
from memlint.flow.evaluate import evaluate, loop_of
from memlint.flow.events import PlaceKind
from memlint.flow.feeding import assume_loader, feeds_device
from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.guards import entered_grad
from memlint.flow.heap import deep, element, elements_of, frame_at, named, part_of_output
from memlint.flow.loops import MAX_PASSES
from memlint.flow.modes import forget_name, freeze, freezing_loop, frozen_of
from memlint.flow.periods import resets_soon
from memlint.flow.state import Obj, State, join_states
from memlint.flow.stores import end_iteration, forget, kind_of, note_store, reachable, store_value
from memlint.flow.syntax import assigned_names, dotted, expressions, text, walk_expression, walk_statements
from memlint.flow.values import (
    ANYWHERE,
    CALLABLE,
    CONTAINER,
    DATA,
    LOADER,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    SCALAR,
    TENSOR,
    TENSORS,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Source,
    V,
    join,
    ordered,
)
from memlint.ir import nodes as ir


def run(frame: Frame, state: State, *, backward: bool = False) -> None:
    """Interpret the function's body from ``state``; the frame keeps what was seen.

    ``backward``: a framework calls backward() on what the function returns.
    """
    end = block(frame, state, frame.function.body)
    if end is not None:
        frame.returns.append((NONE_VALUE, end))
    result, final = NOTHING, None
    for value, at in frame.returns:
        result = join(result, value)
        final = join_states(final, at)
    for _, at in frame.yields:
        final = join_states(final, at)
    frame.result = result
    frame.exit = final
    frame.graphs.settle()
    if final is None:
        return
    if backward:
        frame.backward(final, _loss_of(frame, final, result), 0)
        frame.graphs.settle()
    end_iteration(frame, final, None)


def _loss_of(frame: Frame, state: State, result: V) -> V:
    """What a framework calls backward() on: the returned tensor, or the member ``loss`` of a returned dict."""
    for key in ordered(result.objs):
        obj = state.heap.get(key)
        if obj is not None and "loss" in obj.fields:
            return deep(frame, state, obj.fields["loss"])
    return deep(frame, state, result)


def block(frame: Frame, state: State | None, body: tuple[ir.Stmt, ...]) -> State | None:
    for statement in body:
        if state is None:
            return None
        frame.statement = statement
        frame.spend(frame.graphs.take_work() // 16)
        state = _DISPATCH[type(statement)](frame, state, statement)
    return state


# -------------------------------------------------------------------------------------- simple statements


def _assign(frame: Frame, state: State, statement: ir.Assign) -> State:
    value = evaluate(frame, state, statement.value)
    for target in statement.targets:
        assign(frame, state, target, value, statement)
    return state


def _annassign(frame: Frame, state: State, statement: ir.AnnAssign) -> State:
    if statement.value is None:
        return state
    value = evaluate(frame, state, statement.value)
    if value.kinds & UNKNOWN:
        known = frame.analyser.annotated(frame.module, statement.annotation)
        if known is not None:
            value = value.but(kinds=value.kinds & ~UNKNOWN | known.kinds, refs=value.refs | known.refs)
    assign(frame, state, statement.target, value, statement)
    return state


def _augassign(frame: Frame, state: State, statement: ir.AugAssign) -> State:
    from memlint.flow.evaluate import _apply_binary

    old = evaluate(frame, state, statement.target)
    new = evaluate(frame, state, statement.value)
    if old.may_be(CONTAINER) and statement.op == "+" and not old.may_be(TENSORS):
        store_value(
            frame,
            state,
            old,
            "append",
            elements_of(frame, state, new),
            statement.at,
            text(statement.value),
            text(statement.target),
        )
        return state
    fake = ir.Binary(statement.at, statement.op, statement.target, statement.value)
    value = _apply_binary(frame, state, fake, old, new)
    carry.augmented(frame, state, statement, old, new, value)
    assign(frame, state, statement.target, value, None)
    return state


def assign(frame: Frame, state: State, target: ir.Expr, value: V, statement: ir.Assign | ir.AnnAssign | None) -> None:
    """Bind a target; ``statement`` is given where the value is built by it, so that a carry can be seen."""
    match target:
        case ir.Name():
            if statement is not None:
                carry.assigned(frame, state, statement, target, value)
            _bind(frame, state, target.id, named(value, target.id))
        case ir.Attr():
            base = evaluate(frame, state, target.value)
            if statement is not None:
                carry.assigned(frame, state, statement, target, value)
            if base.kinds & MODULE and value.kinds & MODULE and frozen_of(frame.analyser, state, base, target.value):
                freeze(state, base, target.value, None)  # a new part of a frozen module trains
            write_attribute(frame, state, base, target.name, value)
        case ir.Subscript():
            base = evaluate(frame, state, target.value)
            index = evaluate(frame, state, target.index)
            if statement is not None:
                carry.assigned(frame, state, statement, target, value)
            write_item(frame, state, base, index, value, target, by_carry=statement is None)
        case ir.Display():
            _unpack(frame, state, target, value, statement)
        case ir.Starred():
            assign(
                frame,
                state,
                target.value,
                V(CONTAINER | value.kinds, value.src, objs=value.objs, syms=value.syms),
                statement,
            )
        case _:
            pass


def _bind(frame: Frame, state: State, name: str, value: V) -> None:
    function = frame.function
    if name not in function.locals and name not in frame.own_names:
        root = (
            "g:" + frame.module.key + ":"
            if function.enclosing is None or name not in function.enclosing.locals
            else "c:"
        )
        path = Path(root + name)
        if value.kinds & CONTAINER:
            forget(frame, state, frozenset((path,)))
        state.sym[path] = value
        return
    old = state.env.get(name)
    state.env[name] = value
    forget_name(state, name, value)
    if frame.loops and value.is_only(DATA | NONE) and resets_soon(frame):
        forget(frame, state, frozenset((("var", name),)))  # a sum that begins anew every few rounds
    if old is not None and old.objs and not old.objs & value.objs:
        _dropped(frame, state, old.objs)


def _dropped(frame: Frame, state: State, keys: frozenset[Source]) -> None:
    """A name lets go of containers: those that no other name leads to are gone."""
    frame.spend((len(state.env) + len(state.sym) + len(state.heap)) // 16)
    gone = keys - reachable(state)
    if gone:
        forget(frame, state, frozenset(gone))


def _unpack(
    frame: Frame, state: State, target: ir.Display, value: V, statement: ir.Assign | ir.AnnAssign | None
) -> None:
    count = len(target.elements)
    for position, part in enumerate(target.elements):
        if isinstance(part, ir.Starred):
            assign(frame, state, part, value, statement)
            continue
        found = NOTHING
        rest = value
        for key in ordered(value.objs):
            obj = state.heap.get(key)
            if obj is not None and str(position) in obj.fields and len(obj.fields) == count:
                found = join(found, obj.fields[str(position)])
                rest = rest.but(objs=rest.objs - {key})
        if rest.objs or rest.kinds & ~(CONTAINER | TENSOR if found.kinds else CONTAINER):
            # what is unpacked so is the tuple of that length, not the single tensor of another path
            found = join(found, _part(frame, state, rest, position))
        assign(frame, state, part, found if found.kinds else UNKNOWN_VALUE, statement)


def _part(frame: Frame, state: State, value: V, position: int) -> V:
    from memlint.flow.heap import derive, read_symbol, symbol_counts

    found = NOTHING
    if value.objs or value.kinds & (LOADER | MODULE | TENSORS | DATA):
        plain = part_of_output(frame, value, f"[{position}]")
        found = element(frame, state, plain.but(syms=frozenset(), kinds=value.kinds & ~UNKNOWN), frame_at(frame))
    for path in ordered(value.syms):
        if symbol_counts(state, value, path.then(f"[{position}]")):
            found = join(found, read_symbol(frame, state, path.then(f"[{position}]")))
    if value.kinds & UNKNOWN and not value.syms:
        found = join(found, derive(frame, value, f"[{position}]"))
    return found


def write_attribute(frame: Frame, state: State, base: V, name: str, value: V) -> None:
    """``base.name = value``"""
    if not base.objs and not base.syms:
        frame.left |= frame.graphs.closure(deep(frame, state, value).src)
    for key in ordered(base.objs):
        obj = state.heap.get(key)
        if obj is None:
            continue
        old = obj.fields.get(name)
        strong = len(base.objs) == 1
        state.heap[key] = obj.with_field(name, value if strong or old is None else join(old, value))
        if strong and old is not None and old.objs and not old.objs & value.objs:
            _dropped(frame, state, old.objs)
    for path in ordered(base.syms):
        place = path.then("." + name)
        if value.kinds & (CONTAINER | DATA | NONE) and not value.src:
            forget(frame, state, frozenset((place,)))
        if not value.src and _by_parameter(frame):
            frame.notes.reset_by_parameter.add(place)
        state.sym[place] = value if len(base.syms) == 1 else join(state.sym.get(place) or UNKNOWN_VALUE, value)


def _by_parameter(frame: Frame) -> bool:
    """Whether a parameter decides over the current point (``if step == 0:``): the caller says when."""
    names = {param.name for param in frame.function.params[1 if frame.function.takes_self else 0 :]}
    return any(isinstance(part, ir.Name) and part.id in names for test in frame.tests for part in walk_expression(test))


def write_item(
    frame: Frame, state: State, base: V, index: V, value: V, target: ir.Subscript, *, by_carry: bool = False
) -> None:
    """``base[index] = value``"""
    name = None if index.const is None or isinstance(index.const, bool) else str(index.const)
    inner = deep(frame, state, value)
    for key in ordered(base.objs):
        obj = state.heap.get(key)
        if obj is None:
            continue
        if isinstance(target.index, ir.Slice):
            state.heap[key] = obj.with_elem(join(obj.elem, elements_of(frame, state, value)))
        elif name is not None:
            state.heap[key] = obj.with_field(name, value)
        else:
            state.heap[key] = obj.with_elem(join(obj.elem, value))
        if not by_carry and grows(frame, target.index) and not obj.bounded:
            _note_key(frame, state, key, "local", ("elem", key), inner, target)
    for path in ordered(base.syms):
        step = f"[{index.const}]" if isinstance(index.const, str) else "[]"
        place = path.then(step)
        state.sym[place] = (
            value
            if step != "[]"
            else join(state.sym.get(place) or V(UNKNOWN, frozenset((place,)), syms=frozenset((place,))), value)
        )
        if not by_carry and grows(frame, target.index) and not base.may_be(TENSORS):
            _note_key(frame, state, path, kind_of(path), path.then("[]"), inner, target)
    if base.kinds & TENSORS:
        _write_slice(frame, state, base, value, target)
    elif not base.objs and not base.syms:
        frame.left |= frame.graphs.closure(inner.src)
    carry.written(frame, state, base, value, target)


def _note_key(
    frame: Frame, state: State, place: Source, kind: PlaceKind, mark: Source, value: V, target: ir.Subscript
) -> None:
    """A new key's value is kept (one that is built from the member's previous value is a carry instead)."""
    if mark in frame.graphs.closure(value.src):
        return
    statement = frame.statement
    shown = text(statement.value) if isinstance(statement, ir.Assign) else text(target)
    note_store(frame, state, "retain", "key", place, kind, text(target.value), value, frame_at(frame), shown)


def grows(frame: Frame, index: ir.Expr) -> bool:
    """Whether a new key comes with each iteration: the index is a loop's own counter. Other keys may come again."""
    if not isinstance(index, ir.Name):
        return False
    return any(index.id in loop.counters for loop in frame.loops if loop.counts)


def _write_slice(frame: Frame, state: State, base: V, value: V, target: ir.Subscript) -> None:
    """``tensor[i] = value`` puts the value's graph into the tensor's."""
    root = target.value
    while isinstance(root, ir.Subscript | ir.Attr):
        root = root.value
    if value.src and isinstance(root, ir.Name) and root.id in state.env and isinstance(target.value, ir.Name):
        old = state.env[root.id]
        state.env[root.id] = old.but(src=old.src | value.src, bare=old.bare or not old.src)
    if value.src and isinstance(target.value, ir.Name) and target.value.id not in state.env:
        path = Path(f"g:{frame.module.key}:{target.value.id}")
        if path in state.sym:
            state.sym[path] = state.sym[path].but(src=state.sym[path].src | value.src, bare=True)


def _expression(frame: Frame, state: State, statement: ir.ExprStmt) -> State:
    inert.dropped(frame, state, statement, evaluate(frame, state, statement.value))
    return state


def _return(frame: Frame, state: State, statement: ir.Return) -> None:
    value = evaluate(frame, state, statement.value) if statement.value is not None else NONE_VALUE
    inner = deep(frame, state, value)
    frame.notes.returned.update(frame.graphs.closure(inner.src))
    frame.notes.returned.update(("elem", key) for key in value.objs)
    if any(ref.kind == "func" for ref in value.refs):
        # a closure takes along what it reads
        read = _names_read(frame, value)
        for name, held in state.env.items():
            frame.notes.returned.update(("elem", key) for key in held.objs)
            if held.src and name in read:
                frame.notes.returned.update(frame.graphs.closure(held.src))
    frame.returns.append((value, state))


def _names_read(frame: Frame, closure: V) -> set[str]:
    """The names that a function which is returned reads."""
    functions = (frame.analyser.function(ref) for ref in closure.refs if ref.kind == "func")
    return {
        part.id
        for function in functions
        if function is not None
        for inner in walk_statements(function.body)
        for expr in expressions(inner)
        for part in walk_expression(expr)
        if isinstance(part, ir.Name)
    }


def _raise(frame: Frame, state: State, statement: ir.Raise) -> None:
    if statement.exc is not None:
        evaluate(frame, state, statement.exc)
    for handler in frame.handlers[-1:]:
        handler.append(state)


def _delete(frame: Frame, state: State, statement: ir.Delete) -> State:
    for target in statement.targets:
        if isinstance(target, ir.Name):
            old = state.env.pop(target.id, None)
            if old is not None and old.objs:
                _dropped(frame, state, old.objs)
        elif isinstance(target, ir.Subscript):
            base = evaluate(frame, state, target.value)
            if isinstance(target.index, ir.Slice):
                empty(frame, state, base)
            else:
                forget(frame, state, base.objs | base.syms)
        elif isinstance(target, ir.Attr):
            base = evaluate(frame, state, target.value)
            write_attribute(frame, state, base, target.name, NONE_VALUE)
    return state


def empty(frame: Frame, state: State, container: V) -> None:
    """The container drops all that it held."""
    for key in ordered(container.objs):
        obj = state.heap.get(key)
        if obj is not None and len(container.objs) == 1:
            state.heap[key] = obj.emptied()
    for path in ordered(container.syms):
        state.sym[path.then("[]")] = NOTHING
    forget(frame, state, container.objs | container.syms)


def _assert(frame: Frame, state: State, statement: ir.Assert) -> State:
    evaluate(frame, state, statement.test)
    narrow(frame, state, statement.test, True)
    return state


def _define(frame: Frame, state: State, statement: ir.FunctionDef) -> State:
    value = frame.analyser.local_function(frame, state, statement)
    if statement.name in frame.function.locals:
        state.env[statement.name] = value
    return state


def _define_class(frame: Frame, state: State, statement: ir.ClassDef) -> State:
    value = frame.analyser.local_class(frame, statement)
    if statement.name in frame.function.locals:
        state.env[statement.name] = value
    return state


def _import(frame: Frame, state: State, statement: ir.Import | ir.ImportFrom) -> State:
    for alias in statement.names:
        name = alias.asname or (alias.name.split(".", 1)[0] if isinstance(statement, ir.Import) else alias.name)
        found = frame.analyser.program._imported(frame.module, statement, name, 0)
        if found[0] != "none" and name != "*":
            state.env[name] = frame.analyser.global_value(*found, frame=frame)
        else:
            state.env[name] = UNKNOWN_VALUE
    return state


def _pass(frame: Frame, state: State, statement: ir.Stmt) -> State:
    return state


def _jump(frame: Frame, state: State, statement: ir.Jump) -> State | None:
    if statement.kind == "pass" or not frame.loops:
        return state
    target = next((loop for loop in reversed(frame.loops) if loop.body), None)
    if target is None:
        return state
    (target.breaks if statement.kind == "break" else target.continues).append(state)
    return None


# -------------------------------------------------------------------------------------- blocks


def _if(frame: Frame, state: State, statement: ir.If) -> State | None:
    test = evaluate(frame, state, statement.test)
    constant = test.const if isinstance(test.const, bool) else None
    other = frame.fork(state)
    narrow(frame, state, statement.test, True)
    narrow(frame, other, statement.test, False)
    frame.tests.append(statement.test)
    end = block(frame, state, statement.body) if constant is not False else None
    frame.tests[-1] = ir.Unary(statement.test.at, "not", statement.test)
    orelse = block(frame, other, statement.orelse) if constant is not True else None
    frame.tests.pop()
    if not statement.orelse and _last_case(frame.tests, statement.test):
        return end
    return join_states(end, orelse)


def _last_case(tests: list[ir.Expr], test: ir.Expr) -> bool:
    """Whether this is the last ``elif`` of a chain that tells the values of one thing apart, without an ``else``: it is
    meant to cover all of them, and what no case assigns is not what is left from the round before."""
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


def narrow(frame: Frame, state: State, test: ir.Expr, truth: bool) -> None:
    """What a test says of a variable: isinstance, is_tensor, is None, and their combinations."""
    match test:
        case ir.Unary(op="not"):
            narrow(frame, state, test.operand, not truth)
        case ir.BoolOp():
            if (test.op == "and") == truth:
                narrow(frame, state, test.left, truth)
                narrow(frame, state, test.right, truth)
        case ir.Compare() if (
            len(test.ops) == 1 and isinstance(test.rights[0], ir.Const) and test.rights[0].kind == "None"
        ):
            if test.ops[0] in ("is", "==") and truth:
                _narrow_to(state, test.left, NONE, True)
            elif test.ops[0] in ("is not", "!=", "is", "=="):
                _narrow_to(state, test.left, NONE, False)
        case ir.Compare(left=ir.Call() as left) if len(test.ops) == 1 and dotted(left.func) == "type" and left.args:
            named = dotted(test.rights[0]).rsplit(".", 1)[-1]
            if named in _TENSOR_TYPES and test.ops[0] in ("is", "==", "is not", "!="):
                _narrow_to(state, left.args[0], TENSOR, truth == (test.ops[0] in ("is", "==")))
        case ir.Call() if isinstance(test.func, ir.Name | ir.Attr) and test.args:
            name = dotted(test.func)
            if name.endswith("is_tensor"):
                _narrow_to(state, test.args[0], TENSOR, truth)
            elif name == "hasattr" and len(test.args) == 2 and isinstance(test.args[1], ir.Const):
                if test.args[1].value in ("item", "detach", "backward", "grad_fn", "requires_grad", "cpu", "mean"):
                    _narrow_to(state, test.args[0], TENSOR, truth)
            elif name == "isinstance" and len(test.args) == 2:
                wanted = test.args[1]
                parts = wanted.elements if isinstance(wanted, ir.Display) else (wanted,)
                names = [dotted(part).rsplit(".", 1)[-1] for part in parts]
                if names[:1] == ["Variable"]:
                    names[0] = "Tensor"
                if truth and len(parts) == 1 and _is_loader(frame, parts[0]):
                    _narrow_to(state, test.args[0], LOADER, True)
                elif "Tensor" in names and (truth or len(names) == 1):
                    _narrow_to(state, test.args[0], TENSOR, truth)
                elif (
                    truth
                    and names
                    and all(item in ("float", "int", "str", "bool", "Number", "ndarray") for item in names)
                ):
                    _narrow_to(state, test.args[0], DATA, True)
        case _:
            pass


def _is_loader(frame: Frame, cls: ir.Expr) -> bool:
    kind, what = frame.analyser.program.find_expression(frame.module, cls, frame.function)
    return kind == "ext" and str(what).startswith("torch.utils.data.") and str(what).endswith("DataLoader")


def _narrow_to(state: State, expr: ir.Expr, kind: int, truth: bool) -> None:
    if not isinstance(expr, ir.Name) or expr.id not in state.env:
        return
    value = state.env[expr.id]
    if truth and kind == TENSOR:
        state.env[expr.id] = value.but(kinds=TENSOR, objs=frozenset(), bare=value.bare)
    elif truth:
        state.env[expr.id] = V(kind, size=SCALAR, device=ANYWHERE)
    elif kind == TENSOR:
        state.env[expr.id] = value.but(kinds=value.kinds & ~TENSORS or UNKNOWN, src=frozenset(), syms=frozenset())
    else:
        state.env[expr.id] = value.but(kinds=value.kinds & ~kind or UNKNOWN)


def _for(frame: Frame, state: State, statement: ir.For) -> State | None:
    feeds = feeds_device(statement.target, statement.body)
    if feeds:
        assume_loader(frame, state, statement.iter, statement.target)
    source = evaluate(frame, state, statement.iter)
    freezing_loop(frame, state, statement)
    shown = f"for {text(statement.target, 30)} in {text(statement.iter, 40)}"
    loop = loop_of(frame, state, statement.at, source, statement.iter, statement.target, shown)
    _prepare(loop, statement.body)
    if feeds and loop.loop.over in ("unknown", "range"):
        loop.loop = msgspec.structs.replace(loop.loop, over="loader")

    def enter(inner: State) -> State | None:
        value = element(frame, inner, source, statement.at)
        assign(frame, inner, statement.target, value, None)
        for name in loop.targets:
            loop.items |= inner.env[name].syms if name in inner.env else frozenset()
        return inner

    # a loop over batches or a range runs: what it binds is bound anew in each round of the loops around it
    end = _loop(frame, state, loop, statement.body, enter, maybe_zero=not loop.counts)
    end = block(frame, end, statement.orelse)
    for one in loop.breaks:
        end = join_states(end, one)
    return end


def _while(frame: Frame, state: State, statement: ir.While) -> State | None:
    from memlint.flow.events import Loop

    endless = isinstance(statement.test, ir.Const) and bool(statement.test.value)
    shown = f"while {text(statement.test, 40)}"
    over: Literal["loader", "unknown"] = "loader" if feeds_device(None, statement.body) else "unknown"
    loop = LoopFrame(
        ("loop", statement.at), Loop("while", over, "iteration", None, shown, frame.site(statement.at)), True
    )
    _prepare(loop, statement.body)

    def enter(inner: State) -> State | None:
        evaluate(frame, inner, statement.test)
        return inner

    end = _loop(frame, state, loop, statement.body, enter, maybe_zero=not endless)
    if endless:
        end = None
    end = block(frame, end, statement.orelse)
    for one in loop.breaks:
        end = join_states(end, one)
    return end


def _prepare(loop: LoopFrame, body: tuple[ir.Stmt, ...]) -> None:
    names, _ = assigned_names(body)
    loop.bound = names
    loop.body = body or (ir.Jump(0, "pass"),)


def _loop(
    frame: Frame,
    state: State,
    loop: LoopFrame,
    body: tuple[ir.Stmt, ...],
    enter: Callable[[State], State | None],
    *,
    maybe_zero: bool,
) -> State | None:
    """Run a loop's body until the state at its head is stable; the state after the loop, breaks left out."""
    head: State = state
    end: State | None = None
    if loop.counts:
        frame.kinds_of_loops[loop.id] = loop.loop
    outer_pending = state.pending
    for _ in range(MAX_PASSES):
        inner = frame.fork(head)
        frame.passes += 1
        inner.fresh = frozenset(key for key in inner.fresh if loop.id not in _loops_of(inner, key))
        inner.pending = outer_pending
        for name in loop.bound:
            value = inner.env.get(name)
            if value is not None and value.objs:
                _mark_members(inner, value, ("prev", loop.id, name))
            if value is not None and not value.is_only(MODULE | OPTIMIZER | LOADER | CALLABLE | CONTAINER | NONE):
                inner.env[name] = value.but(src=value.src | {("prev", loop.id, name)})
        mark_previous(inner, loop.id)
        loop.breaks, loop.continues = [], []
        frame.loops.append(loop)
        started = enter(inner)
        end = block(frame, started, body)
        # each path by itself: a round that is skipped neither stores nor frees
        for one in (end, *loop.continues, *loop.breaks):
            if one is not None:
                end_iteration(frame, one, loop)
        for one in loop.continues:
            end = join_states(end, one)
        frame.loops.pop()
        again = join_states(head, end)
        assert again is not None
        if again.same(head):
            break
        head = again
        if not frame.spend(0) or frame.passes > frame.MAX_PASSES:
            frame.cut_short = True
            break
    if end is None:
        return head if maybe_zero else None
    return join_states(head, end) if maybe_zero else end


def _mark_members(state: State, value: V, mark: Source) -> None:
    """Mark the members of a tuple or list that a name held when the round began (a state of several tensors)."""
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is None or obj.kind not in ("tuple", "list"):
            continue
        fields = {
            name: item.but(src=item.src | {mark}) if item.kinds & (TENSORS | UNKNOWN | DATA) else item
            for name, item in obj.fields.items()
        }
        elem = obj.elem.but(src=obj.elem.src | {mark}) if obj.elem.kinds & (TENSORS | UNKNOWN) else obj.elem
        state.heap[key] = Obj(obj.kind, elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)


def mark_previous(state: State, loop: Source) -> None:
    """Mark what attributes and members hold as the previous iteration's."""
    for path, value in state.sym.items():
        if value.kinds & (TENSORS | UNKNOWN | DATA):
            state.sym[path] = value.but(src=value.src | {("prev", loop, path)})
    for key, obj in state.heap.items():
        if obj.elem.kinds & (TENSORS | UNKNOWN) and obj.elem.src:
            obj = obj.with_elem(obj.elem.but(src=obj.elem.src | {("prev", loop, (key, ""))}))
            state.heap[key] = obj
        if obj.kind in ("instance", "dict") and obj.fields:
            fields = {
                name: value.but(src=value.src | {("prev", loop, (key, name))})
                if value.kinds & (TENSORS | UNKNOWN | DATA)
                else value
                for name, value in obj.fields.items()
            }
            state.heap[key] = Obj(obj.kind, obj.elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)


def _loops_of(state: State, key: Source) -> tuple[Source, ...]:
    obj = state.heap.get(key)
    return obj.loops if isinstance(obj, Obj) else ()


def _with(frame: Frame, state: State, statement: ir.With) -> State | None:
    before = state.grad
    changed = False
    for item in statement.items:
        grad, value = entered_grad(frame, state, item.context)
        if grad is not None:
            inert.entered(frame, statement, state.grad, grad)
            state.grad = grad
            changed = True
        if item.target is not None:
            assign(frame, state, item.target, value, None)
    outer_returns = len(frame.returns)
    end = block(frame, state, statement.body)
    if changed:
        if end is not None:
            end.grad = before
        for _, at in frame.returns[outer_returns:]:
            at.grad = before
        for loop in frame.loops:
            for one in (*loop.breaks, *loop.continues):
                if one is not end:
                    one.grad = before
    if end is None and not frame.returns[outer_returns:]:
        return None
    return end


def _try(frame: Frame, state: State, statement: ir.Try) -> State | None:
    before = frame.fork(state)
    raised: list[State] = []
    frame.handlers.append(raised)
    end = block(frame, state, statement.body)
    frame.handlers.pop()
    # an exception may come anywhere in the body: what it bound may be there or not
    start = before
    if end is not None:
        start = join_states(before, end.copy()) or before
    for one in raised:
        start = join_states(start, one) or start
    start.grad = before.grad
    ends = [block(frame, end, statement.orelse)]
    for handler in statement.handlers:
        inner = frame.fork(start)
        if handler.name:
            inner.env[handler.name] = V(DATA)
        ends.append(block(frame, inner, handler.body))
    result: State | None = None
    for way_out in ends:
        result = join_states(result, way_out)
    if result is None and statement.final:
        block(frame, start.copy(), statement.final)
        return None
    return block(frame, result, statement.final) if result is not None else None


def _match(frame: Frame, state: State, statement: ir.Match) -> State | None:
    subject = evaluate(frame, state, statement.subject)
    result: State | None = frame.fork(state)
    for case in statement.cases:
        inner = frame.fork(state)
        for value in case.values:
            evaluate(frame, inner, value)
        for name in case.captures:
            inner.env[name] = element(frame, inner, subject, statement.at)
        if case.guard is not None:
            evaluate(frame, inner, case.guard)
        result = join_states(result, block(frame, inner, case.body))
    return result


_DISPATCH: dict[type, Callable[[Frame, State, Any], State | None]] = {
    ir.Assign: _assign,
    ir.AnnAssign: _annassign,
    ir.AugAssign: _augassign,
    ir.ExprStmt: _expression,
    ir.Return: _return,
    ir.Raise: _raise,
    ir.Delete: _delete,
    ir.Assert: _assert,
    ir.FunctionDef: _define,
    ir.ClassDef: _define_class,
    ir.Import: _import,
    ir.ImportFrom: _import,
    ir.Scope: _pass,
    ir.Jump: _jump,
    ir.If: _if,
    ir.For: _for,
    ir.While: _while,
    ir.With: _with,
    ir.Try: _try,
    ir.Match: _match,
}
