"""A tensor grown by cat becomes a list: where the list begins and ends, and when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fixed_programs import findings

HEAD = "import torch\n\n\ndef grown(images, wide, dims):\n    dim = 0\n    whole = torch.zeros(1, 3, 64, 64)\n"


def fixed(folder: Path, body: str) -> str:
    """The body of the function after all fixes."""
    file = folder / "grow.py"
    file.write_text(HEAD + body, encoding="utf-8")
    command = [sys.executable, "-m", "memlint", "grow.py", "--isolated", "--fix", "--unsafe-fixes", "--fix-only"]
    subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return file.read_text(encoding="utf-8").removeprefix(HEAD)


def test_the_list_stands_around_the_loop_not_around_what_may_be_left_out(tmp_path: Path) -> None:
    """Behind the `if`, nobody knows `at` where it was not entered."""
    body = (
        "    if wide:\n        at = len(images)\n        for image in images:\n"
        "            whole = torch.cat([whole, image], dim=at)\n    return whole\n"
    )
    assert fixed(tmp_path, body) == (
        "    if wide:\n        at = len(images)\n        whole_parts = [whole]\n        for image in images:\n"
        "            whole_parts.append(image)\n        whole = torch.cat(whole_parts, dim=at)\n    return whole\n"
    )


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_loop_that_ends_the_file(tmp_path: Path, end: str) -> None:
    body = "    for image in images:\n        whole = torch.cat([whole, image], dim)"
    assert fixed(tmp_path, body + end) == (
        "    whole_parts = [whole]\n    for image in images:\n        whole_parts.append(image)\n"
        "    whole = torch.cat(whole_parts, dim)" + end
    )


def test_loops_in_loops_share_one_list(tmp_path: Path) -> None:
    body = (
        "    for batch in images:\n        for image in batch:\n"
        "            whole = torch.cat((whole, image), dim)\n    return whole\n"
    )
    assert fixed(tmp_path, body) == (
        "    whole_parts = [whole]\n    for batch in images:\n        for image in batch:\n"
        "            whole_parts.append(image)\n    whole = torch.cat(whole_parts, dim)\n    return whole\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "    for image in images:\n        at = image.dim()\n        whole = torch.cat([whole, image], at)\n",
        "    for dim, image in enumerate(images):\n        whole = torch.cat([whole, image], dim=dim)\n",
        "    for image in images:\n        whole = torch.cat([whole, image], dim=dims.pop())\n",
        "    for image in images:\n        whole = torch.cat([whole, image], **dims)\n",
    ],
    ids=["bound in the loop", "its number", "a call", "words"],
)
def test_no_list_where_the_dimension_is_of_the_round(body: str, tmp_path: Path) -> None:
    found = findings(tmp_path, HEAD + body + "    return whole\n", "MEM302")
    assert found and all(one.fix is None for one in found)
