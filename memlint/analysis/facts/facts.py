"""What the whole project says of a parameter, an attribute, a method name and a function's callers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from memlint.analysis.calls.method_index import NamedMethods
from memlint.analysis.domain.literal_values import referred_functions
from memlint.analysis.domain.summary.effects import CallRecord
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    DATA,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NOTHING,
    OPTIMIZER,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Path,
    Ref,
    Source,
    Sources,
    V,
    join,
    ordered,
)
from memlint.analysis.facts.attributes import Attributes
from memlint.analysis.facts.called_modes import CalledModes
from memlint.analysis.facts.common_arguments import handed_over
from memlint.analysis.facts.sizes.known_numbers import Numbers
from memlint.analysis.facts.table_entries import stands_in_table
from memlint.analysis.index.partners import Partners
from memlint.analysis.index.program import Function, in_tests
from memlint.analysis.index.uses import uses_of
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.syntax import is_name, walk_statements
from memlint.analysis.transfer.handed_on import bound_at
from memlint.analysis.transfer.held_values import as_held
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.transfer.attributes_by_name import Held

#: names of modules that differentiate for a loss
_LOSSES = lazy_pattern(r"loss|penalt|regular|criterion|discrimin|critic|trainer")
_PLAIN = MODULE | OPTIMIZER | LOADER | CALLABLE | INSTANCE | NONE


#: the cached facts that depend on the summaries
_LEARNT = (
    "_skipped", "_variables_in_backward", "attributes_in_backward", "differentiated", "differentiates",
    "hooks_differentiate", "owned_attributes",
)  # fmt: skip


class Facts:
    def __init__(self, analyser: Analyser) -> None:
        self.analyser = analyser
        self.attributes = Attributes(self)
        self.modes = CalledModes(self)
        self.numbers = Numbers(analyser.program, self)
        self._calls: dict[tuple[str, str], list[tuple[Summary, CallRecord]]] = {}
        #: by name, the methods called on modules of unknown class, with the caller, the module and whether it is frozen
        self.unresolved_methods: dict[str, list[tuple[Summary, V, bool | None]]] = {}
        self._parameters: dict[tuple[tuple[str, str], str, bool], V | None] = {}
        self._usual: dict[tuple[tuple[str, str], str], bool | None] = {}
        self.partners = Partners(analyser.program)
        self.methods = NamedMethods(analyser.program, self.partners)
        #: see `attributes_by_name.held_module`
        self.held: dict[str, Held | None] = {}
        self._overridden: dict[tuple[str, str], list[tuple[Summary, CallRecord]]] = {}
        #: the memo of `memlint.analysis.facts.module_facts`, valid until `learn`
        self.context_modes: dict[tuple[Summary, tuple[Path, ...], str, int], bool | None] = {}
        self.may_train: dict[tuple[Summary, int], bool] = {}
        #: the memo of `memlint.analysis.demand.gradient_demand`: why a backward reaches graphs, by call depth
        self.reached: dict[tuple[Summary, Sources, int], str] = {}
        #: up to two runs of a function that a backward reaches, so that a run can ask for another one
        self.trained: dict[Summary, list[Source]] = {}
        #: functions that are passed as values, whose callers may set a guard
        self._handed_on: frozenset[tuple[str, str]] = frozenset()

    def learn(self) -> None:
        """Take the call records of all summaries, and drop the answers that depend on them."""
        calls: dict[tuple[str, str], list[tuple[Summary, CallRecord]]] = {}
        for summary in self.analyser.general_summaries():
            for record in summary.calls.values():
                calls.setdefault(record.callee, []).append((summary, record))
        self._calls = calls
        given = (value for records in calls.values() for _, record in records for value in record.args.values())
        put_on = (summary.notes.put_on for summary in self.analyser.general_summaries())
        self._handed_on = frozenset[tuple[str, str]]().union(
            *put_on, *(referred_functions(value) for value in given if value.refs)
        )
        self._parameters.clear()
        self._usual.clear()
        self.numbers = Numbers(self.analyser.program, self)
        self.modes.learn(self.analyser.general_summaries())
        self.unresolved_methods = {}
        for summary in self.analyser.general_summaries():
            for name, module, frozen in summary.unresolved_methods.values():
                self.unresolved_methods.setdefault(name, []).append((summary, module, frozen))
        self._overridden.clear()
        self.context_modes.clear()
        self.may_train.clear()
        self.reached.clear()
        self.trained.clear()
        for name in _LEARNT:
            vars(self).pop(name, None)
        self.attributes.renew()

    def close(self) -> None:
        """Drop the calls and all answers."""
        for held in (
            self._calls,
            self.unresolved_methods,
            self._parameters,
            self._overridden,
            self.context_modes,
            self.may_train,
            self.reached,
        ):
            held.clear()
        self.modes.forget()
        self.attributes.renew()

    def is_handed_on(self, function: Function) -> bool:
        """Whether a call passes the function as a value, an attribute takes it (``net.forward = traced``), or a table
        holds it. Its calls, and their arguments, are then not all known."""
        return function.key in self._handed_on or stands_in_table(self.analyser.program, function)

    def calls_of(self, function: Function) -> list[tuple[Summary, CallRecord]]:
        """The known calls of a function. For a method without any, those of the base method that it overrides."""
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

    @functools.cached_property
    def differentiated(self) -> frozenset[tuple[str, ...]]:
        """The places in ``self`` through which a backward of some method goes."""
        return frozenset(
            item.steps
            for summary in self.analyser.general_summaries()
            for reached, *_ in summary.backwards
            for item in reached
            if isinstance(item, Path) and item.steps and item.root == f"p:{summary.function.own_name}"
        )

    @functools.cached_property
    def _variables_in_backward(self) -> frozenset[tuple[Source, str]]:
        return frozenset(
            (_scope(summary, item), item.root)
            for summary in self.analyser.general_summaries()
            for reached, *_ in summary.backwards
            for item in reached
            if isinstance(item, Path) and item.root.startswith(("c:", "g:"))
        )

    def variable_in_backward(self, summary: Summary, place: Path) -> bool:
        """Whether a backward of some function goes through a global or a closure variable."""
        return (_scope(summary, place), place.root) in self._variables_in_backward

    def in_backward(self, steps: tuple[str, ...]) -> bool:
        """Whether a backward of some method goes through a place in ``self``, a part of it, or its whole."""
        return any(steps[: len(other)] == other or other[: len(steps)] == steps for other in self.differentiated)

    @functools.cached_property
    def owned_attributes(self) -> frozenset[str]:
        """The names of the attributes whose parameters some optimizer of the project takes."""
        entries = [entry for summary in self.analyser.general_summaries() for entry in summary.notes.owned if entry]
        return frozenset(key.steps[-1] for entry in entries for key in entry if isinstance(key, Path) and key.steps)

    @functools.cached_property
    def _skipped(self) -> frozenset[str]:
        return frozenset(name for summary in self.analyser.general_summaries() for name in summary.notes.skipped)

    def is_skipped(self, function: Function) -> bool:
        """Whether the only calls of a function's name are in code that never runs."""
        return not self.calls_of(function) and function.name in self._skipped

    @functools.cached_property
    def differentiates(self) -> bool:
        """Whether a module of the project, other than a loss, differentiates in its forward. A model of unknown class
        may be that module."""
        return any(
            summary.notes.gradients
            and function.name == "forward"
            and function.cls is not None
            and not _LOSSES.search(function.cls.node.name.lower())
            and self.analyser.program.is_module(function.cls)
            for summary in self.analyser.general_summaries()
            for function in (summary.function,)
        )

    @functools.cached_property
    def hooks_differentiate(self) -> bool:
        """Whether a function of the project that is added as a hook differentiates, or runs a backward."""
        added = (call.hook for summary in self.analyser.general_summaries() for call in summary.notes.hooks.values())
        functions = (self.analyser.function_at(key) for hook in added for key in referred_functions(hook))
        hooks = (self.analyser.summary(function) for function in functions if function is not None)
        return any(
            one is not None and bool(one.notes.gradients or one.backwards or one.notes.blind_backward) for one in hooks
        )

    # ------------------------------------------------------------------------------------ parameters

    def parameter(self, function: Function, name: str, of_tests: bool = True) -> V | None:
        """The join of what all known calls pass for a parameter; None if it is unknown or no plain value.
        ``of_tests``: the calls of tests count as well."""
        key = (function.key, name, of_tests)
        if key not in self._parameters:
            self._parameters[key] = None  # the answer for a recursive call, which adds nothing
            self._parameters[key] = self._passed(function, name, of_tests)
        return self._parameters[key]

    def _passed(self, function: Function, name: str, of_tests: bool) -> V | None:
        found = NOTHING
        for summary, record in self._calls.get(function.key, ()):
            if not of_tests and in_tests(summary.module.key):
                continue
            value = record.args.get(name)
            if value is None:
                return None
            known = self.settled(summary, value, of_tests)
            if known is None:
                return None
            if known.kinds & MODULE and known.kinds & TREE and not known.src:
                known = known.as_module()  # ``torch.load(path) if resume else Net()``: a module that was stored whole
            found = join(found, as_held(summary.exit, known) if summary.exit is not None else known)
        if found.is_only(CONTAINER | NONE) and any(ref.kind in ("over", "member") for ref in found.refs):
            return V(found.kinds, refs=found.refs)
        if not found.kinds or found.kinds & ~(_PLAIN | DATA) or found.is_only(NONE | DATA):
            return None
        refs = bound_at(found, Path(f"p:{name}")).refs
        return V(found.kinds, refs=refs, device=found.device, size=found.size, extent=found.extent)

    def handlers(self, function: Function, callee: V) -> frozenset[Ref]:
        """See `memlint.analysis.facts.common_arguments.handed_over`."""
        return handed_over(self.analyser, function, callee)

    def number(self, expr: ir.Expr, function: Function) -> int | None:
        """The upper bound of an integer expression of a function; None if it is unknown."""
        value = self.numbers.at(expr, function)
        self.analyser.summaries.note("number", (function.key, id(expr), expr.at), (expr, function), value)
        return value

    def usual(self, function: Function, name: str) -> bool | None:
        """The flag that every known call passes for a parameter, if it is the default; None if a call may pass
        another."""
        key = (function.key, name)
        if key not in self._usual:
            default = next((param.default for param in function.params if param.name == name), None)
            value = default.value if isinstance(default, ir.Const) else None
            self._usual[key] = flag = value if isinstance(value, bool) else None
            if flag is not None and not all(
                self._passes(summary, record.args.get(name), flag)
                for summary, record in self._calls.get(function.key, ())
            ):
                self._usual[key] = None
        return self._usual[key]

    def _passes(self, summary: Summary, value: V | None, flag: bool) -> bool:
        if value is None or value.is_only(DATA):
            return value is not None and value.const is flag
        own = [path for path in value.syms if not path.steps and path.root.startswith("p:")]
        return len(own) == len(value.syms) == 1 and self.usual(summary.function, own[0].root[2:]) is flag

    def settled(self, summary: Summary, value: V, of_tests: bool = True) -> V | None:
        """A value at a call site, with the caller's own parameters resolved in turn; None if one is unknown."""
        if not value.kinds & UNKNOWN:
            return value
        found = NOTHING
        for path in ordered(value.syms):
            if path.steps or not path.root.startswith("p:"):
                return None
            inner = self.parameter(summary.function, path.root[2:], of_tests)
            if inner is None:
                return None
            found = join(found, inner)
        return found if found.kinds else None

    @functools.cached_property
    def attributes_in_backward(self) -> frozenset[str]:
        """The attributes (``.saved_log_probs``) whose members go into a backward of some function."""
        return frozenset(
            step
            for summary in self.analyser.general_summaries()
            for reached, *_ in summary.backwards
            for item in reached
            if isinstance(item, Path) and "[]" in item.steps
            for step in item.steps
            if step.startswith(".")
        )

    # ------------------------------------------------------------------------------------ free variables

    def free_variable(self, function: Function, name: str) -> V | None:
        """What the enclosing function's assignments say of a free variable without interpreting it; None for
        unknown."""
        around = function.owner(name)
        if around is None:
            return None
        param = next((param for param in around.params if param.name == name), None)
        declared = self._declared(around, param) if param is not None else None
        if declared is not None:
            return declared
        if param is not None and param is around.params[0] and param.kind in ("positional-only", "positional"):
            own = self.analyser.own_object(around)
            if own is not None and name not in assigned_names(around.body)[0]:
                return own
        if name in uses_of(self.analyser.program, around):
            return V(MODULE)
        if param is not None:
            return None
        found = NOTHING
        for statement in walk_statements(around.body, into_definitions=False):
            if isinstance(statement, ir.Import | ir.ImportFrom):
                imported = self.analyser.program.imported(around.module, statement, name)
                if imported[0] != "none":
                    return self.analyser.global_value(*imported)
            if isinstance(statement, ir.ClassDef) and statement.name == name:
                inner = around.module.class_at(around.unit, statement.at)
                return self.analyser.global_value("class", inner) if inner is not None else None
            if isinstance(statement, ir.FunctionDef) and statement.name == name:
                made = around.module.by_place.get(around.unit, {}).get(statement.at)
                return self.analyser.global_value("function", made) if made is not None else None
            if isinstance(statement, ir.Assign) and any(is_name(target, name) for target in statement.targets):
                plain = isinstance(statement.value, ir.Const | ir.Display | ir.DictDisplay | ir.Call) or (
                    isinstance(statement.value, ir.Name) and statement.value.id not in around.locals
                )
                found = join(
                    found, self.analyser.evaluate_constant(around.module, statement.value) if plain else UNKNOWN_VALUE
                )
        if not found.kinds or found.kinds & UNKNOWN:
            return None
        return found

    def _declared(self, function: Function, param: ir.Param) -> V | None:
        """The object that a parameter is by its annotation; None if the function binds the name again."""
        if param.annotation is None or param.name in assigned_names(function.body)[0]:
            return None
        value = self.analyser.annotated(function.module, param.annotation)
        return value if value is not None and value.refs and value.is_only(MODULE | INSTANCE) else None


def _scope(summary: Summary, place: Path) -> Source:
    """The scope of a shared variable: for a closure variable, the top-level definition around it."""
    return (summary.module.key, summary.function.unit) if place.root.startswith("c:") else ()
