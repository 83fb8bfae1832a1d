"""Places in the units of a client, and texts that are changed by pieces."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pygls")

from hypothesis import given, settings
from hypothesis import strategies as st
from lsprotocol import types

from memlint.lsp.documents import Document, Places, path_of

ENCODINGS = ["utf-8", "utf-16", "utf-32"]
TEXTS = st.text(alphabet="ab é∑😀\t\x0c\x0b\u2028\r\n", max_size=30)


def units(text: str, encoding: str) -> int:
    """The length of a text for a client."""
    size = {"utf-8": 1, "utf-16": 2, "utf-32": 4}[encoding]
    return len(text.encode(encoding.replace("-16", "-16-le").replace("-32", "-32-le"))) // size


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_place_counts_what_the_client_counts(encoding: str, end: str) -> None:
    before = "x = '∑😀é'  # "
    text = f"\x0c# one\u2028line{end}{before}y"
    places = Places(text, encoding)
    assert places.position(2, len(before) + 1) == types.Position(1, units(before, encoding))
    assert places.offset(types.Position(1, units(before, encoding))) == text.index("y")
    assert places.end() == types.Position(1, units(before + "y", encoding))
    # what lies behind a line, or behind the text, is moved to its end
    assert places.offset(types.Position(0, 1000)) == text.index(end)
    assert places.offset(types.Position(9, 0)) == len(text)
    assert places.position(99, 1) == places.end()
    # half of a character is before it
    if encoding != "utf-32":
        assert places.offset(types.Position(1, units("x = '∑", encoding) + 1)) == text.index("😀")


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(ENCODINGS))
def test_each_place_is_found_again(text: str, encoding: str) -> None:
    places = Places(text, encoding)
    for offset in range(len(text) + 1):
        if text[max(offset - 1, 0) : offset + 1] != "\r\n":
            assert places.offset(places.at(offset)) == offset


@settings(max_examples=200, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from(ENCODINGS), st.data())
def test_a_change_replaces_what_it_names(text: str, new: str, encoding: str, data: st.DataObject) -> None:
    ends = [at for at in range(len(text) + 1) if text[max(at - 1, 0) : at + 1] != "\r\n"]
    start, end = sorted((data.draw(st.sampled_from(ends)), data.draw(st.sampled_from(ends))))
    document = Document("file:///a.py", Path("/a.py"), 1, Places(text, encoding))
    place = types.Range(document.places.at(start), document.places.at(end))
    document.change([types.TextDocumentContentChangePartial(place, new)], 2, encoding)
    assert (document.text, document.version) == (text[:start] + new + text[end:], 2)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("x = 'é'\n", "x = 'é'\n".encode()),
        ("# -*- coding: latin-1 -*-\nx = 'é'\n", "# -*- coding: latin-1 -*-\nx = 'é'\n".encode("latin-1")),
        ("# coding: latin-1\nx = '∑'\n", b"# coding: latin-1\nx = '?'\n"),
        ("# coding: no-such\nx = 'é'\n", "# coding: no-such\nx = 'é'\n".encode()),
        ("x = '\ud800'\n", b"x = '?'\n"),
    ],
)
def test_the_bytes_are_those_of_the_declared_encoding(text: str, content: bytes) -> None:
    assert Document("file:///a.py", Path("/a.py"), 1, Places(text, "utf-16")).content() == content


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "http://x/a.py", "", "file:", "file:///%00", "file://["])
def test_what_is_no_file_has_no_path(uri: str) -> None:
    assert path_of(uri) is None


def test_a_path_may_hold_anything_else() -> None:
    path = Path("/tmp/über & co/a b%.py")
    assert path_of(path.as_uri()) == path
