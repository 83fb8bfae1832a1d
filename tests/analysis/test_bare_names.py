"""Methods that are found by their name alone: which of the project's classes an object of unknown class may be of."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import memlint

_KEEPER = """
class Keeper:
    def __init__(self):
        self.seen = []

    def note(self, out, y):
        self.seen.append(out)
"""

_EVALUATION = """
class Judge:
    def __init__(self, model):
        self.scores = {scores}
        self.model = model

    def judge(self, loader):
        self.model.eval()
        for x, y in loader:
            out = self.model(x)
            self.scores.note(out, y)
"""


def _codes(root: Path, **files: str) -> list[str]:
    (root / "pyproject.toml").touch()
    for name, text in files.items():
        file = root / (name.replace("__", "/") + ".py")
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
    found = memlint.lint([root / "judge.py"], preview=True, min_confidence="medium").findings
    return sorted({finding.code for finding in found})


def test_an_object_that_a_library_made_has_no_method_of_the_project(tmp_path: Path) -> None:
    head = "import torch\nfrom scorekeeping import Accuracy\n"
    code = head + _KEEPER + _EVALUATION.format(scores="Accuracy()")
    assert _codes(tmp_path, judge=code) == ["MEM201"]


def test_an_object_that_anybody_made_may_have_one(tmp_path: Path) -> None:
    head = "import torch\nfrom scorekeeping import make_scores\n"
    code = head + _KEEPER + _EVALUATION.format(scores="make_scores()")
    assert _codes(tmp_path, judge=code) == ["MEM102", "MEM201"]


def test_a_class_of_the_project_that_an_import_does_not_lead_to_is_meant_by_its_name(tmp_path: Path) -> None:
    head = "import torch\nfrom scorekeeping import Keeper\n"
    code = head + _EVALUATION.format(scores="Keeper()")
    assert _codes(tmp_path, judge=code, parts__keeping="import torch\n" + _KEEPER) == ["MEM102", "MEM201"]


def test_what_tests_define_serves_tests_alone(tmp_path: Path) -> None:
    head = "import torch\nfrom scorekeeping import make_scores\n"
    code = head + _EVALUATION.format(scores="make_scores()")
    assert _codes(tmp_path, judge=code, tests__keeping="import torch\n" + _KEEPER) == ["MEM201"]


def test_a_queue_of_a_library_is_no_module_for_a_method_that_modules_have_as_well(tmp_path: Path) -> None:
    code = """
    import queue
    from torch import nn

    class Lookup(nn.ModuleDict):
        def get(self, key, default=None):
            return super().get(key, default)

    def best(scores):
        pairs = queue.PriorityQueue()
        for i in range(10):
            pairs.put((scores, i))
        kept = set()
        while not pairs.empty():
            score, i, j = pairs.get()
            i, j = sorted([i, j])
            kept.add((i, j))
        return kept
    """
    assert _codes(tmp_path, judge=code) == []
