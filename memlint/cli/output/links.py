"""The address of a rule's page: on the documentation's site, or on this machine."""

from __future__ import annotations

import functools
from importlib import metadata

from memlint.engine.rules.rooms import Room, own_rooms
from memlint.project.presence import exists


def address(room: Room) -> str | None:
    """The address of a rule's page; None if it has none."""
    site = _site()
    if site and room.folder.is_relative_to(own_rooms()):
        return f"{site}/rules/{room.folder.name}/"
    return room.page.resolve().as_uri() if exists(room.page) else None


@functools.cache
def _site() -> str:
    """The documentation's address (``[project.urls]``), if the distribution has one."""
    try:
        rows = metadata.metadata("torch-memlint").get_all("Project-URL") or []
    except metadata.PackageNotFoundError:
        return ""
    urls: dict[str, str] = dict(row.split(", ", 1) for row in rows if ", " in row)
    return urls.get("Documentation", "").rstrip("/")
