"""Tensors that an autograd function keeps as attributes of its context instead of by ``save_for_backward``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from memlint import knowledge
from memlint.flow.events import ContextAttribute, KeptTensor
from memlint.flow.frame import Frame
from memlint.flow.program import Class, Function
from memlint.flow.syntax import dotted, expressions, text, walk_expression, walk_statements
from memlint.flow.values import NONE, SCALAR, TENSORS, UNKNOWN, Path, V, join
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

_FORWARD, _SETUP = "forward", "setup_context"
_FUNCTIONS = re.compile(r"torch\.autograd\.(function\.)?(Function|InplaceFunction)")
#: what the context itself reads
_OWN = frozenset(
    {"to_save", "saved_tensors", "saved_variables", "dirty_tensors", "non_differentiable", "needs_input_grad"}
)
_SAVES = frozenset({"save_for_backward", "save_for_forward"})
#: methods that tensors have, and neither modules, numbers, texts nor lists
_EVIDENCE = frozenset(
    {
        *("size", "dim", "view", "view_as", "reshape", "contiguous", "is_contiguous", "clone", "detach", "numel"),
        *("nelement", "unsqueeze", "squeeze", "permute", "transpose", "t", "data_ptr", "expand", "expand_as"),
        *("type_as", "masked_fill", "new", "new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "stride"),
        *("mm", "matmul", "bmm", "addmm", "exp", "log", "sqrt", "pow", "abs", "sigmoid", "tanh", "sum", "mean", "norm"),
        *("clamp", "gather", "scatter", "index_select", "softmax", "flatten", "flip", "sign", "round", "floor"),
    }
)
#: functions of torch whose first argument is one tensor
_TAKES_TENSOR = frozenset(
    {
        *(
            "exp",
            "log",
            "sqrt",
            "abs",
            "sigmoid",
            "tanh",
            "relu",
            "mm",
            "matmul",
            "bmm",
            "sum",
            "mean",
            "clamp",
            "norm",
        ),
        *("round", "sign", "floor", "softmax", "log_softmax", "linear", "conv1d", "conv2d", "conv3d", "flip", "gather"),
        *("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "unsqueeze", "squeeze"),
        *("transpose", "max", "min", "argmax", "argsort", "sort", "topk", "cumsum", "exp2", "reciprocal", "erf"),
    }
)
#: methods whose first argument is a tensor
_TAKES_TENSORS = frozenset({"mm", "matmul", "bmm", "expand_as", "type_as", "view_as"})
#: methods that give a view of a tensor, whatever its layout
_VIEWS = frozenset(
    {"view", "view_as", "t", "transpose", "permute", "squeeze", "unsqueeze", "expand", "expand_as", "narrow", "select"}
)
#: methods that give a new tensor of one that is surely there, if the flow knows nothing of it
_MAKES = (
    knowledge.methods().op | knowledge.methods().alias | knowledge.methods().inplace | {"detach", "sum", "mean", "norm"}
) - {"split", "chunk"}
#: how many names a value is followed through
_DEPTH = 4
_NEW = ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor")
#: names of outputs of whole numbers or truth values, which get no grad_fn and so close no cycle
_WHOLE = re.compile(r"(^|_)(idx|ind|mask|label|arg|num|count|len|ids?$|order|perm|choice|code)", re.IGNORECASE)


#: attributes of a tensor that are tensors
_PARTS = frozenset({"T", "mT", "H", "mH", "data", "real", "imag", "grad"})
#: functions of torch that give tensors
_GIVES = re.compile(r"torch\.[a-z]\w*|torch\.(nn\.functional|linalg|fft|special|sparse|nested)\.\w+")
_METHODS = frozenset().union(*knowledge.methods()) - knowledge.methods().data - {"data", "is_cuda", "storage"}


class Kept(NamedTuple):
    """``ctx.name = value``, as it was met. ``value``: its expression, None where a tuple is unpacked."""

    target: ir.Attr
    value: ir.Expr | None
    names: frozenset[str]
    given: V


def noted(frame: Frame, target: ir.Attr, value: V, statement: ir.Assign | ir.AnnAssign | None) -> None:
    """An attribute is assigned."""
    function = frame.function
    if function.name not in (_FORWARD, _SETUP) or function.cls is None or not function.params:
        return
    if not isinstance(target.value, ir.Name) or target.value.id != function.params[0].name:
        return
    known = frame.notes.on_context.get(target.at)
    expr, names = _source(target, statement)
    frame.notes.on_context[target.at] = Kept(target, expr, names, join(known.given, value) if known else value)


def _source(target: ir.Attr, statement: ir.Assign | ir.AnnAssign | None) -> tuple[ir.Expr | None, frozenset[str]]:
    """The expression that the target is given, and the names that the same statement gives it to."""
    if statement is None or statement.value is None:
        return None, frozenset()
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    if target in targets:
        return statement.value, frozenset(item.id for item in targets if isinstance(item, ir.Name))
    for item in targets:
        if isinstance(item, ir.Display) and isinstance(statement.value, ir.Display) and target in item.elements:
            parts = (*item.elements, *statement.value.elements)
            if len(item.elements) * 2 == len(parts) and not any(isinstance(part, ir.Starred) for part in parts):
                return statement.value.elements[item.elements.index(target)], frozenset()
    return None, frozenset()


def events(analyser: Analyser, frame: Frame) -> Iterator[ContextAttribute]:
    """The tensors that one function keeps on its context."""
    function = frame.function
    if not frame.notes.on_context or function.cls is None or "staticmethod" not in function.decorator_names:
        return
    backward = _backward(analyser, function.cls)
    if backward is None or _switches_on(function):
        return
    dropped = _written(analyser, backward)
    if dropped is None:
        return
    body = _Body(analyser, function)
    own = _deleted(function)
    for at, kept in sorted(frame.notes.on_context.items()):
        name = kept.target.name
        if name in _OWN or name in dropped or name in own or _records(kept.given):
            continue
        what = body.what(kept)
        if what is None or (what in ("intermediate", "input") and kept.given.size == SCALAR):
            continue
        yield ContextAttribute(
            site=frame.site(at),
            function=function.qual,
            certainty="high" if kept.given.is_only(TENSORS) else "medium",
            kept=what,
            place=text(kept.target),
            value=text(kept.value) if kept.value is not None else "",
            small=kept.given.size == SCALAR,
        )


def _backward(analyser: Analyser, cls: Class) -> Function | None:
    """The backward of an autograd function, where all that it inherits from is known."""
    _, outside = analyser.program.ancestors(cls)
    if not outside or not all(_FUNCTIONS.fullmatch(name) for name in outside):
        return None
    return analyser.program.method(cls, "backward")


def _switches_on(function: Function) -> bool:
    """Whether a part of it records a graph of its own, for a backward within backward: what is kept then has to be."""
    return not function.names.isdisjoint(("enable_grad", "set_grad_enabled")) and any(
        isinstance(part, ir.Attr | ir.Name) and dotted(part).endswith(("enable_grad", "set_grad_enabled"))
        for statement in walk_statements(function.body)
        for expr in expressions(statement)
        for part in walk_expression(expr)
    )


def _records(value: V) -> bool:
    """Whether a graph was recorded for it here."""
    return any(not isinstance(source, Path) for source in value.src)


def _written(analyser: Analyser, backward: Function, depth: int = 0) -> frozenset[str] | None:
    """The attributes of the context that backward deletes or sets; None where code that cannot be followed may."""
    if not backward.params or depth > 2:
        return None
    ctx = backward.params[0].name
    found: set[str] = set()
    for statement in walk_statements(backward.body):
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Call):
                    inner = _handed(analyser, backward, part, ctx, depth)
                    if inner is None:
                        return None
                    found |= inner
                if isinstance(part, ir.Attr) and part.name == "__dict__" and dotted(part.value) == ctx:
                    return None
        found |= _set_by(statement, ctx)
    return frozenset(found)


def _handed(analyser: Analyser, function: Function, call: ir.Call, ctx: str, depth: int) -> frozenset[str] | None:
    """What a callee does with the attributes of a context that it is handed."""
    given = (*call.args, *(word.value for word in call.keywords))
    if not any(isinstance(item.value if isinstance(item, ir.Starred) else item, ir.Name) and
               dotted(item.value if isinstance(item, ir.Starred) else item) == ctx for item in given):  # fmt: skip
        return frozenset()
    if isinstance(call.func, ir.Name) and call.func.id in ("hasattr", "getattr", "print", "isinstance", "id"):
        return frozenset()
    kind, what = analyser.program.find_expression(function.module, call.func, function)
    if kind == "function" and what is not None and call.args and dotted(call.args[0]) == ctx:
        return _written(analyser, what, depth + 1)
    return None


def _set_by(statement: ir.Stmt, ctx: str) -> set[str]:
    """The attributes of the context that a statement sets, deletes, or empties in place."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign | ir.Delete):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign | ir.AugAssign):
        targets = (statement.target,)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func  # ctx.x.resize_(0), ctx.x.untyped_storage().resize_(0), ctx.x.clear()
        targets = (func,) if isinstance(func, ir.Attr) and func.name in ("resize_", "clear", "set_", "pop") else ()
    found = set()
    for target in targets:
        for part in walk_expression(target):
            if isinstance(part, ir.Attr) and dotted(part.value) == ctx:
                found.add(part.name)
    return found


def _deleted(function: Function) -> frozenset[str]:
    """The attributes that the function itself takes away again."""
    ctx = function.params[0].name
    found: set[str] = set()
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Delete):
            found |= _set_by(statement, ctx)
    return frozenset(found)


class _Body:
    """What the body of a forward or setup_context says of its names."""

    def __init__(self, analyser: Analyser, function: Function, *, own: bool = True) -> None:
        """``own``: the first parameter is the context."""
        self.analyser = analyser
        self.function = function
        self.ctx = function.params[0].name if own else ""
        self.bound: dict[str, list[int]] = {}
        #: what plain assignments give each name
        self.values: dict[str, list[ir.Expr]] = {}
        self.used: set[str] = set()
        self.saved: set[str] = set()
        self.returned: dict[str, int] = {}
        self.alone: set[str] = set()
        self.plain: set[str] = set()
        self.dirty: set[str] = set()
        #: what is returned at each position
        self.results: dict[int, list[ir.Expr]] = {}
        self.params = {param.name for param in function.params[1 if own else 0 :]}
        for statement in walk_statements(function.body, into_definitions=False):
            self._read(statement)
        if function.name == _SETUP:
            self._outputs_of_setup()

    def _read(self, statement: ir.Stmt) -> None:
        # (an augmented assignment changes a tensor in place: the name keeps it)
        if isinstance(statement, ir.Assign | ir.For | ir.AnnAssign | ir.With):
            for name in _bound(statement):
                self.bound.setdefault(name, []).append(statement.at)
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Name):
                    self.values.setdefault(target.id, []).append(statement.value)
        if isinstance(statement, ir.Return) and statement.value is not None:
            self._returned(statement.value)
        for expr in expressions(statement):
            for part in walk_expression(expr):
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
        """``output`` is what forward has returned, ``inputs`` what it was given."""
        assert self.function.cls is not None
        if len(self.function.params) < 3:
            return
        inputs, output = self.function.params[1].name, self.function.params[2].name
        self.returned, self.alone = {output: 0}, {output}
        forward = self.analyser.program.method(self.function.cls, _FORWARD)
        there = _Body(self.analyser, forward, own=False) if forward is not None and forward.params else None
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
        """What is kept, as far as that is known; None for what is no tensor for certain."""
        given, expr = kept.given, kept.value
        place = text(kept.target, 200)
        sure = given.is_only(TENSORS) and (expr is None or self._may_be_tensor(expr))
        may = not given.kinds & ~(TENSORS | UNKNOWN | NONE)
        if isinstance(expr, ir.Display) and expr.kind in ("tuple", "list"):
            outputs = [self._output(dotted(part), kept) for part in expr.elements]
            return "output" if any(outputs) else None
        if not sure and not may:
            return None
        for name in (place, *sorted(kept.names), dotted(expr) if expr is not None else ""):
            if self._output(name, kept) and (sure or name in self.alone or self._tensor(name)):
                return "output"
        if expr is None:
            return "intermediate" if sure else None
        if not sure and not self._surely(expr):
            return None
        base = _base(expr)
        if base is not expr and self._output(dotted(base), kept):
            return "view"
        is_input = dotted(expr) in self.params and (self.function.name == _SETUP or dotted(expr) not in self.bound)
        return "input" if is_input else "intermediate"

    def _may_be_tensor(self, expr: ir.Expr, depth: int = 0) -> bool:
        """Whether the flow is to be believed, for which every unknown function and attribute of torch is a tensor's."""
        if isinstance(expr, ir.Name):
            if expr.id in self.params and expr.id not in self.bound:
                return self._tensor(expr.id)  # (annotations are wrong too often)
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
        """Whether a name still names what it does where the function returns it, and that gets a grad_fn."""
        position = self.returned.get(name) if name else None
        if position is None or name in self.plain:
            return False
        if position and _WHOLE.search(name):
            return False
        if name in self.params and name not in self.bound and self.function.name == _FORWARD:
            return name in self.dirty  # an input that is handed back as it is, is another object outside
        later = [at for at in self.bound.get(name, ()) if at > kept.target.at]
        return not later

    def _tensor(self, name: str) -> bool:
        """Whether use tells that the name is a tensor's, all the way."""
        return name in self.saved or (name in self.used and len(self.bound.get(name, ())) <= 1)

    def _surely(self, expr: ir.Expr, depth: int = 0) -> bool:
        """Whether the text alone tells that it is a tensor."""
        if isinstance(expr, ir.Name):
            values = self.values.get(expr.id, [])
            made = bool(values) and len(values) == len(self.bound[expr.id]) and depth < _DEPTH
            return self._tensor(expr.id) or (made and all(self._surely(value, depth + 1) for value in values))
        if isinstance(expr, ir.Binary):
            return self._surely(expr.left, depth) or self._surely(expr.right, depth)
        if isinstance(expr, ir.Unary):
            return expr.op != "not" and self._surely(expr.operand, depth)
        if isinstance(expr, ir.Subscript):
            return self._surely(expr.value, depth)
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            if expr.func.name in _NEW:
                return True
            if expr.func.name in _MAKES and self._surely(expr.func.value, depth):
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
    """What an expression gives a view of; itself where it gives none."""
    while _is_view(expr):
        if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
            expr = expr.func.value
        elif isinstance(expr, ir.Attr | ir.Subscript):
            expr = expr.value
    return expr


def _bound(statement: ir.Stmt) -> Iterator[str]:
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign):
        targets = statement.targets
    elif isinstance(statement, ir.For) or (isinstance(statement, ir.AnnAssign) and statement.value is not None):
        targets = (statement.target,)
    elif isinstance(statement, ir.With):
        targets = tuple(item.target for item in statement.items if item.target is not None)
    for target in targets:
        for part in walk_expression(target) if isinstance(target, ir.Name | ir.Display | ir.Starred) else ():
            if isinstance(part, ir.Name):
                yield part.id


__all__ = ["Kept", "events", "noted"]
