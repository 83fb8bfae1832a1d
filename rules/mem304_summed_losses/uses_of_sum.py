"""What a function computes from a sum of losses before the backward: if that is linear in the losses, a backward for
each of them adds up to the same gradients."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from memlint.sdk.project import Analyser, Function, Summary
from memlint.sdk.syntax import (
    calls_backward,
    children,
    dotted,
    expressions,
    ir,
    last_name,
    walk_expression,
    walk_statements,
)

#: how a value depends on the losses: not at all, linearly, or in another or an unknown way
Form = Literal["", "linear", "other"]

#: how many helpers deep a sum is followed
_DEPTH = 3
#: calls and methods that are linear in their arguments, or hand them on
_LINEAR = frozenset(
    {
        "add",
        "all_reduce",
        "as_tensor",
        "average",
        "bfloat16",
        "cat",
        "clone",
        "concat",
        "contiguous",
        "cpu",
        "cuda",
        "double",
        "enumerate",
        "flatten",
        "fsum",
        "gather",
        "get",
        "half",
        "hstack",
        "items",
        "list",
        "mean",
        "nanmean",
        "nansum",
        "neg",
        "pop",
        "reduce",
        "requires_grad_",
        "reshape",
        "reversed",
        "scale",
        "scale_loss",
        "sorted",
        "squeeze",
        "stack",
        "sub",
        "sum",
        "to",
        "tuple",
        "unsqueeze",
        "values",
        "view",
        "vstack",
        "zip",
    }
)
#: the same of one argument, if the others do not depend on the losses
_SCALES = frozenset({"mul", "mul_", "div", "div_", "divide", "true_divide", "multiply"})
#: functions and methods that give a number or a value without a graph
_READS = frozenset(
    {
        "bool",
        "detach",
        "dim",
        "format",
        "int",
        "is_tensor",
        "isfinite",
        "isinf",
        "isinstance",
        "isnan",
        "item",
        "len",
        "numel",
        "numpy",
        "print",
        "repr",
        "size",
        "str",
        "tensor",
        "tolist",
    }
)
#: attributes without a graph
_READ = frozenset({"data", "grad", "shape", "dtype", "device", "requires_grad", "grad_fn", "ndim"})
#: methods that put their argument into a collection
_PUTS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
_BACKWARD = frozenset({"backward", "manual_backward"})


def is_linear(analyser: Analyser, summary: Summary, place: str, at: int, start: int) -> bool:
    """Whether each backward goes through a linear function of what a place sums. ``at``: the store into the place;
    ``start``: where its loop begins. The place of a comprehension has no name."""
    name = place.partition("[")[0]
    names = {name} if name.replace(".", "").isidentifier() else set()
    forms: dict[str, Form] = dict.fromkeys(names, "linear")
    uses = _Uses(analyser, summary.function, summary, forms, at=at if not names else -1)
    uses.read(start)
    return not uses.bent


class _Uses:
    """The uses of the sum in one function, by the names that depend on it."""

    def __init__(
        self,
        analyser: Analyser,
        function: Function,
        summary: Summary | None,
        forms: dict[str, Form],
        *,
        at: int = -1,
        depth: int = 0,
    ) -> None:
        self._analyser, self._function, self._forms = analyser, function, forms
        self._at, self._depth = at, depth
        self.is_known = summary is not None and depth <= _DEPTH
        calls = summary.calls.values() if summary is not None else ()
        self._callees = {record.at: record.callee for record in calls}
        #: what the function returns
        self.returned: Form = ""
        #: a backward goes through something that is not linear in the losses
        self.bent = False

    def read(self, start: int = -1) -> None:
        for statement in walk_statements(self._function.body, into_definitions=False):
            if statement.at >= start:
                self._statement(statement)

    def _statement(self, statement: ir.Stmt) -> None:
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Call):
                    self._call_with_effects(part)
        if isinstance(statement, ir.Assign):
            self._bind(statement.targets, self._form(statement.value))
        elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
            self._bind((statement.target,), self._form(statement.value))
        elif isinstance(statement, ir.AugAssign):
            self._bind((statement.target,), self._operation(statement.op, statement.target, statement.value))
        elif isinstance(statement, ir.For):
            self._bind((statement.target,), self._form(statement.iter))
        elif isinstance(statement, ir.With):
            for item in statement.items:
                self._bind((item.target,) if item.target is not None else (), self._form(item.context))
        elif isinstance(statement, ir.Return) and statement.value is not None:
            self.returned = _worst((self.returned, self._form(statement.value)))

    def _bind(self, targets: Iterable[ir.Expr], form: Form) -> None:
        for name in _places(targets) if form else ():
            self._forms[name] = _worst((self._forms.get(name, ""), form))

    def _call_with_effects(self, call: ir.Call) -> None:
        """Note a backward, what is put into a collection, and what a helper does with the sum."""
        name = last_name(call.func)
        own = call.func.value if isinstance(call.func, ir.Attr) else None
        given = self._worst_of(call.passed)
        if name in _BACKWARD:
            self.bent |= "other" in (given, self._form(own) if own is not None else "")
        elif name in _PUTS and own is not None and given and call.at not in self._callees:
            self._bind((own,), given)
        elif given and (callee := self._callee(call)) is not None and calls_backward(callee.body):
            self.bent |= given == "other" or self._inside(callee, call).bent

    def _form(self, expr: ir.Expr) -> Form:
        if self._at >= 0 and isinstance(expr, ir.Comprehension) and self._is_seed(expr):
            return "linear"
        if (known := self._forms.get(dotted(expr))) is not None:
            return known
        if isinstance(expr, ir.Binary):
            return self._operation(expr.op, expr.left, expr.right)
        if isinstance(expr, ir.Attr):
            return "" if expr.name in _READ else self._form(expr.value)
        if isinstance(expr, ir.Subscript):
            return self._form(expr.value)
        if isinstance(expr, ir.Call):
            return self._called(expr)
        if isinstance(expr, ir.Comprehension):
            for one in expr.fors:
                self._bind((one.target,), self._form(one.iter))
            return self._form(expr.element)
        return "" if isinstance(expr, ir.Compare) else self._worst_of(children(expr))

    def _is_seed(self, expr: ir.Comprehension) -> bool:
        return any(part.at == self._at for part in walk_expression(expr))

    def _operation(self, op: str, left: ir.Expr, right: ir.Expr) -> Form:
        one, other = self._form(left), self._form(right)
        if op in ("+", "-"):
            return _worst((one, other))
        if (op == "*" and not (one and other)) or (op == "/" and not other):
            return one or other
        return "other" if one or other else ""

    def _called(self, call: ir.Call) -> Form:
        name = last_name(call.func)
        own = call.func.value if isinstance(call.func, ir.Attr) else None
        if name in _READS or (name == "float" and own is None):
            return ""
        received = self._form(own) if own is not None else ""
        given = self._worst_of(call.passed)
        if not received and not given:
            return ""
        if name == "grad":  # gradients that have no graph themselves are no part of a backward
            return "other" if any(word.name == "create_graph" for word in call.keywords) else ""
        if name in _LINEAR or name == "float" or (name in _SCALES and not (received and given)):
            return _worst((received, given))
        callee = self._callee(call)
        if callee is not None and given == "linear" and not received:
            return self._inside(callee, call).returned
        return "other"

    def _callee(self, call: ir.Call) -> Function | None:
        key = self._callees.get(call.at)
        return self._analyser.function_at(key) if key is not None else None

    def _inside(self, callee: Function, call: ir.Call) -> _Uses:
        """The uses in a helper that gets the sum."""
        words = {word.name: word.value for word in call.keywords}
        forms: dict[str, Form] = {}
        for position, param in enumerate(callee.given):
            value = call.args[position] if position < len(call.args) else words.get(param.name)
            if value is not None and (form := self._form(value)):
                forms[param.name] = form
        inner = _Uses(self._analyser, callee, self._analyser.summary(callee), forms, depth=self._depth + 1)
        if inner.is_known and forms:
            inner.read()
        else:
            inner.bent, inner.returned = True, "other"
        return inner

    def _worst_of(self, exprs: Iterable[ir.Expr]) -> Form:
        return _worst(self._form(one) for one in exprs)


def _worst(forms: Iterable[Form]) -> Form:
    found = set(forms)
    return "other" if "other" in found else "linear" if "linear" in found else ""


def _places(targets: Iterable[ir.Expr]) -> Iterator[str]:
    """The names of the places that an assignment fills; a member stands for its whole."""
    for target in targets:
        if isinstance(target, ir.Display):
            yield from _places(target.elements)
        elif isinstance(target, ir.Starred | ir.Subscript):
            yield from _places((target.value,))
        elif name := dotted(target):
            yield name
