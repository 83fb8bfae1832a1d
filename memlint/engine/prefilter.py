"""Whether a project can have findings, by its text, which costs far less than parsing."""

from __future__ import annotations

from memlint.engine.comments.suppressions import may_be_ours
from memlint.engine.glance import may_use_torch
from memlint.project import Project


def nothing_to_say(project: Project) -> bool:
    """Whether no file of the project uses torch, and no linted one has a suppression, which could be wrong or unused.
    Files that parse then have no finding."""
    sources = project.sources
    return not any(may_be_ours(sources[key].text) for key in project.linted) and not any(
        may_use_torch(source.text) for source in sources.values()
    )
