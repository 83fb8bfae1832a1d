"""Code that raises whenever it runs: what is said of a place behind it does not happen until that is mended.

Three mistakes are looked for, in what surely runs before a place is reached: a call that its function's signature
refuses, a name that nothing in the file binds, and a call of what a module of the project has not.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re
from collections.abc import Iterable, Iterator

from memlint.flow.broken import names_in
from memlint.flow.definitions import Class, Function, Module
from memlint.flow.program import Program
from memlint.flow.syntax import bodies, children, dotted, expressions, last_name, text, walk_statements
from memlint.ir import nodes as ir

#: names that programs around a file put into it
_PUT_IN = frozenset({"get_ipython", "display", "profile", "reveal_type", "dbutils", "spark", "sc", "_"})
#: contexts that let exceptions through
_PLAIN = re.compile(r"no_grad|inference_mode|enable_grad|autocast|^open\(")
#: what may bind names that the text does not show
_DYNAMIC = frozenset({"exec", "globals", "vars", "locals", "setattr", "builtins", "__builtins__"})


def why_raises(program: Program, function: Function, at: int) -> str:
    """Why a place in a function (an ordinal of its unit) is never reached without an exception, as a clause; "" where
    nothing is known against it."""
    reach = [(function, _before(function.body, at))]
    of_instance = function.takes_self and "classmethod" not in function.decorator_names
    if function.cls is not None and of_instance and function.name not in ("__init__", "__new__"):
        init = function.cls.methods.get("__init__")
        if init is not None and not any(program.below(function.cls)):
            reach.append((init, _surely(init.body)))
    for around, parts in reach:
        for part in parts:
            why = _mistake(program, around, part)
            if why:
                return why
    return ""


# ------------------------------------------------------------------------------------- what surely runs


def _before(body: tuple[ir.Stmt, ...], at: int) -> Iterator[ir.Expr]:
    """The expressions that were evaluated whenever an ordinal of the body is reached, and those of its statement."""
    for number, statement in enumerate(body):
        last = number + 1 == len(body) or body[number + 1].at > at
        if not last:
            yield from _surely((statement,))
            continue
        inner = next((block for block in reversed(bodies(statement)) if block and block[0].at <= at), None)
        if inner is None:
            yield from _surely((statement,))
        elif not isinstance(statement, ir.FunctionDef | ir.ClassDef):
            yield from _evaluated(expressions(statement))
            yield from _before(inner, at)
        return


def _surely(body: Iterable[ir.Stmt]) -> Iterator[ir.Expr]:
    """The expressions that are evaluated whenever a body runs to its end."""
    for statement in body:
        if isinstance(statement, ir.FunctionDef | ir.ClassDef | ir.Try):
            continue
        yield from _evaluated(expressions(statement))
        if isinstance(statement, ir.With) and all(_PLAIN.search(text(item.context)) for item in statement.items):
            yield from _surely(statement.body)
        if any(isinstance(inner, ir.Return | ir.Jump | ir.Raise) for inner in walk_statements((statement,))):
            return  # what follows may not be reached


def _evaluated(exprs: Iterable[ir.Expr]) -> Iterator[ir.Expr]:
    """The parts of expressions that are evaluated whatever their values are."""
    todo = list(exprs)
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, ir.BoolOp):
            todo.append(part.left)
        elif isinstance(part, ir.IfExp):
            todo.append(part.test)
        elif isinstance(part, ir.Comprehension):
            todo.append(part.fors[0].iter)
        elif isinstance(part, ir.Compare):
            todo += (part.left, *part.rights[:1])
        elif not isinstance(part, ir.Lambda):
            todo.extend(children(part))


# ------------------------------------------------------------------------------------- what raises


def _mistake(program: Program, function: Function, part: ir.Expr) -> str:
    if isinstance(part, ir.Call):
        return _refused(program, function, part) or _missing(program, function, part.func)
    return _unbound(function.module, part.id) if isinstance(part, ir.Name) else ""


def _unbound(module: Module, name: str) -> str:
    """A name that nothing in its file binds, and Python does not know."""
    if name in _PUT_IN or hasattr(builtins, name) or name.startswith("__") or module.stars:
        return ""
    bound = _bound_names(module)
    return f"`{name}` is not defined" if bound is not None and name not in bound else ""


def _bound_names(module: Module) -> frozenset[str] | None:
    """All names that a file binds in any scope; None where its text does not tell."""
    index = module.index
    if not index.complete or index.names & _DYNAMIC or module.key.endswith(".ipynb"):
        return None
    return _bound_in(module.text)


@functools.lru_cache(maxsize=64)
def _bound_in(source: str) -> frozenset[str] | None:
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name.partition(".")[0])
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                found.update(names)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
            case _ if type(node).__name__ in ("TypeVar", "TypeVarTuple", "ParamSpec"):
                found.add(getattr(node, "name", ""))
    return frozenset(found)


def _missing(program: Program, function: Function, func: ir.Expr) -> str:
    """``net.Nett(…)`` of a module that stands beside the file, where nothing else in the project has such a name."""
    if not isinstance(func, ir.Attr) or not isinstance(func.value, ir.Name):
        return ""
    module = function.module
    kind, what = program.find_expression(module, func.value, function)
    if kind != "module" or not _is_found_first(what, module.key) or not _is_bound_once(module, func.value.id):
        return ""
    known = names_in(program, what)
    if known is None or func.name in known or func.name.startswith("__") or what.endswith("__init__.py"):
        return ""  # (a package may hold modules that are no sources)
    elsewhere = set(program.words.files(func.name)) - {module.key}
    set_here = re.search(rf"\.{func.name}\b\s*[^(\s]", module.text)
    return "" if elsewhere or set_here else f"`{func.value.id}` has no `{func.name}`"


def _is_found_first(key: str, importer: str) -> bool:
    """Whether a module is found first wherever the importing file is the program: below the same folder."""
    folder = importer.rpartition("/")[0]
    return not folder or key.startswith(f"{folder}/")


def _refused(program: Program, function: Function, call: ir.Call) -> str:
    """A call that the signature of what it calls does not allow."""
    if any(isinstance(arg, ir.Starred) for arg in call.args) or any(word.name is None for word in call.keywords):
        return ""
    if not _is_bound_once(function.module, dotted(call.func).partition(".")[0]):
        return ""
    callee, bound = _callee(program, function, call.func)
    if callee is None or callee.decorators or not _is_found_first(callee.module.key, function.module.key):
        return ""
    if callee.module.stars or (bound and callee.params[:1] and callee.params[0].kind == "star"):
        return ""
    name = last_name(call.func)
    if any(
        re.search(rf"\b{name}\s*=[^=]|global .*\b{name}\b", module.text) for module in (function.module, callee.module)
    ):
        return ""  # somebody may put another in its place
    why = _misfit(callee.params[bound:], call)
    return f"`{text(call.func)}()` {why}" if why else ""


def _callee(program: Program, function: Function, func: ir.Expr) -> tuple[Function | None, int]:
    """The one function that a call surely means, and how many of its parameters are given already."""
    kind, what = program.find_expression(function.module, func, function)
    if kind == "function" and isinstance(what, Function) and _is_single(what.module, what.qual):
        return what, 0
    if kind == "class" and isinstance(what, Class) and _is_single(what.module, what.qual) and _is_plain(program, what):
        return what.methods.get("__init__"), 1
    return None, 0


def _is_plain(program: Program, cls: Class) -> bool:
    """Whether calling a class surely calls the one ``__init__`` in sight."""
    again = any(qual.startswith(f"{cls.qual}.__init__@") for qual in cls.module.functions)
    based = not cls.node.bases or program.is_module(cls)
    made_otherwise = "__new__" in cls.methods or "metaclass" in cls.module.text
    return based and not (again or made_otherwise or cls.node.decorators)


def _is_bound_once(module: Module, name: str) -> bool:
    """Whether a name means the same thing wherever a file uses it."""
    times = len(module.numbers.get(name, ())) + len(module.bindings.get(name, ()))
    return times <= 1 and (not module.stars or name in module.numbers)


def _is_single(module: Module, qual: str) -> bool:
    """Whether a name at the first level of a file is bound by one definition alone."""
    return len(module.numbers.get(qual, ())) == 1 and qual not in module.bindings


def _misfit(params: tuple[ir.Param, ...], call: ir.Call) -> str:
    positional = [param for param in params if param.kind in ("positional", "positional-only")]
    kinds = {param.kind for param in params}
    named = {param.name for param in params if param.kind in ("positional", "keyword-only")}
    count = len(call.args)
    if count > len(positional) and "star" not in kinds:
        return f"takes {len(positional)} positional argument{'s' * (len(positional) != 1)} and is given {count}"
    words = {word.name for word in call.keywords}
    strange = [word.name for word in call.keywords if word.name not in named]
    if strange and "double-star" not in kinds:
        return f"has no parameter `{strange[0]}`"
    given = {param.name for param in positional[:count]}
    if given & words & named:
        return f"is given `{min(given & words & named)}` twice"
    needed = [param for param in params if param.kind not in ("star", "double-star") and param.default is None]
    lacking = [param.name for param in needed if param.name not in given | words]
    return f"is not given `{lacking[0]}`" if lacking else ""
