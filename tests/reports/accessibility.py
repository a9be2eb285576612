"""What a browser makes of charts: whether they are drawn, fit on a phone, and what axe-core finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import altair as alt

from benches.browser import Browser
from hindflight.reports.page import render
from hindflight.reports.sections import Figure, Section

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
PHONE_PX, DESK_PX = 390, 1280


def serious_findings(browser: Browser) -> list[tuple[str, list[str]]]:
    """Return the serious and critical findings in the open page, each with the first elements that it is about."""
    browser.run(AXE.read_text(encoding="utf-8") + "\n;0")
    browser.run("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    found = json.loads(browser.run("axe.run().then((result) => JSON.stringify(result.violations))"))
    return [
        (each["id"], [node["html"][:120] for node in each["nodes"]][:3])
        for each in found
        if each["impact"] in {"serious", "critical"}
    ]


def assert_drawn_and_accessible(charts: Mapping[str, alt.LayerChart], path: Path) -> None:
    """Write a page with `charts` and open it, light and dark, on a desk and on a phone."""
    figures = [Figure(chart, name, caption="How to read it.") for name, chart in charts.items()]
    path.write_text(render("Charts", "", [Section("drawn", "Charts", parts=[*figures])]), encoding="utf-8")
    with Browser() as browser:
        for width in (DESK_PX, PHONE_PX):
            browser.resize(width, 900)
            for dark in (False, True):
                browser.open(path, dark=dark)
                assert int(browser.run("document.documentElement.dataset.drawn")) == len(charts)
                assert browser.run("document.documentElement.scrollWidth") == width
                assert browser.console == []
                assert serious_findings(browser) == []
