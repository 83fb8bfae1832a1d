"""Tables of functions and classes at module scope: ``COMMANDS[name](args)`` may call each of them."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import CALLABLE, DATA_VALUE, NOTHING, Ref, V
from memlint.analysis.index.program import Class, Module
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.analysis.transfer.heap import make
from memlint.analysis.transfer.scope import lookup
from memlint.ir import nodes as ir
from memlint.knowledge import EMPTY_BASES
from memlint.patterns import lazy_pattern

#: stands for a function that makes some network
ANY_NETWORK = Ref("ext", "", "torchvision.models.resnet18")
#: most entries of a table that are followed
_MAX_ENTRIES = 16
#: most networks of a module that ``getattr(module, name)`` may mean
_MAX_NETWORKS = 8
#: most classes of a table that an object may be an instance of
_MAX_CLASSES = 8
#: depth of star imports that are followed
_MAX_STARS = 3


def entries(fn: FunctionState, table: ir.Expr, key: object = None) -> V:
    """The functions or plain classes in a table that is a literal, or filled by decorators, or some network where
    all are networks; NOTHING for another expression. ``key``: the literal key of the looked-up entry."""
    root = table
    while isinstance(root, ir.Attr):
        root = root.value
    if not isinstance(root, ir.Name) or root.id in fn.function.locals:
        return NOTHING
    analyser = fn.analyser
    kind, what = analyser.program.find_expression(fn.module, table, fn.function.enclosing)
    if kind != "value":
        return NOTHING
    module, name = what
    bindings = module.bindings.get(name, ())
    if len(bindings) != 1 or not isinstance(bindings[0], ir.Assign | ir.AnnAssign):
        return NOTHING
    display = bindings[0].value
    values = display.values if isinstance(display, ir.DictDisplay) else ()
    if isinstance(display, ir.DictDisplay) and isinstance(key, str):
        keys = [one.value if isinstance(one, ir.Const) else None for one in display.keys]
        values = (values[keys.index(key)],) if keys.count(key) == 1 else values
    refs = [ref for value in values for ref in analyser.evaluate_constant(module, value).refs]
    if isinstance(display, ir.DictDisplay) and not values:
        refs = _registered(fn, module, name)
    if not refs or max(len(refs), len(values)) > _MAX_ENTRIES:
        return NOTHING
    if len(refs) >= len(values) and all(_is_network(fn, ref) for ref in refs):
        return V(CALLABLE, refs=frozenset((ANY_NETWORK,)))
    if any(ref.kind != "func" and not is_mode(ref) for ref in refs):
        resolved = len(refs) >= len(values) and len(set(refs)) <= _MAX_CLASSES
        return V(CALLABLE, refs=frozenset(refs)) if resolved and all(_is_plain(fn, one) for one in refs) else NOTHING
    return V(CALLABLE, refs=frozenset(refs))


def members(fn: FunctionState, state: State, expr: ir.Call, name: str) -> V:
    """The container that ``TABLE.values()`` or ``TABLE.items()`` gives, of a table of the project's functions;
    NOTHING for another call."""
    if name not in ("values", "items") or expr.args or not isinstance(expr.func, ir.Attr):
        return NOTHING
    member = entries(fn, expr.func.value)
    if not member.refs or any(ref.kind != "func" for ref in member.refs):
        return NOTHING
    if name == "items":
        member = make(fn, state, (expr.at, "item"), "tuple", NOTHING, {"0": DATA_VALUE, "1": member})
    return make(fn, state, expr.at, "list", member)


def _is_plain(fn: FunctionState, ref: Ref) -> bool:
    """Whether a callable is a project class without bases outside the project (a meter, a metric, a record)."""
    cls = fn.analyser.cls(ref) if ref.kind == "class" else None
    return cls is not None and fn.analyser.program.ancestors(cls)[1] <= EMPTY_BASES


def is_mode(ref: Ref) -> bool:
    """Whether a callable makes a guard: ``{"train": torch.enable_grad, "val": torch.no_grad}``."""
    row = knowledge.function(ref.name) if ref.kind == "ext" else None
    return row is not None and bool(row.context)


def _registered(fn: FunctionState, module: Module, table: str) -> list[Ref]:
    """The definitions that decorators of the project put into an empty table: ``@register("resnet")``. The search
    ends past the number that `entries` follows: each of a thousand functions would be lowered."""
    program = fn.analyser.program
    found: list[Ref] = []
    for registrar in module.index.definitions:
        if registrar.kind != "function" or table not in module.index.units[registrar.unit].names:
            continue
        function = module.function(registrar.name)
        if function is None or not _fills(function.body, table):
            continue
        for key in program.words.files(registrar.name):
            other = program.module(key)
            for definition in other.index.definitions:
                if registrar.name not in other.index.units[definition.unit].calls:
                    continue
                made = other.function(definition.name) or other.cls(definition.name)
                if made is not None and registrar.name in _decorating(made.node):
                    found.append(Ref("class" if isinstance(made, Class) else "func", key, definition.name))
                if len(found) > _MAX_ENTRIES:
                    return found
    return found


def _fills(body: tuple[ir.Stmt, ...], table: str) -> bool:
    """Whether a function, or one within it, stores a variable in a table: ``TABLE[name] = cls``."""
    return any(
        isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Name)
        and any(
            isinstance(target, ir.Subscript) and isinstance(target.value, ir.Name) and target.value.id == table
            for target in statement.targets
        )
        for statement in walk_statements(body)
    )


def _decorating(node: ir.FunctionDef | ir.Lambda | ir.ClassDef | None) -> set[str]:
    """The last components of the names of a definition's decorators."""
    decorators = node.decorators if isinstance(node, ir.FunctionDef | ir.ClassDef) else ()
    return {dotted(item.func if isinstance(item, ir.Call) else item).rsplit(".", 1)[-1] for item in decorators}


def of_package(fn: FunctionState, state: State, expr: ir.Expr) -> V:
    """A network, for ``models.__dict__[name]``; NOTHING for another expression."""
    if not isinstance(expr, ir.Attr) or expr.name != "__dict__" or not isinstance(expr.value, ir.Name):
        return NOTHING
    package = lookup(fn, state, expr.value.id)
    known = bool(package.refs) and all(ref.kind == "ext" and ref.name == "torchvision.models" for ref in package.refs)
    return V(CALLABLE, refs=frozenset((ANY_NETWORK,))) if known else of_module(fn, package)


def of_module(fn: FunctionState, value: V) -> V:
    """The networks, and other classes beside them, that ``getattr(models, name)`` may mean for a module of the
    project; NOTHING where it has many, or functions that may make them."""
    if len(value.refs) != 1:
        return NOTHING
    (ref,) = value.refs
    if ref.kind != "module":
        return NOTHING
    known = fn.analyser.networks_in
    if ref.key not in known:
        refs: set[Ref] = set()
        others: set[Ref] = set()
        plain = _gather(fn, fn.analyser.program.module(ref.key), refs, others, 0)
        known[ref.key] = frozenset()
        if plain and 0 < len(refs) <= _MAX_NETWORKS:
            known[ref.key] = frozenset(refs | others if len(refs | others) <= _MAX_NETWORKS else refs)
    return V(CALLABLE, refs=known[ref.key]) if known[ref.key] else NOTHING


def _gather(fn: FunctionState, module: Module, refs: set[Ref], others: set[Ref], depth: int) -> bool:
    """Collect the networks and the other classes of a module's public names; False where a function or too many
    networks make the result unknown."""
    program = fn.analyser.program
    if depth > _MAX_STARS or any(
        one.kind == "function" and not one.name.startswith("_") for one in module.index.definitions
    ):
        return False
    defined = {one.name for one in module.index.definitions}
    for name in sorted(defined.union(one.binds for one in module.index.imports if one.name is not None)):
        kind, cls = program.find(module, name) if name[:1].isupper() else ("none", None)
        if kind == "class" and cls is not None:
            ref = Ref("class", cls.module.key, cls.qual)
            (refs if _is_network(fn, ref) else others).add(ref)
            if len(refs) > _MAX_NETWORKS:
                return False
    for star in module.stars:
        key = program.resolve(star.module, module.key, star.level)
        if key is not None and not _gather(fn, program.module(key), refs, others, depth + 1):
            return False
    return True


#: names of modules that compute no features, so that their output has a graph only if their input has
_NO_NETWORK = lazy_pattern(r"loss|criterion|metric|score|transform|augment|norm|act|pool")


def _is_network(fn: FunctionState, ref: Ref) -> bool:
    """Whether a callable is a network class of the project."""
    cls = fn.analyser.cls(ref) if ref.kind == "class" else None
    if cls is None or not fn.analyser.program.is_module(cls) or _NO_NETWORK.search(cls.node.name.lower()):
        return False
    return fn.analyser.program.method(cls, "forward") is not None
