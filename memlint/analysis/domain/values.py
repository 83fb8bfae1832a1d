"""Abstract values: what an expression may be, as a flat record whose fields are sets.

A `V` is the join over all paths. The join is field by field, so only correlations between fields are lost. Graphs are
named by *sources*:

* an ``int`` or a tuple that begins with an ``int`` is a node of this function (see `memlint.analysis.domain.graphs`);
* a `Path` is a symbol: the graph of an argument, or of what an attribute held before;
* ``("prev", loop, name)`` is the graph that a loop-carried variable had when the iteration began;
* ``("elem", object)`` marks a value read out of a container, so that later uses of the container are known.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from memlint.analysis.domain.extents import extents
from memlint.analysis.domain.extents.extents import Extent
from memlint.analysis.domain.stable_order import in_stable_order

NONE, DATA, TENSOR, TREE, MODULE, OPTIMIZER, LOADER, CONTAINER, INSTANCE, CALLABLE, UNKNOWN = (
    1 << i for i in range(11)
)
#: kinds that can carry a graph
TENSORS = TENSOR | TREE
CPU, ACCELERATOR, ANYWHERE = 1, 2, 4
#: OUTPUT: a model's output, of batch size unless it is a loss
SCALAR, SAMPLE, BATCH, ACTIVATION, MODEL, SOME_SIZE, OUTPUT = range(7)

#: a hashable: see the module's docstring
Source: TypeAlias = Any
Sources = frozenset[Any]
EMPTY: Sources = frozenset()


#: makes a named tuple without a check of the number of its fields
_tuple: Callable[[type[Path], tuple[Any, ...]], Path] = tuple.__new__


class Path(NamedTuple):
    """A symbol: a root (``p:loss`` a parameter, ``c:x`` a free variable, ``g:pkg/mod.py:x`` a global) and steps
    (``.name``, ``[]``, ``[key]``)."""

    root: str
    steps: tuple[str, ...] = ()

    def then(self, step: str) -> Path:
        return _tuple(Path, (self.root, (*self.steps, step)))

    def is_in(self, whole: Path) -> bool:
        """Whether the symbol is another symbol or a part of it: ``items[i].name`` and ``items[i]``."""
        return self.root == whole.root and self.steps[: len(whole.steps)] == whole.steps

    @property
    def around(self) -> Path:
        """The symbol that the last step is taken from."""
        return _tuple(Path, (self.root, self.steps[:-1]))

    @property
    def text(self) -> str:
        name = self.root.rsplit(":", 1)[1]
        return name + "".join("[…]" if step == "[]" else step for step in self.steps)


class Ref(NamedTuple):
    """What a callable value refers to.

    ``kind``: ext (``name`` is the qualified name outside the project), func, class, module (``key`` and ``name`` locate
    it in the project), bound (the method ``name`` of the container ``self_``, which is ``key`` in the source), partial
    (``args`` and ``keywords`` are fixed), foreign (an object of the external class ``name``), record (a named tuple of
    the members ``args``), shape (of the distribution ``name``, whose entropy is computed from ``self_``), member (of a
    container: the module or object ``self_`` is at the key ``name``, or at every key without a reference of its own if
    ``name`` is empty).
    """

    kind: str
    key: str
    name: str
    self_: Any = None
    args: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()


#: the device of a module, whichever that is
OWN_DEVICE = Ref("own-device", "", "")
#: a container that lists the entries of a dict with known keys
OF_KEYS = Ref("over", "", "keys")
#: a container that lists the batches of a loader
OVER_LOADER = Ref("over", "", "loader")
#: a generator that yields once for each batch of a loader, or for each step of training
PER_BATCH = Ref("rounds", "", "loader")
#: a container of modules
OF_MODULES = Ref("over", "", "modules")
#: a container of loaders: ``{"train": DataLoader(…), "val": DataLoader(…)}``
OF_LOADERS = Ref("over", "", "loaders")
#: a container of objects of the project's classes, which may be modules
OF_OBJECTS = Ref("over", "", "objects")
#: a container of strings and integers, by its annotation
OF_TEXTS = Ref("over", "", "texts")


#: stands for an unchanged constant or extent
_SAME: Any = object()


class V:
    """One abstract value. Immutable by convention; see the module's docstring."""

    __slots__ = ("bare", "const", "device", "extent", "kinds", "objs", "refs", "size", "src", "store", "syms")

    def __init__(
        self,
        kinds: int,
        src: Sources = EMPTY,
        bare: bool = False,
        objs: Sources = EMPTY,
        refs: Sources = EMPTY,
        syms: Sources = EMPTY,
        store: Sources = EMPTY,
        device: int = ANYWHERE,
        size: int = SOME_SIZE,
        const: Any = None,
        extent: Extent | None = None,
    ) -> None:
        self.kinds = kinds
        #: graph sources; `bare`: on some path there is no graph though there are sources
        self.src = src
        self.bare = bare
        self.objs = objs
        self.refs = refs
        self.syms = syms
        #: storages: ordinals of the expressions that made them
        self.store = store
        self.device = device
        self.size = size
        self.const = const
        #: the size of a tensor in bytes; None if nothing bounds it
        self.extent = extent

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, V)
            and self.kinds == other.kinds
            and self.src == other.src
            and self.objs == other.objs
            and self.bare == other.bare
            and self.refs == other.refs
            and self.syms == other.syms
            and self.device == other.device
            and self.size == other.size
            and self.store == other.store
            and self.const == other.const
            and self.extent == other.extent
        )

    def __hash__(self) -> int:
        return hash((self.kinds, self.src, self.objs, self.refs, self.syms))

    def __repr__(self) -> str:
        fields = [f"kinds={self.kinds:b}"]
        fields += [
            f"{name}={getattr(self, name)!r}"
            for name in ("src", "objs", "refs", "syms", "const")
            if getattr(self, name)
        ]
        return f"V({', '.join(fields)})"

    def but(
        self,
        *,
        kinds: int | None = None,
        src: Sources | None = None,
        bare: bool | None = None,
        objs: Sources | None = None,
        refs: Sources | None = None,
        syms: Sources | None = None,
        store: Sources | None = None,
        device: int | None = None,
        size: int | None = None,
        const: Any = _SAME,
        extent: Extent | None = _SAME,
    ) -> V:
        """A copy with some fields changed."""
        return V(
            self.kinds if kinds is None else kinds,
            self.src if src is None else src,
            self.bare if bare is None else bare,
            self.objs if objs is None else objs,
            self.refs if refs is None else refs,
            self.syms if syms is None else syms,
            self.store if store is None else store,
            self.device if device is None else device,
            self.size if size is None else size,
            self.const if const is _SAME else const,
            self.extent if extent is _SAME else extent,
        )

    def marked(self, source: Source) -> V:
        """The value with one more source."""
        if source in self.src:
            return self
        src = self.src | {source}  # fields by position, as loops mark all values in each iteration
        return V(
            self.kinds,
            src,
            self.bare,
            self.objs,
            self.refs,
            self.syms,
            self.store,
            self.device,
            self.size,
            self.const,
            self.extent,
        )

    def resolved(self) -> bool:
        """Whether the value refers to something known."""
        return bool(self.refs) and any(ref.kind != "foreign" for ref in self.refs)

    def is_only(self, kinds: int) -> bool:
        return bool(self.kinds) and not self.kinds & ~kinds

    def may_be(self, kinds: int) -> bool:
        return bool(self.kinds & kinds)

    def may_be_module(self) -> bool:
        """Whether its use decides if it is a module: nothing is known of it, or only that it was loaded from a file."""
        return bool(self.kinds & UNKNOWN) or (bool(self.kinds & TREE) and self.size == MODEL)

    def as_module(self) -> V:
        """The value, known to be a module by its use. One that was loaded from a file keeps its size (see
        `is_unpickled`)."""
        size = MODEL if self.kinds & TREE and self.size == MODEL else SOME_SIZE
        guess = UNKNOWN | TENSORS if self.refs else UNKNOWN | TENSORS | CALLABLE
        return self.but(kinds=self.kinds & ~guess | MODULE, src=EMPTY, size=size)

    def is_unpickled(self) -> bool:
        """Whether it is a module that was pickled whole and loaded from a file: ``torch.load(path)["model"]``."""
        return self.is_only(MODULE) and self.size == MODEL

    def is_plain(self) -> bool:
        """Whether it holds no tensor: a number, a string, an array, or a container annotated to hold such values."""
        of_texts = OF_TEXTS in self.refs and not self.objs
        return self.is_only(DATA | NONE | CONTAINER if of_texts else DATA | NONE)

    def is_of_library(self) -> bool:
        """Whether, on some path, a call to a library made the module."""
        return bool(self.kinds & MODULE) and any(ref.kind == "foreign" for ref in self.refs)


NOTHING = V(0)
UNKNOWN_VALUE = V(UNKNOWN)
NONE_VALUE = V(NONE)
DATA_VALUE = V(DATA, size=SCALAR)


def join(a: V, b: V) -> V:
    """The least upper bound of two values."""
    if a is b or b.kinds == 0:
        return a
    if a.kinds == 0:
        return b
    if a == b:
        return a
    src = a.src if a.src == b.src else a.src | b.src
    objs = a.objs if a.objs == b.objs else a.objs | b.objs
    kinds = a.kinds | b.kinds
    if len(objs) > MAX_OBJS:
        objs = EMPTY
    if a.objs and not objs:
        kinds |= UNKNOWN
    return V(
        kinds,
        src,
        a.bare or b.bare or (bool(src) and (not a.src or not b.src)),
        objs,
        a.refs if a.refs == b.refs else _few(a.refs | b.refs),
        a.syms if a.syms == b.syms else _few(a.syms | b.syms),
        a.store if a.store == b.store else _storages(a, b),
        a.device | b.device,
        a.size if a.size == b.size else _larger(a, b),
        a.const if a.const is b.const or (a.const == b.const and type(a.const) is type(b.const)) else None,
        a.extent if a.extent == b.extent else _extent(a, b),
    )


#: the most objects that a value distinguishes
MAX_OBJS = 16
#: a larger set of alternatives becomes empty, which means unknown
MAX_ALTERNATIVES = 16


def _few(items: Sources) -> Sources:
    return items if len(items) <= MAX_ALTERNATIVES else EMPTY


#: the mark of a storage that unknown code made
ELSEWHERE = ("elsewhere",)


def _storages(a: V, b: V) -> Sources:
    """The storages of a join of two values with different storages. An unknown one on either side is marked."""
    store = a.store | b.store
    unseen = (side for side in (a, b) if not side.store and side.kinds & (TENSORS | UNKNOWN))
    return store | {ELSEWHERE} if next(unseen, None) is not None else store


def _larger(a: V, b: V) -> int:
    """The size of a join. Data and None take no memory, so they do not change the size of a tensor."""
    if a.is_only(NONE | DATA):
        return b.size
    if b.is_only(NONE | DATA):
        return a.size
    return max(a.size, b.size)


def _extent(a: V, b: V) -> Extent | None:
    """The extent of a join. As for the size, data and None do not change that of a tensor."""
    if a.is_only(NONE | DATA):
        return b.extent
    return a.extent if b.is_only(NONE | DATA) else extents.join(a.extent, b.extent)


def ordered(items: Sources) -> Iterable[Any]:
    """The items of a set in an order that is the same in every run, for steps whose result depends on the order."""
    return items if len(items) < 2 else _sorted(items)


@functools.lru_cache(maxsize=1 << 12)
def _sorted(items: Sources) -> tuple[Any, ...]:
    return in_stable_order(items, _rank)


def _rank(item: Source) -> str:
    return repr((item.kind, item.key, item.name)) if isinstance(item, Ref) else repr(item)


def join_all(values: Iterable[V]) -> V:
    """The join of many values, in any order."""
    parts = [value for value in values if value.kinds]
    if len(parts) > 2:
        parts = [*{id(value): value for value in parts}.values()]
    if len(parts) < 3:
        return NOTHING if not parts else parts[0] if len(parts) == 1 else join(*parts)
    first = parts[0]
    kinds = device = 0
    graphs: set[Sources] = set()
    objs: set[Any] = set()
    refs: set[Sources] = set()
    syms: set[Sources] = set()
    stores: set[Sources] = set()
    bare = unseen = False
    const = first.const
    sizes: list[int] = []
    found: list[Extent | None] = []
    for value in parts:
        kinds |= value.kinds
        device |= value.device
        bare = bare or value.bare
        graphs.add(value.src)
        objs |= value.objs
        refs.add(value.refs)
        syms.add(value.syms)
        stores.add(value.store)
        if not value.store and value.kinds & (TENSORS | UNKNOWN):
            unseen = True
        if value.kinds & ~(NONE | DATA):
            sizes.append(value.size)
            found.append(value.extent)
        if const is not None and not (value.const == const and type(value.const) is type(const)):
            const = None
    store = EMPTY.union(*stores)
    if len(objs) > MAX_OBJS:
        objs = set()
        kinds |= UNKNOWN
    return V(
        kinds,
        EMPTY.union(*graphs),
        bare=bare or (len(graphs) > 1 and EMPTY in graphs),
        objs=frozenset(objs),
        refs=first.refs if len(refs) == 1 else _few(EMPTY.union(*refs)),
        syms=first.syms if len(syms) == 1 else _few(EMPTY.union(*syms)),
        store=store | {ELSEWHERE} if store and unseen else store,
        device=device,
        size=max(sizes) if sizes else parts[-1].size,
        const=const,
        extent=functools.reduce(extents.join, found) if found else None,
    )


#: positional arguments and keywords of a call
Args = list[V]
Words = dict[str, V]


#: literals by parameter: (name, True, False, a string or None)
Flags = tuple[tuple[str, bool | str | None], ...]
