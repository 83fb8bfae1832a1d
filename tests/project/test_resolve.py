"""Which file a dotted module name means."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from memlint.project import Named, Project, discover


def project(tmp_path: Path, *files: str, linted: str = ".") -> Project:
    root = tmp_path.resolve()
    for file in ("pyproject.toml", *files):
        target = root / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("")
    return discover(root, [Named(root if linted == "." else root / linted)], cwd=root).project


@pytest.mark.parametrize(
    ("module", "importer", "level", "found"),
    [
        ("pkg.models.net", "train.py", 0, "pkg/models/net.py"),
        ("pkg.models", "train.py", 0, "pkg/models/__init__.py"),
        ("net", "pkg/models/__init__.py", 1, "pkg/models/net.py"),
        ("", "pkg/models/net.py", 1, "pkg/models/__init__.py"),
        ("", "pkg/models/net.py", 2, "pkg/__init__.py"),
        ("utils", "pkg/models/net.py", 2, "pkg/utils.py"),
        ("lib.core", "train.py", 0, "src/lib/core.py"),
        ("helper", "scripts/run.py", 0, "scripts/helper.py"),
        ("logging", "scripts/run.py", 0, "scripts/logging.py"),
        ("logging", "pkg/models/net.py", 0, None),
        ("common.tools", "code/models/net.py", 0, "code/common/tools.py"),
        ("utils", "pkg/models/net.py", 0, None),
        ("torch", "train.py", 0, None),
        ("outside", "train.py", 3, None),
        ("pkg.models.missing", "train.py", 0, None),
    ],
)
def test_resolve(tmp_path: Path, module: str, importer: str, level: int, found: str | None) -> None:
    one = project(
        tmp_path, "train.py", "pkg/__init__.py", "pkg/utils.py", "pkg/models/__init__.py", "pkg/models/net.py",
        "src/lib/__init__.py", "src/lib/core.py", "scripts/run.py", "scripts/helper.py", "scripts/logging.py",
        "code/common/tools.py", "code/models/__init__.py", "code/models/net.py",
    )  # fmt: skip
    assert one.resolve(module, importer, level) == found


def test_packages_below_another_folder_start_there(tmp_path: Path) -> None:
    one = project(tmp_path, "python/pkg/__init__.py", "python/pkg/a.py", "python/pkg/b.py", linted="python/pkg/a.py")
    assert one.resolve("pkg.b", "python/pkg/a.py", 0) == "python/pkg/b.py"
    assert one.import_roots[-1] == tmp_path.resolve() / "python"


@pytest.mark.parametrize(
    ("files", "importer", "module", "found"),
    [
        # each folder is a project of its own
        (("a/utils/ev.py", "b/utils/ev.py"), "a/utils/setup.py", "utils.ev", "a/utils/ev.py"),
        (("a/utils/ev.py", "b/utils/ev.py"), "b/utils/setup.py", "utils.ev", "b/utils/ev.py"),
        (("a/utils/ev.py", "b/utils/ev.py"), "b/train.py", "utils.ev", "b/utils/ev.py"),
        (("a/utils/ev.py", "b/utils/ev.py"), "b/models/net.py", "utils.ev", "b/utils/ev.py"),
        (("a/utils/ev.py", "b/utils/ev.py", "b/utils/__init__.py"), "b/utils/run.py", "utils.ev", "b/utils/ev.py"),
        (("a/common.py", "b/common.py"), "b/models/net.py", "common", "b/common.py"),
        (("one/common.py", "two/common.py"), "three/run.py", "common", None),
        (("one/common.py", "two/deep/common.py"), "two/models/net.py", "common", "two/deep/common.py"),
        # the project has a package of that name itself
        (("utils/ev.py", "demo/utils/ev.py"), "demo/utils/setup.py", "utils.ev", "demo/utils/ev.py"),
        (("utils/ev.py", "demo/utils/ev.py"), "train.py", "utils.ev", "utils/ev.py"),
        (("utils/ev.py", "demo/utils/other.py"), "demo/run.py", "utils.ev", "utils/ev.py"),
        (("src/utils/ev.py", "demos/big/utils/ev.py"), "demos/big/lib/a.py", "utils.ev", "demos/big/utils/ev.py"),
        (("utils/ev.py", "tests/utils/ev.py"), "tests/unit/test_it.py", "utils.ev", "tests/utils/ev.py"),
        (("utils/ev.py", "tests/utils/ev.py"), "tools/run.py", "utils.ev", "utils/ev.py"),
        # a vendored copy with its own layout
        (("src/kit/ev.py", "dep/kit/src/kit/ev.py"), "dep/kit/src/kit/a.py", "kit.ev", "dep/kit/src/kit/ev.py"),
        (("src/kit/ev.py", "dep/kit/src/kit/ev.py"), "dep/kit/examples/a.py", "kit.ev", "dep/kit/src/kit/ev.py"),
        (("src/kit/ev.py", "dep/kit/src/kit/ev.py"), "examples/a.py", "kit.ev", "src/kit/ev.py"),
        # a package knows itself by its name, whatever its folders are called
        (("kit/__init__.py", "kit/kit/ev.py", "kit/ev.py"), "kit/run.py", "kit.ev", "kit/ev.py"),
    ],
)  # fmt: skip
def test_the_copy_nearest_to_the_importing_file_is_meant(
    tmp_path: Path, files: tuple[str, ...], importer: str, module: str, found: str | None
) -> None:
    assert project(tmp_path, *files, importer).resolve(module, importer, 0) == found


def test_a_package_whose_project_begins_inside_of_it(tmp_path: Path) -> None:
    """``net/setup.py``: a file that is linted alone says ``net.layers`` of what lies beside it."""
    one = project(tmp_path / "net", "layers.py", "deep/__init__.py", "scripts/train.py", "other/layers.py")
    assert one.resolve("net.layers", "scripts/train.py", 0) == "layers.py"
    assert one.resolve("net.deep", "scripts/train.py", 0) == "deep/__init__.py"
    assert one.resolve("net", "scripts/train.py", 0) is None
    assert one.resolve("web.layers", "scripts/train.py", 0) is None


_ROOT_FILES = ("__init__.py", "utils.py", "nets/__init__.py", "nets/layers.py", "run.py")


@pytest.mark.parametrize(
    ("imports", "files", "found"),
    [
        ("import net.utils\nfrom net.nets import a\nfrom net.nets.layers import b", _ROOT_FILES, "utils.py"),
        ("if x:\n    from net.utils import a\nimport net.nets as n\nimport net.nets.layers", _ROOT_FILES, "utils.py"),
        # one of its modules is not here: a library with some names in common
        ("import net.utils, net.nets\nimport net.nets.layers\nimport net.other", _ROOT_FILES, None),
        ("import net.utils\nimport net.nets\nimport net.nets.layers\nfrom net.nets.deep import a", _ROOT_FILES, None),
        # or one that lacks what is imported of it
        ("import net.utils\nfrom net.nets import layers, a\nfrom net.nets.layers import b, gone", _ROOT_FILES, None),
        # too few to tell
        ("import net.utils\nfrom net.nets import a", _ROOT_FILES, None),
        # the root is no package
        ("import net.utils\nfrom net.nets import a\nfrom net.nets.layers import b", _ROOT_FILES[1:], None),
        # what has its name lies elsewhere
        (
            "import net.utils\nfrom net.nets import a\nfrom net.nets.layers import b",
            (*_ROOT_FILES, "lib/net/utils.py"),
            "lib/net/utils.py",
        ),
    ],
)
def test_a_package_in_a_checkout_of_another_name(
    tmp_path: Path, imports: str, files: tuple[str, ...], found: str | None
) -> None:
    """``TTS.utils`` in a checkout ``TTS-0.0.1`` that is the package itself: all that is imported of it lies in it."""
    project(tmp_path / "net-1.2", *files)
    for name in files:
        (tmp_path / "net-1.2" / name).write_text("a = b = 0")
    (tmp_path / "net-1.2/run.py").write_text(imports)
    root = (tmp_path / "net-1.2").resolve()
    one = discover(root, [Named(root)], cwd=root).project
    assert one.resolve("net.utils", "run.py", 0) == found


@pytest.mark.parametrize(("many", "absent", "found"), [(30, 1, "m0.py"), (30, 2, None), (10, 1, None)])
def test_a_few_modules_of_a_package_may_be_absent(tmp_path: Path, many: int, absent: int, found: str | None) -> None:
    """Compiled, or removed while a file that nobody uses still imports them."""
    project(tmp_path / "net-1.2", "__init__.py", "run.py", *[f"m{number}.py" for number in range(many - absent)])
    imports = "".join(f"import net.m{number}\n" for number in range(many))
    (tmp_path / "net-1.2/run.py").write_text(imports)
    root = (tmp_path / "net-1.2").resolve()
    assert discover(root, [Named(root)], cwd=root).project.resolve("net.m0", "run.py", 0) == found


def test_a_library_is_no_other_name_of_the_project(tmp_path: Path) -> None:
    project(tmp_path, "__init__.py", "utils.py", "models/__init__.py", "models/resnet.py", "run.py")
    (tmp_path / "run.py").write_text("import timm.utils\nimport timm.models\nimport timm.models.resnet")
    root = tmp_path.resolve()
    assert discover(root, [Named(root)], cwd=root).project.resolve("timm.utils", "run.py", 0) is None


def test_configured_roots(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    project(tmp_path, "a.py", "libs/deep/tool.py")
    found = discover(root, [Named(root / "a.py")], cwd=root, import_roots=[root / "libs/deep"])
    assert found.project.resolve("tool", "a.py", 0) == "libs/deep/tool.py"


def test_a_project_travels_to_a_worker_process(tmp_path: Path) -> None:
    one = project(tmp_path, "a.py", "b.py")
    again = pickle.loads(pickle.dumps(one))
    assert again.linted == one.linted
    assert again.sources["a.py"] == one.sources["a.py"]
    assert again.resolve("b", "a.py", 0) == "b.py"


@pytest.mark.parametrize(
    ("files", "importer", "found"),
    [
        (("lib/core/train.py",), "tools/run.py", "lib/core/train.py"),  # tools/_init_paths.py adds lib to sys.path
        (("a/lib/core/train.py", "b/lib/core/train.py"), "b/tools/run.py", "b/lib/core/train.py"),
        (("a/core/train.py", "b/core/train.py"), "tools/run.py", None),
        (("lib/core/other.py",), "tools/run.py", None),
    ],
)
def test_a_folder_that_a_script_puts_on_the_path(
    tmp_path: Path, files: tuple[str, ...], importer: str, found: str | None
) -> None:
    assert project(tmp_path, *files, importer).resolve("core.train", importer, 0) == found


@pytest.mark.parametrize(
    ("module", "found"),
    [("model", "tools/model.py"), ("utils.model", None), ("datasets", None), ("logging", None), ("absent", None)],
)
def test_scripts_in_a_folder_that_is_a_package(tmp_path: Path, module: str, found: str | None) -> None:
    """``python tools/train.py`` finds what lies beside it, which has no name of a library."""
    one = project(
        tmp_path, "tools/__init__.py", "tools/train.py", "tools/model.py", "tools/datasets.py", "tools/logging.py"
    )
    assert one.resolve(module, "tools/train.py", 0) == found
