"""Named tuples and model outputs, whose members have names and positions."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CALLABLE,
    NONE,
    NONE_VALUE,
    NOTHING,
    UNKNOWN_VALUE,
    Args,
    Ref,
    V,
    Words,
    join_all,
)
from memlint.analysis.transfer.heap import make
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

_FACTORIES = frozenset({"collections.namedtuple", "typing.NamedTuple", "typing_extensions.NamedTuple"})


def factory(name: str, expr: ir.Call) -> V | None:
    """The class that ``namedtuple("Losses", "rpn head total")`` makes; None for another function, or where the names
    are not literals."""
    if name not in _FACTORIES or len(expr.args) < 2:
        return None
    names = tuple(_names(expr.args[1]))
    return V(CALLABLE, refs=frozenset((Ref("record", "", "", args=names),))) if names else None


def _names(expr: ir.Expr) -> Iterable[str]:
    if isinstance(expr, ir.Const) and isinstance(expr.value, str):
        return expr.value.replace(",", " ").split()
    found = []
    for item in expr.elements if isinstance(expr, ir.Display) else ():
        if isinstance(item, ir.Display) and item.elements:  # (name, annotation)
            item = item.elements[0]
        if not isinstance(item, ir.Const) or not isinstance(item.value, str):
            return ()
        found.append(item.value)
    return found


def named(words: Words) -> dict[str, V]:
    """The arguments with a keyword, without those of ``**rest``."""
    return {word: value for word, value in words.items() if not word.startswith("**")}


#: the outputs of these libraries' models: records of tensors, whose members have names and positions
_MODEL_OUTPUT = lazy_pattern(r"(transformers|diffusers|huggingface_hub)\.(.*\.)?[A-Z]\w*Output\w*")


def is_model_output(name: str) -> bool:
    return _MODEL_OUTPUT.fullmatch(name) is not None


def model_output(fn: FunctionState, state: State, words: Words, expr: ir.Call) -> V:
    """``CausalLMOutput(loss=loss, logits=logits)``: a member that is None takes no position."""
    fields = named(words)
    there = [value for value in fields.values() if not value.is_only(NONE)]
    sure = all(not value.may_be(NONE) for value in there)
    positions = {str(at): value for at, value in enumerate(there)} if sure else {}
    rest = NOTHING if sure and len(fields) == len(words) else join_all((*there, UNKNOWN_VALUE))
    return make(fn, state, expr.at, "dict", rest, {**fields, **positions})


def record(fn: FunctionState, state: State, names: tuple[str, ...], args: Args, words: Words, expr: ir.Call) -> V:
    """The value of ``Losses(a, b, total=c)`` or ``Losses(*values)``."""
    return make(fn, state, expr.at, "tuple", NOTHING, members(names, args, words, expr))


def members(names: tuple[str, ...], args: Args, words: Words, expr: ir.Call) -> dict[str, V]:
    """The members of a named tuple by name and by position; an omitted one has its default."""
    found: dict[str, V] = {}
    positional: list[V] = []
    for shown, value in zip(expr.args, args, strict=False):
        # a starred argument fills the positions that the others leave
        several = len(names) - len(args) + 1 if isinstance(shown, ir.Starred) else 1
        positional += [value] * several
    spread = any(word.startswith("**") for word in words)
    for position, name in enumerate(names):
        left_out = UNKNOWN_VALUE if spread else NONE_VALUE
        found[name] = found[str(position)] = (
            positional[position] if position < len(positional) else words.get(name, left_out)
        )
    return found
