"""Whether everything that statements call is known, down to the layers: then a guard changes no number.

Under ``torch.no_grad()`` some modules take another way (the inference fast path of attention, which differs on padded
positions), and code may ask whether gradients are on. What is not followed may do either.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.flow.frame import Frame
from memlint.flow.mends import vocabulary as words
from memlint.flow.program import Class, Function
from memlint.flow.syntax import dotted, expressions, text, walk_expression, walk_statements
from memlint.flow.values import ordered
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: functions and classes that are entered
MAX_ENTERED = 40


def not_followed(analyser: Analyser, frame: Frame, body: tuple[ir.Stmt, ...]) -> str:
    """The first thing that is not known of what the statements run, as a clause; "" where all of it is."""
    return _Search(analyser).statements(frame.function, body, frame)


class _Search:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self._entered: set[tuple[str, str]] = set()

    def statements(self, function: Function, body: tuple[ir.Stmt, ...], frame: Frame | None) -> str:
        for statement in walk_statements(body):
            for expr in expressions(statement):
                for part in walk_expression(expr):
                    why = ""
                    if isinstance(part, ir.Call):
                        why = self._call(function, part, frame)
                    elif isinstance(part, ir.Attr) and part.name in words.GRAPH_ATTRIBUTES:
                        why = f"`{text(part, 40)}` is read in `{function.name}`"
                    if why:
                        return why
        return ""

    def function(self, function: Function) -> str:
        if function.key in self._entered:
            return ""
        if len(self._entered) >= MAX_ENTERED:
            return "too much is called to follow it"
        self._entered.add(function.key)
        return self.statements(function, function.body, self.analyser.summary(function))

    # ------------------------------------------------------------------------------------ calls

    def _call(self, function: Function, call: ir.Call, frame: Frame | None) -> str:
        func = call.func
        run = frame.runs.get(call.at) if frame is not None else None
        if run is not None:
            refs = [ref for ref in ordered(run.module.refs) if ref.kind in ("instance", "extinstance")]
            if not refs or len(refs) != len(run.module.refs):
                return f"what `{run.text}` computes is not followed"
            return next(filter(None, (self._module(ref.kind, ref.key, ref.name) for ref in refs)), "")
        program = self.analyser.program
        root = dotted(func).partition(".")[0]
        if (
            isinstance(func, ir.Name)
            and hasattr(builtins, func.id)
            and program.find(function.module, func.id)[0] == "none"
        ):
            return ""
        own = function.params[0].name if function.takes_self and function.params else None
        if isinstance(func, ir.Attr) and function.cls is not None and own is not None and dotted(func.value) == own:
            return self._own(function, function.cls, func)
        if root not in function.locals:
            kind, what = program.find_expression(function.module, func, function)
            if kind == "function" and isinstance(what, Function):
                return self.function(what)
            if kind == "class" and isinstance(what, Class):
                return self.cls(what)
            if kind == "ext":
                return self._outside(what, func)
        if isinstance(func, ir.Attr) and self._plain_method(func):
            return ""
        return f"`{text(func, 40)}` is not followed"

    def _own(self, function: Function, cls: Class, func: ir.Attr) -> str:
        """``self.x(…)``: a method, or a layer that ``__init__`` made."""
        method = self.analyser.program.method(cls, func.name)
        if method is not None:
            return self.function(method)
        if not self.analyser.program.is_module(cls):
            return f"`{text(func, 40)}` is not followed"
        init = self.analyser.program.method(cls, "__init__")
        given = {param.name for param in init.params} if init is not None else set()
        for statement in walk_statements(init.body) if init is not None else ():
            if isinstance(statement, ir.Assign) and any(
                isinstance(target, ir.Attr) and target.name == func.name for target in statement.targets
            ):
                if any(isinstance(part, ir.Name) and part.id in given for part in _called_names(statement.value)):
                    return f"`{text(func, 40)}` is given from outside"
                return ""  # `cls` looks at what it is made of
        return f"`{text(func, 40)}` is not followed"

    def _module(self, kind: str, key: str, name: str) -> str:
        if kind == "extinstance":
            return self._layer(name)
        cls = self.analyser.program.module(key).cls(name)
        return self.cls(cls) if cls is not None else f"`{name}` is not followed"

    def cls(self, cls: Class) -> str:
        """A module of the project: what it makes, and what its forward runs."""
        program = self.analyser.program
        _, outside = program.ancestors(cls)
        if outside - {"torch.nn.Module", "torch.nn.modules.Module", "?.nn.Module", "?.object", "object"}:
            return f"a base of `{cls.node.name}` is not followed"
        methods = [program.method(cls, name) for name in ("__init__", "forward", "__call__")]
        return next(filter(None, (self.function(method) for method in methods if method is not None)), "")

    def _layer(self, name: str) -> str:
        last = name.rsplit(".", 1)[-1]
        if name.startswith("torch.nn.") and last in knowledge.same_without_grad():
            return ""
        if name.startswith("torch.nn.") and last == "LSTM":
            return "`nn.LSTM` may give other last digits without gradients"
        if name.startswith("torch.nn.") and last.startswith(("Transformer", "MultiheadAttention")):
            return f"`nn.{last}` takes a faster way without gradients, whose numbers differ"
        return f"`{last}` is not followed"

    def _outside(self, name: str, func: ir.Expr) -> str:
        last = name.rsplit(".", 1)[-1]
        if name.startswith("torch.nn.") and last[:1].isupper():
            return self._layer(name)
        if last in ("scaled_dot_product_attention", "multi_head_attention_forward"):
            return f"`{last}` may take another way without gradients"
        if name.startswith(("torch.is_grad_enabled", *words.WANTS_OUTSIDE)):
            return f"`{text(func, 40)}` is called"
        known = name.startswith((*words.ENDS_OUTSIDE, *words.PASSES_OUTSIDE, "time.", "random.", "os.", "tqdm"))
        return "" if known else f"`{text(func, 40)}` is not followed"

    def _plain_method(self, func: ir.Attr) -> bool:
        """A method that only tensors, containers, strings and modules' bookkeeping have."""
        name = func.name
        if isinstance(func.value, ir.Const | ir.FormattedString):
            return True
        if isinstance(func.value, ir.Call) and dotted(func.value.func) == "super":
            return name == "__init__"
        if (
            self.analyser.facts.methods_named(name)
            or self.analyser.facts.many_methods(name)
            or name in words.WANT_GRAPH
        ):
            return False
        containers = words.PUTS | words.CONTAINER_ENDS | words.CONTAINER_READS
        return (
            knowledge.methods().knows(name) or name in containers or name in ("eval", "train", "to", "format", "join")
        )


def _called_names(expr: ir.Expr) -> list[ir.Expr]:
    """What an expression is, or calls: not the arguments, which may be sizes."""
    if isinstance(expr, ir.Call):
        return _called_names(expr.func)
    if isinstance(expr, ir.IfExp):
        return [*_called_names(expr.body), *_called_names(expr.orelse)]
    return [expr]
