"""The report on a reproduced paper: verdicts, axes, and the command behind each chart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from benches.browser import Browser, program
from hindflight.reports.charts.paper import figure_chart
from hindflight.reports.numbers import short_exponents
from hindflight.reports.page import render
from hindflight.reports.papers import DrawnFigure, Experiment, PaperPage, paper_sections
from hindflight.toolkit.schema import table_from_rows
from tests.reports.accessibility import serious_findings
from tests.reports.test_charts import rows_of

COMMAND = "hindflight reproduce aerotcp --full -o DIR"
PAGE = PaperPage(
    citation="A. Author, 2005",
    effort="Runs per configuration: 20.",
    literal="",
    choices=[("packet", "1500 B", "not given")],
    readings=[],
    figures=[DrawnFigure("fig5", "Figure 5: utilisation", "Bit error rate", "Utilisation", "bar")],
    experiments=[Experiment("why:004-C26", "004-C26", "the share of a connection")],
    command=COMMAND,
)


def claim(claim_id: str, verdict: str, reason: str = "") -> dict[str, Any]:
    return {
        "paper": "aerotcp", "claim_id": claim_id, "figure": "5", "scenario": "ten connections, BER 1e-06",
        "metric": "utilisation", "kind": "value", "expected": "1", "tolerance": "", "unit": "", "origin": "stated",
        "by": "engine", "text": "It fills the link.", "reading": "default", "verdict": verdict, "runs": 20,
        "value": 1.0, "low": 0.9, "high": 1.1, "parts": "", "reason": reason,
    }  # fmt: skip


def points() -> pl.DataFrame:
    same: dict[str, object] = {"paper": "aerotcp", "series": "AeroTCP", "x": None, "y": 0.9, "low": 0.8, "high": 1.0}
    rows = [
        {**same, "figure": figure, "label": label} for figure in ("fig5", "why:004-C26") for label in ("1e-08", "1e-06")
    ]
    return pl.DataFrame(table_from_rows("points", rows))


def test_every_verdict_has_its_colour_and_every_chart_its_command() -> None:
    claims = [claim("004-C18", "reproduced"), claim("004-C26", "not_reproduced", "0.957 (0.9 to 0.98), BER 1e-06")]
    html = render("A paper", "", paper_sections(claims, points(), PAGE))
    assert '<span class="verdict reproduced">reproduced</span>' in html
    assert '<span class="verdict not reproduced">not reproduced</span>' in html
    assert html.count(f'<pre tabindex="0">{COMMAND}</pre>') == 2
    assert "BER 1e-6" in html
    assert "1e-0" not in html.split('<script type="application/json"')[0]


def test_the_categories_of_a_bar_chart_are_named() -> None:
    figures = paper_sections([claim("004-C18", "reproduced")], points(), PAGE)[1]
    (figure,) = (part for part in figures.parts if not isinstance(part, str))
    down = figure.chart.to_dict()["layer"][0]["encoding"]["y"]  # type: ignore[union-attr]
    assert down["title"] == "Bit error rate"
    assert down["sort"] == ["1e-8", "1e-6"]


def test_exponents_have_no_leading_zeros() -> None:
    assert short_exponents("1e-06, 2e+10, 1e-10, 0.05, 1e-100") == "1e-6, 2e+10, 1e-10, 0.05, 1e-100"


@pytest.mark.chromium
@pytest.mark.skipif(program() is None, reason="Chromium is not installed")
def test_figures_with_and_without_intervals_are_drawn_without_a_word_on_the_console(tmp_path: Path) -> None:
    same: dict[str, object] = {"paper": "aerotcp", "series": "AeroTCP", "x": None, "label": ""}
    rows = [{**same, "figure": "fig4", "x": float(x), "y": float(x), "low": None, "high": None} for x in (1, 2, 3)]
    rows += [{**same, "figure": "fig5", "label": label, "y": y, "low": y - 1, "high": y + 1} for label, y in BARS]
    rows += [{**same, "figure": "why:004-C26", "label": "a", "y": 0.9, "low": None, "high": None}]
    figures = [*PAGE.figures, DrawnFigure("fig4", "Figure 4: packets", "Time [ms]", "Packet", "line")]
    claims = [claim("004-C26", "not_reproduced", "0.957 (0.9 to 0.98)")]
    table = pl.DataFrame(table_from_rows("points", rows))
    path = tmp_path / "paper.html"
    path.write_text(render("A paper", "", paper_sections(claims, table, replace(PAGE, figures=figures))))
    with Browser() as browser:
        browser.open(path)
        assert int(browser.run("document.documentElement.dataset.drawn")) == 3
        assert browser.console == []
        assert serious_findings(browser) == []


BARS = (("1e-08", 0.2), ("1e-06", 40.0))
"""Means of times, the interval of the first of which reaches below 0."""


def test_bars_begin_at_zero_even_where_an_interval_reaches_below_it() -> None:
    same: dict[str, object] = {"paper": "aerotcp", "figure": "fig5", "series": "AeroTCP", "x": None}
    rows = [{**same, "label": label, "y": y, "low": y - 1, "high": y + 1} for label, y in BARS]
    figures = paper_sections([claim("004-C18", "reproduced")], pl.DataFrame(table_from_rows("points", rows)), PAGE)[1]
    (figure,) = (part for part in figures.parts if not isinstance(part, str))
    bars, rule = figure.chart.to_dict()["layer"]  # type: ignore[union-attr]
    assert bars["encoding"]["x"]["scale"]["domainMin"] == 0
    assert rule["mark"]["clip"]


@pytest.mark.parametrize(("title", "lowest"), [("Goodput [kbit/s]", 0.0), ("Difference of RTT [ms]", -200.0)])
def test_the_interval_of_a_rate_ends_at_zero(title: str, lowest: float) -> None:
    same: dict[str, object] = {"paper": "onboard-split", "figure": "fig13", "series": "TCP", "label": ""}
    rows = [{**same, "x": float(x), "y": 100.0, "low": -200.0, "high": 400.0} for x in (1, 2)]
    spec = figure_chart(pl.DataFrame(table_from_rows("points", rows)), "Figure 13", "x", title, "line").to_dict()
    (rule,) = (layer for layer in spec["layer"] if layer["mark"]["type"] == "rule")
    drawn = rows_of(spec, rule.get("data", spec.get("data"))["name"])
    assert [float(row[rule["encoding"]["y"]["field"]]) for row in drawn] == [lowest, lowest]
