"""Whether there can be anything to say of a project: a look at its text, which costs far less than parsing it."""

from __future__ import annotations

from memlint.engine.comments.suppressions import may_be_ours
from memlint.engine.glance import may_import_torch
from memlint.project import Project


def nothing_to_say(project: Project) -> bool:
    """Whether no file of the project imports a library of the torch family, and no linted one holds a suppression of
    ours, which could be wrong or unused. What parses then has no finding."""
    sources = project.sources
    return not any(may_be_ours(sources[key].text) for key in project.linted) and not any(
        may_import_torch(source.text) for source in sources.values()
    )
