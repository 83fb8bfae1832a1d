"""Runs Python with torch and with memlint's measuring modules, as they are loaded beside a program."""

from __future__ import annotations

import json
import subprocess
import textwrap
from typing import Any

from commands import ROOT, environment
from torch_forks import forks
from torch_python import torch_python

_START = f"""\
import gc, json, sys
sys.path.insert(0, {str(ROOT)!r})
import torch
from torch import nn
from memlint.measure.retention.graph import walk
from memlint.measure.retention.old import Old
from memlint.measure.sites.sites import SiteWatch, storages_of
from memlint.measure.memory.tracker import Ledger, tracker
from memlint.measure.retention.values import tensors_in
"""


def measured(text: str) -> Any:
    """What ``text`` leaves in ``result``; anything that JSON can hold."""
    code = _START + textwrap.dedent(text) + "\nprint(json.dumps(result))\n"
    done = subprocess.run(
        [forks(torch_python()), "-W", "ignore", "-c", code],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().split("\n")[-1])
