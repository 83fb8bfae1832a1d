"""The callers outside the linted files that have to be analysed as context.

What a function stores, runs or differentiates is judged by its callers: by their grad mode, arguments and loops. Most
functions do nothing of that kind, and their callers are not needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memlint.analysis.calls.lifted_stores import takes_activations
from memlint.analysis.demand.unneeded_runs import gives_a_graph
from memlint.analysis.demand.used_up_graphs import used_up
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import DATA, NONE
from memlint.analysis.facts.analyser import Analyser
from memlint.analysis.index.partners import Partners
from memlint.analysis.index.program import Function, Program
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.index.screen import relevant_modules
from memlint.analysis.syntax.syntax import parts, walk_statements, with_lambdas
from memlint.ir import nodes as ir

#: the most units per name that are searched for callers. If there are more, the first ones are used, and a missing
#: guard proves nothing
MAX_CALLERS = 12
#: up to this many functions in the callers' units, all are analysed, as they tell more than their calls; beyond it,
#: only those that mention a callee
MAX_WHOLE_UNITS = 150
#: how many levels of callers are analysed
MAX_LEVELS = 3
#: observations of a function that depend on its callers
_NOTES = (
    "blind_backward", "gradients", "hooks", "inert", "loaders", "logged", "metrics", "on_context", "outside", "owned",
    "rebound", "retained", "stale",
)  # fmt: skip


def callers_of(analyser: Analyser, functions: Sequence[Function], linted: Iterable[str]) -> list[Function]:
    """The functions of other files that call one of these by name, if grad mode and arguments matter for it; and those
    that call what these run in other files."""
    inside = set(linted)
    found: dict[tuple[str, str], Function] = {}
    queried = [function for function in functions if _depends_on_callers(analyser, function)]
    queried += [function for function in _origins_of_runs(analyser, queried) if function.module.key not in inside]
    keys = {function.key for function in queried}
    for _ in range(MAX_LEVELS):
        above = [one for one in functions if one.key not in keys and _calls(analyser, one, keys)]
        queried += above
        keys |= {function.key for function in above}
    for _ in range(MAX_LEVELS):
        new = {function.key: function for function in _direct(analyser, queried, inside) if function.key not in found}
        found |= new
        keys = {function.key for function in queried}
        queried = [function for function in new.values() if _calls(analyser, function, keys)]
        if not queried:
            break
    return list(found.values())


def _calls(analyser: Analyser, function: Function, keys: set[tuple[str, str]]) -> bool:
    """Whether a function calls one of the queried ones, so that its own callers matter too."""
    summary = analyser.summary(function)
    return summary is None or any(record.callee in keys for record in summary.calls.values())


def _origins_of_runs(analyser: Analyser, functions: Iterable[Function]) -> Iterator[Function]:
    """The functions that contain the model runs which these functions lift from their callees."""
    for function in functions:
        summary = analyser.summary(function)
        for run in summary.runs.values() if summary is not None else ():
            if run.origin is not None:
                yield run.origin[0].function
        for record in summary.calls.values() if summary is not None else ():
            has_effects = record.counts and _has_effects(analyser, record.callee)
            if has_effects and (callee := analyser.function_at(record.callee)) is not None:
                yield callee  # its model runs are known once its callers are


def _direct(analyser: Analyser, functions: Sequence[Function], inside: set[str]) -> list[Function]:
    """The functions in units of other files that call one of these by name."""
    program, called = analyser.program, _Called(functions, analyser.facts.partners)
    naming = {key for name in called.names for key in program.words.files(name)}
    others = [key for key in program.project.sources if key not in inside and key in naming]
    found: dict[str, list[tuple[str, int]]] = {}
    by_name: dict[tuple[str, int], set[str]] = {}
    for key in sorted(relevant_modules(program, others)):
        index = program.module(key).index
        # (``from train import train_sparse as train``)
        known_as = {each.asname: each.name for each in index.imports if each.asname and each.name in called.names}
        meant: dict[str, bool] = {}
        for number, unit in enumerate(index.units):
            for shown in unit.calls & (called.names | known_as.keys()):
                name = known_as.get(shown) or shown
                if shown not in meant:
                    meant[shown] = called.may_be_meant(program, key, shown, name)
                if meant[shown]:
                    found.setdefault(name, []).append((key, number))
                    by_name.setdefault((key, number), set()).add(shown)
    units = {place for places in found.values() for place in places[:MAX_CALLERS]}
    around: dict[tuple[str, int], list[Function]] = {}
    for key, number in sorted(units):
        module = program.module(key)
        module.build(number)
        around[key, number] = [function for function in list(module.functions.values()) if function.unit == number]
        if number == 0:
            around[key, number].insert(0, module.main)
    if sum(map(len, around.values())) <= MAX_WHOLE_UNITS:
        return [function for functions in around.values() for function in functions]
    return [function for place, functions in around.items() for function in _mentioning(functions, by_name[place])]


def _mentioning(functions: Sequence[Function], names: set[str]) -> Iterator[Function]:
    """Those functions of a unit that mention one of the names, or an attribute that is assigned from one (``self.loss =
    ComputeLoss(…)``), and the functions around them."""
    known = names | {name for function in functions for name in _assigned_attributes(function, names)}
    found: dict[Function, None] = {}
    for function in functions:
        if not known.isdisjoint(_words(parts(function.body))):
            around: Function | None = function
            while around is not None and around not in found:
                found[around] = None
                around = around.around
    return iter(found)


def _assigned_attributes(function: Function, names: set[str]) -> Iterator[str]:
    """The attributes that are assigned an expression which mentions one of the names."""
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and not names.isdisjoint(_words([statement.value])):
            for target in statement.targets:
                if isinstance(target, ir.Attr):
                    yield target.name


def _words(expressions: Iterable[ir.Expr]) -> set[str]:
    """The variables and attributes in expressions, including the bodies of lambdas."""
    found: set[str] = set()
    for part in with_lambdas(expressions):
        if isinstance(part, ir.Name):
            found.add(part.id)
        elif isinstance(part, ir.Attr):
            found.add(part.name)
    return found


def _depends_on_callers(analyser: Analyser, function: Function) -> bool:
    """Whether the findings in a function depend on its callers."""
    summary = analyser.summary(function)
    part = function.cls is not None and analyser.program.is_module(function.cls)
    called_by_framework = summary is not None and summary.hook is not None
    if function.node is None or (called_by_framework and not part):
        return False
    if summary is None or summary.cut_short or summary.backwards or summary.yields:
        return True
    layer = part and _is_layer(summary)
    if any(
        _may_be_reported(analyser, summary, store) for store in summary.stores.values() if not (layer and store.local)
    ):
        return True
    if called_by_framework:  # its callers may tell which networks it has
        return any(used_up(analyser, summary, run.marks, of_gradients=True) for run in summary.runs.values())
    if not layer and summary.runs:
        return True  # the parts that a layer runs are judged where it is run
    if not part and any(record.counts and _has_effects(analyser, record.callee) for record in summary.calls.values()):
        return True
    return any(getattr(summary.notes, note) for note in _NOTES) or bool(summary.notes.left_rounds and summary.runs)


def _is_layer(summary: Summary) -> bool:
    """Whether a method of a module returns the graph that it builds, and neither trains nor evaluates: what it runs and
    stores is for its caller to judge."""
    if (
        summary.may_train
        or is_evaluation_name(summary.function)
        or any(run.mode is True for run in summary.runs.values())
    ):
        return False
    return gives_a_graph(summary)


def _has_effects(analyser: Analyser, key: tuple[str, str]) -> bool:
    """Whether a function does more than compute its return value. True if unknown."""
    summary = analyser.summary(analyser.function_at(key))
    return (
        summary is None
        or summary.cut_short
        or bool(summary.runs or summary.stores or summary.backwards or summary.yields)
    )


def _may_be_reported(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the callers matter for a store that is reported in this function. Arguments that it stores are reported
    at the call; here only a graph that the function builds counts, or one that a forward is given."""
    value = store.entering
    sources = value.src - {store.place}
    if store.kind == "cat" or takes_activations(analyser, summary):
        return True
    if any(item in summary.graphs.nodes for item in summary.graphs.closure(sources)):
        return True
    return not sources and not value.is_only(DATA | NONE)


class _Called:
    """The names by which functions, and the classes of methods, are called."""

    def __init__(self, functions: Sequence[Function], partners: Partners) -> None:
        methods = {
            function.name
            for function in functions
            if not function.name.startswith("__") and function.name != "forward" and "." in function.qual
        }
        #: top-level definitions, by name
        self._top_level: dict[str, set[tuple[str, str]]] = {}
        for function in functions:
            top = function.cls if function.cls is not None else function
            if "." not in top.qual:
                self._top_level.setdefault(top.qual, set()).add(top.key)
        inner = {
            function.cls.node.name for function in functions if function.cls is not None and "." in function.cls.qual
        }
        self._anywhere = methods | inner
        self.names = self._anywhere | self._top_level.keys()
        self._partners = partners
        #: the files that define what each name calls
        self._files: dict[str, set[str]] = {}
        for function in functions:
            cls = function.cls
            called = {function.name} if cls is None else {function.name, cls.node.name, cls.qual}
            for name in called & self.names:
                self._files.setdefault(name, set()).add(function.module.key)

    def may_be_meant(self, program: Program, key: str, shown: str, name: str) -> bool:
        """Whether a call of ``shown`` in a file may mean one of the functions called ``name``. False if the file means
        another definition, or belongs to another program."""
        if name in self._anywhere:
            return any(self._partners.may_meet(file, key) for file in self._files[name])
        if not any(self._partners.may_import(file, key) for file in self._files[name]):
            return False
        index = program.module(key).index
        imported = (each.binds for each in index.imports)
        if shown not in {definition.name for definition in index.definitions} and shown not in imported:
            return True  # a member of a module, or unknown
        kind, what = program.find(program.module(key), shown)
        return kind not in ("class", "function") or what is None or what.key in self._top_level[name]
