"""Code that nothing in an application names, though somebody out of sight may use it: what is found in it is a note
that says so, and as sure as ever."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.test_unused import EVALUATE, PROGRAM, TESTER, finding

LOADER = "import importlib\nimportlib.import_module(input())\n" + PROGRAM
GOES = "\ndef go(it):\n    it.evaluate([])\n\ngo(3)\n" + PROGRAM
PACKAGE = {
    "pyproject.toml": "[project]\nname = 'deep_kit'\n",
    "kit/__init__.py": "from .testing import evaluate\n__all__ = ['evaluate']\n",
    "kit/testing.py": EVALUATE,
    "train.py": PROGRAM,
}


@pytest.mark.parametrize(
    ("files", "what"),
    [
        pytest.param({"testing.py": EVALUATE, "train.py": LOADER}, "uses `evaluate`", id="files are loaded by name"),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "name = input()\nexec(f'from {name} import {name}')\n" + PROGRAM},
            "uses `evaluate`",
            id="some file is brought by a statement that is put together",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + PROGRAM,
                "more.py": "import testing\n\n\ndef check(m, loader):\n    return testing.evaluate(m, loader)\n",
                "train.py": LOADER,
            },
            "uses `evaluate`",
            id="files are loaded by name, and what asks for it is not named either",
        ),
        pytest.param(PACKAGE, "uses `evaluate`", id="a package"),
        pytest.param(
            {**PACKAGE, "README.md": "    pip install -e .\n    pip install torch\n"},
            "uses `evaluate`",
            id="a package that whoever trains installs",
        ),
        pytest.param(
            {
                "old/testing.py": TESTER,
                "new/tester.py": TESTER,
                "train.py": "from new.tester import Tester\nNAME = 'Tester'\nprint('testing it')\n" + GOES,
            },
            "imports this file",
            id="a file that is no program, which nothing imports",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\ngetattr(Tester(None), 'ev' + input())([])\n" + PROGRAM,
            },
            "calls `evaluate`",
            id="a method by a name that is put together",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + "\ndef check(m, loader):\n    print('in check()')\n"
                "    return evaluate(m, loader)\n",
                "train.py": "# check(model, loader)\nprint('check (see above) and evaluate')\n" + LOADER,
            },
            "uses `evaluate`",
            id="its only call is a comment, and words of a text",
        ),
    ],
)
def test_a_note_as_sure_as_before_where_nothing_names_it(tmp_path: Path, files: dict[str, str], what: str) -> None:
    found = finding(tmp_path, files)
    assert (found.severity, found.confidence) == ("note", "high")
    assert f"as far as its text tells, nothing in this project {what}" in found.message


@pytest.mark.parametrize(
    "files",
    [
        *(
            pytest.param({"old/testing.py": TESTER + more, "train.py": text + GOES}, id=text or "a program")
            for text, more in (
                ("NAME = 'Tester'\nfrom old import testing\n", ""),
                ("NAME = 'Tester'\nimport os\nos.system('old.testing')\n", ""),
                ("NAME = 'Tester'\nimport os\nos.system('python old/testing.py')\n", ""),
                ("NAME = 'Tester'\nimport importlib\nimportlib.import_module('old.' + input())\n", ""),
                ("", PROGRAM + "\nTester(None).evaluate([])\n"),
            )
        ),
        pytest.param(
            {
                "src/testing/__init__.py": "",
                "src/testing/testing.py": TESTER,
                "src/bin/train.py": "from testing import Tester\nTester(None)\n" + GOES,
            },
            id="from a package of the file's own name, whose folder is on the path",
        ),
        pytest.param({**PACKAGE, "docs/conf.py": ""}, id="a package with pages for its users"),
        pytest.param({**PACKAGE, "README.md": "    pip install --upgrade Deep-Kit\n"}, id="a package told to install"),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": LOADER + "\nimport testing\ntesting.evaluate(1, 2)\n"}, id="called"
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": LOADER,
                "run.py": "def go(what):\n    what.evaluate(1, 2)\n\ngo(None)\n",
            },
            id="of what nobody follows, where files are loaded by name",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": LOADER, "table.py": "STEPS = ['testing.evaluate']\n"},
            id="a text that is its name",
        ),
        pytest.param(
            {"testing.py": TESTER, "train.py": LOADER + "\ndef go(it):\n    it.evaluate([])\n\ngo(3)\n"},
            id="a class, which may be chosen by its name",
        ),
        pytest.param(
            {
                "testing.py": TESTER.replace(
                    "    def evaluate", "    def run(self, name):\n        getattr(self, name)([])\n\n    def evaluate"
                ),
                "train.py": "from testing import Tester\nTester(None).run(input())\n" + PROGRAM,
            },
            id="a method that its own class finds by name",
        ),
    ],
)
def test_what_somebody_may_name_stays_what_it_is(tmp_path: Path, files: dict[str, str]) -> None:
    assert finding(tmp_path, files).severity != "note"
