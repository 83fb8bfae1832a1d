"""The measurement of what fixes do to code of others counts them, and sees what they would break."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "fixes.py"

TRAIN = """\
import torch


def train(model, loader, optimizer, criterion):
    model.cuda()
    model.load_state_dict(torch.load("last.pt"))
    total = 0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss  # of the epoch
    return total
"""


def _script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fixes_benchmark", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_tree_is_fixed_both_ways_and_nothing_is_broken(tmp_path: Path) -> None:
    tree = tmp_path / "owner+name"
    tree.mkdir()
    for part in (tree, tree / "inner"):  # two projects
        part.mkdir(exist_ok=True)
        (part / "setup.py").write_text("", encoding="utf-8")
        (part / "train.py").write_text(TRAIN, encoding="utf-8")
    output = tmp_path / "fixes.json"
    command = [sys.executable, str(SCRIPT), str(tree), "--output", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(output.read_text(encoding="utf-8"))
    assert result["summary"]["trees not finished"] == []
    assert result["summary"]["planned fixes"] == result["summary"]["written"] == 4
    assert [row["ways"]["unsafe"] for row in result["trees"]] == [
        {"written": 4, "refused": 0, "files": 2, "wrong": [], "findings": []}
    ]
    assert (tree / "train.py").read_text(encoding="utf-8") == TRAIN
    assert str(tmp_path) not in output.read_text(encoding="utf-8")


def test_the_rows_of_other_trees_are_kept(tmp_path: Path) -> None:
    output = tmp_path / "fixes.json"
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.py").write_text("import torch\n", encoding="utf-8")
    for names, kept in ((["first"], ["first"]), (["second"], ["second"]), (["first", "--keep"], ["first", "second"])):
        command = [sys.executable, str(SCRIPT), *names, "--output", str(output)]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert [row["name"] for row in json.loads(output.read_text(encoding="utf-8"))["trees"]] == kept


def test_what_a_fix_breaks_is_told() -> None:
    harms = _script().harms
    assert harms(TRAIN, TRAIN.replace("total += loss", "total += loss.detach()")) == []
    assert harms(TRAIN, TRAIN.replace("total += loss", "total += (loss")) != []
    assert harms(TRAIN, TRAIN.replace("  # of the epoch", "")) == ["comments lost or changed: # of the epoch"]
    assert harms(TRAIN, TRAIN.replace('"last.pt"', '"best.pt"')) == ['strings lost or changed: "last.pt"']
