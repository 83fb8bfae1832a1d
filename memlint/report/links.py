"""Links on a terminal (OSC 8), where it shows them as such."""

from __future__ import annotations

import os
from typing import TextIO

#: what terminals that show links say of themselves: the variable, and its values (none: any)
_TERMINALS = {
    "TERM_PROGRAM": ("iTerm.app", "WezTerm", "vscode", "ghostty", "Hyper", "rio", "Tabby"),
    "TERM": (
        "xterm-kitty",
        "alacritty",
        "alacritty-direct",
        "foot",
        "foot-extra",
        "xterm-ghostty",
        "contour",
        "wezterm",
    ),
    "KITTY_WINDOW_ID": (),
    "WT_SESSION": (),
    "KONSOLE_VERSION": (),
    "DOMTERM": (),
}
#: the first version of VTE (GNOME Terminal and others) in which links do no harm
_VTE = 5000


def shows_links(out: TextIO) -> bool:
    """Whether ``out`` is a terminal that shows links. FORCE_HYPERLINK=1 or 0 decides for a terminal that is not known;
    a pipe never gets any."""
    if not out.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    if os.environ.get("TERM", "").startswith(("screen", "tmux")):  # which may swallow them, or print them as text
        return False
    vte = os.environ.get("VTE_VERSION", "")
    if vte.isdigit() and int(vte) >= _VTE:
        return True
    said = {name: os.environ.get(name, "") for name in _TERMINALS}
    return any(value and (not known or value in known) for name, known in _TERMINALS.items() for value in (said[name],))
