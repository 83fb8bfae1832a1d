"""Pipes, devices, sockets, endless links and huge files in the place of a file that is read: none is waited for."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import memlint
from memlint.cli import main
from memlint.reading import MAX_SETTINGS, MAX_SOURCE, read_file, read_text

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
Capture = pytest.CaptureFixture[str]
LEAK = """
import torch

def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)
"""


def huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 36)


def a_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # a socket's name is short
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(here)


#: kind: how one is made, and what is said of it
KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "a pipe"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
    "socket": (a_socket, "a socket"),
    "folder": (lambda path: path.mkdir(), "a folder"),
    "endless link": (lambda path: path.symlink_to(path), "symbolic links"),
    "huge": (huge, "larger than"),
}


@pytest.fixture(autouse=True)
def _never_waits() -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError("it waits")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "project"
    root.mkdir()
    (root / ".git").mkdir()
    (root / "train.py").write_text(LEAK)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_refused_with_a_reason(kind: str, tmp_path: Path) -> None:
    make, said = KINDS[kind]
    make(tmp_path / "x")
    with pytest.raises(OSError, match=said):
        read_file(tmp_path / "x", MAX_SOURCE)
    with pytest.raises(OSError, match=said):
        read_text(tmp_path / "x")


def test_a_name_with_a_null_byte_and_the_largest_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="null byte"):
        read_file("a\0b", 10)
    (tmp_path / "x").write_bytes(b"x" * 10)
    assert read_file(tmp_path / "x", 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes"):
        read_file(tmp_path / "x", 9)


@pytest.mark.parametrize("kind", KINDS)
def test_in_place_of_what_describes_a_project(kind: str, project: Path) -> None:
    """All at once: each is passed over."""
    make, _ = KINDS[kind]
    for name in (
        ".gitignore", "requirements.txt", "setup.py", "setup.cfg", "environment.yml", "environment.yaml", "README.md",
        "conf.py", "mkdocs.yml", "notebook.ipynb", "other.py", "package.pyw", "docs",
    ):  # fmt: skip
        make(project / name)
    (project / "package").mkdir()
    (project / "package/__init__.py").touch()
    (project / "package/a.py").write_text("import torch\n")
    make(project / "package/setup.cfg")
    result = memlint.lint(["."])
    assert [(one.path, one.code) for one in result.findings] == [("train.py", "MEM101")]
    assert {failure.path for failure in result.failures} <= {
        "other.py", "package.pyw", "setup.py", "conf.py", "notebook.ipynb"
    }  # fmt: skip
    assert all(re.search("larger than (16|64) MiB|not a notebook", failure.reason) for failure in result.failures)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["memlint.toml", "pyproject.toml"])
def test_in_place_of_a_configuration(name: str, kind: str, project: Path, capsys: Capture) -> None:
    make, said = KINDS[kind]
    make(project / name)
    assert main(["train.py"]) == 2
    error = capsys.readouterr().err
    assert name in error and (said in error or "leads out" in error)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_in_place_of_what_a_configuration_names(kind: str, project: Path, capsys: Capture) -> None:
    make, said = KINDS[kind]
    make(project / "x")
    for line in ('evidence = "x"', 'extend = "x"'):
        (project / "memlint.toml").write_text(line)
        assert main(["train.py"]) == 2
        error = capsys.readouterr().err
        assert said in error or "there is no file" in error
    (project / "memlint.toml").unlink()
    assert main(["train.py", "--evidence", "x"]) == 2
    assert main(["train.py", "--config", "x"]) == 2
    assert main(["x"]) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_in_place_of_a_module_that_is_imported(kind: str, project: Path) -> None:
    """Nothing is known of it: what imports it is not called broken."""
    make, _ = KINDS[kind]
    (project / "train.py").write_text("from step import thing\n" + LEAK)
    make(project / "step.py")
    (finding,) = memlint.lint(["train.py"]).findings
    assert (finding.code, finding.severity) == ("MEM101", "warning")


def test_nothing_outside_is_read_through_a_link(project: Path, tmp_path: Path, capsys: Capture) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(LEAK)
    (outside / "memlint.toml").write_text('ignore = ["MEM101"]\n')
    (outside / "requirements.txt").write_text("torch==0.3.1\n")
    (outside / ".gitignore").write_text("train.py\n")
    for name in ("secret.py", "requirements.txt", ".gitignore"):
        (project / name).symlink_to(outside / name)
    (project / "folder").symlink_to(outside)
    result = memlint.lint(["."])
    assert [(one.path, one.severity) for one in result.findings] == [("train.py", "warning")]
    (project / "memlint.toml").symlink_to(outside / "memlint.toml")
    assert main(["."]) == 2
    assert "a link that leads out of" in capsys.readouterr().err
    assert main([".", "--config", "memlint.toml"]) == 0, "what is named is read"


def test_a_fix_does_not_go_out_of_the_project(project: Path, tmp_path: Path, capsys: Capture) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(LEAK.replace("return float(total)", "print(float(total))"))
    before = outside.read_bytes()
    (project / "link.py").symlink_to(outside)
    assert main(["link.py", "--fix", "--unsafe-fixes"]) == 2
    assert "out of the project" in capsys.readouterr().out
    assert outside.read_bytes() == before
    assert main([".", "--fix", "--unsafe-fixes"]) == 0
    assert outside.read_bytes() == before
    assert "detach" in (project / "train.py").read_text() or ".item()" in (project / "train.py").read_text()


def test_the_largest_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"#" * MAX_SETTINGS)
    assert len(read_text(tmp_path / "x")) == MAX_SETTINGS


SLOW = {
    "README.md": "install torch" + " " * 1_000_000,
    "setup.py": "packages = []" + "\n" * 1_000_000,
    "setup.cfg": "\n" * 1_000_000 + "[options]\n",
    "pyproject.toml": "[project]\n" + "\n" * 1_000_000,
    "noqa.py": "import torch\n# " + "noqa " * 100_000,
    "open.py": "(\n" * 30_000,
    "words.py": "import torch\n# " + "mem " * 100_000 + "noqa",
}


def test_no_text_is_searched_in_quadratic_time(project: Path) -> None:
    """Blanks, words and brackets that a search would begin at again and again."""
    for name, text in SLOW.items():
        (project / name).write_text(text)
    (project / "package").mkdir()
    (project / "package/__init__.py").touch()
    (project / "package/train.py").write_text(LEAK)
    result = memlint.lint(["."])
    assert [(one.path, one.code) for one in result.findings if one.code != "MEM000"] == [
        ("package/train.py", "MEM101"),
        ("train.py", "MEM101"),
    ]
