"""The records of the intermediate representation (IR).

A module is lowered one *unit* at a time (a top-level definition, or the module's own statements). Every record carries
``at``, an ordinal that is unique within its unit and increases in source order; `memlint.frontend.spans` maps ordinals
to source spans on demand. Expressions and statements are tagged unions, so they serialise without pickle.
"""

from __future__ import annotations

import msgspec


class Node(msgspec.Struct, frozen=True, gc=False, tag=True, array_like=True):
    """Base of every record. ``at`` is the node's ordinal in its unit."""

    at: int


class Name(Node, frozen=True, gc=False, tag=True, array_like=True):
    id: str


class Const(Node, frozen=True, gc=False, tag=True, array_like=True):
    """A literal. ``kind`` is one of int, float, complex, str, bytes, bool, None, Ellipsis.

    ``value`` is the Python value for int, float, str and bool (long strings are cut at 200 characters,
    ints beyond 64 bits become float); None for the rest.
    """

    kind: str
    value: int | float | str | bool | None


class Attr(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``value.name``"""

    value: Expr
    name: str


class Keyword(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A keyword argument; ``name`` is None for ``**value``."""

    name: str | None
    value: Expr


class Call(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``func(*args, **keywords)``; a starred positional argument is a `Starred` in ``args``."""

    func: Expr
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]

    @property
    def passed(self) -> tuple[Expr, ...]:
        """All arguments, those of keywords included."""
        return (*self.args, *(word.value for word in self.keywords))


class Slice(Node, frozen=True, gc=False, tag=True, array_like=True):
    lower: Expr | None
    upper: Expr | None
    step: Expr | None


class Subscript(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``value[index]``; several indices are a tuple `Display`."""

    value: Expr
    index: Expr


class Binary(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``left op right``; ``op`` is the source text: + - * / // % ** @ & | ^ << >>"""

    op: str
    left: Expr
    right: Expr


class Unary(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``op operand``; ``op`` is one of - + ~ not"""

    op: str
    operand: Expr


class BoolOp(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``left op right`` with ``op`` and / or"""

    op: str
    left: Expr
    right: Expr


class Compare(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``left ops[0] rights[0] ops[1] rights[1] …``; ops are source text: == != < <= > >= is, is not, in, not in"""

    left: Expr
    ops: tuple[str, ...]
    rights: tuple[Expr, ...]


class IfExp(Node, frozen=True, gc=False, tag=True, array_like=True):
    test: Expr
    body: Expr
    orelse: Expr


class Display(Node, frozen=True, gc=False, tag=True, array_like=True):
    """A list, tuple or set display; ``kind`` is list, tuple or set. Elements may be `Starred`."""

    kind: str
    elements: tuple[Expr, ...]


class DictDisplay(Node, frozen=True, gc=False, tag=True, array_like=True):
    """A dict display; a None key marks ``**value``."""

    keys: tuple[Expr | None, ...]
    values: tuple[Expr, ...]


class CompFor(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One ``for target in iter if …`` of a comprehension."""

    target: Expr
    iter: Expr
    ifs: tuple[Expr, ...]
    is_async: bool


class Comprehension(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``kind`` is list, set, dict or generator. For a dict, ``key`` is the key and ``element`` the value."""

    kind: str
    element: Expr
    key: Expr | None
    fors: tuple[CompFor, ...]


class Param(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A parameter; ``kind`` is positional-only, positional, star, keyword-only or double-star."""

    at: int
    name: str
    kind: str
    annotation: Expr | None
    default: Expr | None


class Lambda(Node, frozen=True, gc=False, tag=True, array_like=True):
    params: tuple[Param, ...]
    body: Expr


class Walrus(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``target := value``"""

    target: Expr
    value: Expr


class Starred(Node, frozen=True, gc=False, tag=True, array_like=True):
    value: Expr


class Await(Node, frozen=True, gc=False, tag=True, array_like=True):
    value: Expr


class Yield(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``yield value`` or, with ``is_from``, ``yield from value``"""

    value: Expr | None
    is_from: bool


class FormattedString(Node, frozen=True, gc=False, tag=True, array_like=True):
    """An f-string or t-string (also one that is concatenated with others): its replacement expressions."""

    parts: tuple[Expr, ...]


Expr = (
    Name
    | Const
    | Attr
    | Call
    | Slice
    | Subscript
    | Binary
    | Unary
    | BoolOp
    | Compare
    | IfExp
    | Display
    | DictDisplay
    | Comprehension
    | Lambda
    | Walrus
    | Starred
    | Await
    | Yield
    | FormattedString
)


class Assign(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``targets[0] = targets[1] = … = value``"""

    targets: tuple[Expr, ...]
    value: Expr


class AugAssign(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``target op= value``; ``op`` is the operator without the equals sign"""

    target: Expr
    op: str
    value: Expr


class AnnAssign(Node, frozen=True, gc=False, tag=True, array_like=True):
    target: Expr
    annotation: Expr
    value: Expr | None


class ExprStmt(Node, frozen=True, gc=False, tag=True, array_like=True):
    value: Expr


class Return(Node, frozen=True, gc=False, tag=True, array_like=True):
    value: Expr | None


class Raise(Node, frozen=True, gc=False, tag=True, array_like=True):
    exc: Expr | None
    cause: Expr | None


class Delete(Node, frozen=True, gc=False, tag=True, array_like=True):
    targets: tuple[Expr, ...]


class Assert(Node, frozen=True, gc=False, tag=True, array_like=True):
    test: Expr
    msg: Expr | None


class If(Node, frozen=True, gc=False, tag=True, array_like=True):
    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class For(Node, frozen=True, gc=False, tag=True, array_like=True):
    target: Expr
    iter: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]
    is_async: bool


class While(Node, frozen=True, gc=False, tag=True, array_like=True):
    test: Expr
    body: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...]


class WithItem(msgspec.Struct, frozen=True, gc=False, array_like=True):
    context: Expr
    target: Expr | None


class With(Node, frozen=True, gc=False, tag=True, array_like=True):
    items: tuple[WithItem, ...]
    body: tuple[Stmt, ...]
    is_async: bool


class Handler(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """``except type as name: body`` (``except*`` too)"""

    at: int
    type: Expr | None
    name: str | None
    body: tuple[Stmt, ...]


class Try(Node, frozen=True, gc=False, tag=True, array_like=True):
    body: tuple[Stmt, ...]
    handlers: tuple[Handler, ...]
    orelse: tuple[Stmt, ...]
    final: tuple[Stmt, ...]


class Case(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """``captures`` are the names that the pattern binds; ``values`` the expressions that it compares with
    (classes of class patterns, dotted values, literals)."""

    captures: tuple[str, ...]
    values: tuple[Expr, ...]
    guard: Expr | None
    body: tuple[Stmt, ...]


class Match(Node, frozen=True, gc=False, tag=True, array_like=True):
    subject: Expr
    cases: tuple[Case, ...]


class FunctionDef(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``is_generator``: a yield belongs to this very function."""

    name: str
    params: tuple[Param, ...]
    decorators: tuple[Expr, ...]
    returns: Expr | None
    body: tuple[Stmt, ...]
    is_async: bool
    is_generator: bool


class ClassDef(Node, frozen=True, gc=False, tag=True, array_like=True):
    name: str
    bases: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    decorators: tuple[Expr, ...]
    body: tuple[Stmt, ...]


class Alias(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """``name as asname``; in ``from m import *`` name is ``*``."""

    name: str
    asname: str | None


class Import(Node, frozen=True, gc=False, tag=True, array_like=True):
    names: tuple[Alias, ...]


class ImportFrom(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``from (level dots)module import names``"""

    module: str
    level: int
    names: tuple[Alias, ...]


class Scope(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``global names`` or ``nonlocal names``; ``kind`` says which."""

    kind: str
    names: tuple[str, ...]


class Jump(Node, frozen=True, gc=False, tag=True, array_like=True):
    """``kind`` is break, continue or pass."""

    kind: str


Stmt = (
    Assign
    | AugAssign
    | AnnAssign
    | ExprStmt
    | Return
    | Raise
    | Delete
    | Assert
    | If
    | For
    | While
    | With
    | Try
    | Match
    | FunctionDef
    | ClassDef
    | Import
    | ImportFrom
    | Scope
    | Jump
)


class Unit(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What one unit of a module says.

    ``name`` is the top-level definition's name, or "" for the module's own statements. ``body`` holds that
    one definition, or the statements. ``count`` is the number of ordinals that the unit used.
    """

    name: str
    body: tuple[Stmt, ...]
    count: int
