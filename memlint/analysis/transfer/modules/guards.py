"""Grad mode of code: with blocks, context managers of the project, and guards entered by hand."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.events import GuardKind
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State
from memlint.analysis.domain.summary.function_state import FunctionState, resumed
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CALLABLE, Ref, V, ordered
from memlint.analysis.index.entry_points import is_route
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.bindings import reads_any
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, is_false, is_true, walk_statements
from memlint.analysis.transfer.modules.flags import truth
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


def entered_grad(fn: FunctionState, state: State, context: ir.Expr) -> tuple[int | None, V]:
    """The grad mode inside ``with context:`` (None for unchanged), and the value that ``as`` binds."""
    value = fn.interpreter.evaluate(fn, state, context)
    if isinstance(context, ir.IfExp):
        return _either(fn, state, context.body, context.orelse), value
    if isinstance(context, ir.BoolOp):
        return _of_operands(fn, state, context), value
    if isinstance(context, ir.Call):
        func = fn.interpreter.evaluate(fn, state, context.func)
        grad = grad_of_reference(fn, state, func, context)
        if grad is not None:
            return grad, value
        yielded = _user_context(fn, state, func, context.at)
        if yielded is not None:
            return yielded, value
        returned = _stored_guard(value)
        if returned is not None:
            return returned, value
        named = _named_grad(state, func, context)
        if named is not None:
            return named, value
        return None, _entered(fn, func, context, value, state)
    grad = _stored_guard(value)
    return grad if grad is not None else _of_object(fn, state, value), value


def _of_object(fn: FunctionState, state: State, value: V) -> int | None:
    """The grad mode that an object of a project class enters: ``with self:``; None for unchanged."""
    found: int | None = None
    for ref in ordered(value.refs):
        cls = fn.analyser.cls(ref) if ref.kind == "instance" else None
        grad = class_grad(fn, cls) if cls is not None else None
        found = found if grad is None else grad | (found or 0)
    return found if found != state.grad else None


#: names of context managers that turn autograd off
_GUARD = lazy_pattern(r"(^|_)(no_?(param_?)?grad|inference_mode|disable_grad|without_grad)(_|$)")
_HUMP = lazy_pattern(r"(?<=[a-z0-9])(?=[A-Z])")


def _named_grad(state: State, func: V, context: ir.Call) -> int | None:
    """The grad mode inside an unresolved context manager that is named like one that turns autograd off:
    ``ctx_noparamgrad(net)``; None for another name."""
    if any(ref.kind in ("func", "class") for ref in func.refs):
        return None
    name = _HUMP.sub("_", dotted(context.func).rpartition(".")[2]).lower()
    if _GUARD.search(name) is None:
        return None
    disabled = any(map(is_false, context.args))
    return state.grad if disabled else OFF


def _entered(fn: FunctionState, func: V, context: ir.Call, value: V, state: State) -> V:
    """The value that ``as`` binds: of amp's ``scale_loss``, the loss itself."""
    for ref in ordered(func.refs):
        if ref.kind == "ext" and ref.name.endswith("amp.scale_loss") and context.args:
            return fn.interpreter.evaluate(fn, state, context.args[0])
    return value


def _of_operands(fn: FunctionState, state: State, context: ir.BoolOp) -> int | None:
    """The grad mode of one of two context managers. Every guard is true, so ``guard and other`` enters the other one
    alone, and ``guard or other`` the guard; ``flag and guard or other`` may enter either."""
    if context.op == "and":
        return entered_grad(fn, state, context.right)[0]
    if not isinstance(context.left, ir.BoolOp) and is_guard(fn, fn.function, context.left):
        return entered_grad(fn, state, context.left)[0]
    return _either(fn, state, context.left, context.right)


def _either(fn: FunctionState, state: State, one: ir.Expr, other: ir.Expr) -> int | None:
    left, _ = entered_grad(fn, state, one)
    right, _ = entered_grad(fn, state, other)
    if left is None and right is None:
        return None
    return (state.grad if left is None else left) | (state.grad if right is None else right)


def grad_of_reference(summary: Summary, state: State, func: V, call: ir.Call | None) -> int | None:
    """The grad mode that a guard's class or function sets; None for another callable."""
    found: int | None = None
    for ref in ordered(func.refs):
        name = ref.name if ref.kind in ("ext", "partial") else ""
        row = knowledge.function(name) if name else None
        if row is None or not row.context:
            continue
        grad = ON
        if row.context == "off":
            grad = OFF
            if call is not None and name.endswith("inference_mode") and call.args:
                mode = summary.interpreter.evaluate(resumed(summary), state, call.args[0]).const
                grad = OFF if mode is True else state.grad if mode is False else OFF | state.grad
        elif row.context != "on":
            flag = _flag(summary, state, call)
            grad = OFF if flag is False else ON if flag is True else ON | OFF
        found = grad if found is None else found | grad
    return found


def _flag(summary: Summary, state: State, call: ir.Call | None) -> bool | None:
    """The literal argument of ``set_grad_enabled(…)``, by its value or a flag of the summary; None for unknown."""
    if call is None:
        return None
    argument = call.args[0] if call.args else call.keywords[0].value if call.keywords else None
    if argument is None:
        return None
    const = summary.interpreter.evaluate(resumed(summary), state, argument).const
    if const is None:
        const = truth(summary, state, argument)
    if (
        isinstance(argument, ir.Attr)
        and isinstance(argument.value, ir.Name)
        and summary.function.cls is not None
        and _overridden(summary, summary.function.cls, argument.name)
    ):
        return None
    return const if isinstance(const, bool) else None


def _overridden(summary: Summary, cls: Class, name: str) -> bool:
    """Whether a subclass defines the class attribute anew."""
    return any(name in other.attributes for other in summary.analyser.program.below(cls))


def _stored_guard(value: V) -> int | None:
    """The grad mode of a stored guard (``guard = torch.no_grad(); with guard:``); None for another value."""
    found: int | None = None
    for ref in ordered(value.refs):
        if ref.kind == "guard":
            found = int(ref.name) | (found or 0)
    return found


def guard_value(grad: int) -> V:
    """A guard object that is not entered yet."""
    return V(CALLABLE, refs=frozenset((Ref("guard", "", str(grad)),)))


def entered_by_hand(fn: FunctionState, state: State, receiver: V, name: str, args: list[V]) -> bool:
    """Whether a call enters or leaves a guard. ``guard.__enter__()`` lasts until ``guard.__exit__(…)``, and
    ``stack.enter_context(guard)`` until the stack's block ends."""
    if name == "enter_context" and len(args) == 1:
        entered = _stored_guard(args[0])
        if entered is not None:
            state.grad = entered
        return entered is not None
    grad = _stored_guard(receiver) if name in ("__enter__", "__exit__") else None
    if grad is not None:
        state.grad = grad if name == "__enter__" else fn.entry
    return grad is not None


@kept
def switches_off(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether the statements of a body leave grad mode off."""
    off = False
    for statement in body:
        if not isinstance(statement, ir.ExprStmt) or not isinstance(statement.value, ir.Call):
            continue
        call = statement.value
        argument = call.args[0] if call.args else None
        if dotted(call.func).endswith("set_grad_enabled") and isinstance(argument, ir.Const):
            off = argument.value is False
        elif isinstance(call.func, ir.Attr) and call.func.name == "__enter__" and isinstance(call.func.value, ir.Call):
            off = off or dotted(call.func.value.func).rsplit(".", 1)[-1] in ("no_grad", "inference_mode")
    return off


def _user_context(fn: FunctionState, state: State, func: V, at: int) -> int | None:
    """The grad mode at the yield of a project's own context manager; None for unchanged."""
    found: int | None = None
    for ref in ordered(func.refs):
        if ref.kind == "func":
            function = fn.analyser.function(ref)
            if function is None or not function.is_generator:
                continue
            record = fn.calls.get((at, function.key))
            summary = fn.analyser.summary(function, record.args if record is not None else None)
            if summary is None:
                continue
            for _, yielding in summary.yields:
                mode = state.grad if yielding.grad == AMBIENT else yielding.grad
                found = mode if found is None else found | mode
        elif ref.kind == "class":
            cls = fn.analyser.cls(ref)
            entering = class_grad(fn, cls) if cls is not None else None
            found = found if entering is None else entering
    return found if found is None or found != state.grad else None


def class_grad(summary: Summary, cls: Class) -> int | None:
    """The grad mode that a guard class of the project enters; None for another class."""
    entered = summary.analyser.summary(summary.analyser.program.method(cls, "__enter__"))
    if entered is not None and entered.exit is not None and entered.exit.grad != AMBIENT:
        return entered.exit.grad
    rows = (knowledge.function(name) for name in summary.analyser.program.ancestors(cls)[1])
    modes = {row.context for row in rows if row is not None and row.context}
    return {"off": OFF, "on": ON}.get(modes.pop(), ON | OFF) if len(modes) == 1 else None


def is_guard(summary: Summary, function: Function, expr: ir.Expr) -> bool:
    """Whether an expression is a guard under which nothing is recorded: ``torch.no_grad``,
    ``torch.inference_mode()``, or a conditional expression of such."""
    if isinstance(expr, ir.IfExp):
        return is_guard(summary, function, expr.body) and is_guard(summary, function, expr.orelse)
    if isinstance(expr, ir.BoolOp):
        return is_guard(summary, function, expr.right if expr.op == "and" else expr.left)
    if isinstance(expr, ir.Call):
        arguments = expr.passed
        always = all(map(is_true, arguments))
        return always and is_guard(summary, function, expr.func)
    kind, what = summary.analyser.program.find_expression(function.module, expr, function)
    if kind == "none":
        return dotted(expr).rsplit(".", 1)[-1] in ("no_grad", "inference_mode")
    row = knowledge.function(str(what)) if kind == "ext" else None
    return row is not None and row.context == "off"


def decorated_grad(summary: Summary, function: Function) -> int:
    """The grad mode in which a function's body runs, by its decorators; AMBIENT where they say nothing."""
    if not function.decorators:
        return AMBIENT
    state = State()
    # decorators do not see the names that the body binds
    if any(reads_any(item, function.locals) for item in function.decorators):
        summary = FunctionState(summary.analyser, function.around or function.module.main, summary.flags)
    inert = {id(item) for item, _ in inert_decorators(summary, function)}
    for item in map(_chosen, (one for one in function.decorators if id(one) not in inert)):
        call = item if isinstance(item, ir.Call) else None
        func = summary.interpreter.evaluate(resumed(summary), state, call.func if call is not None else item)
        grad = grad_of_reference(summary, state, func, call)
        if grad is not None and grad != AMBIENT:
            return grad
        for ref in ordered(func.refs):
            wrapped: int | None = None
            if ref.kind == "func":
                wrapped = _by_function(summary, ref)
            elif ref.kind == "class" and call is not None:  # a context manager that is a decorator, too
                cls = summary.analyser.cls(ref)
                wrapped = class_grad(summary, cls) if cls is not None else None
            if wrapped is not None:
                return wrapped
    return AMBIENT


def inert_decorators(summary: Summary, function: Function) -> list[tuple[ir.Expr, GuardKind]]:
    """The guards among the decorators under which the body never runs: the call of a coroutine function that they cover
    only makes the coroutine, unless a decorator between them runs it to its end, and a route registers the function
    that it gets, without the guards above it."""
    above = function.decorators
    guards = [is_guard(summary, function, item) for item in above]
    routes = [is_route(item) for item in above]
    if isinstance(function.node, ir.FunctionDef) and function.node.is_async:
        others = [at for at in range(len(above)) if not guards[at] and not routes[at]]
        first = others[-1] + 1 if others else 0
        return [(item, "async") for at, item in enumerate(above) if at >= first and guards[at]]
    return [(item, "route") for at, item in enumerate(above) if guards[at] and any(routes[at:])]


def _chosen(decorator: ir.Expr) -> ir.Expr:
    """The decorator that a set flag chooses: ``torch.no_grad() if HAS_TORCH else (lambda f: f)``."""
    if not isinstance(decorator, ir.IfExp):
        return decorator
    denied = isinstance(decorator.test, ir.Unary) and decorator.test.op == "not"
    return decorator.orelse if denied else decorator.body


def _by_function(summary: Summary, ref: Ref) -> int | None:
    """The grad mode that a project's own decorator, or decorator factory, sets; None for unchanged."""
    decorator = summary.analyser.function(ref)
    if decorator is None or isinstance(decorator.node, ir.Lambda) or decorator.node is None:
        return None
    known = summary.analyser.wrappers
    key = (ref.key, ref.name)
    if key not in known:
        known[key] = _wrapper_grad(summary, decorator)
    return known[key]


def _wrapper_grad(summary: Summary, decorator: Function) -> int | None:
    """The grad mode in which a project's own decorator, or decorator factory, runs the function on some path; None
    for unchanged."""
    statements = list(walk_statements(decorator.body))
    inner = [statement for statement in statements if isinstance(statement, ir.FunctionDef)]
    names = {param.name for params in (decorator.params, *(each.params for each in inner)) for param in params}
    for statement in statements:
        around: tuple[ir.Expr, ...] = ()
        if isinstance(statement, ir.With):
            around = tuple(item.context for item in statement.items)
        elif isinstance(statement, ir.FunctionDef):
            around = statement.decorators
        grad = next((mode for one in around if (mode := _mode(summary, decorator, one)) is not None), None)
        wrapped = statement.body if grad is not None and isinstance(statement, ir.With | ir.FunctionDef) else ()
        if wrapped and "contextmanager" in decorator.decorator_names and isinstance(statement, ir.With):
            return grad  # ``@contextmanager`` makes a decorator, too
        if any(
            isinstance(part.func, ir.Name) and part.func.id in names for part in calls(wrapped, into_definitions=True)
        ):
            return grad
        for part in calls((statement,), into_definitions=True):
            handed = any(isinstance(arg, ir.Name) and arg.id in names for arg in part.args)
            mode = _mode(summary, decorator, part.func) if handed else None
            if mode is not None:
                return mode
    return None


def _mode(summary: Summary, decorator: Function, context: ir.Expr) -> int | None:
    """The grad mode of a guard in a decorator, for whatever flags; None for another expression."""
    if is_guard(summary, decorator, context):
        return OFF
    if not isinstance(context, ir.Call):
        return None
    kind, what = summary.analyser.program.find_expression(decorator.module, context.func, decorator)
    row = knowledge.function(str(what)) if kind == "ext" else None
    return ON | OFF if row is not None and row.context in ("argument", "off") else None
