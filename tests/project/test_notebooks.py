"""How notebooks and the exports of notebooks are read."""

from __future__ import annotations

import ast
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from notebooks import code, notebook, old_notebook, prose

from memlint.project import NotebookError, read_notebook
from memlint.project.ipython import masks_of, python_of_cell, python_of_export

#: a cell, and what is read of it: its lines without blanks at their ends
CELLS = [
    ("x = 1\n", "x = 1\n"),
    ("!pip install torch\nx = 1", "\nx = 1"),
    ("!!ls\nx = 1", "\nx = 1"),
    ("%matplotlib inline\n%autoreload 2\nx = 1", "\n\nx = 1"),
    ("# a title\n\n%load_ext x\n", "# a title\n\n\n"),
    ("if x:\n    !ls\n", "if x:\n    0\n"),
    ("if x:\n\t%cd ..\nelse:\n\ty = 1", "if x:\n\t0\nelse:\n\ty = 1"),
    ("!it's \"quoted\nx = 1", "\nx = 1"),
    ("!ls \\\n  -l \\\n  -a\nx = 1", "\n\n\nx = 1"),
    ("files = !ls\n", "files = __\n"),
    ("a.b[0] = %env HOME\n", "a.b[0] = __\n"),
    ("a, b = !ls\n", "a, b = __\n"),
    ("path: str = !pwd", "path: str = __"),
    ("%time loss = step(x)", "if 1: loss = step(x)"),
    ("for x in y:\n    %timeit -n 3 -r 1 step(x)", "for x in y:\n    if 1:             step(x)"),
    ("%timeit", ""),
    ("%time for x in y: pass", ""),
    ("?torch\ntorch.zeros?\ntorch.nn??  # what\nx = 1", "\n\n\nx = 1"),
    ("x = '''\n!ls\n%time\nwhat?\n'''\n!ls", "x = '''\n!ls\n%time\nwhat?\n'''\n"),
    ("x = (a\n% b\n)\n!ls", "x = (a\n% b\n)\n"),
    ("x = a \\\n% b\n!ls", "x = a \\\n% b\n"),
    ("x = a % b  # why?\n!ls", "x = a % b  # why?\n"),
    ('"""\n%s""" % b\n!ls', '"""\n%s""" % b\n'),
    ("x = a == b\ny != x\n!ls", "x = a == b\ny != x\n"),
    ("%%time\nx = 1", "\nx = 1"),
    ("\n# c\n%%capture out\n!ls\nx = 1", "\n# c\n\n\nx = 1"),
    ("%%capture\n%%time\nx = 1", "\n\nx = 1"),
    ("%%bash\nls it's\nx = 1", "\n\n"),
    ("%%writefile model.py\nx = 1", "\n"),
    ("%%html\n<b>", "\n"),
    ("%%!\nls", "\n"),
    ("#@title Install\n%%bash\nls", "\n\n"),
    ("%%unheard_of --x\nx = 1", "\nx = 1"),
    ("%%unheard_of\nno python here", "\n"),
    ("pip install torch\ncd ..\nx = 1", "\n\nx = 1"),
    ("/f 1\n,g a b\nx = 1", "\n\nx = 1"),
    ("await f()\nasync for x in y:\n    pass", "await f()\nasync for x in y:\n    pass"),
    ("x = 1\r\n!ls\r\ny = 2", "x = 1\r\n\r\ny = 2"),
    ("get_ipython().system('ls')\n# MAGIC %sql", "get_ipython().system('ls')\n# MAGIC %sql"),
    ("", ""),
]


def stripped(text: str) -> str:
    return "\n".join(line.rstrip(" \t\r") + ("\r" if line.endswith("\r") else "") for line in text.split("\n"))


@pytest.mark.parametrize(("cell", "read"), CELLS)
def test_what_only_ipython_runs_is_masked(cell: str, read: str) -> None:
    made = python_of_cell(cell)
    assert stripped(made) == read
    assert len(made) == len(cell), "each place stays"
    ast.parse(made)


@pytest.mark.parametrize("cell", ["def f(:\n", "!ls\nx = = 1\n", "x = 'a\n%time\n", "print(\n"])
def test_what_is_wrong_stays(cell: str) -> None:
    with pytest.raises(SyntaxError):
        ast.parse(python_of_cell(cell))


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("# %%\n!ls\n# %%\n%time x = 1\nfiles = !ls\n", "# %%\n\n# %%\nif 1: x = 1\nfiles = __\n"),
        ("# In[1]:\n%%bash\nls it's\n# In[2]:\nx = 1\n", "# In[1]:\n\n\n# In[2]:\nx = 1\n"),
        ("x = 1\n!ls\ny = = 2\n", "x = 1\n\ny = = 2\n"),
    ],
)
def test_an_export_is_masked(text: str, read: str) -> None:
    made = python_of_export(text)
    assert stripped(made) == read
    assert len(made) == len(text)


@pytest.mark.parametrize("text", ["x = (a\n%b)\n", '"""\n!ls\n"""\n', "x = = 1\n", "# %%\nx = 1\n"])
def test_a_file_without_commands_is_read_as_it_is(text: str) -> None:
    assert python_of_export(text) is text


@pytest.mark.parametrize("cell", [cell for cell, _ in CELLS])
def test_masks_give_the_original_back(cell: str) -> None:
    made = python_of_cell(cell)
    for mask in masks_of(cell, made):
        made = made[: mask.start] + mask.text + made[mask.start + len(mask.text) :]
    assert made == cell


def test_the_cells_of_a_notebook_are_one_module() -> None:
    found = read_notebook(notebook(prose("# Title"), "import torch", prose("x = 2"), "!ls\nx = 1\n", "y = 3").encode())
    assert stripped(found.text) == "import torch\n\n\nx = 1\n\n\ny = 3"
    assert [(cell.number, cell.line) for cell in found.cells] == [(2, 1), (4, 3), (5, 7)]
    assert [stripped(found.text[cell.start : cell.end]) for cell in found.cells] == [
        "import torch",
        "\nx = 1\n",
        "y = 3",
    ]


def test_a_cell_that_does_not_parse_costs_itself_alone() -> None:
    found = read_notebook(notebook("x = 1", "if x:\n    y = = 2", "z = 3").encode())
    assert [(one.line, one.column) for one in found.problems] == [(4, 9)]
    assert [name.id for name in ast.walk(ast.parse(found.text)) if isinstance(name, ast.Name)] == ["x", "z"]


def test_a_statement_does_not_go_on_in_the_next_cell() -> None:
    found = read_notebook(notebook("x = (1,", "2)", "y = 3").encode())
    assert len(found.problems) == 2
    assert "y = 3" in found.text


def test_an_indented_cell_is_read_as_ipython_runs_it() -> None:
    found = read_notebook(notebook("    x = 1\n    if x:\n        y = 2").encode())
    assert [line.rstrip() for line in found.text.split("\n")] == ["x = 1", "if x:", "    y = 2"]
    assert found.cells[0].indent == 4


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"kernelspec": {"name": "ir", "language": "R"}}, "R"),
        ({"kernelspec": {"name": "ir"}}, "R"),
        ({"language_info": {"name": "julia"}}, "julia"),
        ({"kernelspec": {"name": "julia-1.9"}}, "julia"),
        ({"kernelspec": {"name": "conda-env-x", "language": "python"}}, ""),
        ({"language_info": {"name": "ipython"}}, ""),
        ({"kernelspec": None}, ""),
        ({"kernelspec": {"name": "my-venv"}}, ""),
    ],
)
def test_the_language_of_a_notebook(metadata: dict[str, object], language: str) -> None:
    found = read_notebook(notebook("x = 1", **metadata).encode())
    assert found.foreign == language
    assert bool(found.text) is not bool(language)


def test_a_cell_in_another_language_is_left_out() -> None:
    other = code("ls -la it's", metadata={"vscode": {"languageId": "shellscript"}})
    found = read_notebook(notebook("x = 1", other, "y = 2").encode())
    assert [cell.number for cell in found.cells] == [1, 3]
    assert not found.problems


@pytest.mark.parametrize("text", [old_notebook("x = 1\n", "y = 2"), "\ufeff" + notebook("x = 1\n", "y = 2")])
def test_other_forms_of_a_notebook(text: str) -> None:
    assert read_notebook(text.encode()).text == "x = 1\n\n\ny = 2"


@pytest.mark.parametrize("raw", [b"", b"\n", b"\xef\xbb\xbf"])
def test_an_empty_file_has_no_cells(raw: bytes) -> None:
    found = read_notebook(raw)
    assert not found.cells and not found.text and not found.problems


def test_numbers_that_only_python_writes_as_json() -> None:
    text = json.dumps({"cells": [code("x = 1")], "metadata": {"score": float("nan")}, "nbformat": 4})
    assert read_notebook(text.encode()).text == "x = 1"


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"{", "its JSON is broken: .* line 1, column 2"),
        (b'{\n "cells": [,]\n}', "its JSON is broken: .* line 2, column 12"),
        (b"[]", "no object"),
        (b"{}", "no list of cells"),
        (b'{"cells": {}}', "no list of cells"),
        (b'{"worksheets": [1]}', "no list of cells"),
        (b'{"cells": [1]}', "cell 1 is no object"),
        (b'{"cells": [{"cell_type": "code", "source": [1]}]}', "the source of cell 1 is no text"),
        (b'{"cells": [{"cell_type": "code", "source": null}]}', "the source of cell 1 is no text"),
        (b'{"cells": ["\xff"]}', "0xff at 12 is not UTF-8"),
        (b"[" * 100_000, "not a notebook"),
        (b'{"cells": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not a notebook"),
    ],
)
def test_what_is_no_notebook(raw: bytes, said: str) -> None:
    with pytest.raises(NotebookError, match=said):
        read_notebook(raw)


LINES = st.sampled_from([
    "x = 1", "!ls it's", "%time x = (1", "%%bash", "if x:", "    !ls", "    y = !ls \\", "'''", '"a', "x = [", "]",
    "# c?",
    "f(x)?", "\\", "x \\", "%", "!", "?", "pip install x", "é = '?'", "\tx = 1", "", "f'{x!r}'", "x = %s % y", ",f a",
])  # fmt: skip


@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_masks_keep_all_places_of_any_cell(lines: list[str], newline: str) -> None:
    cell = newline.join(lines)
    for made in (python_of_cell(cell), python_of_export(cell)):
        assert len(made) == len(cell)
        assert [len(line) for line in made.split("\n")] == [len(line) for line in cell.split("\n")]
        for mask in masks_of(cell, made):
            made = made[: mask.start] + mask.text + made[mask.start + len(mask.text) :]
        assert made == cell


NOTEBOOK = notebook(prose("x"), "!ls\nx = 1", code(["y = 'é'\n", "z"]), indent=None).encode()


@given(st.lists(st.tuples(st.integers(0, len(NOTEBOOK)), st.integers(0, 6), st.binary(max_size=3)), max_size=3))
def test_a_damaged_notebook_is_read_or_refused(damages: list[tuple[int, int, bytes]]) -> None:
    raw = NOTEBOOK
    for at, length, content in damages:
        raw = raw[:at] + content + raw[at + length :]
    try:
        found = read_notebook(raw)
    except NotebookError as error:
        assert str(error).startswith("not a notebook: ")
    else:
        assert len(found.text) >= sum(cell.end - cell.start for cell in found.cells)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.sampled_from(["code", "R", "python"]),
        lambda inner: st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cells", "worksheets", "source", "input", "cell_type", "metadata", "kernelspec", "vscode",
                             "language", "name", "languageId"]),
            inner,
            max_size=4,
        ),
        max_leaves=12,
    )
)  # fmt: skip
def test_any_json_is_read_or_refused(document: object) -> None:
    try:
        read_notebook(json.dumps(document).encode())
    except NotebookError as error:
        assert str(error).startswith("not a notebook: ")
