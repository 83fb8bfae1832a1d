"""From paths to sources: the files of a run, their contents, and the resolution of modules among them."""

from memlint.project.cells import Cell, NotebookError, cell_at, cell_texts, read_notebook
from memlint.project.discovery import Discovery, Named, apart, discover, list_context
from memlint.project.listing import is_notebook
from memlint.project.patterns import Patterns, mistake
from memlint.project.project import Earlier, Project
from memlint.project.roots import display_path, find_root
from memlint.project.source import Source, Sources, decode, encoding_of

__all__ = [
    "Cell",
    "Discovery",
    "Earlier",
    "Named",
    "NotebookError",
    "Patterns",
    "Project",
    "Source",
    "Sources",
    "apart",
    "cell_at",
    "cell_texts",
    "decode",
    "discover",
    "display_path",
    "encoding_of",
    "find_root",
    "is_notebook",
    "list_context",
    "mistake",
    "read_notebook",
]
