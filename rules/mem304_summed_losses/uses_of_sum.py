"""What a function computes from a sum of losses before the backward: if that is linear in the losses, a backward for
each of them adds up to the same gradients."""

from __future__ import annotations

from collections.abc import Iterable, Set

from memlint.sdk.project import Analyser, Function, Summary
from memlint.sdk.syntax import (
    bodies,
    children,
    dotted,
    expressions,
    ir,
    is_false,
    last_name,
    parts,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.sdk.values import LoopState

from .operations import BACKWARD, MOVES, PUTS, SHAPE, Form, called, combined, worst

#: how many helpers deep a sum is followed
_DEPTH = 3


def iteration_of(analyser: Analyser, summary: Summary, loop: LoopState) -> Uses:
    """What an iteration computes: "other" with a graph, "read" from such a value or into a collection."""
    nodes = summary.graphs.nodes.values()
    made = {node.at for node in nodes if loop.id in node.loops and (node.model or node.definite) and not node.leaf}
    uses = Uses(analyser, summary.function, {}, made=made)
    uses.block(loop.body)
    return uses


def uses_behind(
    analyser: Analyser,
    summary: Summary,
    loop: LoopState,
    sums: Set[str],
    iteration: Uses,
    flushed: Iterable[tuple[ir.Stmt, ...]],
) -> Uses:
    """The uses, behind a loop and in branches that some of its rounds run (``flushed``), of the places named ``sums``.
    What an iteration computes is known as a whole after the last iteration, and is no factor. A comprehension is a sum
    without a name."""
    uses = Uses(
        analyser,
        summary.function,
        dict.fromkeys(sums, "linear"),
        terms=iteration.made,
        seed=-1 if loop.body else _ordinal(loop),
    )
    uses.block(loop.body)
    for name, form in iteration.forms.items():
        if name not in sums:
            uses.forms[name] = worst((uses.forms.get(name, ""), form))
    uses.is_seen, uses.returned, uses.terms = False, "", frozenset()
    for statements in (*flushed, *_around(summary.function.body, _ordinal(loop), after=bool(loop.body))[1]):
        uses.block(statements)
    return uses


def uses_of_call(analyser: Analyser, caller: Summary, at: int) -> Uses:
    """The uses of what a call returns, in the function that calls."""
    uses = Uses(analyser, caller.function, {}, seed=at)
    for statements in _around(caller.function.body, at, after=False)[1]:
        uses.block(statements)
    return uses


def before_loop(body: tuple[ir.Stmt, ...], loop: LoopState) -> list[tuple[ir.Stmt, ...]]:
    """The statements before a loop, from the outermost block inwards."""
    return _around(body, _ordinal(loop), after=bool(loop.body))[0]


def parts_of_loop(function: Function, loop: LoopState) -> tuple[ir.Expr | None, list[ir.Expr]]:
    """What a loop or comprehension runs over, and the expressions that each iteration evaluates."""
    if loop.body:
        found = next((one for one in walk_statements(function.body) if one.at == _ordinal(loop)), None)
        return found.iter if isinstance(found, ir.For) else None, list(parts(loop.body))
    whole = next((part for part in parts(function.body) if part.at == _ordinal(loop)), None)
    if not isinstance(whole, ir.Comprehension):
        return None, []
    first, *others = whole.fors
    tests = (*first.ifs, *(test for one in others for test in one.ifs))
    each = (whole.element, whole.key, *tests, *(one.iter for one in others))
    return first.iter, [part for expr in each if expr is not None for part in walk_expression(expr)]


def _ordinal(loop: LoopState) -> int:
    """Where the loop or comprehension stands."""
    return loop.id[1] if isinstance(loop.id, tuple) and isinstance(loop.id[1], int) else -1


def _around(
    block: tuple[ir.Stmt, ...], at: int, *, after: bool
) -> tuple[list[tuple[ir.Stmt, ...]], list[tuple[ir.Stmt, ...]]]:
    """The statements before and behind a statement in each block around it; before and from the statement on that has
    an expression, if not ``after``."""
    for position, statement in enumerate(block):
        if after and statement.at == at:
            return [block[:position]], [block[position + 1 :]]
        for inner in bodies(statement):
            before, behind = _around(inner, at, after=after)
            if behind:
                return [block[:position], *before], [*behind, block[position + 1 :]]
        if not after and any(part.at == at for part in parts_of(statement)):
            return [block[:position]], [block[position:]]
    return [], []


class Uses:
    """The values in one function that depend on the sum, by the names of their places."""

    def __init__(
        self,
        analyser: Analyser,
        function: Function,
        forms: dict[str, Form],
        *,
        made: Set[int] = frozenset(),
        terms: Set[int] = frozenset(),
        seed: int = -1,
        depth: int = 0,
    ) -> None:
        self._analyser, self._function, self.forms = analyser, function, forms
        #: the expressions that record a graph, which are themselves what is followed; or those of the sum's terms
        self.made, self.terms = made, terms
        self._seed, self._depth = seed, depth
        summary = analyser.summary(function)
        self._callees = {record.at: record.callee for record in summary.calls.values()} if summary is not None else {}
        #: the places that were filled since a test that depends on the losses began
        self._filled: set[str] = set()
        self.returned: Form = ""
        #: the places of which a method gets a value with a graph, and gives one without an argument
        self.written: set[str] = set()
        self.read: set[str] = set()
        #: the objects and methods that are called, for what they change, with a value that has a graph
        self.changed: set[tuple[str, str]] = set()
        #: a backward goes through a linear function of the losses
        self.is_seen = False
        #: a backward goes through something that is not linear in the losses
        self.is_bent = False
        #: a value is moved to a device
        self.is_moved = False
        #: a place is read that depends on the losses, and not linearly
        self.is_other_read = False

    def block(self, statements: Iterable[ir.Stmt]) -> None:
        for statement in statements:
            self._statement(statement)

    def _statement(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            return
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Call):
                    self._effects(part, is_read=not (isinstance(statement, ir.ExprStmt) and part is expr))
        if isinstance(statement, ir.If | ir.While):
            self._branches(statement)
            return
        self._assign(statement)
        for _ in range(2 if isinstance(statement, ir.For) else 1):
            for inner in bodies(statement):
                self.block(inner)

    def _assign(self, statement: ir.Stmt) -> None:
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                self._unpack(target, statement.value)
        elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
            self._fill(statement.target, self._form(statement.value))
        elif isinstance(statement, ir.AugAssign):
            one, other = self._form(statement.target), self._form(statement.value)
            self._fill(statement.target, combined(statement.op, one, other))
        elif isinstance(statement, ir.For):
            self._iterate(statement.target, statement.iter)
        elif isinstance(statement, ir.With):
            for item in statement.items:
                if item.target is not None:
                    self._fill(item.target, self._form(item.context))
        elif isinstance(statement, ir.Return) and statement.value is not None:
            self.returned = worst((self.returned, self._form(statement.value)))
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            self._change(statement.value)

    def _branches(self, statement: ir.If | ir.While) -> None:
        """The branches of a test; what they fill depends on it."""
        outer, self._filled = self._filled, set()
        was_seen, self.is_seen = self.is_seen, False
        before = dict(self.forms)
        ends: list[dict[str, Form]] = []
        for branch in bodies(statement):
            self.forms = dict(before)
            self.block(branch)
            ends.append(self.forms)
        names = {name for end in ends for name in end}
        self.forms = {
            name: worst(end.get(name, "") for end in (*ends, *(() if len(ends) > 1 else (before,)))) for name in names
        }
        if self._test(statement.test):
            self.is_bent |= self.is_seen  # the losses decide whether, or through which branch, a backward runs
            for name in self._filled:
                self.forms[name] = "other" if self.forms.get(name, "") in ("linear", "other") else "read"
        self._filled |= outer
        self.is_seen |= was_seen

    def _test(self, test: ir.Expr) -> bool:
        """Whether the outcome of a test depends on how large the losses are. A name alone is tested for being there."""
        if isinstance(test, ir.Name | ir.Attr):
            return False
        if isinstance(test, ir.Unary | ir.BoolOp):
            return any(self._test(part) for part in children(test))
        return self._form(test) != ""

    def _unpack(self, target: ir.Expr, value: ir.Expr) -> None:
        places, values = _elements(target), _elements(value)
        if places and len(places) == len(values):
            forms = [self._form(each) for each in values]
            for each, form in zip(places, forms, strict=True):
                self._fill(each, form)
            return
        self._fill(target, self._form(value))

    def _iterate(self, target: ir.Expr, over: ir.Expr) -> None:
        """Fill the target of a loop: zip, enumerate and items() give several values, each of its own form."""
        several = _elements(target)
        name = last_name(over.func) if isinstance(over, ir.Call) else ""
        if isinstance(over, ir.Call) and name == "zip" and len(several) == len(over.args):
            for each, arg in zip(several, over.args, strict=True):
                self._iterate(each, arg)
        elif isinstance(over, ir.Call) and name == "enumerate" and len(several) == 2 and over.args:
            self._fill(several[0], "")
            self._iterate(several[1], over.args[0])
        elif isinstance(over, ir.Call) and name == "items" and len(several) == 2 and isinstance(over.func, ir.Attr):
            self._fill(several[0], "")
            self._fill(several[1], self._form(over.func.value))
        else:
            self._fill(target, self._form(over))

    def _fill(self, target: ir.Expr, form: Form) -> None:
        if isinstance(target, ir.Display):
            for each in target.elements:
                self._fill(each, form)
        elif isinstance(target, ir.Starred):
            self._fill(target.value, form)
        elif isinstance(target, ir.Subscript):
            self._put(target.value, form)
        elif name := dotted(target):
            self.forms[name] = form
            self._filled.add(name)

    def _put(self, place: ir.Expr, form: Form) -> None:
        """Put a value into a collection. One that each iteration fills is known as a whole after the last."""
        while isinstance(place, ir.Subscript):
            place = place.value
        form = worst((form, "read" if self.made else ""))
        if form and (name := dotted(place)):
            self.forms[name] = worst((self.forms.get(name, ""), form))
            self._filled.add(name)

    def _change(self, call: ir.Call) -> None:
        """A method that is called for what it does to its object: ``losses.sort()``, ``total.clamp_(max=1)``."""
        name = last_name(call.func)
        if isinstance(call.func, ir.Attr) and name not in PUTS | BACKWARD | {"clear"} and call.at not in self._callees:
            form = self._form(call)
            if self._form(call.func.value) == "linear" and form in ("linear", "other"):
                self._put(call.func.value, form)

    def _effects(self, call: ir.Call, *, is_read: bool) -> None:
        """Note a backward, what is put into a collection, and what a helper does with the sum."""
        name = last_name(call.func)
        own = call.func.value if isinstance(call.func, ir.Attr) else None
        passed = [self._form(each) for each in call.passed]
        given = worst(passed)
        if own is not None and given == "other" and not is_read:
            self.changed.add((dotted(own), name))
        if own is not None and call.at not in self._callees:
            if given == "other":
                self.written.add(dotted(own))
            elif is_read and not call.passed:
                self.read.add(dotted(own))
            self.is_moved |= name in MOVES and self._form(own) != ""
        if name in BACKWARD:
            form = worst((given, self._form(own) if own is not None else ""))
            kept = any(
                word.name in ("retain_graph", "create_graph") and not is_false(word.value) for word in call.keywords
            )
            self.is_seen |= form == "linear"
            self.is_bent |= form == "other" or (form == "linear" and kept)
        elif name in PUTS and own is not None and call.at not in self._callees:
            self._put(own, given)
        elif (inner := self._inside(call, passed)) is not None:
            self.is_seen |= inner.is_seen
            self.is_bent |= inner.is_bent
            self.is_moved |= inner.is_moved

    def _form(self, expr: ir.Expr) -> Form:
        if expr.at in self.made or expr.at == self._seed:
            return "other" if expr.at in self.made else "linear"
        if expr.at in self.terms:
            return worst(("read", self._plain(expr)))
        return self._plain(expr)

    def _plain(self, expr: ir.Expr) -> Form:
        if (known := self.forms.get(dotted(expr))) is not None:
            self.is_other_read |= known == "other"
            return known
        if isinstance(expr, ir.Binary):
            return combined(expr.op, self._form(expr.left), self._form(expr.right))
        if isinstance(expr, ir.Attr):
            form = self._form(expr.value)
            return "" if expr.name in SHAPE else "read" if form and expr.name == "data" else form
        if isinstance(expr, ir.Subscript):
            return self._selected(self._form(expr.value), self._form(expr.index))
        if isinstance(expr, ir.Call):
            return self._called(expr)
        if isinstance(expr, ir.Comprehension):
            return self._comprehension(expr)
        if isinstance(expr, ir.IfExp):
            form = worst((self._form(expr.body), self._form(expr.orelse)))
            return self._selected(form, "read" if self._test(expr.test) else "")
        if isinstance(expr, ir.Compare):
            form = worst(self._form(part) for part in children(expr))
            return "read" if form and not {"is", "is not", "in", "not in"}.issuperset(expr.ops) else ""
        if isinstance(expr, ir.Lambda):
            return self._form(expr.body)
        return worst(self._form(part) for part in children(expr))

    @staticmethod
    def _selected(form: Form, by: Form) -> Form:
        """The form of what is selected by an index or a test."""
        return worst((form, by)) if not by or form in ("", "read") else "other"

    def _comprehension(self, expr: ir.Comprehension) -> Form:
        tested = False
        for one in expr.fors:
            self._iterate(one.target, one.iter)
            tested |= any(self._test(each) for each in one.ifs)
        return self._selected(self._form(expr.element), "read" if tested else "")

    def _called(self, call: ir.Call) -> Form:
        name = last_name(call.func)
        own = call.func.value if isinstance(call.func, ir.Attr) else None
        forms = [self._form(each) for each in call.passed]
        if (inner := self._inside(call, forms)) is not None:
            return inner.returned
        if own is not None:
            forms.append(self._form(own))
        if name == "grad" and "linear" in forms:  # gradients that have no graph themselves are no part of a backward
            return "other" if any(word.name == "create_graph" for word in call.keywords) else ""
        if name == "float" and own is None:
            return "read" if any(forms) else ""
        return called(name, forms)

    def _inside(self, call: ir.Call, passed: list[Form]) -> Uses | None:
        """The uses in a function of the project that gets the sum, or sees it: a function within this one, a method of
        the same object. None if it gets nothing of it. ``passed``: the forms of all arguments, which are not computed
        again: calls within calls would double the work with each."""
        key = self._callees.get(call.at)
        callee = self._analyser.function_at(key) if key is not None else None
        if callee is None:
            return None
        count = len(call.args)
        words = {word.name: form for word, form in zip(call.keywords, passed[count:], strict=True)}
        forms: dict[str, Form] = dict(self.forms) if callee.around is self._function else {}
        for position, param in enumerate(callee.given):
            forms[param.name] = passed[position] if position < count else words.get(param.name, "")
        own = dotted(call.func.value) if isinstance(call.func, ir.Attr) else ""
        if own and own == self._function.own_name and callee.own_name:
            of_self = {name: form for name, form in self.forms.items() if name.startswith(own + ".")}
            forms |= {callee.own_name + name.removeprefix(own): form for name, form in of_self.items()}
        if not any(forms.values()):
            return None
        inner = Uses(self._analyser, callee, forms, depth=self._depth + 1)
        if self._depth < _DEPTH:
            inner.block(callee.body)
        else:
            inner.is_bent, inner.returned = True, "other"
        return inner


def _elements(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    return expr.elements if isinstance(expr, ir.Display) else ()
