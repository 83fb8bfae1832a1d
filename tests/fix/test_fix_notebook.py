"""Fixes in notebooks change the sources of cells, and not a byte more."""

from __future__ import annotations

import io
import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from notebooks import code, notebook, old_notebook, prose
from toy_process import memlint

from memlint.cli import main
from memlint.fix.edits import Placed
from memlint.fix.json_strings import rewritten

nbformat = pytest.importorskip("nbformat")

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

SAFE = 'mend("safe", "fixed = 1")'


def sources(text: str) -> list[str]:
    return [cell.source for cell in nbformat.reads(text, as_version=4).cells]


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_all_else_stays_as_it_is(toy: Toy, indent: int | None, newline: str, end: str) -> None:
    text = notebook(prose("# é"), f"x = 'é'\n{SAFE}\n!ls", f"{SAFE}\n", code([]), indent=indent).rstrip("\n") + end
    before = text.replace("\n", newline).encode()
    root = toy({"a.ipynb": before})
    assert main(["a.ipynb", "--fix"]) == 0
    after = (root / "a.ipynb").read_bytes()
    assert after == before.replace(json.dumps(SAFE)[1:-1].encode(), b"fixed = 1")
    nbformat.validate(nbformat.reads(after.decode(), as_version=4))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f'"{SAFE}"', '"fixed = 1"'),
        (f'["{SAFE}"]', '["fixed = 1"]'),
        (f'[\n  "x\\n",\n  "{SAFE}\\n" , "y"]', '[\n  "x\\n",\n  "fixed = 1\\n" , "y"]'),
        (f'["x = 1\\n{SAFE}\\ny", " = 2"]', '["x = 1\\nfixed = 1\\ny", " = 2"]'),
        (
            f'["x = \\"\\u00e9\\/\\ud83d\\ude00\\"; {SAFE} ; y"]',
            '["x = \\"\\u00e9\\/\\ud83d\\ude00\\"; fixed = 1 ; y"]',
        ),
        ('["mend(", "\\"safe\\"", ", \\"fixed = 1\\")\\n", "y"]', '["fixed = 1\\n", "y"]'),
        ('["mend(\\"safe\\",\\n", " \\"fixed = 1\\")\\n", "y"]', '["fixed = 1\\n", "y"]'),
        ('["mend(\\"safe\\", \\"a = 1\\\\nb = 2\\")\\n",\n "y"]', '["a = 1\\n",\n "b = 2\\n",\n "y"]'),
        ('["mend(\\"safe\\", \\"0  # \\\\u00e9\\")"]', '["0  # \\u00e9"]'),
        ('["mend(\\"safe\\", \\"0  # \\\\u00e9\\")", "  # é"]', '["0  # é", "  # é"]'),
    ],
)
def test_the_ways_to_write_a_source(toy: Toy, before: str, after: str) -> None:
    quoted = before.replace(SAFE, json.dumps(SAFE)[1:-1])
    text = '{"nbformat" : 4, "cells":[ {"source" :%s, "cell_type": "code", "outputs": [{"source": ["mend"]}]}]}'
    root = toy({"a.ipynb": (text % quoted).encode()})
    assert main(["a.ipynb", "--fix-only"]) == 0
    assert (root / "a.ipynb").read_bytes().decode() == text % after


def test_a_notebook_of_format_3(toy: Toy) -> None:
    root = toy({"a.ipynb": old_notebook("x = 1\n", f"{SAFE}\n")})
    assert main(["a.ipynb", "--fix"]) == 0
    assert (root / "a.ipynb").read_text() == old_notebook("x = 1\n", "fixed = 1\n")


def test_of_two_sources_the_last_one_counts(toy: Toy) -> None:
    text = '{"cells": [{"cell_type": "code", "source": "%s", "source": "%s"}]}'
    quoted = json.dumps(SAFE)[1:-1]
    root = toy({"a.ipynb": text % (quoted, quoted)})
    assert main(["a.ipynb", "--fix"]) == 0
    assert (root / "a.ipynb").read_text() == text % (quoted, "fixed = 1")


def test_findings_and_fixes_name_the_cell(toy: Toy, capsys: Capture) -> None:
    toy({"a.ipynb": notebook(prose("a"), "x = 1", f"x = 2\n{SAFE}\nbare()")})
    assert main(["a.ipynb", "--output-format", "json"]) == 1
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["findings"]
    assert [(row["cell"], row["line"], row["end_line"], row["column"]) for row in found] == [(3, 2, 2, 1), (3, 3, 3, 1)]
    (edit,) = found[0]["fix"]["edits"]
    assert (edit["cell"], edit["span"]["line"], edit["span"]["end_line"]) == (3, 2, 2)
    assert main(["a.ipynb", "--fix", "--verbose", "--output-format", "concise"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("a.ipynb:cell 3:3:1: warning MEM911")
    assert "fixed MEM911 at a.ipynb:cell 3:2: mend it" in err


def test_a_diff_is_one_of_the_json(toy: Toy) -> None:
    root = toy({"a.ipynb": notebook("x = 1", SAFE), "b.py": f"{SAFE}\n"})
    command = ["--diff", "-q", "a.ipynb", "b.py"]
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    before = (root / "a.ipynb").read_text()
    done = memlint(root, *command)
    assert done.returncode == 1
    subprocess.run(["git", "apply", "-p0"], cwd=root, input=done.stdout, check=True)
    assert (root / "a.ipynb").read_text() == before.replace(json.dumps(SAFE), '"fixed = 1"')
    assert (root / "b.py").read_text() == "fixed = 1\n"


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        # what is written would not be a cell of its own
        (["if x:\n    y = 1", 'mend("safe", "else: z = 1")'], "no longer compile|no longer parse on its own"),
        (['mend("safe", "x = (1")', 'mend("safe", "+ 1)")'], "no longer compile|no longer parse on its own"),
        (['%time mend("safe", "x = 1")'], "would change a line that only IPython runs"),
    ],
)
def test_a_fix_that_breaks_a_cell_is_not_made(toy: Toy, capsys: Capture, cells: list[str], said: str) -> None:
    text = notebook(*cells)
    root = toy({"a.ipynb": text})
    assert main(["a.ipynb", "--fix"]) == 1
    assert (root / "a.ipynb").read_text() == text
    assert re.search(said, capsys.readouterr().err)


def test_an_export_with_commands_is_fixed_around_them(toy: Toy) -> None:
    text = f"# %%\n!ls it's\n{SAFE}\nif x:\n    %time y\n    {SAFE}\n"
    root = toy({"a.py": text})
    assert main(["a.py", "--fix"]) == 0
    assert (root / "a.py").read_text() == text.replace(SAFE, "fixed = 1")


def test_an_empty_notebook_is_not_changed(toy: Toy) -> None:
    root = toy({"a.ipynb": "", "b.ipynb": notebook(SAFE)})
    assert main([".", "--fix"]) == 0
    assert (root / "a.ipynb").read_text() == ""


@pytest.mark.parametrize("content", ["{", "[]", "{}"])
def test_what_is_no_notebook_is_not_changed(toy: Toy, capsys: Capture, content: str) -> None:
    root = toy({"a.ipynb": content, "b.ipynb": notebook(SAFE)})
    assert main([".", "--fix"]) == 2
    assert (root / "a.ipynb").read_text() == content
    assert sources((root / "b.ipynb").read_text()) == ["fixed = 1"], "the others go on"
    assert "a.ipynb: failed: not a notebook" in capsys.readouterr().out


def test_a_cell_that_does_not_parse_stays_and_the_others_are_fixed(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.ipynb": notebook("x = = 1", SAFE, "y = 'é\n")})
    assert main(["a.ipynb", "--fix", "--output-format", "concise"]) == 1
    assert sources((root / "a.ipynb").read_text()) == ["x = = 1", "fixed = 1", "y = 'é\n"]
    rows = [row.partition(" this")[0] for row in capsys.readouterr().out.splitlines()[:2]]
    assert rows == [f"a.ipynb:cell {cell}:1:5: warning MEM000[unreadable-file]" for cell in (1, 3)]


def test_standard_input(toy: Toy, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    toy({})
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(notebook("é = 1", SAFE).encode())))
    assert main(["-", "--stdin-filename", "a.ipynb", "--fix-only", "-q"]) == 0
    assert sources(capfdbinary.readouterr().out.decode()) == ["é = 1", "fixed = 1"]


LINES = st.sampled_from(
    ["x = 1", SAFE, "!ls it's", "%time x", "if x:\n    " + SAFE, "'é'", "", "# c", "y = (1,\n 2)", "\t"]
)
CELLS = st.lists(st.lists(LINES, max_size=4).map("\n".join), min_size=1, max_size=5)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CELLS, st.sampled_from([None, 1, 2]), st.booleans())
def test_fixing_leaves_all_but_edited_sources(toy: Toy, cells: list[str], indent: int | None, is_ascii: bool) -> None:
    text = notebook(*cells, indent=indent)
    text = json.dumps(json.loads(text), indent=indent, ensure_ascii=is_ascii)
    root = toy({"a.ipynb": text})
    main(["a.ipynb", "--fix", "-q", "--output-format", "concise"])
    after = (root / "a.ipynb").read_text()
    assert after == text.replace(json.dumps(SAFE)[1:-1], "fixed = 1")
    nbformat.validate(nbformat.reads(after, as_version=4))


TEXTS = st.text(st.sampled_from('ab\n"\\é\U0001f600\t/'), max_size=12)


@given(st.lists(TEXTS, max_size=4), st.data(), st.booleans(), st.sampled_from([None, 0, 3]))
def test_edits_anywhere_in_a_source(pieces: list[str], data: st.DataObject, is_ascii: bool, indent: int | None) -> None:
    source: Any = pieces if len(pieces) != 1 else pieces[0]
    joined = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(joined)), max_size=4).filter(lambda cuts: len(cuts) % 2 == 0)))
    placed = [Placed(start, end, data.draw(TEXTS)) for start, end in zip(cuts[::2], cuts[1::2], strict=True)]
    document = {"cells": [prose("x"), code("y"), {"cell_type": "code", "source": source, "x": [source]}], "z": {}}
    raw = json.dumps(document, indent=indent, ensure_ascii=is_ascii).encode()
    new = rewritten(raw, {3: placed})
    wanted, at = "", 0
    for one in placed:
        wanted, at = wanted + joined[at : one.start] + one.content, one.end
    found = json.loads(new)
    got = found["cells"][2]["source"]
    assert (got if isinstance(got, str) else "".join(got)) == wanted + joined[at:]
    found["cells"][2]["source"] = source
    assert found == document
    start, end = raw.index(b'"source"', raw.rindex(b'"code"')), raw.rindex(b'"x"')
    assert new.startswith(raw[:start])
    assert new.endswith(raw[end:])
    if not placed:
        assert new == raw
