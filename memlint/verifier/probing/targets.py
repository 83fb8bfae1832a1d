"""The loops of a program to watch: those that train or evaluate, and those around findings.

Watching a loop costs little and proves nothing by itself, so names suffice: anything named like an instance of a module
class, or like something that was put into training or evaluation mode, counts as a model.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

Place = tuple[int, int]
_STEPS = frozenset({"backward", "step", "training_step", "manual_backward", "train_on_batch"})
_MODULE_CALLS = frozenset({"eval", "train", "parameters", "zero_grad", "state_dict", "load_state_dict"})
_GUARDS = frozenset({"no_grad", "inference_mode"})
#: a loop in these functions iterates over layers, or makes one sample
_INNER = frozenset({"forward", "__init__", "__getitem__", "__len__", "collate_fn"})
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)


def loops_to_watch(texts: Mapping[str, str], flagged: Mapping[str, Sequence[int]]) -> dict[str, list[Place]]:
    """The places (line and column from 1) of the loops to watch, by file.

    ``texts``: the files of the program. ``flagged``: the lines of the findings in them. A file that the running Python
    cannot read has none.
    """
    trees = {path: tree for path, text in texts.items() if (tree := _parsed(text)) is not None}
    classes = _classes(trees.values())
    models = {name for tree in trees.values() for name in (*_models(tree), *_made(tree, classes))}
    working = _working(trees.values(), models)
    found: dict[str, list[Place]] = {}
    for path, tree in trees.items():
        lines = _lines(texts[path])
        wanted = flagged.get(path, ())
        found[path] = [
            (loop.lineno, _column(lines, loop))
            for loop, inner in _loops(tree)
            if (not inner and _works(loop, models, working))
            or any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for line in wanted)
        ]
    return found


def innermost_loops(text: str, places: Sequence[Place], lines: Iterable[int]) -> dict[int, Place]:
    """For each of the lines, the innermost of the loops at ``places`` that the statement there repeats in: loops around
    the function that it stands in are none."""
    tree = _parsed(text) if places else None
    if tree is None:
        return {}
    shown = _lines(text)
    wanted, loops = set(lines), set(places)
    found: dict[int, Place | None] = {}

    def walk(node: ast.AST, around: Place | None) -> None:
        for child in ast.iter_child_nodes(node):
            inside = None if isinstance(child, _FUNCTIONS) else around
            if isinstance(child, _LOOPS) and (place := (child.lineno, _column(shown, child))) in loops:
                inside = place
            if isinstance(child, ast.stmt):
                last = child.end_lineno or child.lineno
                found.update((line, inside) for line in wanted if child.lineno <= line <= last)
            walk(child, inside)

    walk(tree, None)
    return {line: place for line, place in found.items() if place is not None}


def same_loops(before: str, after: str, places: Sequence[Place]) -> list[Place] | None:
    """Where the loops at ``places`` of one text are in another version of it; None where the two have not as many
    loops, so that which is which cannot be told."""
    trees = _parsed(before), _parsed(after)
    if trees[0] is None or trees[1] is None:
        return None
    old, new = ([loop for loop, _ in _loops(tree)] for tree in trees if tree is not None)
    if len(old) != len(new):
        return None
    lines, lines_after = _lines(before), _lines(after)
    there = {
        (one.lineno, _column(lines, one)): (other.lineno, _column(lines_after, other))
        for one, other in zip(old, new, strict=True)
    }
    return [there[place] for place in places] if all(place in there for place in places) else None


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _lines(text: str) -> list[str]:
    """Lines as Python counts them: a form feed does not end one."""
    return re.split(r"\r\n|\r|\n", text)


def _column(lines: list[str], loop: ast.stmt) -> int:
    line = lines[loop.lineno - 1] if loop.lineno <= len(lines) else ""
    return len(line.encode()[: loop.col_offset].decode("utf-8", "replace")) + 1


def _models(tree: ast.Module) -> Iterator[str]:
    """The last components of names that are used as modules: ``net`` of ``self.net.eval()``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MODULE_CALLS:
            name = _last(node.func.value)
            if name is not None and name != "self":
                yield name


def _classes(trees: Iterable[ast.Module]) -> set[str]:
    """The names of the program's classes of modules."""
    defined = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    found = {"Module"}
    while new := {one.name for one in defined if one.name not in found and found.intersection(map(_last, one.bases))}:
        found |= new
    return found


def _made(node: ast.AST, classes: set[str]) -> Iterator[str]:
    """The last components of names that are bound to new modules, without the layers of others."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef) and child.name in classes:
            continue
        if isinstance(child, ast.Assign) and _is_made(child.value, classes):
            yield from (name for target in child.targets if (name := _last(target)) is not None)
        yield from _made(child, classes)


def _is_made(value: ast.expr, classes: set[str]) -> bool:
    """Whether an expression creates a module: ``Net()``, ``nn.Linear(8, 8)``, ``torch.nn.Sequential(…).to(device)``."""
    while isinstance(value, ast.Call):
        made = value.func
        if _last(made) in classes or (isinstance(made, ast.Attribute) and _last(made.value) == "nn"):
            return True
        value = made.value if isinstance(made, ast.Attribute) else made
    return False


def _last(node: ast.expr) -> str | None:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


def _working(trees: Iterable[ast.Module], models: set[str]) -> set[str]:
    """The names of functions that run a model or a step of training, directly or through each other."""
    functions = [
        node
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name not in _INNER
    ]
    working: set[str] = set()
    while new := {node.name for node in functions if node.name not in working and _works(node, models, working)}:
        working |= new
    return working


def _works(node: ast.AST, models: set[str], working: set[str]) -> bool:
    for inner in _own(node):
        if isinstance(inner, ast.Call):
            name = _last(inner.func)
            if name is not None and (name in _STEPS or name in _GUARDS or name in models or name in working):
                return True
    return False


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below ``node``, without those of functions in it: these run when they are called."""
    waiting = list(ast.iter_child_nodes(node))
    while waiting:
        inner = waiting.pop()
        yield inner
        if not isinstance(inner, _FUNCTIONS):
            waiting += ast.iter_child_nodes(inner)


def _loops(tree: ast.Module) -> Iterator[tuple[For, bool]]:
    """Each loop, and whether it iterates over layers or samples."""

    def walk(node: ast.AST, inner: bool) -> Iterator[tuple[For, bool]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, _LOOPS):
                yield child, inner
            named = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef))
            yield from walk(child, child.name in _INNER if named else inner)  # type: ignore[attr-defined]

    yield from walk(tree, False)


For = ast.For | ast.AsyncFor | ast.While
