"""What a flight log says while a flow lasts: its values over time, and the track in colours of the flow.

Draws `telemetry`, and `segments` of one flow for the colours. A log has no flow: its times are compared with those of
the flow. Read docs/logs.md, "Flight logs".
"""

from __future__ import annotations

import math
from itertools import pairwise

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import (
    ChartText,
    Legend,
    decimation_note,
    inline,
    layered_chart,
    time_axis,
    time_tooltip,
    y_axis,
    zoom,
)
from hindflight.reports.charts.marks import event_marks
from hindflight.reports.charts.path import bin_width_s, newly_acked, rtt_samples
from hindflight.reports.decimation import m4
from hindflight.reports.frames import TIME, Flow, Tables, View, flow_of, on_axis, read, read_flow
from hindflight.reports.style import GREY, category_colours
from hindflight.toolkit.errors import ReportError

LATITUDE, LONGITUDE = "lat_deg", "lon_deg"
_PLACE = (LATITUDE, LONGITUDE)
NO_UNIT = "no unit"

_NO_LOG = "No flight log covers the time of this flow."
HEIGHT = 110
"""Pixels of a chart of values: a strip, because several stand between the charts of the flow."""

_TRACK_BINS = 600
"""Places of the line."""
_LARGEST = 0.98
"""Quantile at which colours end: the ACK that fills a hole reports the octets of many intervals at once."""

_SHADES = {
    "goodput": ("Goodput [Mbit/s]", ",.3f"),
    "rtt": ("Round-trip time, mean [ms]", ",.1f"),
    "loss": ("Retransmitted segments", ",d"),
}
TRACK_COLOURS = tuple(_SHADES)
"""What colours the track."""

_NAMES = {"goodput": "goodput", "rtt": "round-trip time", "loss": "retransmissions"}

_RAMP = ("#440154", "#414487", "#2a788e", "#22a884", "#7ad151", "#e3d021")
"""Colours from small to large, of equal steps in lightness, so that they can be told apart in print."""


def flight_units(tables: Tables, view: View | None = None) -> list[str]:
    """Return the units of the values, other than the place, that a flight log has during the flow: a chart each."""
    rows = _values(tables, flow_of(tables, view or View()))
    return rows.filter(~pl.col("name").is_in(_PLACE))["unit"].unique(maintain_order=True).sort().to_list()


def has_track(tables: Tables, view: View | None = None) -> bool:
    """Return whether a flight log has places during the flow."""
    return set(_PLACE) <= set(_values(tables, flow_of(tables, view or View()))["name"])


def flight_values(tables: Tables, view: View | None = None, *, unit: str = "m") -> alt.LayerChart:
    """Draw the values of the flight log that have `unit` over time: altitude, attitude, what the radio measured.

    Reads `flows`, `telemetry` and `events`. Raises ReportError if no log has such values during the flow.
    """
    flow = flow_of(tables, view or View())
    rows = _values(tables, flow).filter((pl.col("unit") == unit) & ~pl.col("name").is_in(_PLACE))
    if rows.is_empty():
        raise ReportError(_NO_LOG)
    names = rows["name"].unique(maintain_order=True).to_list()
    events = event_marks(tables, flow)
    legend = Legend([*zip(names, category_colours(len(names)), strict=True), *events.entries])
    axis = y_axis(f"Value [{unit}]" if unit else "Value")
    y = alt.Y("value", type="quantitative", axis=axis, scale=alt.Scale(zero=False))
    tips = [time_tooltip(flow), alt.Tooltip("value", type="quantitative", format=",.4~f", title=f"Value [{unit}]")]
    parts = [
        m4(on_axis(rows.filter(name=name), flow).select(TIME, "value"), TIME, "value", flow.view.bins) for name in names
    ]
    layers = []
    for name, part in zip(names, parts, strict=True):
        line = alt.Chart(inline(part.frame)).mark_line(interpolate="step-after", strokeWidth=1.6, clip=True, aria=False)
        layers.append(legend.encode(line, name, time_axis(flow), y, tooltip=tips))
    layers[0] = layers[0].add_params(zoom())
    title = f"Flight log: {', '.join(names)}"
    text = ChartText(title, f"{title}, over time, in {unit or NO_UNIT}.", decimation_note("values", *parts))
    return layered_chart(
        [*events.layers(legend), *layers], text, height=HEIGHT, marks=sum(p.frame.height for p in parts)
    )


def track(tables: Tables, view: View | None = None, *, colour: str = "goodput") -> alt.LayerChart:
    """Draw the track of the flight log over the ground, coloured by `colour`: goodput, rtt or loss of the flow.

    Each mark stands for one interval of the flow. North is up; a degree of longitude is as wide as it is on the
    ground in the middle of the track. Reads `flows`, `telemetry` and `segments`. Raises ReportError without a place.
    """
    flow = flow_of(tables, view or View())
    if colour not in _SHADES:
        raise ReportError(f"colour is {', '.join(_SHADES)}, not {colour!r}.")
    places = _places(tables, flow)
    title, style = _SHADES[colour]
    coloured = _coloured(tables, flow, places, colour)
    if coloured.is_empty():
        raise ReportError(f"The capture has nothing that colours the track by {colour}.")
    marks, classes = _classed(coloured)
    x, y = _ground(places)
    path = alt.Chart(inline(places)).mark_line(color=GREY, strokeWidth=1, aria=False).encode(x, y, order="n:Q")
    shades = alt.Scale(domain=classes, range=list(_RAMP[: len(classes)]))
    scale = alt.Color("class", type="nominal", scale=shades, legend=alt.Legend(title=title))
    tips = [
        time_tooltip(flow, title="From"),
        alt.Tooltip("shade", type="quantitative", format=style, title=title),
        alt.Tooltip("lat", type="quantitative", format=".5f", title="Latitude [degrees]"),
        alt.Tooltip("lon", type="quantitative", format=".5f", title="Longitude [degrees]"),
    ]
    dots = alt.Chart(inline(marks)).mark_circle(size=60, opacity=1, aria=False).encode(x, y, scale, tooltip=tips)
    first, last = marks.row(0, named=True), marks.row(-1, named=True)
    description = (
        f"Track from {first['lat']:.4f}, {first['lon']:.4f} to {last['lat']:.4f}, {last['lon']:.4f} degrees, "
        f"coloured by: {title}."
    )
    notes = ["North is up. Each mark is an interval of the flow."]
    name = f"Track, coloured by {_NAMES[colour]}"
    return layered_chart([path, dots], ChartText(name, description, notes), height=360, marks=marks.height)


def _classed(marks: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """Return `marks` with the `class` of each shade, and the classes in order: equal steps up to `_LARGEST`."""
    top = float(marks["shade"].cast(pl.Float64).quantile(_LARGEST) or 0.0)
    step = max(top, 1e-3) / (len(_RAMP) - 1)
    digits = max(0, 1 - math.floor(math.log10(step)))
    edges = ["0", *(f"{step * i:,.{digits}f}" for i in range(1, len(_RAMP)))]
    classes = [*(f"{low} to {high}" for low, high in pairwise(edges)), f"more than {edges[-1]}"]
    number = (pl.col("shade") / step).ceil().cast(pl.Int64).clip(1, len(_RAMP)) - 1
    named = number.replace_strict(dict(enumerate(classes)), return_dtype=pl.String)
    return marks.with_columns(named.alias("class")), classes


def _values(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return `t_ns`, `name`, `unit` and `value` of the flight log during the flow, in order of time."""
    low, high = (flow.start_ns + round(s * 1e9) for s in flow.span_s)
    during = pl.col("t_ns").is_between(low, high) & pl.col("value").is_not_null()
    return read(tables, "telemetry", ["t_ns", "name", "unit", "value"], during).sort("t_ns")


def _places(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return `t_ns`, `lat`, `lon` and the number `n` of each place, thinned to `_TRACK_BINS` times."""
    rows = _values(tables, flow).filter(pl.col("name").is_in(_PLACE))
    latitudes = rows.filter(name=LATITUDE).select("t_ns", lat="value")
    longitudes = rows.filter(name=LONGITUDE).select("t_ns", lon="value")
    places = latitudes.join_asof(longitudes, on="t_ns").drop_nulls()
    if places.is_empty():
        raise ReportError("No flight log has a latitude and a longitude during this flow.")
    step = max(1, places.height // _TRACK_BINS)
    return places.gather_every(step).with_row_index("n")


def _coloured(tables: Tables, flow: Flow, places: pl.DataFrame, colour: str) -> pl.DataFrame:
    """Return a place per interval of the flow, with its time and its `shade`."""
    low, high = flow.span_s
    width = bin_width_s(high - low, places.height)
    rows = _shades(tables, flow, colour).with_columns(slot=((pl.col("s") - low) / width).floor().cast(pl.Int64))
    sums = {"goodput": pl.col("x").sum() * 8 / width / 1e6, "rtt": pl.col("x").mean(), "loss": pl.col("x").sum()}
    binned = rows.group_by("slot").agg(sums[colour].alias("shade")).sort("slot")
    middle = (flow.start_ns + (low + (pl.col("slot") + 0.5) * width) * 1e9).cast(pl.Int64)
    at = binned.with_columns(t_ns=middle).sort("t_ns")
    found = at.join_asof(places.select("t_ns", "lat", "lon"), on="t_ns", strategy="nearest")
    return on_axis(found, flow).select(TIME, "lat", "lon", pl.col("shade").round(4))


def _shades(tables: Tables, flow: Flow, colour: str) -> pl.DataFrame:
    """Return `s`, seconds since the start of the flow, and `x`: octets acknowledged, RTT in ms, retransmissions."""
    seconds = (pl.col("t_ns") - flow.start_ns) / 1e9
    if colour == "rtt":
        samples = rtt_samples(tables, flow)
        since = (pl.col(TIME) - flow.start_ns / 1e6) / 1e3 if flow.view.utc else pl.col(TIME)
        return samples.select(s=since.cast(pl.Float64), x=pl.col("ms"))
    if colour == "loss":
        resent = (pl.col("direction") == flow.data) & pl.col("retransmission")
        rows = read_flow(tables, "segments", flow.view, ["t_ns"], resent)
        return rows.select(s=seconds, x=pl.lit(1.0))
    return newly_acked(tables, flow, flow.view).select(s=seconds, x=pl.col("bytes").cast(pl.Float64))


def _ground(places: pl.DataFrame) -> tuple[alt.X, alt.Y]:
    """Return axes on which a metre is as long to the east as to the north, however wide the page draws the chart."""
    lat, lon = places["lat"].to_numpy(), places["lon"].to_numpy()
    middle = (float(lat.min() + lat.max()) / 2, float(lon.min() + lon.max()) / 2)
    narrow = max(0.01, math.cos(math.radians(middle[0])))
    tall = 1.1 * max(float(lat.max() - lat.min()), 1e-5)
    wide = 1.1 * max(float(lon.max() - lon.min()) * narrow, 1e-5)
    pixel = f"max({tall:.9f} / height, {wide:.9f} / width)"  # degrees of latitude
    x_reach, y_reach = f"{pixel} * width / {2 * narrow:.9f}", f"{pixel} * height / 2"

    def scale(centre: float, reach: str) -> alt.Scale:
        return alt.Scale(
            domain=alt.ExprRef(f"[{centre:.9f} - {reach}, {centre:.9f} + {reach}]"), nice=False, zero=False
        )

    def axis(title: str) -> alt.Axis:
        return alt.Axis(title=f"{title} [degrees]", format=".4~f", tickCount=6)

    x = alt.X("lon", type="quantitative", scale=scale(middle[1], x_reach), axis=axis("Longitude"))
    y = alt.Y("lat", type="quantitative", scale=scale(middle[0], y_reach), axis=axis("Latitude"))
    return x, y
