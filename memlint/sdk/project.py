"""For detect.py of a rule: the function to analyse, and the facts about it from the whole project.

A `Summary` is the summary of one function: ``summary.function`` (its body, parameters and class), ``summary.module``
(its file), ``summary.notes`` (what the analysis observed in it), ``summary.site(at)`` (a place to report). An
`Analyser` answers questions about the project: what a name refers to (``analyser.program``), who calls a function
(``analyser.facts``), the summary of another function (``analyser.summary``). Both are read-only: a change would alter
the findings of other rules.
"""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.demand.layered_calls import leads_to_model, runs_model
from memlint.analysis.demand.needed_later import dropped_by_callers
from memlint.analysis.demand.unneeded_runs import is_differentiated
from memlint.analysis.demand.used_up_graphs import captured, used_up
from memlint.analysis.domain.bound_names import Names, argument, bindings, peel
from memlint.analysis.domain.devices import is_of_script, names_an_accelerator, touches_an_accelerator, without_comments
from memlint.analysis.domain.periods import MAX_PERIOD
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.facts.analyser import Analyser
from memlint.analysis.facts.calls_by_name import TooManyError, functions_naming, has_known_callers
from memlint.analysis.facts.memory_names import NameUse, unguarded, used_names
from memlint.analysis.facts.repeats import each_call, goes_on, layer_code, repeated
from memlint.analysis.index.binders import binders
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.mentions import tree_of
from memlint.analysis.index.program import Class, Function, Module, Program, in_tests
from memlint.analysis.index.programs import is_collected, is_program
from memlint.analysis.index.roles_by_name import is_test, names_model
from memlint.analysis.index.uses import of_module
from memlint.analysis.judge.evaluation import is_small
from memlint.analysis.judge.sizes.small_networks import size_of_class
from memlint.analysis.judge.verdicts import loop_of_sum
from memlint.analysis.reach.known_calls import KnownCall
from memlint.analysis.transfer.annotations import annotation_value
from memlint.analysis.transfer.library.feeding import feeds_device
from memlint.analysis.transfer.library.instances import names_class
from memlint.analysis.transfer.modules.inert_guards import last_ordinal
from memlint.analysis.transfer.modules.optimizer_parameters import is_step, is_touched
from memlint.analysis.transfer.stores.stores import marks_of
from memlint.fix.safety import vocabulary
from memlint.knowledge import memory

__all__ = [
    "MAX_PERIOD",
    "Analyser",
    "Class",
    "Function",
    "KnownCall",
    "Module",
    "NameUse",
    "Names",
    "Program",
    "Summary",
    "TooManyError",
    "annotation_value",
    "argument",
    "binders",
    "bindings",
    "captured",
    "dropped_by_callers",
    "each_call",
    "feeds_device",
    "functions_naming",
    "functions_of",
    "goes_on",
    "has_known_callers",
    "in_tests",
    "is_collected",
    "is_differentiated",
    "is_of_script",
    "is_program",
    "is_small",
    "is_step",
    "is_test",
    "is_touched",
    "knowledge",
    "last_ordinal",
    "layer_code",
    "leads_to_model",
    "loop_of_sum",
    "marks_of",
    "memory",
    "names_an_accelerator",
    "names_class",
    "names_model",
    "of_module",
    "peel",
    "repeated",
    "runs_model",
    "size_of_class",
    "touches_an_accelerator",
    "tree_of",
    "unguarded",
    "used_names",
    "used_up",
    "vocabulary",
    "without_comments",
]
