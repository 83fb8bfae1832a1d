"""Which names in an autograd function's forward are tensors, and which are returned, by its text."""

from __future__ import annotations

import re

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Function, knowledge
from memlint.sdk.syntax import dotted, ir, names_bound_by, parts_of, text, walk_statements
from memlint.sdk.values import FORWARD, NONE, SETUP, TENSORS, UNKNOWN, Kept

from .rule import KeptTensor

_SAVES = frozenset({"save_for_backward", "save_for_forward"})
#: methods and functions of torch that compute with one tensor
_MATHS = frozenset(
    {
        *("exp", "log", "sqrt", "abs", "sigmoid", "tanh", "mm", "matmul", "bmm", "sum", "mean", "clamp", "norm"),
        *("round", "sign", "floor", "softmax", "flip", "gather", "unsqueeze", "squeeze", "transpose"),
    }
)
#: methods of tensors that modules, numbers, strings and lists lack
_EVIDENCE = _MATHS | {
    *("size", "dim", "view", "view_as", "reshape", "contiguous", "is_contiguous", "clone", "detach", "numel"),
    *("nelement", "permute", "t", "data_ptr", "expand", "expand_as", "type_as", "masked_fill", "new", "new_zeros"),
    *(
        "new_ones",
        "new_empty",
        "new_full",
        "new_tensor",
        "stride",
        "addmm",
        "pow",
        "scatter",
        "index_select",
        "flatten",
    ),
}
#: functions of torch whose first argument is one tensor
_TAKES_TENSOR = _MATHS | {
    *("relu", "log_softmax", "linear", "conv1d", "conv2d", "conv3d", "zeros_like", "ones_like", "empty_like"),
    *("full_like", "rand_like", "randn_like", "max", "min", "argmax", "argsort", "sort", "topk", "cumsum", "erf"),
}
#: methods whose first argument is a tensor
_TAKES_TENSORS = frozenset({"mm", "matmul", "bmm", "expand_as", "type_as", "view_as"})
#: methods that return a view of a tensor, whatever its layout
_VIEWS = frozenset(
    {"view", "view_as", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "expand_as", "narrow", "select"}
)
_NEW = frozenset({"new_zeros", "new_ones", "new_empty", "new_full", "new_tensor"})
#: methods and functions that return a tensor, of which the analysis may not know it
_MAKES = (
    (knowledge.methods().op | knowledge.methods().alias | knowledge.methods().inplace)
    | {"detach", "sum", "mean", "norm", "argmax", "argmin", "argsort", "nonzero", "float", "double", "half", "long"}
) - {"split", "chunk"}
#: attributes of tensors that are tensors
_PARTS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag", "grad"})
_METHODS = frozenset().union(*knowledge.methods()) - knowledge.methods().data - {"data", "is_cuda", "storage"}
_GIVES = lazy_pattern(r"torch\.[a-z]\w*|torch\.(nn\.functional|linalg|fft|special|sparse|nested)\.\w+")
#: names of integer or boolean outputs, which get no grad_fn, so that no cycle arises
_WHOLE = lazy_pattern(r"(^|_)(idx|ind|mask|label|arg|num|count|len|ids?$|order|perm|choice|code)", re.IGNORECASE)
#: how many assignments a value is followed through
_DEPTH = 4


class Body:
    """Facts about the names in a forward or setup_context."""

    def __init__(self, analyser: Analyser, function: Function, *, own: bool = True) -> None:
        """``own``: the first parameter is the context."""
        self.analyser = analyser
        self.function = function
        self.ctx = function.params[0].name if own else ""
        self.bound: dict[str, list[int]] = {}
        #: the values that plain assignments give each name
        self.values: dict[str, list[ir.Expr]] = {}
        #: names that are used like tensors, and names that are saved
        self.used: set[str] = set()
        self.saved: set[str] = set()
        #: names that are returned, by position, and those that are returned alone
        self.returned: dict[str, int] = {}
        self.alone: set[str] = set()
        #: outputs that get no grad_fn, and inputs that are changed in place
        self.plain: set[str] = set()
        self.dirty: set[str] = set()
        #: by variable, the names that it is unpacked into
        self.parts: dict[str, tuple[str, ...]] = {}
        #: the returned expressions by position
        self.results: dict[int, list[ir.Expr]] = {}
        self.params = {param.name for param in function.params[1 if own else 0 :]}
        for statement in walk_statements(function.body, into_definitions=False):
            self._read(statement)
        if function.name == SETUP:
            self._outputs_of_setup()

    def learn_from_caller(self, outer: Body, call: ir.Call) -> None:
        """Take over the facts about names that the calling function passes, with its context, to this one."""
        for param, arg in zip(self.function.params[1:], call.args[1:], strict=False):
            name = dotted(arg)
            if name in outer.returned and not outer.dirty & {name}:
                self.returned[param.name] = outer.returned[name]
                self.alone |= {param.name} if name in outer.alone else set()
                self.plain |= {param.name} if name in outer.plain else set()
            if name and outer._tensor(name):
                self.used.add(param.name)

    def _read(self, statement: ir.Stmt) -> None:
        # an augmented assignment changes a tensor in place: the name still refers to it
        annotated = isinstance(statement, ir.AnnAssign) and statement.value is not None
        if annotated or isinstance(statement, ir.Assign | ir.For | ir.With):
            for name in names_bound_by(statement):
                self.bound.setdefault(name, []).append(statement.at)
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Name):
                    self.values.setdefault(target.id, []).append(statement.value)
                elif isinstance(target, ir.Display) and isinstance(statement.value, ir.Name):
                    self.parts[statement.value.id] = tuple(map(dotted, target.elements))
        if isinstance(statement, ir.Return) and statement.value is not None:
            self._returned(statement.value)
        for part in parts_of(statement):
            if isinstance(part, ir.Call):
                self._called(part)
            elif isinstance(part, ir.Binary) and part.op == "@":
                self.used |= {dotted(part.left), dotted(part.right)}

    def _returned(self, value: ir.Expr) -> None:
        if isinstance(value, ir.Display) and value.kind == "tuple":
            for position, element in enumerate(value.elements):
                self.returned.setdefault(dotted(element), position)
                self.results.setdefault(position, []).append(element)
            return
        self.results.setdefault(0, []).append(value)
        if dotted(value):
            self.returned[dotted(value)] = 0
            self.alone.add(dotted(value))

    def _called(self, call: ir.Call) -> None:
        func = call.func
        if not isinstance(func, ir.Attr):
            return
        receiver = dotted(func.value)
        if receiver == self.ctx:
            given = {dotted(item) for item in call.args}
            if func.name in _SAVES:
                self.saved |= given
            elif func.name == "mark_dirty":
                self.dirty |= given
            elif func.name == "mark_non_differentiable":
                self.plain |= given
            return
        if func.name in _EVIDENCE and receiver:
            kind, _ = self.analyser.program.find_expression(self.function.module, func.value, self.function)
            if kind in ("none", "unknown") or receiver in self.params or receiver in self.bound:
                self.used.add(receiver)
        if func.name in _TAKES_TENSORS and call.args and receiver:
            self.used.add(dotted(call.args[0]))
        if func.name in _TAKES_TENSOR and call.args:
            kind, what = self.analyser.program.find_expression(self.function.module, func, self.function)
            if kind == "ext" and str(what).startswith("torch."):
                self.used.add(dotted(call.args[0]))

    def _outputs_of_setup(self) -> None:
        """The parameter ``output`` is the result of forward, and ``inputs`` are its arguments."""
        assert self.function.cls is not None
        if len(self.function.params) < 3:
            return
        inputs, output = self.function.params[1].name, self.function.params[2].name
        self.returned, self.alone = {output: 0}, {output}
        forward = self.analyser.program.method(self.function.cls, FORWARD)
        there = Body(self.analyser, forward, own=False) if forward is not None and forward.params else None
        for statement in walk_statements(self.function.body, into_definitions=False):
            if not isinstance(statement, ir.Assign) or not isinstance(statement.targets[0], ir.Display):
                continue
            parts = [dotted(part) for part in statement.targets[0].elements]
            if dotted(statement.value) == output:
                self.returned = {name: position for position, name in enumerate(parts) if name}
                self.alone = set()
                if there is not None:
                    self.used |= {
                        name
                        for name, at in self.returned.items()
                        if there.results.get(at) and all(map(there._surely, there.results[at]))
                    }
            elif dotted(statement.value) == inputs and there is not None:
                self.params |= set(parts)
                self.used |= {
                    name
                    for name, param in zip(parts, there.function.params, strict=False)
                    if param.name in there.used | there.saved
                }

    def what(self, kept: Kept) -> KeptTensor | None:
        """The kind of the stored tensor; None if it is surely no tensor."""
        given, expr = kept.given, kept.value
        place = text(kept.target, 200)
        sure = given.is_only(TENSORS) and (expr is None or self._may_be_tensor(expr))
        may = not given.kinds & ~(TENSORS | UNKNOWN | NONE)
        if isinstance(expr, ir.Display) and expr.kind in ("tuple", "list"):
            names = [dotted(part) for part in expr.elements]
            if any(self._output(name, kept) for name in names):
                return "output"
            inputs = self.params - self.bound.keys() if self.function.name == FORWARD else self.params
            return (
                "input"
                if any(name in inputs and (self._tensor(name) or self._declared_tensor(name)) for name in names)
                else None
            )
        if not sure and not may:
            return None
        for name in (place, *sorted(kept.names), dotted(expr) if expr is not None else ""):
            if self._output(name, kept) and (
                sure or name in self.alone or self._tensor(name) or (expr is not None and self._surely(expr))
            ):
                return "output"
        if expr is not None and self._is_part_of_output(dotted(expr), kept):
            return "output"
        if expr is None:
            return "intermediate" if sure else None
        if not sure and not self._surely(expr):
            return None
        base = _base(expr)
        if base is not expr and self._output(dotted(base), kept):
            return "view"
        is_input = dotted(expr) in self.params and (self.function.name == SETUP or dotted(expr) not in self.bound)
        return "input" if is_input else "intermediate"

    def _is_part_of_output(self, name: str, kept: Kept) -> bool:
        """Whether a name is a part of the returned value (``answer = solve(…)``, ``times, y = answer``, ``return
        answer``): these parts are outputs, and tensors if one of them is saved."""
        return any(
            name in names
            and self._output(whole, kept)
            and len(self.bound.get(name, ())) == 1
            and not _WHOLE.search(name)
            and name not in self.plain
            and any(other in self.saved for other in names)
            for whole, names in self.parts.items()
        )

    def _may_be_tensor(self, expr: ir.Expr, depth: int = 0) -> bool:
        """Whether the text supports that a value is a tensor: to the analysis, the results of unknown functions and
        attributes of torch are tensors."""
        if isinstance(expr, ir.Name):
            if expr.id in self.params and expr.id not in self.bound:
                return self._tensor(expr.id)  # annotations are too often wrong
            values = self.values.get(expr.id, [])
            return depth >= _DEPTH or all(self._may_be_tensor(value, depth + 1) for value in values)
        if isinstance(expr, ir.Attr):
            return expr.name in _PARTS or dotted(expr.value) == self.ctx
        if isinstance(expr, ir.IfExp):
            return self._may_be_tensor(expr.body, depth) and self._may_be_tensor(expr.orelse, depth)
        if isinstance(expr, ir.Call):
            kind, what = self.analyser.program.find_expression(self.function.module, expr.func, self.function)
            if kind == "ext":
                return _GIVES.fullmatch(str(what)) is not None
            if isinstance(expr.func, ir.Attr) and kind not in ("function", "class"):
                name = expr.func.name
                return name in _METHODS and (name != "type" or bool(expr.args or expr.keywords))
        return True

    def _output(self, name: str, kept: Kept) -> bool:
        """Whether a name still refers to the same tensor where the function returns it, and that tensor gets a
        grad_fn."""
        position = self.returned.get(name) if name else None
        if position is None or name in self.plain:
            return False
        if position and _WHOLE.search(name):
            return False
        if name in self.params and name not in self.bound and self.function.name == FORWARD:
            return name in self.dirty  # an unchanged input that is returned is another object outside
        later = [at for at in self.bound.get(name, ()) if at > kept.target.at]
        return not later

    def _tensor(self, name: str) -> bool:
        """Whether its uses show that a name is a tensor."""
        return name in self.saved or (name in self.used and len(self.bound.get(name, ())) <= 1)

    def _declared_tensor(self, name: str) -> bool:
        """Whether the docstring declares a parameter as a tensor: ``idx : torch.Tensor``."""
        first = next(iter(self.function.body), None)
        doc = first.value.value if isinstance(first, ir.ExprStmt) and isinstance(first.value, ir.Const) else None
        return (
            isinstance(doc, str)
            and re.search(rf"^[ \t]*:?(param )?{re.escape(name)}\s*:\s*(torch\.)?\w*Tensor\b", doc, re.M) is not None
        )

    def _surely(self, expr: ir.Expr, seen: frozenset[str] = frozenset()) -> bool:
        """Whether the text alone shows that an expression is a tensor; ``seen``: the names on the path to it."""
        if isinstance(expr, ir.Name):
            if expr.id in seen or self._tensor(expr.id):
                return True
            values = self.values.get(expr.id, [])
            inner = seen | {expr.id}
            whole = bool(values) and len(values) == len(self.bound[expr.id]) and expr.id not in self.params
            return whole and all(self._surely(value, inner) for value in values)
        if isinstance(expr, ir.Binary):
            return self._surely(expr.left, seen) or self._surely(expr.right, seen)
        if isinstance(expr, ir.Unary):
            return expr.op != "not" and self._surely(expr.operand, seen)
        if isinstance(expr, ir.Subscript):
            return self._surely(expr.value, seen)
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            if expr.func.name in _NEW:
                return True
            if expr.func.name in _MAKES and self._surely(expr.func.value, seen):
                return True
            kind, what = self.analyser.program.find_expression(self.function.module, expr.func, self.function)
            row = knowledge.function(str(what)) if kind == "ext" and _GIVES.fullmatch(str(what)) else None
            return row is not None and row.returns == "tensor"
        return False


def _is_view(expr: ir.Expr) -> bool:
    if isinstance(expr, ir.Call):
        return isinstance(expr.func, ir.Attr) and expr.func.name in _VIEWS
    if isinstance(expr, ir.Attr):
        return expr.name in ("T", "mT")
    if not isinstance(expr, ir.Subscript):
        return False
    index = expr.index.elements if isinstance(expr.index, ir.Display) else (expr.index,)
    return all(isinstance(part, ir.Slice | ir.Const) for part in index)


def _base(expr: ir.Expr) -> ir.Expr:
    """The tensor of which an expression is a view; the expression itself if it is none."""
    while _is_view(expr):
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            expr = expr.func.value
        elif isinstance(expr, ir.Attr | ir.Subscript):
            expr = expr.value
    return expr
