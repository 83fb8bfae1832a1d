"""Notebooks that tests write."""

from __future__ import annotations

import json
from typing import Any

PYTHON = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
#: what a cell that ran has put out, with all that an editor of its JSON may stumble over
OUTPUT = {
    "output_type": "stream",
    "name": "stdout",
    "text": ['"source": ["leak(1)"], \\"}]{[\n', "caf\u00e9 \U0001f600"],
}


def code(source: str | list[str], **more: Any) -> dict[str, Any]:
    """A code cell; the lines of a string become a list, as Jupyter writes them."""
    lines = source.splitlines(keepends=True) if isinstance(source, str) else source
    return {"cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [OUTPUT], "source": lines, **more}


def prose(source: str) -> dict[str, Any]:
    """A cell of text."""
    return {"cell_type": "markdown", "metadata": {}, "source": source.splitlines(keepends=True)}


def notebook(*cells: str | dict[str, Any], indent: int | None = 1, **metadata: Any) -> str:
    """A notebook of format 4 as Jupyter writes it; a string is a code cell."""
    return (
        json.dumps(
            {
                "cells": [code(cell) if isinstance(cell, str) else cell for cell in cells],
                "metadata": metadata or PYTHON,
                "nbformat": 4,
                "nbformat_minor": 4,
            },
            indent=indent,
            ensure_ascii=False,
        )
        + "\n"
    )


def old_notebook(*sources: str) -> str:
    """A notebook of format 3."""
    cells = [{"cell_type": "code", "input": source, "language": "python", "outputs": []} for source in sources]
    return json.dumps({"metadata": {"name": ""}, "nbformat": 3, "worksheets": [{"cells": cells, "metadata": {}}]})
