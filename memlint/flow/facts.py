"""What the whole project says of a parameter, an attribute, a method name, a function's callers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlint.flow.frame import CallRecord, Frame, module_uses
from memlint.flow.program import Class, Function
from memlint.flow.screen import relevant_modules
from memlint.flow.state import AMBIENT, OFF, ON
from memlint.flow.syntax import dotted, expressions, walk_expression, walk_statements
from memlint.flow.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NOTHING,
    OPTIMIZER,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    V,
    join,
    ordered,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: units of other files that are read to learn how a function is called
MAX_CALLERS = 12
#: methods of a name that a call on an unknown receiver may mean
MAX_METHODS = 8
_PLAIN = MODULE | OPTIMIZER | LOADER | CALLABLE | INSTANCE | NONE


class Facts:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self._calls: dict[tuple[str, str], list[tuple[Frame, CallRecord]]] = {}
        self._named: dict[str, list[tuple[Frame, int]]] = {}
        self._attributes: dict[tuple[str, str, str], V] = {}
        self._parameters: dict[tuple[tuple[str, str], str], V | None] = {}
        self._grads: dict[tuple[str, str], int] = {}
        self._methods: dict[str, list[tuple[str, str]]] | None = None
        self._in_backward: frozenset[str] | None = None
        self._overridden: dict[tuple[str, str], list[tuple[Frame, CallRecord]]] = {}
        self._differentiated: frozenset[str] | None = None
        self._owned: frozenset[str] | None = None
        self._assigning: dict[tuple[str, str], dict[str, list[Function]]] = {}
        self._modules_by_use: dict[tuple[str, str], frozenset[str]] = {}
        self._buffers: dict[tuple[str, str], frozenset[str]] = {}
        self._trained: dict[tuple[str, str], frozenset[str]] = {}
        self._begun: dict[str, bool] = {}
        self._dispatching: dict[tuple[str, str], bool] = {}

    def learn(self) -> None:
        """Take the call records of all summaries."""
        calls: dict[tuple[str, str], list[tuple[Frame, CallRecord]]] = {}
        for frame in self.analyser.frames():
            for record in frame.calls.values():
                calls.setdefault(record.callee, []).append((frame, record))
        self._calls = calls
        self._parameters.clear()
        self._grads.clear()
        self._named = {}
        for frame in self.analyser.frames():
            for name, grad in frame.named:
                self._named.setdefault(name, []).append((frame, grad))
        self._overridden.clear()
        self._differentiated = None
        self._owned = None
        self._attributes.clear()
        self._in_backward = None

    def calls_of(self, function: Function) -> list[tuple[Frame, CallRecord]]:
        """The known calls of a function; for a method, those of the base method that it overrides as well."""
        key = function.key
        if key not in self._overridden:
            found = self._calls.get(key, [])
            if not found and function.cls is not None and not function.name.startswith("__"):
                order, _ = self.analyser.program.ancestors(function.cls)
                for base in order[1:]:
                    method = base.methods.get(function.name)
                    if method is not None:
                        found = self._calls.get(method.key, [])
                        break
            self._overridden[key] = found
        return self._overridden[key]

    @property
    def differentiated(self) -> frozenset[str]:
        """Attributes of ``self`` that some method of the project sends into a backward."""
        if self._differentiated is None:
            self._differentiated = frozenset(
                item.steps[0]
                for frame in self.analyser.frames()
                if frame.function.takes_self and frame.function.params
                for reached, _, _ in frame.backwards
                for item in reached
                if isinstance(item, Path) and item.steps and item.root == f"p:{frame.function.params[0].name}"
            )
        return self._differentiated

    @property
    def owned_attributes(self) -> frozenset[str]:
        """Names of the attributes whose parameters some optimizer of the project takes."""
        if self._owned is None:
            entries = [entry for frame in self.analyser.frames() for entry in frame.notes.owned if entry]
            self._owned = frozenset(
                key.steps[-1] for entry in entries for key in entry if isinstance(key, Path) and key.steps
            )
        return self._owned

    def made_mode(self, cls: Class, steps: tuple[str, ...], tag: str) -> bool | None:
        """The mode (with a tag: frozenness) that ``__init__`` gives ``self`` + steps and no other method changes."""
        from memlint.flow.modes import look_up

        init = self.analyser.program.method(cls, "__init__")
        summary = self.analyser.summary(init) if init is not None else None
        if init is None or not init.params or summary is None or summary.exit is None:
            return None
        path = Path(f"p:{init.params[0].name}", steps)
        value = summary.exit.sym.get(path, UNKNOWN_VALUE)
        told = look_up(summary.exit.modes, value.but(syms=value.syms | {path}), "", tag)
        if told is None:
            return None
        order, _ = self.analyser.program.ancestors(cls)
        for item in order:
            for method in item.methods.values():
                other = self.analyser.summary(method) if method.name != "__init__" and method.params else None
                if other is None or other.exit is None:
                    continue
                here = V(UNKNOWN, syms=frozenset((Path(f"p:{method.params[0].name}", steps),)))
                if look_up(other.exit.modes, here, "", tag) not in (None, told):
                    return None
        return told

    # ------------------------------------------------------------------------------------ parameters

    def parameter(self, function: Function, name: str) -> V | None:
        """What all known call sites pass for a parameter; None where they do not agree on something plain."""
        key = (function.key, name)
        if key not in self._parameters:
            self._parameters[key] = None  # what a function passes on to itself says nothing
            self._parameters[key] = self._passed(function, name)
        return self._parameters[key]

    def _passed(self, function: Function, name: str) -> V | None:
        found = NOTHING
        for frame, record in self._calls.get(function.key, ()):
            value = record.args.get(name)
            if value is None:
                return None
            known = self.settled(frame, value)
            if known is None:
                return None
            found = join(found, known)
        if not found.kinds or found.kinds & ~(_PLAIN | DATA) or found.is_only(NONE | DATA):
            return None
        return V(found.kinds, refs=found.refs, device=found.device, size=found.size)

    def settled(self, frame: Frame, value: V) -> V | None:
        """A value at a call site, with the caller's own parameters looked up in turn."""
        if not value.kinds & UNKNOWN:
            return value
        found = NOTHING
        for path in ordered(value.syms):
            if path.steps or not path.root.startswith("p:"):
                return None
            inner = self.parameter(frame.function, path.root[2:])
            if inner is None:
                return None
            found = join(found, inner)
        return found if found.kinds else None

    # ------------------------------------------------------------------------------------ grad mode

    def grad_of(self, function: Function) -> int:
        """The grad modes under which a function is called, at any distance: ON where no caller is known, and AMBIENT
        besides where it is a module's forward, which torch calls for somebody who may well guard it."""
        if function.key not in self._grads:
            found = 0
            todo, seen = [function], {function.key}
            while todo:
                records = self._grads_at(todo.pop())
                if not records:
                    found |= ON
                for caller, grad in records:
                    found |= grad & (ON | OFF)
                    if grad & AMBIENT and caller.key not in seen:
                        seen.add(caller.key)
                        todo.append(caller)
            self._grads[function.key] = found or ON
        return self._grads[function.key]

    def _grads_at(self, function: Function) -> list[tuple[Function, int]]:
        """(caller, grad mode) of each call of a function. A method that nobody is seen to call may be what is called
        by its name on objects of unknown class."""
        records = [(frame.function, record.grad) for frame, record in self.calls_of(function)]
        if not records and function.cls is not None:
            records = [(frame.function, grad) for frame, grad in self._named.get(function.name, ())]
        return records

    # ------------------------------------------------------------------------------------ attributes

    def attribute(self, cls: Class, name: str) -> V:
        """The join of what the class and its project ancestors assign to ``self.name``; nothing for no assignment."""
        key = (*cls.key, name)
        if key in self._attributes:
            return self._attributes[key]
        self._attributes[key] = NOTHING
        order, _ = self.analyser.program.ancestors(cls)
        found = NOTHING
        for item in order:
            found = join(found, self._assigned(item, name))
        used = any(f"self.{name}" in self._used_as_modules(item) for item in order)
        if used and (found.may_be_module() or not found.kinds & ~NONE):
            found = V(MODULE, refs=found.refs)
        self._attributes[key] = found
        return found

    def _assigned(self, cls: Class, name: str) -> V:
        from memlint.flow.analyser import outside

        found = NOTHING
        if name in cls.attributes:
            found = join(found, self.analyser.evaluate_constant(cls.module, cls.attributes[name]))
        if name in cls.annotations:
            known = self.analyser.annotated(cls.module, cls.annotations[name])
            found = join(found, known) if known is not None else found
        for method in self._assignments(cls).get(name, ()):
            value = None
            if method.name in (
                "__init__",
                "setup",
                "build",
                "configure",
                "_setup",
                "initialize",
                "init",
                "_build_model",
                "build_model",
            ):
                summary = self.analyser.summary(method)
                if summary is not None and summary.exit is not None:
                    value = summary.exit.sym.get(
                        Path(f"p:{method.params[0].name}" if method.params else "p:self", (f".{name}",))
                    )
                    if value is not None:
                        value = self._through_parameters(method, summary, value)
            if value is None:
                value = self._shallow(method, name)
            found = join(found, outside(value))
        return found

    def _through_parameters(self, method: Function, frame: Frame, value: V) -> V:
        if value.kinds & UNKNOWN and value.syms:
            known = self.settled(frame, value)
            if known is not None:
                return known
        if value.kinds & CONTAINER and any(
            obj is not None and obj.bounded
            for key in value.objs
            if (obj := frame.exit.heap.get(key) if frame.exit else None)
        ):
            from memlint.flow.values import Ref

            return value.but(refs=value.refs | {Ref("bounded", "", "")})
        return value

    def _assignments(self, cls: Class) -> dict[str, list[Function]]:
        """The methods of a class that assign each attribute (of ``self``, or of another variable)."""
        if cls.key not in self._assigning:
            found: dict[str, list[Function]] = {}
            for method in cls.methods.values():
                names: set[str] = set()
                for statement in walk_statements(method.body):
                    names.update(_stored(statement))
                for name in names:
                    found.setdefault(name, []).append(method)
            self._assigning[cls.key] = found
        return self._assigning[cls.key]

    def _used_as_modules(self, cls: Class) -> frozenset[str]:
        """What the methods of a class use as only modules are used."""
        if cls.key not in self._modules_by_use:
            self._modules_by_use[cls.key] = frozenset().union(
                *(module_uses(method.body) for method in cls.methods.values())
            )
        return self._modules_by_use[cls.key]

    def _shallow(self, method: Function, name: str) -> V:
        """What the method's assignments say by themselves: calls and literals at the module's scope."""
        found = NOTHING
        for statement in walk_statements(method.body):
            if (
                not _stores(statement, name)
                or not isinstance(statement, ir.Assign | ir.AnnAssign)
                or statement.value is None
            ):
                if _stores(statement, name):
                    found = join(found, UNKNOWN_VALUE)
                continue
            value = _assigned_value(statement, statement.value, name)
            plain = isinstance(value, ir.Const | ir.Display | ir.DictDisplay | ir.Call)
            found = join(found, self.analyser.evaluate_constant(method.module, value) if plain else UNKNOWN_VALUE)
        return found

    def buffers(self, cls: Class) -> frozenset[str]:
        """Names that the class registers as buffers."""
        if cls.key not in self._buffers:
            names: set[str] = set()
            order, _ = self.analyser.program.ancestors(cls)
            for item in order:
                for method in item.methods.values():
                    for statement in walk_statements(method.body):
                        if isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
                            call = statement.value
                            if isinstance(call.func, ir.Attr) and call.func.name == "register_buffer" and call.args:
                                first = call.args[0]
                                if isinstance(first, ir.Const) and isinstance(first.value, str):
                                    names.add(first.value)
            self._buffers[cls.key] = frozenset(names)
        return self._buffers[cls.key]

    def parameters(self, cls: Class) -> frozenset[str]:
        """Names of the attributes that the class makes ``nn.Parameter`` of, and that nothing in it freezes."""
        if cls.key not in self._trained:
            made: set[str] = set()
            frozen: set[str] = set()
            order, _ = self.analyser.program.ancestors(cls)
            for item in order:
                for method in item.methods.values():
                    for statement in walk_statements(method.body):
                        _learn_parameters(statement, made, frozen)
            self._trained[cls.key] = frozenset(made - frozen)
        return self._trained[cls.key]

    def is_reset(self, function: Function, name: str) -> bool:
        """Whether other code sets this attribute anew: another module, or a method of the class that is called."""
        cls = function.cls
        if cls is None:
            return False
        calls, stores = self._named_in_project
        if any(place != (cls.module.key, cls.unit) for place in stores.get(name, ())):
            return True
        order, _ = self.analyser.program.ancestors(cls)
        return any(
            method.name not in ("__init__", function.name) and method.name in calls
            for item in order
            for method in self._assignments(item).get(name, ())
        )

    @functools.cached_property
    def _named_in_project(self) -> tuple[frozenset[str], dict[str, list[tuple[str, int]]]]:
        """What is called anywhere, and the units (module, number) that assign each attribute."""
        calls: set[str] = set()
        stores: dict[str, list[tuple[str, int]]] = {}
        for key in self.analyser.program.project.sources:
            for number, unit in enumerate(self.analyser.program.module(key).index.units):
                calls |= unit.calls
                for name in unit.stores:
                    stores.setdefault(name, []).append((key, number))
        return frozenset(calls), stores

    def dispatches(self, cls: Class) -> bool:
        """Whether the class or an ancestor calls its own methods by names that are computed."""
        if cls.key not in self._dispatching:
            order, _ = self.analyser.program.ancestors(cls)
            self._dispatching[cls.key] = any(
                isinstance(part, ir.Call)
                and dotted(part.func) == "getattr"
                and len(part.args) > 1
                and isinstance(part.args[0], ir.Name)
                and part.args[0].id == "self"
                and not isinstance(part.args[1], ir.Const)
                for item in order
                for method in item.methods.values()
                for statement in walk_statements(method.body)
                for expr in expressions(statement)
                for part in walk_expression(expr)
            )
        return self._dispatching[cls.key]

    def is_begun(self, name: str) -> bool:
        """Whether a method that is called, no constructor, gives an attribute of this name a value of its own."""
        if name not in self._begun:
            calls, stores = self._named_in_project
            modules = ((self.analyser.program.module(key), number) for key, number in stores.get(name, ()))
            classes = (module.cls(module.index.units[number].name) for module, number in modules)
            self._begun[name] = any(
                method.name != "__init__" and method.name in calls and _begins(method, name)
                for cls in classes
                if cls is not None
                for method in cls.methods.values()
            )
        return self._begun[name]

    def attributes_in_backward(self) -> frozenset[str]:
        """Attributes (``.saved_log_probs``) whose members some function of the project sends into a backward."""
        if self._in_backward is None:
            found: set[str] = set()
            for frame in self.analyser.frames():
                for reached, _, _ in frame.backwards:
                    for item in reached:
                        if isinstance(item, Path) and "[]" in item.steps:
                            found.update(step for step in item.steps if step.startswith("."))
            self._in_backward = frozenset(found)
        return self._in_backward

    # ------------------------------------------------------------------------------------ free variables

    def free_variable(self, function: Function, name: str) -> V | None:
        """What the enclosing function's assignments say of a free variable by themselves."""
        around = function.around
        while around is not None and name not in around.locals:
            around = around.around
        if around is None or name in {param.name for param in around.params}:
            return V(MODULE) if around is not None and name in module_uses(around.body) else None
        if name in module_uses(around.body):
            return V(MODULE)
        found = NOTHING
        for statement in walk_statements(around.body, into_definitions=False):
            if isinstance(statement, ir.Import | ir.ImportFrom):
                imported = self.analyser.program.imported(around.module, statement, name)
                if imported[0] != "none":
                    return self.analyser.global_value(*imported)
            if isinstance(statement, ir.ClassDef) and statement.name == name:
                inner = next(
                    (
                        cls
                        for cls in around.module.classes.values()
                        if cls.unit == around.unit and cls.node.at == statement.at
                    ),
                    None,
                )
                return self.analyser.global_value("class", inner) if inner is not None else None
            if isinstance(statement, ir.FunctionDef) and statement.name == name:
                made = around.module.by_place.get((around.unit, statement.at))
                return self.analyser.global_value("function", made) if made is not None else None
            if isinstance(statement, ir.Assign) and any(
                isinstance(target, ir.Name) and target.id == name for target in statement.targets
            ):
                plain = isinstance(statement.value, ir.Const | ir.Display | ir.DictDisplay | ir.Call)
                found = join(
                    found, self.analyser.evaluate_constant(around.module, statement.value) if plain else UNKNOWN_VALUE
                )
        if not found.kinds or found.kinds & UNKNOWN:
            return None
        return found

    # ------------------------------------------------------------------------------------ names over the project

    def many_methods(self, name: str) -> bool:
        """Whether the project has more methods of that name than are followed."""
        self.methods_named(name)
        return self._methods is not None and len(self._methods.get(name, ())) > MAX_METHODS

    def methods_named(self, name: str) -> list[Function]:
        """The project's methods of that name, if they are few."""
        if self._methods is None:
            self._methods = {}
            for key in self.analyser.program.project.sources:
                for definition in self.analyser.program.module(key).index.definitions:
                    for method in definition.methods:
                        self._methods.setdefault(method, []).append((key, definition.name))
        places = self._methods.get(name, [])
        if not 0 < len(places) <= MAX_METHODS:
            return []
        found = []
        for key, cls_name in places:
            cls = self.analyser.program.module(key).cls(cls_name)
            if cls is not None and name in cls.methods:
                found.append(cls.methods[name])
        return found

    def callers_of(self, functions: Sequence[Function], linted: list[str]) -> list[Function]:
        """Functions of other files that call one of these by name, so that their grad mode and arguments are known."""
        inside = set(linted)
        names = {
            function.name
            for function in functions
            if function.node is not None and not function.name.startswith("__") and function.name != "forward"
        }
        classes = {function.cls.node.name for function in functions if function.cls is not None}
        wanted = names | classes
        if not wanted:
            return []
        found: dict[str, list[tuple[str, int]]] = {}
        others = [key for key in self.analyser.program.project.sources if key not in inside]
        for key in sorted(relevant_modules(self.analyser.program, others)):
            for number, unit in enumerate(self.analyser.program.module(key).index.units):
                for name in unit.calls & wanted:
                    found.setdefault(name, []).append((key, number))
        units = {place for places in found.values() if len(places) <= MAX_CALLERS for place in places}
        callers: list[Function] = []
        for key, number in sorted(units):
            module = self.analyser.program.module(key)
            module.build(number)
            if number == 0:
                callers.append(module.main)
            callers += [function for function in list(module.functions.values()) if function.unit == number]
        return callers


def _learn_parameters(statement: ir.Stmt, made: set[str], frozen: set[str]) -> None:
    """``self.weight = nn.Parameter(…)`` makes one, ``self.weight.requires_grad = False`` freezes it."""
    if isinstance(statement, ir.Assign):
        value = statement.value
        for target in statement.targets:
            if not isinstance(target, ir.Attr):
                continue
            if target.name == "requires_grad" and isinstance(target.value, ir.Attr):
                frozen.add(target.value.name)
            elif isinstance(value, ir.Call) and dotted(value.func).rsplit(".", 1)[-1] == "Parameter":
                fixed = len(value.args) > 1 or any(word.name == "requires_grad" for word in value.keywords)
                (frozen if fixed else made).add(target.name)
    elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
        func = statement.value.func
        if isinstance(func, ir.Attr) and func.name == "requires_grad_" and isinstance(func.value, ir.Attr):
            frozen.add(func.value.name)


def _begins(method: Function, name: str) -> bool:
    """Whether the method assigns ``self.name`` something that is not made of it."""
    return any(
        isinstance(statement, ir.Assign)
        and _stores(statement, name)
        and not any(isinstance(part, ir.Attr) and part.name == name for part in walk_expression(statement.value))
        for statement in walk_statements(method.body)
    )


def _assigned_value(statement: ir.Assign | ir.AnnAssign, value: ir.Expr, name: str) -> ir.Expr:
    """The part of an assignment's value that goes to ``self.name``."""
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    for target in targets:
        if not isinstance(target, ir.Display):
            continue
        for position, part in enumerate(target.elements):
            if isinstance(part, ir.Attr) and part.name == name:
                same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements)
                return value.elements[position] if same and isinstance(value, ir.Display) else ir.Name(value.at, "")
    return value


def _stores(statement: ir.Stmt, name: str) -> bool:
    return name in _stored(statement)


def _stored(statement: ir.Stmt) -> list[str]:
    """The attributes of variables that a statement assigns."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign | ir.AugAssign | ir.For):
        targets = (statement.target,)
    flat: list[ir.Expr] = []
    for target in targets:
        flat.extend(target.elements if isinstance(target, ir.Display) else (target,))
    return [target.name for target in flat if isinstance(target, ir.Attr) and isinstance(target.value, ir.Name)]
