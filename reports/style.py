"""Colours, fonts and the Vega configuration of all charts, for light and dark pages.

The colours are Okabe and Ito's colour-blind-safe set ("Color Universal Design", 2008), darkened where they are too
pale for thin lines on white. Charts use light colours only; `recolour` maps them to the dark ones, and the page's
script does the same in the browser.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["light", "dark"]

BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#00875f", "#a64d8a"
AMBER, SKY, INK, GREY, OLIVE = "#a87b00", "#2f93cc", "#22262b", "#82898f", "#6b7a1f"
SHADE_GREEN, SHADE_AMBER, SHADE_RED, SHADE_GREY = "#d5efe4", "#fbe7bd", "#f8cfc4", "#e6e8ea"
SHADE_PURPLE = "#e3d3ec"
SHADE = "#bcc2c8"

DARK: dict[str, str] = {
    BLUE: "#58b0ea",
    VERMILLION: "#ff8c42",
    GREEN: "#3ccb9b",
    PURPLE: "#e08fc6",
    AMBER: "#e8bf4a",
    SKY: "#8fd0f5",
    INK: "#eef1f4",
    GREY: "#8b939b",
    OLIVE: "#b9c95a",
    SHADE_GREEN: "#17382e",
    SHADE_AMBER: "#43361a",
    SHADE_RED: "#4f2620",
    SHADE_GREY: "#2c3136",
    SHADE_PURPLE: "#432f52",
    SHADE: "#4d545b",
}
"""The dark page's colour for each light one. Lines and marks have a contrast of 3:1 or more (WCAG 2.2 §1.4.11)."""

CATEGORIES = (BLUE, VERMILLION, GREEN, PURPLE, AMBER, SKY, INK, OLIVE, GREY)
"""Colours of variants, in the order of the tables; they repeat after the last."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', 'DejaVu Sans', sans-serif"
WIDTH = 860
"""Width of a chart in pixels, except on a page, which sets its own (PNG, SVG, notebook)."""


@dataclass(frozen=True, slots=True)
class Page:
    """Colours of a page: background, text, secondary text and grid lines."""

    paper: str
    text: str
    faint: str
    grid: str


PAGES: dict[Mode, Page] = {
    "light": Page("#ffffff", "#22262b", "#5c646c", "#e3e6e9"),
    "dark": Page("#15181c", "#e6e9ec", "#a3abb3", "#2d3238"),
}


def category_colours(count: int) -> list[str]:
    """Return `count` colours for categories, repeating after the last."""
    return [CATEGORIES[i % len(CATEGORIES)] for i in range(count)]


def vega_config(mode: Mode) -> dict[str, Any]:
    """Return the Vega-Lite configuration for charts on a light or a dark page."""
    page = PAGES[mode]
    return {
        "background": page.paper,
        "font": FONT,
        "padding": 4,
        "view": {"stroke": None},
        "title": {
            "anchor": "start",
            "color": page.text,
            "subtitleColor": page.faint,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 10,
        },
        "axis": {
            "domainColor": page.faint,
            "tickColor": page.faint,
            "gridColor": page.grid,
            "labelColor": page.faint,
            "titleColor": page.text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "titlePadding": 8,
            "labelOverlap": True,
        },
        "axisX": {"grid": False, "tickSize": 5},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 6},
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "title": None,
            "labelColor": page.text,
            "titleColor": page.text,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 500,
            "symbolStrokeWidth": 2.5,
            "symbolSize": 90,
            "symbolOpacity": 1,
            "symbolBaseFillColor": page.text,
            "symbolBaseStrokeColor": page.text,
            "columnPadding": 16,
            "labelLimit": 0,
            "offset": 8,
        },
        "header": {"labelColor": page.text, "titleColor": page.text, "labelFontSize": 12, "labelFontWeight": 600},
        "text": {"color": page.text, "fontSize": 12},
        "rule": {"color": page.faint},
    }


def recolour(spec: dict[str, Any], mode: Mode) -> dict[str, Any]:
    """Return `spec` with its colours replaced by those of `mode`; data sets are unchanged."""
    if mode == "light":
        return spec
    data = {key: spec[key] for key in ("datasets", "data") if key in spec}
    text = json.dumps({key: value for key, value in spec.items() if key not in data})
    for light, dark in DARK.items():
        text = text.replace(f'"{light}"', f'"{dark}"')
    return {**json.loads(text), **data}
