"""``memlint explain``: what it says of lines that are reported, dropped, hidden, guarded or not understood."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memlint.cli import main
from memlint.engine.explaining import Asked, explain
from memlint.engine.options import Options
from memlint.engine.rules.rooms import load_rooms

#: marks the line that is explained
HERE = "# here"

TRAIN = """
import torch
from torch import nn

def train(loader: torch.utils.data.DataLoader):
    model = nn.Linear(4, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total, history = 0, []
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {line}  # here
    print(total, len(history))
"""

EVALUATE = """
import torch
from torch import nn

def evaluate(model: nn.Module, loader: torch.utils.data.DataLoader):
    model.eval()
    correct = 0
    for x, y in loader:
        out = model(x)  # here
        correct += (out.argmax(1) == y).sum().item()
    return correct

{callers}
"""

GUARDED = """
@torch.no_grad()
def main(model, loader):
    return evaluate(model, loader)
"""

#: program, arguments, what has to be said (parts of the output)
CASES: dict[str, tuple[str, list[str], list[str]]] = {
    "fired": (
        TRAIN.format(line="total += loss"),
        ["--rule", "MEM101"],
        ["MEM101[loss-accumulation]: reported", "`model` records the graph", "high confidence", "loss.item()"],
    ),
    "fired, without being asked for": (TRAIN.format(line="total += loss"), [], ["MEM101[loss-accumulation]: reported"]),
    "the value has a graph that a backward frees": (
        TRAIN.format(line="total += loss"),
        [],
        ["`loss`: a tensor; with the autograd graph of `model` (line 10); freed by backward() at line 12", "0-d"],
    ),
    "the loop": (TRAIN.format(line="total += loss"), [], ["`for (x, y) in loader` at line 9: once a batch"]),
    "a number is added": (
        TRAIN.format(line="total += loss.item()"),
        ["--rule", "MEM101"],
        [
            "nothing to report",
            "looks for a value with a graph that a loop adds to something that outlives the iteration",
            "adds a number (`.item()`), which has no graph",
        ],
    ),
    "what is added is detached": (
        TRAIN.format(line="total += loss.detach()"),
        ["--rule", "loss-accumulation"],
        ["a tensor without a graph", "`.detach()`"],
    ),
    "another rule has the line": (
        TRAIN.format(line="total += loss"),
        ["--rule", "MEM302"],
        ["concatenates nothing", "nothing to report"],
    ),
    "a rule without a table": (
        TRAIN.format(line="total += loss"),
        ["--rule", "MEM105"],
        ["MEM105 reports this: ", "`memlint rule MEM105`"],
    ),
    "the cache is emptied now and then": (
        TRAIN.format(
            line="""if len(history) % 100 == 0:
            torch.cuda.empty_cache()"""
        ),
        ["--rule", "MEM305"],
        [
            "MEM305[empty-cache-in-loop]: not reported",
            "left: MEM305 reports this: ",
            "asked of this line: ",
            ": nothing",
        ],
    ),
    "the handle of a hook is kept": (
        TRAIN.format(line="handles.append(model.register_forward_hook(print))"),
        ["--rule", "MEM105"],
        ["not reported", "whether the handle that removes the hook is discarded, or kept where nothing reads it: no"],
    ),
    "a checkpoint is loaded onto the host": (
        TRAIN.format(line="model.load_state_dict(torch.load('last.ckpt', map_location='cpu'))"),
        ["--rule", "MEM404"],
        ["not reported", "whether no device is given", ": no"],
    ),
    "gradients are let go": (
        TRAIN.format(line="optimizer.zero_grad()"),
        ["--rule", "MEM305"],
        ["nothing to report", "the analysis found nothing of that kind on this line"],
    ),
    "stored with its graph": (TRAIN.format(line="history.append(loss)"), [], ["MEM102[retained-graph]: reported"]),
    "suppressed": (
        TRAIN.format(line="total += loss  # memlint: ignore[MEM101] -- measured"),
        ["--rule", "MEM101"],
        ["found, and not shown", "a comment (ignore) suppresses it: measured"],
    ),
    "not selected": (
        TRAIN.format(line="total += loss"),
        ["--rule", "MEM101", "--ignore", "MEM101"],
        ["found, and not shown", "does not select this rule"],
    ),
    "below the threshold": (
        """
import torch

def evaluate(loader: torch.utils.data.DataLoader, criterion):
    model = torch.nn.Linear(4, 1)
    total = 0
    for x, y in loader:
        total += criterion(model(x), y)  # here
    print(total)
""",
        ["--rule", "MEM101", "--min-confidence", "high"],
        ["found, and not shown", "its confidence is medium", "`--min-confidence medium` shows it"],
    ),
    "the loop of a few parts": (
        """
import torch

def run(x):
    model = torch.nn.Linear(4, 1)
    kept = []
    for _ in range(3):
        kept.append(model(x))  # here
    print(len(kept))
""",
        ["--rule", "MEM102"],
        ["nothing to report", "`for _ in range(3)` runs over layers, steps or a few parts, and not over data"],
    ),
    "a local variable of a step": (
        """
import torch

class Net(torch.nn.Module):
    def forward(self, x, y):
        loss = 0
        loss += torch.nn.functional.mse_loss(self.layer(x), y)  # here
        return loss
""",
        ["--rule", "MEM101"],
        ["nothing to report", "`loss` is a local variable that each call makes anew"],
    ),
    "no loop": (
        "import torch\n\ndef run(x, kept):\n    kept.append(torch.nn.Linear(4, 1)(x))  # here\n",
        ["--rule", "MEM102"],
        ["nothing is known to repeat this line"],
    ),
    "an unknown callee": (
        TRAIN.format(line="seen = summarise(x)"),
        [],
        ["`summarise` is unresolved", "a definition in the project"],
    ),
    "an evaluation without a guard": (
        EVALUATE.format(callers=""),
        ["--rule", "MEM201"],
        ["MEM201[eval-builds-graph]: reported", "in eval mode", "grad mode: on: no caller of `evaluate` is known"],
    ),
    "guarded by a caller": (
        EVALUATE.format(callers=GUARDED),
        ["--rule", "MEM201"],
        ["grad mode: off: the callers of `evaluate` decide it", "off in `main`", "not-recorded"],
    ),
    "guarded where it is passed on": (
        """
import torch

class Evaluator:
    def __init__(self, net: torch.nn.Module):
        self.net = net

    def score(self, x):
        return self.net(x).argmax(1)  # here

def main(loader, engine, net):
    evaluator = Evaluator(net)
    with torch.no_grad():
        engine.run(evaluator.score, loader)
""",
        [],
        ["grad mode: off: unresolved calls of `score` decide it: off in `main`"],
    ),
    "guarded by a decorator": (
        EVALUATE.format(callers="").replace("def evaluate", "@torch.inference_mode()\ndef evaluate"),
        ["--rule", "MEM201"],
        [
            "grad mode: off: `@torch.inference_mode()` on `evaluate` decides it",
            "no model is known to run on this line while autograd records: grad mode is off",
            "nothing to report",
        ],
    ),
    "guarded by a block": (
        """
import torch

def evaluate(model: torch.nn.Module, loader):
    with torch.no_grad():
        for x in loader:
            out = model(x)  # here
""",
        ["--rule", "MEM201"],
        ["grad mode: off: `with torch.no_grad()` at line 5 decides it"],
    ),
    "no evaluation": (
        TRAIN.format(line="pass").replace("  # here", "").replace("y.cuda())\n", "y.cuda())  # here\n", 1),
        ["--rule", "MEM201"],
        ["not reported", "no-evaluation: nothing says that this run of `model` is an evaluation"],
    ),
    "code that cannot run": (
        TRAIN.format(line="total += loss  # here\n        helper(x)"),
        ["--rule", "MEM101"],
        ["cannot-run: this code raises before it ends"],
    ),
    "not reached": (
        "def f(x):\n    return x\n    y = x + 1  # here\n",
        [],
        ["the code before it always leaves"],
    ),
    "a rule on files": ("x = 1  # here\n", ["--rule", "MEM001"], ["MEM001 is about files and comments"]),
}


def explained(folder: Path, program: str, arguments: list[str]) -> int:
    file = folder / "program.py"
    file.write_text(program, encoding="utf-8")
    line = next(number for number, text in enumerate(program.split("\n"), 1) if HERE in text)
    return main(["explain", f"{file}:{line}", *arguments])


@pytest.mark.parametrize("case", CASES)
def test_says(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, arguments, phrases = CASES[case]
    assert explained(tmp_path, program, arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert [phrase for phrase in phrases if phrase not in said.out] == [], said.out


#: a reason of the table of stores, and a program in which it decides
STORES: dict[str, str] = {
    "one-batch": """
import torch
from torch import nn
def train(loader: torch.utils.data.DataLoader, model: nn.Module, parts):
    for x in loader:
        total = 0
        for part in parts:
            total += model(x).mean()  # here
        total.backward()
""",
    "does-not-last": """
import torch
def train(loader: torch.utils.data.DataLoader):
    model = torch.nn.Linear(4, 1)
    kept = []
    for x in loader:
        kept.append(model(x))  # here
        kept.clear()
""",
    "unknown-graph": """
import torch
def train(loader: torch.utils.data.DataLoader, compute):
    kept = []
    for x in loader:
        kept.append(compute(x))  # here
    print(len(kept))
""",
    "loop-of-layers": """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        kept = []
        for t in range(x.size(1)):
            kept.append(self.cell(x[:, t]))  # here
        return x
""",
    "no-new-graph": """
import torch
def train(loader: torch.utils.data.DataLoader, x):
    out = torch.nn.Linear(4, 1)(x)
    kept = []
    for y in loader:
        kept.append(out)  # here
    print(len(kept))
""",
    "becomes-array": """
import numpy as np
import torch
def train(loader: torch.utils.data.DataLoader):
    model = torch.nn.Linear(4, 1)
    kept = []
    for x in loader:
        kept.append(model(x).mean())  # here
    print(np.array(kept))
""",
    "cut-back": """
import torch
def collect(loader: torch.utils.data.DataLoader):
    rows = torch.empty(0, 4)
    for x in loader:
        rows = torch.cat([rows, x])  # here
        rows = rows[-100:]
""",
    "no-graph": """
import torch
def train(loader: torch.utils.data.DataLoader):
    state = torch.zeros(())
    for x in loader:
        state = state * 0.5  # here
""",
    "graph-needed": """
import torch
def train(loader: torch.utils.data.DataLoader):
    model = torch.nn.Linear(4, 1)
    kept = []
    for x in loader:
        kept.append(model(x).mean())  # here
    sum(kept).backward()
""",
}


@pytest.mark.parametrize("reason", STORES)
def test_names_the_reason_for_which_a_store_is_dropped(
    reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explained(tmp_path, STORES[reason], ["--output-format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    named = {why["name"] for rule in said["rules"] for why in rule["reasons"] if rule["status"] == "dropped"}
    assert reason in named, said


def test_json_has_what_the_text_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(tmp_path, TRAIN.format(line="total += loss"), ["--output-format", "json"]) == 0
    said = json.loads(capsys.readouterr().out)
    (statement,) = said["statements"]
    loss = next(value for value in statement["values"] if value["expression"] == "loss")
    assert (loss["kinds"], loss["graph"], loss["freed_by"], loss["device"], loss["size"]) == (
        ["a tensor"], "yes", [12], "accelerator", "0-d",
    )  # fmt: skip
    assert statement["grad_mode"] == "on"
    assert [(rule["code"], rule["status"]) for rule in said["rules"]] == [("MEM101", "reported")]
    assert explained(tmp_path, TRAIN.format(line="total += loss"), []) == 0
    text = capsys.readouterr().out
    assert all(value["text"] in text for value in statement["values"])


def test_a_column_chooses_the_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "program.py"
    file.write_text(TRAIN.format(line="total += loss"), encoding="utf-8")
    assert main(["explain", f"{file}:14:18", "--output-format", "json"]) == 0
    (statement,) = json.loads(capsys.readouterr().out)["statements"]
    assert [value["expression"] for value in statement["values"]] == ["loss"]


def test_a_baseline_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nbaseline = "known.json"\n', encoding="utf-8")
    (tmp_path / "program.py").write_text(TRAIN.format(line="total += loss"), encoding="utf-8")
    main(["check", "program.py", "--write-baseline", "known.json", "--no-cache"])
    capsys.readouterr()
    assert main(["explain", "program.py:14", "--rule", "MEM101"]) == 0
    said = capsys.readouterr().out
    assert "found, and not shown" in said
    assert "the baseline suppresses it" in said


ERRORS: dict[str, tuple[str, list[str], str]] = {
    "no line": ("x = 1\n", ["program.py:7"], "has 1 lines, so there is no line 7"),
    "no code": ("# only\nx = 1\n", ["program.py:1"], "there is no code on line 1"),
    "does not parse": ("def f(:\n", ["program.py:1"], "does not parse: line 1"),
    "no file": ("x = 1\n", ["absent.py:1"], "there is no file absent.py"),
    "a folder": ("x = 1\n", [".:1"], ". is no file"),
    "not Python": ("x = 1\n", ["notes.txt:1"], "cannot be explained"),
    "a notebook": ("x = 1\n", ["book.ipynb:1"], "is a notebook"),
    "no line given": ("x = 1\n", ["program.py"], "is not of the form FILE:LINE"),
    "no number": ("x = 1\n", ["program.py:one"], "is not of the form FILE:LINE"),
    "line 0": ("x = 1\n", ["program.py:0"], "count from 1"),
    "unknown rule": ("x = 1\n", ["program.py:1", "--rule", "loss-acumulation"], "did you mean `loss-accumulation`?"),
    "unknown option": (
        "x = 1\n",
        ["program.py:1", "--rules", "MEM101"],
        "unknown option `--rules` (did you mean `--rule`?)",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_refuses(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program, arguments, message = ERRORS[case]
    (tmp_path / "program.py").write_text(program, encoding="utf-8")
    cell = {"cell_type": "code", "source": "x = 1", "metadata": {}, "outputs": [], "execution_count": None}
    notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    (tmp_path / "book.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    (tmp_path / "notes.txt").write_text("no program\n", encoding="utf-8")
    assert main(["explain", *arguments]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert message in said.err


OWN_RULE = """
from memlint.sdk import Facts, Growth, Meta, Report, Retain, Silent, silent

META = Meta(code="MEM901", name="kept-logits", summary="Logits are kept.", severity="note")
SEEKS = "logits that are kept"
CANDIDATES = ("retain",)
SILENT = (
    Silent(
        Retain, "other-name", "`{event.value.text}` is not named logits", lambda event: event.value.text != "logits"
    ),
)


def check(facts: Facts):
    for event in facts.of(Retain):
        if silent(event, SILENT) is None:
            yield Report(
                site=event.site, message="`logits` are kept", help="", severity="note", confidence="high",
                growth=Growth("host", "once"),
            )
"""


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("history.append(loss)", "other-name: `loss` is not named logits"),
        ("logits = loss; history.append(logits)", "MEM901[kept-logits]: reported"),
        ("pass", "MEM901 looks for logits that are kept; this line stores nothing in a container or attribute"),
        ("history.append(loss.item())", "stores a number (`.item()`), which has no graph"),
    ],
)
def test_a_rule_of_the_project_names_its_reasons(
    line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = tmp_path / "lint" / "mem901_kept_logits"
    room.mkdir(parents=True)
    (room / "rule.py").write_text(OWN_RULE, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["lint"]\n', encoding="utf-8")
    assert explained(tmp_path, TRAIN.format(line=line), ["--rule", "MEM901", "--local-rules"]) == 0
    assert said in capsys.readouterr().out


def test_every_rule_says_why_it_is_silent(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(TRAIN.format(line="value = loss.item()"), encoding="utf-8")
    line = next(number for number, text in enumerate(file.read_text("utf-8").splitlines(), 1) if HERE in text)
    for code, room in load_rooms().items():
        found = explain(Asked(str(file), line, rule=code), Options(cwd=tmp_path, isolated=True))
        (said,) = found.rules
        assert said.finding is None and said.reasons, code
        text = " ".join(why.text for why in said.reasons)
        assert code in text or room.silent or "no model" in text, (code, text)
