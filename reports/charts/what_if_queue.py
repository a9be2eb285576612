"""What the queue of the bottleneck held while each variant was replayed over the captured channel.

Draws the round-trip times in `segments` of the runs and the rate and delay of the link in `channel`, as the chart of
the captured flow does (link_state). Read that first.
"""

from __future__ import annotations

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import decimation_note, y_axis
from hindflight.reports.charts.link_state import packet_bytes, queue_samples
from hindflight.reports.charts.panels import PANEL_BINS, Axes, panel, panel_axes, panel_note, side_by_side
from hindflight.reports.charts.path import rtt_samples
from hindflight.reports.decimation import Decimated, m4
from hindflight.reports.frames import TIME, Tables, View, flow_of, maximum, runs_with_rows, runs_with_subject
from hindflight.reports.link import flow_of_link
from hindflight.reports.style import SHADE, category_colours
from hindflight.toolkit.errors import ReportError

_UNKNOWN = "No variant was replayed over a captured link of known rate and delay, so what its queue held is not known."


def what_if_queue(tables: Tables, view: View | None = None) -> alt.ConcatChart:
    """Draw the packets in the queue of the bottleneck over time, one panel per variant; the captured flow's in grey.

    The runs are those over the captured channel without a proxy: with one, the round trips of the sender end there. A
    run without a round trip has no panel; a note names it. `view` selects the captured flow; the axis is in seconds
    from its start even with `utc`, because replays have no date. Reads `runs`, `flows`, `segments` and `channel`.
    Raises ReportError if the rate or the delay of the link is not known, or no such run was recorded.
    """
    view = view or View()
    link = flow_of_link(tables, [View(view.flow_id, view.run_id)])
    runs = runs_with_subject(tables, ["run_id", "flow_id", "purpose", "channel_mode"]).filter(
        (pl.col("purpose") == "what_if") & (pl.col("channel_mode") == "replayed") & (pl.col("proxy") == "none")
    )
    runs = runs.filter(pl.col("run_id").is_in(list(runs_with_rows(tables, "segments"))))
    if link is None or runs.is_empty():
        raise ReportError(_UNKNOWN)
    captured = _held(tables, link, link)
    parts = {
        subject: _held(tables, View(flow_id, run_id), link)
        for run_id, flow_id, subject in runs.select("run_id", "flow_id", "subject").iter_rows()
    }
    without = [subject for subject, part in parts.items() if not part.rows]
    parts = {subject: part for subject, part in parts.items() if part.rows}
    if not parts:
        raise ReportError(_UNKNOWN)
    drawn = [part for part in (*parts.values(), captured) if part.rows]
    top = max(1.0, *(maximum(part.frame, "pkts") for part in drawn))
    axes = panel_axes(drawn, "Time since the start of the flow [s]", y_axis("Queue [packets]"), "pkts", top)
    colours = category_colours(len(parts))
    panels = [
        _panel(subject, (part, captured), axes, colour)
        for (subject, part), colour in zip(parts.items(), colours, strict=True)
    ]
    notes = [panel_note(captured)]
    notes += [f"Without a round trip over the link, and so without a panel: {', '.join(without)}."] if without else []
    notes += decimation_note("packets", *parts.values())
    return side_by_side(
        panels,
        alt.Title("Queue of the bottleneck with each variant over the captured channel", subtitle=notes),
        f"Packets in the queue over time, one panel each with the same scales: {'; '.join(parts)}.",
    )


def _held(tables: Tables, view: View, link: View) -> Decimated:
    """Return the packets in the queue over TIME, in seconds from the start of the flow, which is time 0 of a replay.

    None for a flow without a round trip: its connection was never established, or nothing was acknowledged.
    """
    of_link, flow = flow_of(tables, link), flow_of(tables, view)
    if rtt_samples(tables, flow).is_empty():
        return Decimated(pl.DataFrame(schema={TIME: pl.Float64, "pkts": pl.Float64}), 0, decimated=False)
    held = queue_samples(tables, flow, of_link)
    size = packet_bytes(tables, of_link)
    shown = held.select(TIME, pkts=(pl.col("bytes") / size).round(2))
    return m4(shown, TIME, "pkts", PANEL_BINS)


def _panel(subject: str, parts: tuple[Decimated, Decimated], axes: Axes, colour: str) -> alt.LayerChart:
    replayed, captured = parts
    lines = (
        (part, alt.MarkDef(type="line", strokeWidth=width, color=stroke, clip=True))
        for part, width, stroke in ((captured, 1.6, SHADE), (replayed, 1.2, colour))
        if part.rows
    )
    return panel(subject, lines, axes)
