"""What the callers, the class and the file state of a module: its mode, and whether it is frozen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import look_up
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.effects import CallRecord
from memlint.analysis.domain.summary.observations import MAX_CALLERS_UP
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE, UNKNOWN, Path, V
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.syntax import walk_expression, walk_statements
from memlint.analysis.transfer.heap import members
from memlint.analysis.transfer.modules.modes import frozen_class
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def context_mode(analyser: Analyser, summary: Summary, module: V, tag: str) -> bool | None:
    """The module's mode (``tag`` "": True for eval mode), or whether it is frozen, as the function's callers, its
    class's ``__init__`` or its file set it. None if unknown, or if they disagree."""
    return _context_mode_at(analyser, summary, sorted(module.syms), tag, 0)


def _context_mode_at(analyser: Analyser, summary: Summary, paths: list[Path], tag: str, depth: int) -> bool | None:
    """As `context_mode`, ``depth`` calls above the queried function. Memoised, as the call paths of recursive functions
    have no bound."""
    kept = analyser.facts.context_modes
    key = (summary, tuple(paths), tag, depth)
    if key not in kept:
        kept[key] = _ask(analyser, summary, paths, tag, depth)
    return kept[key]


def _ask(analyser: Analyser, summary: Summary, paths: list[Path], tag: str, depth: int) -> bool | None:
    if not tag and _is_given_by_framework(analyser, summary.function, paths):
        return None
    answers: set[bool | None] = set()
    for caller, record in analyser.facts.calls_of(summary.function) if depth < MAX_CALLERS_UP else ():
        if caller is not summary:
            answer = _mode_at_call(analyser, caller, record, paths, tag, depth)
            silent = answer is None and not tag and record.grad != OFF
            if silent and _may_return_output(summary) and _may_train(analyser, caller, depth):
                return None
            answers.add(answer)
    if not answers and tag and depth == 0:
        answers |= _mode_by_method_name(analyser, summary, paths, tag)
    # a caller with no answer does not contradict one that has an answer: if it gets the output it may train by it,
    # but the query for gradients finds that backward
    answers.discard(None)
    if answers:
        return answers.pop() if len(answers) == 1 else None
    for path in paths:
        mode = _mode_by_class(analyser, summary, path, tag)
        if mode is None and tag:
            mode = _mode_by_constructor_calls(analyser, summary, path, tag, depth)
        if mode is None and path.root.startswith("g:"):
            mode = _mode_by_file(analyser, path, tag)
        if mode is not None:
            return mode
    return None


def _is_given_by_framework(analyser: Analyser, function: Function, paths: list[Path]) -> bool:
    """Whether a framework passes the module to a method, and trains by what that returns, whoever else calls it."""
    hook = analyser.hook(function)
    if hook is None or hook.returns != "backward" or hook.own:
        return False
    given = {f"p:{param.name}" for param in function.given}
    return bool(paths) and all(path.root in given for path in paths)


def _mode_by_method_name(analyser: Analyser, summary: Summary, paths: list[Path], tag: str) -> set[bool | None]:
    """The modes of the modules of unknown class on which the method may be called by name. Used if no other call of the
    method is known."""
    function = summary.function
    if function.cls is None or not function.takes_self or not function.params:
        return set()
    if not paths or any(path.root != f"p:{function.params[0].name}" for path in paths):
        return set()
    return {
        frozen if frozen is not None else _context_mode_at(analyser, caller, sorted(module.syms), tag, 1)
        for caller, module, frozen in analyser.facts.unresolved_methods.get(function.name, ())
        if caller is not summary
    }


def _may_return_output(summary: Summary) -> bool:
    """Whether the function returns a value that may hold a model's output."""
    return summary.result is not None and not summary.result.is_only(NONE | DATA)


def _may_train(analyser: Analyser, caller: Summary, depth: int) -> bool:
    """Whether a caller, or a function further up that gets its result, runs a backward."""
    if caller.may_train:
        return True
    if depth >= MAX_CALLERS_UP or not _may_return_output(caller):
        return False
    kept = analyser.facts.may_train
    if (caller, depth) not in kept:
        kept[caller, depth] = any(
            record.grad != OFF and _may_train(analyser, outer, depth + 1)
            for outer, record in analyser.facts.calls_of(caller.function)
            if outer is not caller
        )
    return kept[caller, depth]


def _mode_at_call(
    analyser: Analyser, caller: Summary, record: CallRecord, paths: list[Path], tag: str, depth: int
) -> bool | None:
    outer: list[Path] = []
    for path in paths:
        kind, name = path.root.split(":", 1)
        argument = record.args.get(name) if kind == "p" else None
        place = "".join(step if step.startswith(".") else "" for step in path.steps)
        if argument is None and kind in ("c", "g"):
            name = name.rsplit(":", 1)[-1]
            mode = look_up(record.modes, V(UNKNOWN), name + place, tag)
            if mode is not None:
                return mode
            own = caller.exit.env.get(name) if caller.exit is not None else None
            argument = (
                own if own is not None and (own.syms or own.store) else V(UNKNOWN, syms=frozenset((Path(path.root),)))
            )
        if argument is None:
            continue
        moved = argument.but(syms=frozenset(Path(base.root, base.steps + path.steps) for base in argument.syms))
        mode = look_up(record.modes, moved, "", tag)
        freezing = tag == "frozen"
        if mode is None and argument.objs and caller.exit is not None:
            held = _kept_in(caller.exit, argument, path.steps)
            mode = look_up(record.modes, held, "", tag) if not freezing else _are_frozen(record, held, path) or None
        if mode is None and freezing:
            mode = _is_made_frozen(analyser, moved) or _holds_frozen(analyser, argument, path.steps) or None
        if mode is not None:
            return mode
        outer += [item for item in sorted(moved.syms) if isinstance(item, Path)]
    return _context_mode_at(analyser, caller, outer, tag, depth + 1) if outer else None


def _are_frozen(record: CallRecord, held: V, path: Path) -> bool:
    """Whether all networks that a member of a container may be are recorded as frozen. Attributes of objects are left
    to their classes, as code elsewhere may switch them."""
    listed = bool(path.steps) and all(step.startswith("[") for step in path.steps)
    if not listed or held.syms or held.kinds & UNKNOWN or not held.store:
        return False
    return all(look_up(record.modes, held.but(store=frozenset((one,))), "", "frozen") for one in held.store)


def _kept_in(state: State, holder: V, steps: tuple[str, ...]) -> V:
    """The value at a place of an object that a caller made; unknown unless the object is fully known."""
    value = holder
    for step in steps:
        value = _at_step(state, value, step)[0]
    return value


def _at_step(state: State, holder: V, step: str) -> tuple[V, Class | None]:
    """The attribute or member of the single object that a value is, and that object's class; unknown and None
    otherwise."""
    obj = state.heap.get(next(iter(holder.objs))) if len(holder.objs) == 1 else None
    if obj is None:
        return V(UNKNOWN), None
    if step.startswith("."):
        return obj.fields.get(step[1:], V(UNKNOWN)), obj.cls
    held = members(obj) if step == "[]" else obj.fields.get(step[1:-1], obj.elem)
    return (held, obj.cls) if held.kinds and obj.kind != "instance" else (V(UNKNOWN), None)


def _is_made_frozen(analyser: Analyser, module: V) -> bool:
    """Whether all objects that a module may be are of classes whose constructor freezes them."""
    if module.syms or not module.refs or module.kinds & UNKNOWN:
        return False
    classes = [analyser.cls(ref) if ref.kind == "instance" else None for ref in module.refs]
    return all(cls is not None and frozen_class(analyser, cls) for cls in classes)


def _holds_frozen(analyser: Analyser, holder: V, steps: tuple[str, ...]) -> bool:
    """Whether all objects that a value may be are of classes whose constructor freezes the module at this place."""
    if not steps or not holder.refs or holder.kinds & UNKNOWN:
        return False
    # ``else: energy = NotImplementedError`` holds nothing
    refs = [ref for ref in holder.refs if not (ref.kind == "ext" and ref.name.startswith("builtins."))]
    classes = [analyser.cls(ref) if ref.kind == "instance" else None for ref in refs]
    frozen = (cls is not None and _made_mode(analyser, cls, steps, "frozen") is True for cls in classes)
    # this check comes last, as many files may have the name
    return bool(refs) and all(frozen) and not _is_changed_elsewhere(analyser, steps[-1].lstrip("."))


def _is_changed_elsewhere(analyser: Analyser, name: str) -> bool:
    """Whether code outside the class may assign the attribute, or unfreeze its value."""
    indexes = (analyser.program.module(key).index for key in analyser.program.words.files(name))
    return any(name in index.changed or not index.complete for index in indexes)


def _mode_by_class(analyser: Analyser, summary: Summary, path: Path, tag: str) -> bool | None:
    """The mode set by ``self.net.eval()`` in ``__init__``, if no other method resets it; else None."""
    function = summary.function
    if function.cls is None or not function.params or path.root != f"p:{function.params[0].name}" or not path.steps:
        return None
    if not tag and analyser.program.is_module(function.cls):
        return None  # the code that trains or evaluates the whole sets the mode of its parts
    return _made_mode(analyser, function.cls, path.steps, tag)


def _made_mode(analyser: Analyser, cls: Class, steps: tuple[str, ...], tag: str) -> bool | None:
    """The mode (with a tag: frozenness) that ``__init__`` gives ``self`` + steps, if no other method changes it; else
    None."""
    init = analyser.program.method(cls, "__init__")
    summary = analyser.summary(init)
    if init is None or not init.params or summary is None or summary.exit is None:
        return None
    path = Path(f"p:{init.params[0].name}", steps)
    value, holder = _held_at(summary.exit, path)
    mode = look_up(summary.exit.modes, value.but(syms=value.syms | {path}), "", tag)
    if mode is None:
        return None
    classes = [(item, steps) for item in analyser.program.ancestors(cls)[0]]
    if holder is not None:
        classes += [(item, steps[-1:]) for item in analyser.program.ancestors(holder)[0]]
    for item, inner in classes:
        for method in item.methods.values():
            other = analyser.summary(method) if method.name != "__init__" and method.params else None
            if other is None or other.exit is None:
                continue
            here = V(UNKNOWN, syms=frozenset((Path(f"p:{method.params[0].name}", inner),)))
            if look_up(other.exit.modes, here, "", tag) not in (None, mode):
                return None
    return mode


def _held_at(state: State, path: Path) -> tuple[V, Class | None]:
    """The value of a place, possibly inside an object or a container at another place, and the class of that object."""
    if path in state.sym or len(path.steps) < 2:
        return state.sym.get(path, V(UNKNOWN)), None
    return _at_step(state, _held_at(state, path.around)[0], path.steps[-1])


def _mode_by_constructor_calls(analyser: Analyser, summary: Summary, path: Path, tag: str, depth: int) -> bool | None:
    """The mode of what the constructor's callers pass: ``self.net = net`` in ``__init__``, assigned nowhere else. None
    if unknown."""
    function = summary.function
    if function.cls is None or not function.params or path.root != f"p:{function.params[0].name}" or not path.steps:
        return None
    init = analyser.program.method(function.cls, "__init__")
    made = analyser.summary(init) if init is not None and init is not function and init.params else None
    if init is None or made is None or made.exit is None or depth >= MAX_CALLERS_UP:
        return None
    own = f"p:{init.params[0].name}"
    value = made.exit.sym.get(Path(own, path.steps[:1]))
    params = sorted(value.syms) if value is not None and not value.store else []
    if not params or any(each.root == own or not each.root.startswith("p:") for each in params):
        return None
    name = path.steps[0].removeprefix(".")
    others = [method for method in analyser.program.methods(function.cls) if method is not init]
    if any(_sets(statement, name) for method in others for statement in walk_statements(method.body)):
        return None
    return _context_mode_at(
        analyser, made, [Path(each.root, each.steps + path.steps[1:]) for each in params], tag, depth
    )


def _sets(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement assigns an attribute of that name."""
    bound = (statement.target,) if isinstance(statement, ir.For) else targets(statement)
    return any(isinstance(part, ir.Attr) and part.name == name for target in bound for part in walk_expression(target))


def _mode_by_file(analyser: Analyser, path: Path, tag: str) -> bool | None:
    """The mode set by ``model.eval()`` in module-level code, for a function without a known caller; None for
    unknown."""
    key, name = path.root[2:].rsplit(":", 1)
    module = analyser.program.module(key)
    place = name + "".join(path.steps)
    summary = analyser.summary(module.main)
    mode = None
    if summary is not None and summary.exit is not None:
        mode = look_up(summary.exit.modes, summary.exit.env.get(name, V(UNKNOWN)), place, tag)
    writers = [analyser.summary(function) for function in module.writers(name)]
    answers = {
        look_up(one.exit.modes, held.but(syms=held.syms | {path}), place, tag)
        for one in writers
        if one is not None
        and one.exit is not None
        and not (held := one.exit.sym.get(Path(path.root), V(UNKNOWN))).is_only(NONE)
    }
    return mode if not answers else answers.pop() if len(answers) == 1 else None
