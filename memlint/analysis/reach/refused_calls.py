"""Calls that do not fit the signature of the function that they certainly call."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.function import Function
from memlint.analysis.index.mentions import AttributeWrite, Maker, attribute_writes, bound_to, maker_of, may_set
from memlint.analysis.index.program import Program
from memlint.analysis.index.receivers import find_class
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls, dotted, last_name, spreads
from memlint.ir import nodes as ir

#: if more files than this mention a name, none is read
MAX_FILES = 12
#: bases without effect on ``__init__``, and the module base, which brings methods of its own
_ROOTS = frozenset({"object", "?.object", "builtins.object"})
_MODULES = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "?.nn.Module"})
#: bases that leave the construction of an object to its class
_DATASETS = frozenset({"torch.utils.data.Dataset", "torch.utils.data.dataset.Dataset"})


def is_found_first(key: str, importer: str) -> bool:
    """Whether a module is found first whenever the importing file is the program: it is below the same folder."""
    folder = importer.rpartition("/")[0]
    return not folder or key.startswith(f"{folder}/")


def refused(program: Program, function: Function, call: ir.Call) -> str:
    """Why a call does not fit its function's signature, as a clause; "" if it may fit."""
    if spreads(call):
        return ""
    first = dotted(call.func).partition(".")[0]
    if not is_bound_once(function.module, first) and not (first == dotted(call.func) and _is_last(function, first)):
        return ""
    callee, bound = _callee(program, function, call.func)
    if callee is None or callee.decorators or not is_found_first(callee.module.key, function.module.key):
        return ""
    if callee.module.stars or (bound and callee.params[:1] and callee.params[0].kind == "star"):
        return ""
    if _is_put_elsewhere(function, callee, call):
        return ""
    why = misfit(callee.params[bound:], call)
    return f"`{text(call.func)}()` {why}" if why else ""


def _is_put_elsewhere(function: Function, callee: Function, call: ir.Call) -> bool:
    """Whether code may replace the function by another one."""
    name = last_name(call.func)
    if callee.cls is not None and name not in (callee.name, callee.cls.node.name):
        return False  # a call of an object of a known class
    return any(name in may_set(module.text) for module in (function.module, callee.module))


def _callee(program: Program, function: Function, func: ir.Expr) -> tuple[Function | None, int]:
    """The one function that a call certainly runs (None if unknown), and the number of its parameters that are already
    bound."""
    kind, what = program.find_expression(function.module, func, function)
    if kind == "function" and isinstance(what, Function) and _is_single(what.module, what.qual):
        return what, 0
    if kind == "class" and isinstance(what, Class) and _is_plain(program, what):
        means_it = _is_single(what.module, what.qual) or (
            what.module is function.module and _is_last(function, what.qual)
        )
        return (_defined_once(program, what, "__init__"), 1) if means_it else (None, 0)
    if kind in ("function", "class", "ext", "module", "package"):
        return None, 0
    made = class_of_object(program, function, func)
    if made is not None and program.is_module(made) and program.method(made, "__call__") is None:
        if _is_put_on(program, "forward"):
            return None, 0
        return _defined_once(program, made, "forward"), 1
    if isinstance(func, ir.Attr):
        held = class_of_object(program, function, func.value)
        if held is None and _is_self(function, func.value) and function.cls is not None:
            held = None if program.is_overridden(function.cls, func.name) else function.cls
        if held is not None and not _is_put_on(program, func.name):
            return _defined_once(program, held, func.name), 1
    return None, 0


def callee_of(program: Program, function: Function, call: ir.Call) -> Function | None:
    """The one function that a call certainly runs; None if unknown."""
    if not is_bound_once(function.module, dotted(call.func).partition(".")[0]):
        return None
    callee, _ = _callee(program, function, call.func)
    if callee is None or callee.decorators or not is_found_first(callee.module.key, function.module.key):
        return None
    return None if callee.module.stars or callee.is_generator or _is_put_elsewhere(function, callee, call) else callee


def _is_plain(program: Program, cls: Class) -> bool:
    """Whether calling a class certainly runs the known ``__init__``."""
    ancestors, outside = program.ancestors(cls)
    if not (outside <= _ROOTS | _DATASETS or program.is_module(cls)):
        return False
    return not any(
        "__new__" in one.methods or "metaclass" in one.module.text or one.node.decorators for one in ancestors
    )


def _defined_once(program: Program, cls: Class, name: str) -> Function | None:
    """The method that an object of a class has; None if another class or statement may give it another one."""
    ancestors, outside = program.ancestors(cls)
    if not outside <= _ROOTS | _MODULES | _DATASETS:
        return None
    if not all(one is cls or _is_single(one.module, one.qual) for one in ancestors):
        return None
    method = program.method(cls, name)
    if method is None or method.cls is None or any(name in one.attributes for one in ancestors):
        return None
    same = (each for qual, each in method.module.functions.items() if qual.startswith(f"{method.qual}@"))
    return None if any(each.cls is method.cls for each in same) else method


def _is_self(function: Function, expr: ir.Expr) -> bool:
    if not isinstance(expr, ir.Name) or not function.takes_self or "classmethod" in function.decorator_names:
        return False
    return bool(function.params) and function.params[0].name == expr.id


def class_of_object(program: Program, function: Function, expr: ir.Expr) -> Class | None:
    """The class of an object that a single statement makes: ``net = Net()``, ``self.net = Net().to(device)``. None
    if unknown."""
    maker: Maker | None = None
    if isinstance(expr, ir.Name):
        bound = bound_to(function.module.text).get(expr.id, [])
        maker = maker_of(bound[0]) if len(bound) == 1 else None
    elif isinstance(expr, ir.Attr) and _is_self(function, expr.value) and function.cls is not None:
        own = function.cls.methods.get(expr.name) is None and not any(program.below(function.cls))
        maker = _put_once(program, function.cls, expr.name) if own else None
    if maker is None:
        return None
    cls = find_class(program, function.module, maker.callee)
    if cls is None or any(program.method(cls, name) is not None for name in maker.passed):
        return None  # the project's own ``to`` may give another object
    return cls if _is_plain(program, cls) else None


def _put_once(program: Program, cls: Class, name: str) -> Maker | None:
    """What makes an attribute of a class; None if the project assigns the attribute elsewhere too."""
    files = program.words.files(name)
    if files != [cls.module.key] and len(files) > MAX_FILES:
        return None
    found: list[AttributeWrite] = []
    for key in files:
        there = attribute_writes(program.module(key).text)
        if there is None or "setattr" in program.module(key).names:
            return None
        own = key == cls.module.key
        found += [each if own else each._replace(maker=None) for each in there.get(name, ())]
    if len(found) != 1 or found[0].maker is None:
        return None
    extent = next((each for each in cls.module.index.definitions if each.name == cls.qual), None)
    inside = extent is not None and extent.first_line <= found[0].line <= extent.last_line
    return found[0].maker if inside else None


def _is_put_on(program: Program, name: str) -> bool:
    """Whether some statement of the project assigns an attribute of that name."""
    files = program.words.files(name)
    if len(files) > MAX_FILES:
        return True
    there = (attribute_writes(program.module(key).text) for key in files)
    return any(each is None or name in each for each in there)


def is_bound_once(module: Module, name: str) -> bool:
    """Whether a name has a single meaning in the whole file."""
    times = len(module.numbers.get(name, ())) + len(module.bindings.get(name, ()))
    return times <= 1 and (not module.stars or name in module.numbers)


def _is_single(module: Module, qual: str) -> bool:
    """Whether a module-level name is bound by one definition alone."""
    return len(module.numbers.get(qual, ())) == 1 and qual not in module.bindings


def _is_last(function: Function, name: str) -> bool:
    """Whether a name with several definitions in a file means the last one: in the body of a function, which runs after
    the whole file is loaded."""
    module = function.module
    return function.node is not None and name in module.numbers and name not in module.bindings


def misfit(params: tuple[ir.Param, ...], call: ir.Call) -> str:
    """Why a call does not fit these parameters, as a clause; "" if it does."""
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
    filled = {param.name for param in positional[:count]}
    if filled & words & named:
        return f"is given `{min(filled & words & named)}` twice"
    needed = [param for param in params if param.kind not in ("star", "double-star") and param.default is None]
    lacking = [param.name for param in needed if param.name not in filled | words]
    return f"is not given `{lacking[0]}`" if lacking else ""


#: functions that exhaust an iterator
_GOES_THROUGH = frozenset({"sum", "list", "tuple", "set", "max", "min", "sorted", "dict"})
_MAKES_ITERATOR = frozenset({"filter", "map", "zip", "iter", "chain"})
_GENERATORS = frozenset({"parameters", "named_parameters", "buffers"})


def used_up(program: Program, function: Function, evaluated: Callable[[], Sequence[ir.Expr | ir.Raise]]) -> str:
    """The clause for an optimizer that certainly gets an exhausted iterator: ``params = net.parameters();
    print(sum(p.numel() for p in params)); Adam(params)``. "" for none. ``evaluated``: the expressions that are
    certainly evaluated."""
    made = _made_of_iterators(program, function)
    if not made:
        return ""
    parts = evaluated()
    spent: dict[str, ir.Expr] = {}
    for part in parts:
        name = _gone_through(part)
        if name and not isinstance(part, ir.Raise) and (name not in spent or part.at < spent[name].at):
            spent[name] = part
    for part in parts if spent else ():
        given = made.get(part.at) if isinstance(part, ir.Call) else None
        before = spent.get(given) if given is not None else None
        if before is not None and before.at <= part.at and isinstance(part, ir.Call):
            return f"`{given}` is used up by `{text(before, 40)}` when `{text(part.func)}()` gets it"
    return ""


@kept_for
def _made_of_iterators(program: Program, function: Function) -> dict[int, str]:
    """By ordinal of the call, the name of the iterator from which an optimizer is made."""
    return {
        call.at: call.args[0].id
        for call in calls(function.body)
        if call.args
        and isinstance(call.args[0], ir.Name)
        and _is_iterator(function, call.args[0].id)
        and program.outside(function.module, call.func, function).startswith("torch.optim.")
    }


def _gone_through(part: ir.Expr | ir.Raise) -> str:
    """The name of the iterable that an expression exhausts; "" for none."""
    if isinstance(part, ir.Comprehension):
        inner = part if part.kind != "generator" else None
    elif isinstance(part, ir.Call) and isinstance(part.func, ir.Name) and part.func.id in _GOES_THROUGH and part.args:
        first = part.args[0]
        if isinstance(first, ir.Name):
            return first.id
        inner = first if isinstance(first, ir.Comprehension) else None
    else:
        return ""
    source = inner.fors[0].iter if inner is not None else None
    return source.id if isinstance(source, ir.Name) else ""


def _is_iterator(function: Function, name: str) -> bool:
    """Whether a name is bound once, to an iterator."""
    bound = bound_to(function.module.text).get(name, [])
    made = bound[0] if len(bound) == 1 else None
    if isinstance(made, ast.GeneratorExp):
        return True
    if not isinstance(made, ast.Call):
        return False
    if isinstance(made.func, ast.Name):
        return made.func.id in _MAKES_ITERATOR and made.func.id not in bound_to(function.module.text)
    return isinstance(made.func, ast.Attribute) and made.func.attr in _GENERATORS and not made.args
