"""The lines of a work tree that have changed since a revision, by git's own diff."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.patterns import lazy_pattern
from memlint.project.cells import NotebookError, read_notebook
from memlint.project.git import git
from memlint.project.presence import exists
from memlint.reading import MAX_DATA, read_file

#: the most seconds to wait for git in all
SECONDS = 60.0
SUFFIXES = (".py", ".pyw", ".pyi", ".ipynb")
#: names of the default branch, if the remote does not declare one
_BRANCHES = ("refs/remotes/origin/main", "refs/remotes/origin/master", "refs/heads/main", "refs/heads/master")
_HUNK = lazy_pattern(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = lazy_pattern(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_DIFF = (
    "diff", "--no-ext-diff", "--no-textconv", "--no-color", "--text", "--unified=0", "--inter-hunk-context=0",
    "--find-renames", "--ignore-submodules=all", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/",
    "-O/dev/null",
)  # fmt: skip
_SETTINGS = ("core.quotePath=false", "core.splitIndex=false", "core.hooksPath=/dev/null", "diff.relative=false")


class ChangesError(Exception):
    """Why the changes are unknown, a sentence without a period."""


class Lines(msgspec.Struct, frozen=True):
    """The changed lines of a file: ranges (first and last, from 1), and the lines after which some were deleted."""

    ranges: tuple[tuple[int, int], ...] = ()
    gaps: tuple[int, ...] = ()

    def touch(self, first: int, last: int) -> bool:
        """Whether any of the lines ``first`` to ``last`` has changed, or some between them were deleted."""
        return any(start <= last and first <= end for start, end in self.ranges) or any(
            first <= gap < last for gap in self.gaps
        )


#: all lines of a new file
ALL = Lines(((1, 1 << 60),))


def changed_lines(files: Iterable[Path], revision: str | None) -> dict[Path, Lines]:
    """The changed lines of these files (absolute paths), for those that have any. ``revision``: what to compare the
    work tree with; None is the fork point of this branch. Raises ChangesError."""
    by_top: dict[Path, dict[str, Path]] = {}
    tops: dict[str, Path | None] = {}
    for file in files:
        real = os.path.realpath(file)
        folder = os.path.dirname(real)  # noqa: PTH120
        if folder not in tops:
            tops[folder] = _top(Path(folder))
        top = tops[folder]
        if top is None:
            raise ChangesError(f"{file} is in no git repository")
        by_top.setdefault(top, {})[os.path.relpath(real, top).replace(os.sep, "/")] = file
    found: dict[Path, Lines] = {}
    until = time.monotonic() + SECONDS
    unborn: list[ChangesError] = []
    for top, names in by_top.items():
        repository = _Repository(top, until)
        try:
            base = repository.base(revision)
        except ChangesError as error:
            if not repository.is_unborn():
                raise
            unborn.append(error)
            lines = dict.fromkeys(names, ALL)
        else:
            lines = repository.changed(base, names)
        found |= {names[name]: lines[name] for name in names if name in lines}
    if unborn and len(unborn) == len(by_top):  # a revision that no repository has may be a typing error
        raise unborn[0]
    return found


def _top(folder: Path) -> Path | None:
    """The work tree that contains a folder (with links resolved)."""
    return next((place for place in (folder, *folder.parents) if exists(place / ".git")), None)


class _Repository:
    """One work tree. ``until``: the deadline for git, by `time.monotonic`."""

    def __init__(self, top: Path, until: float) -> None:
        self._top = top
        self._until = until
        self._settings: list[str] = []
        if self._run(["rev-parse", "--show-prefix"]).strip():
            raise ChangesError(f"{top / '.git'} is no git repository")
        self._settings = [word for setting in (*_SETTINGS, *self._no_filters()) for word in ("-c", setting)]

    def base(self, revision: str | None) -> str:
        """The commit to compare with. Raises ChangesError."""
        if revision is None:
            return self._fork()
        if not revision or revision.startswith("-") or "\0" in revision:
            raise ChangesError(f"`{revision}` is no revision")
        commit = self._commit(revision)
        if commit is None:
            raise ChangesError(f"`{revision}` is no revision of {self._top}{self._of_shallow()}")
        return commit

    def is_unborn(self) -> bool:
        """Whether it has no commit, so that all its files are new."""
        return self._commit("HEAD") is None and self._said("for-each-ref", "--count=1") is None

    def _fork(self) -> str:
        """The fork point of this branch from the default branch."""
        head = self._commit("HEAD")
        if head is None:
            raise ChangesError(f"{self._top} has no commit yet")
        remote = self._said("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
        for branch in (*([remote] if remote else []), *_BRANCHES):
            commit = self._commit(branch)
            if commit is not None:
                fork = self._said("merge-base", head, commit)
                if fork:
                    return fork.split()[0]
                raise ChangesError(f"HEAD and {branch} have no common commit in {self._top}{self._of_shallow()}")
        raise ChangesError(
            f"{self._top} has no default branch (origin/HEAD, main or master): name a revision{self._of_shallow()}"
        )

    def _commit(self, revision: str) -> str | None:
        said = self._said("rev-parse", "--verify", "--quiet", revision + "^{commit}")
        return said if said and re.fullmatch("[0-9a-f]{40,64}", said) else None

    def _of_shallow(self) -> str:
        if self._said("rev-parse", "--is-shallow-repository") != "true":
            return ""
        return "; this clone is shallow: `git fetch --unshallow` gets its history (in CI, `fetch-depth: 0`)"

    def changed(self, base: str, names: Mapping[str, Path]) -> dict[str, Lines]:
        """The changed lines of files of the work tree since a commit, by name."""
        others = [f":(top,literal){name}" for name in names if not name.endswith(SUFFIXES)]
        specs = [*(f":(top,glob)**/*{suffix}" for suffix in SUFFIXES), *others]
        tracked = {os.fsdecode(name) for name in self._run(["ls-files", "-z", "--", *specs]).split(b"\0")}
        untracked = [name for name in names if name not in tracked]
        patch = self._run([*_DIFF, base, "--", *specs])
        found = self._lines(patch, base, names)
        if untracked and b"\ndeleted file mode " in patch:
            # one of them may be a renamed file
            found = self._lines(self._with_added(untracked, [*_DIFF, base, "--", *specs]), base, names)
        else:
            found |= dict.fromkeys(untracked, ALL)
        return found

    def _lines(self, patch: bytes, base: str, names: Mapping[str, Path]) -> dict[str, Lines]:
        """The changed lines of the files of a patch; those of a notebook are lines of its module."""
        return {
            name: self._of_notebook(names[name], f"{base}:{old}") if name.endswith(".ipynb") and old else lines
            for old, name, lines in _parsed(patch)
            if name in names
        }

    def _of_notebook(self, path: Path, before: str) -> Lines:
        """The changed lines of the cells; all lines if one of the two is no notebook."""
        try:
            old = read_notebook(self._run(["cat-file", "blob", before])).text
            new = read_notebook(read_file(path, MAX_DATA)).text
        except (OSError, NotebookError, ChangesError):
            return ALL
        matcher = difflib.SequenceMatcher(None, old.split("\n"), new.split("\n"))
        changes = [(start, end) for kind, _, _, start, end in matcher.get_opcodes() if kind != "equal"]
        return Lines(
            tuple((start + 1, end) for start, end in changes if start < end),
            tuple(start for start, end in changes if start == end),
        )

    def _with_added(self, names: Sequence[str], command: Sequence[str]) -> bytes:
        """The output of a command with these files added, without their content, in a copy of the index."""
        with tempfile.TemporaryDirectory(prefix="memlint-") as folder:
            index = Path(folder) / "index"
            own = self._top / os.fsdecode(self._run(["rev-parse", "--git-path", "index"]).rstrip(b"\n"))
            if exists(own):
                index.write_bytes(own.read_bytes())
            variables = {"GIT_INDEX_FILE": str(index)}
            empty = self._run(["hash-object", "-t", "blob", "--stdin"], content=b"").strip()
            rows = b"".join(b"100644 %s 0\t%s\0" % (empty, os.fsencode(name)) for name in names)
            self._run(["update-index", "-z", "--add", "--index-info"], content=rows, variables=variables)
            return self._run(command, variables=variables)

    def _no_filters(self) -> Iterator[str]:
        """Settings that disable filters of git, which convert files before they are compared (Git LFS has one)."""
        names = self._done(["config", "--null", "--name-only", "--get-regexp", r"^filter\..*\."]).stdout
        for name in sorted({os.fsdecode(name.rpartition(b".")[0]) for name in names.split(b"\0") if name}):
            if "=" in name:
                raise ChangesError(f"{self._top} has a filter `{name}`, which cannot be turned off")
            yield from (f"{name}.clean=", f"{name}.smudge=", f"{name}.process=", f"{name}.required=false")

    def _said(self, *arguments: str) -> str | None:
        """The output of a git command; None if it fails."""
        done = self._done(arguments)
        return None if done.returncode else os.fsdecode(done.stdout).strip() or None

    def _run(
        self, arguments: Sequence[str], content: bytes | None = None, variables: Mapping[str, str] | None = None
    ) -> bytes:
        done = self._done([*self._settings, *arguments], content, variables)
        if done.returncode:
            said = os.fsdecode(done.stderr).strip().splitlines() or ["it failed"]
            raise ChangesError(f"git in {self._top}: {said[0]}")
        return done.stdout

    def _done(
        self, arguments: Sequence[str], content: bytes | None = None, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        try:
            return git(
                arguments, self._top, max(self._until - time.monotonic(), 0.01), content=content, variables=variables
            )
        except subprocess.TimeoutExpired:
            raise ChangesError(f"git did not answer within {SECONDS:.0f} seconds in {self._top}") from None
        except OSError as error:
            raise ChangesError(f"it needs git, which cannot be run: {error.strerror or error}") from None


def _parsed(patch: bytes) -> Iterator[tuple[str, str, Lines]]:
    """The files of a patch: their names before ("" for a new file) and now, and their changed lines."""
    old, name = "", ""
    ranges: list[tuple[int, int]] = []
    gaps: list[int] = []
    left = 0  # remaining lines of a hunk
    for row in patch.split(b"\n"):
        if left:
            left -= row[:1] in (b"+", b"-")
        elif row.startswith(b"diff --git "):
            if name:
                yield old, name, Lines(tuple(ranges), tuple(gaps))
            old, name, ranges, gaps = "", "", [], []
        elif row.startswith(b"--- "):
            old = _name(row[4:], b"a/")
        elif row.startswith(b"+++ "):
            name = _name(row[4:], b"b/")
        elif (hunk := _HUNK.match(row)) is not None:
            gone, new = (1 if count is None else int(count) for count in (hunk[1], hunk[3]))
            first, left = int(hunk[2]), gone + new
            if new:
                ranges.append((first, first + new - 1))
            else:
                gaps.append(first)
    if name:
        yield old, name, Lines(tuple(ranges), tuple(gaps))


def _name(text: bytes, prefix: bytes) -> str:
    """The name of a file in a patch; "" for none."""
    if text == b"/dev/null":
        return ""
    text = text.removesuffix(b"\t")  # git adds it after a name with blanks
    if text.startswith(b'"'):
        text = _ESCAPE.sub(_unescaped, text[1:-1])
    return os.fsdecode(text.removeprefix(prefix))


def _unescaped(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _ESCAPED.get(code, code)
