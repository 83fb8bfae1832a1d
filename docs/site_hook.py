"""Makes one site of docs/ and of the pages that lie elsewhere: the README, SECURITY.md and the page of each rule.

Links are written for the repository, where they work on GitHub. On the site, those to other pages lead there, and the
rest lead to the repository. The address of a rule's page is the one that reports link to (`memlint.cli.output.links`).
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
RULES = {f"rules/{path.parent.name}/README.md": path for path in sorted(ROOT.glob("rules/mem*/README.md"))}
#: pages by their name on the site
ELSEWHERE = {"index.md": ROOT / "README.md", "security.md": ROOT / "SECURITY.md", **RULES}
_FENCED = re.compile(r"(?ms)^(?P<fence>```+)(?P<info>[^\n]*)\n.*?^(?P=fence)$")
_LINK = re.compile(r"(?P<code>`+)[^`].*?(?P=code)|\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation gets the rules, by code and name."""
    nav: list[dict[str, list[Any]]] = config.nav  # type: ignore[assignment]
    (pages,) = (section["Rules"] for section in nav if "Rules" in section)
    pages[0] = {"All rules": pages[0]}
    pages += [{_title(name): name} for name in RULES]
    return config


def _title(name: str) -> str:
    code, _, rest = name.split("/")[1].partition("_")
    return f"{code.upper()} {rest.replace('_', '-')}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, path in ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    source = Path(str(page.file.abs_src_path))
    places = {Path(str(one.abs_src_path)).resolve(): one.src_uri for one in files if one.abs_src_path}
    return rewritten(markdown, source, page.file.src_uri, places, str(config.repo_url))


def rewritten(text: str, source: Path, name: str, places: dict[Path, str], repository: str) -> str:
    """The text of a page with its links as the site has them. ``name``: of the page on the site; ``places``: the names
    of all files of the site."""

    def link(match: re.Match[str]) -> str:
        if match["code"]:
            return match[0]
        target = (source.parent / match["path"]).resolve()
        if not target.exists():
            raise PluginError(f"{source.relative_to(ROOT)}: the link to {match['path']} leads nowhere")
        if target in places:
            address = posixpath.relpath(places[target], posixpath.dirname(name) or ".")
        else:
            kind = "tree" if target.is_dir() else "blob"
            address = f"{repository}/{kind}/main/{target.relative_to(ROOT).as_posix()}"
        return f"]({address}{match['anchor'] or ''})"

    parts: list[str] = []
    end = 0
    for block in _FENCED.finditer(text):
        parts += [_LINK.sub(link, text[end : block.start()]), _readable(block)]
        end = block.end()
    return "".join([*parts, _LINK.sub(link, text[end:])])


def _readable(block: re.Match[str]) -> str:
    """A block of code whose first line the site's Markdown can read: words of our own (`python fixed`) are left out."""
    language, *words = block["info"].split(" ")
    kept = [word for word in words if "=" in word]
    return block[0].replace(block["fence"] + block["info"], " ".join([block["fence"] + language, *kept]), 1)
