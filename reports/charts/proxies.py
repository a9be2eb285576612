"""Memory of the split proxies over time, one panel per run.

Draws `instruments` of the what-if runs over the captured channel or, with a channel model, of the first seed; the
section `setup` of `findings` names the proxies of the legs.
"""

from __future__ import annotations

from itertools import count, takewhile

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import Legend, byte_axis, decimation_note, inline
from hindflight.reports.charts.panels import side_by_side
from hindflight.reports.decimation import Decimated, m4
from hindflight.reports.frames import TIME, Tables, View, read, read_flow, runs_with_subject
from hindflight.reports.style import AMBER, BLUE, WIDTH
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import leg_metric

STORED, UNDELIVERED = "in the memory of the proxy", "acknowledged upstream, not yet onward"
SHOWN = 6
"""Maximum number of panels."""
_BINS = 400
_COLUMNS = {STORED: "proxy_stored_bytes", UNDELIVERED: "proxy_undelivered_bytes"}
_LEGEND = Legend([(STORED, BLUE), (UNDELIVERED, AMBER)])
_NOTE = "What a failure of the proxy loses is the second line. All panels have the same scales."


def what_if_proxy(tables: Tables) -> alt.ConcatChart:
    """Draw the octets in the memory of each split proxy over time, and those that only the proxy acknowledged.

    One panel per run and proxy. Reads `runs`, `instruments` and `findings`. Raises ReportError if no run has a
    proxy, or none recorded its memory.
    """
    panels = _panels(tables)
    series = {title: lines for title, lines in panels.items() if any(part.rows for part in lines.values())}
    if not series:
        raise ReportError("No what-if run recorded the memory of a proxy.")
    drawn = dict(list(series.items())[:SHOWN])
    parts = [part for lines in drawn.values() for part in lines.values() if part.rows]
    top = max(float(part.frame["bytes"].cast(pl.Float64).to_numpy().max()) for part in parts)
    end = max(float(part.frame[TIME].cast(pl.Float64).to_numpy().max()) for part in parts)
    notes = [_NOTE, *decimation_note("values", *parts)]
    if len(series) > SHOWN:
        notes.append(f"{len(series) - SHOWN} more proxies are not drawn.")
    charts = [_panel(title, lines, (end, max(top, 1.0))) for title, lines in drawn.items()]
    peaks = "; ".join(f"{title}: at most {_peak(lines):,} B" for title, lines in drawn.items())
    return side_by_side(
        charts,
        alt.Title("Memory of the proxies over time", subtitle=notes),
        f"Octets in the memory of each proxy over time. {peaks}.",
    )


def _peak(lines: dict[str, Decimated]) -> int:
    values = [part.frame["bytes"].max() for part in lines.values() if part.rows]
    return max(int(str(value)) for value in values)


def _panels(tables: Tables) -> dict[str, dict[str, Decimated]]:
    """Return the two series of each proxy of the first run of each subject, by the title of their panel."""
    runs = runs_with_subject(tables, ["run_id", "flow_id", "purpose", "channel_mode"])
    wanted = (pl.col("purpose") == "what_if") & (pl.col("channel_mode") != "resampled") & (pl.col("proxy") != "none")
    split = runs.filter(wanted).unique("subject", keep="first", maintain_order=True)
    if split.is_empty():
        raise ReportError("No what-if run has a split proxy.")
    found = {}
    for run_id, flow_id, subject, proxy in split.select("run_id", "flow_id", "subject", "proxy").iter_rows():
        places = _legs_of(tables, proxy)
        for leg, place in enumerate(places, 1):
            title = subject if len(places) == 1 else f"{subject} (memory of {place})"
            found[title] = _series(tables, View(flow_id, run_id, leg))
    return found


def _legs_of(tables: Tables, chain: str) -> list[str]:
    """Return the proxy at which each leg of a chain begins: not all have one, as the gateways of a protected link."""
    rows = read(tables, "findings", ["section", "subject", "metric", "text"])
    setup = rows.filter((pl.col("section") == "setup") & (pl.col("subject") == chain))
    names = dict(setup.select("metric", "text").iter_rows())
    legs = list(takewhile(lambda metric: metric in names, map(leg_metric, count(1))))
    return [names[metric] for metric in legs] or chain.split("+")


def _series(tables: Tables, view: View) -> dict[str, Decimated]:
    rows = read_flow(tables, "instruments", view, ["t_ns", *_COLUMNS.values()]).sort("t_ns", maintain_order=True)
    found = {}
    for label, column in _COLUMNS.items():
        known = rows.drop_nulls(column)
        frame = known.select((pl.col("t_ns") / 1e9).round(6).alias(TIME), bytes=pl.col(column))
        found[label] = m4(frame, TIME, "bytes", _BINS)
    return found


def _panel(title: str, lines: dict[str, Decimated], largest: tuple[float, float]) -> alt.LayerChart:
    """Return the panel of a proxy; `largest` are the ends of both axes, in seconds and octets."""
    end, top = largest
    across = alt.Axis(title="Time since the start of the run [s]", tickCount=6)
    x = alt.X(TIME, type="quantitative", axis=across, scale=alt.Scale(domain=[0, end], nice=False))
    up = byte_axis("Memory", top)
    up.tickCount = 4
    y = alt.Y("bytes", type="quantitative", axis=up, scale=alt.Scale(domain=[0, 1.05 * top], nice=False))
    layers = []
    for label, part in lines.items():
        if part.rows:
            line = alt.Chart(inline(part.frame)).mark_line(
                interpolate="step-after", strokeWidth=3.5 if label == STORED else 1, clip=True
            )
            layers.append(_LEGEND.encode(line, label, x, y))
    heading = alt.Title(title, fontSize=13, offset=4)
    return alt.LayerChart(layer=layers, title=heading, width=(WIDTH - 150) // 2, height=130)
