"""The report in headless Chromium without a network: drawn, zoomed by mouse and keyboard, accessible, on a phone."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benches.browser import Browser, program
from hindflight.pdf import PAGE_WIDTH_PX
from hindflight.reports.document import ReportMeta, write_report
from hindflight.toolkit.schema import table_from_rows
from tests.reports.accessibility import serious_findings
from tests.reports.conftest import Tables, finding, flow_instruments, run_row

pytestmark = [
    pytest.mark.chromium,
    pytest.mark.skipif(program() is None, reason="Chromium is not installed"),
]
CHARTS = 14


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, tables: Tables) -> Path:
    return write_report(tables, ReportMeta("A flow"), tmp_path_factory.mktemp("browser") / "report.html")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture
def page(browser: Browser, report: Path) -> Browser:
    browser.resize(1280, 900)
    browser.open(report)
    return browser


def drawn(browser: Browser) -> int:
    return int(browser.run("document.documentElement.dataset.drawn"))


def assert_logs_nothing(browser: Browser, path: Path) -> None:
    assert browser.console == []
    assert [url for url in browser.requests if not url.startswith(("data:", "blob:"))] == [path.as_uri()]


def test_charts_with_utc_times_log_nothing(browser: Browser, tables: Tables, tmp_path: Path) -> None:
    """Vega-Lite warned of each layer whose time axis had a domain of two times."""
    path = write_report(tables, ReportMeta("A flow", utc=True), tmp_path / "report.html")
    browser.resize(1280, 900)
    browser.open(path)
    assert drawn(browser) == CHARTS
    assert_logs_nothing(browser, path)
    assert "the time axes of its charts show UTC" in browser.run("document.body.textContent")


MARKS = """[...document.querySelectorAll('.chart')].map((chart) => {
  const canvas = chart.querySelector('canvas.marks');
  if (!canvas) return chart.querySelectorAll('svg.marks g[class*=role-mark] > *').length;
  const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  const colours = new Set();
  for (let at = 0; at < pixels.length; at += 4) colours.add(pixels[at] << 16 | pixels[at + 1] << 8 | pixels[at + 2]);
  return colours.size > 8 ? colours.size : 0;
})"""
"""The number of marks of each chart: elements of an SVG, colours of a canvas."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_chart_is_drawn_with_marks_and_is_accessible(browser: Browser, report: Path, dark: bool) -> None:
    browser.resize(1280, 900)
    browser.open(report, dark=dark)
    assert drawn(browser) == CHARTS
    marks = browser.run(MARKS)
    assert len(marks) == CHARTS
    assert min(marks) > 0
    assert browser.run("document.querySelectorAll('.chart[role=graphics-document][aria-label]').length") == CHARTS
    paper = "rgb(21, 24, 28)" if dark else "rgb(255, 255, 255)"
    assert browser.run("getComputedStyle(document.body).backgroundColor") == paper
    assert_logs_nothing(browser, report)
    assert serious_findings(browser) == []


BEFORE = "addEventListener('DOMContentLoaded', () => { window.early = document.querySelectorAll('.marks').length; });"
"""Counts the charts that are drawn when the text of the page is complete."""


def test_text_comes_before_the_charts_and_a_printer_gets_all_of_them(browser: Browser, report: Path) -> None:
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=BEFORE)["identifier"]
    browser.open(report)
    browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
    assert browser.run("window.early") == 0
    browser.call("Page.navigate", url="about:blank")
    browser.call("Page.navigate", url=report.as_uri())
    browser.wait("document.readyState !== 'loading' && 'charts' in window")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert drawn(browser) == CHARTS, "a printer does not wait for what a page does later"


def test_a_printed_page_keeps_tables_and_panels_together(browser: Browser, report: Path) -> None:
    browser.resize(PAGE_WIDTH_PX, 1400)
    browser.open(report)
    browser.call("Emulation.setEmulatedMedia", media="print")
    inside = browser.run("[...document.querySelectorAll('table')].map((each) => getComputedStyle(each).breakInside)")
    width, height = browser.run(
        "(({ width, height }) => [width, height])("
        "document.querySelector('[aria-labelledby=what_if_cwnd] :is(svg, canvas)').getBoundingClientRect())"
    )
    browser.call("Emulation.setEmulatedMedia", media="")
    assert set(inside) == {"avoid"}
    assert height < width, "two panels side by side: four below each other are higher than a page"


@pytest.mark.parametrize("width", [390, 1000, 1600])
def test_nothing_is_wider_than_its_place(browser: Browser, report: Path, width: int) -> None:
    browser.resize(width, 900)
    browser.open(report)
    assert browser.run("document.documentElement.scrollWidth") == width
    clipped = browser.run(
        "[...document.querySelectorAll('.chart')].filter((chart) => chart.scrollWidth > chart.clientWidth + 1)"
        ".map((chart) => chart.id)"
    )
    assert clipped == []
    outside = browser.run(
        "[...document.querySelectorAll('.legend li, .tools button, h2, h3, h4')].filter((each) => "
        "each.getBoundingClientRect().right > innerWidth).map((each) => each.textContent)"
    )
    assert outside == []
    used = browser.run("document.querySelector('.chart').clientWidth")
    assert used > (0.8 if width < 1200 else 0.7) * width


def test_table_of_outages_with_places_needs_no_scrolling_on_a_laptop(
    browser: Browser, tables: Tables, tmp_path: Path
) -> None:
    metrics = {"rtt_before": 20e6, "rtt_after": 6e7, "time_to_first_new_data": 162.3e6, "duration": 173.6e6}
    rates = {"goodput_before": 5.815e6, "goodput_after": 1.552e6}
    outage = "1: outage and path change"
    rows = [
        finding("interruptions", outage, "start", value=1.795753793434e18, unit="utc"),
        finding(
            "interruptions",
            outage,
            "place",
            unit="text",
            text="48.00772\N{DEGREE SIGN}, 10.99046\N{DEGREE SIGN}, 20,113 m",
        ),
        *(finding("interruptions", outage, name, value=value, unit="ns") for name, value in metrics.items()),
        *(finding("interruptions", outage, name, value=value, unit="bit/s") for name, value in rates.items()),
        finding("interruptions", outage, "time_to_90_percent_of_goodput", unit="ns", verdict="unknown"),
        finding("interruptions", outage, "packets", unit="text", text="5148 to 5151"),
    ]
    path = write_report({**tables, "findings": table_from_rows("findings", rows)}, ReportMeta("T"), tmp_path / "r.html")
    browser.resize(1000, 900)
    browser.open(path)
    assert browser.run("document.querySelector('#interruptions ~ .scroll table').rows[0].cells.length") == 11
    table = "document.querySelector('#interruptions ~ .scroll')"
    assert browser.run(f"(({{scrollWidth, clientWidth}}) => scrollWidth - clientWidth)({table})") == 0


def test_report_of_a_log_is_drawn(browser: Browser, tmp_path: Path) -> None:
    log = {"instruments": table_from_rows("instruments", flow_instruments("web100"))}
    path = write_report(log, ReportMeta("A log"), tmp_path / "log.html")
    browser.open(path)
    assert drawn(browser) == 3
    assert_logs_nothing(browser, path)


@pytest.mark.parametrize("mode", ["replayed", "resampled", "model"])
def test_runs_of_a_single_channel_mode_are_drawn(browser: Browser, tmp_path: Path, mode: str) -> None:
    runs = [run_row(number, variant, "none", channel_mode=mode) for number, variant in enumerate(("reno", "cubic"), 1)]
    path = write_report({"runs": table_from_rows("runs", runs)}, ReportMeta("Runs"), tmp_path / "runs.html")
    browser.open(path)
    assert drawn(browser) == 2
    assert_logs_nothing(browser, path)


def chart_of(browser: Browser, key: str) -> str:
    """Return the selector of the chart whose heading has the anchor `key`."""
    return f"#{browser.run(f'document.getElementById({json.dumps(key)}).parentElement.querySelector(`.chart`).id')}"


def ticks(browser: Browser, key: str) -> list[str]:
    """Return the labels of the axes of a chart that is drawn as SVG."""
    browser.run(f"document.querySelector('{chart_of(browser, key)}').scrollIntoView()")
    time.sleep(0.2)
    labels = f"document.querySelectorAll('{chart_of(browser, key)} .role-axis-label text')"
    return sorted(browser.run(f"[...{labels}].map((each) => each.textContent)"))


def frame_of(browser: Browser, key: str) -> dict[str, Any]:
    script = (
        f"(() => {{ const chart = document.querySelector('{chart_of(browser, key)}'); "
        "chart.scrollIntoView({ block: 'center' }); "
        "const { left, top, width, height } = chart.getBoundingClientRect(); return { left, top, width, height }; })()"
    )
    frame: dict[str, Any] = browser.run(script)
    return frame


def click(browser: Browser, key: str, what: str) -> None:
    browser.run(
        f"document.querySelector('{chart_of(browser, key)}').parentElement.querySelector('[data-do={what}]').click()"
    )


RTT, THROUGHPUT = "flow-1-rtt", "flow-1-throughput"


def test_a_box_zooms_all_charts_of_the_flow_and_a_button_resets_them(page: Browser) -> None:
    before = ticks(page, THROUGHPUT), ticks(page, RTT)
    frame = frame_of(page, RTT)
    y = frame["top"] + frame["height"] / 2
    page.drag((frame["left"] + 0.4 * frame["width"], y), (frame["left"] + 0.6 * frame["width"], y + 20))
    zoomed = ticks(page, RTT), ticks(page, THROUGHPUT)
    assert zoomed[0] != before[1]
    assert zoomed[1] != before[0], "a chart that was out of view follows when it comes into view"
    click(page, RTT, "reset")
    assert (ticks(page, THROUGHPUT), ticks(page, RTT)) == before


def test_charts_of_a_flow_zoom_together_with_the_keyboard(page: Browser) -> None:
    before = ticks(page, RTT)
    page.run(f"document.querySelector('{chart_of(page, RTT)}').focus()")
    page.key("+", "+")
    zoomed = ticks(page, RTT)
    page.key("ArrowRight")
    moved = ticks(page, RTT)
    assert before != zoomed != moved
    page.key("0", "0")
    assert ticks(page, RTT) == before


ACTIVE = """(({ dataset, outerHTML, parentElement }) => {
  if (dataset.chart) return `chart ${dataset.chart}`;
  return document.activeElement.closest('nav, .tools') ? outerHTML + (parentElement.dataset.tools || '') : '';
})(document.activeElement)"""
"""What has the focus: a chart, a button of a chart, a link to a section; otherwise an empty text."""


def test_every_control_is_reached_with_the_tab_key(page: Browser) -> None:
    wanted = page.run("document.querySelectorAll('.chart, .tools button:enabled, nav a').length")
    page.run("(document.activeElement.blur(), scrollTo(0, 0), document.querySelector('.skip').focus())")
    reached = set()
    for _ in range(400):
        reached.add(page.run(ACTIVE))
        page.key("Tab")
        if page.run("document.activeElement === document.body"):
            break
    assert len(reached - {""}) == wanted


def catch_saved(page: Browser) -> None:
    """Keep what the page would save, and its name."""
    page.run(
        "URL.createObjectURL = (blob) => { window.saved = blob; return 'data:,'; };"
        "HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download; }; 0"
    )


def test_data_of_a_chart_is_offered_as_csv(page: Browser) -> None:
    catch_saved(page)
    click(page, RTT, "csv")
    lines = str(page.run("window.saved.text()")).splitlines()
    assert page.run("window.savedAs") == "round-trip-time.csv"
    assert lines[0].startswith("series,t,")
    assert [line for line in lines if line.startswith("RTT sample,")]
    assert len(lines) > 100


def test_picture_of_a_chart_has_its_title_and_legend(page: Browser) -> None:
    catch_saved(page)
    click(page, RTT, "svg")
    page.wait("window.savedAs")
    assert page.run("window.savedAs") == "round-trip-time.svg"
    svg = str(page.run("window.saved.text()"))
    assert svg.startswith("<svg")
    assert "Round-trip time" in svg
    assert "RTT sample" in svg


def test_foreign_script_is_refused(browser: Browser, report: Path, tmp_path: Path) -> None:
    copy = tmp_path / "injected.html"
    head, end, tail = report.read_text(encoding="utf-8").rpartition("</body>")
    copy.write_text(f"{head}<script>document.documentElement.dataset.owned = 1</script>{end}{tail}", encoding="utf-8")
    browser.open(copy)
    assert browser.run("document.documentElement.dataset.owned") is None
    assert any("Content Security Policy" in line for line in browser.console)


HOSTILE = (
    "<img src=x onerror=document.documentElement.dataset.owned=1>",
    "</script><script>document.documentElement.dataset.owned=1</script>",
    '=HYPERLINK("http://192.0.2.9/","a")',
    "{{ 7*7 }} ${7*7} \x1b[31m\u202e\x00",
    "long " * 2000,
    "caf\udce9",
)


def test_hostile_text_is_inert(browser: Browser, tmp_path: Path, tables: Tables) -> None:
    texts = [text.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for text in HOSTILE]
    rows = [finding("summary", text=text) for text in texts]
    rows += [finding("what_if", text, "goodput", value=1e6, low=1e6, high=2e6, unit="bit/s") for text in texts]
    runs = [run_row(number, text, "none") for number, text in enumerate(texts, 1)]
    hostile = {**tables, "findings": table_from_rows("findings", rows), "runs": table_from_rows("runs", runs)}
    path = write_report(hostile, ReportMeta(HOSTILE[0]), tmp_path / "hostile.html")
    browser.open(path)
    assert browser.run("document.documentElement.dataset.owned") is None
    assert browser.run("document.documentElement.scrollWidth === innerWidth")
    assert "49" not in re.findall(
        r"\d+", str(browser.run("document.querySelector('.finding:nth-of-type(4)').textContent"))
    )
    assert_logs_nothing(browser, path)
    page_text = str(browser.run("document.querySelector('.page').textContent"))
    assert not re.search("[\x00-\x08\x1b\u202e]", page_text)
    catch_saved(browser)
    cells: set[str] = set()
    for at in range(int(browser.run("document.querySelectorAll('button[data-do=csv]').length"))):
        browser.run(f"document.querySelectorAll('button[data-do=csv]')[{at}].click(); 0")
        cells |= {cell for row in csv.reader(str(browser.run("window.saved.text()")).splitlines()) for cell in row}
    assert "'" + HOSTILE[2] in cells, "a formula in a saved CSV is text"
    assert not [cell for cell in cells if re.match(r"[=+@\t-]", cell) and not re.fullmatch(r"[+-][\d.e+-]+", cell)]


def test_on_paper_a_short_table_stays_whole_and_a_long_one_leaves_no_blank(page: Browser) -> None:
    make = """(rows => {
      document.querySelector("main").insertAdjacentHTML(
        "beforeend", `<table id="t${rows}"><tbody>${"<tr><td>1</td></tr>".repeat(rows)}</tbody></table>`);
      return getComputedStyle(document.getElementById(`t${rows}`)).breakInside;
    })"""
    page.call("Emulation.setEmulatedMedia", media="print")
    try:
        assert [page.run(f"{make}({rows})") for rows in (8, 20, 21, 80)] == ["avoid", "avoid", "auto", "auto"]
    finally:
        page.call("Emulation.setEmulatedMedia", media="")
