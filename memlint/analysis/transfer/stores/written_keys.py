"""Keys that a loop writes to: new ones in each round, or the existing ones again."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.analysis.domain.periods import conjuncts
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import Sources
from memlint.analysis.syntax.bindings import mentions, names_bound_by, names_read, targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import bodies, calls, is_name, last_name, parts, walk_expression, walk_statements
from memlint.analysis.transfer.narrowing import tells_tensors
from memlint.analysis.transfer.stores.sample_keys import by_parameter
from memlint.ir import nodes as ir


def is_replaced(fn: FunctionState, target: ir.Subscript) -> bool:
    """Whether an assignment replaces each member, or each tensor, of the container that its loop runs over."""
    if not fn.loops or not over_itself(fn, target):
        return False
    loop = fn.loops[-1]
    if _may_stop(loop.body):
        return False
    of_pairs = is_of_pairs(fn, target)
    if fn.tests and not (of_pairs and len(fn.tests) == 1 and tells_tensors(fn.tests[0], loop.targets)):
        return False
    loop.replaces = loop.replaces or of_pairs
    return True


def is_of_pairs(fn: FunctionState, target: ir.Subscript) -> bool:
    """Whether the innermost loop runs over the items or keys of the container that an assignment writes to."""
    name, shown = text(target.value, 40), fn.loops[-1].loop.text
    if any(f" in {over}" in shown for over in (f"{name}.items()", f"enumerate({name}.items()")):
        return True
    over = shown.partition(" in ")[2]
    for around in ("list(", "tuple(", "sorted("):
        if over.startswith(around):
            over = over[len(around) :].removesuffix(")")
    return over == f"{name}.keys()" or over == name


def takes_same(fn: FunctionState, pop: ir.Call, places: Sources) -> bool:
    """Whether ``kept.pop(name, None)`` on a dictionary takes the same member out in each round of its loops, and not
    one that they seem to set: no other call gets its key, and nothing is read or written by it."""
    key = pop.args[0] if pop.args else None
    if not fn.loops or not isinstance(key, ir.Name) or key.id not in fn.function.locals:
        return False
    if len(pop.args) == 1 and not any(one.how == "key" and one.place in places for one in fn.stores.values()):
        return False  # a list, of which any member is as good as another
    if any(key.id in loop.bound | loop.targets for loop in fn.loops):
        return False
    for part in parts(fn.loops[0].body):
        if isinstance(part, ir.Call) and part is not pop:
            given: tuple[ir.Expr, ...] = part.passed
        else:
            given = (part.index,) if isinstance(part, ir.Subscript) else ()
        if any(is_name(inner, key.id) for one in given for inner in walk_expression(one)):
            return False
    return True


def _may_stop(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether some path leaves the loop before its last round."""
    statements = walk_statements(body)
    return any(isinstance(one, ir.Return) or (isinstance(one, ir.Jump) and one.kind == "break") for one in statements)


def over_itself(fn: FunctionState, target: ir.Subscript) -> bool:
    """Whether an assignment replaces existing members: ``for i, x in enumerate(items): items[i] = x.to(device)``,
    ``for name in names: sums[name] = sums[name].item()``, ``if key in kept: kept[key] = x``."""
    name, member = text(target.value, 40), text(target, 200)
    if any(_tested(part, there=True) == member for test in fn.tests for part in conjuncts(test)):
        return True
    by_name = isinstance(target.index, ir.Name) and fn.loops and target.index.id in fn.loops[-1].targets
    if by_name and isinstance(fn.statement, ir.Assign) and mentions(fn.statement.value, member):
        return True
    shown = fn.loops[-1].loop.text if fn.loops else ""
    if by_name and is_of_pairs(fn, target):
        return True
    return f"enumerate({name})" in shown or f"range(len({name}))" in shown


def counted_by(fn: FunctionState, index: ir.Expr) -> tuple[LoopState, ...]:
    """The loops each round of which writes a new key: the key is a loop's counter, a number that the loop counts up,
    or a text, a sum or a tuple with one of these in it. Other keys may recur: those of a loop that counts anew in each
    round of the loop around it, and those up to a limit."""
    if _is_limited(fn, index):
        return ()
    return tuple(loop for loop in _counting(fn, index) if not _begins_anew(fn, loop, index))


def _counting(fn: FunctionState, index: ir.Expr) -> tuple[LoopState, ...]:
    """The loops that count a key, or a part of it."""
    if isinstance(index, ir.FormattedString):
        # ``f"loss_{i}"`` of a few parts recurs with the next batch
        through_data = [loop for loop in fn.loops if loop.counts and loop.loop.over == "loader"]
        names = {part.id for part in index.parts if isinstance(part, ir.Name)}
        return tuple(loop for loop in through_data if names & loop.counters)
    if isinstance(index, ir.Display) and index.kind == "tuple":
        return tuple(dict.fromkeys(loop for part in index.elements for loop in _counting(fn, part)))
    if isinstance(index, ir.Binary) and index.op in ("+", "-", "*"):
        return _counting(fn, index.left) or _counting(fn, index.right)
    if not isinstance(index, ir.Name | ir.Attr) or _is_counted_elsewhere(fn, index):
        return ()
    shown = text(index)
    return tuple(
        loop
        for loop in fn.loops
        if loop.counts and (shown in loop.counters or _counts_up(loop.body, shown, fn.statement))
    )


def _begins_anew(fn: FunctionState, loop: LoopState, index: ir.Expr) -> bool:
    """Whether a loop counts a key anew in each round of a loop over data around it, and nothing else of the key tells
    these rounds apart: the parts of each batch have the same numbers. One epoch or fold has as many keys as batches."""
    names, own = names_read(index), loop.bound | loop.targets
    inside = set(map(id, walk_statements(loop.body)))
    for outer in fn.loops:
        if outer is loop:
            return False
        whole = outer.loop.over == "epochs" or (loop.loop.over == "loader" and outer.loop.over != "loader")
        if whole or not outer.counts or names & ((outer.bound | outer.targets) - own):
            continue
        if names & loop.counters or any(
            not names.isdisjoint(names_bound_by(one)) or any(mentions(index, text(each)) for each in targets(one))
            for one in walk_statements(outer.body)
            if id(one) not in inside
        ):
            return True
    return False


def _is_limited(fn: FunctionState, index: ir.Expr) -> bool:
    """Whether the function leaves before the store where a part of the key has reached a limit: ``if step >= self.size:
    return``, ``if step > 9: continue``."""
    last = fn.statement.at if fn.statement is not None else 0
    return any(one.at < last and _reaches(one.test, index) for one in _that_leave(fn.function.body))


@kept
def _that_leave(body: tuple[ir.Stmt, ...]) -> tuple[ir.If, ...]:
    """The ifs of a function whose body ends in a return, break or continue."""
    return tuple(
        one
        for one in walk_statements(body, into_definitions=False)
        if isinstance(one, ir.If) and one.body and isinstance(one.body[-1], ir.Return | ir.Jump)
    )


def _reaches(test: ir.Expr, index: ir.Expr, *, holds: bool = True) -> bool:
    """Whether a test is that a part of a key has reached something: ``key >= n``, ``n < key``, ``not key < n``. Of
    several tests, one is enough. ``holds``: the test, rather than its negation."""
    if isinstance(test, ir.Unary) and test.op == "not":
        return _reaches(test.operand, index, holds=not holds)
    if isinstance(test, ir.BoolOp):
        return any(_reaches(side, index, holds=holds) for side in (test.left, test.right))
    if not isinstance(test, ir.Compare) or len(test.ops) != 1 or test.ops[0] not in (">", ">=", "<", "<="):
        return False
    side = test.left if test.ops[0].startswith(">") is holds else test.rights[0]
    if isinstance(side, ir.Binary) and side.op == "+":
        side = side.left  # ``step + 1 > n``
    return isinstance(side, ir.Name | ir.Attr) and mentions(index, text(side))


#: stands for a key that each call of a function counts up, where a parameter would be named
EACH_CALL = ("", "")


def by_callers(fn: FunctionState, index: ir.Expr) -> tuple[str, str] | None:
    """`EACH_CALL` if each call of the function writes a new key: an attribute that it counts up beside the store
    (``self.losses[self.step] = loss``). Else the parameter that has the key, as by `by_parameter`; None for none, and
    for a key up to a limit."""
    if _is_limited(fn, index):
        return None
    counts = isinstance(index, ir.Attr) and not fn.loops and _counts_up(fn.function.body, text(index), fn.statement)
    return EACH_CALL if counts and not _is_counted_elsewhere(fn, index) else by_parameter(fn, index)


def _is_counted_elsewhere(fn: FunctionState, index: ir.Expr) -> bool:
    """Whether the key is an attribute that other code may assign, and so begin to count anew."""
    if not isinstance(index, ir.Attr):
        return False
    if fn.function.cls is None or not is_name(index.value, "self"):
        return True
    return fn.analyser.facts.attributes.is_written_beside(fn.function, index.name)


def _counts_up(body: tuple[ir.Stmt, ...], shown: str, store: ir.Stmt | None) -> bool:
    """Whether ``step += 1`` runs whenever the store does, and nothing else binds ``step``."""
    counted = [statement for statement in _beside(body, store) if _is_step(statement, shown)]
    return bool(counted) and not any(
        shown in names_bound_by(statement) or shown in map(text, targets(statement))
        for statement in walk_statements(body)
        if statement not in counted
    )


def _is_step(statement: ir.Stmt, shown: str) -> bool:
    """Whether a statement is ``n += 1`` or ``n = n + 1``."""
    if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Binary):
        value = statement.value
        return (
            len(statement.targets) == 1
            and value.op == "+"
            and text(statement.targets[0]) == text(value.left) == shown
            and isinstance(value.right, ir.Const)
        )
    return (
        isinstance(statement, ir.AugAssign)
        and statement.op == "+"
        and text(statement.target) == shown
        and isinstance(statement.value, ir.Const)
    )


def _beside(body: tuple[ir.Stmt, ...], store: ir.Stmt | None) -> Iterator[ir.Stmt]:
    """The statements of a block, and of the nested blocks that contain the store outside of inner loops: those that
    run in each round of the store."""
    yield from body
    for statement in body:
        inside = [block for block in bodies(statement) if any(one is store for one in walk_statements(block))]
        if inside and not isinstance(statement, ir.For | ir.While):
            yield from _beside(inside[0], store)


def begun_where_missing(body: tuple[ir.Stmt, ...], member: str) -> bool:
    """Whether a member of a dictionary is created where it is missing, and never removed: ``if name not in kept:
    kept[name] = []``, also as the ``else`` of ``if name in kept``."""
    return member.endswith("]") and member in _made_where_missing(body)


@kept
def _made_where_missing(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    found: set[str] = set()
    statements = list(walk_statements(body, into_definitions=False))
    for statement in statements:
        if not isinstance(statement, ir.If):
            continue
        for there, branch in ((False, statement.body), (True, statement.orelse)):
            made = {text(target) for one in branch if isinstance(one, ir.Assign) for target in one.targets}
            found |= made & {_tested(statement.test, there=there)}
    return frozenset(member for member in found if not _loses_members(statements, member))


def _loses_members(statements: list[ir.Stmt], member: str) -> bool:
    """Whether members are removed or emptied: ``del kept[name]``, ``kept.pop(name)``, ``for key in kept: kept[key] =
    []``, or perhaps by a callee that gets the dictionary."""
    name = member.partition("[")[0]
    for statement in statements:
        targets = statement.targets if isinstance(statement, ir.Delete | ir.Assign) else ()
        places = [one for one in targets if isinstance(one, ir.Subscript) and text(one.value) == name]
        if places and (isinstance(statement, ir.Delete) or any(text(one) != member for one in places)):
            return True
    for call in calls(tuple(statements)):
        if isinstance(call.func, ir.Attr) and call.func.name in _LOSING and text(call.func.value) == name:
            return True
        if last_name(call.func) not in _READERS and any(text(arg) == name for arg in call.args):
            return True
    return False


#: methods that remove members of a dictionary
_LOSING = frozenset({"clear", "pop", "popitem"})
#: functions that only read the containers that they get
_READERS = frozenset({"print", "len", "list", "dict", "sorted", "enumerate", "zip", "tqdm", "str", "repr", "dump"})


def _tested(test: ir.Expr, *, there: bool) -> str | None:
    """``kept[name]`` for a test ``name not in kept`` or ``not name in kept``, also of ``kept.keys()``; None for
    another test. ``there``: for a test ``name in kept`` instead."""
    inverted = isinstance(test, ir.Unary) and test.op == "not"
    if isinstance(test, ir.Unary) and inverted:
        test = test.operand
    if not isinstance(test, ir.Compare) or test.ops != (("in",) if there is not inverted else ("not in",)):
        return None
    return f"{text(test.rights[0]).removesuffix('.keys()')}[{text(test.left)}]"
