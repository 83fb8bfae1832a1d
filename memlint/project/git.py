"""Git, called so that no program that a repository's configuration names is run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def git(
    arguments: Sequence[str],
    folder: Path,
    seconds: float,
    *,
    content: bytes | None = None,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command in a folder. ``content``: its standard input; ``variables``: more of its environment. Raises
    OSError where there is no git, and subprocess.TimeoutExpired."""
    # hooks export GIT_DIR and GIT_INDEX_FILE, which would mean another repository
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    # a repository's own fsmonitor is a program, and so may be what fetches objects that are not there: linting runs
    # nothing of the linted project (nor does it write to the index)
    environment |= {
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        **(variables or {}),
    }
    return subprocess.run(
        ["git", "-c", "core.fsmonitor=false", *arguments],
        cwd=folder,
        env=environment,
        input=content,
        stdin=subprocess.DEVNULL if content is None else None,
        capture_output=True,
        check=False,
        timeout=seconds,
    )
