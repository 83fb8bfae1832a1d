"""A self-contained HTML page: its frame, its style, and the escaping of text."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib import resources


def esc(text: object) -> str:
    """Text escaped for HTML, with a dot for each unprintable character."""
    shown = "".join(char if char.isprintable() or char == "\n" else "·" for char in str(text).expandtabs(4))
    return html.escape(shown, quote=True)


def prose(text: str) -> str:
    """A sentence as HTML, with `code` in ``<code>``."""
    return re.sub(r"`([^`\n]+)`", r"<code>\1</code>", esc(text))


def element(name: str, inside: str, /, **attributes: object) -> str:
    """An element around HTML. ``class_`` is the attribute ``class``; ``_`` in names becomes ``-``; None is left out."""
    return f"<{name}{_attributes(attributes)}>{inside}</{name}>"


def void(name: str, /, **attributes: object) -> str:
    """An element without content."""
    return f"<{name}{_attributes(attributes)}/>"


def _attributes(attributes: dict[str, object]) -> str:
    given = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value is not None}
    return "".join(f' {name}="{esc(value)}"' for name, value in given.items())


def page(title: str, body: str, *, style: str = "", script: str = "") -> str:
    """The page. It loads nothing, and its content policy allows no script but ``script``, whatever the texts
    contain."""
    styles = resource("page.css") + style
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    run = ""
    if script:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        run = f"<script>{script}</script>\n"
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{esc(title)}</title>\n<style>\n{styles}</style>\n</head>\n<body>\n<main>\n{body}</main>\n{run}"
        "</body>\n</html>\n"
    )


def resource(name: str) -> str:
    """The text of a file beside this one."""
    return resources.files("memlint.report").joinpath(name).read_text("utf-8")
