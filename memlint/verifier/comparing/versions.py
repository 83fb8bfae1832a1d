"""Other versions of a program: with fixes in its files, as they were measured, or another script in its place."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from memlint.amounts import plural
from memlint.engine.fixing.fixing import run_and_fix
from memlint.engine.options import Options
from memlint.finding import Finding
from memlint.project import decode
from memlint.verifier.probing.planning import Probes, Target, probes
from memlint.verifier.probing.targets import Place, loops_to_watch, same_loops
from memlint.verifier.run import Program, of_program


class Version(msgspec.Struct, frozen=True):
    """A version of a program to be run beside it. ``label``: what it is, after "compared with". ``pairs``: the ids of
    its loops by those of the loops that they are in the program as it is. ``fixed``: the fingerprints of the findings
    that it is without."""

    label: str
    target: Target
    put_in: Probes
    pairs: Mapping[int, int]
    fixed: tuple[str, ...] = ()

    def pair(self, loop: int) -> int:
        """The id of the same loop here; 0 for none. Loops of libraries have the same everywhere."""
        return loop if loop < 0 else self.pairs.get(loop, 0)


def as_it_is(program: Program, put_in: Probes) -> Version:
    """The program itself, with its loops watched and nothing measured at its findings: that costs no time."""
    return _version("the program as it is", program.target, program, program, put_in, dict(program.texts), frozenset())


def with_fixes(
    program: Program, put_in: Probes, options: Options, only: Collection[str] | None = None
) -> Version | None:
    """The program with the fixes of its findings, safe and unsafe, or of ``only`` some (fingerprints); no file is
    written. None where no fix holds. Raises ConfigError."""
    paths = [str(path) for path in program.paths.values()]
    options = msgspec.structs.replace(options, unsafe_fixes=True)
    fixed = run_and_fix(paths, options, write_files=False, only=only)
    new = {change.display: decode(change.after) for change in fixed.changes if change.display in program.texts}
    if not new:
        return None
    known = {finding.fingerprint for finding in of_program(program)}
    gone = known - {one.fingerprint for one in fixed.outcome.result.findings if one.suppressed is None}
    texts = {**program.texts, **new}
    if only is not None and not gone.intersection(only):
        return None
    label = f"the fix{'es' if len(gone) != 1 else ''} of {plural(len(gone), 'finding')}"
    version = _version(label, program.target, program, program, put_in, texts, frozenset(new))
    return msgspec.structs.replace(version, fixed=tuple(sorted(gone)))


def another(program: Program, put_in: Probes, other: Program) -> Version:
    """Another script in place of the program. Which of the program's findings it has is told by their rule and
    function, since it is another file."""
    version = _version(other.target.script.name, other.target, program, other, put_in, dict(other.texts), frozenset())
    left = [_kind(finding, program, other) for finding in of_program(other)]
    gone: list[str] = []
    for finding in of_program(program):
        kind = _kind(finding, program, other)
        if kind in left:
            left.remove(kind)
        else:
            gone.append(finding.fingerprint)
    return msgspec.structs.replace(version, fixed=tuple(gone))


def _kind(finding: Finding, program: Program, other: Program) -> tuple[str, str]:
    """A finding's rule and file, the two scripts being one file."""
    scripts = {str(one.target.script) for one in (program, other)}
    path = str(program.paths.get(finding.path, other.paths.get(finding.path, finding.path)))
    return finding.code, "" if path in scripts else path


def _version(
    label: str,
    target: Target,
    program: Program,
    other: Program,
    put_in: Probes,
    texts: dict[str, str],
    changed: frozenset[str],
) -> Version:
    """A version with the loops of the program found again in its texts."""
    names = {path: display for display, path in other.paths.items()}
    names[program.target.script] = names.get(other.target.script, "")
    flagged: dict[str, list[int]] = {}
    for finding in of_program(other) if other is not program else ():
        flagged.setdefault(finding.path, []).append(finding.line)
    guessed = loops_to_watch(texts, flagged)
    watched: dict[str, list[Place]] = dict(guessed)
    paired: list[tuple[str, str]] = []
    for path, absolute in program.paths.items():
        place = names.get(absolute)
        if place is None or place not in texts:
            continue
        file = next((file for file in put_in.files if file.path == str(absolute)), None)
        before = [] if file is None else [(loop.line, loop.column) for loop in file.loops]
        there = same_loops(program.texts[path], texts[place], before)
        if there is not None:
            watched[place] = there
        if len(watched.get(place, ())) == len(before):
            paired.append((path, place))
    probed = probes(texts, other.paths, (), changed, loops_in=watched)
    pairs: dict[int, int] = {}
    for path, place in paired:
        pairs |= zip(_ids(put_in, path), _ids(probed, place), strict=True)
    return Version(label, target, probed, pairs)


def _ids(put_in: Probes, path: str) -> list[int]:
    return [number for number, (where, _) in put_in.loops.items() if where == path]
