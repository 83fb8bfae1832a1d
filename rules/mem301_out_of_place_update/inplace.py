"""Why an update in place might give another result than the copy."""

from __future__ import annotations

from memlint.sdk.project import Function, Summary, binders, knowledge
from memlint.sdk.project import vocabulary as words
from memlint.sdk.syntax import children, dotted, expressions, ir, mentions, text, walk_expression, walk_statements
from memlint.sdk.values import LoopUpdate, is_place


def doubt(summary: Summary, one: LoopUpdate) -> str:
    """Why the in-place form may give another result, as a clause; "" for no reason. Only a floating tensor that was
    created here accepts every number."""
    if "…" in one.spine:
        return "the expression is too long to be shown completely"
    made = summary.notes.made
    starts = one.old.store - {one.statement.value.at}
    target = text(one.target)
    if not isinstance(one.target, ir.Name) or not starts or not all(at in made and made[at][1] for at in starts):
        return f"`{target}` may be of an integer type, or share its memory with another tensor"
    if any(made[at][0].endswith("_like") for at in starts):
        return f"`{target}` has the dtype of another tensor, which may be an integer type"
    begun = [value for value in binders(summary.function, one.target.id) or () if not mentions(value, target)]
    if not all(map(_is_plainly_made, begun)):
        return f"`{target}` may share its memory with another tensor, or require gradients"
    if sum(is_place(part, target) for part in walk_expression(one.statement.value)) > 1:
        return f"`{target}` is an operand as well, and a view of it would change"
    operands = (
        part
        for part in walk_expression(one.statement.value)
        if not mentions(part, target) and not _is_callee(one, part)
    )
    if not all(isinstance(part, ir.Const) and part.kind in ("int", "float") for part in operands):
        return f"the operand may have a larger shape than `{target}`"
    keeps = _keeps(summary.function, one.target.id, one.statement)
    return f"`{keeps}` may keep the old `{target}`, which would change" if keeps else ""


def _keeps(function: Function, name: str, update: ir.Stmt) -> str:
    """A use of a variable that may store the tensor or a view of it; "" if all uses compute something new."""
    for statement in walk_statements(function.body):
        if isinstance(statement, ir.FunctionDef | ir.ClassDef | ir.Scope):
            inner = walk_statements((statement,))
            if any(mentions(expr, name) for one in inner for expr in expressions(one)):
                return name
        if statement is update:
            continue
        targets = statement.targets if isinstance(statement, ir.Assign) else ()
        for expr in expressions(statement):
            parents = {child.at: part for part in walk_expression(expr) for child in children(part)}
            for part in walk_expression(expr):
                if isinstance(part, ir.Lambda) and mentions(part.body, name):
                    return text(part, 40)
                if not isinstance(part, ir.Name) or part.id != name:
                    continue
                top, around = _view(part, parents)
                bound = expr in targets and (top is expr or isinstance(expr, ir.Display))
                given_back = isinstance(statement, ir.Return) and not function.is_generator
                changed = isinstance(statement, ir.ExprStmt) and _is_change(expr, around)
                if not bound and not given_back and not changed and not _computes(around, top, parents):
                    return text(around or expr, 40)
    return ""


def _is_change(expr: ir.Expr, around: ir.Expr | None) -> bool:
    """Whether a statement only changes in place what is in ``around``, and its result is unused."""
    whole = isinstance(expr, ir.Call) and expr.func is around
    return whole and isinstance(around, ir.Attr) and around.name in knowledge.methods().inplace


def _view(part: ir.Expr, parents: dict[int, ir.Expr]) -> tuple[ir.Expr, ir.Expr | None]:
    """The expression with its subscripts, and the expression around that."""
    around = parents.get(part.at)
    while isinstance(around, ir.Subscript) and around.value is part:
        part, around = around, parents.get(around.at)
    return part, around


def _computes(around: ir.Expr | None, part: ir.Expr, parents: dict[int, ir.Expr]) -> bool:
    """Whether the expression around another one directly computes something new from it."""
    methods = knowledge.methods()
    new = methods.op | methods.reduce | {"clone"}
    match around:
        case ir.Binary() | ir.Compare() | ir.Unary() | ir.FormattedString():
            return True
        case ir.Subscript():
            return around.index is part
        case ir.Attr():
            call = parents.get(around.at)
            if isinstance(call, ir.Call) and call.func is around:
                return around.name in new | methods.data - {"numpy"}
            return around.name in words.PLAIN_ATTRIBUTES - {"data"}
        case ir.Call(func=ir.Name(id=name)):
            return name in words.BUILTINS_THAT_END
        case ir.Call():
            module, _, last = dotted(around.func).rpartition(".")
            fresh = last in new or last.endswith("_like")
            return module == "torch" and fresh and not any(word.name == "out" for word in around.keywords)
    return False


def _is_plainly_made(value: ir.Expr) -> bool:
    """Whether a value is a factory's call, a copy of one's result, or an update."""
    while isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and isinstance(value.func.value, ir.Call):
        if value.func.name not in ("half", "float", "double", "bfloat16", "to", "cuda", "cpu", "clone", "contiguous"):
            return False
        value = value.func.value
    return True


def _is_callee(one: LoopUpdate, part: ir.Expr) -> bool:
    calls = (call for call in walk_expression(one.statement.value) if isinstance(call, ir.Call))
    return any(part is inner for call in calls for inner in walk_expression(call.func))
