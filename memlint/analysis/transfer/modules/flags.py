"""Specialisation to literal arguments that switch what a function does with memory: ``detach=True``, ``reduce="none"``.

A call that passes a literal decides the function's tests of that parameter; so does a module whose mode the caller
knows, where its forward tests ``self.training``. The call's effect is that of a summary for the literal. The function's
own findings come from the summary for any argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import mode_of
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import resumed
from memlint.analysis.domain.values import DATA, MODULE, NONE, Flags, V
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import (
    bodies,
    calls,
    dotted,
    expressions,
    is_name,
    last_name,
    leaves,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.function_state import FunctionState
    from memlint.analysis.domain.summary.summary import Summary


#: names whose use in a branch makes the branch matter for memory
_MATTERS = frozenset({
    "append", "backward", "cpu", "detach", "detach_", "enable_grad", "eval", "extend", "inference_mode", "item",
    "no_grad", "numpy", "requires_grad", "requires_grad_", "set_grad_enabled", "tolist", "train",
})  # fmt: skip
#: callables, and keywords, that take a flag unchanged
_SWITCHES = frozenset({"set_grad_enabled", "inference_mode", "train", "requires_grad_"})
_SWITCHING_WORDS = frozenset({"create_graph", "retain_graph", "requires_grad"})
#: a longer string is data
_MAX_LITERAL = 32


def flags_of(function: Function) -> frozenset[str]:
    """The parameters of a function whose literal values decide whether it detaches, records or keeps something."""
    params = {param.name for param in function.params if param.kind not in ("star", "double-star")}
    if not params:
        return frozenset()
    own = mode_flag(function)
    found = {name for name in _switching(function.body) if name in params}
    return frozenset(found | {own} if own and "training" in function.names and _asks_for(function.body, own) else found)


def mode_flag(function: Function) -> str:
    """The expression by which a method reads its module's mode: ``self.training``."""
    return f"{function.params[0].name}.training" if function.takes_self and function.params else ""


def _asks_for(body: tuple[ir.Stmt, ...], flag: str) -> bool:
    """Whether some test of a body reads a flag."""
    tests = (
        test
        for statement in walk_statements(body)
        for test in (
            *((statement.test,) if isinstance(statement, ir.If) else ()),
            *(test for part in parts_of(statement) for test in _deciding(part)),
        )
    )
    return any(isinstance(part, ir.Attr) and dotted(part) == flag for test in tests for part in walk_expression(test))


def _deciding(part: ir.Expr) -> tuple[ir.Expr, ...]:
    """The tests of an expression: of ``a if test else b``, and the arguments of torch's switches:
    ``set_grad_enabled(self.training)``."""
    if isinstance(part, ir.IfExp):
        return (part.test,)
    return part.args if isinstance(part, ir.Call) and last_name(part.func) in _SWITCHES - {"train"} else ()


def of_eval_mode(function: Function, tests: tuple[ir.Expr, ...]) -> bool:
    """Whether the tests around a statement restrict it to eval mode: one of them is false in train mode."""
    flag = mode_flag(function)

    def where_training(part: ir.Expr) -> bool | None:
        return True if isinstance(part, ir.Attr) and dotted(part) == flag else None

    return bool(flag) and any(test_value(test, where_training) is False for test in tests)


def test_value(test: ir.Expr, leaf: Callable[[ir.Expr], bool | None]) -> bool | None:
    """Three-valued evaluation of a test; None is unknown. ``leaf``: the value of its parts other than ``not``,
    ``and`` and ``or``."""
    match test:
        case ir.Unary(op="not"):
            inner = test_value(test.operand, leaf)
            return None if inner is None else not inner
        case ir.BoolOp():
            sides = (test_value(test.left, leaf), test_value(test.right, leaf))
            decides = test.op != "and"
            return decides if decides in sides else None if None in sides else not decides
        case _:
            return leaf(test)


def own_calls(function: Function) -> set[str]:
    """The names of the methods that a method calls on its own object."""
    own = function.params[0].name if function.params else ""
    called = (call.func for call in calls(function.body, into_definitions=True) if isinstance(call.func, ir.Attr))
    return {func.name for func in called if is_name(func.value, own)}


def training(summary: Summary, state: State, module: V, expr: ir.Expr | None) -> bool | None:
    """Whether a module is in train mode in this state; None for unknown."""
    mode, key = mode_of(state, module, expr)
    if key is not None:
        return None if mode is None else not mode
    own = mode_flag(summary.function)
    literal = next((literal for flag, literal in summary.flags if flag == own), None)
    inside = literal is not None and any(path.root == f"p:{summary.function.params[0].name}" for path in module.syms)
    return bool(literal) if inside else None


def _switching(body: tuple[ir.Stmt, ...]) -> Iterator[str]:
    """The variables that decide whether a block runs that matters for memory, or that a switch of torch receives."""
    for statement in walk_statements(body):
        if isinstance(statement, ir.If) and (_matter(statement.body) or _matter(statement.orelse)):
            yield from _tested(statement.test)
        if isinstance(statement, ir.Assign) and any(
            isinstance(target, ir.Attr) and target.name == "requires_grad" for target in statement.targets
        ):
            yield from _tested(statement.value)
        for part in parts_of(statement):
            if isinstance(part, ir.IfExp) and _names(part.body, part.orelse) & _MATTERS:
                yield from _tested(part.test)
            elif isinstance(part, ir.Call):
                yield from _handed_on(part)


@kept
def _matter(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether it matters for memory that a block runs: by the names that it uses, or because it returns a value."""
    if body and isinstance(body[-1], ir.Return) and body[-1].value is not None:
        return True
    return any(_names(*expressions(statement)) & _MATTERS or any(map(_matter, bodies(statement))) for statement in body)


def _names(*exprs: ir.Expr) -> set[str]:
    bodies = (expr.body if isinstance(expr, ir.Lambda) else expr for expr in exprs)
    parts = (part for expr in bodies for part in walk_expression(expr))
    return {
        part.name if isinstance(part, ir.Attr) else part.id for part in parts if isinstance(part, ir.Attr | ir.Name)
    }


def _handed_on(call: ir.Call) -> Iterator[str]:
    """The flags that a call takes unchanged: arguments of torch's switches, keywords of the same name, and the name
    in ``getattr``."""
    if last_name(call.func) in _SWITCHES and dotted(call.func):
        for arg in call.args:
            yield from _tested(arg)
    if dotted(call.func) == "getattr" and len(call.args) > 1 and isinstance(call.args[1], ir.Name):
        yield call.args[1].id  # the name of the callbacks' method that is called
    for word in call.keywords:
        if isinstance(word.value, ir.Name) and (word.name == word.value.id or word.name in _SWITCHING_WORDS):
            yield word.value.id


def _tested(test: ir.Expr) -> Iterator[str]:
    """The variables whose truth a test asks for, or that it compares with literals."""
    for name, compared in _operands(test):
        if compared is None or all(map(_is_literal, compared.rights)):
            yield name


def _operands(test: ir.Expr) -> Iterator[tuple[str, ir.Compare | None]]:
    """The variables of a test, each with the comparison whose left side it is; None where the test asks for its
    truth."""
    match test:
        case ir.Name():
            yield test.id, None
        case ir.Unary(op="not"):
            yield from _operands(test.operand)
        case ir.BoolOp():
            yield from _operands(test.left)
            yield from _operands(test.right)
        case ir.Compare(left=ir.Name() as left):
            yield left.id, test


def _is_literal(expr: ir.Expr) -> bool:
    """Whether an expression is a constant, including a member of an enumeration or class (``Phase.TRAIN``), or a
    display of constants."""
    if isinstance(expr, ir.Display):
        return all(map(_is_literal, expr.elements))
    return isinstance(expr, ir.Const) or (isinstance(expr, ir.Attr) and expr.name.isupper())


@kept_for
def case_split(body: tuple[ir.Stmt, ...], flags: frozenset[str]) -> tuple[str, tuple[bool | str, ...]] | None:
    """The parameter by which a function with a backward is split into cases, and its possible literals: the strings
    that it is compared with and another one, or True and False; None for no split. A join over all branches would
    lose that a test which holds in one branch holds in the next."""
    if "backward" not in _names(*(expr for statement in walk_statements(body) for expr in expressions(statement))):
        return None
    tests_of: dict[str, list[tuple[str, ...]]] = {}
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.If):
            for name, compared in _operands(statement.test):
                if name in flags and (strings := _texts(compared)) is not None:
                    tests_of.setdefault(name, []).append(strings)
    assigned = assigned_names(body)[0]
    often = [name for name, tests in tests_of.items() if len(tests) > 1 and name not in assigned]
    if not often:
        return None
    name = max(often, key=lambda one: len(tests_of[one]))
    texts = list(dict.fromkeys(text for test in tests_of[name] for text in test))
    if len(texts) > _MAX_CASES:
        return None
    return name, (*texts, _ANOTHER) if texts else (True, False)


#: stands for a string that the parameter is compared with nowhere
_ANOTHER = "*"
#: most strings in a case split
_MAX_CASES = 4


def _texts(compared: ir.Compare | None) -> tuple[str, ...] | None:
    """The strings that a variable is compared with; () where the test asks for its truth, None for another
    comparison."""
    match compared:
        case None:
            return ()
        case ir.Compare(ops=("==" | "!=" | "in" | "not in",), rights=(right,)):
            parts = right.elements if isinstance(right, ir.Display) else (right,)
            texts = tuple(part.value for part in parts if isinstance(part, ir.Const) and isinstance(part.value, str))
            return texts if len(texts) == len(parts) else None
        case _:
            return None


def chosen(flags: frozenset[str], bound: dict[str, V], trains: bool | None) -> Flags:
    """The literals that a call passes for a function's flags, and the mode of its module, as far as they are known."""
    found: list[tuple[str, bool | str | None]] = []
    for name in sorted(flags):
        if "." in name and trains is not None:
            found.append((name, trains))
        value = bound.get(name)
        if value is None or not value.is_only(DATA | NONE):
            continue
        if value.is_only(NONE):
            found.append((name, None))
        elif isinstance(value.const, bool) or (isinstance(value.const, str) and len(value.const) <= _MAX_LITERAL):
            found.append((name, value.const))
    return tuple(found)


def reached_with(summary: Summary) -> tuple[ir.Stmt, ...]:
    """The statements of a body that its constant arguments leave: a decided test gives way to its branch, and a branch
    that returns ends the body."""
    body = summary.function.body
    decided = {name: bool(value) for name, value in summary.flags if name not in assigned_names(body)[0]}

    def taken(block: tuple[ir.Stmt, ...]) -> Iterator[ir.Stmt]:
        for statement in block:
            test = statement.test if isinstance(statement, ir.If) else None
            holds = test_value(test, lambda part: decided.get(getattr(part, "id", ""))) if test is not None else None
            if holds is None or not isinstance(statement, ir.If):
                yield statement
                continue
            branch = statement.body if holds else statement.orelse
            yield from taken(branch)
            if leaves(branch):
                return

    return tuple(taken(body)) if decided else body


def truth(summary: Summary, state: State, test: ir.Expr) -> bool | None:
    """The value of a test of the flags in a summary that is specialised to literals; None for unknown."""
    return test_value(test, lambda part: _leaf(summary, state, part))


def usual_side(fn: FunctionState, state: State, test: ir.Expr) -> bool | None:
    """The value of a test of parameters under their defaults, where no known call passes another flag; None for
    unknown."""

    def by_default(part: ir.Expr) -> bool | None:
        if not isinstance(part, ir.Name) or part.id not in {param.name for param in fn.function.params}:
            return None
        value = state.env.get(part.id)
        untouched = value is not None and any(path == (f"p:{part.id}", ()) for path in value.syms)
        return fn.analyser.usual(fn.function, part.id) if untouched else None

    return test_value(test, by_default)


def _leaf(summary: Summary, state: State, test: ir.Expr) -> bool | None:
    """The value of a part of a test under the literals of the summary; None for unknown."""
    match test:
        case ir.Const(value=bool() | int() | str() as known):
            return bool(known)  # the truth of a text as well: ``x == "a" or "b"`` always holds
        case ir.Name():
            literal = _literal(summary, state, test)
            return None if literal is _OPEN else bool(literal)
        case ir.Attr(name="training"):
            module = summary.interpreter.evaluate(resumed(summary), state, test.value)
            return training(summary, state, module, test.value) if module.kinds & MODULE else None
        case ir.Compare(left=ir.Name() as left, ops=(op,), rights=(right,)):
            literal = _literal(summary, state, left)
            parts = right.elements if isinstance(right, ir.Display) else (right,)
            others = () if literal is _OPEN else [_constant(summary, state, item) for item in parts]
            if literal is _OPEN or _OPEN in others:
                return None
            among = any(type(item) is type(literal) and item == literal for item in others)
            positive = ("in",) if isinstance(right, ir.Display) else ("is", "==")
            return among if op in positive else not among if op in ("is not", "!=", "not in") else None
        case _:
            return None


def _constant(summary: Summary, state: State, expr: ir.Expr) -> object:
    """The literal that a flag is compared with; `_OPEN` for another expression."""
    if isinstance(expr, ir.Const):
        return expr.value if expr.kind in _KINDS else _OPEN
    if not _is_literal(expr):
        return _OPEN
    value = summary.interpreter.evaluate(resumed(summary), state, expr)
    return value.const if value.is_only(DATA) and isinstance(value.const, str | bool) else _OPEN


#: kinds of literals by which summaries are specialised
_KINDS = ("bool", "str", "None")
_OPEN = object()


def _literal(summary: Summary, state: State, name: ir.Name) -> object:
    """The literal that a flag has here; `_OPEN` where it is unknown, as after an assignment."""
    for flag, literal in summary.flags:
        if flag == name.id:
            value = state.env.get(flag)
            if value is None or not value.is_only(DATA | NONE):
                return _OPEN
            if literal is None:
                return None if value.is_only(NONE) else _OPEN
            return literal if value.const == literal and type(value.const) is type(literal) else _OPEN
    return _OPEN
