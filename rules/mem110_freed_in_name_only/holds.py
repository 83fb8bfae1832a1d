"""How other objects keep the memory of a model or a checkpoint: other names of it, optimizers, objects and containers
that refer to it, parts of it. Only proven references count."""

from __future__ import annotations

from collections.abc import Iterable

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Summary
from memlint.sdk.syntax import ir, last_name, parts, text, walk_expression, walk_statements
from memlint.sdk.values import PARAMETERS

from .rule import Hold

#: methods of modules that return the module itself
_SELF = frozenset({"to", "cuda", "eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "xpu"})
_OPTIMIZERS = lazy_pattern(
    r"torch\.optim\.(\w+\.)*[A-Z]\w*|transformers\.(\w+\.)*(AdamW|Adafactor)|apex\.optimizers\.\w+|bitsandbytes\.optim\.\w+"
    r"|torch_optimizer\.[A-Z]\w*|timm\.optim\.create_optimizer\w*"
)
_SCHEDULES = lazy_pattern(r"torch\.optim\.lr_scheduler\.[A-Z]\w*|transformers\.(\w+\.)*get_\w*schedule\w*")
_WRAPS = lazy_pattern(
    r"torch\.nn\.(parallel\.)*(\w+\.)?(DataParallel|DistributedDataParallel)|torch\.nn\.(Sequential|ModuleList)"
    r"|torch\.compile|transformers\.(\w+\.)*((Seq2Seq)?Trainer|pipeline)|peft\.(\w+\.)*get_peft_model"
    r"|peft\.(\w+\.)*PeftModel\w*\.from_pretrained"
)
#: the parameters of wrappers by which they are given the model
_MODEL = ("model", "module", "base_model")


def held_by(analyser: Analyser, summary: Summary, value: ir.Expr, names: frozenset[str], kind: str) -> Hold | None:
    """How the value of an expression refers to the objects with these names; None if that is not proven."""
    if isinstance(value, ir.Name):
        return "same" if value.id in names else None
    if isinstance(value, ir.Display) and value.kind != "set":
        return "container" if _any_held(analyser, summary, value.elements, names, kind) else None
    if isinstance(value, ir.DictDisplay):
        return "container" if _any_held(analyser, summary, value.values, names, kind) else None
    if kind == "checkpoint":
        return _part(value, names)
    if isinstance(value, ir.Comprehension | ir.Binary):
        return "container" if _gives_parameters(value, names) else None
    if isinstance(value, ir.Call):
        return _called(analyser, summary, value, names, kind)
    return None


def _any_held(
    analyser: Analyser, summary: Summary, values: Iterable[ir.Expr], names: frozenset[str], kind: str
) -> bool:
    return any(held_by(analyser, summary, value, names, kind) is not None for value in values)


def _part(value: ir.Expr, names: frozenset[str]) -> Hold | None:
    """Whether an expression is a part of the object: ``checkpoint["model"]``, or all its members under other keys."""
    if isinstance(value, ir.Subscript):
        inner = value.value
        while isinstance(inner, ir.Subscript) and isinstance(inner.index, ir.Const):
            inner = inner.value
        named = isinstance(value.index, ir.Const) and isinstance(value.index.value, str)
        return "part" if named and isinstance(inner, ir.Name) and inner.id in names and _names_state(value) else None
    if not isinstance(value, ir.Comprehension) or value.kind != "dict" or len(value.fors) != 1:
        return None
    one = value.fors[0]
    items = one.iter
    if not isinstance(items, ir.Call) or not isinstance(items.func, ir.Attr) or items.func.name != "items":
        return None
    target = one.target.elements if isinstance(one.target, ir.Display) else ()
    member = target[1].id if len(target) == 2 and isinstance(target[1], ir.Name) else ""
    if not isinstance(value.element, ir.Name) or value.element.id != member:
        return None
    source = items.func.value
    if isinstance(source, ir.Name):
        return "part" if source.id in names else None
    return _part(source, names)


_STATE = lazy_pattern(
    r"state|model|net|weight|param|ema|encoder|decoder|module|backbone|teacher|student|^g$|^d$|gen|disc"
)
_NUMBERS = lazy_pattern(r"epoch|step|iter|best|acc|loss|config|args|name|arch|metric|vocab|scal|mean|std")


def _names_state(value: ir.Subscript) -> bool:
    key = str(value.index.value).lower() if isinstance(value.index, ir.Const) else ""
    return _STATE.search(key) is not None and _NUMBERS.search(key) is None


def _called(analyser: Analyser, summary: Summary, call: ir.Call, names: frozenset[str], kind: str) -> Hold | None:
    func = call.func
    given = [*call.passed]
    if isinstance(func, ir.Attr):
        inside = held_by(analyser, summary, func.value, names, kind)
        if inside is not None and func.name in _SELF:
            return None if _to_host(call) else inside
        if func.name == "state_dict" and isinstance(func.value, ir.Name) and func.value.id in names:
            return "state"
    name = analyser.program.outside(summary.module, func, summary.function)
    if name:
        if _SCHEDULES.fullmatch(name):
            return "schedule" if given and isinstance(given[0], ir.Name) and given[0].id in names else None
        if _OPTIMIZERS.fullmatch(name):
            return "optimizer" if any(_gives_parameters(item, names) for item in given[:1]) else None
        if _WRAPS.fullmatch(name):
            return "object" if _any_held(analyser, summary, _wrapped(call), names, kind) else None
        if name in ("builtins.list", "builtins.tuple") and len(given) == 1:
            return "container" if _gives_parameters(given[0], names) else None
        return None
    found, cls = analyser.program.find_expression(summary.module, func, summary.function)
    if found == "class" and cls is not None:
        return "object" if _keeps_argument(analyser, cls, call, names) else None
    if isinstance(func, ir.Name) and func.id == "list" and len(given) == 1 and found == "none":
        return "container" if _gives_parameters(given[0], names) else None
    return None


def _wrapped(call: ir.Call) -> list[ir.Expr]:
    """The arguments of a wrapper that may be models."""
    return [*call.args, *(word.value for word in call.keywords if word.name in _MODEL)]


def within(analyser: Analyser, summary: Summary, value: ir.Expr) -> dict[str, Hold]:
    """The variables that hold what a value of that expression consists of: the same object under another name, or the
    model that a wrapper is made of."""
    if isinstance(value, ir.Name):
        return {value.id: "same"}
    if not isinstance(value, ir.Call):
        return {}
    if isinstance(value.func, ir.Attr) and value.func.name in _SELF:
        return {} if _to_host(value) else within(analyser, summary, value.func.value)
    name = analyser.program.outside(summary.module, value.func, summary.function)
    if not name or not _WRAPS.fullmatch(name):
        return {}
    first = value.args[:1] or [word.value for word in value.keywords if word.name in _MODEL]
    return {one.id: "inner" for one in first if isinstance(one, ir.Name)}


def _to_host(call: ir.Call) -> bool:
    return any(isinstance(part, ir.Const) and part.value == "cpu" for arg in call.args for part in walk_expression(arg))


def _gives_parameters(value: ir.Expr, names: frozenset[str]) -> bool:
    """Whether an expression contains the parameters: ``model.parameters()``, and lists, filters and groups of it; not
    one branch of a conditional."""
    if isinstance(value, ir.Call):
        func = value.func
        if isinstance(func, ir.Attr) and func.name in PARAMETERS:
            owner: ir.Expr = func.value
            while isinstance(owner, ir.Attr) and owner.name == "module":
                owner = owner.value
            return isinstance(owner, ir.Name) and owner.id in names
        if last_name(func) in ("filter", "list", "chain"):
            return any(_gives_parameters(arg, names) for arg in value.args)
        return False
    if isinstance(value, ir.Display):
        return any(_gives_parameters(item, names) for item in value.elements)
    if isinstance(value, ir.DictDisplay):
        return any(_gives_parameters(item, names) for item in value.values)
    if isinstance(value, ir.Binary) and value.op == "+":
        return _gives_parameters(value.left, names) or _gives_parameters(value.right, names)
    if isinstance(value, ir.Comprehension):
        member = isinstance(value.element, ir.Name)
        return member and value.kind != "dict" and _gives_parameters(value.fors[0].iter, names)
    return isinstance(value, ir.Name) and value.id in names


def _keeps_argument(analyser: Analyser, cls: Class, call: ir.Call, names: frozenset[str]) -> bool:
    """Whether the class stores an argument with such a name on its instances unchanged, and never removes it."""
    init = analyser.program.method(cls, "__init__")
    if init is None or not init.takes_self or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    given = [param for param in init.params[1:] if param.kind in ("positional", "positional-only")]
    passed = {param.name for param, arg in zip(given, call.args, strict=False) if _is_one_of(arg, names)}
    passed |= {word.name for word in call.keywords if word.name and _is_one_of(word.value, names)}
    if not passed:
        return False
    own = init.params[0].name
    kept = set()
    for statement in init.body:
        if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
            target, value = statement.targets[0], statement.value
            if isinstance(target, ir.Attr) and text(target.value) == own and _is_one_of(value, frozenset(passed)):
                kept.add(target.name)
            passed -= {target.id} if isinstance(target, ir.Name) else set()
    return any(not _written_again(analyser, cls, name) for name in kept)


def _is_one_of(value: ir.Expr, names: frozenset[str]) -> bool:
    return isinstance(value, ir.Name) and value.id in names


def _written_again(analyser: Analyser, cls: Class, attribute: str) -> bool:
    """Whether a method of the class or of a subclass rebinds or deletes an attribute after construction, or moves its
    value to the host."""
    order, _ = analyser.program.ancestors(cls)
    for one in (*order, *analyser.program.below(cls)):
        for method in one.methods.values():
            writes = 0
            for statement in walk_statements(method.body):
                if isinstance(statement, ir.Assign | ir.Delete):
                    writes += sum(isinstance(t, ir.Attr) and t.name == attribute for t in statement.targets)
            if writes > (method.name == "__init__"):
                return True
            if any(
                isinstance(part, ir.Attr)
                and part.name in ("cpu", "to")
                and isinstance(part.value, ir.Attr)
                and part.value.name == attribute
                for part in parts(method.body)
            ):
                return True
    return False
