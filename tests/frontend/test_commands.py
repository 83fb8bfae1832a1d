"""Lines that only IPython runs are named, where they keep a file from being read."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint.frontend.problem import rejected

TRAINING = "import torch\n\n\ndef train(model, loader):\n    for x in loader:\n        model(x).sum().backward()\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (f"import os\n!pip install torch==2.1\n{TRAINING}", 2, "`!`, a shell command"),
        (f"# In[1]:\n%matplotlib inline\n{TRAINING}", 2, "`%`, a magic command"),
        (f"%cd /content\n!unzip 3d_models.zip\n{TRAINING}x = 1\n!nvidia-smi\n", 1, "`%`, a magic command"),
        (f"{TRAINING}\n!wget https://example.org/1a.zip\n\n\n\n\n!unzip 2b.zip\n", 8, "`!`, a shell command"),
        (f"if True:\n    !pip install \\\n        torch\n{TRAINING}", 2, "`!`, a shell command"),
        (f"{TRAINING}%%bash\nls | wc -l\n", 7, "`%`, a magic command"),
        (
            f"try:\n    import torch\n    !pip install torch\nexcept ImportError:\n    pass\n{TRAINING}",
            3,
            "`!`, a shell command",
        ),
        (f"x = (3\n     % 2)\n{TRAINING}\n!ls\n", 10, "`!`, a shell command"),
        (f'"""\n!ls\n"""\n{TRAINING}\n!ls\n', 11, "`!`, a shell command"),
        (f"{TRAINING}\r\n!ls -l 0b\r\n".replace("\n", "\r\n").replace("\r\r", "\r"), 8, "`!`, a shell command"),
    ],
)
def test_the_line_that_stands_in_the_way_is_named(text: str, line: int, said: str, tmp_path: Path) -> None:
    problem = rejected(text)
    assert problem is not None
    assert (problem.line, said in problem.message) == (line, True)
    (tmp_path / "export.py").write_text(text, newline="")
    (found,) = memlint.lint([tmp_path]).findings
    assert (found.code, found.severity, found.line) == ("MEM000", "warning", line)
    assert f"line {line}: it begins with {said}" in found.message


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = (3\n     % 2)\ny = 1 +\n", 3),
        ("x = 3 \\\n    % 2\ndef f(:\n    pass\n", 3),
        ('"""\n!ls\n"""\ny = 1a\n', 4),
        ("y = 1 +\n!ls\n", 1),
    ],
)
def test_other_mistakes_are_told_as_python_tells_them(text: str, line: int) -> None:
    problem = rejected(text)
    assert problem is not None
    assert (problem.line, "IPython" in problem.message) == (line, False)
