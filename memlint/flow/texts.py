"""What a project's files say by themselves, read once for all analyses of the project in this process."""

from __future__ import annotations

from typing import Any

from memlint.flow.words import Words
from memlint.frontend.index import ModuleIndex

_NAME = "texts"


class Texts:
    """``indexes``: of the files that were read, by key; ``words``: which files hold a word."""

    def __init__(self, project: Any) -> None:
        self.indexes: dict[str, ModuleIndex] = {}
        self.words = Words(project.sources, self.indexes)


def texts_of(project: Any) -> Texts:
    """The texts of a project, and of those that are parts of it."""
    if _NAME not in project.kept:
        project.kept[_NAME] = Texts(project)
    found: Texts = project.kept[_NAME]
    return found
