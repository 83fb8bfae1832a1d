"""Verification of a piece of code in this process, which runs to its end."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence

import msgspec

from memlint.finding import Finding
from memlint.measure.here import Here
from memlint.measure.probing import instrument
from memlint.verifier.model import Report
from memlint.verifier.probing.planning import probes
from memlint.verifier.processes.child import Ran
from memlint.verifier.run import Program, Wanted, judged, plan_for

#: the numbers of probes, which may remain in this process as long as it runs
_NUMBERS = itertools.count(1)
#: how it is verified by default
WANTED = Wanted(full=True, picture=True)


def verify_here(
    program: Program,
    findings: Sequence[Finding],
    run: Callable[[Mapping[str, ast.Module]], bool],
    wanted: Wanted = WANTED,
    loops_in: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> Report:
    """What measuring says of findings while ``run`` runs the trees that it is given, by the display paths of the
    program's files: whether that went well. ``loops_in``: the loops to watch, where they are known already. Raises
    SyntaxError where Python cannot read one of the files."""
    started = time.perf_counter()
    put_in = probes(program.texts, program.paths, findings, loops_in=loops_in, numbers=_NUMBERS)
    plans = {file.path: file for file in put_in.files}
    trees, missing = {}, []
    for name, text in program.texts.items():
        plan = plans.get(str(program.paths[name]))
        sites, loops = ((), ()) if plan is None else (plan.sites, plan.loops)
        trees[name], lost = instrument.parse(text, name, sites, loops)
        missing += lost
    with tempfile.TemporaryDirectory(prefix="memlint-") as output:
        session = Here(dataclasses.replace(plan_for(program.target, put_in, wanted), output=output))
        session.missing += missing
        with session:
            went_well = run(trees)
        measured = json.loads(json.dumps(session.data()))
    report = judged(program, put_in, Ran((measured,), 0 if went_well else 1), wanted)
    return msgspec.structs.replace(report, seconds=time.perf_counter() - started)
