"""Names of torch's functions for memory that code gets wrong: see ``memory.toml``."""

from __future__ import annotations

import functools
from typing import NamedTuple

from memlint.knowledge import read

_TABLE = "memory.toml"


class Missing(NamedTuple):
    """A name that torch does not have. ``use``: what it has, "" for nothing; ``advice``: what to do, a clause."""

    use: str
    advice: str


class Renamed(NamedTuple):
    """A name of old. ``use``: the name that the same function has in the same module, from release ``since`` on."""

    use: str
    since: tuple[int, int]


@functools.cache
def missing() -> dict[str, Missing]:
    """What torch does not have, by qualified name."""
    return {name: Missing(row["use"], row["advice"]) for row in read(_TABLE)["fictional"] for name in row["names"]}


@functools.cache
def missing_methods() -> dict[str, str]:
    """What tensors have no method for, with what to do instead, by the method's name."""
    return {name: row["advice"] for row in read(_TABLE)["method"] for name in row["names"]}


@functools.cache
def renamed() -> dict[str, Renamed]:
    """What torch has another name for, by qualified name."""
    return {
        name: Renamed(row["use"], _release(row["since"])) for row in read(_TABLE)["deprecated"] for name in row["names"]
    }


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)
