"""Links on terminals that support them (OSC 8)."""

from __future__ import annotations

import os
from typing import TextIO

#: the environment variables by which terminals with links are recognised, and their values (empty: any)
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
#: the first version of VTE (GNOME Terminal and others) without bugs in links
_VTE = 5000


def shows_links(out: TextIO) -> bool:
    """Whether ``out`` is a terminal that shows links. FORCE_HYPERLINK=1 or 0 decides for any terminal; a pipe has no
    links."""
    if not out.isatty() or os.environ.get("TERM") == "dumb" or os.environ.get("NO_COLOR"):
        return False
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced != "0"
    if os.environ.get("TERM", "").startswith(("screen", "tmux")):  # may drop links, or print them as text
        return False
    vte = os.environ.get("VTE_VERSION", "")
    if vte.isdigit() and int(vte) >= _VTE:
        return True
    return any((value := os.environ.get(name)) and (not known or value in known) for name, known in _TERMINALS.items())
