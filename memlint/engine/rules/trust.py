"""Whether the rules of a project may run. They are programs: linting a stranger's checkout runs none of them.

They run where the user asks for it on the command line, by `VARIABLE`, or once and for all in a file of their own:

    trusted = ["~/work/our-project"]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from memlint.config import OWN_FILE, ConfigError, nearest, read_toml
from memlint.project.presence import exists
from memlint.reading import leads_out

VARIABLE = "MEMLINT_LOCAL_RULES"
_KEY = "trusted"


def user_configuration() -> Path | None:
    """The user's own file, whether it is there or not; None where there is no home."""
    base = os.environ.get("APPDATA" if os.name == "nt" else "XDG_CONFIG_HOME", "")
    try:
        folder = Path(base) if base and Path(base).is_absolute() else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "memlint" / OWN_FILE


def is_trusted(root: Path, rule_paths: Sequence[Path]) -> bool:
    """Whether the environment or the user's own file trusts the project at ``root`` and its folders of rules. Raises
    ConfigError where that file is wrong."""
    if os.environ.get(VARIABLE) == "1":
        return True
    file = user_configuration()
    # (a project that holds the file may have brought it along)
    if file is None or not exists(file) or not leads_out(file, root):
        return False
    folders = _trusted(file)
    return any(not any(leads_out(path, folder) for path in (root, *rule_paths)) for folder in folders)


def said_of(rule_paths: Sequence[Path], root: Path) -> str:
    """What the user is told of folders of rules that are not loaded."""
    names = ", ".join(
        path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path) for path in rule_paths
    )
    return (
        f"the project's own rules ({names}) did not run: they are programs; where you trust them, add --local-rules or "
        f"set {VARIABLE}=1"
    )


def _trusted(file: Path) -> list[Path]:
    data = read_toml(file)
    for key in data:
        if key != _KEY:
            raise ConfigError(f"{file}: unknown key `{key}`{nearest(key, (_KEY,))}")
    folders: Any = data.get(_KEY, [])
    if not isinstance(folders, list) or not all(isinstance(one, str) for one in folders):
        raise ConfigError(f"{file}: `{_KEY}`: expected a list of folders")
    found = []
    for name in folders:
        try:
            folder = Path(name).expanduser()
        except RuntimeError as error:
            raise ConfigError(f"{file}: `{_KEY}`: {name}: {error}") from None
        if not folder.is_absolute():
            raise ConfigError(f"{file}: `{_KEY}`: {name} is no absolute path, such as ~/work/project")
        found.append(folder)
    return found
