"""Verifies a piece of code in this process, and lets it run to its end."""

from __future__ import annotations

import ast
import dataclasses
import itertools
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from memlint.finding import Finding, Result
from memlint.measure import instrument
from memlint.measure.here import Here
from memlint.verifier.child import Ran
from memlint.verifier.model import Report
from memlint.verifier.planning import Target, probes
from memlint.verifier.run import Program, Wanted, judged, plan_for

#: the numbers of probes, which may stay in this process as long as it runs
_NUMBERS = itertools.count(1)


def verify_here(
    text: str, name: str, findings: Sequence[Finding], result: Result, run: Callable[[ast.Module], bool]
) -> Report:
    """What measuring says of the findings in a text, whose path is ``name``, while ``run`` runs the tree that it is
    given: whether that went well. ``result``: what the linter said. Raises SyntaxError where Python cannot read it."""
    wanted = Wanted(full=True, picture=True)
    target = Target(name, False, Path(name), ())
    put_in = probes({name: text}, {name: Path(name)}, findings, numbers=_NUMBERS)
    sites, loops = ((), ()) if not put_in.files else (put_in.files[0].sites, put_in.files[0].loops)
    tree, missing = instrument.parse(text, name, sites, loops)
    with tempfile.TemporaryDirectory(prefix="memlint-") as output:
        session = Here(dataclasses.replace(plan_for(target, put_in, wanted), output=output))
        session.missing += missing
        with session:
            went_well = run(tree)
        measured = json.loads(json.dumps(session.data()))
    program = Program(target, result, {name: text}, {name: Path(name)})
    return judged(program, put_in, Ran((measured,), 0 if went_well else 1), wanted)
