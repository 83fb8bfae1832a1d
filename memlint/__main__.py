"""``python -m memlint`` is the command ``memlint``."""

import sys

from memlint.cli import main

if __name__ == "__main__":
    sys.exit(main())
