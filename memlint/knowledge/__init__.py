"""What torch and its frameworks do: rows of TOML, read once, each with the kind of fact that is computed for code.

A call of a library (a loss, an optimizer or a wrapper of one, a loader) is a row of torch.toml, a method that a
framework calls one of frameworks.toml; `memlint.analysis.transfer.library.external_calls` says what each ``returns``
means.
"""

from __future__ import annotations

import fnmatch
import functools
import re
import sys
from importlib import resources
from typing import Any, NamedTuple

from memlint.patterns import lazy_pattern

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class Row(NamedTuple):
    """What one function does. ``context``: the grad mode of a with block or decorator ("" for none)."""

    returns: str
    graph: str
    size: str
    context: str
    allocates: bool
    shares: bool
    #: the module that it gives is in eval mode
    evaluates: bool
    starts_evaluating: bool


class Hook(NamedTuple):
    """What a framework does with a method: how often it runs, under which grad mode, with what."""

    every: str
    grad: str
    returns: str
    batch: int
    outputs: int
    device: str
    #: the position of the parameter that is the model
    model: int = 0
    #: by the method, the hook for which the framework keeps what each call of it returns, where a class has that hook
    collected: tuple[tuple[str, str], ...] = ()
    #: the class is of the framework's own repository, so that the framework's calls are read
    own: bool = False
    #: the framework makes a new object of the class for each call
    anew: bool = False


class Entry(NamedTuple):
    """By what a function is known that a runtime calls for each request: see ``services.toml``."""

    imports: frozenset[str]
    decorators: frozenset[str]
    of_class: bool
    given_to: frozenset[str]
    methods: frozenset[str]
    first: str
    beside: str


class Methods(NamedTuple):
    cut: frozenset[str]
    data: frozenset[str]
    alias: frozenset[str]
    move: frozenset[str]
    reduce: frozenset[str]
    op: frozenset[str]
    inplace: frozenset[str]
    #: of numpy's arrays, and not of tensors
    arrays: frozenset[str]

    def knows(self, name: str) -> bool:
        """Whether the name is a tensor method that this table speaks of."""
        return any(name in names for names in self)


@functools.cache
def read(name: str) -> dict[str, Any]:
    """One of the tables as it stands."""
    table: dict[str, Any] = tomllib.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return table


def _row(raw: dict[str, Any]) -> Row:
    return Row(
        raw.get("returns", "data"),
        raw.get("graph", "none"),
        raw.get("size", "unknown"),
        raw.get("context", ""),
        raw.get("allocates", False),
        raw.get("shares", False),
        raw.get("evaluates", False),
        raw.get("starts_evaluating", False),
    )


#: where a pattern of names begins to stand for several
_WILD = lazy_pattern(r"[*?\[]")


@functools.cache
def _functions() -> tuple[dict[str, Row], list[tuple[str, re.Pattern[str], Row]]]:
    """Rows by name, and those of patterns, each with what its names begin with, which is faster to look at."""
    exact: dict[str, Row] = {}
    patterns: list[tuple[int, str, re.Pattern[str], Row]] = []
    for raw in read("torch.toml")["function"]:
        row = _row(raw)
        order = 0 if raw.get("first") else 2 if raw.get("last") else 1
        for name in raw["names"]:
            if any(char in name for char in "*[?"):
                patterns.append((order, _WILD.split(name, 1)[0], lazy_pattern(fnmatch.translate(name)), row))
            else:
                exact.setdefault(name, row)
    patterns.sort(key=lambda entry: entry[0])
    return exact, [(head, pattern, row) for _, head, pattern, row in patterns]


@functools.lru_cache(maxsize=8192)
def function(name: str) -> Row | None:
    """The row of a qualified name such as ``torch.nn.functional.mse_loss``; None where nothing is known."""
    exact, patterns = _functions()
    if name in exact:
        return exact[name]
    return next((row for head, pattern, row in patterns if name.startswith(head) and pattern.match(name)), None)


@functools.lru_cache(maxsize=256)
def star_names(module: str) -> frozenset[str]:
    """What ``from module import *`` binds, of torch's modules that are imported so."""
    return frozenset(read("stars.toml").get(module, {}).get("names", ()) if module.startswith("torch") else ())


@functools.cache
def methods() -> Methods:
    return Methods(*(frozenset(read("torch.toml")["methods"][field]) for field in Methods._fields))


@functools.cache
def bookkeeping() -> frozenset[str]:
    """Methods of a module that run no model."""
    return frozenset(read("torch.toml")["modules"]["bookkeeping"])


def is_bookkeeping(method: str) -> bool:
    """Whether a method of a module runs no model: by the table, or because Python calls it."""
    return method in bookkeeping() or (method.startswith("__") and method.endswith("__") and method != "__call__")


@functools.cache
def guarded_methods() -> frozenset[str]:
    """Methods of the libraries' models that turn grad mode off themselves."""
    return frozenset(read("torch.toml")["modules"]["guarded"])


@functools.cache
def serving_methods() -> frozenset[str]:
    """Methods by which libraries' models serve whoever has one: most turn grad mode off themselves."""
    return frozenset(read("torch.toml")["modules"]["serving"])


@functools.cache
def computing_methods() -> frozenset[str]:
    """Methods of libraries' bases of modules that run what the module's own class computes."""
    return frozenset(read("torch.toml")["modules"]["computing"])


@functools.cache
def module_evidence() -> frozenset[str]:
    """Methods that only modules have."""
    return frozenset(read("torch.toml")["modules"]["evidence"])


@functools.cache
def network_parts() -> frozenset[str]:
    """Attributes of torchvision's networks that are layers."""
    return frozenset(read("torch.toml")["modules"]["parts"])


@functools.cache
def same_without_grad() -> frozenset[str]:
    """Layers of torch.nn that give the same bits whether autograd records or not (containers of layers as well)."""
    return frozenset(read("torch.toml")["modules"]["same_without_grad"])


@functools.lru_cache(maxsize=1024)
def is_same_network(maker: str) -> bool:
    """Whether a library's function makes a network that gives the same bits whether autograd records or not."""
    names = read("torch.toml")["modules"]["networks_same_without_grad"]
    return any(fnmatch.fnmatchcase(maker, name) for name in names)


@functools.cache
def options_without_layers() -> frozenset[str]:
    """The parameters of their makers that take no layers."""
    return frozenset(read("torch.toml")["modules"]["options_without_layers"])


@functools.cache
def replaced_parts() -> frozenset[str]:
    """Attributes of these networks that programs replace by layers of their own."""
    return network_parts() | frozenset(read("torch.toml")["modules"]["replaced"])


@functools.cache
def _hooks() -> list[tuple[tuple[re.Pattern[str], ...], frozenset[str], Hook]]:
    return [
        (
            tuple(lazy_pattern(fnmatch.translate(base)) for base in raw["bases"]),
            frozenset(raw["methods"]),
            Hook(
                raw["every"],
                raw["grad"],
                raw.get("returns", ""),
                raw.get("batch", 0),
                raw.get("outputs", 0),
                raw.get("device", ""),
                raw.get("model", 0),
                tuple(raw.get("collected", {}).items()),
                anew=raw.get("anew", False),
            ),
        )
        for raw in read("frameworks.toml")["hook"]
    ]


@functools.cache
def hooked_methods() -> frozenset[str]:
    """The names of all methods that some framework calls."""
    return frozenset(name for _, names, _ in _hooks() for name in names)


@functools.lru_cache(maxsize=4096)
def hook(base: str, method: str) -> Hook | None:
    """What a framework does with ``method`` of a subclass of ``base`` (a qualified name); None for nothing known."""
    for bases, names, row in _hooks():
        if method in names and any(pattern.match(base) for pattern in bases):
            return row
    return None


@functools.cache
def entries() -> tuple[Entry, ...]:
    """What runtimes call for each request, besides the methods of `hook`."""
    return tuple(
        Entry(
            frozenset(raw.get("imports", ())),
            frozenset(raw.get("decorators", ())),
            raw.get("of_class", False),
            frozenset(raw.get("given_to", ())),
            frozenset(raw.get("methods", ())),
            raw.get("first", ""),
            raw.get("beside", ""),
        )
        for raw in read("services.toml")["entry"]
    )


#: what is known of a function that a runtime calls for each request
SERVED = Hook("request", "", "", 0, 0, "")

#: base classes without code of their own; "?" stands for an import that is not found
EMPTY_BASES = frozenset({"object", "?.object", "builtins.object", "abc.ABC", "typing.Generic", "typing.Protocol"})
#: base classes that call no method of a subclass beyond their documented ones (``forward``, ``__getitem__``)
PLAIN_BASES = EMPTY_BASES | {
    "?.nn.Module",
    "torch.nn.Module",
    "torch.nn.modules.Module",
    "torch.nn.modules.module.Module",
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
    "torch.utils.data.dataset.Dataset",
    "torch.utils.data.dataset.IterableDataset",
}

#: decorators that change neither the arguments nor the result of a function
PLAIN_DECORATORS = frozenset(
    ["staticmethod", "classmethod", "no_grad", "inference_mode", "enable_grad", "torch", "override", "abstractmethod"]
)

#: qualified names that mark a class as a kind of tensor
TENSOR_BASES = frozenset(
    {
        "torch.Tensor",
        "torch.nn.Buffer",
        "torch.nn.Parameter",
        "torch.nn.parameter.Buffer",
        "torch.nn.parameter.Parameter",
        "torch.nn.parameter.UninitializedParameter",
    }
)

#: qualified names that mark a class as a module
MODULE_BASES = lazy_pattern(
    r"torch\.nn\.(?!Parameter)[A-Z]\w*|torch\.nn\.modules\..*|.*LightningModule|.*PreTrainedModel|.*ModelMixin|fairseq\.models\..*Model\w*|timm\.models\..*|torchvision\.models\..*|transformers\.\w*(Model|For)\w*|torch_geometric\.nn\..*|flash\..*|torch\.jit\.ScriptModule|(mmcv|mmengine)\.(\w+\.)*(BaseModule|BaseModel|Sequential|ModuleList|ModuleDict)"
)
