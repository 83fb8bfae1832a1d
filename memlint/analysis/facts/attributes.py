"""What the project's classes store in their attributes, and which code resets them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from memlint.analysis.domain.declared_values import as_declared
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CONTAINER, MODULE, NONE, NOTHING, UNKNOWN, UNKNOWN_VALUE, Path, Ref, V, join
from memlint.analysis.facts.same_object import Holder, holder, may_be_same
from memlint.analysis.index.program import Class, Function
from memlint.analysis.index.uses import uses_of
from memlint.analysis.syntax.bindings import unpacked_targets
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import calls, calls_named, dotted, is_name, walk_statements
from memlint.analysis.transfer.attribute_statements import (
    MAKES,
    annotation_of,
    assigned_value,
    attribute_assignments,
    begins_attribute,
    by_constructor,
    is_container,
    note_parameters,
    sets_attribute,
)
from memlint.analysis.transfer.handed_on import outside
from memlint.analysis.transfer.held_values import as_held
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.facts import Facts


#: of how many classes with an attribute of a name the attribute's value is read
MAX_ASKED = 8
#: of how many functions that empty an attribute of a name it is asked whose; with more of them, one may empty any
MAX_EMPTYING = 64


class Attributes:
    """Facts about attributes by class and name, each computed once."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.analyser = facts.analyser
        self._values: dict[tuple[str, str, str], V] = {}
        #: what a class itself assigns; kept apart, as a base may have thousands of subclasses
        self._own: dict[tuple[str, str, str], V] = {}
        #: how often a query met a method that is still being interpreted
        self._unfinished = 0
        #: by the attribute: the functions that empty it, and where they see it
        self._emptied: dict[str, list[tuple[Function, Path]]] | None = None
        self._emptied_through: dict[str, list[tuple[Function, Path]]] | None = None
        #: whose attribute a function empties, by the function and the place
        self._holders: dict[tuple[tuple[str, str], Path], Holder] = {}

    def renew(self) -> None:
        """Drop the values, since the call sites know more about the arguments."""
        self._values.clear()
        self._own.clear()
        self._emptied = None
        self._emptied_through = None
        self._holders.clear()

    def known(self, cls: Class, name: str) -> V | None:
        """The answer of `value` if it has been computed; else None."""
        return self._values.get((*cls.key, name))

    def value(self, cls: Class, name: str) -> V:
        """The join of what the class and its project ancestors assign to ``self.name``; `NOTHING` for no assignment."""
        key = (*cls.key, name)
        if key in self._values:
            return self._values[key]
        self._values[key] = NOTHING
        order, _ = self.analyser.program.ancestors(cls)
        found, unfinished = NOTHING, self._unfinished
        for item in order:
            found = join(found, self._assigned(item, name)) if self._mentions(item, name) else found
        if found.may_be_module() or not found.kinds & ~NONE:
            used = frozenset().union(*(self.used_as_modules(item) for item in order))
            read_as = {name}.union(*(self._getters(item).get(name, ()) for item in order)) if used else ()
            if any(f"self.{one}" in used for one in read_as):
                found = V(MODULE, refs=found.refs)
        if self._unfinished == unfinished:
            self._values[key] = found
        else:
            del self._values[key]  # the constructor itself made the query; the answer is complete only after it
        return found

    def _mentions(self, cls: Class, name: str) -> bool:
        """Whether the class itself assigns, defines or annotates an attribute."""
        return name in self._assignments(cls) or name in cls.attributes or name in cls.annotations

    def _assigned(self, cls: Class, name: str) -> V:
        key = (*cls.key, name)
        known = self._own.get(key)
        if known is None:
            unfinished = self._unfinished
            known = self._find(cls, name)
            if self._unfinished == unfinished:
                self._own[key] = known
        return known

    def _find(self, cls: Class, name: str) -> V:
        found = NOTHING
        methods = self._assignments(cls).get(name, ())
        if name in cls.attributes:
            found = join(found, self.analyser.evaluate_constant(cls.module, cls.attributes[name]))
        if name in cls.annotations:
            known = self.analyser.annotated(cls.module, cls.annotations[name])
            found = join(found, known) if known is not None else found
        for method in methods:
            value = None
            if MAKES.match(method.name) is not None:
                summary = self.analyser.summary(method)
                self._unfinished += self.analyser.summaries.is_cut(method) or (
                    summary is None and self.analyser.summaries.is_running(method)
                )
                if summary is not None and summary.exit is not None:
                    place = Path(f"p:{method.params[0].name}" if method.params else "p:self", (f".{name}",))
                    value = summary.exit.sym.get(place)
                    if value is not None and value.syms == {place} and value.kinds & ~UNKNOWN:
                        value = value.but(kinds=value.kinds & ~UNKNOWN)  # one path leaves the attribute as it is
                    if value is not None:
                        value = as_held(summary.exit, self._through_parameters(summary, value))
            if value is None:
                value = self._shallow(method, name)
            found = join(found, outside(value))
        said = annotation_of(methods, name) if found.kinds & UNKNOWN else None
        return as_declared(None, found, self.analyser.annotated(cls.module, said) if said is not None else None)

    def _through_parameters(self, summary: Summary, value: V) -> V:
        if value.kinds & UNKNOWN and value.syms:
            known = self.facts.settled(summary, value)
            if known is not None:
                return known
        if value.kinds & CONTAINER and any(
            obj is not None and obj.bounded
            for key in value.objs
            if (obj := summary.exit.heap.get(key) if summary.exit else None)
        ):
            return value.but(refs=value.refs | {Ref("bounded", "", "")})
        return value

    @kept_for
    def _assignments(self, cls: Class) -> dict[str, list[Function]]:
        """By attribute, the methods and setters of a class that assign it, on ``self`` or another variable."""
        found: dict[str, list[Function]] = {}
        for method in (*cls.methods.values(), *cls.accessors):
            for name in attribute_assignments(method.body):
                found.setdefault(name, []).append(method)
        return found

    def is_set_later(self, cls: Class, name: str) -> bool:
        """Whether a method that makes no object assigns the attribute, in the class, its ancestors or subclasses."""
        order = (*self.analyser.program.ancestors(cls)[0], *self.analyser.program.below(cls))
        return any(MAKES.match(one.name) is None for item in order for one in self._assignments(item).get(name, ()))

    @kept_for
    def used_as_modules(self, cls: Class) -> frozenset[str]:
        """The places that the methods of a class use as only modules are used."""
        return frozenset().union(*(uses_of(self.analyser.program, method) for method in cls.methods.values()))

    @kept_for
    def _getters(self, cls: Class) -> dict[str, set[str]]:
        """By attribute, the properties of a class all of whose returns are ``return self.attribute``, or the module in
        the attribute's wrapper (``DataParallel``): ``return self.attribute.module``."""
        found: dict[str, set[str]] = {}
        for prop, method in cls.methods.items():
            if method.is_property:
                returned = [one.value for one in walk_statements(method.body) if isinstance(one, ir.Return)]
                places = {place for value in returned for place in _unwrapped(value)}
                own, _, name = places.pop().partition(".") if len(places) == 1 else ("", "", "")
                if own == method.own_name and name.isidentifier():
                    found.setdefault(name, set()).add(prop)
        return found

    def _shallow(self, method: Function, name: str) -> V:
        """The join of a method's assignments without interpreting it: calls and literals, in the module's scope."""
        found = NOTHING
        for statement in attribute_assignments(method.body).get(name, ()):
            if not isinstance(statement, (ir.Assign, ir.AnnAssign)) or statement.value is None:
                found = join(found, UNKNOWN_VALUE)
                continue
            value = assigned_value(statement, statement.value, name)
            plain = isinstance(value, ir.Const | ir.Display | ir.DictDisplay | ir.Call) or is_container(value)
            found = join(found, self.analyser.evaluate_constant(method.module, value) if plain else UNKNOWN_VALUE)
        return found

    @kept_for
    def buffers(self, cls: Class) -> frozenset[str]:
        """The names that the class and its ancestors register as buffers."""
        return frozenset(
            first.value
            for method in self.analyser.program.methods(cls)
            for call in calls_named(method.body, {"register_buffer"})
            if call.args and isinstance(first := call.args[0], ir.Const) and isinstance(first.value, str)
        )

    @kept_for
    def parameters(self, cls: Class) -> frozenset[str]:
        """The attributes to which the class assigns an ``nn.Parameter``, and which it does not freeze."""
        order, _ = self.analyser.program.ancestors(cls)
        own = [self._own_parameters(item) for item in order]
        return frozenset().union(*(made for made, _ in own)) - frozenset().union(*(frozen for _, frozen in own))

    def is_kept_up(self, cls: Class, name: str) -> bool:
        """Whether a method other than a constructor assigns the attribute, or the attribute holds a container."""
        order, _ = self.analyser.program.ancestors(cls)
        others = (method for item in order for method in self._assignments(item).get(name, ()))
        return any(MAKES.match(method.name) is None for method in others) or bool(
            self.value(cls, name).kinds & CONTAINER
        )

    @kept_for
    def _own_parameters(self, cls: Class) -> tuple[set[str], set[str]]:
        """The attributes to which the methods of a class itself assign parameters, and those that they freeze. Kept
        apart, as a base may have thousands of subclasses."""
        made: set[str] = set()
        frozen: set[str] = set()
        for method in cls.methods.values():
            for statement in walk_statements(method.body):
                note_parameters(statement, made, frozen)
        return made, frozen

    def is_reset(self, function: Function, name: str) -> bool:
        """Whether other code assigns this attribute: another module, or a method of the class that is called."""
        cls = function.cls
        if cls is None:
            return False
        if any(place != (cls.module.key, cls.unit) for place in self.assigning_units(name)):
            return True
        order, _ = self.analyser.program.ancestors(cls)
        return any(
            method.name not in ("__init__", function.name) and self.is_called(method.name)
            for item in order
            for method in self._assignments(item).get(name, ())
        )

    @kept_for
    def is_called(self, name: str) -> bool:
        """Whether a function of that name is called anywhere but in constructors, which run once."""
        program = self.analyser.program
        modules = (program.module(key) for key in program.words.files(name))
        return any(
            name in unit.calls and not by_constructor(module.cls(unit.name), name)
            for module in modules
            for unit in module.index.units
        )

    @kept_for
    def assigning_units(self, name: str) -> list[tuple[str, int]]:
        """The units (module, number) that assign an attribute of that name."""
        program = self.analyser.program
        return [
            (key, number)
            for key in program.words.files(name)
            for number, unit in enumerate(program.module(key).index.units)
            if name in unit.stores
        ]

    def is_emptied_each_round(self, step: str, place: Holder, followed: Function | None) -> bool:
        """Whether code that runs in each iteration, of a loop or of a framework, may empty the attribute ``step``
        (".losses") of an object. ``followed``: a function that does not count, as it is analysed more precisely."""
        if self._emptied is None:
            self._emptied = {}
            for summary in self.analyser.general_summaries():
                # a writer's hooks run once in its interval
                hooked = (
                    summary.hook is not None
                    and summary.hook.every in ("iteration", "request")
                    and not summary.function.name.startswith("write_on_")
                )
                for path in summary.notes.cleared if hooked else summary.notes.cleared_in_rounds:
                    # assigning one member does not empty the others
                    for at, name in enumerate(path.steps if path not in summary.notes.members_set else ()):
                        held = Path(path.root, path.steps[: at + 1])
                        self._emptied.setdefault(name, []).append((summary.function, held))
        emptied = self._emptied.get(step, ())
        return self._is_one_of([one for one in emptied if followed is None or one[0].key != followed.key], place)

    def is_emptied_through(self, step: str, place: Holder) -> bool:
        """Whether some function may empty the attribute ``step`` (".losses") of an object by way of another one around
        it: ``del self.tree.states[:]``. The object's own class does not show how often that runs."""
        if self._emptied_through is None:
            self._emptied_through = {}
            for summary in self.analyser.general_summaries():
                for path in summary.notes.cleared:
                    if sum(part.startswith(".") for part in path.steps) > 1 and path.steps[-1].startswith("."):
                        self._emptied_through.setdefault(path.steps[-1], []).append((summary.function, path))
        return self._is_one_of(self._emptied_through.get(step, ()), place)

    def _is_one_of(self, emptied: Sequence[tuple[Function, Path]], place: Holder) -> bool:
        """Whether the object may be one of those whose attribute some functions empty, each at a path in its terms."""
        return len(emptied) > MAX_EMPTYING or any(
            may_be_same(self.analyser.program, self._holder(by, path), place) for by, path in emptied
        )

    def _holder(self, function: Function, path: Path) -> Holder:
        key = (function.key, path)
        if key not in self._holders:
            self._holders[key] = holder(self.analyser, function, path)
        return self._holders[key]

    @kept_for
    def dispatches(self, cls: Class) -> bool:
        """Whether the class or an ancestor calls its own methods by computed names."""
        return any(
            dotted(call.func) == "getattr"
            and len(call.args) > 1
            and is_name(call.args[0], "self")
            and not isinstance(call.args[1], ir.Const)
            for method in self.analyser.program.methods(cls)
            for call in calls(method.body, into_definitions=True)
        )

    @kept_for
    def is_assigned(self, name: str) -> bool:
        """Whether any code of the project assigns an attribute of that name."""
        program = self.analyser.program
        # stop at the first one, as finding all may read a large project
        return any(name in unit.stores for key in program.words.files(name) for unit in program.module(key).index.units)

    @kept_for
    def is_begun(self, name: str) -> bool:
        """Whether a called method other than the constructor, or a function, assigns an attribute of this name a value
        that does not depend on the old one."""
        return any(sets_attribute(function, name) for function in self._functions_with(name)) or any(
            method.name != "__init__" and self.is_called(method.name) and begins_attribute(method, name)
            for cls in self.classes_with(name)
            for method in cls.methods.values()
        )

    @kept_for
    def is_written_beside(self, method: Function, name: str) -> bool:
        """Whether code other than a method and the constructors may assign ``self.name`` of the method's object: a
        method or setter of its class, or of one above or below, or any code by another variable than ``self``."""
        program, cls = self.analyser.program, method.cls
        if cls is None or any(_is_assigned_in(function, name, by_self=True) for function in self._functions_with(name)):
            return True
        family = {one.key for one in (*program.ancestors(cls)[0], *program.below(cls))} | {cls.key}
        return any(
            one.key != method.key and _is_assigned_in(one, name, by_self=other.key in family and one.name != "__init__")
            for other in self.classes_with(name)
            for one in (*other.methods.values(), *other.accessors)
        )

    def _functions_with(self, name: str) -> Iterator[Function]:
        """The functions, and module-level code, that assign an attribute of this name."""
        for key, number in self.assigning_units(name):
            module = self.analyser.program.module(key)
            unit = module.index.units[number].name
            function = module.function(unit) if unit else module.main
            if function is not None:
                yield function

    def names_layer(self, name: str) -> bool:
        """Whether a module class of the project stores a module under this name."""
        return any(
            self.analyser.attribute(cls, name).kinds & MODULE
            for cls in itertools.islice(self.classes_with(name), MAX_ASKED)
            if self.analyser.program.is_module(cls)
        )

    def classes_with(self, name: str) -> Iterator[Class]:
        """The project's classes that assign an attribute of this name."""
        for key, number in self.assigning_units(name):
            module = self.analyser.program.module(key)
            cls = module.cls(module.index.units[number].name)
            if cls is not None:
                yield cls


def _is_assigned_in(function: Function, name: str, *, by_self: bool) -> bool:
    """Whether a function assigns an attribute of this name. ``by_self``: also that of ``self``."""
    return any(
        isinstance(part, ir.Attr) and part.name == name and (by_self or not is_name(part.value, "self"))
        for statement in walk_statements(function.body)
        for part in unpacked_targets(statement)
    )


def _unwrapped(value: ir.Expr | None) -> Iterator[str]:
    """The places whose value, or the module of whose wrapper, an expression may be; "" for another expression."""
    match value:
        case ir.IfExp():
            yield from (*_unwrapped(value.body), *_unwrapped(value.orelse))
        case ir.Call(func=ir.Name(id="getattr"), args=(_, ir.Const(value="module"), *_)):
            yield from (place for arg in value.args[::2] for place in _unwrapped(arg))
        case ir.Attr(name="module", value=ir.Attr()):
            yield dotted(value.value)
        case _:
            yield dotted(value) if value is not None else ""
