"""What a rule says of a mend: changes at places of the code, not yet text of a file.

A text may hold ``{torch}``: the name that the file has for torch, imported where it has none.
"""

from __future__ import annotations

import msgspec

from memlint.analysis.domain.events import Cut, GuardPlace, Site


class After(msgspec.Struct, frozen=True, gc=False):
    """Write ``text`` behind the expression at ``site`` (``.detach()``), which gets parentheses where it needs them."""

    site: Site
    text: str


class Replace(msgspec.Struct, frozen=True, gc=False):
    """Write ``text`` in place of the expression or simple statement at ``site``."""

    site: Site
    text: str


class Remove(msgspec.Struct, frozen=True, gc=False):
    """Take away the simple statement at ``site``, with its line; something else has to stand in its block."""

    site: Site


class Top(msgspec.Struct, frozen=True, gc=False):
    """Write a statement as the first one in the body of the compound statement at ``site``."""

    site: Site
    text: str


class Guard(msgspec.Struct, frozen=True, gc=False):
    """Put the statements from ``first`` to ``last``, which are of one block, under ``header`` (``with …:``); without
    one, only indent them: the header stands there already."""

    first: Site
    last: Site
    header: str = ""


class Decorate(msgspec.Struct, frozen=True, gc=False):
    """Write a decorator over the function at ``site``, under those that it has."""

    site: Site
    text: str


class Argument(msgspec.Struct, frozen=True, gc=False):
    """Add an argument at the end of the call at ``site``."""

    site: Site
    text: str


class Around(msgspec.Struct, frozen=True, gc=False):
    """Write ``before`` and ``after`` in place of what stands around the expression at ``inner`` in the expression or
    simple statement at ``outer``."""

    inner: Site
    outer: Site
    before: str = ""
    after: str = ""


class Line(msgspec.Struct, frozen=True, gc=False):
    """Write a statement on a line of its own: before the statement at ``site``, or behind all of it."""

    site: Site
    text: str
    behind: bool = False


Change = After | Replace | Remove | Top | Guard | Decorate | Argument | Around | Line


class Plan(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A mend. ``title``: what it does, a sentence's predicate ("add `loss.detach()`").

    ``doubt``: why it might change what the program computes, a clause ("`history` is returned"); "" where that is
    proven not to happen. A mend is safe where there is no doubt, and nothing but shown where it is ``display``.
    """

    title: str
    changes: tuple[Change, ...]
    doubt: str = ""
    display: bool = False


def cut_plan(cut: Cut | None, *, as_number: bool = False) -> Plan | None:
    """Detach what is stored, or take its number, which is another type and rounds otherwise."""
    if cut is None:
        return None
    changes = tuple(After(site, ".item()" if as_number else ".detach()") for site in cut.sites)
    if not as_number:
        return Plan(title=f"detach `{cut.text}`", changes=changes, doubt=cut.doubt)
    doubt = cut.doubt or "a number replaces the tensor: another type, which rounds differently"
    return Plan(title=f"take the number of `{cut.text}`", changes=changes, doubt=doubt)


def guard_plan(place: GuardPlace | None) -> Plan | None:
    """Turn autograd off where the guard belongs."""
    return None if place is None else _guarded(place, "no_grad", place.doubt)


def inference_plans(place: GuardPlace | None) -> tuple[Plan, ...]:
    """The same by inference mode, which is faster, and not to be written unseen: its tensors are of another kind."""
    doubt = "a tensor created under it raises an error if autograd or an in-place update uses it later"
    return () if place is None else (_guarded(place, "inference_mode", doubt, display=True),)


def _guarded(place: GuardPlace, mode: str, doubt: str, *, display: bool = False) -> Plan:
    if place.function is not None:
        decorate = Decorate(place.function, f"@{{torch}}.{mode}()")
        title = f"decorate the function with `@torch.{mode}()`"
        return Plan(title=title, changes=(decorate,), doubt=doubt, display=display)
    assert place.first is not None and place.last is not None
    guard = Guard(place.first, place.last, f"with {{torch}}.{mode}():")
    return Plan(title=f"run it under `with torch.{mode}():`", changes=(guard,), doubt=doubt, display=display)
