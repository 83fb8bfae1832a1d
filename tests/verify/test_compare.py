"""The program beside the program with its fixes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from runs import verified

from memlint.engine.options import Options
from memlint.verifier.comparing import sides
from memlint.verifier.comparing.versions import another, as_it_is, with_fixes
from memlint.verifier.probing.planning import probes
from memlint.verifier.probing.targets import innermost_loops, same_loops
from memlint.verifier.run import Program, locate, of_program, read

#: the evaluation has the highest peak, most of which is its graphs
EVALUATION = """\
import torch
from torch import nn

model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(6)])
opt = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(20):
    loss = model(torch.randn(32, 64)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    losses.append(loss)
model.eval()
total = 0.0
for step in range(20):
    total += model(torch.randn(512, 64)).sum().item()
print("the total is", total)
"""


def program(folder: Path, text: str, name: str = "train.py") -> Program:
    (folder / name).write_text(text)
    return read(locate(name, False, (), folder), Options(cwd=folder, isolated=True))


def run(**changes: Any) -> dict[str, Any]:
    """What a child writes, as far as sides are made of it."""
    return {"peak": {"cpu": 1000}, "losses": [1.0, 2.0], "loops": [], "located": None, **changes}


def test_fixes_are_made_in_memory_and_loops_found_again(tmp_path: Path) -> None:
    one = program(tmp_path, EVALUATION)
    put_in = probes(one.texts, one.paths, of_program(one))
    version = with_fixes(one, put_in, Options(cwd=tmp_path, isolated=True))
    assert version is not None
    assert (tmp_path / "train.py").read_text() == EVALUATION
    (file,) = version.put_in.files
    assert file.text is not None and "loss.detach()" in file.text and "no_grad" in file.text
    assert set(version.fixed) == {finding.fingerprint for finding in of_program(one)}
    assert len(version.pairs) == 2
    lines = file.text.splitlines()
    assert [lines[loop.line - 1].split()[0] for loop in file.loops] == ["for", "for"]
    assert not file.sites


def test_one_fix_alone(tmp_path: Path) -> None:
    one = program(tmp_path, EVALUATION)
    put_in = probes(one.texts, one.paths, of_program(one))
    kept = next(finding for finding in of_program(one) if finding.code == "MEM102")
    version = with_fixes(one, put_in, Options(cwd=tmp_path, isolated=True), (kept.fingerprint,))
    assert version is not None and version.fixed == (kept.fingerprint,)
    text = version.put_in.files[0].text
    assert text is not None and "detach" in text and "no_grad" not in text


def test_a_program_without_fixes_has_no_such_version(tmp_path: Path) -> None:
    one = program(tmp_path, "import torch\n\nfor step in range(3):\n    print(step)\n")
    assert with_fixes(one, probes(one.texts, one.paths, ()), Options(cwd=tmp_path, isolated=True)) is None


def test_another_script_is_without_the_findings_that_it_lacks(tmp_path: Path) -> None:
    one = program(tmp_path, EVALUATION)
    other = program(tmp_path, EVALUATION.replace("append(loss)", "append(loss.item())"), "better.py")
    put_in = probes(one.texts, one.paths, of_program(one))
    version = another(one, put_in, other)
    codes = {finding.fingerprint: finding.code for finding in of_program(one)}
    assert [codes[fingerprint] for fingerprint in version.fixed] == ["MEM102"]
    assert version.label == "better.py"
    assert version.target.name == str(tmp_path / "better.py")
    assert len(version.pairs) == 2


def test_the_program_as_it_is_has_no_probes_at_findings(tmp_path: Path) -> None:
    one = program(tmp_path, EVALUATION)
    put_in = probes(one.texts, one.paths, of_program(one))
    version = as_it_is(one, put_in)
    assert [len(file.sites) for file in put_in.files] == [2]
    assert [(len(file.sites), len(file.loops), file.text) for file in version.put_in.files] == [(0, 2, None)]
    assert set(version.pairs) == set(put_in.loops)


def test_loops_of_another_text_are_found_by_their_order() -> None:
    before = "for a in x:\n    f(a)\nfor b in y:\n    g(b)\n"
    after = "import torch\nwith torch.no_grad():\n    for a in x:\n        f(a)\nfor b in y:\n    g(b)\n"
    assert same_loops(before, after, [(1, 1), (3, 1)]) == [(3, 5), (5, 1)]
    assert same_loops(before, "for a in x:\n    f(a)\n", [(1, 1)]) is None
    assert same_loops(before, "for a in", [(1, 1)]) is None


def test_a_form_feed_ends_no_line_of_a_loop() -> None:
    text = "def f(xs):\n    a = 1\f\n    for x in xs:\n        pass\n"
    assert same_loops(text, "# more\n" + text, [(3, 5)]) == [(4, 5)]


def test_the_loop_that_a_statement_repeats_in() -> None:
    text = """\
for a in x:
    for b in y:
        f(b)
    def inner():
        g(a)
        while True:
            g(a)
    f(a)
h()
"""
    inner = {3: (2, 5), 6: (6, 9), 7: (6, 9), 8: (1, 1)}  # a definition runs when it is called
    assert innermost_loops(text, [(1, 1), (2, 5), (6, 9)], range(3, 10)) == inner
    assert innermost_loops(text, [(1, 1)], [3, 5, 9]) == {3: (1, 1)}
    assert innermost_loops("for a in", [(1, 1)], [1]) == {}


def test_losses_agree_bit_for_bit_or_not() -> None:
    equal = sides.losses([run()], [run(losses=[1.0, 2.0, 3.0])])
    assert (equal.losses, equal.largest_difference, equal.compared, equal.counts) == ("equal", None, 2, (2, 3))
    differ = sides.losses([run(), run()], [run(), run(losses=[1.0, 2.5])])
    assert (differ.losses, differ.largest_difference, differ.compared) == ("different", 0.5, 4)
    lost = sides.losses([run()], [run(losses=[math.nan, 2.0])])
    assert (lost.losses, lost.largest_difference) == ("different", math.inf)
    both = run(losses=[math.nan])
    assert sides.losses([both], [both]).losses == "equal"
    assert sides.losses([run(losses=None)], [run(losses=[])]).losses == "unknown"


def test_the_peak_is_compared_on_the_device_where_it_was_highest() -> None:
    before = [run(peak={"cuda:0": 10, "cuda:1": 500}), run(peak={"cuda:0": 90})]
    assert sides.peak(before) == 500
    assert sides.peak_saved(before, [run(peak={"cuda:0": 400, "cuda:1": 100}), run(peak={"cuda:0": 1})]) == 400
    assert sides.peak_saved(before, []) is None
    assert sides.peak_saved([run(peak={})], before) is None


def test_time_falls_only_where_the_quartile_agrees() -> None:
    slow, fast = [9.0] * 3 + [2.0] * 20, [9.0] * 3 + [1.5] * 20
    assert sides.faster(slow, fast, 3) == (0.25, True)
    assert sides.faster(fast, slow, 3) == (pytest.approx(-1 / 3), True)
    mixed = [9.0] * 3 + [2.1] * 9 + [1.0] * 11
    assert sides.faster([9.0] * 3 + [0.9] * 8 + [2.0] * 12, mixed, 3) == (0.5, False)
    assert sides.faster(slow[:8], fast, 3) is None


@pytest.mark.slow
def test_a_peak_is_decided_with_its_fix_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATION)
    done = verified("train.py", "--compare-fix", cwd=tmp_path)
    assert done.code == 1, done.said
    assert (tmp_path / "train.py").read_text() == EVALUATION
    name, reason = done.verdicts["MEM201"]
    assert name == "peak-only" and "the peak falls by" in reason and "shared" not in reason
    assert done.verdicts["MEM102"][0] == "confirmed-host"
    comparison = done.report["comparison"]
    assert (comparison["losses"], comparison["compared"], comparison["own_difference"]) == ("equal", 20, 0.0)
    assert comparison["reason"] == ""
    # two activations of 512 x 64 numbers are alive at once without graphs, one a layer with them
    assert comparison["before"]["peak"] - comparison["after"]["peak"] >= 4 * 512 * 64 * 4
    assert comparison["before"]["steps"] == comparison["after"]["steps"]
    savings = {row["fingerprint"]: row for row in comparison["savings"]}
    peak = savings[next(row["fingerprint"] for row in done.report["findings"] if row["code"] == "MEM201")]
    assert peak["alone"] and peak["peak"] >= 4 * 512 * 64 * 4
    kept = savings[next(row["fingerprint"] for row in done.report["findings"] if row["code"] == "MEM102")]
    assert not kept["alone"] and kept["host_bytes_per_iteration"] > 1024
    assert len(comparison["loops"]) == 2


@pytest.mark.slow
def test_a_peak_that_stays_is_refuted(tmp_path: Path) -> None:
    text = EVALUATION.replace("torch.randn(512, 64)", "torch.randn(8, 64)").replace(
        "append(loss)", "append(loss.item())"
    )
    (tmp_path / "train.py").write_text(text)
    done = verified("train.py", "--compare-fix", cwd=tmp_path)
    assert done.verdicts == {"MEM201": ("refuted", done.verdicts["MEM201"][1])}, done.said
    assert "stays as it is" in done.verdicts["MEM201"][1]
    assert done.code == 0


@pytest.mark.slow
def test_another_script_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATION)
    (tmp_path / "slower.py").write_text(EVALUATION.replace("lr=0.1", "lr=0.05"))
    done = verified("train.py", "--compare-with", "slower.py", cwd=tmp_path)
    comparison = done.report["comparison"]
    assert comparison["label"] == "slower.py" and comparison["fixed"] == []
    assert comparison["losses"] == "different" and comparison["largest_difference"] > 0
    assert done.verdicts["MEM201"] == ("unmeasurable", "the other script has it as well")
    assert done.code == 1


#: what is added to `other` is a number where the option says so, and its fix asks it for `detach`
NO_TENSOR = """\
import math
import sys

import torch
from torch import nn

model = nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(x):
    out = model(x)
    loss = out.square().mean()
    if sys.argv[1:] == ["plain"]:
        metric = math.nan
    else:
        metric = out.abs().mean()
    return loss, metric


total, other = 0, 0
for _ in range(40):
    loss, metric = step(torch.randn(8, 64))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
    other += metric
print(total, other)
"""


@pytest.mark.slow
def test_a_fix_that_does_not_suit_the_program_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(NO_TENSOR)
    done = verified("train.py", "--compare-fix", "--", "plain", cwd=tmp_path)
    assert [row["verdict"]["verdict"] for row in done.report["findings"]] == ["confirmed-host", "refuted"]
    assert "has no attribute 'detach'" in done.said
    comparison = done.report["comparison"]
    made, left = (row["fingerprint"] for row in done.report["findings"])
    assert (comparison["fixed"], comparison["left_out"]) == ([made], [left])
    assert comparison["reason"] == (
        "with the fixes of 2 findings the program failed, so those of the findings that hold were made"
    )
    assert comparison["losses"] == "equal"
    assert done.code == 1


@pytest.mark.slow
def test_a_second_run_that_fails_leaves_the_first_ones_verdicts(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATION)
    (tmp_path / "broken.py").write_text("import torch\n\nraise ValueError('this one is broken')\n")
    done = verified("train.py", "--compare-with", "broken.py", cwd=tmp_path)
    assert done.code == 1
    assert "this one is broken" in done.said
    assert done.report["comparison"]["reason"] == "the second run failed with exit code 1"
    assert done.report["comparison"]["after"]["peak"] is None
    assert done.verdicts["MEM102"][0] == "confirmed-host"
    assert done.verdicts["MEM201"][0] == "unmeasurable"
    assert "the second run failed" in done.verdicts["MEM201"][1]


def test_a_program_that_fails_is_not_run_again(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(EVALUATION.replace("model.eval()", "raise ValueError('no further')"))
    done = verified("train.py", "--compare-fix", cwd=tmp_path)
    assert done.code == 3
    assert done.said.count("ValueError: no further") == 1
    assert "was not run again" in done.report["comparison"]["reason"]
