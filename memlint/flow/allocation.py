"""Which tensors of factories cost something: made on the host and then moved, or the same again in every round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.events import Allocate, Loop, OversizedBatch
from memlint.flow.factories import CONSTANT, Made
from memlint.flow.frame import Frame
from memlint.flow.repeats import layer_code, repeated
from memlint.flow.syntax import children, dotted, expressions, text, walk_expression, walk_statements
from memlint.flow.updates import function_target
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: literal shapes of so few elements are not worth a word
FEW_TO_MOVE, FEW_TO_MAKE = 1024, 64
#: loops that a literal bounds to so many rounds are not hot
FEW_ROUNDS = 32
_WHOLE = frozenset({"torch.long", "torch.int64", "torch.int", "torch.int32"})
#: methods that write each element of a tensor
_FILLS = frozenset({"uniform_", "normal_", "fill_", "zero_", "exponential_", "bernoulli_", "random_", "copy_"})
_MUTATORS = frozenset({"append", "appendleft", "add", "put", "insert", "extend", "setdefault", "update"})


def events(analyser: Analyser, frame: Frame) -> Iterator[Allocate | OversizedBatch]:
    """The allocations of one function that a rule may speak of."""
    known = frame.notes.factories
    for at, one in sorted(known.items()):
        if one.count * one.width > 2**28:
            yield OversizedBatch(
                site=frame.site(at),
                function=frame.function.qual,
                kind="literal",
                text=text(one.expr),
                bytes=one.count * one.width,
            )
        if one.moved:
            loop = _hot(analyser, frame, one)
            if loop is not None and not 0 <= one.count <= FEW_TO_MOVE:
                if _is_constant(analyser, frame, one):
                    one.move = None  # on the device it would still be made again and again
                yield _event(frame, one, loop, constant=False, mutated=False, kept=False)
        elif one.loop is not None and _is_constant(analyser, frame, one):
            mutated, kept = _used(frame, one)
            yield _event(frame, one, one.loop.loop, constant=True, mutated=mutated, kept=kept)


def _is_constant(analyser: Analyser, frame: Frame, one: Made) -> bool:
    """Whether every round of a hot loop makes it the same."""
    return (
        one.loop is not None
        and one.factory in CONSTANT
        and not 0 <= one.count <= FEW_TO_MAKE
        and _is_hot(one.loop.loop)
        and not layer_code(analyser, frame.function)
        and _invariant(frame, one)
    )


def _event(frame: Frame, one: Made, loop: Loop, *, constant: bool, mutated: bool, kept: bool) -> Allocate:
    return Allocate(
        site=frame.site(one.expr.at),
        function=frame.function.qual,
        factory=text(one.expr.func),
        constant="yes" if constant else "no",
        moved=one.moved,
        mutated="yes" if mutated else "no",
        kept="yes" if kept else "no",
        size="unknown",
        loop=loop,
        move=frame.site(one.move) if one.move is not None and _is_named(frame, one) else None,
        device=one.device,
        doubt=_rounding(frame, one) or _age(frame),
    )


def _is_named(frame: Frame, one: Made) -> bool:
    """Whether the call names torch's own function: another may come in by a variable, which takes no device."""
    return function_target(frame.analyser, frame.function, one.expr.func)[1].startswith("torch.")


def _age(frame: Frame) -> str:
    """``device=`` came with torch 0.4, which a project of before may not be run with."""
    old = frame.analyser.program.project.predates_grad_mode
    return "nothing in the project is newer than torch 0.3, which knows no `device=`" if old else ""


def _rounding(frame: Frame, one: Made) -> str:
    """Why a factory may give something else on another device."""
    factory = one.factory
    if factory == "empty" and not _is_filled(frame, one):
        return "uninitialized memory differs: on the host it is most often zero"
    if any(word.name == "requires_grad" for word in one.expr.keywords):
        return "its gradient is then on the device"
    whole = any(word.name == "dtype" and dotted(word.value) in _WHOLE for word in one.expr.keywords)
    if factory in ("zeros", "ones", "full", "empty", "eye") or (factory == "arange" and whole):
        return ""
    if factory.startswith(("rand", "normal", "bernoulli", "multinomial", "poisson")):
        return "the device generates other random numbers"
    return "the device may round differently"


def _is_filled(frame: Frame, one: Made) -> bool:
    """``torch.empty(…).to(device).uniform_()``: each element is written at once, where it was moved to."""
    if one.move is None:
        return False
    _, parents = _statement(frame.function.body, one.move)
    return getattr(parents.get(one.move), "name", "") in _FILLS


def _hot(analyser: Analyser, frame: Frame, one: Made) -> Loop | None:
    if one.loop is not None:
        return one.loop.loop if _is_hot(one.loop.loop) else None
    return repeated(analyser, frame.function)


def _is_hot(loop: Loop) -> bool:
    return loop.every == "iteration" and (loop.trips is None or loop.trips > FEW_ROUNDS)


def _statement(body: tuple[ir.Stmt, ...], at: int) -> tuple[ir.Stmt | None, dict[int, ir.Expr]]:
    """(the statement that holds the expression, parents of the parts of its expressions by ordinal)"""
    for statement in walk_statements(body, into_definitions=False):
        for expr in expressions(statement):
            parents: dict[int, ir.Expr] = {}
            found = False
            for part in walk_expression(expr):
                found = found or part.at == at
                for child in children(part):
                    parents[child.at] = part
            if found:
                return statement, parents
    return None, {}


def _invariant(frame: Frame, one: Made) -> bool:
    """Whether the arguments are the same in every round."""
    assert one.loop is not None
    bound = set(one.loop.bound)
    written: set[str] = set()
    for statement in walk_statements(frame.function.body, into_definitions=False):
        if isinstance(statement, ir.For) and ("loop", statement.at) in frame_loops(one):
            bound |= {part.id for part in walk_expression(statement.target) if isinstance(part, ir.Name)}
    for statement in walk_statements(one.loop.body, into_definitions=False):
        if isinstance(statement, ir.For):
            bound |= {part.id for part in walk_expression(statement.target) if isinstance(part, ir.Name)}
        if isinstance(statement, ir.Assign | ir.AugAssign):
            targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
            written |= {dotted(target) for target in targets if isinstance(target, ir.Attr)}
    for expr in (*one.expr.args, *(word.value for word in one.expr.keywords)):
        for part in walk_expression(expr):
            if isinstance(part, ir.Name) and part.id in bound:
                return False
            if isinstance(part, ir.Attr) and dotted(part) in written:
                return False
            if isinstance(part, ir.Call) and dotted(part.func) not in (
                "len",
                "int",
                "torch.device",
                "max",
                "min",
                "tuple",
                "list",
            ):
                return False
    return not any(word.name in ("requires_grad", "out") or word.name is None for word in one.expr.keywords)


def frame_loops(one: Made) -> tuple[object, ...]:
    """The loop whose rounds the call is in."""
    return (one.loop.id,) if one.loop is not None else ()


def _used(frame: Frame, one: Made) -> tuple[bool, bool]:
    """(whether the tensor is written to, whether it may be kept) in the loop; unknown uses count as keeping."""
    assert one.loop is not None
    statement, parents = _statement(one.loop.body, one.expr.at)
    if statement is None:
        return False, True
    top: ir.Expr = one.expr
    while (parent := parents.get(top.at)) is not None:
        if isinstance(parent, ir.Attr | ir.Subscript):
            top = parent
            continue
        if isinstance(parent, ir.Call) and parent.func is top and isinstance(top, ir.Attr):
            if top.name.endswith("_") or top.name in ("numpy", "data", "tolist", "requires_grad_"):
                return True, True
            top = parent
            continue
        break
    if parent is not None:
        return False, not _only_reads(frame, parents, parent, top)
    if (
        not isinstance(statement, ir.Assign)
        or len(statement.targets) != 1
        or not isinstance(statement.targets[0], ir.Name)
    ):
        return False, True
    return _uses_of(frame, one, statement.targets[0].id)


def _uses_of(frame: Frame, one: Made, name: str) -> tuple[bool, bool]:
    assert one.loop is not None
    times = 0
    for statement in walk_statements(one.loop.body):
        if isinstance(statement, ir.AugAssign) and _root(statement.target) == name:
            return True, False
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            return False, True
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                for part in target.elements if isinstance(target, ir.Display) else (target,):
                    if isinstance(part, ir.Name) and part.id == name:
                        times += 1
                    elif _root(part) == name:
                        return True, False
        if isinstance(statement, ir.For) and any(
            isinstance(part, ir.Name) and part.id == name for part in walk_expression(statement.target)
        ):
            return False, True
        for expr in expressions(statement):
            parents: dict[int, ir.Expr] = {}
            for part in walk_expression(expr):
                for child in children(part):
                    parents[child.at] = part
            for part in walk_expression(expr):
                if isinstance(part, ir.Name) and part.id == name:
                    mutated, kept = _one_use(frame, statement, parents, part)
                    if mutated or kept:
                        return mutated, kept
    return False, times != 1


def _root(expr: ir.Expr) -> str:
    while isinstance(expr, ir.Attr | ir.Subscript):
        expr = expr.value
    return expr.id if isinstance(expr, ir.Name) else ""


def _one_use(frame: Frame, statement: ir.Stmt, parents: dict[int, ir.Expr], use: ir.Expr) -> tuple[bool, bool]:
    top: ir.Expr = use
    while (parent := parents.get(top.at)) is not None:
        if isinstance(parent, ir.Attr):
            if (parent.name.endswith("_") and not parent.name.endswith("__")) or parent.name in ("data", "grad"):
                return True, False
            top = parent
            continue
        if isinstance(parent, ir.Subscript) and parent.value is top:
            top = parent
            continue
        if isinstance(parent, ir.Call) and parent.func is top:
            top = parent
            continue
        break
    if parent is not None:
        return False, not _only_reads(frame, parents, parent, top)
    if isinstance(statement, ir.Assign) and any(target is use for target in statement.targets):
        return False, False
    # the name itself (or a view of it) goes to another name, or to the caller
    return False, isinstance(statement, ir.Assign | ir.AnnAssign | ir.Return) and not isinstance(top, ir.Call)


def _only_reads(frame: Frame, parents: dict[int, ir.Expr], parent: ir.Expr, child: ir.Expr) -> bool:
    """Whether the expression around a use computes something new of it."""
    if isinstance(parent, ir.Binary | ir.Compare | ir.Unary | ir.Slice):
        return True
    if isinstance(parent, ir.Subscript):
        return parent.index is child
    if isinstance(parent, ir.Display):
        outer = parents.get(parent.at)
        return (
            isinstance(outer, ir.Call)
            and outer.func is not parent
            and function_target(frame.analyser, frame.function, outer.func)[1].startswith("torch.")
        )
    if not isinstance(parent, ir.Call):
        return False
    name = (
        parent.func.name
        if isinstance(parent.func, ir.Attr)
        else parent.func.id
        if isinstance(parent.func, ir.Name)
        else ""
    )
    if (
        name in _MUTATORS
        or name.endswith("_")
        or name[:1].isupper()
        or name in ("Variable", "zip", "list", "tuple", "dict")
    ):
        return False
    kind, _ = frame.analyser.program.find_expression(frame.module, parent.func, frame.function)
    return kind not in ("function", "class")
