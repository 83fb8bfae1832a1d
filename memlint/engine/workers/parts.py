"""A large project is linted in parts, each with the whole project as context: what a part says does not depend on who
works on it, nor on what the others say, so parts may be worked on in any order, in any process, on any machine.

How a project is parted hangs on its files alone. Each part has its own summaries, which go when it is done: the memory
that a run takes is that of one part in each process.
"""

from __future__ import annotations

import itertools

from memlint.project import Project

#: bytes of source in a part: the least, so that a part pays, which reads much of what the others read as well (timm, of
#: 6 MB, takes 12 CPU s as one, and 27 in three parts), and the most, so that its summaries have room
LEAST, MOST = 8_000_000, 16_000_000
#: the beginning of a remark about this run alone
ALONE = "one process did all of the work"
#: the parts of a project that is neither small nor very large
USUAL = 4


def parts_of(project: Project) -> list[tuple[str, ...]]:
    """The linted files of a project in groups, in order: files of one folder are near each other, and share most of
    what they import."""
    sizes = {display: project.size(display) for display in project.linted}
    each = min(max(sum(sizes.values()) / USUAL, LEAST), MOST)
    ends = itertools.accumulate(sizes.values())
    # a file belongs to the part that contains its middle
    number = {display: int((end - sizes[display] / 2) / each) for display, end in zip(sizes, ends, strict=True)}
    return [tuple(group) for _, group in itertools.groupby(project.linted, key=number.__getitem__)]
