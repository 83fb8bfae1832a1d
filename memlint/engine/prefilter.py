"""Whether there can be anything to say of a project: a look at its text, which costs far less than parsing it."""

from __future__ import annotations

import re
import unicodedata

from memlint.engine.suppressions import may_be_ours
from memlint.knowledge.family import TORCH_FAMILY
from memlint.project import Project

#: ``import`` or ``from`` and what may belong to its statement: the line, lines joined by a backslash, parentheses.
#: No word boundary in front: the search is three times faster without it
_IMPORT = re.compile(r"(?:import|from)\b((?:[^\n\\#(]+|\\\r?\n?)*(?:\((?:[^)#]+|#[^\n]*)*\)?)?)")
_WORD = re.compile(r"\w+")


def nothing_to_say(project: Project) -> bool:
    """Whether no file of the project imports a library of the torch family, and no linted one holds a suppression of
    ours, which could be wrong or unused. What parses then has no finding."""
    sources = project.sources
    return not any(may_be_ours(sources[key].text) for key in project.linted) and not any(
        may_import_torch(source.text) for source in sources.values()
    )


def may_import_torch(text: str) -> bool:
    """Whether something in the text may be an import of a library of the torch family, wherever it stands; strings and
    comments are taken for code."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)  # as Python does with names
    return any(not TORCH_FAMILY.isdisjoint(_WORD.findall(match[1])) for match in _IMPORT.finditer(text))
