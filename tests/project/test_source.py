from __future__ import annotations

from pathlib import Path

import pytest

from memlint.project import Sources


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x = 1  # plain", str),
        ("x = 1  # café", str),
        ("x = 1  # → an arrow", bytes),
        ("x = '\U0001f525'\r\ny = 2", bytes),
        ("", str),
    ],
)
def test_a_text_is_kept_in_the_room_that_it_takes(tmp_path: Path, text: str, kept: type) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(text.encode())
    source = Sources({"a.py": path}, frozenset({"a.py"}))["a.py"]
    assert source.text == text
    assert type(source.packed) is kept
