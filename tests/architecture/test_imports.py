"""Each module of the analysis may be the first one that a process imports: no cycle of imports hangs on the order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ANALYSIS = ROOT / "memlint" / "analysis"

#: a fork for each module, so that what is not of the analysis is loaded once
SCRIPT = """
import importlib, os, sys
import memlint.frontend.index, memlint.frontend.lower, memlint.knowledge.memory, memlint.project

loaded = [name for name in sys.modules if name.startswith("memlint.analysis")]
assert not loaded, loaded
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        try:
            importlib.import_module(name)
        except BaseException as error:
            print(f"{name}: {error!r}", flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(f"{name}: its process died", flush=True)
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_each_module_of_the_analysis_may_be_imported_first(tmp_path: Path) -> None:
    files = (path.relative_to(ROOT).with_suffix("") for path in sorted(ANALYSIS.rglob("*.py")))
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    assert "memlint.analysis.driver.run" in names
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    # each is compiled once, also where nobody wants that written beside the sources
    if environment.pop("PYTHONDONTWRITEBYTECODE", None):
        environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-c", SCRIPT, *names]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["done"], done.stdout + done.stderr
