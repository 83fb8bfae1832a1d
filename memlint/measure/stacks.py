"""Whose code runs: the frames of a stack, and the folders of what measures and of installed packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

#: the folder of what measures, as paths of its files begin
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
#: what a path of an installed package has in it
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those around it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back
