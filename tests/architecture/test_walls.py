"""The walls of the house: who may import whom."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "memlint"

#: what each stop on the way may not know
FORBIDDEN = {
    "ir": ("memlint.",),
    "frontend": (
        "memlint.analysis",
        "memlint.fix",
        "memlint.engine",
        "memlint.report",
        "memlint.cli",
        "memlint.knowledge",
        "memlint.sdk",
    ),
    "knowledge": ("memlint.engine", "memlint.report", "memlint.cli", "memlint.sdk", "memlint.frontend"),
    "analysis": (
        "memlint.engine",
        "memlint.explain",
        "memlint.fix",
        "memlint.report",
        "memlint.cli",
        "memlint.sdk",
        "memlint.config",
    ),
    "project": (
        "memlint.analysis",
        "memlint.fix",
        "memlint.engine",
        "memlint.report",
        "memlint.cli",
        "memlint.sdk",
        "memlint.frontend",
    ),
    "report": (
        "memlint.analysis",
        "memlint.fix",
        "memlint.engine",
        "memlint.cli",
        "memlint.sdk",
        "memlint.project",
        "memlint.frontend",
    ),
    "fix": ("memlint.engine", "memlint.report", "memlint.cli", "memlint.sdk", "memlint.config"),
    "explain": ("memlint.engine", "memlint.fix", "memlint.report", "memlint.cli", "memlint.sdk", "memlint.config"),
    "engine": ("memlint.report", "memlint.cli", "memlint.frontend", "memlint.plugins"),
    "plugins": (
        "memlint.analysis",
        "memlint.frontend",
        "memlint.ir",
        "memlint.knowledge",
        "memlint.project",
        "memlint.report",
        "memlint.cli",
        "memlint.sdk",
        "memlint.fix",
    ),
    "lsp": (
        "memlint.analysis",
        "memlint.frontend",
        "memlint.ir",
        "memlint.knowledge",
        "memlint.cli",
        "memlint.sdk",
        "memlint.plugins",
    ),
}
MAY_IMPORT_TORCH = ("measure", "verifier", "estimator")


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def nodes(tree: ast.AST, *, annotations: bool) -> Iterator[ast.AST]:
    """The nodes of a tree; without ``annotations`` not those that are there for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if annotations or not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield node
            yield from nodes(node, annotations=annotations)


@functools.cache
def imports(path: Path, *, annotations: bool = True) -> tuple[str, ...]:
    """The modules that a file imports, wherever in it; ``from a import b`` gives ``a.b`` as well."""
    return tuple(_imports(path, annotations))


def _imports(path: Path, annotations: bool) -> Iterator[str]:
    for node in nodes(tree_of(path), annotations=annotations):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # what measures is also loaded under another name, beside programs where memlint is not installed
            assert node.level == 0 or path.is_relative_to(PACKAGE / "measure"), f"{path}: relative import"
            package = path.relative_to(ROOT).parts[: -node.level] if node.level else ()
            module = ".".join([*package, *([] if node.module is None else [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("stop", FORBIDDEN)
def test_nothing_flows_back(stop: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (PACKAGE / stop).rglob("*.py")
        for name in imports(path)
        if any(name == wall.rstrip(".") or name.startswith(wall.rstrip(".") + ".") for wall in FORBIDDEN[stop])
        and not name.startswith(f"memlint.{stop}")
    ]
    assert wrong == []


def test_only_the_language_server_knows_the_protocol() -> None:
    protocol = ("pygls", "lsprotocol", "memlint.lsp")
    knowing = {
        str(path.relative_to(PACKAGE))
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] != "lsp"
        and any(name in protocol or name.startswith(tuple(f"{one}." for one in protocol)) for name in imports(path))
    }
    assert knowing == {"cli/commands/lsp.py"}


def test_what_analyses_for_the_language_server_needs_no_protocol() -> None:
    script = "import sys, memlint.lsp.worker; print([name for name in ('pygls', 'lsprotocol') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_what_measures_imports_torch() -> None:
    wrong = [
        str(path)
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] not in MAY_IMPORT_TORCH
        and any(name.partition(".")[0] == "torch" for name in imports(path))
    ]
    assert wrong == []


def test_what_measures_needs_python_and_torch_alone() -> None:
    for path in (PACKAGE / "measure").rglob("*.py"):
        tree = tree_of(path)
        checked = [node for node in tree.body if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
        typing_only = {name for node in checked for name in _imported(node)}
        for name in set(imports(path)) - typing_only:
            top = name.partition(".")[0]
            own = f"{name}.".startswith("memlint.measure.")
            assert own or top in (*sys.stdlib_module_names, "torch"), f"{path}: {name}"


def _imported(node: ast.AST) -> Iterator[str]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.ImportFrom) and inner.module is not None:
            yield inner.module
            yield from (f"{inner.module}.{alias.name}" for alias in inner.names)


def test_nothing_imports_a_rule() -> None:
    wrong = [str(path) for path in modules() for name in imports(path) if name.startswith(("rules", "memlint.rules"))]
    assert wrong == []


#: the modules of rules that run where linting does
OF_RULES = sorted(path for path in (ROOT / "rules").glob("*/*.py") if path.name != "probe.py")


def test_rules_import_the_sdk_and_their_own_files_alone() -> None:
    for path in OF_RULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.Import):
                # (events are structs of msgspec, which gives copies of them)
                assert {alias.name.partition(".")[0] for alias in node.names} <= {
                    *sys.stdlib_module_names,
                    "msgspec",
                }, path
            elif isinstance(node, ast.ImportFrom) and node.level:
                assert node.level == 1 and (path.parent / f"{node.module}.py").is_file(), path
            elif isinstance(node, ast.ImportFrom):
                name = str(node.module)
                # (rule.py is loaded where nothing is analysed as well)
                known = name == "memlint.sdk" or (name.startswith("memlint.sdk.") and path.name != "rule.py")
                assert known or name.partition(".")[0] in sys.stdlib_module_names, f"{path}: {name}"


def test_only_detection_loads_the_analysis() -> None:
    """`memlint rule`, and a run whose findings are known, load each rule's words and not its detection."""
    script = (
        "import sys; from memlint.engine.rules.rooms import detectors_of, load_rooms; rooms = load_rooms()\n"
        "heavy = lambda: 'memlint.analysis.facts.analyser' in sys.modules\n"
        "print(heavy(), len(detectors_of(rooms, {'MEM105', 'MEM101', 'MEM000'})), heavy())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "True"]


#: methods that change what they are called on
CHANGES = frozenset({"add", "append", "clear", "discard", "extend", "insert", "pop", "remove", "setdefault", "update"})


@pytest.mark.parametrize("path", OF_RULES, ids=lambda path: f"{path.parent.name[:6]}-{path.stem}")
def test_detection_changes_nothing_of_what_it_reads(path: Path) -> None:
    """What a rule is handed is everybody's: a detector that writes to it changes what the others find."""

    def root(expr: ast.expr) -> str:
        while isinstance(expr, ast.Attribute | ast.Subscript):
            expr = expr.value
        return expr.id if isinstance(expr, ast.Name) else ""

    tree = tree_of(path)
    given = {
        one.arg
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for one in function.args.args
        if one.annotation is not None and ast.unparse(one.annotation) in ("Analyser", "Summary")
    }
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else ()
        targets = (node.target,) if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            targets = (node.func,)
        for target in targets:
            if isinstance(target, ast.Attribute | ast.Subscript):
                assert root(target) not in given, ast.unparse(node)


def test_probes_need_python_and_torch_alone() -> None:
    for path in (ROOT / "rules").glob("*/probe.py"):
        for name in imports(path):
            assert name.partition(".")[0] in (*sys.stdlib_module_names, "torch"), f"{path}: {name}"


def test_only_verifying_rules_knows_their_probes() -> None:
    naming = {str(path.relative_to(PACKAGE)) for path in modules() if '"probe.py"' in path.read_text("utf-8")}
    assert naming == {"verifier/rules.py"}


def test_only_the_frontend_imports_libcst() -> None:
    wrong = [
        str(path)
        for path in modules()
        if path.relative_to(PACKAGE).parts[0] not in ("frontend", "fix")
        and any(name.partition(".")[0] == "libcst" for name in imports(path))
    ]
    assert wrong == []


def test_a_run_does_not_wait_for_libcst() -> None:
    """Findings are placed by the host's syntax tree, except where that does not tell."""
    script = (
        "import sys, memlint; result = memlint.lint(['fixtures/demo'], isolated=True)\n"
        "print(len(result.findings) > 2, 'libcst' in sys.modules)"
    )
    command, environment = [sys.executable, "-c", script], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]


def test_a_piped_run_that_finds_nothing_imports_no_rich(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\n\n\ndef f(x):\n    return torch.relu(x)\n")
    script = "import sys, memlint.cli; memlint.cli.main(['a.py', '--isolated']); print('rich' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FORCE_COLOR": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    said, imported = done.stdout.splitlines()
    assert said.startswith("Found nothing in 1 file (") and said.endswith(" s).")
    assert imported == "False"


@pytest.mark.parametrize("plugin", ["flake8", "pytest_plugin"])
def test_a_plugin_is_light_until_it_is_asked(plugin: str) -> None:
    heavy = ("libcst", "rich", "msgspec", "torch", "memlint.engine", "memlint.measure")
    script = f"import sys, memlint.plugins.{plugin}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_slow_parts_of_libcst_are_left_alone() -> None:
    slow = ("libcst.metadata", "libcst.matchers", "libcst.codemod")
    assert [str(path) for path in modules() for name in imports(path) if name.startswith(slow)] == []


def test_linting_imports_no_torch_and_runs_nothing(tmp_path: Path) -> None:
    """Modules named torch, conftest, setup and the linted one itself write a file when they are imported."""
    mark = f"open({str(tmp_path / 'ran')!r}, 'a').write(__name__)\n"
    program = (
        "import torch\n\n\ndef train(model, loader):\n    total = 0\n    for x in loader:\n        loss = model(x)\n"
    )
    program += "        loss.backward()\n        total += loss\n    return total\n"
    files = {"pyproject.toml": "", "train.py": mark + program}
    files |= dict.fromkeys(("torch/__init__.py", "setup.py", "conftest.py", "sitecustomize_.py"), mark)
    for name, text in files.items():
        (tmp_path / "project" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / name).write_text(text)
    script = (
        "import sys, memlint.cli\n"
        "code = memlint.cli.main(['.', '--output-format', 'concise'])\n"
        "print('torch' in sys.modules, code, file=sys.stderr)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "project")}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path / "project", env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.stderr.split()[-2:] == ["False", "1"], done.stderr + done.stdout
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("arguments", "heavy"), [(["--version"], ("rich", "libcst", "msgspec", "argparse")), (["rule"], ("rich", "torch"))]
)
def test_light_commands_import_nothing_heavy(arguments: list[str], heavy: tuple[str, ...]) -> None:
    script = (
        f"import sys, memlint.cli; memlint.cli.main({arguments!r})\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_compiled_code_asks_no_package_of_its_own_for_a_name() -> None:
    """A package's `__init__` is not compiled, and compiled code beside it never gets the package as a module: each
    function would be an internal error in the wheel. (Names are imported out of it, one by one.)"""
    inits = (PACKAGE / "analysis").rglob("__init__.py")
    packages = {".".join(init.parent.relative_to(ROOT).parts) for init in inits} - {"memlint.analysis"}
    assert packages
    wrong = [
        f"{path.relative_to(ROOT)} imports {alias.name}"
        for path in sorted((PACKAGE / "analysis").rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
        if (f"{node.module}.{alias.name}" if isinstance(node, ast.ImportFrom) else alias.name) in packages
    ]
    assert wrong == []
