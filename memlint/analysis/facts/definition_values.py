"""Functions and classes as values: the definitions behind references, and references to definitions."""

from __future__ import annotations

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import CALLABLE, UNKNOWN_VALUE, Ref, V, ordered
from memlint.analysis.index.program import Class, Function, Program
from memlint.ir import nodes as ir


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
