"""Scripts that a launcher such as ``accelerate launch`` starts as processes: they are measured, not the launcher."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..plan import Plan
from ..stacks import LAUNCH

#: options of Python that take a value, and those without a script
_VALUED, _NO_SCRIPT = ("-W", "-X"), ("-c", "-m", "-")


def follow_scripts(plan: Plan, leave: Callable[[], None]) -> None:
    """Start scripts of the plan with their probes. ``leave``: called before the first of them; it ends the measurement
    of this process."""
    begin = subprocess.Popen.__init__
    files = {os.path.realpath(file.path) for file in plan.files}
    numbers = itertools.count()

    signature = inspect.signature(begin)

    def probed(args: Any, cwd: Any) -> Any:
        at = script_at(args)
        if at is None:
            return args
        script = os.path.join(os.fsdecode(cwd or os.getcwd()), args[at])
        if os.path.realpath(script) not in files:
            return args
        leave()
        own = dataclasses.replace(
            plan, target=os.path.abspath(script), typed=args[at], module=False, arguments=tuple(args[at + 1 :])
        )
        file = Path(plan.output) / f"plan-{os.getpid()}-{next(numbers)}.json"
        file.write_text(own.dumps(), encoding="utf-8")
        return [*args[:at], LAUNCH, str(file)]

    @functools.wraps(begin)
    def start(*arguments: Any, **options: Any) -> None:
        given = signature.bind(*arguments, **options)
        given.arguments["args"] = probed(given.arguments["args"], given.arguments.get("cwd"))
        begin(*given.args, **given.kwargs)

    subprocess.Popen.__init__ = start  # type: ignore[method-assign]


def script_at(args: Any) -> int | None:
    """The index of the script in a command line of this Python; None without one."""
    if not isinstance(args, Sequence) or isinstance(args, str) or not all(isinstance(word, str) for word in args):
        return None
    if not args or os.path.realpath(args[0]) != os.path.realpath(sys.executable):
        return None
    at = 1
    while at < len(args) and args[at].startswith("-"):
        if args[at][:2] in _NO_SCRIPT or args[at] == "-":
            return None
        at += 2 if args[at] in _VALUED else 1
    return at if at < len(args) else None
