"""The names of references between objects, as the program would write them."""

from __future__ import annotations

import dis
import functools
import re
import threading
import types
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from .values import dictionary, slots

#: the most characters of a key
_KEY = 40
_SIMPLE = (str, bytes, int, float, bool, type(None))
_LRU = type(functools.lru_cache(lambda: None))
_METHODS = (types.MethodType, types.BuiltinMethodType)
SUSPENDED = {types.GeneratorType: "gi", types.CoroutineType: "cr", types.AsyncGeneratorType: "ag"}
#: builtins that read a function's variables: reading them here as well would change what the program sees
_READ_LOCALS = frozenset({"locals", "vars", "dir", "eval", "exec"})
#: dictionaries of a module whose items are also attributes
_PARTS = re.compile(r"\._(?:modules|parameters|buffers)\['(\w+)'\]")


def path(chain: Sequence[Any]) -> str:
    """The path from the first object of a chain of references to the last, such as ``.known['a'][3]``."""
    return "".join(said for _, said in _steps(chain))


#: the most elements of a container around a ring: a larger one may itself grow
_FEW = 8


def largest(chain: Sequence[Any]) -> Any:
    """The container of a chain with most elements; None without one. An object's attributes are not a container."""
    return max(_containers(chain), key=len, default=None)


def ring(chain: Sequence[Any]) -> deque[Any] | None:
    """The ring (a deque with a maximal length) of a chain; None without one, or if it is in a large container."""
    containers = _containers(chain)
    for outer, holder in enumerate(containers):
        if type(holder) is deque and holder.maxlen is not None:
            return holder if all(len(each) <= _FEW for each in containers[:outer]) else None
    return None


def _containers(chain: Sequence[Any]) -> list[Any]:
    """The containers of a chain, the one nearest to the root first."""
    return [holder for holder, said in _steps(chain) if said.startswith(("[", "<element>"))]


def shown(text: str) -> str:
    """A path as the program would write it: parameters, buffers and submodules as attributes."""
    return _PARTS.sub(lambda found: f"[{found[1]}]" if found[1].isdigit() else f".{found[1]}", text)


def module_of(kind: type) -> str:
    """The name of a class's module; "" if ``__module__`` is not a string."""
    name = type.__getattribute__(kind, "__module__")
    return name if type(name) is str else ""


def _steps(chain: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """The objects of a chain that refer to the next one, with the names of the references."""
    place = 0
    while place + 1 < len(chain):
        said, steps = _step(chain, place)
        yield chain[place], said
        place += steps


def _step(chain: Sequence[Any], place: int) -> tuple[str, int]:
    """The name of the reference at one index of a chain, and the number of objects that it covers."""
    holder, held = chain[place], chain[place + 1]
    kind = type(holder)
    if kind is types.FunctionType:
        return _of_function(chain, place)
    after = chain[place + 2] if place + 2 < len(chain) else None
    if type(held) is dict and held is dictionary(holder) and after is not None:
        return _attribute(held, after), 2
    if kind is threading.local and type(held) is dict and after is not None:
        return _attribute(held, after), 2
    if issubclass(kind, dict):
        return _item(holder, held), 1
    if issubclass(kind, (list, tuple, deque)):
        return _element(holder, held, kind), 1
    if issubclass(kind, (set, frozenset)):
        return "<element>", 1
    if kind is types.CellType or kind is types.TracebackType:
        return "", 1
    if kind is types.FrameType or kind in SUSPENDED:
        return _local(holder, held), 1
    if kind is _LRU:
        return ".<lru_cache>", 1
    for name in _names(holder, kind):
        if _get(holder, name) is held:
            return f".{name}", 1
    return _attribute(dictionary(holder), held) or f".<{kind.__name__}>", 1


def _names(holder: Any, kind: type) -> Iterator[str]:
    """The attributes of an object that are not in its dictionary."""
    if kind in _METHODS:
        yield from ("__self__", "__func__")
    elif issubclass(kind, functools.partial):
        yield from ("func", "args", "keywords")
    elif issubclass(kind, BaseException):
        yield from ("__traceback__", "__cause__", "__context__", "args")
    elif issubclass(kind, (staticmethod, classmethod)):
        yield "__func__"
    elif issubclass(kind, property):
        yield from ("fget", "fset", "fdel")
    yield from (name for name, _ in slots(holder, kind))


def _get(holder: Any, name: str) -> Any:
    try:
        return object.__getattribute__(holder, name)
    except AttributeError:
        return None


def _of_function(chain: Sequence[Any], place: int) -> tuple[str, int]:
    """The same for a function: its closure, its defaults, or its attributes."""
    function, held = chain[place], chain[place + 1]
    after = chain[place + 2] if place + 2 < len(chain) else None
    code = function.__code__
    if held is function.__closure__ and place + 3 < len(chain):
        names = [name for name, cell in zip(code.co_freevars, held, strict=False) if cell is after]
        return f".<closure>.{names[0] if names else '?'}", 3
    if held is function.__defaults__:
        given = code.co_varnames[code.co_argcount - len(held) : code.co_argcount]
        names = [name for name, value in zip(given, held, strict=True) if value is after]
        return f".<default {names[0] if names else '?'}>", 2
    if held is function.__kwdefaults__:
        return f".<default {next((name for name, value in held.items() if value is after), '?')}>", 2
    if held is function.__dict__ and after is not None:
        return _attribute(held, after), 2
    return ".<function>", 1


def _attribute(own: dict[str, Any], held: Any) -> str:
    name = next((name for name, value in list(own.items()) if value is held), None)
    return "" if name is None else f".{name}"


def _item(holder: dict[Any, Any], held: Any) -> str:
    for key, value in list(dict.items(holder)):
        if value is held:
            return f"[{_key(key)}]"
        if key is held:
            return "<key>"
    return "[?]"


def _key(key: Any) -> str:
    if type(key) in _SIMPLE:
        text = repr(key)
        return text if len(text) <= _KEY else f"{text[:_KEY]}…"
    if type(key) is tuple and len(key) <= 4 and all(type(each) in _SIMPLE for each in key):
        return ", ".join(map(_key, key))
    return f"<{type(key).__name__}>"


def _element(holder: Any, held: Any, kind: type) -> str:
    plain = next(base for base in (list, tuple, deque) if issubclass(kind, base))
    number = next((number for number, each in enumerate(plain.__iter__(holder)) if each is held), None)
    fields = getattr(kind, "_fields", ())
    if number is None:
        return _attribute(dictionary(holder), held) or "[?]"
    return f".{fields[number]}" if plain is tuple and number < len(fields) else f"[{number}]"


def _local(holder: Any, held: Any) -> str:
    """The name of a variable of a suspended frame."""
    frame = frame_of(holder)
    if frame is None:
        return f".<frame of {holder.__name__}>"
    name = next((name for name, value in variables(frame) if value is held), None)
    return f".<frame of {frame.f_code.co_name}>" + ("" if name is None else f".{name}")


def frame_of(holder: Any) -> types.FrameType | None:
    """The object if it is a frame, or the frame of a generator or coroutine; None without one."""
    if type(holder) is types.FrameType:
        return holder
    prefix = SUSPENDED.get(type(holder))
    return None if prefix is None else getattr(holder, f"{prefix}_frame")


def variables(frame: types.FrameType) -> list[tuple[str, Any]]:
    """A function's variables by name, with the contents of cells; [] if the function reads them by `locals()` or the
    like."""
    code = frame.f_code
    if _reads_locals(code):
        return []
    own = frame.f_locals
    found = list(own.items())
    if type(own) is dict and code.co_flags & 1:  # a copy that would stay with the frame (before Python 3.13)
        own.clear()
    return found


@functools.cache
def _reads_locals(code: types.CodeType) -> bool:
    """Whether a function may read its variables by `locals()` or the like."""
    if not _READ_LOCALS.intersection(code.co_names):  # may be a method, such as `model.eval`
        return False
    return any(
        step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in _READ_LOCALS
        for step in dis.get_instructions(code)
    )


def pattern(text: str) -> str:
    """A path without indices and keys, so that all elements of a container have the same holder."""
    return re.sub(r"\[[^\]]*\]", "[]", text)
