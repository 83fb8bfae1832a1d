"""Whether the bytes of a confirmed verdict are those that the allocator counts.

    python benchmarks/verify_exact.py --python PATH_WITH_TORCH

Each leak of programs/leaks.py is run twice on a CUDA device: under ``memlint verify``, and alone with a reading of
``requested_bytes`` at the top of each iteration. Writes benchmarks/results/verify_exact_cuda.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAM = HERE / "programs" / "leaks.py"
LEAKS = ("losses", "convolutions", "metric", "hidden")
#: the iterations that verify judges by default
FIRST, LAST = 3, 15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    python = parser.parse_args().python
    rows = [_row(leak, python) for leak in LEAKS]
    script = "import torch; print(torch.__version__, torch.cuda.get_device_name())"
    torch = subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()
    result = {"command": "python benchmarks/verify_exact.py", "torch": torch, "rows": rows}
    (HERE / "results" / "verify_exact_cuda.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        print(json.dumps(row))
    return 0 if all(row["equal"] for row in rows) else 1


def _row(leak: str, python: str) -> dict[str, Any]:
    alone = subprocess.run(
        [python, str(PROGRAM), "--leak", leak, "--read"], capture_output=True, text=True, check=True
    ).stdout
    held = json.loads(alone.splitlines()[-1])
    grown = [after - before for before, after in zip(held[FIRST:LAST], held[FIRST + 1 : LAST + 1], strict=True)]
    command = [sys.executable, "-m", "memlint", "verify", str(PROGRAM), "--isolated", "--output-format", "json"]
    done = subprocess.run(
        [*command, "--python", python, "--", "--leak", leak], capture_output=True, text=True, check=False
    )
    found = [
        (one["code"], one["line"], one["verdict"]["bytes_per_iteration"])
        for one in json.loads(done.stdout)["findings"]
        if one["verdict"]["verdict"] == "confirmed"
    ]
    exact = [per["exact"] for _, _, per in found]
    return {
        "leak": leak,
        "requested_bytes_an_iteration": sorted(set(grown)),
        "confirmed": [{"code": code, "line": line, "exact": per["exact"]} for code, line, per in found],
        "equal": len(set(grown)) == 1 and grown[0] in exact,
    }


if __name__ == "__main__":
    raise SystemExit(main())
