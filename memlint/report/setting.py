"""What a report needs beside the result: the rules, and the root of the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from memlint.finding import Result, Severity
from memlint.patterns import lazy_pattern

#: the project's page, which is the same for all who install it
HOME = "https://pypi.org/project/torch-memlint/"
#: code, which is kept, or a relative link
_LINK = lazy_pattern(r"(`[^`\n]*`)|\[([^\]\n]*)\]\((?!https?:)[^)\s]*\)")


class Rule(msgspec.Struct, frozen=True):
    """A rule. ``page``: the text of its README.md, "" if unknown."""

    code: str
    name: str
    summary: str
    severity: Severity
    page: str
    preview: bool = False


class Setting(msgspec.Struct, frozen=True):
    """``rules``: loads all rules by code, for the formats that show them. ``root``: the absolute path of the
    repository, "" if unknown; ``prefix``: the working directory relative to it (``sub/``), "" if they are equal.
    ``page_of``: the address of a rule's page, None if unknown."""

    rules: Callable[[], Mapping[str, Rule]] = dict
    root: str = ""
    prefix: str = ""
    page_of: Callable[[str], str | None] = lambda code: None

    def from_root(self, path: str) -> str:
        """The path of a finding relative to the root of the repository; absolute if it is outside."""
        if is_absolute(path):
            return path.removeprefix(f"{self.root}/") if self.root else path
        return f"{self.prefix}{path}"

    def help_uri(self, code: str) -> str:
        """The public address of a rule's page, else the project's: readers elsewhere cannot open a local file."""
        address = self.page_of(code)
        return address if address is not None and address.startswith("https:") else HOME

    def rules_of(self, result: Result) -> list[Rule]:
        """The rules that have findings, by code. One that is not loaded gets the name and severity of its findings."""
        known = self.rules()
        found = {one.code: one for one in sorted(result.findings, key=lambda one: one.code)}
        return [known.get(code) or Rule(code, one.name, one.name, one.severity, "") for code, one in found.items()]


def is_absolute(path: str) -> bool:
    """Whether a finding's path is absolute (on Windows too), that is, outside the working directory."""
    return path.startswith("/") or path[1:3] == ":/"


def brief(page: str) -> str:
    """A rule's page for a report: one bad and one good example, and no relative links."""
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
    """The section of a rule's page under a heading; "" if there is none."""
    _, found, rest = f"\n{page}".partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0].strip() if found else ""
