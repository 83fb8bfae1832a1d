"""Shapes of tensors, as far as the source proves them: how many dimensions there are, and which of them are of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memlint.flow.bound_names import argument
from memlint.flow.practices.layers import (
    EACH,
    MAX_STEPS,
    Bound,
    Given,
    Instance,
    Scope,
    arguments,
    attribute,
    bound,
    instance_of,
    maker,
    number,
    outside_name,
)
from memlint.flow.program import Function
from memlint.flow.shape_words import (
    ANY,
    FACTOR,
    FACTORIES,
    LOADERS,
    MANY,
    OF_TABLES,
    ONE_TARGET,
    REDUCE,
    SAME,
    SAME_LAYERS,
    SCALAR,
    TABLES,
    TENSOR_SETS,
    USUAL,
    WITH_INDICES,
    Dim,
    Known,
    Members,
    Parts,
    Shape,
    batched,
    is_row,
    member,
    padded,
    part_of,
    wider,
)
from memlint.flow.syntax import calls, is_true, last_name, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


class Shapes:
    """Asks for the shapes of expressions. `WORK` bounds, in expressions, what is looked at for each that is asked."""

    WORK = 400

    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self.left = 0

    def of(self, expr: ir.Expr, scope: Scope) -> Shape | None:
        """The shape of a tensor, None for what is not proven."""
        self.left = self.WORK
        found = self._of(expr, scope)
        return found if isinstance(found, Shape) else None

    def _of(self, expr: ir.Expr | None, scope: Scope) -> Known | None:
        self.left -= 1
        if expr is None or self.left < 0 or scope.depth > MAX_STEPS:
            return None
        ask = _BY_KIND.get(type(expr))
        return ask(self, expr, scope) if ask is not None else None

    def _shape(self, expr: ir.Expr | None, scope: Scope) -> Shape | None:
        found = self._of(expr, scope)
        return found if isinstance(found, Shape) else None

    def _first(self, call: ir.Call, scope: Scope) -> Shape | None:
        return self._shape(call.args[0], scope) if call.args else None

    # ------------------------------------------------------------------------------------ names

    def _name(self, expr: ir.Name, scope: Scope) -> Known | None:
        found = bound(self.analyser, expr, scope)
        if found is None:
            return SCALAR if expr.id in FACTOR else None
        return self._follow(found, expr)

    def _follow(self, found: Bound, reader: ir.Name | None = None) -> Known | None:
        if isinstance(found.expr, ir.Display) and not found.expr.elements and found.expr.kind == "list":
            return self._collected(found, reader) if reader is not None and not found.steps else None
        value = self._of(found.expr, found.scope)
        for step in found.steps:
            if value is None:
                value = self._drawn(found) if step == EACH else None
            elif step == EACH:
                value = member(value)
            else:
                value = part_of(value, step)
        return value

    def _drawn(self, found: Bound) -> Known | None:
        """A batch of the loader that a loop goes through."""
        return member(self._loader(found.expr, found.scope))

    def _collected(self, found: Bound, reader: ir.Name) -> Known | None:
        """A list that begins empty, and whose members are all of one shape."""
        each: list[Shape | None] = []
        for call in calls(found.scope.function.body):
            func = call.func
            if isinstance(func, ir.Attr) and isinstance(func.value, ir.Name) and func.value.id == reader.id:
                if func.name != "append" or len(call.args) != 1:
                    return None
                each.append(self._shape(call.args[0], found.scope))
        if not each or any(one is None or one != each[0] or one.at_least for one in each):
            return None
        first = each[0]
        return Shape((MANY, *first.dims)) if first is not None else None

    def _attr(self, expr: ir.Attr, scope: Scope) -> Known | None:
        found = attribute(self.analyser, expr, scope)
        if found is not None:
            return self._follow(found)
        if expr.name in FACTOR:
            return SCALAR
        if expr.name == "target" and self._is_bunch(expr.value, scope):
            return Shape((MANY,))
        if expr.name == "data" and self._is_bunch(expr.value, scope):
            return Shape((MANY, ANY))
        value = self._of(expr.value, scope)
        if expr.name in ("values", "indices") and isinstance(value, Parts):
            return part_of(value, 0 if expr.name == "values" else 1)
        if expr.name in ("data", "values", "iloc", "loc") and isinstance(value, Shape):
            return value
        if expr.name == "T" and isinstance(value, Shape) and len(value.dims) == 2 and not value.at_least:
            return Shape((value.dims[1], value.dims[0]))
        return None

    def _is_of_sklearn(self, expr: ir.Expr, scope: Scope) -> bool:
        made = maker(self.analyser, expr, scope)
        return (
            made is not None
            and isinstance(made.expr, ir.Call)
            and (outside_name(self.analyser, made.expr, made.scope).startswith("sklearn."))
        )

    def _is_bunch(self, expr: ir.Expr, scope: Scope) -> bool:
        made = maker(self.analyser, expr, scope)
        if made is None or not isinstance(made.expr, ir.Call) or made.expr.keywords:
            return False
        name = outside_name(self.analyser, made.expr, made.scope)
        return name.startswith("sklearn.datasets.") and name.rsplit(".", 1)[-1] in ONE_TARGET

    # ------------------------------------------------------------------------------------ operations

    def _const(self, expr: ir.Const, scope: Scope) -> Known | None:
        return SCALAR if expr.kind in ("int", "float", "bool") else None

    def _unary(self, expr: ir.Unary, scope: Scope) -> Known | None:
        return self._of(expr.operand, scope)

    def _compare(self, expr: ir.Compare, scope: Scope) -> Known | None:
        return self._together(self._shape(expr.left, scope), self._shape(expr.rights[0], scope))

    def _binary(self, expr: ir.Binary, scope: Scope) -> Known | None:
        if expr.op == "@":
            return None
        return self._together(self._shape(expr.left, scope), self._shape(expr.right, scope))

    @staticmethod
    def _together(a: Shape | None, b: Shape | None) -> Shape | None:
        """What an operation of two has, by the rules of broadcasting."""
        if a is None or b is None:
            known = a or b
            return Shape(known.dims[-1:], at_least=True) if known is not None and is_row(known) else None
        if not a.dims or not b.dims:
            return a if a.dims else b
        size = max(len(a.dims), len(b.dims))
        pairs = zip(padded(a.dims, size), padded(b.dims, size), strict=True)
        dims = tuple(wider(one, other) for one, other in pairs)
        return Shape(dims, (a.by_layer or b.by_layer) and dims[-1] == 1, a.at_least or b.at_least)

    def _display(self, expr: ir.Display, scope: Scope) -> Known | None:
        if any(isinstance(item, ir.Starred) for item in expr.elements) or len(expr.elements) > 64:
            return None
        items = [self._of(item, scope) for item in expr.elements]
        if expr.kind == "tuple":
            return Parts(tuple(item if isinstance(item, Shape | Parts) else None for item in items))
        first = items[0] if items else None
        if expr.kind != "list" or not isinstance(first, Shape) or any(item != first for item in items):
            return None
        return Shape((len(items), *first.dims))

    def _comprehension(self, expr: ir.Comprehension, scope: Scope) -> Known | None:
        element = expr.element
        counted = isinstance(element, ir.Call) and last_name(element.func) in ("float", "int", "len", "item")
        return Shape((MANY,)) if expr.kind == "list" and counted else None

    def _choice(self, expr: ir.IfExp, scope: Scope) -> Known | None:
        first, second = self._of(expr.body, scope), self._of(expr.orelse, scope)
        return first if first == second else None

    def _subscript(self, expr: ir.Subscript, scope: Scope) -> Known | None:
        value = self._of(expr.value, scope)
        index = expr.index
        if isinstance(value, Parts):
            at = number(self.analyser, index, scope)
            return part_of(value, at) if at is not None else None
        if not isinstance(value, Shape) or value.at_least:
            return None
        if isinstance(index, ir.Const) and index.kind == "str":
            return Shape((MANY,)) if self._is_table(expr.value, scope) else None
        if isinstance(index, ir.Display) and index.kind == "list" and self._is_table(expr.value, scope):
            return Shape((MANY, ANY))
        parts = index.elements if isinstance(index, ir.Display) and index.kind == "tuple" else (index,)
        dims: list[Dim] = []
        rest = list(value.dims)
        for part in parts:
            if isinstance(part, ir.Const) and part.kind == "None":
                dims.append(1)
            elif not rest:
                return None
            elif isinstance(part, ir.Slice):
                dim = rest.pop(0)
                whole = part.lower is None and part.upper is None and part.step is None
                dims.append(dim if whole or dim == MANY else ANY)
            elif number(self.analyser, part, scope) is not None or self._shape(part, scope) == SCALAR:
                rest.pop(0)
            else:
                return None
        return Shape((*dims, *rest), value.by_layer and bool(rest or dims) and (*dims, *rest)[-1] == 1)

    def _is_table(self, expr: ir.Expr, scope: Scope) -> bool:
        """Whether it is a table of pandas, as it was read or with rows taken out."""
        for _ in range(MAX_STEPS):
            if isinstance(expr, ir.Call):
                if outside_name(self.analyser, expr, scope) in TABLES:
                    return True
                if not isinstance(expr.func, ir.Attr) or expr.func.name not in OF_TABLES:
                    return False
                expr = expr.func.value
                continue
            found = bound(self.analyser, expr, scope) if isinstance(expr, ir.Name) else None
            if found is None and isinstance(expr, ir.Attr):
                found = attribute(self.analyser, expr, scope)
            if found is None or found.steps or found.scope.depth > MAX_STEPS:
                return False
            expr, scope = found.expr, found.scope
        return False

    # ------------------------------------------------------------------------------------ calls

    def _call(self, expr: ir.Call, scope: Scope) -> Known | None:
        outside = outside_name(self.analyser, expr, scope)
        if outside:
            return self._outside(outside, expr, scope)
        kind, what = self.analyser.program.find_expression(scope.function.module, expr.func, scope.function)
        if kind == "function" and what is not None:
            return self._returned(what, arguments(what, expr, scope), None, scope)
        if kind == "class":
            return None
        made = maker(self.analyser, expr.func, scope)
        if made is not None and isinstance(made.expr, ir.Call):
            return self._layer(made.expr, made.scope, self._first(expr, scope), expr, scope)
        if isinstance(expr.func, ir.Attr):
            method = self._own_method(expr.func, scope)
            if method is not None:
                return self._returned(method, arguments(method, expr, scope), scope.instance, scope)
            return self._method(expr, expr.func, scope)
        if isinstance(expr.func, ir.Name) and expr.func.id in ("len", "float", "int"):
            return SCALAR
        return None

    def _own_method(self, func: ir.Attr, scope: Scope) -> Function | None:
        function = scope.function
        if function.cls is None or not function.takes_self or not function.params:
            return None
        if not isinstance(func.value, ir.Name) or func.value.id != function.params[0].name:
            return None
        cls = scope.instance.cls if scope.instance is not None else function.cls
        return self.analyser.program.method(cls, func.name)

    def _returned(
        self, function: Function, args: dict[str, Given] | None, instance: Instance | None, caller: Scope
    ) -> Known | None:
        """What all returns of a function give."""
        if args is None or function.is_generator:
            return None
        scope = Scope(function, args, instance, caller.depth + 1)
        found = [
            self._of(statement.value, scope)
            for statement in walk_statements(function.body, into_definitions=False)
            if isinstance(statement, ir.Return)
        ]
        return found[0] if found and all(one == found[0] for one in found) else None

    def _outside(self, name: str, call: ir.Call, scope: Scope) -> Known | None:
        own = name.rsplit(".", 1)[-1]
        root = name.partition(".")[0]
        if name in TABLES:
            return Shape((MANY, ANY))
        if root == "sklearn":
            return self._of_sklearn(own, call, scope)
        if root not in ("torch", "numpy"):
            return None
        if name.startswith("numpy.random.") and own in ("rand", "randn"):
            return self._sizes(call.args, scope)
        if name.startswith("numpy.random.") and own in ("normal", "uniform", "randint"):
            size = argument(call, 2, "size")
            sizes = size.elements if isinstance(size, ir.Display) else (size,) if size is not None else ()
            return self._sizes(sizes, scope) if sizes else None
        if own in FACTORIES:
            return self._made(call, scope)
        if own in ("arange", "linspace", "randperm"):
            return Shape((MANY,))
        if own in ("tensor", "as_tensor", "array", "asarray", "from_numpy") or own.endswith("Tensor"):
            sized = own.endswith("Tensor") and (len(call.args) != 1 or self._is_number(call.args[0], scope))
            return self._first(call, scope) if not sized else None
        if own == "Variable" or own in SAME:
            return self._shape(call.args[0], scope) if call.args else None
        if own in REDUCE | WITH_INDICES | {"squeeze", "unsqueeze", "flatten", "reshape", "gather"} and call.args:
            rest = ir.Call(call.at, ir.Attr(call.at, call.args[0], own), call.args[1:], call.keywords)
            return self._method(rest, ir.Attr(call.at, call.args[0], own), scope)
        return None

    def _of_sklearn(self, own: str, call: ir.Call, scope: Scope) -> Known | None:
        if own == "train_test_split":
            each = [self._shape(arg, scope) for arg in call.args]
            return Parts(tuple(side for one in each for side in (one, one)))
        if own == "make_regression" and argument(call, 9, "n_targets") is None and argument(call, 9, "coef") is None:
            return Parts((Shape((MANY, ANY)), Shape((MANY,))))
        if own in ("make_classification", "make_moons", "make_circles", "make_blobs"):
            return Parts((Shape((MANY, ANY)), Shape((MANY,)))) if argument(call, 9, "return_centers") is None else None
        if own in ONE_TARGET and any(word.name == "return_X_y" and is_true(word.value) for word in call.keywords):
            return Parts((Shape((MANY, ANY)), Shape((MANY,))))
        return None

    def _sizes(self, sizes: tuple[ir.Expr, ...], scope: Scope) -> Shape | None:
        """The shape that arguments spell out, of which one may stand for a whole shape unless it is a number."""
        if any(isinstance(size, ir.Starred) for size in sizes):
            return None
        if len(sizes) == 1 and isinstance(sizes[0], ir.Display):
            sizes = sizes[0].elements
        elif len(sizes) == 1 and not self._is_number(sizes[0], scope):
            return None
        return Shape(tuple(self._size(size, scope) for size in sizes))

    def _is_number(self, expr: ir.Expr, scope: Scope) -> bool:
        if number(self.analyser, expr, scope) is not None or self._shape(expr, scope) == SCALAR:
            return True
        return isinstance(expr, ir.Call) and isinstance(expr.func, ir.Name) and expr.func.id in ("len", "int")

    def _size(self, expr: ir.Expr, scope: Scope) -> Dim:
        """One dimension; the number of samples of something is `MANY`."""
        value = number(self.analyser, expr, scope)
        if value is not None:
            return value if value >= 0 else MANY
        if isinstance(expr, ir.Call):
            first = argument(expr, 0, "dim")
            named = last_name(expr.func) == "len"
            if named or (last_name(expr.func) == "size" and isinstance(first, ir.Const) and first.value == 0):
                return MANY
        if isinstance(expr, ir.Subscript) and isinstance(expr.index, ir.Const) and expr.index.value == 0:
            return MANY if last_name(expr.value) == "shape" else ANY
        return ANY

    def _made(self, call: ir.Call, scope: Scope) -> Shape | None:
        given = argument(call, 0, "size")
        if any(word.name == "size" for word in call.keywords) and given is not None:
            return self._sizes((given,), scope)
        return self._sizes(call.args, scope) if call.args else None

    def _method(self, call: ir.Call, func: ir.Attr, scope: Scope) -> Known | None:
        name = func.name
        if name == "item":
            return SCALAR
        if name == "gather" and len(call.args) == 2:
            index = self._shape(call.args[1], scope)
            return index._replace(by_layer=True) if index is not None and index.dims[-1:] == (1,) else index
        if name in ("view", "reshape"):
            return self._viewed(call, scope)
        if name == "flatten" and not call.keywords:
            value = self._of(func.value, scope)
            first = number(self.analyser, call.args[0], scope) if call.args else 0
            if first == 0 and isinstance(value, Shape) and not value.dims:
                return None
            return Shape((MANY,)) if first == 0 else Shape((MANY, ANY)) if first == 1 else None
        if name == "fit_transform" or (name == "transform" and self._is_of_sklearn(func.value, scope)):
            return self._of(call.args[0], scope) if call.args else None
        if name in ("to_numpy", "drop", "copy"):
            return self._of(func.value, scope)
        value = self._of(func.value, scope)
        if not isinstance(value, Shape):
            return None
        if name in SAME:
            return value
        if value.at_least:
            return None
        if name == "squeeze":
            return self._squeezed(value, call, scope)
        if name == "unsqueeze":
            at = number(self.analyser, argument(call, 0, "dim"), scope)
            if at is None or not -len(value.dims) - 1 <= at <= len(value.dims):
                return None
            at = at + len(value.dims) + 1 if at < 0 else at
            return Shape((*value.dims[:at], 1, *value.dims[at:]))
        if name in REDUCE | WITH_INDICES:
            return self._reduced(name, value, call, scope)
        if name == "t" and len(value.dims) == 2:
            return Shape((value.dims[1], value.dims[0]))
        return None

    def _viewed(self, call: ir.Call, scope: Scope) -> Shape | None:
        sizes = call.args
        if len(sizes) == 1 and isinstance(sizes[0], ir.Display):
            sizes = sizes[0].elements
        if not sizes or call.keywords or any(isinstance(size, ir.Starred) for size in sizes):
            return None
        numbers = [number(self.analyser, size, scope) for size in sizes]
        if len(sizes) == 1 and numbers[0] is None:
            return None
        first_batch = numbers[0] == -1 or self._size(sizes[0], scope) == MANY
        dims = [ANY if value is None or value == -1 else value for value in numbers]
        return Shape((MANY, *dims[1:]) if first_batch else tuple(dims))

    def _squeezed(self, value: Shape, call: ir.Call, scope: Scope) -> Shape | None:
        given = argument(call, 0, "dim") or argument(call, 0, "axis")
        if given is None:
            return None if ANY in value.dims else Shape(tuple(dim for dim in value.dims if dim != 1))
        at = number(self.analyser, given, scope)
        if at is None or not -len(value.dims) <= at < len(value.dims):
            return None
        at %= len(value.dims)
        if value.dims[at] == ANY:
            return None
        return Shape((*value.dims[:at], *value.dims[at + 1 :])) if value.dims[at] == 1 else value

    def _reduced(self, name: str, value: Shape, call: ir.Call, scope: Scope) -> Known | None:
        given = argument(call, 1 if name == "norm" else 0, "dim") or argument(call, 9, "axis")
        if given is None:
            return SCALAR if not call.args and not call.keywords else None
        at = number(self.analyser, given, scope)
        if at is None or not -len(value.dims) <= at < len(value.dims):
            return None
        at %= len(value.dims)
        keeps = argument(call, 1, "keepdim") or argument(call, 9, "keepdims")
        if keeps is not None and not isinstance(keeps, ir.Const):
            return None
        kept = (1,) if keeps is not None and is_true(keeps) else ()
        shape = Shape((*value.dims[:at], *kept, *value.dims[at + 1 :]))
        return Parts((shape, shape)) if name in WITH_INDICES else shape

    # ------------------------------------------------------------------------------------ layers, data sets

    def _layer(self, made: ir.Call, scope: Scope, given: Shape | None, call: ir.Call, caller: Scope) -> Known | None:
        """What a module gives that a call makes."""
        name = outside_name(self.analyser, made, scope)
        if name.startswith("torch.nn."):
            return self._of_torch(name.rsplit(".", 1)[-1], made, scope, given)
        instance = instance_of(self.analyser, made, scope)
        if instance is None or not self.analyser.program.is_module(instance.cls):
            return None
        forward = self.analyser.program.method(instance.cls, "forward")
        if forward is None:
            return None
        return self._returned(forward, arguments(forward, call, caller), instance, caller)

    def _of_torch(self, own: str, made: ir.Call, scope: Scope, given: Shape | None) -> Shape | None:
        if own == "Sequential":
            if made.keywords or not made.args:
                return None
            for arg in made.args:
                layer = maker(self.analyser, arg, scope)
                if layer is None or not isinstance(layer.expr, ir.Call):
                    given = None
                    continue
                inner = outside_name(self.analyser, layer.expr, layer.scope)
                known = inner.startswith("torch.nn.")
                given = self._of_torch(inner.rsplit(".", 1)[-1], layer.expr, layer.scope, given) if known else None
            return given
        if own == "Flatten":
            first = number(self.analyser, made.args[0], scope) if made.args else 1
            if made.keywords or len(made.args) > 1:
                return None
            return Shape((MANY, ANY)) if first == 1 else Shape((MANY,)) if first == 0 else None
        if given is None or given.at_least:
            return None
        if own in ("Linear", "LazyLinear"):
            width = number(self.analyser, argument(made, 1 if own == "Linear" else 0, "out_features"), scope)
            return Shape((*given.dims[:-1], ANY if width is None else width), width == 1) if given.dims else None
        return given if own in SAME_LAYERS else None

    def _loader(self, expr: ir.Expr, scope: Scope) -> Known | None:
        """What a loop over a data loader is given, round by round."""
        counts = False
        while isinstance(expr, ir.Call) and last_name(expr.func) in ("enumerate", "tqdm", "iter") and expr.args:
            counts = counts or last_name(expr.func) == "enumerate"
            expr = expr.args[0]
        made = maker(self.analyser, expr, scope)
        if made is None or not isinstance(made.expr, ir.Call):
            return None
        call = made.expr
        if outside_name(self.analyser, call, made.scope) not in LOADERS:
            return None
        words = {word.name for word in call.keywords}
        size = argument(call, 1, "batch_size")
        if not words <= USUAL or size is None or number(self.analyser, size, made.scope) == 1:
            return None
        data = argument(call, 0, "dataset")
        sample = self._sample(data, made.scope) if data is not None else None
        batch = batched(sample)
        return Members(Parts((SCALAR, batch)) if counts else batch) if batch is not None else None

    def _sample(self, data: ir.Expr, scope: Scope) -> Shape | Parts | None:
        """A sample of a data set."""
        made = maker(self.analyser, data, scope)
        if made is None or not isinstance(made.expr, ir.Call):
            return None
        call, scope = made.expr, made.scope
        if outside_name(self.analyser, call, scope) in TENSOR_SETS:
            shapes = [self._shape(arg, scope) for arg in call.args]
            return Parts(tuple(Shape(one.dims[1:]) if one is not None and one.dims else None for one in shapes))
        instance = instance_of(self.analyser, call, scope)
        getter = self.analyser.program.method(instance.cls, "__getitem__") if instance is not None else None
        if instance is None or getter is None or len(getter.given) != 1:
            return None
        zero = Given(ir.Const(call.at, "int", 0), scope)
        found = self._returned(getter, {getter.given[0].name: zero}, instance, scope)
        return found if isinstance(found, Shape | Parts) else None


_BY_KIND: dict[type, Callable[[Shapes, ir.Expr, Scope], Known | None]] = {
    ir.Name: Shapes._name,  # type: ignore[dict-item]
    ir.Attr: Shapes._attr,  # type: ignore[dict-item]
    ir.Const: Shapes._const,  # type: ignore[dict-item]
    ir.Unary: Shapes._unary,  # type: ignore[dict-item]
    ir.Binary: Shapes._binary,  # type: ignore[dict-item]
    ir.Compare: Shapes._compare,  # type: ignore[dict-item]
    ir.Display: Shapes._display,  # type: ignore[dict-item]
    ir.Comprehension: Shapes._comprehension,  # type: ignore[dict-item]
    ir.IfExp: Shapes._choice,  # type: ignore[dict-item]
    ir.Subscript: Shapes._subscript,  # type: ignore[dict-item]
    ir.Call: Shapes._call,  # type: ignore[dict-item]
}
