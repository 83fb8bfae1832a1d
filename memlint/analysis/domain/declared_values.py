"""Values of which nothing is known, as the code declares them: by annotations of variables, attributes and results."""

from __future__ import annotations

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, EMPTY, INSTANCE, MODULE, NONE, UNKNOWN, Path, V
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import calls, is_name, last_name, walk_statements
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


def as_declared(summary: Summary | None, value: V, known: V | None) -> V:
    """A value that may be anything, as the module or the object of the project that its declaration says it is; other
    values are unchanged. (A number, a container, or an object that was computed from tensors may hold graphs of which
    its annotation does not tell.) ``summary``: the function that knows what the value was computed from, if any."""
    if known is None or not value.kinds & UNKNOWN or not known.is_only(MODULE | INSTANCE | NONE):
        return value
    if not known.kinds & MODULE and (not known.kinds & INSTANCE or summary is None or _is_computed(summary, value)):
        return value
    src = EMPTY if value.is_only(UNKNOWN | NONE) else value.src
    return value.but(kinds=value.kinds & ~UNKNOWN | known.kinds, refs=value.refs | known.refs, src=src)


def _is_computed(summary: Summary, value: V) -> bool:
    """Whether a value is an argument, or was computed from one or from what a model or an operation gives. (A part of
    an argument, ``cfg.runner``, is more often an option.)"""
    for source in summary.graphs.closure(value.src):
        node = summary.graphs.nodes.get(source)
        option = isinstance(source, Path) and source.steps[-1:] and source not in value.src
        if not option and (node is None or node.definite or node.model or not node.unknown):
            return True
    return False


@kept
def _declared(body: tuple[ir.Stmt, ...]) -> dict[str, ir.Expr]:
    """The annotations of the variables that a body declares."""
    return {
        statement.target.id: statement.annotation
        for statement in walk_statements(body, into_definitions=False)
        if isinstance(statement, ir.AnnAssign) and isinstance(statement.target, ir.Name)
    }


def as_variable(summary: Summary, target: ir.Expr, value: V) -> V:
    """What is assigned to a local variable, by the annotation of the variable at any statement of the function."""
    if not value.kinds & UNKNOWN or not isinstance(target, ir.Name):
        return value
    annotation = _declared(summary.function.body).get(target.id)
    return (
        value
        if annotation is None
        else as_declared(summary, value, summary.analyser.annotated(summary.module, annotation))
    )


def as_annotated(summary: Summary, callee: Function, result: V, expr: ir.Call | None) -> V:
    """The result of a call: a number if the callee is annotated to return one, and what the annotation says if nothing
    is known of it. (A function that finds a class in a table is often annotated with the class.)"""
    node = callee.node
    if not isinstance(node, ir.FunctionDef) or node.returns is None or not (result.src or result.kinds & UNKNOWN):
        return result
    known = summary.analyser.annotated(callee.module, node.returns)
    if known is not None and known.is_only(DATA | NONE):
        return known if result.src else result
    if known is None or _may_find_class(callee) or (expr is not None and id(expr) in _called(summary.function.body)):
        return result
    return as_declared(summary, result, known)


@kept
def _called(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The calls, by identity, whose results are called at once: ``get_model(name)(options)``."""
    return frozenset(id(call.func) for call in calls(body, into_definitions=True) if isinstance(call.func, ir.Call))


#: names of functions and variables for classes
_CLASS = lazy_pattern(r"(?i:(^|_)(cls|class|classes)(_|$))|Class$")
#: functions that find what they are asked for
_FINDS = frozenset({"getattr", "get", "import_module", "import_string", "locate", "load_class"})


@kept_for
def _may_find_class(callee: Function) -> bool:
    """Whether a function is named for a class, or returns what it looks up by a key or a name."""
    if _CLASS.search(callee.name) is not None:
        return True
    statements = list(walk_statements(callee.body, into_definitions=False))
    returned = [one.value for one in statements if isinstance(one, ir.Return) and one.value is not None]
    names = {one.id for one in returned if isinstance(one, ir.Name)}
    bound = [
        one.value
        for one in statements
        if isinstance(one, ir.Assign) and any(isinstance(part, ir.Name) and part.id in names for part in one.targets)
    ]
    return any(map(_is_found, (*returned, *bound)))


def _is_found(expr: ir.Expr) -> bool:
    """Whether an expression looks something up in a table, and not in its own object: ``MODELS[name]``."""
    if isinstance(expr, ir.Call) and last_name(expr.func) in _FINDS:
        return not (isinstance(expr.func, ir.Attr) and is_name(expr.func.value, "self"))
    return isinstance(expr, ir.Subscript)
