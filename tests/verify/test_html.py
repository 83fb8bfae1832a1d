"""The page of a verification: what a person looks for is there, whatever the program's files say."""

from __future__ import annotations

import html
import io
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest
from html_page import browser, read
from torch_programs import LEAK, verify

from memlint.finding import Failure, Finding, Growth, PerIteration, TraceStep
from memlint.report import verify_html
from memlint.report.lines import Lines
from memlint.verifier.model import (
    Comparison,
    Frame,
    Holder,
    LoopBill,
    LoopRun,
    Peak,
    Report,
    Run,
    Share,
    Side,
    Stack,
    Timeline,
    Unattributed,
    Verdict,
    Verified,
)

EVIL = "<script>document.title='ran'</script>"
SOURCE = f"""\
def train(model, batches):
    kept = []
    for x in batches:
        kept.append(model(x))  # </pre>{EVIL}<img src=x onerror="document.title='ran'">
    return len(kept)
"""
#: points of the timeline, two runs of a loop of 20 steps
STEPS = (*range(21), *range(20, 41))
KEPT = tuple(1024 * step for step in range(21)) * 2


def finding(path: str, line: int = 4, code: str = "MEM102") -> Finding:
    return Finding(
        code=code, name="retained-graph", severity="error", confidence="high", path=path, line=line, column=9,
        end_line=line, end_column=30, message=f"`kept` keeps {EVIL}", help="store less",
        growth=Growth("device-graph", "per-iteration"), fingerprint=f"{path}{line}{code}",
        trace=(TraceStep(path, 4, 21, "`model` records the graph"),),
    )  # fmt: skip


def report(path: str) -> Report:
    per = PerIteration(1024, 1024, 1024, 1024)
    confirmed = Verdict(
        verdict="confirmed", reason="each iteration leaves 1,024 B", device="cuda:0", bytes_per_iteration=per, hits=40,
        held_bytes=12288, iterations_until_full=12_345,
    )  # fmt: skip
    refuted = Verdict(verdict="refuted", reason="nothing was alive", hits=40)
    side = Side(4096, 1024, None, 0.01, 40)
    verified = (Verified(finding(path), confirmed), Verified(finding(path, 2, "MEM104"), refuted))
    return Report(
        verified=verified,
        failures=(Failure(f"{EVIL}.py", f"no {EVIL}"),),
        run=Run("3.11.7", "2.13.0", f"GPU {EVIL}", "cuda", 20, 1.0, 0, "finished"),
        unattributed=(Unattributed(2048, (Stack(2048, (Frame(path, 4, "<listcomp>"),)),), "cuda:0", f"{path}:3"),),
        comparison=Comparison(
            label=f"fixes {EVIL}", before=side, after=side, losses="equal", largest_difference=None, compared=40
        ),
        timeline=Timeline(
            steps=STEPS,
            seconds=tuple(step / 10 for step in STEPS),
            devices={"cuda:0": tuple(100_000 + kept for kept in KEPT)},
            host=tuple(50_000_000 + 10_000 * step for step in STEPS),
            shares=(Share(verified[0].finding.fingerprint, "cuda:0", KEPT, KEPT),),
            runs=(LoopRun(f"{path}:3", 0, 20), LoopRun(f"{path}:3", 20, None)),
        ),
        loops=(
            LoopBill(place=f"{path}:3", iterations=40, runs=2, longest=20, bytes_per_iteration={"cuda:0": 1024},
                     host_bytes_per_iteration=0, until_its_end={"host": 3000}),
            LoopBill(place=f"{path}:9", iterations=1200, runs=1, longest=1200, bytes_per_iteration={"cuda:0": 0},
                     host_bytes_per_iteration=0),
            LoopBill(place=f"{path}:12", iterations=2, runs=1, longest=2, bytes_per_iteration=None,
                     host_bytes_per_iteration=None, reason="too short"),
        ),
        peaks=(Peak("cuda:0", 5 * 2**20, 7, f"{path}:9", "training"),),
        files=1,
    )  # fmt: skip


def page(path: str = f"{EVIL}.py") -> str:
    out = io.StringIO()
    verify_html.write(report(path), Lines({path: SOURCE}.get), out, path)
    return out.getvalue()


def test_the_page_needs_nothing_and_runs_nothing() -> None:
    reader = read(page())
    assert "script" not in {tag for tag, _ in reader.seen}
    for tag, attributes in reader.seen:
        assert not any(name.startswith("on") or name == "src" for name in attributes), tag
        assert (attributes.get("href") or "#").startswith("#"), tag
    assert "url(" not in page()
    assert "http://" not in page() and "https://" not in page()


def test_each_loop_has_a_row_with_what_an_iteration_leaves_and_its_peak() -> None:
    text = "".join(read(page("a.py")).text.split())
    for row in (
        "a.py:3 grows an iteration leaves 1,024 B on cuda:0; an iteration leaves 3,000 B of host memory beside "
        "tensors, until the loop ends 40 2 a.py:9 flat an iteration leaves 0 B of tensors 1,200 1 5.0 MiB",
        "a.py:12 not judged too short 2 1",
        "The peak on cuda:0: 5.0 MiB at step 7 in the loop at a.py:9 (training).",
    ):
        assert "".join(row.split()) in text


def test_hostile_names_and_sources_are_shown_as_they_are() -> None:
    reader = read(page())
    assert f"{EVIL}.py:4" in reader.text
    assert f"kept.append(model(x))  # </pre>{EVIL}" in reader.text
    assert f"Compared with fixes {EVIL}" in reader.text


def test_what_utf8_cannot_say_is_escaped() -> None:
    page("odd\udcff\x1b[31m.py").encode("utf-8")
    assert "\x1b" not in page("odd\udcff\x1b[31m.py")


def test_what_a_person_looks_for_is_there() -> None:
    text = read(page("train.py")).text
    for said in (
        "memlint verify train.py", "1 of 2 findings confirmed", "train.py:4",
        "MEM102: graphs on the device in each iteration",
        "confirmed", "refuted", "1.0 KiB", "12,345 iterations", "each iteration leaves 1,024 B",
        "`model` records the graph".replace("`", ""), "Tensors on cuda:0", "Host memory", "everything else",
        "Growth that no finding explains", "train.py:4 in <listcomp>", "All 40 losses are equal", "10.00 ms",
    ):  # fmt: skip
        assert said in text, said


def drawn(unattributed: tuple[Unattributed, ...], steps: tuple[int, ...] = STEPS) -> str:
    plain = report("train.py")
    assert plain.timeline is not None
    timeline = msgspec.structs.replace(plain.timeline, steps=steps, shares=())
    out = io.StringIO()
    changed = msgspec.structs.replace(plain, timeline=timeline, unattributed=unattributed)
    verify_html.write(changed, Lines({}.get), out, "train.py")
    return out.getvalue()


def test_growth_that_no_finding_explains_has_a_band_of_its_own() -> None:
    row = Unattributed(512, (), "cuda:0", "train.py:3")
    said = drawn((row,))
    assert "growth that no finding explains (estimated): 5.0 KiB" in said, "ten iterations of 512 B"
    assert "growth that no finding explains (estimated)" in read(said).text, "the legend names it"
    for other in (Unattributed(512, (), "cuda:1", "train.py:3"), Unattributed(512, (), "cuda:0", "other.py:3")):
        assert "(estimated)" not in drawn((other,)), "another device's, a loop that the picture does not show"


def test_a_band_is_no_higher_than_what_was_gained() -> None:
    said = drawn((Unattributed(10**9, (), "cuda:0", "train.py:3"),))
    most = max(float(one) for one in re.findall(r"\(estimated\): ([\d.]+) KiB", said))
    assert most == 20, "the 20 steps gain 1,024 B each"


def test_there_is_no_chart_where_no_step_was_measured() -> None:
    assert "<svg" not in drawn((), steps=(0,) * len(STEPS))
    assert "<svg" in drawn(())


def test_holders_are_named() -> None:
    holder = Holder(path=f"kept['{EVIL}']", kind="global", where="registry", file="registry.py")
    stack = Stack(2048, (Frame("train.py", 4, "f"),), (holder,))
    text = read(drawn((Unattributed(2048, (stack,), "cuda:0", "train.py:3"),))).text
    assert f"held by kept['{EVIL}']: a global variable (registry.py)" in text


def test_an_empty_report_is_a_page() -> None:
    out = io.StringIO()
    bare = Report(verified=(), failures=(), run=Run(None, None, None, "none", 0, 0.0, 1, "failed"))
    verify_html.write(bare, Lines({}.get), out, "a.py")
    assert "No findings in 0 files" in read(out.getvalue()).text


def test_standard_output_is_the_page_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEAK)
    done = verify("train.py", "--output-format", "html", "--full", "--isolated", cwd=tmp_path)
    assert done.stdout.startswith("<!doctype html>")
    assert "step 40" in done.stderr, "the program's own output"
    text = read(done.stdout).text
    assert "Tensors on cpu" in text
    assert "train.py:12 MEM102" in text, "the legend names the site"
    assert "train.py:12 MEM102 (projected): " in done.stdout, "25 of 40 steps were not followed"
    assert "train.py:7: run 1, steps 0 to 40" in done.stdout
    assert "train.py:7: run 2, steps 40 to 80" in done.stdout


# in a browser

#: what the browser says of a page in a frame of some width; the page's policy is taken out, so that the escaping is
#: what keeps it from running anything
LOOK = """<!doctype html><body style="margin:0"><iframe id="frame" style="border:0;width:{width}px;height:{height}px"
srcdoc="{page}"></iframe><pre id="said"></pre><script>
onload = () => {{
  const doc = document.getElementById("frame").contentDocument, view = doc.defaultView;
  const box = one => {{ const r = one.getBoundingClientRect(); return [r.left, r.right, r.width, r.height]; }};
  document.getElementById("said").textContent = JSON.stringify({{
    title: doc.title, wide: doc.documentElement.scrollWidth,
    background: view.getComputedStyle(doc.body).backgroundColor, ink: view.getComputedStyle(doc.body).color,
    plots: [...doc.querySelectorAll(".plot svg")].map(box),
    shares: [...doc.querySelectorAll("path.s0")].map(one => one.getBBox().height),
    shown: doc.body.innerText, letters: [...doc.querySelectorAll(".y span, .x span")].map(box),
    open: [...doc.querySelectorAll("details")].map(one => one.open),
  }});
}};
</script>"""


def look(tmp_path: Path, width: int, *, dark: bool) -> tuple[Any, Path]:
    """What the browser says of the page, and a picture of it."""
    inner = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page())
    file, picture = tmp_path / "look.html", tmp_path / f"{width}-{'dark' if dark else 'light'}.png"
    file.write_text(LOOK.format(width=width, height=2400, page=html.escape(inner)))
    command = [
        browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000",
        f"--user-data-dir={tmp_path / 'profile'}", f"--window-size={max(width, 500)},2400",
        *(["--blink-settings=preferredColorScheme=0", "--force-dark-mode"] if dark else []),
    ]  # fmt: skip
    dom = subprocess.run(
        [*command, "--dump-dom", f"file://{file}"], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    subprocess.run(
        [*command, f"--screenshot={picture}", f"file://{file}"], capture_output=True, timeout=120, check=True
    )
    said = re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL)
    assert said is not None, dom[-500:]
    return json.loads(html.unescape(said[1])), picture


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1200, False), (1200, True), (400, False), (400, True)])
def test_a_browser_shows_it(tmp_path: Path, width: int, dark: bool) -> None:
    seen, picture = look(tmp_path, width, dark=dark)
    assert seen["title"] == f"memlint verify {EVIL}.py", "nothing ran"
    assert seen["wide"] <= width, "nothing is wider than the window"
    assert len(seen["plots"]) == 2
    assert all(wide > width * 0.7 and high > 80 for _, _, wide, high in seen["plots"])
    assert all(left >= 0 and right <= width for left, right, _, _ in seen["letters"]), "no letter is cut off"
    assert seen["shares"] == [pytest.approx(240 * 20 * 1024 / 131072, rel=0.05)], "the site's share, to scale"
    assert seen["open"] == [True, False, True], "what is confirmed is open, what is refuted can be opened"
    assert "12,345 iterations" in seen["shown"]
    lights = [sum(map(int, re.findall(r"\d+", seen[name])[:3])) for name in ("background", "ink")]
    assert (lights[0] < lights[1]) == dark
    assert picture.stat().st_size > 20_000
