"""What becomes of the gradients that a backward leaves in a network, on every path from there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from memlint.sdk import Site, lazy_pattern
from memlint.sdk.project import Analyser, Function
from memlint.sdk.syntax import children, dotted, identifiers, ir, last_name, text

from .ownership import Frame, Ownership, overlap, own_object

#: nothing is left, or the gradients of the backward are
CLEAN, LEFT = 1, 2
#: calls that fill gradients
BACKWARD = frozenset({"backward", "manual_backward"})
#: names without which a function does nothing to gradients
_HOT = frozenset({
    "step", "zero_grad", "grad", "backward", "manual_backward", "requires_grad", "requires_grad_", "unscale_",
    "clip_grad_norm_", "clip_grad_norm", "clip_grad_value_", "set_requires_grad", "optimize", "minimize",
})  # fmt: skip
#: functions that read the gradients of what they are given
_READERS = lazy_pattern(r"clip_grad|unscale|grad_norm|gradient|clip_by|plot_grad")
#: functions that do nothing to the gradients of a network that they are given
_HARMLESS = lazy_pattern(
    r"^(save|print|len|str|repr|type|id|isinstance|hasattr|getattr|DataParallel|DistributedDataParallel|summary|list|"
    r"tuple|enumerate|zip|iter|next|chain|filter|parameters_to_vector|unwrap_model|deepcopy|append)$"
)
#: objects whose step changes learning rates or flags, or is none of an optimizer
_SCHEDULES = lazy_pattern(
    r"sched|warmup|anneal|(^|[._])(lrs?|prof(iler)?|envs?|meter|timer|p?bar|logger|ema|beta)($|[._])"
)
_SCHEDULERS = lazy_pattern(r"lr_scheduler|LR$|Scheduler|profile|make|gym")
#: how deep the calls of project functions are followed
_DEPTH = 4


class Outcome:
    """What a walk has seen. ``spoiled``: why the gradients may be used ("" for no reason); ``stepped``: the networks
    whose optimizers are stepped; ``steppers``: the optimizers of the walk's network; ``cleared``: the calls that throw
    the gradients away; ``ended``: gradients may be left at the end; ``visited``: the functions that ran."""

    def __init__(self) -> None:
        self.spoiled = ""
        self.stepped: set[str] = set()
        self.steppers: set[str] = set()
        self.cleared: dict[Site, str] = {}
        self.ended = False
        self.visited: set[tuple[str, str]] = set()

    def steps(self, network: str) -> bool:
        """Whether an optimizer of the network is stepped."""
        return any(overlap(network, one) for one in self.stepped)


class Wanted(NamedTuple):
    """``network``: the place of the network; ``backward``: the backward that reaches it, by function and ordinal."""

    network: str
    backward: tuple[tuple[str, str], int]


class _Jumps:
    """The states at the jumps of the innermost loop and at the returns of the function."""

    def __init__(self) -> None:
        self.breaks = self.continues = self.returns = 0


class GradientWalk:
    """An interpretation of one function, whose state is whether the gradients of one backward are left in a network."""

    def __init__(self, analyser: Analyser, ownership: Ownership, wanted: Wanted) -> None:
        self.analyser = analyser
        self.ownership = ownership
        self.wanted = wanted
        self.outcome = Outcome()
        self._active: list[Function] = []
        #: how many of the calls that are under way run the backward
        self._inside = 0

    def run(self, frame: Frame) -> Outcome:
        """The outcome of a function that may be called again and again."""
        state = self._function(CLEAN, frame)
        if state & LEFT and frame.function.node is not None:
            state = self._function(CLEAN | LEFT, frame)
        self.outcome.ended = bool(state & LEFT) and frame.function.node is not None
        return self.outcome

    def _function(self, state: int, frame: Frame) -> int:
        jumps = _Jumps()
        self.outcome.visited.add(frame.function.key)
        self._active.append(frame.function)
        state = self._block(frame.function.body, state, frame, jumps)
        self._active.pop()
        return state | jumps.returns

    def _block(self, body: tuple[ir.Stmt, ...], state: int, frame: Frame, jumps: _Jumps) -> int:
        for statement in body:
            if not state:
                break
            state = self._statement(statement, state, frame, jumps)
        return state

    def _statement(self, statement: ir.Stmt, state: int, frame: Frame, jumps: _Jumps) -> int:
        match statement:
            case ir.If(test=test, body=body, orelse=orelse):
                state = self._expression(test, state, frame)
                return self._block(body, state, frame, jumps) | self._block(orelse, state, frame, jumps)
            case ir.For() | ir.While():
                return self._loop(statement, state, frame, jumps)
            case ir.With(items=items, body=body):
                state = self._expressions((item.context for item in items), state, frame)
                return self._block(body, state, frame, jumps)
            case ir.Try(body=body, handlers=handlers, orelse=orelse, final=final):
                done = self._block(body, state, frame, jumps)
                ends = self._block(orelse, done, frame, jumps)
                for handler in handlers:
                    ends |= self._block(handler.body, state | done, frame, jumps)
                return self._block(final, ends, frame, jumps)
            case ir.Match(subject=subject, cases=cases):
                state = self._expression(subject, state, frame)
                found = state
                for case in cases:
                    found |= self._block(case.body, state, frame, jumps)
                return found
            case ir.Return(value=value):
                jumps.returns |= self._expression(value, state, frame) if value is not None else state
                return 0
            case ir.Raise():
                return 0
            case ir.Jump(kind="break"):
                jumps.breaks |= state
                return 0
            case ir.Jump(kind="continue"):
                jumps.continues |= state
                return 0
            case ir.Assign(targets=targets, value=value):
                return self._expressions((value, *targets), state, frame)
            case ir.AugAssign(target=one, value=value):
                return self._expressions((value, one), state, frame)
            case ir.AnnAssign(value=value) | ir.ExprStmt(value=value):
                return self._expression(value, state, frame) if value is not None else state
            case ir.Assert(test=test):
                return self._expression(test, state, frame)
        return state

    def _loop(self, loop: ir.For | ir.While, state: int, frame: Frame, jumps: _Jumps) -> int:
        inner = _Jumps()
        head = loop.iter if isinstance(loop, ir.For) else loop.test
        state = self._expression(head, state, frame)
        entered = 0
        while entered != state:
            entered = state
            state |= self._block(loop.body, entered, frame, inner) | inner.continues
        jumps.returns |= inner.returns
        endless = isinstance(loop, ir.While) and isinstance(loop.test, ir.Const) and bool(loop.test.value)
        return self._block(loop.orelse, 0 if endless else state, frame, jumps) | inner.breaks

    def _expressions(self, exprs: Iterable[ir.Expr], state: int, frame: Frame) -> int:
        for expr in exprs:
            state = self._expression(expr, state, frame)
        return state

    def _expression(self, expr: ir.Expr, state: int, frame: Frame) -> int:
        """The state after an expression, whose calls run in the order of evaluation."""
        if isinstance(expr, ir.Lambda):
            return state
        state = self._expressions(children(expr), state, frame)
        if isinstance(expr, ir.Yield | ir.Await) and state & LEFT:
            self._spoil("other code runs meanwhile")
        if not isinstance(expr, ir.Call) or not state:
            return state
        return self._call(expr, state, frame)

    def _call(self, call: ir.Call, state: int, frame: Frame) -> int:
        name = last_name(call.func)
        wanted = (frame.function.key, call.at) == self.wanted.backward
        receiver = call.func.value if isinstance(call.func, ir.Attr) else None
        function = self._callee(call, frame) if name not in ("backward", "zero_grad") else None
        if function is not None:
            self._inside += wanted
            state = self._project_call(call, function, state, frame)
            self._inside -= wanted
            return state
        if wanted or (self._inside and name in BACKWARD):
            return LEFT
        if receiver is not None and name == "zero_grad":
            return self._zero(call, receiver, state, frame)
        if receiver is not None and name == "step":
            self._step(call, receiver, state, frame)
        elif name not in BACKWARD:
            self._other(call, name, receiver, state, frame)
        return state

    def _zero(self, call: ir.Call, receiver: ir.Expr, state: int, frame: Frame) -> int:
        place = self.ownership.place(frame, receiver)
        held = self.ownership.held(place) if place else None
        owned = held if held is not None else frozenset((place,))
        if not any(f"{self.wanted.network}.".startswith(f"{one}.") for one in owned if one):
            return state
        if state & LEFT:
            function = frame.function
            self.outcome.cleared[Site(function.module.key, function.unit, call.at)] = text(call)
        return CLEAN

    def _step(self, call: ir.Call, receiver: ir.Expr, state: int, frame: Frame) -> None:
        place = self.ownership.place(frame, receiver)
        held = self.ownership.held(place) if place else None
        if held is None and call.args:  # scaler.step(optimizer)
            place = self.ownership.place(frame, call.args[0])
            held = self.ownership.held(place) if place else None
        elif call.args or call.keywords:
            held = None  # a closure
        if held is not None:
            self.outcome.stepped |= held
            if self._concerns(held):
                self.outcome.steppers.add(place)
                if state & LEFT:
                    self._spoil(f"`{text(call)}` uses them")
        elif state & LEFT and not self._is_schedule(place, receiver):
            self._spoil(f"`{text(call)}` is not resolved")

    def _is_schedule(self, place: str, receiver: ir.Expr) -> bool:
        """Whether the object is a schedule of learning rates, a profiler, an environment."""
        if _SCHEDULES.search(text(receiver).lower()):
            return True
        found = self.ownership.values(place) if place else None
        return bool(found) and all(
            isinstance(value, ir.Call) and _SCHEDULERS.search(dotted(value.func)) is not None
            for _, value, _ in found or ()
        )

    def _other(self, call: ir.Call, name: str, receiver: ir.Expr | None, state: int, frame: Frame) -> None:
        """A call of a library, or an unresolved one."""
        if not state & LEFT or _HARMLESS.search(name):
            return
        given = [*call.passed]
        if _READERS.search(name):
            known = [self._networks_in(one, frame) for one in given[:1]]
            if not known or known[0] is None or self._concerns(known[0]):
                self._spoil(f"`{text(call)}` reads them")
            return
        own = {own_object(frame.cls)} if frame.cls is not None else set()
        for one in given:
            place = self.ownership.place(frame, one)
            if not place:
                continue
            held = self.ownership.held(place)
            if self._concerns((place,)) or place in own or (held is not None and self._concerns(held)):
                self._spoil(f"`{text(call)}` gets `{text(one)}`, and is not resolved")

    def _networks_in(self, expr: ir.Expr, frame: Frame) -> frozenset[str] | None:
        """The networks whose parameters, or optimizer, an argument is."""
        held = self.ownership.networks(frame, expr)
        if held is not None:
            return held
        place = self.ownership.place(frame, expr)
        return self.ownership.held(place) if place else None

    def _concerns(self, places: Iterable[str]) -> bool:
        return any(overlap(one, self.wanted.network) for one in places)

    def _spoil(self, why: str) -> None:
        self.outcome.spoiled = self.outcome.spoiled or why

    def _callee(self, call: ir.Call, frame: Frame) -> Function | None:
        """The function of the project that a call runs."""
        if self._is_own(call.func, frame) and frame.cls is not None and isinstance(call.func, ir.Attr):
            return self.analyser.program.method(frame.cls, call.func.name)
        kind, what = self.analyser.program.find_expression(frame.function.module, call.func, frame.function)
        if kind == "function" and isinstance(what, Function):
            return what
        summary = self.analyser.summary(frame.function)
        records = summary.calls.values() if summary is not None else ()
        found = (self.analyser.function_at(one.callee) for one in records if one.at == call.at)
        return next((one for one in found if one is not None and one.name == last_name(call.func)), None)

    def _is_own(self, func: ir.Expr, frame: Frame) -> bool:
        """Whether a call is of a method of the function's own object."""
        if not isinstance(func, ir.Attr) or frame.cls is None:
            return False
        return self.ownership.place(frame, func.value) == own_object(frame.cls)

    def _project_call(self, call: ir.Call, function: Function, state: int, frame: Frame) -> int:
        if not self._is_hot(function, set(), _DEPTH):
            return state
        if function in self._active or len(self._active) > _DEPTH or function.is_generator:
            if state & LEFT or self._inside:
                self._spoil(f"`{text(call)}` is not followed")
            return state
        names = {key: place for key, place in self.ownership.bound(frame, function, call).items() if place}
        cls = frame.cls if self._is_own(call.func, frame) else function.cls
        if cls is not None and function.own_name:
            names[function.own_name] = own_object(cls)
        return self._function(state, Frame(function, names, cls))

    def _is_hot(self, function: Function, seen: set[tuple[str, str]], depth: int) -> bool:
        """Whether a function, or one that it calls, may do something to gradients."""
        if function.key in seen:
            return False
        seen.add(function.key)
        variables, attributes = identifiers(function.body)
        if not _HOT.isdisjoint(attributes) or not _HOT.isdisjoint(variables):
            return True
        summary = self.analyser.summary(function)
        if summary is None or depth == 0:
            return True
        called = (self.analyser.function_at(record.callee) for record in summary.calls.values())
        return any(one is not None and self._is_hot(one, seen, depth - 1) for one in called)
