"""Which modules can contain findings. Only a filter for speed: it never changes a finding."""

from __future__ import annotations

import functools
from pathlib import PurePosixPath

from memlint.analysis.index.program import Program
from memlint.family import OTHER_FRAMEWORKS, TENSOR_WORDS, TORCH_FAMILY, TRAINING_CALLS
from memlint.frontend.index_records import ModuleIndex


def relevant_modules(program: Program, keys: list[str], *, lower: bool = False) -> frozenset[str]:
    """Those of ``keys`` that use torch, or import (transitively) a module of the project that does, or that such a
    module imports and that may handle tensors.

    ``lower``: lower them while their trees are in memory, as all will be analysed.
    """
    importers: dict[str, set[str]] = {}
    knowing: list[str] = []
    ahead = frozenset(keys if lower else ())
    todo, seen = list(keys), set(keys)
    while todo:
        key = todo.pop()
        module = program.module(key)
        index = module.read(functools.partial(_may_matter, program, key)) if key in ahead else module.index
        if not index.complete or _uses_torch(program, index):
            knowing.append(key)
            continue
        for target in _imported(program, key):
            importers.setdefault(target, set()).add(key)
            if target not in seen:
                seen.add(target)
                todo.append(target)
    relevant = set(knowing)
    while knowing:
        for importer in importers.get(knowing.pop(), ()):
            if importer not in relevant:
                relevant.add(importer)
                knowing.append(importer)
    rest = [key for key in keys if key not in relevant and TENSOR_WORDS.search(program.module(key).text)]
    return frozenset(relevant & set(keys)).union(key for key in rest if _serves(program, key))


def _serves(program: Program, key: str) -> bool:
    """Whether a module that imports the torch family imports this one, transitively."""
    todo, seen = [key], {key}
    while todo:
        target = todo.pop()
        stem = PurePosixPath(target).with_suffix("")
        name = stem.parent.name if stem.name == "__init__" else stem.name
        for other in program.words.files(name):
            if other not in seen and target in _imported(program, other):
                if _uses_torch(program, program.module(other).index):
                    return True
                seen.add(other)
                todo.append(other)
    return False


def _uses_torch(program: Program, index: ModuleIndex) -> bool:
    """Whether a file imports the torch family, or trains what it is given as torch code does: it calls ``zero_grad()``
    and ``backward()``, which no class of the project defines."""
    roots = {item.module.split(".", 1)[0] for item in index.imports if item.level == 0}
    if roots & TORCH_FAMILY:
        return True
    calls = frozenset[str]().union(*(unit.calls for unit in index.units))
    return calls >= TRAINING_CALLS and not roots & OTHER_FRAMEWORKS and not program.words.defining("zero_grad")


def _may_matter(program: Program, key: str, index: ModuleIndex) -> bool:
    return _uses_torch(program, index) or any(
        item.level or program.resolve(item.module, key, 0) is not None for item in index.imports
    )


def _imported(program: Program, key: str) -> set[str]:
    """The project's modules that a module imports."""
    imports = program.module(key).index.imports
    return {target for item in imports for target in program.imported_files(item, key) if target != key}
