"""What runs: the frames of a stack, and the folders that packages are installed in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

#: what a path of an installed package has in it
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those around it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back
