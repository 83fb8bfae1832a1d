"""Functions and classes as values: the definitions behind references, and references to definitions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CALLABLE, CONTAINER, LOADER, OF_LOADERS, UNKNOWN_VALUE, Ref, V, ordered
from memlint.analysis.index.program import Class, Function, Module, Program
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import calls, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def callable_of(kind: str, key: str, name: str) -> V:
    """The callable value of a single reference."""
    return V(CALLABLE, refs=frozenset((Ref(kind, key, name),)))


class DefinitionValues:
    """The functions and classes of a program, nested ones and lambdas included, each with one reference."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._lambdas: dict[tuple[str, int, int], Function] = {}
        self._externals: dict[str, V] = {}

    def function(self, ref: Ref) -> Function | None:
        found = self.program.module(ref.key).function(ref.name)
        return found if found is not None else self._lambdas.get((ref.key, *self._lambda_place(ref.name)))

    def function_at(self, key: tuple[str, str]) -> Function | None:
        """The function with a module key and a qualified name; None if there is none."""
        return self.program.module(key[0]).function(key[1])

    @staticmethod
    def _lambda_place(name: str) -> tuple[int, int]:
        if "<lambda " not in name:
            return (-1, -1)
        unit, at = name.rsplit("<lambda ", 1)[1].rstrip(">").split(":")
        return int(unit), int(at)

    def cls(self, ref: Ref) -> Class | None:
        return self.program.module(ref.key).cls(ref.name)

    def classes(self, value: V) -> list[Class]:
        """The project's classes of which a value may be an instance, as far as they are known."""
        return [cls for ref in ordered(value.refs) if ref.kind == "instance" and (cls := self.cls(ref)) is not None]

    def owner(self, key: str, qual: str) -> V | None:
        """The class or function of a file with this qualified name; None for a variable."""
        module = self.program.module(key)
        if module.cls(qual) is not None:
            return callable_of("class", key, qual)
        return callable_of("func", key, qual) if module.function(qual) is not None else None

    def local_function(self, summary: Summary, node: ir.FunctionDef | ir.Lambda) -> V:
        """A nested function or lambda as a value."""
        unit = summary.function.unit
        if isinstance(node, ir.Lambda):
            place = (summary.module.key, unit, node.at)
            if place not in self._lambdas:
                qual = f"{summary.function.qual}.<lambda {unit}:{node.at}>"
                self._lambdas[place] = Function(
                    summary.module,
                    unit,
                    node,
                    qual,
                    None,
                    summary.function if summary.function.node is not None else None,
                )
            return callable_of("func", summary.module.key, self._lambdas[place].qual)
        summary.module.build(unit)
        function = summary.module.by_place.get(unit, {}).get(node.at)
        return callable_of("func", summary.module.key, function.qual) if function is not None else UNKNOWN_VALUE

    def external(self, name: str) -> V:
        known = self._externals.get(name)
        if known is None:
            meant = name.replace("torch.torch.", "torch.")  # ``torch.torch`` is torch itself
            known = self._externals[name] = callable_of("ext", "", meant)
        return known


def with_entries(analyser: Analyser, module: Module, name: str, found: V) -> V:
    """``found``, the value that is assigned to a variable, as a container of loaders if the module stores nothing else
    in it: ``loaders = {}``, ``loaders["train"] = DataLoader(…)``. One that is filled elsewhere has unknown members."""
    if OF_LOADERS not in found.refs and not (found.is_only(CONTAINER) and _begins_empty(module, name)):
        return found
    changes = not found.is_only(CONTAINER) or _is_changed_otherwise(module, name)
    if changes or not _are_loaders(analyser, module, name):
        return found.but(refs=found.refs - {OF_LOADERS})
    return found.but(refs=found.refs | {OF_LOADERS}) if name in _stored(module.statements) else found


@kept_for
def _are_loaders(analyser: Analyser, module: Module, name: str) -> bool:
    """Whether everything that the module stores in the variable's container is a loader."""
    stored = _stored(module.statements).get(name, ())
    return all(analyser.evaluate_constant(module, value).is_only(LOADER) for value in stored)


def _begins_empty(module: Module, name: str) -> bool:
    """Whether all bindings of the variable assign ``{}``."""
    bound = module.bindings.get(name, ())
    return bool(bound) and all(
        isinstance(one, ir.Assign) and isinstance(one.value, ir.DictDisplay) and not one.value.values for one in bound
    )


@kept
def _stored(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr]]:
    """By variable, what a body stores in it under keys."""
    found: dict[str, list[ir.Expr]] = {}
    for statement in walk_statements(body, into_definitions=False):
        if not isinstance(statement, ir.Assign):
            continue
        for target in statement.targets:
            if isinstance(target, ir.Subscript) and isinstance(target.value, ir.Name):
                found.setdefault(target.value.id, []).append(statement.value)
    return found


#: changes of the dictionary ``NAME``: by a key, by ``|=`` or by a method
_CHANGES = r"\bNAME\s*(?:\[[^\]\n]*\]\s*(?:,[^\n=]*)?=(?!=)|\|=|\.\s*(?:update|setdefault|pop|popitem|clear)\b)"


@kept_for
def _is_changed_otherwise(module: Module, name: str) -> bool:
    """Whether the file changes the container in another way than by the module's own assignments, or a callee gets it,
    which may."""
    changes = re.findall(_CHANGES.replace("NAME", name), module.text)
    given = any(isinstance(arg, ir.Name) and arg.id == name for call in calls(module.statements) for arg in call.args)
    return given or len(changes) > len(_stored(module.statements).get(name, ()))
