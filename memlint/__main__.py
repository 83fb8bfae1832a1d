"""``python -m memlint`` is the command ``memlint``."""

import os
import sys


def _is_working_directory(place: str) -> bool:
    try:
        return place == "" or os.path.realpath(place) == os.path.realpath(os.getcwd())  # noqa: PTH109
    except OSError:  # it is not there any more, which the command says
        return True


if __name__ == "__main__":
    # Python looks for modules in the working directory first, where the linted project may have some of any name
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False) and _is_working_directory(sys.path[0]):
        del sys.path[0]

    from memlint.cli import main

    sys.exit(main())
