"""Calls of project-defined module methods that run the module's layers."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    CONTAINER,
    CPU,
    EMPTY,
    MODULE,
    TENSORS,
    UNKNOWN,
    Args,
    Path,
    V,
    Words,
    ordered,
)
from memlint.analysis.index.roles_by_name import names_model
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.computing import names_part
from memlint.analysis.transfer.library.module_methods import module_method
from memlint.analysis.transfer.library.noted_runs import note_run
from memlint.analysis.transfer.methods_by_name import graph_by_name
from memlint.analysis.transfer.modules.modes import frozen_of, set_mode
from memlint.analysis.transfer.reading import read_attribute
from memlint.ir import nodes as ir


def is_self(fn: FunctionState, receiver: V) -> bool:
    """Whether a value is the receiver of the current method."""
    own = fn.function.own_name
    return any(path.root == f"p:{own}" and not path.steps for path in receiver.syms)


def called_as_model(fn: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> bool:
    """Whether an unresolved value of a model's name is called with tensors first, and not those of the host:
    ``model(batch)``, ``self.model(**batch)``."""
    given = next(iter((*args, *words.values())), None)
    if given is None or not callee.is_only(UNKNOWN) or not names_model(text(expr.func)):
        return False
    if given.is_only(TENSORS):
        return given.device != CPU
    inside = tensors_within(fn, state, given) if given.is_only(TENSORS | CONTAINER) else given
    return inside.is_only(TENSORS) and inside.device != CPU


def model_of_unresolved(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """The model that an unresolved object holds: ``trainer.model(batch)``, where the project has no such method. None
    if nothing says that it is one."""
    if not names_model(name) or fn.analyser.facts.methods.are_there(name):
        return None
    member = read_attribute(fn, state, receiver, name)
    return member.as_module() if called_as_model(fn, state, member, args, words, expr) else None


def module_call(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, member: V, args: Args, words: Words
) -> V:
    """The value of a call of a resolved method of a module: what it computes is a model's output."""
    before = len(fn.graphs.nodes)
    result = fn.interpreter.call_value(fn, state, member, args, words, expr)
    if name in ("eval", "train"):
        assert isinstance(expr.func, ir.Attr)
        set_mode(state, expr.func, receiver, name, args, words)
    if not member.kinds & MODULE and _is_of_unknown_part(fn, state, receiver, name, result):
        return module_method(fn, state, expr, receiver.but(kinds=MODULE, refs=EMPTY), name, args, words)
    if len(fn.graphs.nodes) > before and not member.kinds & MODULE:
        note_method_run(fn, state, expr, receiver, name, result, args)
    return result


def _is_of_unknown_part(fn: FunctionState, state: State, receiver: V, name: str, result: V) -> bool:
    """Whether a method returns the output of an unknown part of its module (``return self.inner.encode(x)``, with
    ``inner`` from the constructor). The output is then treated as that of a class outside the project."""
    if not result.kinds & UNKNOWN or graph_by_name(name) == "unheard" or is_self(fn, receiver):
        return False
    if frozen_of(fn, state, receiver, None) is True:
        return False
    nodes = fn.graphs.nodes_of(result.src)
    return all(node.unknown for node in nodes) and any(
        isinstance(item, Path) and item.is_in(whole) and names_part(item.steps[len(whole.steps) :])
        for node in nodes
        for item in node.loose
        for whole in receiver.syms
    )


def note_method_run(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, result: V, args: Args
) -> None:
    """Record a model run for a call of a module's method that returns what its layers compute."""
    if knowledge.is_bookkeeping(name):
        return
    inner = tensors_within(fn, state, result)
    tips = [tip for tip in ordered(inner.src) if tip in fn.graphs.nodes and fn.graphs.nodes[tip].model]
    if tips:
        note_run(fn, state, expr, receiver, inner, tips[0], args)
