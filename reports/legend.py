"""The legend of a chart on a page, as text that wraps: read from the scales of its specification.

A page draws charts without the legend of Vega, which cannot wrap and is cut off on a narrow page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hindflight.reports.style import DARK

_SWATCHES = {"rule": "line", "line": "line", "tick": "line", "rect": "box", "area": "box", "bar": "box"}
_CHANNELS = ("color", "fill", "shape")


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A label, its colours on a light and on a dark page, and its swatch: line, dashed, box, dot or a shape.

    `heading` is the title of the legend in front of its first entry, otherwise empty.
    """

    label: str
    light: str
    dark: str
    swatch: str
    heading: str = ""


def legend_of(spec: dict[str, Any]) -> list[LegendEntry]:
    """Return the entries of all legends of a specification of Vega-Lite, each label once, in order."""
    entries: dict[str, LegendEntry] = {}
    layers = spec.get("layer", [spec])
    swatches = _swatches_by_label(layers)
    for layer in layers:
        for channel in _CHANNELS:
            encoded = layer.get("encoding", {}).get(channel) or {}
            scale = encoded.get("scale") or {}
            if "domain" not in scale or encoded.get("legend", {}) is None:
                continue
            title = (encoded.get("legend") or {}).get("title") or ""
            for label, value in zip(scale["domain"], scale["range"], strict=False):
                if label in entries:
                    continue
                heading, title = title, ""
                swatch = value if channel == "shape" else swatches.get(label) or _swatch(layer)
                light = "currentcolor" if channel == "shape" else value
                entries[label] = LegendEntry(label, light, DARK.get(light, light), swatch, heading)
    return list(entries.values())


def _swatches_by_label(layers: list[dict[str, Any]]) -> dict[str, str]:
    """Return the swatch of each series that has a layer to itself (charts.axes.Legend)."""
    found: dict[str, str] = {}
    for layer in layers:
        for step in layer.get("transform", ()):
            if step.get("as") == "series":
                found.setdefault(json.loads(step["calculate"]), _swatch(layer))
    return found


def _swatch(layer: dict[str, Any]) -> str:
    mark = layer.get("mark", {})
    mark = {"type": mark} if isinstance(mark, str) else mark
    if mark.get("type") == "point":
        return str(mark.get("shape", "circle"))
    swatch = _SWATCHES.get(mark.get("type", ""), "circle")
    return "dashed" if swatch == "line" and mark.get("strokeDash", [1, 0]) != [1, 0] else swatch
