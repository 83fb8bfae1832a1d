"""JUnit's XML for Jenkins and other CI servers: a suite for each file, a case for each finding."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from memlint.finding import Failure, Finding, Result, shown_place
from memlint.printable import printable
from memlint.report.facts import details, rule_of, shown
from memlint.report.lines import Lines
from memlint.report.setting import Setting

#: characters that XML cannot represent
_NONE = re.compile("[\ufffe\uffff]")


def render(result: Result, lines: Lines, setting: Setting) -> str:
    """Errors and warnings are failed cases, notes are passed cases with output, and files that could not be analysed
    are cases with an error. A run without any has one passed case, since servers reject a report without cases."""
    root = ElementTree.Element("testsuites", name="memlint", time=f"{result.summary.seconds:.3f}")
    files: dict[str, list[Finding | Failure]] = {}
    rows: list[Finding | Failure] = [*shown(result), *result.failures]
    for one in rows:
        files.setdefault(one.path, []).append(one)
    for path, cases in files.items():
        named = _text(setting.from_root(path))
        suite = ElementTree.SubElement(root, "testsuite", name=named)
        for row in cases:
            _case(suite, row, named, setting)
        _count(suite)
    if not files:
        suite = ElementTree.SubElement(root, "testsuite", name="memlint")
        ElementTree.SubElement(suite, "testcase", name="no findings", classname="memlint", time="0")
        _count(suite)
    for count in ("tests", "failures", "errors"):
        root.set(count, str(sum(int(suite.get(count, "0")) for suite in root)))
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case(suite: ElementTree.Element, row: Finding | Failure, path: str, setting: Setting) -> None:
    if isinstance(row, Failure):
        case = ElementTree.SubElement(suite, "testcase", name="analysis", classname=path, file=path, time="0")
        ElementTree.SubElement(case, "error", message=_text(row.reason), type="failure").text = _text(row.reason)
        return
    where = shown_place(row, path)
    case = ElementTree.SubElement(suite, "testcase", name=_text(f"{rule_of(row)} at {where}"), classname=path)
    for name, value in (("file", path), ("line", str(row.line)), ("column", str(row.column)), ("time", "0")):
        case.set(name, value)
    said = _text(f"{where}: {row.severity} {rule_of(row)} {details(row, setting)}")
    if row.severity == "note":
        ElementTree.SubElement(case, "system-out").text = said
    else:
        ElementTree.SubElement(case, "failure", message=_text(row.message), type=row.severity).text = said


def _count(suite: ElementTree.Element) -> None:
    suite.set("tests", str(len(suite)))
    for count, name in (("failures", "failure"), ("errors", "error")):
        suite.set(count, str(len(suite.findall(f"testcase/{name}"))))
    suite.set("skipped", "0")
    suite.set("time", "0")


def _text(text: str) -> str:
    return _NONE.sub("\ufffd", "\n".join(map(printable, text.split("\n"))))
