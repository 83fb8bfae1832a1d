"""Which networks an optimizer holds, by the places (variables, attributes) that name them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Class, Function, argument, bindings
from memlint.sdk.syntax import call_at, dotted, ir, is_none, last_name, parts, walk_statements

#: functions whose result lists what their arguments list
_LISTS = frozenset({"list", "tuple", "chain", "from_iterable", "iter"})
#: methods and functions that return their module, or wrap it
_SAME = frozenset({
    "to", "cuda", "cpu", "train", "eval", "float", "half", "double", "apply", "DataParallel", "DistributedDataParallel",
    "compile", "convert_sync_batchnorm", "Variable",
})  # fmt: skip
#: optimizers of torch and of libraries
_OPTIMIZERS = lazy_pattern(r"(^|\.)(Adam\w*|SGD\w*|RMS[pP]rop|AdamW|Ada\w+|RAdam|NAdam|Lion|LAMB|Rprop|ASGD)$")
#: how often a place is followed to the place that it names, and a parameter to its callers
_DEPTH = 4
#: the most callers that are examined
_MAX_CALLERS = 8


class Frame(NamedTuple):
    """One function in whose terms code is read. ``names``: the places that parameters stand for; ``cls``: the class of
    its object."""

    function: Function
    names: dict[str, str]
    cls: Class | None = None


def frame_of(function: Function) -> Frame:
    """A function's own frame: its parameters stand for themselves."""
    own = function.own_name
    if not own or function.cls is None:
        return Frame(function, {}, function.cls)
    return Frame(function, {own: own_object(function.cls)}, function.cls)


def own_object(cls: Class) -> str:
    """The place of a method's own object."""
    return f"{cls.module.key}:{cls.qual}|self"


def overlap(one: str, other: str) -> bool:
    """Whether two places are the same, or one is a part of the other."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


class Ownership:
    """The places and optimizers that one search asks for, each query kept."""

    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self._scopes: dict[str, Function] = {}
        self._classes: dict[str, Class] = {}
        self._held: dict[str, frozenset[str] | None] = {}
        self._given: dict[str, str] = {}

    def place(self, frame: Frame, expr: ir.Expr, depth: int = 0) -> str:
        """The place that a name or attribute refers to, whatever the function calls it; "" for another expression."""
        root, *steps = dotted(expr).split(".")
        if not root:
            return ""
        steps = [step for step in steps if step != "module"]
        function = frame.function
        if root in frame.names:
            base = frame.names[root]
            if steps and frame.cls is not None and base == own_object(frame.cls):
                base, steps = self.attribute(frame.cls, steps[0]), steps[1:]
        else:
            owner = function if root in function.locals else function.owner(root)
            owner = owner or function.module.main
            if owner.own_name == root and owner.cls is not None:
                return self.place(frame_of(owner), expr, depth)
            scope = f"{owner.module.key}:{'' if owner.node is None else owner.qual}"
            self._scopes[scope] = owner
            base = f"{scope}|{root}"
            alias = self._alias(owner, root)
            if alias is not None and depth < _DEPTH:
                inner = self.place(frame if owner is function else frame_of(owner), alias, depth + 1)
                base = inner or base
        return ".".join((base, *steps))

    def attribute(self, cls: Class, name: str) -> str:
        """The place of an attribute of a class's object: the parameter from which alone the class sets it, if there is
        one."""
        base = own_object(cls)
        self._classes[base] = cls
        place = f"{base}.{name}"
        if place not in self._given:
            self._given[place] = place  # while its values are examined
            values = ((frame, unwrapped(value)) for frame, value, _ in self._stored(cls, name))
            found = {self.place(frame, made) for frame, made in values if not is_none(made)} - {place}
            source = found.pop() if len(found) == 1 else ""
            if source and self.is_parameter(source):
                self._given[place] = source
        return self._given[place]

    def class_at(self, place: str) -> Class | None:
        """The class whose object has the attribute at a place; None if it is none."""
        return self._classes.get(place.rpartition(".")[0])

    def is_parameter(self, place: str) -> bool:
        """Whether a place is a parameter of the function whose variable it is."""
        scope, _, name = place.rpartition("|")
        owner = self._scopes.get(scope)
        return owner is not None and any(param.name == name for param in owner.params)

    @staticmethod
    def _alias(owner: Function, name: str) -> ir.Expr | None:
        """The name or attribute that is all that a variable is bound to."""
        found = bindings(owner.body).get(name, ())
        if len(found) != 1 or any(param.name == name for param in owner.params):
            return None
        value, unpacked = found[0]
        return value if not unpacked and isinstance(value, ir.Name | ir.Attr) and dotted(value) else None

    def values(self, place: str) -> list[tuple[Frame, ir.Expr, bool]] | None:
        """The expressions that are assigned to a place, each with its frame and whether it is unpacked from it. None if
        other code may assign it: a parameter, an attribute of an attribute."""
        base, _, name = place.rpartition(".") if place.rpartition("|")[2].count(".") else ("", "", "")
        if base:
            cls = self._classes.get(base)
            return None if cls is None else [*self._stored(cls, name)]
        scope, _, name = place.rpartition("|")
        owner = self._scopes.get(scope)
        if owner is None or self.is_parameter(place):
            return None
        frame = frame_of(owner)
        return [(frame, value, unpacked) for value, unpacked in bindings(owner.body).get(name, ())]

    def _stored(self, cls: Class, name: str) -> Iterator[tuple[Frame, ir.Expr, bool]]:
        """What the methods of a class assign to an attribute of their object."""
        place = own_object(cls)
        for one in self.analyser.program.ancestors(cls)[0]:
            for method in one.methods.values():
                if not method.own_name:
                    continue
                frame = Frame(method, {method.own_name: place}, cls)
                for statement in walk_statements(method.body, into_definitions=False):
                    if not isinstance(statement, ir.Assign | ir.AnnAssign) or statement.value is None:
                        continue
                    for target, value, unpacked in _assigned(statement):
                        if dotted(target) == f"{method.own_name}.{name}":
                            yield frame, value, unpacked

    def owner(self, place: str) -> Function | None:
        """The function whose variable a place is; None for an attribute."""
        return self._scopes.get(place.rpartition("|")[0])

    def held(self, place: str) -> frozenset[str] | None:
        """The places of the networks whose parameters the optimizer at a place holds; None if it is none, or some are
        unknown."""
        if place not in self._held:
            self._held[place] = None  # for an optimizer that is made from itself
            self._held[place] = self._held_at(place)
        return self._held[place]

    def _held_at(self, place: str) -> frozenset[str] | None:
        scope, _, name = place.rpartition("|")
        if self.is_parameter(place):
            return self._held_by_callers(self._scopes[scope], name)
        found = self.values(place)
        made = [one for one in found or () if not is_none(one[1])]
        if not made or any(unpacked for _, _, unpacked in made):
            return None
        kept = {self._made(frame, value) for frame, value, _ in made}
        return kept.pop() if len(kept) == 1 else None

    def _made(self, frame: Frame, value: ir.Expr) -> frozenset[str] | None:
        """The networks of the optimizer that an expression makes or names."""
        if isinstance(value, ir.Name | ir.Attr):
            place = self.place(frame, value)
            return self.held(place) if place else None
        if not isinstance(value, ir.Call) or not self._is_optimizer(frame, value.func):
            return None
        if "add_param_group" in frame.function.module.names:
            return None
        params = argument(value, 0, "params")
        return self.networks(frame, params) if params is not None else None

    def _is_optimizer(self, frame: Frame, func: ir.Expr) -> bool:
        """Whether a call of this expression makes an optimizer."""
        if isinstance(func, ir.Call) and last_name(func.func) == "getattr" and func.args:
            return last_name(func.args[0]) in ("optim", "torch_optimizer")
        kind, what = self.analyser.program.find_expression(frame.function.module, func, frame.function)
        if kind == "class" and what is not None:
            bases = self.analyser.program.ancestors(what)[1]
            return any(name.startswith("torch.optim.") or name.endswith(".Optimizer") for name in bases)
        return kind not in ("function", "module") and _OPTIMIZERS.search(dotted(func)) is not None

    def networks(self, frame: Frame, expr: ir.Expr, depth: int = 0) -> frozenset[str] | None:
        """The places of the networks whose parameters an expression lists; None if some are unknown."""
        match expr:
            case ir.Call(func=ir.Attr(name="parameters", value=module)):
                place = self.place(frame, module)
                return frozenset((place,)) if place else None
            case ir.Call(func=func, args=args) if last_name(func) in _LISTS and args:
                return self._all(frame, args, depth)
            case ir.Call(func=ir.Name(id="filter"), args=(_, listed)):
                return self.networks(frame, listed, depth)
            case ir.Display(elements=elements) if elements:
                return self._all(frame, elements, depth)
            case ir.Starred(value=value):
                return self.networks(frame, value, depth)
            case ir.Binary(op="+", left=left, right=right):
                return self._all(frame, (left, right), depth)
            case ir.DictDisplay(keys=keys, values=values):
                named = (
                    value
                    for key, value in zip(keys, values, strict=True)
                    if isinstance(key, ir.Const) and key.value == "params"
                )
                group = next(named, None)
                return self.networks(frame, group, depth) if group is not None else None
            case ir.Comprehension(element=ir.Name(), fors=fors) if len(fors) == 1:
                return self.networks(frame, fors[0].iter, depth)
            case ir.Name(id=name) if depth < _DEPTH and name in frame.function.locals:
                found = bindings(frame.function.body).get(name, ())
                if len(found) != 1 or found[0][1] or _is_changed(frame.function, name):
                    return None
                return self.networks(frame, found[0][0], depth + 1)
        return None

    def _all(self, frame: Frame, exprs: tuple[ir.Expr, ...], depth: int) -> frozenset[str] | None:
        found: set[str] = set()
        for expr in exprs:
            one = self.networks(frame, expr, depth)
            if one is None:
                return None
            found |= one
        return frozenset(found)

    def _held_by_callers(self, function: Function, name: str) -> frozenset[str] | None:
        """The networks of an optimizer that is a parameter, in the function's own terms; all callers have to agree."""
        answers: set[frozenset[str]] = set()
        for passed in self.passed(function) or ():
            optimizer = passed.get(name)
            kept = self.held(optimizer) if optimizer else None
            if kept is None:
                return None
            given = {key: place for key, place in passed.items() if place and key != name}
            mine = f"{function.module.key}:{function.qual}|"
            mapped = (key for key, place in given.items() if any(overlap(place, one) for one in kept))
            answers.add(frozenset(mine + key for key in mapped))
        return answers.pop() if len(answers) == 1 else None

    def passed(self, function: Function) -> list[dict[str, str]] | None:
        """By call of a function, the places that its parameters stand for ("" for another expression); None if some
        calls are unknown."""
        calls = self.calls(function)
        return None if calls is None else [self.bound(frame, function, call) for frame, call in calls]

    def calls(self, function: Function) -> list[tuple[Frame, ir.Call]] | None:
        """The calls of a function, each with the frame of its caller; None if some are unknown."""
        records = self.analyser.facts.calls_of(function)
        if not 0 < len(records) <= _MAX_CALLERS or self.analyser.facts.is_handed_on(function):
            return None
        found: list[tuple[Frame, ir.Call]] = []
        for caller, record in records:
            call = call_at(caller.function.body, record.at)
            if call is None:
                return None
            found.append((frame_of(caller.function), call))
        return found

    def bound(self, frame: Frame, function: Function, call: ir.Call) -> dict[str, str]:
        """The places that the parameters of a called function stand for, "" for another expression."""
        given = arguments(function, call)
        return {name: self.place(frame, value) if value is not None else "" for name, value in given.items()}


def arguments(function: Function, call: ir.Call) -> dict[str, ir.Expr | None]:
    """What a call passes for the parameters of a function; None for what is unknown or left out."""
    return {param.name: argument(call, position, param.name) for position, param in enumerate(function.given)}


def unwrapped(value: ir.Expr) -> ir.Expr:
    """The network that an expression moves, wraps, or puts into a mode."""
    while isinstance(value, ir.Call) and last_name(value.func) in _SAME:
        func = value.func
        wraps = not isinstance(func, ir.Attr) or func.name[:1].isupper() or dotted(func.value) in ("torch", "nn")
        inner = (value.args[0] if value.args else None) if wraps or not isinstance(func, ir.Attr) else func.value
        if inner is None:
            break
        value = inner
    return value


def _assigned(statement: ir.Assign | ir.AnnAssign) -> Iterator[tuple[ir.Expr, ir.Expr, bool]]:
    """The targets of an assignment, each with its value and whether it is unpacked from that."""
    value = statement.value
    assert value is not None
    for target in statement.targets if isinstance(statement, ir.Assign) else (statement.target,):
        if not isinstance(target, ir.Display):
            yield target, value, False
        elif isinstance(value, ir.Display) and len(value.elements) == len(target.elements):
            yield from ((one, given, False) for one, given in zip(target.elements, value.elements, strict=True))
        else:
            yield from ((one, value, True) for one in target.elements)


def _is_changed(function: Function, name: str) -> bool:
    """Whether a list is extended after it was made."""
    return any(
        isinstance(part, ir.Attr) and dotted(part.value) == name and part.name in ("append", "extend", "insert")
        for part in parts(function.body)
    ) or any(isinstance(one, ir.AugAssign) and dotted(one.target) == name for one in walk_statements(function.body))
