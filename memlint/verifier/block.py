"""The block of a ``with`` statement that is about to run: found in its source, run from another tree of the source in
its own frame's variables, and then skipped. Existing functions get the code of that tree meanwhile."""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CellType, CodeType, FrameType, FunctionType
from typing import Any

from memlint.measure.retention.storages import heap

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_OPTIMIZED = 0x1
_FEATURES = importlib.import_module("__future__")
_FUTURE = sum(getattr(_FEATURES, name).compiler_flag for name in _FEATURES.all_feature_names)
#: a builtin while a block runs: the value of the name after ``as``
_ENTERED = "_memlint_entered"
_ELSEWHERE = "put it into a function that the block calls"


class BlockError(RuntimeError):
    """Why a block cannot be measured, in one sentence for the user."""


class Skipped(BaseException):
    """Raised at the first line of a block that was run already."""


class Block:
    """The block of the ``with`` statement that a frame is entering. Raises BlockError if it cannot be run in its
    place."""

    def __init__(self, text: str, frame: FrameType) -> None:
        self.frame = frame
        tree = ast.parse(text)
        path = _path_to(tree, frame)
        if path is None:
            raise BlockError("it is no `with` statement of a source that is known: write `with memlint.verify():`")
        node = path[-1]
        assert isinstance(node, ast.With)
        if len(node.items) > 1:
            raise BlockError("it must be the only one in its `with` statement: put the others around it")
        if node.body[0].lineno <= (node.items[0].context_expr.end_lineno or node.lineno):
            raise BlockError("its block must begin on a line of its own")
        if all(isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant) for one in node.body):
            raise BlockError("its block does nothing")
        self.position = node.lineno, node.col_offset
        self._name = node.items[0].optional_vars
        #: the first line of its body
        self.first = min([node.body[0].lineno, *(one.lineno for one in getattr(node.body[0], "decorator_list", ()))])
        #: the first lines of its outermost loops
        self.loops = [*_outermost(node.body)]
        self.lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        self._function = next((one for one in reversed(path) if isinstance(one, _SCOPES)), None)
        self._class = next((one.name for one in reversed(path) if isinstance(one, ast.ClassDef)), None)
        _refuse_jumps(node.body)
        if frame.f_code.co_flags & _OPTIMIZED and self._function is not None:
            _refuse_shared(self._function, node, frame.f_code)

    def run(self, tree: ast.Module, entered: object) -> None:
        """Run the block of another tree of the same source, with ``entered`` as the value of the name after ``as``."""
        node = next(
            one for one in ast.walk(tree) if isinstance(one, ast.With) and (one.lineno, one.col_offset) == self.position
        )
        frame = self.frame
        body = node.body
        if self._name is not None:
            setattr(builtins, _ENTERED, entered)
            body = [ast.copy_location(ast.Assign([self._name], ast.Name(_ENTERED, ast.Load())), self._name), *body]
        try:
            if frame.f_code.co_flags & _OPTIMIZED:
                self._run_in_function(body)
            else:
                exec(self._compiled(body), frame.f_globals, frame.f_locals)
        finally:
            vars(builtins).pop(_ENTERED, None)

    def _compiled(self, body: list[ast.stmt]) -> CodeType:
        return _as_it_was(ast.fix_missing_locations(ast.Module(body, [])), self.frame.f_code)

    def _run_in_function(self, body: list[ast.stmt]) -> None:
        """The variables of the function are cells of an inner one meanwhile."""
        frame, code = self.frame, self.frame.f_code
        names = [name for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars) if name.isidentifier()]
        names = list(dict.fromkeys(names))
        above = ast.walk(self._function) if self._function is not None else ()
        declared = sorted({name for one in above if isinstance(one, ast.Global) for name in one.names} - {*names})
        inner = _function(code.co_name, [_Plain().visit(one) for one in body])
        if names:
            inner.body.insert(0, ast.Nonlocal(names))
        if declared:
            inner.body.insert(0, ast.Global(declared))
        bound: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], ast.Constant(None)) for name in names]
        outer: ast.stmt = _function("outer", [*bound, inner])
        if self._class is not None:  # it mangles private names
            outer = ast.ClassDef(self._class, [], [], [outer], [])
            if sys.version_info >= (3, 12):
                outer.type_params = []
        for one in (outer, *ast.walk(outer)):
            if isinstance(one, (ast.stmt, ast.expr)) and not hasattr(one, "lineno"):
                one.lineno = one.end_lineno = body[0].lineno
                one.col_offset = one.end_col_offset = 0
        compiled = _innermost(self._compiled([outer]), code.co_name)
        there = frame.f_locals
        cells = {name: CellType(there[name]) if name in there else CellType() for name in compiled.co_freevars}
        try:
            FunctionType(compiled, frame.f_globals, code.co_name, None, tuple(cells.values()))()
        finally:
            for name, cell in cells.items():
                try:
                    there[name] = cell.cell_contents
                except ValueError:  # not bound (any more)
                    if sys.version_info < (3, 13):
                        there.pop(name, None)
            if sys.version_info < (3, 13):  # since then what is written there is written to the frame
                ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(1))

    def skip(self) -> Callable[[], None]:
        """Make the first line of the block raise `Skipped`; returns a function that restores tracing."""
        before, own = sys.gettrace(), self.frame.f_trace
        first = self.first

        def leave(frame: FrameType, *_: Any) -> Any:
            if frame.f_lineno < first:
                return leave  # a header over several lines binds the name after ``as`` there
            raise Skipped

        def put_back() -> None:
            sys.settrace(before)
            self.frame.f_trace = own

        sys.settrace(lambda *_: None)
        self.frame.f_trace = leave
        return put_back


@contextlib.contextmanager
def with_code_of(trees: Mapping[str, ast.Module]) -> Iterator[None]:
    """Replace the code of functions in files (by their real paths) by that of other trees of the same sources
    meanwhile."""
    made: dict[str, dict[tuple[Any, ...], CodeType | None]] = {}
    changed: list[tuple[FunctionType, CodeType]] = []
    for one in heap():
        if type(one) is not FunctionType:
            continue
        code = one.__code__
        if code.co_filename not in made:
            tree = trees.get(os.path.realpath(code.co_filename)) or trees.get(code.co_filename)
            made[code.co_filename] = {} if tree is None else _by_place(_as_it_was(tree, code))
        new = made[code.co_filename].get(_place(code))
        if new is not None:
            changed.append((one, code))
            one.__code__ = new
    try:
        yield
    finally:
        for function, code in changed:
            function.__code__ = code


def _as_it_was(tree: ast.Module, code: CodeType) -> CodeType:
    """A tree compiled with the future statements of its own file, not of this one."""
    compiled = compile(tree, code.co_filename, "exec", code.co_flags & _FUTURE, dont_inherit=True)
    assert isinstance(compiled, CodeType)
    return compiled


def _by_place(code: CodeType) -> dict[tuple[Any, ...], CodeType | None]:
    """The code of each function, by its position; None if two share it."""
    found: dict[tuple[Any, ...], CodeType | None] = {}
    waiting = [code]
    while waiting:
        for one in waiting.pop().co_consts:
            if isinstance(one, CodeType):
                found[_place(one)] = None if _place(one) in found else one
                waiting.append(one)
    return found


def _place(code: CodeType) -> tuple[Any, ...]:
    return code.co_name, code.co_firstlineno, code.co_freevars, code.co_varnames[: code.co_argcount]


def _function(name: str, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, ast.arguments([], [], None, [], [], None, []), body, [])
    if sys.version_info >= (3, 12):
        made.type_params = []
    return made


def _innermost(code: CodeType, name: str) -> CodeType:
    """The code of the function ``name`` in the code of the outer one."""
    waiting = [code]
    while True:
        code = waiting.pop(0)
        inner = [one for one in code.co_consts if isinstance(one, CodeType)]
        if code.co_name == "outer":
            return next(one for one in inner if one.co_name == name)
        waiting += inner


def _path_to(tree: ast.Module, frame: FrameType) -> list[ast.AST] | None:
    """The nodes around the ``with`` statement of a frame, and the statement itself."""
    found: list[ast.AST] | None = None
    waiting: list[list[ast.AST]] = [[tree]]
    while waiting:
        path = waiting.pop()
        node = path[-1]
        for item in node.items if isinstance(node, ast.With) else ():
            begins, ends = item.context_expr.lineno, item.context_expr.end_lineno or item.context_expr.lineno
            if begins <= frame.f_lineno <= ends and (found is None or len(path) > len(found)):
                found = path
        waiting += [[*path, child] for child in ast.iter_child_nodes(node)]
    return found


def _own(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """The nodes in the scope of a block, including inner functions and classes themselves."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _outermost(body: list[ast.stmt]) -> Iterator[int]:
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, _LOOPS):
            yield node.lineno
        elif not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _refuse_jumps(body: list[ast.stmt]) -> None:
    words = {ast.Return: "return", ast.Yield: "yield", ast.YieldFrom: "yield from", ast.Await: "await",
             ast.AsyncFor: "async for", ast.AsyncWith: "async with"}  # fmt: skip
    for node in _own(body):
        if type(node) in words:
            raise BlockError(
                f"line {getattr(node, 'lineno', 0)}: its block cannot have `{words[type(node)]}`: {_ELSEWHERE}"
            )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            raise BlockError(f"line {node.lineno}: its block cannot have `super()`: {_ELSEWHERE}")
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Break, ast.Continue)):
            word = type(node).__name__.lower()
            raise BlockError(f"line {node.lineno}: `{word}` cannot leave its block: put the block around the loop")
        if isinstance(node, _LOOPS):
            waiting += node.orelse
        elif not isinstance(node, _SCOPES):
            waiting += ast.iter_child_nodes(node)


def _refuse_shared(function: ast.AST, node: ast.With, code: CodeType) -> None:
    """Refuse variables that inner functions share and that change while the block runs: they would have two places."""
    inside = {id(one) for one in ast.walk(node)}
    own = list(_own(list(ast.iter_child_nodes(function))))
    stored_in = {name for one in own if id(one) in inside for name in _stored(one)}
    stored_after = {name for one in own if getattr(one, "lineno", 0) > (node.end_lineno or 0) for name in _stored(one)}
    used_in = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    shared = stored_in & {*code.co_freevars}
    for one in own:
        if not isinstance(one, (*_SCOPES, ast.GeneratorExp)):
            continue
        names = {each.id for each in ast.walk(one) if isinstance(each, ast.Name)}
        rebound = {name for each in ast.walk(one) if isinstance(each, ast.Nonlocal) for name in each.names}
        shared |= (rebound & used_in) | (names & (stored_after if id(one) in inside else stored_in))
    shared &= {*code.co_cellvars, *code.co_freevars}
    if shared:
        raise BlockError(
            f"`{min(shared)}` is changed while an inner function shares it, which the block cannot have: {_ELSEWHERE}"
        )


def _stored(node: ast.AST) -> list[str]:
    """The variables that a node binds."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ExceptHandler):
        return [node.name] if node.name else []
    return [node.name] if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) else []


class _Plain(ast.NodeTransformer):
    """Annotations of a function's variables are not evaluated, and variables of an outer one may have none."""

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, _SCOPES):
            return node
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            plain: ast.stmt = ast.Pass() if node.value is None else ast.Assign([node.target], node.value)
            return ast.copy_location(plain, node)
        return self.generic_visit(node)
