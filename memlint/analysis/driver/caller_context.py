"""The functions of other files that are analysed beside the linted ones, for what they say of these.

What a function keeps, runs or differentiates is judged by who calls it: under which grad mode, with what, in which
loop. Most functions of a project do nothing of that kind, and nobody is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from memlint.analysis.calls.lifted_stores import takes_activations
from memlint.analysis.demand.unneeded_runs import gives_a_graph
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

#: units of other files that are read to learn how a function of one name is called. Of more, the first ones: that
#: nobody is seen to guard a call says nothing where nobody was asked
MAX_CALLERS = 12
#: functions of the units of callers that are all read, for what else they tell; of more, those that name a callee
FEW = 150
#: how far up callers of callers are asked for, where these pass on what they run
LEVELS = 3
#: what a function may note of itself that hangs on its callers
_NOTES = (
    "blind_backward", "gradients", "hooks", "inert", "loaders", "logged", "metrics", "on_context", "outside", "owned",
    "rebound", "retained", "stale",
)  # fmt: skip


def callers_of(analyser: Analyser, functions: Sequence[Function], linted: Iterable[str]) -> list[Function]:
    """Functions of files that are not linted which call one of these by name, where their grad mode and arguments are
    of interest; and those that call what these run in other files, so that it is told who else does."""
    inside = set(linted)
    found: dict[tuple[str, str], Function] = {}
    asking = [function for function in functions if _hangs_on_callers(analyser, function)]
    asking += [function for function in _run_by(analyser, asking) if function.module.key not in inside]
    asked = {function.key for function in asking}
    for _ in range(LEVELS):
        above = [one for one in functions if one.key not in asked and _calls(analyser, one, asked)]
        asking += above
        asked |= {function.key for function in above}
    for _ in range(LEVELS):
        new = {function.key: function for function in _direct(analyser, asking, inside) if function.key not in found}
        found |= new
        asked = {function.key for function in asking}
        asking = [function for function in new.values() if _calls(analyser, function, asked)]
        if not asking:
            break
    return list(found.values())


def _calls(analyser: Analyser, function: Function, asked: set[tuple[str, str]]) -> bool:
    """Whether a function calls one of those that were asked about: its own callers stand around that call as well."""
    summary = analyser.summary(function)
    return summary is None or any(record.callee in asked for record in summary.calls.values())


def _run_by(analyser: Analyser, functions: Iterable[Function]) -> Iterator[Function]:
    """The functions in which models run that these functions say of themselves that they run."""
    for function in functions:
        summary = analyser.summary(function)
        for run in summary.runs.values() if summary is not None else ():
            if run.origin is not None:
                yield run.origin[0].function
        for record in summary.calls.values() if summary is not None else ():
            asked = record.counts and _does_more(analyser, record.callee)
            if asked and (callee := analyser.function_at(record.callee)) is not None:
                yield callee  # what it runs is told once its callers are known


def _direct(analyser: Analyser, functions: Sequence[Function], inside: set[str]) -> list[Function]:
    """The functions of units outside some files that call one of these by name."""
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
    if sum(map(len, around.values())) <= FEW:
        return [function for functions in around.values() for function in functions]
    return [function for place, functions in around.items() for function in _mentioning(functions, by_name[place])]


def _mentioning(functions: Sequence[Function], names: set[str]) -> Iterator[Function]:
    """Those of a unit's functions that mention one of some names, or an attribute that is given what mentions one
    (``self.loss = ComputeLoss(…)``), and those around them."""
    known = names | {name for function in functions for name in _given(function, names)}
    found: dict[Function, None] = {}
    for function in functions:
        if not known.isdisjoint(_words(parts(function.body))):
            around: Function | None = function
            while around is not None and around not in found:
                found[around] = None
                around = around.around
    return iter(found)


def _given(function: Function, names: set[str]) -> Iterator[str]:
    """The attributes that are assigned what mentions one of the names."""
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.Assign) and not names.isdisjoint(_words([statement.value])):
            for target in statement.targets:
                if isinstance(target, ir.Attr):
                    yield target.name


def _words(expressions: Iterable[ir.Expr]) -> set[str]:
    """The variables and attributes in expressions, and in the lambdas in them."""
    found: set[str] = set()
    for part in with_lambdas(expressions):
        if isinstance(part, ir.Name):
            found.add(part.id)
        elif isinstance(part, ir.Attr):
            found.add(part.name)
    return found


def _hangs_on_callers(analyser: Analyser, function: Function) -> bool:
    """Whether what may be said of a function is not told by itself alone."""
    summary = analyser.summary(function)
    if function.node is None or (summary is not None and summary.hook is not None):
        return False  # nobody of the project calls them
    if summary is None or summary.cut_short or summary.backwards or summary.yields:
        return True
    part = function.cls is not None and analyser.program.is_module(function.cls)
    layer = part and _is_layer(summary)
    if any(
        _may_be_reported(analyser, summary, store) for store in summary.stores.values() if not (layer and store.local)
    ):
        return True
    if not layer and any(run.loop is not None or not part for run in summary.runs.values()):
        return True  # (a module that runs its parts is itself run by somebody, and is judged there)
    if not part and any(record.counts and _does_more(analyser, record.callee) for record in summary.calls.values()):
        return True
    return any(getattr(summary.notes, note) for note in _NOTES) or bool(summary.notes.left_rounds and summary.runs)


def _is_layer(summary: Summary) -> bool:
    """Whether a method of a module gives the graph that it makes, and neither trains nor evaluates: what it runs and
    keeps meanwhile is for its caller to judge."""
    if (
        summary.may_train
        or is_evaluation_name(summary.function)
        or any(run.mode is True for run in summary.runs.values())
    ):
        return False
    return gives_a_graph(summary)


def _does_more(analyser: Analyser, key: tuple[str, str]) -> bool:
    """Whether a function does more than compute what it returns."""
    function = analyser.function_at(key)
    summary = analyser.summary(function) if function is not None else None
    return (
        summary is None
        or summary.cut_short
        or bool(summary.runs or summary.stores or summary.backwards or summary.yields)
    )


def _may_be_reported(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether callers may tell something of a store that is reported where it stands. What they pass to it is reported
    at their call: of a graph, it is one that the function makes itself, or a module's forward is given."""
    value = store.entering
    sources = value.src - {store.place}
    if store.kind == "cat" or takes_activations(analyser, summary):
        return True
    if any(item in summary.graphs.nodes for item in summary.graphs.closure(sources)):
        return True
    return not sources and not value.is_only(DATA | NONE)


class _Called:
    """``names``: by which functions, and the classes of methods, are called."""

    def __init__(self, functions: Sequence[Function], partners: Partners) -> None:
        methods = {
            function.name
            for function in functions
            if not function.name.startswith("__") and function.name != "forward" and "." in function.qual
        }
        #: definitions that a name of their module means
        self._tops: dict[str, set[tuple[str, str]]] = {}
        for function in functions:
            top = function.cls if function.cls is not None else function
            if "." not in top.qual:
                self._tops.setdefault(top.qual, set()).add(top.key)
        inner = {
            function.cls.node.name for function in functions if function.cls is not None and "." in function.cls.qual
        }
        self._anywhere = methods | inner
        self.names = self._anywhere | self._tops.keys()
        self._partners = partners
        #: the files that define what is called by each name
        self._files: dict[str, set[str]] = {}
        for function in functions:
            cls = function.cls
            called = {function.name} if cls is None else {function.name, cls.node.name, cls.qual}
            for name in called & self.names:
                self._files.setdefault(name, set()).add(function.module.key)

    def may_be_meant(self, program: Program, key: str, shown: str, name: str) -> bool:
        """Whether a call of ``shown`` in a file may mean one of the functions called ``name``. It does not if the file
        means another definition, or belongs to another program."""
        if name in self._anywhere:
            return any(self._partners.may_meet(file, key) for file in self._files[name])
        if not any(self._partners.may_import(file, key) for file in self._files[name]):
            return False
        index = program.module(key).index
        imported = (each.binds for each in index.imports)
        if shown not in {definition.name for definition in index.definitions} and shown not in imported:
            return True  # a member of a module, or nothing that can be told
        kind, what = program.find(program.module(key), shown)
        return kind not in ("class", "function") or what is None or what.key in self._tops[name]
