"""What is evaluated on every path to a place in a function, and on every path from there to the end of its loop's
round."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import (
    Begins,
    begins,
    bodies,
    children,
    dotted,
    expressions,
    loops_around,
    walk_statements,
    way_to,
)
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: calls that end the program: by an exception, or at once
EXITS = {"sys.exit": "raises", "exit": "raises", "quit": "raises", "os._exit": "at once", "os.abort": "at once"}
#: contexts that do not catch exceptions
_PLAIN = lazy_pattern(r"no_grad|inference_mode|enable_grad|autocast|^open\(")

Decide = Callable[[ir.Expr], bool | None]
Part = ir.Expr | ir.Raise
Block = tuple[ir.Stmt, ...]
_DEFINITIONS = (ir.FunctionDef, ir.ClassDef)


class ErrorsOnPaths:
    """The errors that are certain on the paths through one function's body; each statement is examined once."""

    def __init__(self, body: Block, decide: Decide, mistake: Callable[[Part], str]) -> None:
        """``decide``: the value of a test, None if unknown; ``mistake``: the error in a part, "" for none."""
        self._body = body
        self._decide = decide
        self._mistake = mistake
        self._parts: dict[int, str] = {}
        self._statements: dict[tuple[int, bool], str] = {}
        #: by statement: the first error on every path to it
        self._reached: dict[int, str | None] = {}
        #: by compound statement: the first error on every path to its blocks
        self._entered: dict[int, str | None] = {}
        #: by block: how many of its statements were examined, and the error in the last of them
        self._examined: dict[int, tuple[int, str]] = {}
        #: by block and position: the first error from there on
        self._onward: dict[tuple[int, int], str] = {}
        self._exits: list[int] | None = None

    def before(self, at: int) -> str:
        """The first error on every path to an ordinal, its own statement included; "" for none."""
        if not self._body:
            return ""
        begun = begins(self._body)
        place = max(bisect_right(begun.ordinals, at) - 1, 0)
        found = self._reaching(begun, place)
        return self._of(begun.statements[place]) if found == "" else found or ""

    def _reaching(self, begun: Begins, place: int) -> str | None:
        """The first error on every path to a statement; "" for none. None if a definition around it has an error before
        it, which need not run first."""
        way = [place]
        while way[-1] not in self._reached and begun.around[way[-1]] >= 0:
            way.append(begun.around[way[-1]])
        for inner in reversed(way):
            if inner not in self._reached:
                outer = begun.around[inner]
                if outer >= 0 and outer not in self._entered:
                    self._entered[outer] = self._entering(begun.statements[outer], self._reached[outer])
                found = "" if outer < 0 else self._entered[outer]
                self._reached[inner] = self._up_to(*begun.blocks[inner]) if found == "" else found
        return self._reached[place]

    def _entering(self, statement: ir.Stmt, reaching: str | None) -> str | None:
        """The first error on every path to the blocks of a statement."""
        if reaching != "":
            return reaching
        return None if isinstance(statement, _DEFINITIONS) else self._first(evaluated(expressions(statement)))

    def behind(self, at: int) -> str:
        """The first error on every path from an ordinal to the end of its loop's round; "" for none. It ends the loop
        in its first round."""
        for block, number in _behind(self._body, at, self._leaves):
            found = self._from(block, number + 1)
            if found:
                return found
        return ""

    def parts(self, at: int, *, behind: bool) -> list[Part]:
        """The parts that are evaluated on every path to an ordinal, and with ``behind`` those after it."""
        found: list[Part] = []
        way = way_to(self._body, at) or [(self._body, 0)][: len(self._body)]
        for depth, (block, number) in enumerate(way):
            for statement in block[:number]:
                found += _of_one(statement, self._decide)
            if depth + 1 == len(way):
                found += _of_one(block[number], self._decide)
            elif isinstance(block[number], _DEFINITIONS):
                break
            else:
                found += evaluated(expressions(block[number]))
        for block, number in _behind(self._body, at, self._leaves) if behind else ():
            found += [part for part in surely(block[number + 1 :], self._decide) if not isinstance(part, ir.Raise)]
        return found

    def _first(self, parts: Iterable[Part]) -> str:
        for part in parts:
            if id(part) not in self._parts:
                self._parts[id(part)] = self._mistake(part)
            if self._parts[id(part)]:
                return self._parts[id(part)]
        return ""

    def _of(self, statement: ir.Stmt, *, raises: bool = True) -> str:
        """The first error in a statement. ``raises``: a ``raise`` statement counts as one."""
        key = (id(statement), raises)
        if key not in self._statements:
            parts = _of_one(statement, self._decide)
            self._statements[key] = self._first(part for part in parts if raises or not isinstance(part, ir.Raise))
        return self._statements[key]

    def _up_to(self, block: Block, number: int) -> str:
        """The first error in the first ``number`` statements of a block."""
        examined, found = self._examined.get(id(block), (0, ""))
        while examined < number and not found:
            found = self._of(block[examined])
            examined += 1
        self._examined[id(block)] = examined, found
        return found if examined <= number else ""

    def _from(self, block: Block, number: int) -> str:
        """The first error in a block from a statement on, as far as it surely runs."""
        last, found = number, ""
        while last < len(block) and (id(block), last) not in self._onward:
            found = self._of(block[last], raises=False)
            last += 1
            if found or _stops(block[last - 1], self._decide):
                break
        else:
            found = self._onward.get((id(block), last), "")
        for place in range(number, last):
            self._onward[id(block), place] = found
        return found

    def _leaves(self, first: int, end: float) -> bool:
        """Whether a statement between two ordinals is a jump, a return or a raise."""
        if self._exits is None:
            exits = (ir.Return, ir.Raise, ir.Jump)
            self._exits = [one.at for one in walk_statements(self._body) if isinstance(one, exits)]
        place = bisect_left(self._exits, first)
        return place < len(self._exits) and self._exits[place] < end


def _behind(body: Block, at: int, leaves: Callable[[int, float], bool]) -> list[tuple[Block, int]]:
    """The blocks in the innermost loop around an ordinal that continue after it, from the innermost outwards, each with
    the position of the statement that contains it. ``leaves``: whether a statement between two ordinals may leave
    them."""
    loops = loops_around(body, at)
    found: list[tuple[Block, int]] = []
    inside = False
    end = math.inf
    for block, number in way_to(body, at) if loops else ():
        statement = block[number]
        end = block[number + 1].at if number + 1 < len(block) else end
        inside = inside or block is loops[-1].body
        if inside:
            if isinstance(statement, ir.Try | ir.FunctionDef | ir.ClassDef):
                break
            if isinstance(statement, ir.With) and not _lets_through(statement):
                break
            if not leaves(statement.at, end):
                found.append((block, number))
        end = min([end, *(inner[0].at for inner in bodies(statement) if inner and inner[0].at > at)])
    return found[::-1]


def _lets_through(statement: ir.With) -> bool:
    return all(_PLAIN.search(text(item.context)) for item in statement.items)


def surely(body: Iterable[ir.Stmt], decide: Decide) -> Iterator[Part]:
    """The parts that are evaluated on every path through a body."""
    for statement in body:
        yield from _of_one(statement, decide)
        if _stops(statement, decide):
            return  # the rest may not be reached


def _of_one(statement: ir.Stmt, decide: Decide) -> Iterator[Part]:
    """The parts that are evaluated on every path through a statement."""
    if isinstance(statement, ir.FunctionDef | ir.ClassDef | ir.Try):
        return
    yield from evaluated(expressions(statement))
    if isinstance(statement, ir.Raise):
        yield statement
    if isinstance(statement, ir.With) and _lets_through(statement):
        yield from surely(statement.body, decide)
    if isinstance(statement, ir.For) and _has_members(statement.iter):
        yield from surely(statement.body, decide)  # its first round
    if isinstance(statement, ir.If) and (holds := decide(statement.test)) is not None:
        yield from surely(statement.body if holds else statement.orelse, decide)


def _stops(statement: ir.Stmt, decide: Decide) -> bool:
    """Whether a statement may end its block."""
    if isinstance(statement, ir.FunctionDef | ir.ClassDef | ir.Try):
        return False
    runs: Block = (statement,)
    if isinstance(statement, ir.If) and (holds := decide(statement.test)) is not None:
        runs = statement.body if holds else statement.orelse
    return any(isinstance(inner, ir.Return | ir.Jump | ir.Raise) or _ends(inner) for inner in walk_statements(runs))


def _ends(statement: ir.Stmt) -> bool:
    """Whether a statement ends the program (``sys.exit()``), or is an endless loop."""
    if isinstance(statement, ir.While):
        return isinstance(statement.test, ir.Const) and bool(statement.test.value)
    value = statement.value if isinstance(statement, ir.ExprStmt) else None
    return isinstance(value, ir.Call) and dotted(value.func) in EXITS


def _has_members(expr: ir.Expr) -> bool:
    """Whether an iterable surely has a member: ``[1, 2, 3]``, ``range(10)``."""
    if isinstance(expr, ir.Display):
        return any(not isinstance(one, ir.Starred) for one in expr.elements)
    if isinstance(expr, ir.Call) and dotted(expr.func) == "range" and len(expr.args) == 1:
        end = expr.args[0]
        return isinstance(end, ir.Const) and isinstance(end.value, int) and end.value > 0
    return False


def evaluated(exprs: Iterable[ir.Expr]) -> Iterator[ir.Expr]:
    """The parts of expressions that are evaluated whatever the values are."""
    todo = list(exprs)
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, ir.BoolOp):
            todo.append(part.left)
        elif isinstance(part, ir.IfExp):
            todo.append(part.test)
        elif isinstance(part, ir.Comprehension):
            todo.append(part.fors[0].iter)
        elif isinstance(part, ir.Compare):
            todo += (part.left, *part.rights[:1])
        elif not isinstance(part, ir.Lambda):
            todo.extend(children(part))
