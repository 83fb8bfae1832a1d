"""From paths to sources: which files a run looks at, what they say, and how modules are found among them."""

from memlint.project.discovery import Discovery, Named, apart, discover, list_context
from memlint.project.patterns import Patterns, mistake
from memlint.project.project import Earlier, Project
from memlint.project.roots import display_path, find_root
from memlint.project.source import Source, Sources, decode, encoding_of

__all__ = [
    "Discovery",
    "Earlier",
    "Named",
    "Patterns",
    "Project",
    "Source",
    "Sources",
    "apart",
    "decode",
    "discover",
    "display_path",
    "encoding_of",
    "find_root",
    "list_context",
    "mistake",
]
