"""Plans of fixes: changes at sites in the code, before they become text edits.

A text may contain ``{torch}``: the file's name for torch, which is imported if it has none.
"""

from __future__ import annotations

import msgspec

from memlint.analysis.domain.events import Cut, GuardPlace, Site


class After(msgspec.Struct, frozen=True, gc=False):
    """Write ``text`` after the expression at ``site`` (``.detach()``), with parentheses around it if necessary."""

    site: Site
    text: str


class Replace(msgspec.Struct, frozen=True, gc=False):
    """Replace the expression or simple statement at ``site`` by ``text``."""

    site: Site
    text: str


class Remove(msgspec.Struct, frozen=True, gc=False):
    """Remove the simple statement at ``site``, with its line; its block must contain another one."""

    site: Site


class Top(msgspec.Struct, frozen=True, gc=False):
    """Insert a statement at the start of the body of the compound statement at ``site``."""

    site: Site
    text: str


class Guard(msgspec.Struct, frozen=True, gc=False):
    """Put the statements of one block from ``first`` to ``last`` under ``header`` (``with …:``); without one only
    indent them, as the header exists already."""

    first: Site
    last: Site
    header: str = ""


class Decorate(msgspec.Struct, frozen=True, gc=False):
    """Add a decorator to the function at ``site``, after those that it has."""

    site: Site
    text: str


class Argument(msgspec.Struct, frozen=True, gc=False):
    """Add an argument at the end of the call at ``site``."""

    site: Site
    text: str


class Drop(msgspec.Struct, frozen=True, gc=False):
    """Remove the keyword argument whose value is at ``site``. An argument that is positional, or that stands on a line
    of its own, gets the value ``default`` instead."""

    site: Site
    default: str


class Around(msgspec.Struct, frozen=True, gc=False):
    """Replace the text around the expression at ``inner`` in the expression or simple statement at ``outer`` by
    ``before`` and ``after``."""

    inner: Site
    outer: Site
    before: str = ""
    after: str = ""


class Line(msgspec.Struct, frozen=True, gc=False):
    """Insert a statement on its own line: before the statement at ``site``, or after the whole of it."""

    site: Site
    text: str
    behind: bool = False


Change = After | Replace | Remove | Top | Guard | Decorate | Argument | Drop | Around | Line


class Plan(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """The plan of a fix. ``title``: what it does, a sentence's predicate ("add `loss.detach()`").

    ``doubt``: why it might change what the program computes, a clause ("`history` is returned"); "" if that is proven
    not to happen. A fix without a doubt is safe; one with ``display`` is only shown.
    """

    title: str
    changes: tuple[Change, ...]
    doubt: str = ""
    display: bool = False


def cut_plan(cut: Cut | None, *, as_number: bool = False) -> Plan | None:
    """Detach the stored value, or store it as a number, which is another type and rounds differently."""
    if cut is None:
        return None
    changes = tuple(After(site, ".item()" if as_number else ".detach()") for site in cut.sites)
    if not as_number:
        return Plan(title=f"detach `{cut.text}`", changes=changes, doubt=cut.doubt)
    doubt = cut.doubt or "a number replaces the tensor: another type, which rounds differently"
    return Plan(title=f"take the number of `{cut.text}`", changes=changes, doubt=doubt)


def guard_plan(place: GuardPlace | None) -> Plan | None:
    """Switch autograd off at the guard's place."""
    return None if place is None else _guarded(place, "no_grad", place.doubt)


def inference_plans(place: GuardPlace | None) -> tuple[Plan, ...]:
    """The same by inference mode, which is faster, but only shown, as its tensors are of another kind."""
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
