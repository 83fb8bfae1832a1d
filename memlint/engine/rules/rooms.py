"""The rules: one folder each, loaded by path, ours and users' alike."""

from __future__ import annotations

import ast
import importlib.util
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType

import msgspec

from memlint.config import ConfigError
from memlint.patterns import lazy_pattern
from memlint.project.presence import is_file, listed
from memlint.reading import MAX_SETTINGS, read_file
from memlint.sdk import Facts, Meta, Report, Silent

ROOM = lazy_pattern(r"mem\d{3}_[a-z0-9_]+")
CODE = lazy_pattern(r"MEM\d{3}")


class Room(msgspec.Struct, frozen=True):
    """One rule. ``page`` is its README.md. ``closed``: it is known, and does not run."""

    meta: Meta
    check: Callable[[Facts], Iterable[Report]]
    folder: Path
    closed: bool = False
    #: what it looks for, and why it says nothing of some events (`memlint.sdk.Silent`), as far as it tells
    seeks: str = ""
    silent: tuple[Silent, ...] = ()

    @property
    def page(self) -> Path:
        return self.folder / "README.md"


#: codes that the engine itself speaks; their rooms, where there are any, hold the page only
META_RULES = (
    Meta(code="MEM000", name="unreadable-file", summary="The file does not parse", severity="warning"),
    Meta(code="MEM001", name="unused-suppression", summary="A suppression suppresses nothing", severity="warning"),
    Meta(code="MEM002", name="unknown-suppression", summary="A suppression names no rule", severity="warning"),
)


def own_rooms() -> Path:
    """The folder of our own rooms: the one beside the package in a checkout, which wins, else the one inside it."""
    package = Path(__file__).resolve().parents[2]
    beside = package.parent / "rules"
    return beside if beside.is_dir() and (package.parent / "pyproject.toml").is_file() else package / "rules"


def load_rooms(extra: Sequence[Path] = (), closed: Sequence[Path] = ()) -> dict[str, Room]:
    """Every rule by code, in order of code: ours, then those in the folders ``extra``, and those in ``closed``, of
    which nothing is run.

    Raises ConfigError for a room that cannot be loaded, for two with one code or name, and where ours are not there: a
    run that asks nothing would find nothing.
    """
    rooms: dict[str, Room] = {}
    names: dict[str, str] = {}
    for place in (own_rooms(), *extra):
        for room in _rooms_in(place):
            code, name = room.meta.code, room.meta.name
            if code in rooms:
                raise ConfigError(f"two rules have the code {code}: {rooms[code].folder} and {room.folder}")
            if name in names:
                raise ConfigError(f"two rules have the name {name}: {rooms[names[name]].folder} and {room.folder}")
            rooms[code], names[name] = room, code
        if not rooms:
            raise ConfigError(f"memlint finds none of its own rules in {place}: reinstall it")
    for place in closed:
        for folder in _folders(place):
            meta = _told(folder)
            if meta.name not in names:
                rooms.setdefault(meta.code, Room(meta, _nothing, folder, closed=True))
    for meta in META_RULES:
        rooms.setdefault(meta.code, Room(meta, _nothing, own_rooms()))
    return dict(sorted(rooms.items()))


def _nothing(facts: Facts) -> Iterator[Report]:
    return iter(())


def _rooms_in(place: Path) -> Iterator[Room]:
    for folder in _folders(place):
        yield _load(folder)


def _folders(place: Path) -> Iterator[Path]:
    """The folders of rules in a place."""
    for name in sorted(listed(place) or ()):
        if ROOM.fullmatch(name) and is_file(place / name / "rule.py"):
            yield place / name


def _told(folder: Path) -> Meta:
    """What the text of a rule says of it, without running it; what it does not say, its folder's name does."""
    code, _, name = folder.name.partition("_")
    meta = Meta(code=code.upper(), name=name.replace("_", "-"), summary="Not loaded.", severity="note")
    try:
        tree = ast.parse(read_file(folder / "rule.py", MAX_SETTINGS))
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _is_name(node.targets[0], "META"):
                said = {
                    word.arg: word.value.value for word in node.value.keywords if isinstance(word.value, ast.Constant)
                }
                if isinstance(said.get("name"), str):
                    meta = msgspec.structs.replace(meta, name=said["name"])
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    return meta


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _load(folder: Path) -> Room:
    try:
        module = _module(folder)
    except (Exception, SystemExit) as error:  # a rule is a program, and may fail in any way
        raise ConfigError(f"the rule in {folder} cannot be loaded: {type(error).__name__}: {error}") from error
    meta, check = getattr(module, "META", None), getattr(module, "check", None)
    if not isinstance(meta, Meta) or not callable(check):
        raise ConfigError(f"the rule in {folder} must define `META = Meta(…)` and `check(facts)`")
    expected = folder.name.partition("_")[0].upper()
    if not CODE.fullmatch(meta.code) or meta.code != expected:
        raise ConfigError(f"the rule in {folder} has the code {meta.code!r}; its folder's name says {expected}")
    silent = tuple(row for row in getattr(module, "SILENT", ()) if isinstance(row, Silent))
    return Room(meta, check, folder, seeks=str(getattr(module, "SEEKS", "")), silent=silent)


def _module(folder: Path) -> ModuleType:
    # unique also where a user's room is named like one of ours
    name = f"memlint_room_{folder.name}_{zlib.crc32(str(folder).encode('utf-8', 'surrogatepass')):08x}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, folder / "rule.py")
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
