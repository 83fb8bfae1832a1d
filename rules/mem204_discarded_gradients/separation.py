"""Whether two places name networks without a common part."""

from __future__ import annotations

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Function
from memlint.sdk.syntax import children, dotted, ir, is_none

from .ownership import Frame, Ownership, arguments, overlap, unwrapped

#: modules of libraries
_OF_LIBRARIES = lazy_pattern(r"^(torch\.nn|torchvision\.models|transformers|timm|segmentation_models_pytorch)\.")


class Separation:
    """The networks that are made apart from each other."""

    def __init__(self, ownership: Ownership) -> None:
        self.ownership = ownership

    def is_apart(self, one: str, other: str) -> bool:
        """Whether two networks are surely made by calls of their own that get no part of each other, or each caller
        passes two such networks."""
        if overlap(one, other):
            return False
        if self.ownership.is_parameter(one) or self.ownership.is_parameter(other):
            return self._are_passed_apart(one, other)
        return self._share_nothing(one, self._named_by(one), other, self._named_by(other))

    def _share_nothing(self, one: str, parts: set[str] | None, other: str, others: set[str] | None) -> bool:
        """Whether two networks with these places ("" for none) get no part of each other, by what their calls name."""
        if parts is None or others is None or any(other and overlap(part, other) for part in parts):
            return False
        return not any((one and overlap(part, one)) or (part in parts and self._is_module(part)) for part in others)

    def _are_passed_apart(self, one: str, other: str) -> bool:
        owner = self.ownership.owner(one)
        if owner is None or owner is not self.ownership.owner(other):
            return False
        calls = self.ownership.calls(owner)
        return bool(calls) and all(self._passes_apart(frame, owner, call, one, other) for frame, call in calls or ())

    def _passes_apart(self, frame: Frame, owner: Function, call: ir.Call, one: str, other: str) -> bool:
        """Whether a call passes two such networks for two parameters: by name, or made in its arguments."""
        given = arguments(owner, call)
        mine, yours = (given.get(place.rpartition("|")[2]) for place in (one, other))
        if mine is None or yours is None:
            return False
        first, second = self.ownership.place(frame, mine), self.ownership.place(frame, yours)
        if first and second:
            return self.is_apart(first, second)
        parts, others = (
            self._named_by(place) if place else self._named_in(frame, value)
            for place, value in ((first, mine), (second, yours))
        )
        return self._share_nothing(first, parts, second, others)

    def _named_in(self, frame: Frame, value: ir.Expr) -> set[str] | None:
        made = unwrapped(value)
        return self._places_in(frame, made) if isinstance(made, ir.Call) else None

    def _named_by(self, place: str) -> set[str] | None:
        """The places that the calls name which make the network at a place; None if something else may make it."""
        found: set[str] = set()
        made_at_all = False
        for frame, value, _ in self.ownership.values(place) or ():
            made = unwrapped(value)
            if is_none(made):
                continue
            if isinstance(made, ir.Call):
                made_at_all = True
                found |= self._places_in(frame, made)
            elif not isinstance(made, ir.Name | ir.Attr) or self.ownership.place(frame, made) != place:
                return None
        return found if made_at_all else None

    def _places_in(self, frame: Frame, call: ir.Call) -> set[str]:
        """The places that the arguments of a call name: ``self.args.size`` alone, not the objects around it."""
        found: set[str] = set()
        todo = list(call.passed)
        while todo:
            part = todo.pop()
            if dotted(part):
                found.add(self.ownership.place(frame, part))
            else:
                todo.extend(children(part))
        return found - {""}

    def _is_module(self, place: str) -> bool:
        """Whether a call of a module's class makes the value at a place."""
        return any(
            self._makes_module(frame, made)
            for frame, value, _ in self.ownership.values(place) or ()
            if isinstance(made := unwrapped(value), ir.Call)
        )

    def _makes_module(self, frame: Frame, call: ir.Call) -> bool:
        program = self.ownership.analyser.program
        kind, what = program.find_expression(frame.function.module, call.func, frame.function)
        if kind == "class" and what is not None:
            return program.is_module(what)
        return kind == "ext" and _OF_LIBRARIES.search(str(what)) is not None
