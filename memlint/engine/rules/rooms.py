"""The rules: one folder each, loaded by path, built-in and users' ones alike."""

from __future__ import annotations

import ast
import importlib
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec

from memlint.analysis.domain.detector import Detector
from memlint.analysis.domain.events import CandidateKind
from memlint.config import ConfigError
from memlint.patterns import lazy_pattern
from memlint.project.presence import is_file, listed
from memlint.reading import MAX_SETTINGS, read_file
from memlint.sdk import Facts, Meta, Report, Silent

ROOM = lazy_pattern(r"mem\d{3}_[a-z0-9_]+")
CODE = lazy_pattern(r"MEM\d{3}")


class Room(msgspec.Struct, frozen=True):
    """One rule. ``page`` is its README.md. ``package``: its modules; "" for one that is known but does not run
    (`closed`), or that the engine reports itself."""

    meta: Meta
    check: Callable[[Facts], Iterable[Report]]
    folder: Path
    package: str = ""
    closed: bool = False
    #: its conditions, the candidates of the analysis that it may report, and its reasons to ignore events
    #: (`memlint.sdk.Silent`), as far as it declares them
    seeks: str = ""
    candidates: frozenset[CandidateKind] = frozenset()
    silent: tuple[Silent, ...] = ()

    @property
    def page(self) -> Path:
        return self.folder / "README.md"


#: codes that the engine itself reports; their folders contain only the page
META_RULES = (
    Meta(code="MEM000", name="unreadable-file", summary="The file does not parse", severity="warning"),
    Meta(code="MEM001", name="unused-suppression", summary="A suppression suppresses nothing", severity="warning"),
    Meta(code="MEM002", name="unknown-suppression", summary="A suppression names no rule", severity="warning"),
)


def own_rooms() -> Path:
    """The folder of the built-in rules: the one beside the package in a checkout, else the one inside it."""
    package = Path(__file__).resolve().parents[2]
    beside = package.parent / "rules"
    return beside if beside.is_dir() and (package.parent / "pyproject.toml").is_file() else package / "rules"


def load_rooms(extra: Sequence[Path] = (), closed: Sequence[Path] = ()) -> dict[str, Room]:
    """Every rule by code, in order of code: built-in ones, those in the folders ``extra``, and those in ``closed``,
    which do not run. Raises ConfigError for a rule that cannot be loaded, for two with one code or name, and if the
    built-in ones are missing: a run without rules would find nothing."""
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


def detectors_of(rooms: Mapping[str, Room], codes: AbstractSet[str]) -> tuple[Detector, ...]:
    """The detectors of some rules, in order of code. They are imported here, with the analysis, so that a run that
    analyses nothing does not load them. Raises ConfigError for a detect.py that cannot be loaded."""
    found = (_detector(room) for code, room in rooms.items() if code in codes and room.package)
    return tuple(one for one in found if one is not None)


def _detector(room: Room) -> Detector | None:
    """The detector in a rule's detect.py; None if there is none, as the rule uses events of the analysis."""
    if not is_file(room.folder / "detect.py"):
        return None
    module = _module(room.package, room.folder, "detect")
    detect = getattr(module, "detect", None)
    if not callable(detect):
        raise ConfigError(f"the rule in {room.folder} must define `detect(analyser, summary)` in detect.py")
    calls, of_loaders = (_names(room, module, name) for name in ("CALLS", "LOADER_CALLS"))
    return Detector(room.meta.code, detect, calls, of_loaders, f"{room.package}.")


def _names(room: Room, module: ModuleType, name: str) -> frozenset[str]:
    found: Any = getattr(module, name, frozenset())
    if not isinstance(found, set | frozenset) or not all(isinstance(one, str) for one in found):
        raise ConfigError(f"the rule in {room.folder}: `{name}` in detect.py must be a set of qualified names")
    return frozenset(found)


def _nothing(facts: Facts) -> Iterator[Report]:
    return iter(())


def _rooms_in(place: Path) -> Iterator[Room]:
    for folder in _folders(place):
        yield _load(folder)


def _folders(place: Path) -> Iterator[Path]:
    """The folders of rules in a folder."""
    for name in sorted(listed(place) or ()):
        if ROOM.fullmatch(name) and is_file(place / name / "rule.py"):
            yield place / name


def _told(folder: Path) -> Meta:
    """The metadata of a rule by its text, without running it; by its folder's name where the text has none."""
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
    package = _package(folder)
    module = _module(package, folder, "rule")
    meta, check = getattr(module, "META", None), getattr(module, "check", None)
    if not isinstance(meta, Meta) or not callable(check):
        raise ConfigError(f"the rule in {folder} must define `META = Meta(…)` and `check(facts)`")
    expected = folder.name.partition("_")[0].upper()
    if not CODE.fullmatch(meta.code) or meta.code != expected:
        raise ConfigError(f"the rule in {folder} has the code {meta.code!r}; its folder's name says {expected}")
    return Room(
        meta,
        check,
        folder,
        package,
        seeks=str(getattr(module, "SEEKS", "")),
        candidates=_candidates(module, folder),
        silent=_silent(module, folder),
    )


def _candidates(module: ModuleType, folder: Path) -> frozenset[CandidateKind]:
    given: Any = getattr(module, "CANDIDATES", ())
    known = get_args(CandidateKind)
    if not isinstance(given, tuple) or not all(one in known for one in given):
        raise ConfigError(f"the rule in {folder}: `CANDIDATES` must be a tuple of some of {', '.join(known)}")
    return frozenset(given)


def _silent(module: ModuleType, folder: Path) -> tuple[Silent, ...]:
    given: Any = getattr(module, "SILENT", ())
    if not isinstance(given, tuple) or not all(isinstance(one, Silent) for one in given):
        raise ConfigError(f"the rule in {folder}: `SILENT` must be a tuple of `Silent(…)`")
    return given


def _package(folder: Path) -> str:
    """The package of a rule's modules: unique even if a user's rule has the name of a built-in one, and new when its
    files have changed (a watching process loads them again)."""
    from memlint.engine.store.cache import files_below

    stamps = [*files_below(folder)]
    return f"memlint_room_{folder.name}_{zlib.crc32(repr((str(folder), stamps)).encode('utf-8', 'surrogatepass')):08x}"


def _module(package: str, folder: Path, name: str) -> ModuleType:
    """A module of a rule, which may import those beside it (``from .rule import …``). Raises ConfigError."""
    full = f"{package}.{name}"
    before = set(() if full in sys.modules else sys.modules)
    if package not in sys.modules:
        made = sys.modules[package] = ModuleType(package)
        made.__path__ = [str(folder)]
    try:
        return importlib.import_module(full)
    except (Exception, SystemExit) as error:  # a rule is a program, and may fail in any way
        for loaded in [one for one in sys.modules if one.startswith(f"{package}.") and one not in before]:
            del sys.modules[loaded]
        raise ConfigError(f"the rule in {folder} cannot be loaded: {type(error).__name__}: {error}") from error
