"""Arguments that a callee cuts from their graph in place: ``def cut(states): for h in states: h.detach_()``."""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.calls.translation import Translation
from memlint.analysis.domain.values import Path, ordered
from memlint.analysis.syntax.bindings import unpacked_beside
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.tensors import cut_everywhere
from memlint.ir import nodes as ir


def cut_arguments(call: Translation, argument_of: Callable[[str], ir.Expr | None]) -> None:
    """Cut the caller's tensors that the callee cuts in place, on any path through it. ``argument_of``: what the call
    passes for a parameter."""
    for path in ordered(frozenset(call.callee.notes.cut_off)):
        if not isinstance(path, Path) or not path.root.startswith("p:"):
            continue
        held = tensors_within(call.fn, call.state, call.resolve(path))
        argument = argument_of(path.root[2:])
        if held.src and argument is not None:
            call.fn.notes.cut_off |= held.src
            cut_everywhere(call.state, held, unpacked_beside(call.fn.function.body, argument, call.at))
