"""Marks of events on the charts over time: outages, path changes and retransmission timeouts.

Every chart over time draws them below its data, so that a jump and its reason stand at the same place.
"""

from __future__ import annotations

from dataclasses import dataclass

import altair as alt
import polars as pl

from hindflight.reports.charts.axes import Legend, inline, time_axis, time_tooltip
from hindflight.reports.decimation import drop_repeats
from hindflight.reports.frames import TIME, Flow, Tables, once
from hindflight.reports.link import events_of, states_of
from hindflight.reports.style import GREEN, SHADE_PURPLE, VERMILLION

OUTAGE, CHANGE, TIMEOUT = "outage", "path change", "retransmission timeout"
_DASHES = {CHANGE: [4, 3], TIMEOUT: [1, 2]}
_ENTRIES = [(OUTAGE, SHADE_PURPLE), (CHANGE, GREEN), (TIMEOUT, VERMILLION)]
MARKED = 200
"""Maximum number of timeouts that are marked; more would hide the data, and the chart of losses shows them."""

STEP_SHARE = 0.01
"""Relative difference of delay or rate from which the path changed."""


@dataclass(frozen=True, slots=True)
class EventMarks:
    """The marks of a flow, by label: frames of TIME, of outages also of `t_end`."""

    flow: Flow
    frames: dict[str, pl.DataFrame]

    @property
    def entries(self) -> list[tuple[str, str]]:
        """Entries for the legend of a chart that draws them."""
        return [entry for entry in _ENTRIES if entry[0] in self.frames]

    def layers(self, legend: Legend) -> list[alt.Chart]:
        """Return the layers, the lowest first, in the colours of `legend`, which has `entries`."""
        found = []
        for label, rows in self.frames.items():
            base, time = alt.Chart(inline(rows)), time_axis(self.flow)
            if label == OUTAGE:
                tips = [time_tooltip(self.flow, title="Outage from"), time_tooltip(self.flow, "t_end", "to")]
                shade = base.mark_rect(clip=True, aria=False, opacity=0.8)
                found.append(legend.encode(shade, label, time, alt.X2("t_end"), tooltip=tips))
            else:
                rule = base.mark_rule(strokeDash=_DASHES[label], strokeWidth=1.2, clip=True, aria=False)
                tips = [time_tooltip(self.flow, title=label.capitalize())]
                found.append(legend.encode(rule, label, time, tooltip=tips))
        return found


def event_marks(tables: Tables, flow: Flow) -> EventMarks:
    """Return the marks of `flow`, none if no event is known."""
    return once(tables, ("event_marks", flow), lambda: _event_marks(tables, flow))


def _event_marks(tables: Tables, flow: Flow) -> EventMarks:
    events = events_of(tables, flow)
    timeouts = events.filter(pl.col("kind") == "rto").select(TIME)
    handovers = events.filter(pl.col("kind") == "handover").select(pl.col(TIME).cast(pl.Float64))
    frames = {
        OUTAGE: events.filter(pl.col("kind") == "outage").select(TIME, "t_end"),
        CHANGE: pl.concat([_changes(tables, flow), handovers]).unique().sort(TIME),
        TIMEOUT: timeouts.clear() if timeouts.height > MARKED else timeouts,
    }
    return EventMarks(flow, {label: rows for label, rows in frames.items() if rows.height})


def _changes(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return the times at which delay or rate of the link change."""
    found = []
    for column in ("delay_ns", "rate_bps"):
        states = drop_repeats(states_of(tables, flow, column), column)
        step = (pl.col(column) / pl.col(column).shift(1) - 1).abs() > STEP_SHARE
        found.append(states.filter(step.fill_null(value=False)).select(pl.col(TIME).cast(pl.Float64)))
    return pl.concat(found)
