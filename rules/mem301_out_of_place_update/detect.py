"""Out-of-place updates in hot loops that could be in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memlint.sdk import Confidence, Fact, Loop, Size
from memlint.sdk.project import Analyser, Function, Summary, each_call, is_step, layer_code, repeated
from memlint.sdk.syntax import (
    assignments,
    children,
    dotted,
    expressions,
    ir,
    kept_for,
    mentions,
    parts_of,
    text,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import OFF, SIZES, TENSOR, TENSORS, TREE, UNKNOWN, LoopUpdate, Path, Sources, is_place

from .first_uses import carried_in
from .inplace import doubt
from .peaks import needed_anyway
from .rule import Rebind
from .saved import is_saved

#: factories of floating-point tensors; others may make integers
_FLOATS = frozenset(
    {
        "zeros",
        "ones",
        "empty",
        "rand",
        "randn",
        "zeros_like",
        "ones_like",
        "empty_like",
        "rand_like",
        "randn_like",
    }
)
#: names of parameters that are numbers
_NUMBERS = frozenset(
    {
        "dt",
        "lr",
        "eps",
        "epsilon",
        "alpha",
        "beta",
        "gamma",
        "decay",
        "momentum",
        "step",
        "steps",
        "size",
        "scale",
        "rate",
        "factor",
    }
)
#: methods that tensors have, and numbers and arrays lack
_TENSOR_METHODS = frozenset(
    {
        "cuda",
        "cpu",
        "detach",
        "device",
        "requires_grad",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_tensor",
        "unsqueeze",
        "to",
        "numpy",
        "is_cuda",
        "backward",
        "grad",
        "add_",
        "mul_",
        "copy_",
        "clamp_",
        "zero_",
        "size",
    }
)
#: a literal shape of at most SMALL elements is small, one of at least LARGE is large
SMALL, LARGE = 4096, 2**22


def detect(analyser: Analyser, summary: Summary) -> Iterator[Rebind]:
    """The out-of-place updates of one function."""
    seen = summary.notes.rebound
    for at, one in sorted(seen.items()):
        loop = _hot(analyser, summary, one)
        if loop is None or not _is_tensor(summary, one) or _small(summary, one):
            continue
        recorded = _recorded(analyser, summary, one)
        if recorded != "no":
            continue
        certainty: Confidence = "high" if one.old.is_only(TENSORS) and one.grad == OFF else "medium"
        yield Rebind(
            site=summary.site(at),
            function=summary.function.qual,
            certainty="low" if needed_anyway(summary, one) else certainty,
            op=f"{text(one.target)} = {text(one.statement.value)}",
            inplace=one.spine,
            target=text(one.target),
            alone=_stands_alone(analyser, summary, one),
            recorded=recorded,
            size=_size(summary, one),
            weight="unknown" if one.old.extent is None else one.old.extent.weight,
            loop=loop,
            doubt=doubt(summary, one),
        )


def _hot(analyser: Analyser, summary: Summary, one: LoopUpdate) -> Loop | None:
    """The loop that carries the target between iterations; None if there is none."""
    if isinstance(one.target, ir.Name):
        if one.loop is None or not carried_in(one.loop, one.target.id):
            return None
        return one.loop.loop if one.loop.loop.every == "iteration" else None
    if is_step(analyser, summary.function):
        return each_call(summary.function)
    if isinstance(one.target, ir.Subscript):
        return None  # for any dictionary: aliases of its members are not searched for
    if one.loop is not None:
        return one.loop.loop if one.loop.loop.every == "iteration" else None
    if summary.function.name in ("__init__", "reset", "reset_parameters", "init_weights") or _made_here(summary, one):
        return None
    return repeated(analyser, summary.function)


def _made_here(summary: Summary, one: LoopUpdate) -> bool:
    """Whether the target is a part of an object that this function creates: the next call creates another one."""
    base = dotted(one.target).partition(".")[0]
    bound = [statement.value for statement in assignments(summary.function.body).get(base, ())]
    return bool(bound) and all(isinstance(value, ir.Call) for value in bound)


def _is_tensor(summary: Summary, one: LoopUpdate) -> bool:
    """Whether the target is a tensor of a floating type; the type of others would change with the operation."""
    if _is_of_tensor(summary, one.target):
        return True
    if one.old.kinds & ~(TENSORS | UNKNOWN) or one.old.kinds & TREE:
        return False
    made = summary.notes.made
    if any(made[item][1] is False for item in one.old.store if item in made):
        return False
    if one.old.is_only(TENSOR) or (not isinstance(one.target, ir.Name) and one.old.may_be(TENSOR)):
        return True
    return isinstance(one.target, ir.Name) and one.target.id in _used_as_tensors(summary.analyser, summary.function)


def _is_of_tensor(summary: Summary, target: ir.Expr) -> bool:
    """Whether the target is ``p.data`` or ``p.grad`` of a tensor; objects of the project may have such attributes
    too."""
    if not isinstance(target, ir.Attr) or target.name not in ("data", "grad"):
        return False
    return not isinstance(target.value, ir.Name) or not _own(summary.function, target.value.id)


@kept_for
def _used_as_tensors(analyser: Analyser, function: Function) -> frozenset[str]:
    """The names on which a function calls methods that only tensors have, or that it passes to functions of torch."""
    found: set[str] = set()
    for expr in (expr for statement in walk_statements(function.body) for expr in expressions(statement)):
        for part in walk_expression(expr):
            if isinstance(part, ir.Attr) and part.name in _TENSOR_METHODS and isinstance(part.value, ir.Name):
                if part.name != "size" or _called(expr, part):
                    found.add(part.value.id)
            elif isinstance(part, ir.Call) and part.args and isinstance(part.args[0], ir.Name):
                kind, what = function_target(analyser, function, part.func)
                makes = what.startswith(("torch.tensor", "torch.as_", "torch.from_"))
                if kind == "ext" and what.startswith("torch.") and not makes:
                    found.add(part.args[0].id)
    return frozenset(found)


def _called(expr: ir.Expr, func: ir.Attr) -> bool:
    return any(isinstance(part, ir.Call) and part.func is func for part in walk_expression(expr))


def function_target(analyser: Analyser, function: Function, func: ir.Expr) -> tuple[str, str]:
    """("ext", qualified name) of ``torch.f`` and ``F.f`` by the imports of the file, else ("", "")."""
    kind, what = analyser.program.find_expression(function.module, func, function)
    return ("ext", str(what)) if kind == "ext" else ("", "")


def _small(summary: Summary, one: LoopUpdate) -> bool:
    made = summary.notes.made
    known = [made[item][2] for item in one.old.store if item in made]
    return bool(known) and all(0 <= count <= SMALL for count in known)


def _size(summary: Summary, one: LoopUpdate) -> Size:
    """Large only if a literal shape or a model's parameters say so."""
    made = summary.notes.made
    if any(made[item][2] >= LARGE for item in one.old.store if item in made):
        return "activation"
    known = SIZES[one.old.size] if one.old.size == one.value.size else "unknown"
    return "batch" if known == "activation" else known


def _recorded(analyser: Analyser, summary: Summary, one: LoopUpdate) -> Fact:
    """Whether autograd records the update: not if grad mode is off or no operand has a graph."""
    if one.grad == OFF:
        return "no"
    if layer_code(analyser, summary.function):
        return "unknown"
    if _is_of_tensor(summary, one.target):
        return "no" if _plain_operands(one) else "unknown"
    if is_step(analyser, summary.function):
        own = summary.function.params[0].name
        return summary.graphs.attached(one.value.src | one.old.src, lambda path: _is_state(path, own))[0]
    sources: Sources = one.value.src | one.old.src
    verdict, _ = summary.graphs.attached(sources, _is_number)
    return verdict


def _is_number(path: Path) -> bool | None:
    """Whether a path is a step size or a factor by its name, which has no graph; None if unknown."""
    number = path.root.startswith("p:") and not path.steps and path.root[2:].rsplit("_", 1)[-1] in _NUMBERS
    return False if number else None


def _is_state(path: Path, own: str) -> bool | None:
    """Whether a path is state of an optimizer's step: its numbers, state and gradients have no graph; parameters are
    recorded themselves. None if unknown."""
    if path.root != f"p:{own}":
        return _is_number(path)
    members = [step for step in path.steps if step != "[]"]
    return None if members[-1:] == ["[params]"] else False


def _plain_operands(one: LoopUpdate) -> bool:
    """Whether the operands are members, numbers and products of them, without a model call: ``p.data = m * p.data +
    q.data``."""
    for part in walk_expression(one.statement.value):
        if isinstance(part, ir.Call) and isinstance(part.func, ir.Name):
            return False
    return True


def _stands_alone(analyser: Analyser, summary: Summary, one: LoopUpdate) -> Fact:
    if not one.alone:
        return "unknown"
    if isinstance(one.target, ir.Name):
        if any(value.store & one.old.store for value, _ in summary.yields) or is_saved(summary, one, _is_number):
            return "unknown"
        return "unknown" if _repeats_itself(summary.function, one.target.id) else "yes"
    place = text(one.target, 200)
    if _is_of_tensor(summary, one.target):
        return "unknown" if _taken(summary.function.body, place) else "yes"
    if isinstance(one.target, ir.Subscript):
        methods = summary.function.cls.methods if summary.function.cls is not None else {}
        if any(_taken(method.body, place) for method in methods.values()):
            return "unknown"
        return "yes" if _starts_fresh(analyser, methods, place) else "unknown"
    if (
        not isinstance(one.target.value, ir.Name)
        or summary.function.cls is None
        or not _own(summary.function, one.target.value.id)
    ):
        return "unknown"
    cls = summary.function.cls
    if (
        one.target.name in analyser.facts.attributes.buffers(cls)
        or one.old.kinds & ~(TENSOR | UNKNOWN)
        or not one.old.may_be(TENSOR)
    ):
        return "unknown"
    if any(_taken(method.body, place) for method in cls.methods.values()):
        return "unknown"
    return "yes" if _starts_fresh(analyser, cls.methods, place) else "unknown"


def _repeats_itself(function: Function, name: str) -> bool:
    """Whether the name is assigned an expanded view of itself, whose elements share memory."""
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and any(is_place(target, name) for target in statement.targets):
            call = statement.value
            if isinstance(call, ir.Call) and isinstance(call.func, ir.Name | ir.Attr):
                called = call.func.name if isinstance(call.func, ir.Attr) else call.func.id
                if called in ("expand", "expand_as", "broadcast_to", "repeat"):
                    return True
    return False


def _own(function: Function, name: str) -> bool:
    return bool(function.params) and function.takes_self and function.params[0].name == name


def _starts_fresh(analyser: Analyser, methods: Mapping[str, Function], place: str) -> bool:
    """Whether every assignment of an attribute or a member creates a new tensor."""
    for method in methods.values():
        for statement in walk_statements(method.body):
            if not isinstance(statement, ir.Assign) or not any(is_place(item, place) for item in statement.targets):
                continue
            value = statement.value
            made = (
                isinstance(value, ir.Call)
                and function_target(analyser, method, value.func)[1].rpartition(".")[2] in _FLOATS
            )
            if not made and not isinstance(value, ir.Binary) and not mentions(value, place):
                return False
    return True


def _taken(body: tuple[ir.Stmt, ...], place: str) -> bool:
    """Whether the place itself, not a result computed from it, is passed to another name, container, caller or
    function."""
    for statement in walk_statements(body):
        if (
            isinstance(statement, ir.Assign | ir.AnnAssign | ir.Return)
            and statement.value is not None
            and is_place(statement.value, place)
        ):
            return True
        for part in parts_of(statement):
            if isinstance(part, ir.Display | ir.DictDisplay | ir.Yield) and any(
                is_place(child, place) for child in children(part)
            ):
                return True
            if (
                isinstance(part, ir.Call)
                and isinstance(part.func, ir.Attr)
                and part.func.name in ("append", "add", "put", "insert", "extend", "setdefault")
                and any(is_place(arg, place) for arg in part.args)
            ):
                return True
    return False
