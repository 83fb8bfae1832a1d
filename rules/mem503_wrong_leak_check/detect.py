"""Memory readings that are misinterpreted."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Names, Summary, names_class
from memlint.sdk.syntax import (
    expressions,
    identifiers,
    ir,
    last_name,
    parts,
    parts_of,
    statement_at,
    text,
    walk_expression,
)
from memlint.sdk.values import MODULE, TENSOR, OutsideCall

from .rule import Misread, WrongReading

#: words for the memory of tensors, as opposed to that of the allocator or the device
_USED = lazy_pattern(r"(?<!un)(?<!de)alloc(ated)?($|[^a-z])")
_HELD = lazy_pattern(r"reserv|cach|pool|segment|total|system|device|driver|process|smi|free|nvidia|allocator")
_OBJECTS = lazy_pattern(r"(^|[^a-z])obj(ect)?s?($|[^a-z])")
_BYTES = lazy_pattern(r"(^|[^a-z])([mgk]i?b|bytes?)($|[^a-z])")
#: attributes that are read where a tensor's bytes are counted
_COUNTED = frozenset({"element_size", "nelement", "numel", "nbytes", "storage", "untyped_storage"})
#: operations that convert a reading into another unit
_UNITS, _SCALES = ("/", "//", "*", ">>"), frozenset({"round", "int", "float", "str", "sum"})
_TOGETHER = frozenset({"get_count", "memory_reserved", "memory_cached", "max_memory_reserved", "max_memory_cached"})
#: a reading that is divided by at least this number was in bytes
_KILO = 1000


def _readings(*names: str) -> frozenset[str]:
    return frozenset(
        f"torch.{device}.{place}{most}memory_{name}"
        for device in ("cuda", "xpu", "accelerator")
        for place in ("", "memory.")
        for most in ("", "max_")
        for name in names
    )


#: the memory of tensors, and the memory that the allocator holds: that, and free blocks
_ALLOCATED, _RESERVED = _readings("allocated"), _readings("reserved", "cached")
#: the share of the last second in which memory was accessed, in percent
_USAGE = "torch.cuda.memory_usage"
_COUNT, _SIZE = "gc.get_count", "sys.getsizeof"
CALLS = _RESERVED | {_USAGE, _COUNT, _SIZE}


def detect(analyser: Analyser, summary: Summary) -> Iterator[WrongReading]:
    """The readings that one function misinterprets."""
    for at, call in sorted(summary.notes.outside.items()):
        statement = statement_at(summary.function.body, at) if call.name in CALLS else None
        if statement is None:
            continue
        found = _misread(analyser, summary, call, statement)
        if found is not None:
            yield WrongReading(
                site=summary.site(at),
                function=summary.function.qual,
                certainty="medium" if found[0] in ("used", "objects") else "high",
                taken_for=found[0],
                text=text(call.expr),
                label=found[1],
            )
    yield from _together(analyser, summary)


def _misread(analyser: Analyser, summary: Summary, call: OutsideCall, statement: ir.Stmt) -> tuple[Misread, str] | None:
    """What a reading is mistaken for, and its label; None if it is used correctly."""
    if call.name == _SIZE:
        return _size(analyser, summary, call)
    labels = list(_labels(statement, call.expr))
    if call.name in _RESERVED:
        wrong = (label for label in labels if _USED.search(label.lower()) and not _HELD.search(label.lower()))
        return next((("used", label) for label in wrong), None)
    if call.name == _COUNT:
        return next((("objects", label) for label in labels if _OBJECTS.search(label.lower())), None)
    if call.name == _USAGE:
        divided = next((part for expr in expressions(statement) for part in _divided(expr, call.expr)), None)
        if divided is not None:
            return "bytes", text(divided)
        return next((("bytes", label) for label in labels if _BYTES.search(label.lower())), None)
    return None


def _size(analyser: Analyser, summary: Summary, call: OutsideCall) -> tuple[Misread, str] | None:
    """``sys.getsizeof`` of a tensor or module, which is the size of the Python object alone."""
    given = call.given
    if not call.expr.args or _COUNTED & identifiers(summary.function.body)[1]:
        return None
    label = text(call.expr.args[0])
    if given.is_only(TENSOR):
        # an instance of an unknown class of torch is assumed to be a tensor
        made = Names(analyser, summary).made_by(call.expr.args[0])
        return ("tensor", label) if not names_class(made) or made.endswith("Tensor") else None
    return ("module", label) if given.is_only(MODULE) else None


def _scaled(expr: ir.Expr, call: ir.Call) -> bool:
    """Whether an expression is the call's result in another unit: divided, rounded or summed."""
    while expr.at != call.at or not isinstance(expr, ir.Call):
        if isinstance(expr, ir.Binary) and expr.op in _UNITS:
            expr = expr.left
        elif isinstance(expr, ir.Call) and expr.args and last_name(expr.func) in _SCALES:
            expr = expr.args[0]
        else:
            return False
    return True


def _labels(statement: ir.Stmt, call: ir.Call) -> Iterator[str]:
    """The labels of the call's result: its variable, key, keyword or word."""
    if isinstance(statement, ir.Assign | ir.AnnAssign) and statement.value is not None:
        targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
        if _scaled(statement.value, call):
            yield from filter(None, map(_name, targets))
    for part in parts_of(statement):
        if isinstance(part, ir.DictDisplay):
            pairs = zip(part.keys, part.values, strict=True)
            yield from (_word(key) for key, value in pairs if key is not None and _scaled(value, call))
        elif isinstance(part, ir.Call):
            yield from (word.name for word in part.keywords if word.name and _scaled(word.value, call))
            pairs = zip(part.args, part.args[1:], strict=False)
            yield from (_word(word) for word, value in pairs if _scaled(value, call))


def _name(target: ir.Expr) -> str:
    return _word(target.index) if isinstance(target, ir.Subscript) else last_name(target)


def _word(expr: ir.Expr | None) -> str:
    return expr.value if isinstance(expr, ir.Const) and isinstance(expr.value, str) else ""


def _divided(expr: ir.Expr, call: ir.Call) -> Iterator[ir.Expr]:
    """The divisions of the call by a thousand or more."""
    for part in walk_expression(expr):
        if isinstance(part, ir.Binary) and part.op in ("/", "//") and _scaled(part.left, call):
            size = _number(part.right)
            if size is not None and size >= _KILO:
                yield part


def _number(expr: ir.Expr) -> float | None:
    if isinstance(expr, ir.Const) and expr.kind in ("int", "float"):
        return float(expr.value or 0)
    if isinstance(expr, ir.Binary) and expr.op in ("*", "**"):
        left, right = _number(expr.left), _number(expr.right)
        if left is None or right is None or right > 10 * _KILO:
            return None
        return left * right if expr.op == "*" else left ** min(right, 64.0)
    return None


def _together(analyser: Analyser, summary: Summary) -> Iterator[WrongReading]:
    """Combined readings that mean nothing: two of the collector's counters compared as if they counted objects, and the
    memory of tensors added to that of the allocator, which includes it."""
    if not summary.function.names & _TOGETHER:
        return
    names = Names(analyser, summary)
    resets = "disable" in identifiers(summary.function.body)[1]
    for part in parts(summary.function.body):
        sides = _sides(part)
        read = [_reading(names, side) for side in sides]
        if read == [_COUNT, _COUNT] and not resets and not (isinstance(part, ir.Binary) and part.op == "+"):
            taken_for: Misread = "objects"
        elif isinstance(part, ir.Binary) and part.op == "+" and _overlap(*read):
            taken_for = "apart"
        else:
            continue
        yield WrongReading(
            site=summary.site(part.at),
            function=summary.function.qual,
            taken_for=taken_for,
            text=text(part) if taken_for == "apart" else "gc.get_count()",
            label=text(part),
        )


def _sides(expr: ir.Expr) -> tuple[ir.Expr, ...]:
    if isinstance(expr, ir.Compare) and len(expr.rights) == 1:
        return expr.left, expr.rights[0]
    if isinstance(expr, ir.Binary) and expr.op in ("-", "+"):
        return expr.left, expr.right
    return ()


def _overlap(left: str, right: str) -> bool:
    """Whether one reading is the memory of tensors, and the other that of the allocator; both current, or both
    peaks."""
    peaks = ["max_" in name for name in (left, right)]
    both = (left in _ALLOCATED and right in _RESERVED) or (left in _RESERVED and right in _ALLOCATED)
    return both and peaks[0] == peaks[1]


def _reading(names: Names, expr: ir.Expr) -> str:
    """The qualified name of the reading in an expression, in any unit; "" if unknown."""
    for _ in range(6):
        if isinstance(expr, ir.Binary) and expr.op in _UNITS:
            expr = expr.left
        elif isinstance(expr, ir.Call) and len(expr.args) == 1 and last_name(expr.func) in _SCALES:
            expr = expr.args[0]
        elif isinstance(expr, ir.Name):
            bound = names.value(expr.id) if expr.id in names.summary.function.locals else None
            if bound is None or bound[1]:
                return ""
            expr = bound[0]
        elif isinstance(expr, ir.Call):
            return names.analyser.program.outside(names.module, expr.func, names.summary.function)
        else:
            return ""
    return ""
