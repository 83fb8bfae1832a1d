"""The page of a run: what a person looks for is there, it runs nothing but its own script, and the filters filter."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from html_page import browser, read
from made import MEASURED, PATH, SILENCED, VARIED, finding, rendered, result

from memlint.finding import Failure, Result, TraceStep
from memlint.report.setting import Rule, Setting

EVIL = "<script>document.title='ran'</script>\"'`&"
HOSTILE = finding(
    path=f"{EVIL}.py", message=EVIL, help=EVIL, name=EVIL, trace=(TraceStep(f"{EVIL}.py", 1, 1, EVIL),),
    reach="unused", reach_reason=EVIL, line=1, end_line=1, column=1, end_column=9,
)  # fmt: skip
EVIL_PAGE = f"""# {EVIL}

{EVIL}

## What

{EVIL}

<img src=x onerror="document.title=1">

![x](https://example.org/page.png) [y](javascript:x) <javascript:x>
"""


def hostile() -> str:
    setting = Setting(lambda: {"MEM901": Rule("MEM901", EVIL, EVIL, "error", EVIL_PAGE)})
    sources = {f"{EVIL}.py": f"x = 1  # </pre>{EVIL}\n"}
    return rendered("html", result(HOSTILE, failures=(Failure(EVIL, EVIL),)), setting, sources)


def script_of(text: str) -> str:
    (script,) = re.findall(r"(?s)<script>(.*?)</script>\n</body>", text)
    return script


@pytest.mark.parametrize("text", [hostile(), rendered("html", result(*VARIED)), rendered("html", result())])
def test_the_page_needs_nothing_and_runs_its_own_script_alone(text: str) -> None:
    reader = read(text)
    assert [tag for tag, _ in reader.seen].count("script") == 1
    policy = next(attributes["content"] for _, attributes in reader.seen if "http-equiv" in attributes)
    digest = base64.b64encode(hashlib.sha256(script_of(text).encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    for tag, attributes in reader.seen:
        assert not any(name.startswith("on") or name == "src" for name in attributes), tag
        assert tag not in ("link", "img", "iframe")
        assert (attributes.get("href") or "#").startswith(("#", "https://example.org/page"))
    assert "url(" not in text and "@import" not in text


def test_hostile_names_and_sources_are_shown_as_they_are() -> None:
    text = read(hostile()).text
    assert text.count(EVIL.replace("`", "")) + text.count(EVIL) > 8
    assert f"x = 1  # </pre>{EVIL}" in text
    assert '<img src=x onerror="document.title=1">' in text, "HTML of a page is text"


def test_control_characters_do_not_reach_the_page() -> None:
    odd = "odd\udcff\x1b[31m\u202e"
    setting = Setting(lambda: {"MEM901": Rule("MEM901", odd, odd, "error", f"# x\n\ny\n\n{odd}\n")})
    text = rendered("html", result(finding(path=odd, message=odd)), setting)
    text.encode("utf-8")
    assert not set("\x1b\u202e") & set(text)


def test_what_a_person_looks_for_is_there() -> None:
    one = finding(evidence=MEASURED, reach="unused", reach_reason="nothing calls it")
    text = read(rendered("html", result(one, *VARIED[1:], failures=(Failure("lost.py", "not valid utf-8"),)))).text
    for said in (
        *("Found 5 errors, 1 warning and 1 note", "1 file not analysed", "lost.py: not valid utf-8", "By rule"),
        *(PATH, "3:22", "MEM901 toy-leak", "high confidence", one.message, "total += model(x)", "By folder"),
        *("src/other.py:1: the model is called here", "x = model(y)", "512 B an iteration on cuda:0", "A toy bursts."),
        *("nothing calls it", "A second paragraph, and a page", "Its page is not known here."),
    ):
        assert said.replace("`", "") in text, said
    assert "### Second" not in text and "leak(2)" not in text
    assert rendered("html", result(one)).count("<mark>total += model(x)</mark>") == 1


def test_an_empty_run_is_a_page() -> None:
    text = read(rendered("html", result(finding(suppressed=SILENCED)))).text
    assert "Found nothing" in text and "MEM901" not in text and "By rule" not in text


def test_the_charts_count() -> None:
    rows = [finding(path=f"a/b/{number}.py", severity="warning") for number in range(3)]
    rows += [finding(path="c.py"), *(finding(path=f"{name}/x.py") for name in map(str, range(30)))]
    text = rendered("html", result(*rows))
    reader = read(text)
    labels = {attributes["aria-label"] for tag, attributes in reader.seen if tag == "svg"}
    assert {"MEM901 toy-leak: 31 error, 3 warning", "a/b: 3 warning", ".: 1 error"} <= labels
    assert len(labels) == 21 and "and 12 more" in reader.text, "the most frequent ones"
    (bar,) = re.findall(r'(?s)<svg[^>]*aria-label="MEM901[^"]*"[^>]*>(.*?)</svg>', text)
    assert [float(width) for width in re.findall(r'width="([\d.]+)"', bar)] == pytest.approx(
        [3100 / 34, 300 / 34], 0.001
    )


def test_links_lead_somewhere() -> None:
    reader = read(rendered("html", result(*VARIED)))
    places = {f"#{attributes['id']}" for _, attributes in reader.seen if "id" in attributes}
    inner = {str(attributes["href"]) for _, attributes in reader.seen if "href" in attributes}
    assert {one for one in inner if one.startswith("#")} <= places
    assert {"#rule-MEM901", "#rule-MEM902", "#rule-MEM999"} <= inner


def test_without_a_script_all_is_there_and_the_filters_are_not() -> None:
    reader = read(rendered("html", result(*VARIED)))
    (form,) = [attributes for tag, attributes in reader.seen if tag == "form"]
    assert "hidden" in form
    assert not any("hidden" in one for one in reader.with_class("finding"))


# in a browser

#: a page in a frame, whose policy is taken out so that the page around it may press its keys
LOOK = """<!doctype html><body style="margin:0"><iframe id="frame" style="border:0;width:1000px;height:900px"
srcdoc="{page}"></iframe><pre id="said"></pre><script>
onload = () => {{
  const view = document.getElementById("frame").contentWindow, doc = view.document, said = {{}};
  const form = doc.getElementById("filters"), all = [...doc.querySelectorAll("details.finding")];
  const now = () => all.flatMap((one, at) => one.hidden ? [] : [at]);
  const set = (name, change) => {{
    change(form.elements.namedItem(name)); form.dispatchEvent(new view.Event("input")); return now();
  }};
  const key = (name, at = doc.body) =>
    at.dispatchEvent(new view.KeyboardEvent("keydown", {{key: name, bubbles: true}}));
  const focused = () => all.indexOf(doc.activeElement.closest("details.finding"));
  said.title = doc.title;
  said.shown = [form.hidden, doc.getElementById("count").value, now()];
  said.rule = set("rule", one => one.value = "MEM902");
  said.count = doc.getElementById("count").value;
  said.files = [...doc.querySelectorAll("section.file")].filter(one => !one.hidden).length;
  said.every = set("rule", one => one.value = "");
  said.text = set("text", one => one.value = "ELSEWHERE  x.py");
  said.source = set("text", one => one.value = "for x in loader");
  key("Escape", form.elements.namedItem("text"));
  said.escaped = now();
  said.severity = set("severity", list => list[0].checked = false);
  said.confidence = set("confidence", list => list[1].checked = false);
  key("/"); said.searched = doc.activeElement.name; doc.activeElement.blur();
  form.reset();
  setTimeout(() => {{
    said.reset = now();
    key("j"); said.first = focused(); key("j", doc.activeElement); said.second = focused();
    key("k", doc.activeElement); said.back = focused();
    doc.getElementById("toggle").click(); said.open = all.map(one => one.open);
    doc.getElementById("toggle").click(); said.closed = all.map(one => one.open);
    view.dispatchEvent(new view.Event("beforeprint")); said.printed = all.map(one => one.open);
    view.dispatchEvent(new view.Event("afterprint")); said.after = all.map(one => one.open);
    said.background = view.getComputedStyle(doc.body).backgroundColor;
    said.wide = doc.documentElement.scrollWidth;
    document.getElementById("said").textContent = JSON.stringify(said);
  }}, 50);
}};
</script>"""


def dom(tmp_path: Path, text: str, *more: str) -> str:
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    command = [
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path / 'profile'}", *more, "--dump-dom", f"file://{file}",
    ]  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def look(tmp_path: Path, what: Result | str, *more: str) -> Any:
    text = what if isinstance(what, str) else rendered("html", what)
    inner = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    said = re.search(r'(?s)<pre id="said">(.*?)</pre>', dom(tmp_path, LOOK.format(page=html.escape(inner)), *more))
    assert said is not None
    return json.loads(html.unescape(said[1]))


@pytest.mark.slow
def test_the_policy_lets_the_script_run(tmp_path: Path) -> None:
    assert re.search(r'<form id="filters"(?![^>]*hidden)', dom(tmp_path, rendered("html", result(*VARIED))))


@pytest.mark.slow
def test_filters_and_keys(tmp_path: Path) -> None:
    said = look(tmp_path, result(*VARIED))
    everything = list(range(len(VARIED)))
    # findings by file: two of one file come together
    assert said["shown"] == [False, "7 of 7", everything] and said["every"] == everything
    assert (said["rule"], said["count"], said["files"]) == ([2], "1 of 7", 1)
    assert said["text"] == [4] and said["source"] == [0, 1, 2, 5] and said["escaped"] == everything
    assert said["severity"] == [1, 2] and said["confidence"] == [2]
    assert said["searched"] == "text" and said["reset"] == everything
    assert (said["first"], said["second"], said["back"]) == (0, 1, 0)
    assert said["open"] == [True] * 7 and said["closed"] == [False] * 7
    assert said["printed"] == [True] * 7 and said["after"] == [False] * 7
    assert said["background"] == "rgb(255, 255, 255)" and said["wide"] <= 1000


@pytest.mark.slow
def test_a_browser_runs_nothing_of_strangers_and_is_dark_where_that_is_liked(tmp_path: Path) -> None:
    said = look(tmp_path, hostile(), "--blink-settings=preferredColorScheme=0", "--force-dark-mode")
    assert said["title"] == "memlint" and said["background"] == "rgb(20, 24, 29)"
