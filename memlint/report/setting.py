"""What a report needs beside the result: the rules' pages, and where the repository begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from memlint.finding import Result, Severity
from memlint.patterns import lazy_pattern

#: the project's page, which is the same for all who install it
HOME = "https://pypi.org/project/torch-memlint/"
#: code, which stays as it is, or a link to what lies beside the page
_LINK = lazy_pattern(r"(`[^`\n]*`)|\[([^\]\n]*)\]\((?!https?:)[^)\s]*\)")


class Rule(msgspec.Struct, frozen=True):
    """What a rule says of itself. ``page``: its README.md."""

    code: str
    name: str
    summary: str
    severity: Severity
    page: str
    preview: bool = False


class Setting(msgspec.Struct, frozen=True):
    """``rules``: all rules by code, asked for by the formats that show them. ``root``: the absolute path of the
    repository, and ``prefix``: the way from there to the working directory (``sub/``); empty where they are one.
    ``page_of``: the address of a rule's page."""

    rules: Callable[[], Mapping[str, Rule]] = dict
    root: str = ""
    prefix: str = ""
    page_of: Callable[[str], str | None] = lambda code: None

    def from_root(self, path: str) -> str:
        """The path of a finding as services that know the repository name it; one outside of it stays absolute."""
        if is_absolute(path):
            return path.removeprefix(f"{self.root}/") if self.root else path
        return f"{self.prefix}{path}"

    def help_uri(self, code: str) -> str:
        """Where those who get a report elsewhere read more of a rule: a page on this machine is none to them."""
        address = self.page_of(code)
        return address if address is not None and address.startswith("https:") else HOME

    def rules_of(self, result: Result) -> list[Rule]:
        """The rules of the findings, in order of code; of one that is not known here, what its findings say."""
        known = self.rules()
        found = {one.code: one for one in sorted(result.findings, key=lambda one: one.code)}
        return [known.get(code) or Rule(code, one.name, one.name, one.severity, "") for code, one in found.items()]


def is_absolute(path: str) -> bool:
    """Whether a path of a finding lies outside of the working directory, on Windows as well."""
    return path.startswith("/") or path[1:3] == ":/"


def brief(page: str) -> str:
    """A rule's page to be read elsewhere: one example each of bad and good code, and no links to files beside it."""
    return "\n".join(_brief(page.split("\n"))).strip() + "\n"


def _brief(lines: list[str]) -> Iterator[str]:
    fenced = skipping = False
    examples, examined = 0, False
    for line in lines:
        if line.startswith("```"):
            fenced = not fenced
        elif not fenced and line.startswith("## "):
            examples, examined, skipping = 0, line in ("## Bad", "## Good"), False
        elif not fenced and examined and line.startswith("### "):
            examples += 1
            skipping = examples > 1
        if not skipping:
            yield line if fenced or line.startswith("```") else _LINK.sub(lambda link: link[1] or link[2], line)


def section(page: str, heading: str) -> str:
    """What stands under a heading of a rule's page, up to the next; empty where it is not there."""
    _, found, rest = f"\n{page}".partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0].strip() if found else ""
