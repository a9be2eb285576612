"""The report in headless Chromium without a network: all charts drawn, no console error, zoom with the keyboard."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from hindflight.reports.document import ReportMeta, write_report
from hindflight.toolkit.schema import table_from_rows
from tests.reports.conftest import Tables, flow_instruments, run_row

pytestmark = pytest.mark.chromium
Open = Callable[..., tuple[str, str]]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, tables: Tables) -> Path:
    return write_report(tables, ReportMeta("A flow"), tmp_path_factory.mktemp("browser") / "report.html")


def drawings(dom: str) -> list[str]:
    """Return the content of each chart's element."""
    return re.findall(r'<div class="chart[^"]*" id="chart-\d+".*?(?=<figcaption>)', dom, re.DOTALL)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_chart_is_drawn_without_console_output(report: Path, chromium: Open, dark: bool) -> None:
    dom, console = chromium(report, dark=dark)
    assert console == ""
    assert '<html lang="en" data-drawn="11">' in dom
    places = drawings(dom)
    assert len(places) == 11
    for place in places:
        svg = re.search(r"<svg[^>]*class=\"marks\"", place)
        canvas = re.search(r"<canvas[^>]*class=\"marks\"", place)
        assert svg or canvas, place[:200]
        assert 'role="graphics-document"' in place
        assert 'aria-label="' in place
    paper = "rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)"
    assert f"background-color: {paper}" in dom


def test_report_of_a_log_is_drawn_without_console_output(chromium: Open, tmp_path: Path) -> None:
    log = {"instruments": table_from_rows("instruments", flow_instruments("web100"))}
    dom, console = chromium(write_report(log, ReportMeta("A log"), tmp_path / "log.html"))
    assert console == ""
    assert 'data-drawn="3"' in dom


@pytest.mark.parametrize("mode", ["replayed", "resampled", "model"])
def test_runs_of_a_single_channel_mode_are_drawn(chromium: Open, tmp_path: Path, mode: str) -> None:
    runs = [run_row(number, variant, "none", channel_mode=mode) for number, variant in enumerate(("reno", "cubic"), 1)]
    only = {"runs": table_from_rows("runs", runs)}
    dom, console = chromium(write_report(only, ReportMeta("Runs"), tmp_path / "runs.html"))
    assert console == ""
    assert 'data-drawn="2"' in dom


def before_end(page: str, piece: str) -> str:
    head, end, tail = page.rpartition("</body>")
    return head + piece + end + tail


PROBE = """
<script>
const until = () => document.documentElement.dataset.drawn ? probe() : setTimeout(until, 50);
const ticks = (number) => [...document.querySelectorAll(`#chart-${number} .role-axis-label text`)]
  .map((label) => label.textContent).sort().join("|");
const press = (number, key) => document.getElementById(`chart-${number}`)
  .dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const wait = () => new Promise((done) => setTimeout(done, 400));
async function probe() {
  const said = { before: [ticks(3), ticks(5)] };
  press(3, "+"); press(3, "+"); await wait();
  said.zoomed = [ticks(3), ticks(5), ticks(2)];
  press(3, "ArrowRight"); await wait();
  said.moved = [ticks(3), ticks(5)];
  press(3, "0"); await wait();
  said.reset = [ticks(3), ticks(5)];
  document.documentElement.dataset.said = JSON.stringify(said);
}
until();
</script>
"""


def test_charts_of_a_flow_zoom_together_with_the_keyboard(report: Path, chromium: Open, tmp_path: Path) -> None:
    """The Content Security Policy of the page refuses the test's script, so the test uses a copy without the policy."""
    text = report.read_text(encoding="utf-8")
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    probed = before_end(without_policy, PROBE)
    copy = tmp_path / "probed.html"
    copy.write_text(probed, encoding="utf-8")
    dom, console = chromium(copy)
    assert console == ""
    match = re.search(r'data-said="([^"]*)"', dom)
    assert match
    said = json.loads(html.unescape(match[1]))
    assert said["before"] != said["zoomed"][:2]
    assert said["zoomed"][0] != said["moved"][0]
    assert said["zoomed"][1] != said["moved"][1]
    assert said["reset"] == said["before"]


def test_foreign_script_is_refused(report: Path, chromium: Open, tmp_path: Path) -> None:
    copy = tmp_path / "injected.html"
    injected = "<script>document.documentElement.dataset.owned = 1</script>"
    copy.write_text(before_end(report.read_text(encoding="utf-8"), injected), encoding="utf-8")
    dom, console = chromium(copy)
    assert "data-owned" not in dom
    assert "Content Security Policy" in console
