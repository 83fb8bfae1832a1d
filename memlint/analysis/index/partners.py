"""Which files of a project may exchange objects: those that some file imports together, directly or transitively.

A repository may hold many programs. An object of one program never reaches the code of another, even if their methods
have the same names: whatever passes the object refers to both files, and each such reference begins with an import.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from memlint.analysis.index.loading import OUTSIDE, is_loaded, knows, loaders, runners
from memlint.analysis.index.program import Program
from memlint.analysis.index.programs import is_collected, is_library, is_program
from memlint.analysis.index.text_facts import TextFact
from memlint.analysis.syntax.memo import kept_for
from memlint.patterns import lazy_pattern

#: a call that makes pickled objects, or the import of one
_UNPICKLES = lazy_pattern(r"\b(?:torch|pickle|joblib|dill|cloudpickle)\s*\.\s*load\b|\bimport\b[^\n]*\bload\b")
#: one that makes other objects than weights
_UNPICKLES_OBJECTS = lazy_pattern(
    r"\b(?:pickle|pkl|joblib|dill|cloudpickle)\s*\.\s*loads?\b|\bweights_only\s*=\s*False\b"
)
#: an import as it is written, to the end of its line, its parentheses or what a backslash joins to it
_IMPORT = lazy_pattern(r"\b(?:from|import)\b(?:[^\n(\\]|\\\r?\n?)*(?:\([^)]*\))?")
_WORD = lazy_pattern(r"\w+")
_COMMENT = lazy_pattern(r"#[^\n]*")
#: if the search for the transitive importers of a file examines more files than this, any file counts as an importer
MAX_FILES = 120


class Partners:
    """The import graph of a project, computed on demand."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._above: dict[str, frozenset[str] | None] = {}

    def may_meet(self, key: str, other: str) -> bool:
        """Whether code of one file may receive objects of what the other file defines; the order does not matter."""
        above = self.all_importers(key)
        if above is None and self._in_one_repository(key, other):
            return True
        above_other = self.all_importers(other)
        if above is None:
            key, above, other, above_other = other, above_other, key, above
        if above is None:
            return True
        if above_other is None:
            # whatever brings both together is above the file whose importers are known
            return any(self.may_import(other, one) for one in above)
        return not above.isdisjoint(above_other)

    def may_import(self, key: str, other: str) -> bool:
        """Whether ``other`` may import ``key``, directly or transitively. A file imports itself.

        If not all importers of ``key`` are known, any file of its repository may be one: by a name that a library gets,
        or by the name of the installed package. Code around a cloned repository has to name it.
        """
        above = self.all_importers(key)
        if above is not None:
            return other in above
        return self._in_one_repository(key, other) or self._imported.may_run(other, key)

    def _in_one_repository(self, key: str, other: str) -> bool:
        repository = self._program.project.repository
        return bool(repository(key) == repository(other))

    @functools.cached_property
    def _imported(self) -> Imported:
        return Imported(self._program, self.imports, frozenset({*runners(self._program), *self._unpickling}))

    @kept_for
    def together(self, key: str) -> tuple[str, ...]:
        """The files of the project whose code may run in one process with that of a file, itself included.

        This is wider than `may_meet`, as proofs use it: where some file may run any other, all files of the repository
        may run together.
        """
        sources = self._program.project.sources
        near = {other for other in sources if self.may_meet(key, other)}
        if any(knows(self._program, other, key) for other in runners(self._program)):
            near.update(other for other in sources if self._in_one_repository(key, other))
        for other in self._starting(key) - near:
            near.update(one for one in sources if self.may_meet(other, one))
        near |= self._holding(key)
        return tuple([other for other in sources if other in near])

    def _starting(self, key: str) -> set[str]:
        """The files that load a program by its name, where that program runs the code of a file."""
        above = [self._program.module(other) for other in self.all_importers(key) or (key,)]
        named = loaders(self._program).items()
        return {other for other, names in named if names and any(is_loaded(module, names) for module in above)}

    def _holding(self, key: str) -> set[str]:
        """The files that name methods of a file, and may hold unpickled objects of its classes."""
        defined = self._program.module(key).index.definitions
        methods = {name for one in defined if one.kind == "class" for name in one.methods if not name.startswith("__")}
        methods.discard("forward")
        naming = {other for name in methods for other in self._program.words.files(name)}
        holding = [other for other in self._unpickling_objects if self._unpickles_for(other, key)]
        return {other for other in naming if any(self.may_meet(one, other) for one in holding)}

    def _unpickles_for(self, other: str, key: str) -> bool:
        """Whether a file may unpickle objects of what another one defines: it may know that, or a file that does
        imports it."""
        return knows(self._program, other, key) or any(
            knows(self._program, one, key) and other in self.imports(one) for one in self._program.project.sources
        )

    def all_importers(self, key: str) -> frozenset[str] | None:
        """The file and its transitive importers; None if any file may be one: there are too many, or other projects
        may import the file."""
        if key not in self._above:
            self._above[key] = self._closure(key)
        return self._above[key]

    def _closure(self, key: str) -> frozenset[str] | None:
        """As `all_importers`, not from the memo."""
        found, todo, looked_at = {key}, [key], 0
        while todo:
            one = todo.pop()
            if self._above.get(one, found) is None or is_library(self._program, one):
                return None
            looked_at += len(self._candidates_of(one))
            if looked_at > MAX_FILES:
                return None
            importers = self._importers_of(one)
            todo += importers - found
            found |= importers
        return frozenset(found)

    @kept_for
    def imports(self, key: str) -> frozenset[str]:
        """The files that a file imports, and the ``__init__.py`` of each package around them. An unresolved ``import
        model`` counts for every file of that name, since the program may run in any folder."""
        found: set[str] = set()
        for item in self._program.module(key).index.imports:
            targets = self._program.imported_files(item, key)
            if not targets and item.module.partition(".")[0] not in OUTSIDE:
                targets = [key for name in item.modules for key in self._named(name)]
            for target in targets:
                found |= {target, *self._packages(target)}
        return frozenset(found - {key})

    def _named(self, module: str) -> Iterable[str]:
        """The files that a module's dotted name may mean, in whatever folder."""
        path = module.replace(".", "/")
        named = self._by_name.get(module.rpartition(".")[2], ())
        return [key for key in named if f"/{key.removesuffix('.py').removesuffix('/__init__')}".endswith(f"/{path}")]

    @functools.cached_property
    def _by_name(self) -> dict[str, list[str]]:
        """The files by the name under which `_name` says they are imported."""
        found: dict[str, list[str]] = {}
        for key in self._program.project.sources:
            found.setdefault(_name(key), []).append(key)
        return found

    def _packages(self, key: str) -> Iterable[str]:
        """The ``__init__.py`` of the packages that a file lies in."""
        folder = key.rpartition("/")[0]
        while folder and f"{folder}/__init__.py" in self._program.project.sources:
            yield f"{folder}/__init__.py"
            folder = folder.rpartition("/")[0]

    @kept_for
    def _importers_of(self, key: str) -> frozenset[str]:
        """The direct importers of a file. A file that is neither a program nor a test may also be loaded by name."""
        # a file that does not parse may import any
        index = {other: self._program.module(other).index for other in self._candidates_of(key) if other != key}
        found = {other for other, one in index.items() if key in self.imports(other) or not one.complete}
        if key.endswith("conftest.py"):
            found |= {other for other in self._below(key) if is_collected(other) and other != key}
        elif not is_program(self._program, key) and not is_collected(key):
            found |= self._loaders_of(key, all(is_collected(other) for other in found)) - {key}
        return frozenset(found)

    def _loaders_of(self, key: str, unimported: bool) -> set[str]:
        """The files that may load a file by a computed name.

        ``unimported``: only tests import the file, or nothing does. Then files that load by a wholly unknown name, and
        those that unpickle objects, count as well, if they may know the file.
        """
        module, found, unknowing = self._program.module(key), set[str](), list(self._unpickling)
        for other, names in loaders(self._program).items():
            if names is None:
                unknowing.append(other)
            elif is_loaded(module, names):
                found.add(other)
        if unimported:
            found.update(other for other in unknowing if knows(self._program, other, key))
        return found

    @functools.cached_property
    def _unpickling(self) -> list[str]:
        """The files that load pickled objects: unpickling imports the module of the object's class."""
        named = self._program.words.files("load")
        return [key for key in named if self._program.text_facts.get(_UNPICKLING, key)]

    @functools.cached_property
    def _unpickling_objects(self) -> list[str]:
        """Those of `_unpickling` that may load other things than weights."""
        sources = self._program.project.sources
        named = {*self._program.words.files("load"), *self._program.words.files("loads")}
        return [key for key in sources if key in named and self._program.text_facts.get(_UNPICKLING_OBJECTS, key)]

    @kept_for
    def _candidates_of(self, key: str) -> Collection[str]:
        """A superset of the importers, from the text alone: files whose imports name the file, or that are in its
        package."""
        name = _name(key)
        words, facts = self._program.words, self._program.text_facts
        naming = [other for other in words.files(name) if name in facts.get(_IMPORTED, other)]
        package = self._below(key) if key.endswith("__init__.py") else ()
        return {*naming, *package}

    def _below(self, key: str) -> list[str]:
        """The files in the folder of a file, at any depth."""
        folder = key[: key.rfind("/") + 1]
        return [other for other in self._program.project.sources if other.startswith(folder)]


def _imported_words(text: str) -> frozenset[str]:
    """The words of a file's imports."""
    imports = _IMPORT.findall(_COMMENT.sub("", text))
    return frozenset(word for one in imports for word in _WORD.findall(one))


_UNPICKLING = TextFact("unpickles", bool, lambda text: _UNPICKLES.search(text) is not None)
_UNPICKLING_OBJECTS = TextFact(
    "unpickles objects",
    bool,
    lambda text: (
        _UNPICKLES_OBJECTS.search(text) is not None
        or (_UNPICKLES.search(text) is not None and "state_dict" not in text)
    ),
)
_IMPORTED = TextFact("words of imports", frozenset[str], _imported_words)


def _name(key: str) -> str:
    """The last component of a file's import path: its stem; for an ``__init__.py``, the name of the package."""
    folder, _, name = key.rpartition("/")
    return folder.rpartition("/")[2] if name == "__init__.py" else name.partition(".")[0]


class Imported:
    """Computed on demand.

    ``imports``: the files that a file imports directly. ``unknowing``: the files that may load any file that
    they know. A set of files is a number with a bit for each, since there is one for each file of a large project.
    """

    def __init__(self, program: Program, imports: Callable[[str], frozenset[str]], unknowing: frozenset[str]) -> None:
        self._program = program
        self._imports = imports
        self._unknowing = unknowing
        self._found: dict[str, int] = {}
        self._bits = {key: 1 << at for at, key in enumerate(program.project.sources)}

    def may_run(self, key: str, other: str) -> bool:
        """Whether a file may run another one. A file runs itself."""
        if key not in self._found:
            self._found[key] = self._closure(key)
        return bool(self._found[key] & self._bits[other])

    def _closure(self, key: str) -> int:
        found, todo = 0, [key]
        while todo:
            one = todo.pop()
            if found & self._bits[one]:
                continue
            known = self._found.get(one, 0)
            found |= self._bits[one] | known
            if not known:
                todo += self._directly(one)
        return found

    def _directly(self, key: str) -> Iterator[str]:
        """The files that a file may run itself. One that does not parse may import any."""
        if not self._program.module(key).index.complete:
            yield from self._bits
        elif key in self._unknowing:
            yield from (other for other in self._bits if knows(self._program, key, other))
        yield from self._imports(key)
        words = set(_WORD.findall(self._program.module(key).text)) if self._cloned else ()
        for name, files in self._cloned.items():
            if name in words:
                yield from (other for other in files if knows(self._program, key, other))
        yield from self._loaded.get(key, ())
        if is_collected(key):
            yield from (other for other in self._fixtures if key.startswith(other.removesuffix("conftest.py")))

    @functools.cached_property
    def _cloned(self) -> Mapping[str, list[str]]:
        """The files of repositories that are cloned into the project, by the names under which a library may load them
        for the code around: those of the outermost package and of the repository."""
        project = self._program.project
        found: dict[str, list[str]] = {}
        for key in self._bits:
            if project.repository(key) != project.root:
                for name in (project.dotted(key).partition(".")[0], project.repository(key).name):
                    found.setdefault(name, []).append(key)
        return found

    @functools.cached_property
    def _loaded(self) -> Mapping[str, list[str]]:
        """By file, the files that it loads by a name of which a part is known."""
        module = self._program.module
        named = ((key, names) for key, names in loaders(self._program).items() if names)
        return {key: [other for other in self._bits if is_loaded(module(other), names)] for key, names in named}

    @functools.cached_property
    def _fixtures(self) -> list[str]:
        """The files that run with the tests of their folder."""
        return [key for key in self._bits if key.rpartition("/")[2] == "conftest.py"]


#: words without which nothing in a file differentiates or trains
_TRAINING = (
    "backward", "autograd", "grad", "vjp", "jvp", "jacrev", "jacfwd", "jacobian", "hessian", "optim", "optimizer",
    "Optimizer", "Trainer", "fit", "learn", "minimize", "attribute",
)  # fmt: skip
#: the most files of the programs that are looked at
_MAX_FILES = 200


@kept_for
def is_of_idle_programs(program: Program, partners: Partners, key: str) -> bool:
    """Whether all programs that may run a file's code train nothing. False if unknown: other projects may import the
    file, or the programs have too many files."""
    above = partners.all_importers(key)
    if above is None:
        return False
    found, todo = set(above), list(above)
    while todo:
        new = partners.imports(todo.pop()) - found
        found |= new
        todo += new
        if len(found) > _MAX_FILES:
            return False
    return all(found.isdisjoint(program.words.files(word)) for word in _TRAINING)
