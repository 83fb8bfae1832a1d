"""What a rule says of a mend: changes at places of the code, not yet text of a file.

A text may hold ``{torch}``: the name that the file has for torch, imported where it has none.
"""

from __future__ import annotations

import msgspec

from memlint.flow.events import Site


class After(msgspec.Struct, frozen=True, gc=False):
    """Write ``text`` behind the expression at ``site`` (``.detach()``), which gets parentheses where it needs them."""

    site: Site
    text: str


class Replace(msgspec.Struct, frozen=True, gc=False):
    """Write ``text`` in place of the expression or simple statement at ``site``."""

    site: Site
    text: str


Change = After | Replace


class Plan(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A mend. ``title``: what it does, a sentence's predicate ("add `loss.detach()`").

    ``doubt``: why it might change what the program computes, a clause ("`history` is returned"); "" where that is
    proven not to happen. A mend is safe where there is no doubt, and nothing but shown where it is ``display``.
    """

    title: str
    changes: tuple[Change, ...]
    doubt: str = ""
    display: bool = False
