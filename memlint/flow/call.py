"""Calls: what is called, and what that does."""

from __future__ import annotations

from memlint import knowledge
from memlint.flow import batches, containers, external, hotloops, tensors
from memlint.flow.frame import CallRecord, Frame, ModelRun
from memlint.flow.heap import deep, make, read_attribute
from memlint.flow.modes import freeze, frozen_of, mode_of, set_mode
from memlint.flow.ops import names_model, names_number
from memlint.flow.owner import give_away, marks_of_parameters, note_optimizer
from memlint.flow.placement import as_output, device_of, moved_module
from memlint.flow.program import Class, Function
from memlint.flow.state import AMBIENT, OFF, Obj, State, join_states
from memlint.flow.syntax import dotted, text
from memlint.flow.values import (
    ACCELERATOR,
    BATCH,
    CALLABLE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    OUTPUT,
    SAMPLE,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Ref,
    Source,
    V,
    join,
    join_all,
    ordered,
)
from memlint.ir import nodes as ir

Args = list[V]
Words = dict[str, V]


def evaluate_call(frame: Frame, state: State, expr: ir.Call) -> V:
    """The value of a call; its effects go to ``state``."""
    from memlint.flow.evaluate import evaluate

    func = expr.func
    if isinstance(func, ir.Attr) and _is_super(func.value):
        args, words = arguments(frame, state, expr)
        return _super_call(frame, state, expr, func.name, args, words)
    if isinstance(func, ir.Attr):
        receiver = evaluate(frame, state, func.value)
        args, words = arguments(frame, state, expr)
        return call_method(frame, state, expr, receiver, func.name, args, words)
    callee = evaluate(frame, state, func)
    args, words = arguments(frame, state, expr)
    return call_value(frame, state, callee, args, words, expr)


def arguments(frame: Frame, state: State, expr: ir.Call) -> tuple[Args, Words]:
    from memlint.flow.evaluate import evaluate

    args: Args = []
    for arg in expr.args:
        value = evaluate(frame, state, arg)
        args.append(value)
    words = {
        word.name or f"**{number}": evaluate(frame, state, word.value) for number, word in enumerate(expr.keywords)
    }
    return args, words


def _is_super(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name) and expr.func.id == "super"


def _super_call(frame: Frame, state: State, expr: ir.Call, name: str, args: Args, words: Words) -> V:
    cls = frame.function.cls
    if cls is None or not frame.function.params:
        return UNKNOWN_VALUE
    receiver = state.env.get(frame.function.params[0].name, UNKNOWN_VALUE)
    method = frame.analyser.program.method(cls, name, after=cls)
    if method is not None:
        return call_function(frame, state, method, [receiver, *args], words, expr.at, expr)
    if name == "__init__":
        return NONE_VALUE
    if receiver.kinds & MODULE and name not in knowledge.bookkeeping():
        return run_module(frame, state, expr, receiver, args, words)
    return unknown_call(frame, state, expr, NOTHING, args, words)


# -------------------------------------------------------------------------------------- callables


def call_value(frame: Frame, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    """Call a value: the join over all that it may be."""
    found = NOTHING
    if not callee.kinds & UNKNOWN and callee.may_be_module():
        callee = callee.as_module()  # what a file held, and is called
    for ref in ordered(callee.refs):
        found = join(found, _call_ref(frame, state, ref, callee, args, words, expr))
    if callee.kinds & MODULE and not callee.kinds & CALLABLE and not any(ref.kind == "instance" for ref in callee.refs):
        found = join(found, run_module(frame, state, expr, callee, args, words))
    for key in ordered(callee.objs):
        obj = state.heap.get(key)
        if obj is not None and obj.cls is not None:
            method = frame.analyser.program.method(obj.cls, "__call__")
            if method is not None:
                receiver = V(INSTANCE, objs=frozenset((key,)), refs=callee.refs)
                found = join(found, call_function(frame, state, method, [receiver, *args], words, expr.at, expr))
    if not found.kinds or callee.kinds & UNKNOWN:
        found = join(found, unknown_call(frame, state, expr, callee, args, words))
    return found


def _call_ref(frame: Frame, state: State, ref: Ref, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
    program = frame.analyser.program
    if ref.kind == "func":
        function = frame.analyser.function(ref)
        if function is None:
            return unknown_call(frame, state, expr, callee, args, words)
        given = [ref.self_, *args] if ref.self_ is not None and function.takes_self else args
        return call_function(frame, state, function, given, words, expr.at, expr)
    if ref.kind == "class":
        cls = frame.analyser.cls(ref)
        return construct(frame, state, cls, args, words, expr) if cls is not None else UNKNOWN_VALUE
    if ref.kind == "instance":
        cls = program.module(ref.key).cls(ref.name)
        if cls is None:
            return UNKNOWN_VALUE
        if program.is_module(cls):
            return run_module(frame, state, expr, callee, args, words)
        method = program.method(cls, "__call__")
        if method is not None and not callee.objs:
            return call_function(frame, state, method, [callee, *args], words, expr.at, expr)
        return NOTHING
    if ref.kind == "extinstance":
        return external.call_instance(frame, state, ref.name, args, words, expr, callee)
    if ref.kind == "partial":
        return call_value(frame, state, ref.self_, [*ref.args, *args], {**dict(ref.keywords), **words}, expr)
    if ref.kind == "ext":
        return external.call_external(frame, state, ref.name, args, words, expr)
    return NOTHING


def unknown_call(frame: Frame, state: State, expr: ir.Call, callee: V, args: Args, words: Words) -> V:
    """A call that cannot be resolved: its result may carry any graph or none, its arguments leave."""
    parents: frozenset[Source] = callee.src if isinstance(expr.func, ir.Attr) else EMPTY
    guess = is_loss(expr.func) and not (isinstance(frame.statement, ir.ExprStmt) and frame.statement.value is expr)
    for value in (*args, *words.values()):
        inner = deep(frame, state, value)
        parents |= inner.src
        leave(frame, value, inner, scored=guess)
    give_away(frame, state, [*args, *words.values()])
    symbol = next(iter(sorted(callee.syms)), None)
    src = frame.record(
        state,
        expr.at,
        expr.at,
        text(expr),
        parents,
        unknown=not guess,
        callee=symbol,
        guess=guess,
    )
    if guess and src:
        return V(TENSOR, src, size=SCALAR)
    if not any(path.steps[-1:] in ((), ("." + dotted(expr.func).rsplit(".", 1)[-1],)) for path in callee.syms):
        return V(UNKNOWN, src, store=frozenset((expr.at,)))
    # a callable that was passed in: whatever tensors it gives are where its arguments are
    size = _given_size(frame, state, args, text(expr.func))
    kinds = TREE if state.grad == OFF and size == OUTPUT and names_model(text(expr.func)) else UNKNOWN
    return V(kinds, src, device=device_of(frame, state, args), size=size, store=frozenset((expr.at,)))


def _given_size(frame: Frame, state: State, args: Args, shown: str) -> int:
    given = [deep(frame, state, value) for value in args if value.kinds & (TENSORS | CONTAINER)]
    large = any(value.kinds & TENSORS and value.size in (BATCH, OUTPUT, SOME_SIZE) for value in given)
    return OUTPUT if large and not names_number(shown) else SOME_SIZE


def is_loss(func: ir.Expr) -> bool:
    """Whether a callee that cannot be resolved is called as losses are: its result has its arguments' graph."""
    name = dotted(func).rsplit(".", 1)[-1].lower()
    return (
        "criterion" in name
        or name in ("loss", "crit", "loss_fn", "loss_func", "loss_function", "lossfn", "loss_fct")
        or name.endswith(("_loss", "loss_fn"))
    )


def leave(frame: Frame, value: V, inner: V, *, scored: bool = False) -> None:
    """A value goes to code that cannot be followed (``scored``: to a loss)."""
    frame.escape(inner.src | {("elem", key) for key in value.objs}, scored=scored)
    hotloops.lend(frame, inner)


# -------------------------------------------------------------------------------------- methods


def call_method(frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    """``receiver.name(…)``"""
    if (
        name in ("parameters", "named_parameters")
        and receiver.kinds & UNKNOWN
        and not receiver.kinds & (TENSORS | CONTAINER)
    ):
        receiver = receiver.but(kinds=receiver.kinds & ~UNKNOWN | MODULE, src=EMPTY)
    if (
        not receiver.kinds & UNKNOWN
        and receiver.may_be_module()
        and name in ("eval", "train", *knowledge.module_evidence())
    ):
        receiver = receiver.as_module()
    resolved = _resolved_method(frame, state, expr, receiver, name, args, words)
    if name in ("backward", "manual_backward") and resolved is None:
        return _backward(frame, state, expr, receiver, args, words)
    if resolved is not None:
        return resolved
    if receiver.kinds & OPTIMIZER or name == "step":
        for value in args:
            if value.kinds & CALLABLE:
                call_value(frame, state, value, [], {}, ir.Call(expr.at, expr.func, (), ()))
        if receiver.kinds & OPTIMIZER:
            return UNKNOWN_VALUE if name == "step" else NONE_VALUE
    if name in ("eval", "train") and receiver.kinds & (MODULE | UNKNOWN):
        assert isinstance(expr.func, ir.Attr)
        set_mode(state, expr.func, receiver, name, args, words)
        if name == "eval" and not args and not words and not receiver.kinds & (TENSORS | CONTAINER | LOADER):
            return receiver.but(kinds=receiver.kinds & ~UNKNOWN | MODULE, src=EMPTY)
    if (
        name in ("prepare", "setup_dataloaders")
        and args
        and receiver.kinds & (UNKNOWN | CALLABLE) | (not receiver.kinds)
    ):
        ready = [
            value.but(device=ACCELERATOR) if value.kinds & (MODULE | LOADER | UNKNOWN) else value for value in args
        ]
        return (
            ready[0]
            if len(ready) == 1
            else make(frame, state, expr.at, "tuple", NOTHING, {str(i): v for i, v in enumerate(ready)})
        )
    if (
        name in ("scale", "gather", "gather_for_metrics", "reduce", "unwrap_model", "setup_module")
        and args
        and not receiver.kinds & (TENSORS | MODULE)
    ):
        return args[0]
    found = NOTHING
    if receiver.kinds & CONTAINER or (
        receiver.syms and receiver.kinds & UNKNOWN and containers.is_container_method(name, args)
    ):
        found = join(found, containers.call(frame, state, expr, receiver, name, args, words))
    if receiver.kinds & TENSORS:
        found = join(found, tensors.call(frame, state, expr, receiver, name, args, words))
    if receiver.kinds & MODULE and not found.kinds:
        found = join(found, _module_method(frame, state, expr, receiver, name, args, words))
    if receiver.kinds & LOADER and not found.kinds:
        found = receiver if name == "__iter__" else UNKNOWN_VALUE
    if receiver.kinds & (DATA | NONE) and not receiver.kinds & ~(DATA | NONE):
        found = join(found, DATA_VALUE)
    if receiver.kinds & UNKNOWN and not found.kinds:
        found = join(found, _unknown_method(frame, state, expr, receiver, name, args, words))
    return found if found.kinds else unknown_call(frame, state, expr, receiver, args, words)


def _resolved_method(
    frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """Call the project methods, attributes and external functions that the receiver is known to have."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    if not receiver.refs and not receiver.objs:
        return None
    if receiver.kinds & (TENSORS | OPTIMIZER):
        return None
    if (
        receiver.kinds & MODULE
        and name in ("eval", "train", "to", "cuda", "cpu", "parameters", "state_dict")
        and not _own_method(frame, receiver, name)
    ):
        return None
    for ref in ordered(receiver.refs):
        if ref.kind == "extinstance":
            return external.call_instance_method(frame, state, ref.name, name, receiver, args, words, expr)
    member = read_attribute(frame, state, receiver, name, func)
    callable_refs = {
        ref for ref in member.refs if ref.kind in ("func", "class", "ext", "partial", "instance", "extinstance")
    }
    if not callable_refs and not member.kinds & MODULE:
        if any(ref.kind in ("module", "package") for ref in receiver.refs) and member.kinds:
            return call_value(frame, state, member, args, words, expr)
        if (
            member.syms
            and any(ref.kind == "instance" for ref in receiver.refs)
            and not receiver.kinds & (MODULE | CONTAINER)
        ):
            return unknown_call(frame, state, expr, member, args, words)
        return None
    if receiver.kinds & MODULE:
        return _module_call(frame, state, expr, receiver, name, member, args, words)
    return call_value(frame, state, member, args, words, expr)


def _own_method(frame: Frame, receiver: V, name: str) -> bool:
    program = frame.analyser.program
    for ref in ordered(receiver.refs):
        if ref.kind == "instance":
            cls = program.module(ref.key).cls(ref.name)
            if cls is not None and program.method(cls, name) is not None:
                return True
    return False


def _module_call(
    frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, member: V, args: Args, words: Words
) -> V:
    """A resolved method of a module: what it computes is a model's output."""
    before = len(frame.graphs.nodes)
    result = call_value(frame, state, member, args, words, expr)
    if name in ("eval", "train"):
        assert isinstance(expr.func, ir.Attr)
        set_mode(state, expr.func, receiver, name, args, words)
    if name in knowledge.bookkeeping() or len(frame.graphs.nodes) == before or member.kinds & MODULE:
        return result
    inner = deep(frame, state, result)
    tips = [tip for tip in ordered(inner.src) if tip in frame.graphs.nodes and frame.graphs.nodes[tip].model]
    if tips:
        note_run(frame, state, expr, receiver, inner, tips[0], args)
    return result


def _backward(frame: Frame, state: State, expr: ir.Call, receiver: V, args: Args, words: Words) -> V:
    """``loss.backward()``, ``accelerator.backward(loss)``, ``self.manual_backward(loss)``"""
    retain = words.get("retain_graph")
    keep = retain is not None and retain.const is True
    first = next(iter(args), words.get("loss"))
    if first is not None and (first.src or first.objs) and not receiver.kinds & TENSORS:
        inner = deep(frame, state, first)
        frame.backward(state, inner, expr.at, retain=keep)
        return NONE_VALUE
    frame.backward(state, receiver, expr.at, retain=keep)
    if receiver.kinds & UNKNOWN and frame.analyser.methods_named("backward"):
        _backward_inside(frame, state, expr, receiver)
    return NONE_VALUE


def _backward_inside(frame: Frame, state: State, expr: ir.Call, receiver: V) -> None:
    """An object with a ``backward`` of its own: it may call that of any tensor among its attributes."""
    held = frozenset(
        source
        for path in receiver.syms
        for place, value in state.sym.items()
        if place != path and place.root == path.root and place.steps[: len(path.steps)] == path.steps
        for source in (place, *value.src)
    )
    if held:
        frame.backwards.append((frame.graphs.closure(held), frame.loop_ids, frame.site(expr.at)))


def _module_method(frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    if name in ("register_buffer", "register_parameter") and len(args) >= 2 and isinstance(args[0].const, str):
        from memlint.flow.interpret import write_attribute

        write_attribute(frame, state, receiver, args[0].const, args[1])
        return NONE_VALUE
    if name in ("requires_grad_", "freeze", "unfreeze") and isinstance(expr.func, ir.Attr):
        flag = next(iter([*args, *words.values()]), None)
        const = name == "unfreeze" if flag is None or name != "requires_grad_" else flag.const
        frozen = not const if isinstance(const, bool) else None
        freeze(
            state,
            receiver,
            expr.func.value,
            name == "freeze" or (frozen if flag is not None or name != "requires_grad_" else False),
        )
        return receiver
    if name == "generate" and not any(method.cls is not None for method in frame.analyser.methods_named(name)):
        # the libraries' generate() is decorated with no_grad
        return V(TREE, size=SAMPLE)
    if name in ("to", "cuda", "cpu"):
        return moved_module(state, expr, receiver, args, words)
    if name in ("half", "float", "double", "eval", "train", "apply", "share_memory", "bfloat16", "compile"):
        return receiver
    if name in ("parameters", "named_parameters"):
        return V(
            CONTAINER | UNKNOWN,
            objs=make(
                frame,
                state,
                expr.at,
                "list",
                V(
                    TREE,
                    frame.record(state, (expr.at, "leaf"), expr.at, text(expr), EMPTY, definite=True, leaf=True)
                    if state.grad != OFF
                    else EMPTY,
                    size=4,
                    store=marks_of_parameters(receiver, expr.func.value if isinstance(expr.func, ir.Attr) else None),
                ),
            ).objs,
        )
    if name in ("modules", "children", "named_modules", "named_children", "values", "items", "get_submodule"):
        return V(MODULE)
    if name in ("state_dict", "buffers", "named_buffers"):
        return V(TREE, size=4)
    if name in knowledge.bookkeeping() or not _computes(frame, name):
        return unknown_call(frame, state, expr, receiver, args, words)
    if not receiver.refs and _gives_data(frame, name):
        return DATA_VALUE
    frame.named.add((name, state.grad))
    return run_module(frame, state, expr, receiver, args, words, method=name)


def _gives_data(frame: Frame, name: str) -> bool:
    """Whether all of the project's methods of that name are annotated to return numbers or text."""
    candidates = [method for method in frame.analyser.methods_named(name) if method.cls is not None]
    notes = [
        frame.analyser.annotated(method.module, method.node.returns)
        for method in candidates
        if isinstance(method.node, ir.FunctionDef) and method.node.returns is not None
    ]
    return (
        bool(notes)
        and len(notes) == len(candidates)
        and all(note is not None and note.is_only(DATA | NONE) for note in notes)
    )


_BOOKKEEPING = (
    "create_",
    "prepare_",
    "freeze_",
    "unfreeze_",
    "get_",
    "set_",
    "is_",
    "has_",
    "num_",
    "load_",
    "save_",
    "log_",
    "print_",
    "update_",
    "add_",
    "reset_",
    "register_",
    "init_",
    "make_",
    "build_",
    "count_",
    "latest_",
    "clear_",
    "enable_",
    "disable_",
    "remove_",
)
_COMPUTED = (
    "feature",
    "features",
    "logits",
    "loss",
    "embedding",
    "embeddings",
    "score",
    "scores",
    "output",
    "outputs",
    "prediction",
    "action",
    "value",
)


def _computes(frame: Frame, name: str) -> bool:
    """Whether a method of a module of unknown class may run layers, by the project's methods of that name or by it."""
    candidates = [method for method in frame.analyser.methods_named(name) if method.cls is not None]
    summaries = [summary for method in candidates if (summary := frame.analyser.summary(method)) is not None]
    if summaries:
        return any(summary.runs or _runs_parts(summary) for summary in summaries)
    if frame.analyser.facts.many_methods(name):
        return False  # the project has its own, too many to tell
    name = name.lstrip("_")
    return (
        not name.startswith(_BOOKKEEPING) and name not in ("npu", "xpu", "mps", "hpu", "ipu", "to_empty")
    ) or name.endswith(_COMPUTED)


def _runs_parts(summary: Frame) -> bool:
    """Whether a method records a graph, or calls an attribute of its object that may be a layer."""
    own = f"p:{summary.function.params[0].name}" if summary.function.params else ""
    return any(
        node.definite or (node.unknown and node.callee is not None and node.callee.root == own and node.callee.steps)
        for node in summary.graphs.nodes.values()
    )


def _unknown_method(frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    if knowledge.methods().knows(name):
        return tensors.call(frame, state, expr, receiver, name, args, words)
    frame.named.add((name, state.grad))
    guessed = _by_name(frame, state, expr, receiver, name, args, words)
    rest = unknown_call(frame, state, expr, receiver, args, words)
    return join(guessed, rest) if guessed is not None else rest


#: how many project methods of a name an unknown receiver may mean
MAX_CANDIDATES = 3


def _by_name(frame: Frame, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V | None:
    """A call on an unknown receiver may mean any project method of that name."""
    if name.startswith("__") or not any(value.src or value.objs for value in (*args, *words.values())):
        return None
    candidates = frame.analyser.methods_named(name)
    if not 0 < len(candidates) <= MAX_CANDIDATES:
        return None
    found, after = NOTHING, None
    before_stores = set(frame.stores)
    for method in candidates:
        if not accepts(method, len(args) + 1, set(words)):
            continue
        inner = state.copy()
        self_value = V(
            INSTANCE,
            EMPTY,
            syms=receiver.syms,
            refs=frozenset((Ref("instance", method.module.key, method.cls.qual),)) if method.cls else frozenset(),
        )
        found = join(found, call_function(frame, inner, method, [self_value, *args], words, expr.at, expr))
        after = join_states(after, inner)
    if after is None:
        return None
    for key in set(frame.stores) - before_stores:
        frame.stores[key].guessed = True
    merged = join_states(state, after)
    assert merged is not None
    state.take(merged)
    return found


def accepts(function: Function, count: int, words: set[str]) -> bool:
    """Whether a call with so many positional arguments and these keywords fits the signature."""
    positional = [p for p in function.params if p.kind in ("positional", "positional-only")]
    names = {p.name for p in function.params}
    star = any(p.kind == "star" for p in function.params)
    double = any(p.kind == "double-star" for p in function.params)
    needed = [p for p in positional if p.default is None]
    if count > len(positional) and not star:
        return False
    if not double and any(not word.startswith("**") and word not in names for word in words):
        return False
    return count + len(words) >= len(needed)


# -------------------------------------------------------------------------------------- models


def run_module(
    frame: Frame, state: State, expr: ir.Call, module: V, args: Args, words: Words, method: str = "forward"
) -> V:
    """A model runs. Its forward is followed where the class is known; else it gives attached tensors."""
    batches.model_called(frame, expr)
    shown = text(expr.func)
    program = frame.analyser.program
    frozen = frozen_of(frame.analyser, state, module, module_expression(expr, module)) is True
    for ref in ordered(module.refs):
        if ref.kind == "extinstance" and method == "forward":
            return external.call_instance(frame, state, ref.name, args, words, expr, module)
        if ref.kind != "instance" or frozen:
            continue
        cls = program.module(ref.key).cls(ref.name)
        function = program.method(cls, method) if cls is not None else None
        if function is None and cls is not None and method == "forward":
            function = program.method(cls, "__call__")
        if function is None:
            continue
        known = call_function(frame, state, function, [module, *args], words, expr.at, expr)
        inner = deep(frame, state, known)
        if known.kinds & ~(UNKNOWN | NONE) and not (known.kinds & UNKNOWN and not known.kinds & (TENSORS | CONTAINER)):
            tips = [tip for tip in ordered(inner.src) if tip in frame.graphs.nodes and frame.graphs.nodes[tip].model]
            if not tips:  # its own parameters take part
                tips = [
                    tip
                    for tip in ordered(inner.src)
                    if (node := frame.graphs.nodes.get(tip)) is not None and node.definite and not node.leaf
                ]
                for tip in tips:
                    frame.graphs.nodes[tip].model = True
            if not tips and state.grad != OFF and _saves(frame, function):
                tips = list(frame.record(state, (expr.at, "run"), expr.at, shown, EMPTY, definite=True, model=True))
            if tips:
                note_run(frame, state, expr, module, inner, tips[0], args)
            return as_output(state, known, device_of(frame, state, [module, *args, *words.values()]), shown)
    parents = EMPTY
    for value in (*args, *words.values()):
        parents |= deep(frame, state, value).src
    key = (expr.at, "run")
    symbol = next(iter(sorted(module.syms)), None)
    src = frame.record(state, key, expr.at, shown, parents, definite=not frozen, model=not frozen, callee=symbol)
    device = device_of(frame, state, [module, *args, *words.values()])
    result = V(TREE, src, size=SOME_SIZE if names_number(shown) else OUTPUT, device=device, store=frozenset((key,)))
    if src and not frozen:
        frame.graphs.nodes[key].opaque = True
        note_run(frame, state, expr, module, result, key, args, resolved=False)
        if expr.at in frame.runs:
            frame.runs[expr.at].method = method
    return result


def _saves(frame: Frame, function: Function) -> bool:
    """Whether a forward whose result has no graph (a decoded sequence) runs layers that record all the same."""
    summary = frame.analyser.summary(function)
    return summary is not None and any(run.grad & AMBIENT for run in summary.runs.values())


def module_expression(expr: ir.Call, module: V) -> ir.Expr:
    """The module in ``module(x)``, ``module.forward(x)`` and ``module.method(x)``."""
    func = expr.func
    return (
        func.value if isinstance(func, ir.Attr) and (func.name in ("forward", "__call__") or not module.syms) else func
    )


def _dropped(frame: Frame, expr: ir.Call) -> bool:
    return isinstance(frame.statement, ir.ExprStmt) and frame.statement.value is expr


def note_run(
    frame: Frame, state: State, expr: ir.Call, module: V, value: V, node: Source, args: Args, resolved: bool = True
) -> None:
    """Remember a model call that autograd may record."""
    if state.grad == OFF:
        return
    if not expr.args and not expr.keywords and _dropped(frame, expr):
        return  # what is given nothing and gives nothing runs no model
    func = expr.func
    base = (
        func.value
        if isinstance(func, ir.Attr) and not module.may_be(NONE) and func.name in ("forward", "__call__")
        else func
    )
    mode, key = mode_of(state, module, base)
    if mode is None and isinstance(func, ir.Attr):
        mode, key = mode_of(state, V(UNKNOWN), func.value)
    frame.runs[expr.at] = ModelRun(
        expr.at,
        frame.site(expr.at),
        text(func),
        module,
        frame.loop_ids,
        state.grad,
        mode,
        value,
        node,
        resolved=resolved,
        loop=frame.innermost(()),
        mode_key=key,
    )


# -------------------------------------------------------------------------------------- project functions


def call_function(
    frame: Frame, state: State, function: Function, args: Args, words: Words, at: int, expr: ir.Call | None
) -> V:
    """Call a project function through its summary."""
    from memlint.flow.apply import apply

    if function.cls is not None and is_abstract(function):
        overriding = frame.analyser.program.overrides(function.cls, function.name)
        if overriding:
            return _call_overrides(frame, state, overriding, args, words, at, expr)
    starred = expr is not None and any(isinstance(arg, ir.Starred) for arg in expr.args)
    bound = bind(frame, state, function, args, words, starred=starred)
    summary = frame.analyser.summary(function)
    record = CallRecord(
        function.key,
        at,
        state.grad,
        bound,
        NOTHING,
        frame.loop_ids,
        any(loop.counts for loop in frame.loops),
        dict(state.modes),
    )
    record.each_batch = any(loop.loop.over == "loader" for loop in frame.loops)
    frame.calls[at, function.key] = record
    if summary is None and frame.analyser.summaries.calls_itself(function):
        return NONE_VALUE
    if summary is None or summary.exit is None:
        if expr is None:
            return UNKNOWN_VALUE
        if summary is not None and summary.exit is None:
            return NOTHING if not summary.cut_short else UNKNOWN_VALUE
        return unknown_call(frame, state, expr, NOTHING, args, words)
    result = apply(frame, state, summary, bound, at, expr)
    record.result = result
    return result


def is_abstract(function: Function) -> bool:
    """Whether a method is there to be overridden: its body does nothing, or raises NotImplementedError."""
    if "abstractmethod" in function.decorator_names:
        return True
    body = [item for item in function.body if not (isinstance(item, ir.ExprStmt) and isinstance(item.value, ir.Const))]
    if len(body) > 1 or not body:
        return not body
    only = body[0]
    if isinstance(only, ir.Raise) and only.exc is not None:
        raised = only.exc.func if isinstance(only.exc, ir.Call) else only.exc
        return dotted(raised).endswith("NotImplementedError")
    return isinstance(only, ir.Jump)


def _call_overrides(
    frame: Frame, state: State, functions: list[Function], args: Args, words: Words, at: int, expr: ir.Call | None
) -> V:
    """A call of an abstract method may mean any of its overrides."""
    found, after = NOTHING, None
    for function in functions:
        inner = state.copy()
        found = join(found, call_function(frame, inner, function, args, words, at, expr))
        after = join_states(after, inner)
    if after is not None:
        state.take(after)
    return found


def bind(
    frame: Frame, state: State, function: Function, args: Args, words: Words, *, starred: bool = False
) -> dict[str, V]:
    """Parameter name -> value. ``starred``: one of the arguments is ``*args``."""
    bound: dict[str, V] = {}
    rest = list(args)
    spread = any(name.startswith("**") for name in words)
    for param in function.params:
        if param.kind == "star":
            # an argument that is starred itself may bring any number
            told = {} if starred else {str(at): value for at, value in enumerate(rest)}
            joined = join_all(rest) if starred else NOTHING
            rest = []
            bound[param.name] = make(frame, state, (param.at, "star", function.key), "tuple", joined, told)
        elif param.kind == "double-star":
            extra = {name: value for name, value in words.items() if name not in bound}
            bound[param.name] = make(frame, state, (param.at, "words", function.key), "dict", NOTHING, extra)
        elif param.kind != "keyword-only" and rest:
            bound[param.name] = rest.pop(0)
        elif param.name in words:
            bound[param.name] = words[param.name]
        elif param.default is not None:
            bound[param.name] = frame.analyser.evaluate_constant(function.module, param.default)
        else:
            bound[param.name] = UNKNOWN_VALUE
        if spread and param.name not in words and bound[param.name].is_only(DATA | NONE):
            bound[param.name] = UNKNOWN_VALUE
    return bound


def construct(frame: Frame, state: State, cls: Class, args: Args, words: Words, expr: ir.Call) -> V:
    """``Class(…)``: an instance whose attributes are what its ``__init__`` stores."""
    program = frame.analyser.program
    give_away(frame, state, [*args, *words.values()])
    ref = frozenset((Ref("instance", cls.module.key, cls.qual),))
    init = program.method(cls, "__init__")
    if program.is_module(cls):
        if init is not None:
            bound = bind(frame, state, init, [V(INSTANCE), *args], words)
            frame.calls[expr.at, init.key] = CallRecord(
                init.key, expr.at, state.grad, bound, NOTHING, frame.loop_ids, bool(frame.loops)
            )
        return V(MODULE | INSTANCE, refs=ref, store=frozenset((expr.at,)))
    _order, outside = program.ancestors(cls)
    if any(name.startswith("torch.autograd.") for name in outside):
        return UNKNOWN_VALUE
    if any("optim." in name for name in outside):
        note_optimizer(frame, state, next(iter(args), words.get("params")))
    if any("Dataset" in name for name in outside) or any("optim" in name.lower() for name in outside):
        return V(OPTIMIZER if any("optim." in name for name in outside) else INSTANCE, refs=ref)
    base_kind = next(
        (
            kind
            for base, kind in (("list", "list"), ("dict", "dict"), ("OrderedDict", "dict"), ("deque", "deque"))
            if any(name.rsplit(".", 1)[-1] == base for name in outside)
        ),
        "",
    )
    key = expr.at
    state.heap[key] = Obj("instance", NOTHING, {}, frame.loop_ids, cls=cls, text=cls.qual)
    state.fresh |= {key}
    value = V(INSTANCE | (CONTAINER if base_kind else 0), objs=frozenset((key,)), refs=ref)
    if init is not None:
        call_function(frame, state, init, [value, *args], words, expr.at, expr)
    elif cls.is_dataclass or any(name.endswith("NamedTuple") for name in outside):
        names = list(cls.annotations)
        fields = dict(zip(names, args, strict=False))
        fields.update({name: given for name, given in words.items() if name in names})
        for name, default in cls.attributes.items():
            if name not in fields:
                fields[name] = frame.analyser.evaluate_constant(cls.module, default)
        obj = state.heap[key]
        state.heap[key] = Obj("instance", NOTHING, {**obj.fields, **fields}, obj.loops, cls=cls, text=cls.qual)
    return value
