"""The frames of a stack, and the folders of memlint's own code and of installed packages."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import FrameType

#: the prefix of the paths of this package's files
HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
LAUNCH = f"{HERE}launch.py"
#: folders in the paths of installed packages
PACKAGES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")


def frames_of(frame: FrameType | None) -> Iterator[FrameType]:
    """A frame and those around it, innermost first."""
    while frame is not None:
        yield frame
        frame = frame.f_back
