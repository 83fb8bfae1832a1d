"""The parser of the pages, on pages small enough to see."""

from __future__ import annotations

import pages
import pytest

PAGE = """# title

## What it does

```python
ignored()
```

## Bad

### One file

```python
x = 1
## not a heading
y = 2  # error: [MEM101]
```

```python fixed
x = 1
```

### Two files

```python title="pkg/a.py"
a = 1  # todo-error: [MEM102]
```

```python title="b.py"
b = 1  # error: [MEM101, MEM201]
```

## Good

### Silent

```console
$ not python
```

```python
z = 3  # todo-ok: [MEM101]
```
"""


def test_each_sub_heading_is_a_program() -> None:
    found = pages.examples("mem101_x", PAGE)
    assert [(example.section, example.title, sorted(example.files)) for example in found] == [
        ("Bad", "One file", ["train.py"]),
        ("Bad", "Two files", ["b.py", "pkg/a.py"]),
        ("Good", "Silent", ["train.py"]),
    ]
    assert found[0].fixed == {"train.py": "x = 1\n"}
    assert found[0].id == "mem101-Bad-one-file"


def test_markers_name_their_lines_and_codes() -> None:
    one, two, silent = (pages.marks(example.files) for example in pages.examples("mem101_x", PAGE))
    assert one.errors == {("train.py", 3, "MEM101")}
    assert two.errors == {("b.py", 1, "MEM101"), ("b.py", 1, "MEM201")}
    assert two.todo_errors == {("pkg/a.py", 1, "MEM102")}
    assert silent.reported_today == {("train.py", 1, "MEM101")}


@pytest.mark.parametrize("line", ["x = 1  # error: MEM101", "x = 1  # error [MEM101]", "x = 1  # todo-error: []"])
def test_a_misspelt_marker_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="not a marker"):
        pages.marks({"a.py": line})


def test_a_block_needs_a_heading() -> None:
    with pytest.raises(ValueError, match="heading"):
        pages.examples("mem101_x", "## Bad\n\n```python\nx = 1\n```\n")


def test_two_files_of_one_name_are_an_error() -> None:
    with pytest.raises(ValueError, match="two blocks"):
        pages.examples("mem101_x", "## Bad\n\n### A\n\n```python\nx = 1\n```\n\n```python\nx = 1\n```\n")
