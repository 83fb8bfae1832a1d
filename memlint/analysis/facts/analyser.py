"""One analysis run over a project: summaries on demand, and the project's facts about values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from memlint import knowledge
from memlint.analysis.domain.detector import Detector
from memlint.analysis.domain.graphs import Node
from memlint.analysis.domain.literal_values import constant
from memlint.analysis.domain.state import AMBIENT, OFF, ON, State, width
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.interpreter import Interpreter
from memlint.analysis.domain.summary.sharing import Shared
from memlint.analysis.domain.summary.summaries import Summaries
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import batch_tree
from memlint.analysis.domain.values import (
    ACCELERATOR,
    CALLABLE,
    CONTAINER,
    DATA,
    INSTANCE,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OUTPUT,
    SCALAR,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Flags,
    Path,
    Ref,
    Source,
    V,
    join,
    ordered,
)
from memlint.analysis.facts.definition_values import DefinitionValues, callable_of, with_entries
from memlint.analysis.facts.facts import Facts
from memlint.analysis.facts.hooks import FIRST, hook_of
from memlint.analysis.index.program import Class, Function, Module, Program, in_tests
from memlint.analysis.index.uses import uses_of
from memlint.analysis.reach.known_calls import KnownCalls
from memlint.analysis.reach.unused_definitions import Unused
from memlint.analysis.syntax.bindings import targets
from memlint.analysis.syntax.syntax import is_name, walk_statements
from memlint.analysis.transfer.annotations import annotation_value
from memlint.analysis.transfer.handed_on import outside
from memlint.analysis.transfer.held_values import as_held
from memlint.analysis.transfer.library.instances import names_class
from memlint.analysis.transfer.modules.flags import chosen, flags_of, mode_flag, own_calls
from memlint.analysis.transfer.modules.guards import decorated_grad, switches_off
from memlint.analysis.transfer.modules.modes import frozen_class
from memlint.analysis.transfer.user_containers import kinds_of_object
from memlint.finding import CUT_SHORT
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.calls_by_name import Mention
    from memlint.analysis.judge.reasons import Observer

#: bytes of source beyond which a project is analysed with less memory, as its parts may run in parallel
ROOM = 8_000_000
#: with more graph sources than this at its exit, a function's summary is cut short
MAX_SOURCES = 20_000


class Analyser(DefinitionValues):
    """One run over a project. All results are computed on demand and kept."""

    def __init__(self, project: Any, interpreter: Interpreter, detectors: Sequence[Detector] = ()) -> None:
        super().__init__(Program(project))
        self.interpreter = interpreter
        #: the rules' own detectors, and the calls that they need noted: all, and those with a data loader argument
        self.detectors = detectors
        self.noted_calls = frozenset[str]().union(*(one.calls for one in detectors))
        self.noted_of_loaders = frozenset[str]().union(*(one.loader_calls for one in detectors))
        #: whether the project is so large that summaries are stored in less memory, at a cost in time
        self.is_large = sum(map(project.size, project.sources)) > ROOM
        self.unused = Unused(self.program)
        self.known_calls = KnownCalls(self.program, self.unused)
        #: by file and name, the grad mode in which each decorator of the project runs a function; None for unchanged
        self.wrappers: dict[tuple[str, str], int | None] = {}
        #: the mentions of each function name queried so far (see `calls_by_name`); None for too many
        self.mentions: dict[tuple[str, tuple[str, ...]], tuple[Mention, ...] | None] = {}
        #: interns the sets and values of finished summaries
        self.shared = Shared()
        self.facts = Facts(self)
        self.summaries = Summaries(self._interpret, self._answer, spare=self.is_large)
        self._flags: dict[tuple[str, str], frozenset[str]] = {}
        self._constants: dict[tuple[str, int, int], V] = {}
        #: by module, the networks that a computed name may select; empty if it may select anything
        self.networks_in: dict[str, frozenset[Ref]] = {}
        self.remarks: list[str] = []
        #: receives the reasons why candidates are dropped; None for no observer
        self.observer: Observer | None = None
        #: the errors of functions whose analysis failed, by (module, qualified name)
        self.errors: dict[tuple[str, str], Exception] = {}
        #: the first error of each rule's detector, by (path of the file, code)
        self.failed: dict[tuple[str, str], Exception | SystemExit] = {}

    def close(self) -> None:
        """Drop all results. No query may follow."""
        self.summaries.close()
        self.facts.close()
        self.program.close()
        self.shared = Shared()
        own = (self._flags, self._lambdas, self._constants, self._externals)
        for held in (self.wrappers, self.mentions, self.networks_in, *own):
            held.clear()

    # ------------------------------------------------------------------------------------ summaries

    def summary(
        self, function: Function | None, bound: dict[str, V] | None = None, trains: bool | None = None
    ) -> Summary | None:
        """The function's summary, specialised to the arguments ``bound`` and to the mode of its module (``trains``).
        None for no function, if it is being analysed, or if the call depth is too large."""
        if function is None:
            return None
        if bound is None:
            return self.summaries.get(function)
        return self.summaries.get(function, chosen(self.flags(function), bound, trains))

    def flags(self, function: Function) -> frozenset[str]:
        """The flags of a function. A method that calls a method or part that reads the module's mode has the mode as a
        flag too."""
        if function.key not in self._flags:
            found = self._flags[function.key] = flags_of(function)
            own = mode_flag(function)
            if function.cls is not None and own and own not in found and self.program.is_module(function.cls):
                cls = function.cls
                called = (method for name in sorted(own_calls(function)) for method in self._methods_behind(cls, name))
                if any(mode_flag(method) in self.flags(method) for method in called):
                    self._flags[function.key] = found | {own}
        return self._flags[function.key]

    def _methods_behind(self, cls: Class, name: str) -> Iterator[Function]:
        """The functions that ``self.name(…)`` runs in a module: its method, or the forward of the part of that name."""
        method = self.program.method(cls, name)
        if method is not None:
            yield method
            return
        for ref in ordered(self.facts.attributes.value(cls, name).refs):
            forward = self.program.method(self.cls(ref) if ref.kind == "instance" else None, "forward")
            if forward is not None:
                yield forward

    def _answer(self, kind: str, about: Any) -> Any:
        """The current answer to a query that a summary was made from."""
        if kind == "frozen":
            return frozen_class(self, about)
        answers: dict[str, Callable[..., Any]] = {
            "parameter": self.facts.parameter,
            "usual": self.facts.usual,
            "attribute": self.facts.attributes.value,
            "number": self.facts.numbers.at,
            "constant": self.evaluate_constant,
        }
        return answers[kind](*about)

    def _interpret(self, function: Function, flags: Flags) -> Summary:
        fn = FunctionState(self, function, flags)
        try:
            self._run(fn)
        except Exception as error:  # a failed function is recorded, and the others are still analysed
            if not isinstance(error, RecursionError):
                self.errors[function.key] = error
            fn = self._cut_short(fn)
        fn.width = width(fn.exit) if fn.exit is not None else 0
        if fn.width > MAX_SOURCES:
            fn = self._cut_short(fn)
        if fn.cut_short or fn.is_wide:
            linted = self.program.project.sources[function.module.key].linted
            context = "" if linted else " (not linted)"
            self.remarks.append(f"{function.module.key}: {function.qual}: {CUT_SHORT}{context}")
        return fn

    def again(self, function: Function) -> Summary:
        """A summary that is computed again and not stored, for an observer of the interpretation."""
        return self._interpret(function, ())

    def _run(self, fn: FunctionState) -> None:
        """Interpret the body of a function from its entry state."""
        function = fn.function
        hook = self.hook(function)
        grad = decorated_grad(fn, function)
        fn.restores = grad != AMBIENT
        if grad == AMBIENT and hook is not None and hook.grad in ("on", "off"):
            grad = ON if hook.grad == "on" else OFF
        if function.node is None:
            grad = ON
        elif grad == AMBIENT and (switches_off(function.module.statements) or self._made_off(function)):
            grad = OFF
        state = State(grad)
        fn.entry = grad
        for position, param in enumerate(function.params):
            state.env[param.name] = self._parameter(function, param, position, hook)
            if hook is not None and hook.outputs == position and position:
                state.env[param.name] = self._outputs(fn, param, hook)
        for name, literal in fn.flags:
            if "." in name:
                continue
            state.env[name] = NONE_VALUE if literal is None else V(DATA, size=SCALAR, const=literal)
        fn.hook = hook
        if function.name == "__init__" and function.takes_self and function.params:
            state.making = f"p:{function.params[0].name}"
        self.interpreter.run(fn, state, backward=hook is not None and hook.returns == "backward")

    def _cut_short(self, summary: Summary) -> FunctionState:
        """An unknown summary, in place of one that failed or is too large."""
        empty = FunctionState(self, summary.function, summary.flags)
        empty.hook = summary.hook
        empty.cut_short = True
        return empty

    def _parameter(self, function: Function, param: ir.Param, position: int, hook: knowledge.Hook | None) -> V:
        path = Path(f"p:{param.name}")
        place = frozenset((path,))
        own = self.own_object(function) if position == 0 else None
        if own is not None:
            return own if own.kinds & CALLABLE else own.but(syms=place)
        if hook is not None and hook.batch == position and hook.batch:
            return batch_tree(ACCELERATOR).but(syms=place)
        known = (
            annotation_value(self, function.module, param.annotation, function.around)
            if param.annotation is not None
            else None
        )
        if known is not None and known.kinds & MODULE and param.default is not None:
            usual = self.evaluate_constant(function.module, param.default)
            if usual.refs and all(ref.kind == "class" or names_class(ref.name) for ref in usual.refs):
                return usual.but(syms=place)  # ``norm: nn.Module = nn.LayerNorm``: the argument is a class
        if known is None:
            known = self.facts.parameter(function, param.name)
            self.summaries.note("parameter", (function.key, param.name), (function, param.name), known)
        if hook is not None and hook.model == position and hook.model and not (known and known.kinds & MODULE):
            return V(MODULE, syms=place)
        if param.kind in ("star", "double-star"):
            return V(UNKNOWN | CONTAINER, place, syms=place)
        if known is None or not known.kinds:
            return V(UNKNOWN, place, syms=place)
        if known.kinds & DATA and known.is_only(DATA | NONE):
            return known
        carries = not known.kinds & ~(MODULE | INSTANCE | CALLABLE | CONTAINER)
        return known.but(src=frozenset() if carries else place, syms=place)

    @staticmethod
    def _outputs(summary: Summary, param: ir.Param, hook: knowledge.Hook) -> V:
        """The argument that a framework passes to a hook for a step's outputs: on the device, and with their graph if
        the framework also runs the hook in training and detaches nothing."""
        place = frozenset((Path(f"p:{param.name}"),))
        if hook.grad != "ambient":
            return V(TREE, size=OUTPUT, device=ACCELERATOR, syms=place)
        key = (param.at, "outputs")
        summary.graphs.record(key, Node(param.at, param.name, definite=True, guess=True, model=True))
        return V(TREE, frozenset((key,)), bare=True, size=OUTPUT, syms=place)

    def own_object(self, function: Function) -> V | None:
        """The object, or the class, that a method gets as its first argument; None for another function."""
        if not function.takes_self or function.cls is None:
            return None
        key, name = function.module.key, function.cls.qual
        if "classmethod" in function.decorator_names:
            return callable_of("class", key, name)
        return V(kinds_of_object(self.program, function.cls), refs=frozenset((Ref("instance", key, name),)))

    def hook(self, function: Function) -> knowledge.Hook | None:
        """The framework hook that a method is; None for no hook."""
        return hook_of(self.program, function)

    def _made_off(self, function: Function) -> bool:
        """Whether the constructor of the method's class, or what a server calls before the first request, turns grad
        mode off permanently."""
        if function.cls is None or function.name in FIRST or not function.takes_self:
            return False
        first = (self.program.method(function.cls, name) for name in FIRST)
        return any(one is not None and switches_off(one.body) for one in first)

    # ------------------------------------------------------------------------------------ definitions as values

    def local_class(self, summary: Summary, node: ir.ClassDef) -> V:
        summary.module.build(summary.function.unit)
        cls = summary.module.class_at(summary.function.unit, node.at)
        return self.global_value("class", cls) if cls is not None else UNKNOWN_VALUE

    def global_value(self, kind: str, what: Any) -> V:
        """The value of a definition that `Program.find` returned."""
        if kind in ("class", "function") and what is not None:
            return callable_of("func" if kind == "function" else kind, what.module.key, what.qual)
        if kind == "module":
            return callable_of("module", what, "")
        if kind == "package":
            return callable_of("package", "", what)
        if kind == "ext":
            return self.external(what)
        if kind == "value":
            return self._variable(*what)
        return UNKNOWN_VALUE

    def _variable(self, module: Module, name: str) -> V:
        """The join of all values that are assigned to a module's variable."""
        found = NOTHING
        for statement in (*module.bindings.get(name, ()), *written(module, name)):
            if isinstance(statement, ir.Assign | ir.AnnAssign) and statement.value is not None:
                direct = any(is_name(target, name) for target in targets(statement))
                found = join(found, self.evaluate_constant(module, statement.value) if direct else UNKNOWN_VALUE)
            else:
                found = join(found, UNKNOWN_VALUE)
        if found.may_be_module() and name in uses_of(self.program, module.main):
            return V(MODULE, refs=frozenset(ref for ref in found.refs if ref.kind == "instance"))
        return with_entries(self, module, name, found) if found.kinds else UNKNOWN_VALUE

    def evaluate_constant(self, module: Module, expr: ir.Expr) -> V:
        """The value of an expression in a module's scope, without the objects that it creates."""
        if type(expr) is ir.Const:
            return constant(expr.kind, expr.value)  # depends on no other query
        value = self._constants.get((module.key, id(expr), expr.at))
        if value is None:
            value = self.summaries.apart(lambda: self._evaluate_constant(module, expr))
        self.summaries.note("constant", (module.key, id(expr)), (module, expr), value)
        return value

    def _evaluate_constant(self, module: Module, expr: ir.Expr) -> V:
        key = (module.key, id(expr), expr.at)
        self._constants[key] = UNKNOWN_VALUE  # the answer for a recursive query
        fn = FunctionState(
            self, Function(module, 0, ir.FunctionDef(0, "<constant>", (), (), None, (), False, False), "<constant>")
        )
        state = State(OFF)
        value = outside(as_held(state, self.interpreter.evaluate(fn, state, expr)))
        self._constants[key] = value
        return value

    def annotated(self, module: Module, annotation: ir.Expr) -> V | None:
        return annotation_value(self, module, annotation)

    def usual(self, function: Function, name: str) -> bool | None:
        """The value of a flag if it is the default and no known call passes another; else None."""
        value = self.facts.usual(function, name)
        self.summaries.note("usual", (function.key, name), (function, name), value)
        return value

    def attribute(self, cls: Class, name: str) -> V:
        """The join of what the class and its ancestors assign to an instance's attribute."""
        value = self.facts.attributes.known(cls, name)
        if value is None:
            value = self.summaries.apart(lambda: self.facts.attributes.value(cls, name))
        self.summaries.note("attribute", (cls.key, name), (cls, name), value)
        return value

    def free_variable(self, function: Function, name: str) -> V | None:
        return self.facts.free_variable(function, name)

    def methods_named(self, name: str, asker: Function) -> list[Function]:
        """The project's methods of that name that code of ``asker`` may mean; empty if there are too many."""
        found = self.facts.methods.few(name, asker.module.key)
        if not found or in_tests(asker.module.key):
            return found
        return [method for method in found if not in_tests(method.module.key)]

    def is_buffer(self, function: Function, place: Source) -> bool:
        """Whether a place is in a buffer that the class of a method registers: a statistic, and no recurrent state."""
        cls, steps = function.cls, place.steps if isinstance(place, Path) else ()
        return cls is not None and bool(steps) and steps[0][1:] in self.facts.attributes.buffers(cls)

    def renew(self) -> None:
        """Begin stratum 1: use the call-site facts of stratum 0, and recompute the summaries that depend on them."""
        self.facts.learn()
        self.summaries.renew()
        self._constants.clear()

    def settle(self) -> None:
        """End stratum 1: use its call-site facts. Summaries do not change any more."""
        self.facts.learn()
        self.summaries.settle()
        self.shared = Shared()

    def general_summaries(self) -> Iterator[Summary]:
        """All summaries that were computed, except those that are specialised to constant arguments."""
        return self.summaries.general()


def written(module: Module, name: str) -> Iterator[ir.Stmt]:
    """The statements of functions that bind a module's variable by a ``global`` declaration."""
    for function in module.writers(name):
        for statement in walk_statements(function.body, into_definitions=False):
            if isinstance(statement, ir.Assign) and any(is_name(target, name) for target in statement.targets):
                yield statement
