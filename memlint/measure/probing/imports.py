"""Puts probes into the program's modules when they are imported, and reports the import of torch."""

from __future__ import annotations

import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

#: compiles a file with its probes, from its path and its bytes
Compile = Callable[[str, bytes], CodeType]
#: the module of pytest that rewrites assertions
_REWRITING = "_pytest.assertion.rewrite"


class ProbedLoader(importlib.machinery.SourceFileLoader):
    """Loads a source with its probes. It neither reads nor writes compiled files, which have no probes."""

    compile: Compile

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return type(self).compile(path, self.get_data(path))


class Finder:
    """Finds modules by the other finders, and replaces the loaders of the plan's files."""

    def __init__(self, paths: Sequence[str], compile_file: Compile, torch_came: Callable[[], None]) -> None:
        self._paths = {os.path.realpath(path): path for path in paths}
        self._torch_came = torch_came
        self._loader = type("ProbedLoader", (ProbedLoader,), {"compile": staticmethod(compile_file)})

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is not None:
                return self._changed(name, spec)
        return None

    def _changed(self, name: str, spec: ModuleSpec) -> ModuleSpec:
        loader = spec.loader
        if name == "torch" and loader is not None:
            spec.loader = _Notifying(loader, self._torch_came)  # type: ignore[assignment]
        elif name == _REWRITING and loader is not None:
            spec.loader = _Notifying(loader, self._pytest_came)  # type: ignore[assignment]
        elif self._is_probed(spec):
            if type(loader) is importlib.machinery.SourceFileLoader:
                spec.loader = self._loader(loader.name, loader.path)  # other loaders are kept
            elif type(loader).__name__ == "AssertionRewritingHook" and spec.origin is not None:
                # without pytest's rewriting, which only improves the messages of failing assertions
                spec.loader = self._loader(spec.name, spec.origin)
        return spec

    def _pytest_came(self) -> None:
        """Change the loaders of pytest's own finder, which comes first."""
        hook = sys.modules[_REWRITING].AssertionRewritingHook
        find = hook.find_spec

        def find_spec(this: Any, name: str, *arguments: Any, **options: Any) -> ModuleSpec | None:
            spec: ModuleSpec | None = find(this, name, *arguments, **options)
            return None if spec is None else self._changed(name, spec)

        hook.find_spec = find_spec

    def _is_probed(self, spec: ModuleSpec) -> bool:
        return spec.origin is not None and os.path.realpath(spec.origin) in self._paths


class _Notifying:
    """A loader that calls ``done`` after its module is executed. The module keeps its original loader."""

    def __init__(self, loader: Any, done: Callable[[], None]) -> None:
        self._loader = loader
        self._done = done

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._done()
