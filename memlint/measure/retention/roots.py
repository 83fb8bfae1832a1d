"""The roots of a program: variables of running functions, globals of modules, attributes of classes, context
variables."""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import sysconfig
import threading
import types
from typing import Any, NamedTuple

from ..stacks import HERE, PACKAGES
from .naming import SUSPENDED, frame_of, module_of, path, variables

_OWN = ("_memlint_", "memlint.")
_LIBRARIES = tuple(
    {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_CONTEXT = ("Context", "hamt", "hamt_bitmap_node", "hamt_array_node", "hamt_collision_node")
#: the cost of a root in a library, and in a suspended function, in references
_FOREIGN, _FRAME = 4, 8


class Root(NamedTuple):
    """``name``: of the variable or attribute; ``kind``: global, class, local, context or suspended. ``cost``: of two
    roots, the one with the lower cost is reported."""

    name: str
    kind: str
    where: str
    path: str | None
    line: int | None
    cost: int = 0


class Roots:
    """The roots at one moment, by the identity of the object that they hold. ``local``: all thread-local objects;
    ``frames``: whether functions of the program run."""

    def __init__(self, local: list[Any], *, frames: bool) -> None:
        self.running: set[int] = set()
        self._frames = frames
        self._locals: dict[int, list[Root]] = {}
        self._modules: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        for number, (name, module) in enumerate(list(sys.modules.items())):
            if isinstance(module, types.ModuleType) and not name.startswith(_OWN):
                self._modules.setdefault(id(module.__dict__), name)
                self._numbers[name] = number
        self._threads: dict[int, list[Any]] = {}
        if frames:
            self._note_frames()
        for each in local:
            self._threads.setdefault(id(each.__dict__), []).append(each)

    def _note_frames(self) -> None:
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        frame: types.FrameType | None
        for thread, frame in sys._current_frames().items():
            said = "" if thread == threading.get_ident() else f" in thread {names.get(thread, thread)!r}"
            while frame is not None:
                self.running.add(id(frame))
                self._note_variables(frame, said)
                frame = frame.f_back
        # `frame` is None now: no reference to this call is left

    def _note_variables(self, frame: types.FrameType, said: str) -> None:
        code = frame.f_code
        if code.co_filename.startswith(HERE) or code.co_name == "<module>":
            return
        cost = 1 + (0 if _is_programs(code.co_filename) else _FOREIGN)
        name = getattr(code, "co_qualname", code.co_name)
        for variable, value in variables(frame):
            root = Root(variable, "local", f"{name}{said}", code.co_filename, code.co_firstlineno,
                        cost + (variable == "self"))  # fmt: skip
            # the outermost function first, as its variables live longest
            self._locals.setdefault(id(value), []).insert(0, root)

    def is_end(self, holder: Any) -> bool:
        """Whether an object is a root itself, so that its referrers do not matter."""
        return id(holder) in self._modules or issubclass(type(holder), type) or _is_context(holder)

    def thread_locals(self, held: Any) -> list[Any]:
        """The thread-local objects whose attributes, in this thread, are the dictionary ``held``."""
        return self._threads.get(id(held), [])

    def cost(self, top: Any) -> tuple[int, int] | None:
        """The cost of the root that an object is or is held by, and the order among equal costs; None without a
        root."""
        name = self._modules.get(id(top))
        if name is not None:
            # the module that was imported last is first: others import the object from it
            own = name == "__main__" or _is_programs(_text(top.get("__file__")))
            return (0 if own else _FOREIGN), -self._numbers[name]
        if issubclass(type(top), type):
            return (0 if _is_programs(_file_of(top)) else _FOREIGN), 0
        if _is_context(top):
            return 0, 0
        known = self._locals.get(id(top))
        if known:
            return min(root.cost for root in known), 0
        return (_FRAME, 0) if type(top) in SUSPENDED or type(top) is types.FrameType else None

    def of(self, chain: list[Any]) -> tuple[Root, str] | None:
        """The root of a chain of objects, each of which is held by the next, and the path from the root to the first
        object. None if the root has no name."""
        top, down = chain[-1], chain[::-1]
        name = self._modules.get(id(top))
        if name is not None:
            return _global(name, top, down)
        if issubclass(type(top), type):
            return _attribute(top, down)
        if _is_context(top):
            return _variable(down)
        known = self._locals.get(id(top))
        if known:
            root = min(known, key=lambda one: one.cost)
            return root, root.name + path(down)
        return _of_suspended(down, "suspended" if self._frames else "local")


def _global(module: str, names: dict[str, Any], down: list[Any]) -> tuple[Root, str] | None:
    name = next((name for name, value in list(names.items()) if len(down) > 1 and value is down[1]), None)
    if name is None:
        return None
    said = name if module == "__main__" else f"{module}.{name}"
    return Root(said, "global", module, _text(names.get("__file__")), None), said + path(down[1:])


def _attribute(owner: type, down: list[Any]) -> tuple[Root, str] | None:
    if len(down) < 3:
        return None
    name = next((name for name, value in list(vars(owner).items()) if value is down[2]), None)
    if name is None:
        return None
    module = module_of(owner)
    said = f"{owner.__qualname__}.{name}" if module == "__main__" else f"{module}.{owner.__qualname__}.{name}"
    return Root(said, "class", module, _file_of(owner), None), said + path(down[2:])


def _variable(down: list[Any]) -> tuple[Root, str] | None:
    """The root of a chain that leads through a context variable."""
    for variable, value in contextvars.copy_context().items():
        for place, each in enumerate(down):
            if each is value:
                said = f"ContextVar({variable.name!r})"
                return Root(said, "context", "", None, None), said + path(down[place:])
    return None


def _of_suspended(down: list[Any], kind: str) -> tuple[Root, str] | None:
    """A root in a suspended generator or coroutine, or in a call that an exception has ended."""
    frame = frame_of(down[0])
    if frame is None or len(down) < 2:
        return None
    name = next((name for name, value in variables(frame) if value is down[1]), None)
    code = frame.f_code
    if name is None:
        return None
    where = getattr(code, "co_qualname", code.co_name)
    return Root(name, kind, where, code.co_filename, code.co_firstlineno), name + path(down[1:])


def _is_context(holder: Any) -> bool:
    kind = type(holder)
    return kind.__name__ in _CONTEXT and module_of(kind) in ("builtins", "_contextvars")


def _file_of(owner: type) -> str | None:
    return _text(getattr(sys.modules.get(module_of(owner)), "__file__", None))


def _text(file: Any) -> str | None:
    return file if type(file) is str else None


@functools.cache
def _is_programs(file: str | None) -> bool:
    """Whether code of this file is the program's, not a library's. Code typed at a prompt is the program's."""
    if file is None or file.startswith("<"):
        return file is not None and not file.startswith("<frozen")
    file = os.path.realpath(file)
    return not (file.startswith(_LIBRARIES) or any(part in file for part in PACKAGES))
