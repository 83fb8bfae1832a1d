"""Runs a program with probes: ``python launch.py PLAN``. The program sees the environment of ``python PROGRAM``."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from types import CodeType, ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlint.measure.plan import FilePlan, Plan
    from memlint.measure.session.session import Session

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_PACKAGE = "_memlint_measure"


def _load() -> None:
    """Import this folder as a package `_memlint_measure`, so that memlint need not be installed."""
    path = os.path.join(_HERE, "__init__.py")
    spec = importlib.util.spec_from_file_location(_PACKAGE, path, submodule_search_locations=[os.path.dirname(path)])
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)


def main(plan_path: str) -> int:
    """Run the program of a plan and return its exit code."""
    plan, session, stop, compile_file = _set_up(plan_path)
    try:
        code, main_module = _prepare(plan, compile_file)
    except BaseException as error:
        session.finish({"kind": "failed", "code": 1, "exception": type(error).__name__})
        return _show(error)
    return _run(code, main_module, session, stop)


def spawned(plan_path: str) -> None:
    """Measure this process, which multiprocessing has spawned."""
    try:
        _, session, _, compile_file = _set_up(plan_path, spawned=True)
        begin = importlib.import_module(f"{_PACKAGE}.processes.spawned").begin
        begin(compile_file, lambda code: session.finish({"kind": "failed" if code else "finished", "code": code}))
    except Exception:  # the process runs unmeasured
        return


def _set_up(plan_path: str, *, spawned: bool = False) -> tuple[Plan, Session, Any, Any]:
    """The plan, its session, the exception that stops the program, and the function that compiles its files."""
    _load()
    plans = importlib.import_module(f"{_PACKAGE}.plan")
    sessions = importlib.import_module(f"{_PACKAGE}.session.session")
    probes = importlib.import_module(f"{_PACKAGE}.probing.probes")
    imports = importlib.import_module(f"{_PACKAGE}.probing.imports")
    with open(plan_path, encoding="utf-8") as file:
        plan: Plan = plans.loads(file.read())
    session: Session = sessions.Session(plan, spawned)
    probes.install(session)
    if "torch" in sys.modules:  # a `sitecustomize` has imported it
        probes.torch_came()
    files: dict[str, FilePlan] = {os.path.realpath(file.path): file for file in plan.files}

    def compile_file(path: str, raw: bytes) -> CodeType:
        return _compile(path, raw, files.get(os.path.realpath(path)), session)

    def torch_came() -> None:
        importlib.import_module(f"{_PACKAGE}.processes.spawned").follow_spawned(plan_path)
        probes.torch_came()

    sys.meta_path.insert(0, imports.Finder([file.path for file in plan.files], compile_file, torch_came))
    _write_before_exit(session)
    if plan.module and not spawned:
        importlib.import_module(f"{_PACKAGE}.processes.started").follow_scripts(plan, session.leave)
    if plan.seed is not None:
        import random

        random.seed(plan.seed)
    return plan, session, sessions.Stop, compile_file


def _run(code: CodeType, module: ModuleType, session: Session, stop: Any) -> int:
    try:
        exec(code, module.__dict__)
    except stop:
        session.finish({"kind": "stopped"})  # without effect if the session has ended
        return 0
    except SystemExit as error:
        number = 0 if error.code is None else error.code if isinstance(error.code, int) else 1
        session.finish({"kind": "finished" if number == 0 else "failed", "code": number, "exception": None})
        raise
    except KeyboardInterrupt:
        session.finish({"kind": "interrupted", "code": 130})
        return 130
    except BaseException as error:
        session.finish(
            {
                "kind": "failed",
                "code": 1,
                "exception": type(error).__name__,
                "memory": _is_memory(error),
                "message": str(error)[:2000] if _is_memory(error) else None,
            }
        )
        return _show(error)
    session.finish({"kind": "finished", "code": 0, "exception": None})
    return 0


def _is_memory(error: BaseException) -> bool:
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _show(error: BaseException) -> int:
    """Print an exception as Python would, without the frames of this package. Returns the exit code."""
    trace = _own_frames(error.__traceback__)
    if sys.excepthook is sys.__excepthook__:
        traceback.print_exception(type(error), error, trace)
    else:
        sys.excepthook(type(error), error.with_traceback(trace), trace)
    return 1


def _own_frames(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this package, and of the import system if the package is between them."""
    frames: list[TracebackType] = []
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    names = [each.tb_frame.f_code.co_filename for each in frames]
    first = next((number for number, name in enumerate(names) if not name.startswith(_HERE)), len(names))
    between = any(name.startswith(_HERE) for name in names[first:])
    for each, name in zip(reversed(frames), reversed(names), strict=False):
        if name.startswith(_HERE) or (between and name.startswith("<frozen importlib")):
            continue
        trace = TracebackType(trace, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return trace


def _prepare(plan: Plan, compile_file: Any) -> tuple[CodeType, ModuleType]:
    """The code of the main module, and a module with the attributes that Python gives it."""
    spec: Any = None
    if plan.module:
        if not sys.flags.safe_path if hasattr(sys.flags, "safe_path") else True:
            sys.path[0] = os.getcwd()
        spec = importlib.util.find_spec(plan.target)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{plan.target}.__main__")
        if spec is None or spec.origin is None or not spec.has_location:
            raise ImportError(f"No module named {plan.target}")
        path = spec.origin
    else:
        path = plan.target
        if not getattr(sys.flags, "safe_path", False):
            sys.path[0] = os.path.dirname(os.path.realpath(path))
    sys.argv[:] = [plan.typed or path, *plan.arguments]
    module = ModuleType("__main__")
    module.__dict__.update(
        __builtins__=__builtins__,
        __file__=path,
        __cached__=None if spec is None else spec.cached,
        __spec__=spec,
        __package__=None if spec is None else spec.parent,
        __loader__=importlib.machinery.SourceFileLoader("__main__", path) if spec is None else spec.loader,
    )
    if "__annotations__" in globals():  # this Python gives it to every main module
        module.__annotations__ = {}
    sys.modules["__main__"] = module
    with open(path, "rb") as file:
        raw = file.read()
    return compile_file(path, raw), module


def _compile(path: str, raw: bytes, plan: FilePlan | None, session: Session) -> CodeType:
    """The code of a file with the probes of its plan. A file that cannot get them runs without, and its sites and loops
    are noted as missing."""
    if plan is None:
        return compile(raw, path, "exec", dont_inherit=True)
    instrument = importlib.import_module(f"{_PACKAGE}.probing.instrument")
    missing: list[int] | None
    try:
        text = plan.text if plan.text is not None else _decode(raw)
        tree, missing = instrument.parse(text, path, plan.sites, plan.loops)
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, TypeError, RecursionError, UnicodeError):
        missing = None
    if missing is None:
        session.missing += [site.id for site in plan.sites] + [loop.id for loop in plan.loops]
        return compile(raw if plan.text is None else plan.text, path, "exec", dont_inherit=True)
    session.missing += missing
    return code


def _decode(raw: bytes) -> str:
    import io
    import tokenize

    encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    return raw.decode(encoding)


def _write_before_exit(session: Session) -> None:
    """Write the results before ``os._exit``, which runs no exit handlers."""
    leave = os._exit

    def write_and_leave(status: int) -> None:
        if session.active:
            session.finish({"kind": "finished" if status == 0 else "failed", "code": status, "exception": None})
        leave(status)

    os._exit = write_and_leave  # type: ignore[assignment]


def rule_probes(job_path: str) -> int:
    """Measure rules' probes instead of a program."""
    _load()
    return int(importlib.import_module(f"{_PACKAGE}.rule_probes").main(job_path))


if __name__ == "__main__":
    sys.exit(rule_probes(sys.argv[2]) if sys.argv[1] == "--rule-probes" else main(sys.argv[1]))
