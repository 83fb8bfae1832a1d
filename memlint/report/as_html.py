"""A run as one self-contained HTML page."""

from __future__ import annotations

import posixpath

from markdown_it import MarkdownIt  # a dependency of rich, and used for a rule's page on a terminal

from memlint import __version__
from memlint.amounts import plural
from memlint.finding import Confidence, Finding, Result, Severity
from memlint.printable import printable
from memlint.report.facts import facts, in_cell, shown
from memlint.report.lines import Lines
from memlint.report.lint_chart import SEVERITIES, chart, key
from memlint.report.page import element, esc, page, prose, resource, void
from memlint.report.setting import Rule, Setting, brief
from memlint.report.source_html import excerpt, trace
from memlint.report.summary import offer, summary

_TONES: dict[Severity, str] = {"error": "bad", "warning": "warn", "note": ""}
_CONFIDENCES: tuple[Confidence, ...] = ("high", "medium", "low")
#: the levels of a rule page's headings, below those of the report
_LOWER = {"h1": "h4", "h2": "h4", "h3": "h5"}


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """The page: charts, filters, the findings by file, and the pages of their rules."""
    found = shown(result)
    rules = [rule for rule in setting.rules_of(result) if any(one.code == rule.code for one in found)]
    parts = [
        element("h1", "memlint"),
        element("p", esc(summary(result)), class_="said"),
        *([element("p", prose(said), class_="soft")] if (said := offer(result)) else []),
        *_failures(result),
        *(_charts(found) if found else []),
        *([_filters(found)] if found else []),
        *_files(found, lines),
        *_rules(rules),
        element("p", esc(f"memlint {__version__}"), class_="soft"),
    ]
    text = page("memlint", "\n".join(parts) + "\n", style=resource("lint.css"), script=resource("lint.js"))
    # names of files may contain characters that UTF-8 cannot encode
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _failures(result: Result) -> list[str]:
    if not result.failures:
        return []
    rows = (element("code", esc(row.path)) + f": {esc(row.reason)}" for row in result.failures)
    items = "".join(element("li", row) for row in rows)
    return [element("h2", f"{plural(len(result.failures), 'file')} not analysed"), element("ul", items)]


def _charts(found: list[Finding]) -> list[str]:
    links = {_rule(one): f"#rule-{one.code}" for one in found}
    by_rule = chart("By rule", ((_rule(one), one.severity) for one in found), links)
    by_folder = chart("By folder", ((posixpath.dirname(one.path) or ".", one.severity) for one in found), {})
    return [element("div", by_rule + by_folder, class_="charts"), key()]


def _filters(found: list[Finding]) -> str:
    """The filters, which the script shows; without it, everything is visible."""
    codes = {one.code: _rule(one) for one in sorted(found, key=lambda one: one.code)}
    options = "".join(element("option", esc(name), value=code) for code, name in codes.items())
    choice = element("select", element("option", "all rules", value="") + options, name="rule")
    field = void("input", type="search", name="text", placeholder="path, message, source …", autocomplete="off")
    inside = (
        element("label", f"Text {field}")
        + element("label", f"Rule {choice}")
        + _boxes("Severity", "severity", SEVERITIES)
        + _boxes("Confidence", "confidence", _CONFIDENCES)
        + element("button", "Open all", type="button", id="toggle")
        + element("button", "Reset", type="reset")
        + element("output", f"{len(found)} of {len(found)}", id="count", aria_live="polite")
    )
    return element("form", inside, id="filters", hidden="hidden", aria_label="Filter the findings")


def _boxes(title: str, name: str, values: tuple[str, ...]) -> str:
    boxes = (
        element("label", void("input", type="checkbox", name=name, value=value, checked="checked") + value)
        for value in values
    )
    return element("fieldset", element("legend", title) + "".join(boxes))


def _files(found: list[Finding], lines: Lines) -> list[str]:
    if not found:
        return []
    files: dict[str, list[Finding]] = {}
    for one in found:
        files.setdefault(one.path, []).append(one)
    keys = (("/", "searches"), ("j", "next finding"), ("k", "previous finding"), ("Enter", "opens it"))
    said = ", ".join(f"{element('kbd', name)} {what}" for name, what in keys)
    parts = [element("h2", "Findings"), element("p", f"{said}.", class_="soft for-screen with-script", hidden="hidden")]
    number = 0
    for path, rows in files.items():
        inside = [element("h3", f"{element('code', esc(path))} {element('span', str(len(rows)), class_='soft')}")]
        for one in rows:
            number += 1
            inside.append(_finding(number, one, lines))
        parts.append(element("section", "\n".join(inside), class_="file"))
    return parts


def _finding(number: int, one: Finding, lines: Lines) -> str:
    head = (
        element("code", element("b", f"{in_cell(one)}{one.line}:{one.column}"), class_="place")
        + element("span", esc(_rule(one)))
        + element("span", one.severity, class_=f"tag {_TONES[one.severity]}".strip())
        + element("span", f"{one.confidence} confidence", class_="soft")
        + element("p", prose(one.message), class_="message")
    )
    rows = [*facts(one), *([("reach", one.reach_reason)] if one.reach_reason else [])]
    said = "".join(element("dt", esc(word)) + element("dd", prose(text), class_=word) for word, text in rows)
    page_of = element("p", element("a", f"The page of {esc(one.code)}", href=f"#rule-{one.code}"), class_="for-screen")
    inside = excerpt(one, lines) + trace(one, lines) + (element("dl", said) if said else "") + page_of
    return element(
        "details",
        element("summary", head) + element("div", inside, class_="inside"),
        class_="finding",
        id=f"finding-{number}",
        open="open" if one.severity == "error" else None,
        data_path=one.path,
        data_rule=one.code,
        data_severity=one.severity,
        data_confidence=one.confidence,
    )


def _rule(one: Finding) -> str:
    return f"{one.code} {one.name}"


def _rules(rules: list[Rule]) -> list[str]:
    if not rules:
        return []
    return [element("h2", "Rules"), *(_page(rule) for rule in rules)]


def _page(rule: Rule) -> str:
    said = f" {prose(rule.summary)}" if rule.page else ""
    head = element("b", esc(f"{rule.code} {rule.name}")) + said
    inside = _markdown(brief(rule.page)) if rule.page else element("p", "Its page is not known here.")
    return element("details", element("summary", head) + inside, class_="rule", id=f"rule-{rule.code}")


def _markdown(text: str) -> str:
    """A rule's page as HTML. HTML in it is escaped, and it loads no image."""
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    tokens = reader.parse("\n".join(map(printable, text.split("\n"))))
    for token in tokens:
        token.tag = _LOWER.get(token.tag, token.tag)
    # the first heading and the first sentence are shown as the title of the section
    for opening in ("heading_open", "paragraph_open"):
        tokens = tokens[3:] if tokens and tokens[0].type == opening else tokens
    html: str = reader.renderer.render(tokens, reader.options, {})
    return html
