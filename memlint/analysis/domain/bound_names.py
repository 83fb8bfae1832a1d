"""What the names of one function are bound to, for rules that read the source rather than the values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.program import Module
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, last_name, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
#: methods and functions that keep the rows of their argument
_SAME_ROWS = frozenset({
    "to", "cuda", "cpu", "float", "double", "half", "long", "unsqueeze", "view", "reshape", "permute", "transpose",
    "contiguous", "type", "clone", "detach", "squeeze", "flatten", "numpy", "astype",
})  # fmt: skip
_WRAPS = frozenset({
    "Variable", "Tensor", "FloatTensor", "tensor", "as_tensor", "from_numpy", "array", "asarray", "stack",
})  # fmt: skip


def argument(call: ir.Call, position: int, name: str) -> ir.Expr | None:
    """The argument that a call passes at a position or by name; None if it passes none, or a starred one may hold
    it."""
    for word in call.keywords:
        if word.name == name:
            return word.value
    if len(call.args) > position and not any(isinstance(arg, ir.Starred) for arg in call.args):
        return call.args[position]
    return None


class Names:
    """What a function's names are bound to, if a single statement binds them."""

    def __init__(self, analyser: Analyser, summary: Summary) -> None:
        self.analyser = analyser
        self.summary = summary
        self.module: Module = summary.module
        self._own: dict[str, list[tuple[ir.Expr, bool]]] | None = None
        self._outer: dict[str, list[tuple[ir.Expr, bool]]] | None = None
        self._fed: frozenset[str] | None = None

    def value(self, name: str, before: int = 0) -> tuple[ir.Expr, bool] | None:
        """The expression that a name is bound to, without updates of itself, and whether the name is unpacked from it.

        Of several bindings, the last one before the ordinal ``before``. None if there is no single one.
        """
        function = self.summary.function
        if name in function.locals:
            if self._own is None:
                self._own = bindings(function.body).copy()
                for param in function.params:
                    self._own.pop(param.name, None)
            found = self._own.get(name, [])
        elif function.node is not None:
            if self._outer is None:
                self._outer = bindings(self.module.statements)
            found, before = self._outer.get(name, []), 0
        else:
            return None
        others = [(value, unpacked) for value, unpacked in found if base_name(value) != name]
        if before and len(others) > 1:
            others = sorted((one for one in others if one[0].at < before), key=lambda one: one[0].at)[-1:]
        return others[0] if len(others) == 1 else None

    def siblings(self, call: ir.Call) -> set[str]:
        """The names into which other calls of the same function are unpacked."""
        bound = self._own if self.summary.function.node is None or self._own else self._outer
        everything = {**(self._outer or {}), **(bound or {})}
        made = dotted(call.func)
        return {
            name
            for name, values in everything.items()
            for value, unpacked in values
            if unpacked and isinstance(value, ir.Call) and value is not call and made and dotted(value.func) == made
        }

    def made_by(self, expr: ir.Expr) -> str:
        """The qualified name of the external function, or of the data set class above a project class, whose call a
        name is bound to; "" if unknown."""
        for _ in range(4):
            if not isinstance(expr, ir.Name):
                break
            bound = self.value(expr.id)
            if bound is None or bound[1]:
                return ""
            expr = bound[0]
        if not isinstance(expr, ir.Call):
            return ""
        kind, what = self.analyser.program.find_expression(self.module, expr.func, self.summary.function)
        if kind == "ext":
            return str(what)
        if kind == "class" and what is not None:
            _, outside = self.analyser.program.ancestors(what)
            return next((name for name in sorted(outside) if name.rsplit(".", 1)[-1].endswith("Dataset")), "")
        return ""

    def is_data_set(self, expr: ir.Expr) -> bool:
        """Whether a data set class makes the value, or a DataLoader gets it."""
        name = self.made_by(expr)
        if name.startswith(("torchvision.datasets.", "torch.utils.data.")) and not name.endswith(
            ("DataLoader", "Sampler")
        ):
            return True
        if name.rsplit(".", 1)[-1] == "Dataset" and name.startswith("torch."):
            return True
        return isinstance(expr, ir.Name) and expr.id in self.fed

    @property
    def fed(self) -> frozenset[str]:
        """The names that DataLoaders get as their data set."""
        if self._fed is None:
            loaders = self.summary.notes.loaders
            given = (argument(expr, 0, "dataset") for expr in loaders.values())
            self._fed = frozenset(item.id for item in given if isinstance(item, ir.Name))
        return self._fed


@kept
def bindings(body: tuple[ir.Stmt, ...]) -> dict[str, list[tuple[ir.Expr, bool]]]:
    """By name, the expressions that a body binds to it, each with whether the name is unpacked from it."""
    found: dict[str, list[tuple[ir.Expr, bool]]] = {}

    def bind(target: ir.Expr, value: ir.Expr, unpacked: bool) -> None:
        if isinstance(target, ir.Name):
            found.setdefault(target.id, []).append((value, unpacked))
        elif isinstance(target, ir.Display):
            parts = (
                value.elements
                if isinstance(value, ir.Display) and len(value.elements) == len(target.elements)
                else None
            )
            for position, item in enumerate(target.elements):
                bind(item, parts[position] if parts else value, unpacked or parts is None)

    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                bind(target, statement.value, False)
        elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
            bind(statement.target, statement.value, False)
        elif isinstance(statement, ir.For):
            opaque = ir.Const(statement.at, "Ellipsis", None)
            bind(statement.target, opaque, True)
        elif isinstance(statement, ir.With):
            for item in statement.items:
                if item.target is not None:
                    bind(item.target, ir.Const(statement.at, "Ellipsis", None), True)
    return found


def peel(expr: ir.Expr) -> ir.Expr | None:
    """One step towards the tensor that has the same rows as the expression; None if there is no further step."""
    if isinstance(expr, ir.Call):
        func = expr.func
        name = last_name(func)
        if isinstance(func, ir.Attr) and name in _SAME_ROWS:
            return func.value
        if name in _WRAPS and expr.args and not isinstance(expr.args[0], ir.Display):
            return expr.args[0]
        return None
    if isinstance(expr, ir.Binary) and expr.op in ("+", "-", "*", "/") and isinstance(expr.right, ir.Const):
        return expr.left
    return None


def base_name(expr: ir.Expr) -> str:
    """The name of the tensor that has the same rows as an expression; "" if it has no name."""
    step: ir.Expr | None = expr
    while step is not None:
        expr = step
        step = peel(expr)
    return expr.id if isinstance(expr, ir.Name) else ""
