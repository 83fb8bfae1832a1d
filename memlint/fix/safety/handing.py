"""The effect of a call on a tracked value."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.vocabulary import CLEAN, COMPUTED, ITSELF
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_DECORATORS

if TYPE_CHECKING:
    from memlint.fix.safety.watch import Watch


def call(watch: Watch, function: Function, expr: ir.Call) -> int:
    given = [(arg, watch.share(function, arg)) for arg in expr.args]
    given += [(word.value, watch.share(function, word.value)) for word in expr.keywords]
    held = [arg for arg, level in given if level]
    func = expr.func
    if isinstance(func, ir.Attr):
        receiver = watch.share(function, func.value)
        if receiver:
            return _own_method(watch, func, receiver)
    elif watch.share(function, func):
        watch.doubtful(f"`{text(func, 40)}` is called, and is not resolved")
    if not held:
        _look(watch, function, expr)
        return CLEAN
    if isinstance(func, ir.Name) and func.id not in function.locals and _is_builtin(watch, function, func.id):
        if func.id in words.BUILTINS_THAT_LOOK:
            watch.doubtful(f"`{text(expr, 40)}` can read it")
        if func.id in words.BUILTINS_THAT_END:
            return CLEAN
        if func.id in words.BUILTINS_THAT_TELL:
            return COMPUTED
        if any(word.name == "key" for word in expr.keywords):
            watch.doubtful(f"`{text(expr, 40)}` passes it to its key function")
        if func.id in words.BUILTINS_THAT_PASS:
            return ITSELF
    if isinstance(func, ir.Attr) and isinstance(func.value, ir.Const | ir.FormattedString):
        return COMPUTED  # methods of a string
    resolved = _resolved(watch, function, func)
    if isinstance(resolved, Function):
        return _follow(watch, function, resolved, expr)
    if resolved:
        return _outside(watch, resolved, held[0], func)
    if isinstance(func, ir.Attr) and func.name in words.PUTS and not _has_method(watch, func.name):
        watch.into(function, func.value)
        return CLEAN
    if isinstance(func, ir.Attr) and func.name in words.LOGS and _is_logger(function, func.value):
        return CLEAN
    watch.doubtful(
        f"`{text(held[0], 40)}` is passed to `{text(func, 40)}`, which is not resolved and may need its graph"
    )
    return ITSELF


def _look(watch: Watch, function: Function, expr: ir.Call) -> None:
    """A doubt for a builtin that reads all variables, or runs code that may."""
    func = expr.func
    if not isinstance(func, ir.Name) or func.id not in words.BUILTINS_THAT_LOOK or func.id in function.locals:
        return
    code = func.id in ("eval", "exec") and expr.args
    if (code or not expr.args) and watch.names.get(function.key):
        watch.doubtful(f"`{text(expr, 40)}` may read it")


def _own_method(watch: Watch, func: ir.Attr, receiver: int) -> int:
    """The share of the result of a method on the value itself, or on a container of it."""
    name, methods = func.name, knowledge.methods()
    if name in words.WANT_GRAPH:
        watch.doubtful(f"`{text(func, 40)}()` is called, which needs its graph")
        return CLEAN
    if _has_method(watch, name):
        watch.doubtful(f"`{text(func, 40)}` may be a method of this project, which may need its graph")
        return ITSELF
    if name == "numpy":
        watch.doubtful(f"`{text(func, 40)}()` raises an error while it has a graph, and no longer would")
    if name in methods.cut or name in words.CONTAINER_ENDS or name in words.PUTS:
        return CLEAN
    if name in words.CONTAINER_READS:
        return ITSELF
    if name.endswith("_") and not name.endswith("__"):
        if receiver == ITSELF:
            watch.doubtful(f"`{text(func, 40)}` changes it in place, and `.detach()` shares its memory")
        return receiver
    if name in methods.op or name in methods.reduce:
        return COMPUTED
    if methods.knows(name):
        return ITSELF
    watch.doubtful(f"`{text(func, 40)}` is not resolved and may need its graph")
    return ITSELF


def _has_method(watch: Watch, name: str) -> bool:
    """Whether the receiver may be an object of a project class with a method of this name."""
    return watch.analyser.facts.methods.are_there(name)


def _is_builtin(watch: Watch, function: Function, name: str) -> bool:
    return hasattr(builtins, name) and watch.analyser.program.find(function.module, name)[0] == "none"


def _resolved(watch: Watch, function: Function, func: ir.Expr) -> Function | str | None:
    """The called function of the project, or the qualified name of an external one; None if unknown."""
    if isinstance(func, ir.Attr) and isinstance(func.value, ir.Name) and function.takes_self:
        own = function.params[0].name if function.params else ""
        if func.value.id == own and function.cls is not None:
            method = watch.analyser.program.method(function.cls, func.name)
            if method is None or watch.analyser.program.overrides(function.cls, func.name):
                return None
            return method
    root = dotted(func).partition(".")[0]
    if root in function.locals and not _imports(function, root):
        return None
    kind, what = watch.analyser.program.find_expression(function.module, func, function)
    if kind == "function" and isinstance(what, Function):
        return what
    return what if kind == "ext" and isinstance(what, str) else None


def _outside(watch: Watch, name: str, held: ir.Expr, func: ir.Expr) -> int:
    """The share of the result of an external function."""
    if name.startswith((*words.ENDS_OUTSIDE, *words.SHOWS_OUTSIDE)):
        return CLEAN
    last = name.rsplit(".", 1)[-1]
    in_place = last.endswith("_") and not last.endswith("__")
    if not in_place and name.startswith(words.PASSES_OUTSIDE) and not name.startswith(words.WANTS_OUTSIDE):
        row = knowledge.function(name)
        return CLEAN if row is not None and row.graph == "none" and row.returns == "data" else ITSELF
    watch.doubtful(f"`{text(held, 40)}` is passed to `{text(func, 40)}`, which may need its graph")
    return ITSELF


def _follow(watch: Watch, function: Function, callee: Function, expr: ir.Call) -> int:
    """Follow the value into a function of the project."""
    shown = f"`{callee.name}`"
    if watch.is_deep or callee.is_generator or set(callee.decorator_names) - PLAIN_DECORATORS:
        watch.doubtful(f"it is passed to {shown}, which is not resolved and may need its graph")
        return ITSELF
    positional = [param.name for param in callee.params if param.kind in ("positional", "positional-only")]
    bound = callee.takes_self and isinstance(expr.func, ir.Attr)
    names: set[str] = set()
    for position, arg in enumerate(expr.args):
        if not watch.share(function, arg):
            continue
        index = position + (1 if bound else 0)
        starred = any(isinstance(before, ir.Starred) for before in expr.args[: position + 1])
        if starred or index >= len(positional):
            watch.doubtful(f"it is passed to {shown} by `*`, to an unknown parameter")
            return ITSELF
        names.add(positional[index])
    known = {param.name for param in callee.params if param.kind not in ("star", "double-star")}
    for word in expr.keywords:
        if watch.share(function, word.value):
            if word.name not in known:
                watch.doubtful(f"it is passed to {shown} by `**`, to an unknown parameter")
                return ITSELF
            names.add(word.name)
    inner = watch.deeper()
    inner.enter(callee, names)
    if inner.run():
        watch.doubtful(f"{inner.doubt} in {shown}")
    for name in inner.attributes:
        watch.attribute(name)
    return ITSELF if inner.returned else CLEAN


def _is_logger(function: Function, expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Name) or expr.id in function.locals:
        return False
    made = function.module.bindings.get(expr.id, ())
    return bool(made) and all(
        isinstance(item, ir.Assign)
        and isinstance(item.value, ir.Call)
        and dotted(item.value.func).rsplit(".", 1)[-1] in ("getLogger", "get_logger")
        for item in made
    )


@kept_for
def _imports(function: Function, name: str) -> bool:
    """Whether an import in the function binds a name."""
    return any(
        isinstance(statement, ir.Import | ir.ImportFrom)
        and any((alias.asname or alias.name.partition(".")[0]) == name for alias in statement.names)
        for statement in walk_statements(function.body, into_definitions=False)
    )
