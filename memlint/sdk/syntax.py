"""For detect.py of a rule: the syntax tree of a function. Nodes (`ir`), walks over them, their text, and their names.

Every node has ``at``, its ordinal in its unit: ``summary.site(node.at)`` is its place. A body is a tuple of statements.
"""

from __future__ import annotations

from memlint.analysis.syntax.bindings import (
    assigned_names,
    binds,
    identifiers,
    mentions,
    names_bound_by,
    names_read,
    unpacked_targets,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import (
    assignments,
    bodies,
    call_at,
    calls,
    calls_backward,
    children,
    dotted,
    expressions,
    is_false,
    is_none,
    is_true,
    last_name,
    leaves,
    loops_around,
    parts,
    parts_of,
    statement_at,
    under_calls,
    walk_expression,
    walk_statements,
    way_to,
    with_lambdas,
)
from memlint.ir import nodes as ir

__all__ = [
    "assigned_names",
    "assignments",
    "binds",
    "bodies",
    "call_at",
    "calls",
    "calls_backward",
    "children",
    "dotted",
    "expressions",
    "identifiers",
    "ir",
    "is_false",
    "is_none",
    "is_true",
    "kept",
    "kept_for",
    "last_name",
    "leaves",
    "loops_around",
    "mentions",
    "names_bound_by",
    "names_read",
    "parts",
    "parts_of",
    "statement_at",
    "text",
    "under_calls",
    "unpacked_targets",
    "walk_expression",
    "walk_statements",
    "way_to",
    "with_lambdas",
]
