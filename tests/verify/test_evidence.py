"""What was measured is read back by the linter, as long as the files are what they were."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch_programs import LEAK, memlint, verify

from memlint import lint
from memlint.cli import main
from memlint.evidence import content_hash, dumps
from memlint.finding import Evidence, PerIteration
from memlint.project import display_path
from memlint.report.measured import said
from memlint.verifier.evidence import document
from memlint.verifier.model import Report, Run, Verdict, VerdictName, Verified

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]
REASON = "nothing that 12 hits kept was alive at the window's end"
RUN = Run("3.11.7", "2.13.0", "cpu", "cpu", 28, 1.0, 0, "finished")


def verdict(name: VerdictName) -> Verdict:
    if name == "confirmed":
        per = PerIteration(16388, 16388, 16388, 16388)
        return Verdict(verdict=name, reason="it stays", device="cuda:0", bytes_per_iteration=per, hits=15)
    return Verdict(verdict=name, reason=REASON, device="cuda:0", hits=15)


def measured(root: Path, name: VerdictName, *paths: str, file: str = "proof.json", select: str | None = None) -> Path:
    """Evidence for what is found in ``paths`` now, all with one verdict."""
    found = lint([root / path for path in paths]).findings
    verified = tuple(Verified(one, verdict(name)) for one in found if select in (None, one.code))
    files = {display_path(path, Path.cwd()): path for path in root.rglob("*.py")}
    hashes = {display: content_hash(path.read_bytes()) for display, path in files.items()}
    report = Report(verified=verified, failures=(), run=RUN)
    (root / file).write_text(dumps(document(report, files, hashes, Path.cwd())))
    return root / file


def checked(capsys: Capture, *arguments: str) -> tuple[int, Any]:
    code = main([*arguments, "--output-format", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_what_is_confirmed_carries_its_bytes(toy: Toy, capsys: Capture) -> None:
    measured(toy({"train.py": "leak(1)\n"}), "confirmed", "train.py")
    assert main(["train.py", "--evidence", "proof.json"]) == 1
    assert "= measured: 16,388 B an iteration on cuda:0" in capsys.readouterr().out
    code, report = checked(capsys, "train.py", "--evidence", "proof.json")
    assert code == 1
    assert report["findings"][0]["evidence"] == {
        "verdict": "confirmed", "reason": "it stays", "device": "cuda:0",
        "bytes_per_iteration": {"min": 16388, "max": 16388, "exact": 16388, "mean": 16388},
        "host_bytes_per_iteration": None, "graph_nodes_per_iteration": None,
    }  # fmt: skip
    assert report["findings"][0]["suppressed"] is None


def test_where_iterations_differ_the_mean_comes_first() -> None:
    per = PerIteration(0, 4096, None, 512)
    assert said(Evidence(verdict="confirmed", device="cpu", bytes_per_iteration=per)) == (
        "512 B (0 to 4,096 B) an iteration on cpu"
    )


def test_what_is_refuted_is_silent_with_the_reason(toy: Toy, capsys: Capture) -> None:
    measured(toy({"train.py": "leak(1)\n"}), "refuted", "train.py")
    assert main(["train.py", "--evidence", "proof.json"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Found nothing in 1 file;")
    assert "1 silenced by evidence (" in out
    code, report = checked(capsys, "train.py", "--evidence", "proof.json")
    assert code == 0
    assert report["findings"][0]["suppressed"] == {"by": "evidence", "reason": REASON}
    assert report["summary"]["warnings"] == 0
    assert report["summary"]["silenced_by_evidence"] == 1


@pytest.mark.parametrize("name", ["bounded", "cycle", "confirmed-host", "unmeasurable", "not-reached"])
def test_nothing_but_a_refutation_silences(toy: Toy, capsys: Capture, name: VerdictName) -> None:
    measured(toy({"train.py": "leak(1)\n"}), name, "train.py")
    code, report = checked(capsys, "train.py", "--evidence", "proof.json")
    assert (code, report["findings"][0]["suppressed"]) == (1, None)
    known = report["findings"][0]["evidence"]
    assert (known is None) == (name in ("unmeasurable", "not-reached"))


def test_evidence_ends_with_the_file_that_it_speaks_of(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n", "other.py": "leak(1)\n"})
    measured(root, "refuted", "train.py", "other.py")
    (root / "train.py").write_text("# changed\nleak(1)\n")
    assert main([".", "--evidence", "proof.json", "--verbose", "--output-format", "concise"]) == 1
    told = capsys.readouterr()
    assert [line.partition(":")[0] for line in told.out.splitlines()[:-1]] == ["train.py"]
    assert "evidence for MEM901 at train.py:2 is not used: train.py has changed since it was measured" in told.err
    assert main([".", "--evidence", "proof.json", "--output-format", "concise"]) == 1
    assert "evidence" not in capsys.readouterr().err


def test_every_file_of_the_trace_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "meters.py").write_text(
        "class Meter:\n    def __init__(self):\n        self.losses = []\n\n"
        "    def update(self, loss):\n        self.losses.append(loss)\n"
    )
    (tmp_path / "train.py").write_text(
        "import torch\nfrom meters import Meter\n\n\ndef train(model, optimizer, loader):\n    meter = Meter()\n"
        "    for x in loader:\n        loss = model(x).mean()\n        loss.backward()\n        optimizer.step()\n"
        "        meter.update(loss)\n    return len(meter.losses)\n"
    )
    monkeypatch.chdir(tmp_path)
    measured(tmp_path, "refuted", "train.py")

    def counted() -> int:
        return lint(["train.py"], evidence="proof.json").summary.silenced_by_evidence

    assert counted() == 1
    with (tmp_path / "meters.py").open("a") as file:
        file.write("# one more line\n")
    assert counted() == 0


def test_a_file_that_changed_while_it_was_measured_proves_nothing(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    found = lint(["train.py"]).findings
    report = Report(verified=(Verified(found[0], verdict("refuted")),), failures=(), run=RUN)
    before = {"train.py": content_hash((root / "train.py").read_bytes())}
    (root / "train.py").write_text("leak(1)  # edited\n")
    assert document(report, {"train.py": root / "train.py"}, before, root).findings == ()


def test_from_anywhere(toy: Toy, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    root = toy({"pkg/train.py": "leak(1)\n"})
    proof = measured(root, "refuted", "pkg/train.py")
    monkeypatch.chdir(root / "pkg")
    assert main(["train.py", "--evidence", str(proof)]) == 0
    monkeypatch.chdir("/")
    assert main([str(root / "pkg"), "--evidence", str(proof)]) == 0


def test_of_several_files_the_worst_verdict_wins(toy: Toy, capsys: Capture) -> None:
    root = toy({"train.py": "leak(1)\n"})
    measured(root, "refuted", "train.py", file="cpu.json")
    measured(root, "confirmed", "train.py", file="gpu.json")
    measured(root, "not-reached", "train.py", file="short.json")
    assert main(["train.py", "--evidence", "cpu.json", "--evidence", "gpu.json"]) == 1
    assert main(["train.py", "--evidence", "short.json", "--evidence", "cpu.json"]) == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "there is no file"),
        ("{", "is not valid JSON"),
        ("[]", "holds no evidence; `memlint verify --evidence FILE` writes it"),
        ('{"version": 1, "findings": []}', "holds no evidence"),
        ('{"format": "memlint-evidence", "version": 7}', "is evidence of version 7, and this memlint reads version 1"),
        ('{"format": "memlint-evidence", "version": 1, "findings": 3}', "is damaged"),
    ],
)
def test_what_is_no_evidence(toy: Toy, capsys: Capture, content: str | None, said: str) -> None:
    root = toy({"train.py": "leak(1)\n"})
    if content is not None:
        (root / "proof.json").write_text(content)
    assert main(["train.py", "--evidence", "proof.json"]) == 2
    assert "memlint: error: --evidence: " in (told := capsys.readouterr().err)
    assert said in told


def test_a_folder_is_no_evidence(toy: Toy, capsys: Capture) -> None:
    toy({"train.py": "leak(1)\n"})
    assert main(["train.py", "--evidence", "."]) == 2
    assert "cannot be read: it is a folder and no regular file" in capsys.readouterr().err


def test_the_configuration_names_evidence_beside_itself(toy: Toy, capsys: Capture, monkeypatch: Any) -> None:
    root = toy({"train.py": "leak(1)\n"}, 'evidence = "proofs/cpu.json"')
    assert main(["train.py"]) == 2
    assert f"{root / 'pyproject.toml'}: `evidence`: there is no file" in capsys.readouterr().err
    (root / "proofs").mkdir()
    assert main(["train.py", "--evidence", "missing.json"]) == 2
    config = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(config.replace('evidence = "proofs/cpu.json"', ""))
    measured(root, "refuted", "train.py", file="proofs/cpu.json")
    (root / "pyproject.toml").write_text(config)
    assert main(["train.py"]) == 0
    (root / "pyproject.toml").write_text(config.replace('"proofs/cpu.json"', '["proofs/cpu.json"]'))
    assert main(["train.py"]) == 0
    (root / "pyproject.toml").write_text(config.replace('"proofs/cpu.json"', "3"))
    capsys.readouterr()
    assert main(["train.py"]) == 2
    assert "`evidence`: " in capsys.readouterr().err


def test_a_comment_that_suppresses_what_is_refuted_is_used(toy: Toy, capsys: Capture) -> None:
    measured(toy({"train.py": "leak(1)  # memlint: ignore[MEM901] -- ours\n"}), "refuted", "train.py")
    code, report = checked(capsys, "train.py", "--evidence", "proof.json")
    assert [(one["code"], one["suppressed"]) for one in report["findings"]] == [
        ("MEM901", {"by": "ignore", "reason": "ours"})
    ]
    assert (code, report["summary"]["silenced_by_evidence"]) == (0, 0)


def test_fixes_leave_alone_what_is_refuted(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    loop = "    kept = []\n    for x in loader:\n        loss = model(x).mean()\n        loss.backward()\n"
    text = (
        f"def first(model, loader):\n{loop}        kept.append(loss)\n    return len(kept)\n\n\n"
        f"def second(model, loader):\n    total = 0\n{loop}        total += loss\n    return total.item()\n"
    )
    (tmp_path / "train.py").write_text("import torch\n\n\n" + text)
    monkeypatch.chdir(tmp_path)
    measured(tmp_path, "refuted", "train.py", select="MEM102")
    assert main(["train.py", "--fix", "--unsafe-fixes", "--evidence", "proof.json", "--output-format", "concise"]) == 1
    out = capsys.readouterr().out
    after = (tmp_path / "train.py").read_text()
    assert "kept.append(loss)\n" in after, "it was not fixed, for it is no leak"
    assert "total += loss\n" not in after
    assert "MEM102" in out, "what was measured is not this file any more"
    assert "(1 fixed, 1 remaining" in out


@pytest.mark.parametrize(("option", "file"), [("-o", "missing/report.json"), ("--evidence", "missing/proof.json")])
def test_where_nothing_can_be_written_nothing_is_run(tmp_path: Path, option: str, file: str) -> None:
    (tmp_path / "program.py").write_text("open('ran', 'w').close()\n")
    done = memlint("verify", "program.py", option, file, "--isolated", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{file} cannot be written: No such file or directory" in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.py"]


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("open('ran', 'w').close()\n")
    done = memlint("verify", "program.py", "-o", ".", "--isolated", cwd=tmp_path)
    assert (done.returncode, "cannot be written: Is a directory" in done.stderr) == (2, True)
    done = memlint("verify", "program.py", "-o", "a", "--evidence", "a", "--isolated", cwd=tmp_path)
    assert (done.returncode, "name the same file" in done.stderr) == (2, True)
    assert not (tmp_path / "ran").exists()


def test_what_verify_measured_check_tells(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEAK)
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nevidence = "proof.json"\n')
    done = verify("train.py", "--evidence", "proof.json", "-o", "report.txt", cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "step 20" in done.stdout
    assert "confirmed" in (tmp_path / "report.txt").read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "proof.json", "pyproject.toml", "report.txt", "train.py"
    ]  # fmt: skip
    proof = json.loads((tmp_path / "proof.json").read_text())
    assert [one["files"] for one in proof["findings"]] == [{"train.py": content_hash(LEAK.encode())}] * len(
        proof["findings"]
    )
    done = memlint("train.py", cwd=tmp_path)
    assert done.returncode == 1
    assert "= measured: 9,216 B an iteration on cpu" in done.stdout
