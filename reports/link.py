"""The link of a flow, from `channel`: causes of its losses, outages, rate and delay over time.

`channel` has no flow_id, and record numbers of two captures may coincide. A loss event and a channel packet are
therefore the same transmission if both record and time agree.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from hindflight.reports.frames import TIME, Flow, Tables, View, on_axis, read, read_flow

_EVENT_COLUMNS = ["t_ns", "end_ns", "kind", "cause", "record", "seq_start", "seq_end", "evidence"]
_END = "t_end"

_PACKETS_COMPARED = 1000
"""Packets of the channel by which its flow is found."""


def events_of(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return the events of a flow and the outages of its link: TIME, t_end, kind, cause, record, octets, evidence.

    A loss event of unknown cause takes cause and evidence from `channel`, if the channel was extracted.
    """
    events = read_flow(tables, "events", flow.view, _EVENT_COLUMNS)
    packets = _channel(tables, flow, "packet").select("record", "t_ns", cause_c="cause", evidence_c="evidence")
    named = packets.filter(pl.col("cause_c") != "none").unique(["record", "t_ns"], keep="first")
    joined = events.join(named, on=["record", "t_ns"], how="left", maintain_order="left")
    open_loss = (pl.col("kind") == "loss") & (pl.col("cause") == "unknown") & pl.col("cause_c").is_not_null()
    cause = pl.when(open_loss).then(pl.col("cause_c")).otherwise(pl.col("cause"))
    evidence = pl.when(open_loss).then(pl.coalesce("evidence_c", "evidence")).otherwise(pl.col("evidence"))
    attributed = joined.with_columns(cause=cause, evidence=evidence).select(_EVENT_COLUMNS)
    both = pl.concat([attributed, _outages(tables, flow).select(_EVENT_COLUMNS)])
    seconds = (pl.col("end_ns") - flow.start_ns) / 1e9
    end = (pl.col("end_ns") / 1e6).round(3) if flow.view.utc else seconds.round(6)
    return (
        on_axis(both.with_columns(end.alias(_END)), flow)
        .with_columns(pl.col(_END).fill_null(pl.col(TIME)))
        .drop("end_ns")
    )


def states_of(tables: Tables, flow: Flow, column: str) -> pl.DataFrame:
    """Return TIME and `column` of the link's intervals as a step line; its last row is the end of the last interval."""
    rows = _channel(tables, flow, "interval").filter(~pl.col("lost")).drop_nulls(["end_ns", column]).sort("t_ns")
    steps = pl.concat([rows, rows[-1:].with_columns(t_ns=pl.col("end_ns"))])
    return on_axis(steps, flow).select(TIME, column)


def flow_of_link(tables: Tables, views: Sequence[View]) -> View | None:
    """Return the flow whose packets are those of `channel`; None if no flow has them, or no packet is in it."""
    is_sent = (pl.col("kind") == "packet") & pl.col("record").is_not_null()
    packets = read(tables, "channel", ["kind", "record", "t_ns"], is_sent).select("record", "t_ns")
    sent = packets.head(_PACKETS_COMPARED)
    records = sent["record"].to_list()
    for view in views if records else ():
        segments = read_flow(tables, "segments", view, ["record", "t_ns"], pl.col("record").is_in(records))
        if not segments.join(sent, on=["record", "t_ns"], how="semi").is_empty():
            return view
    return None


def _outages(tables: Tables, flow: Flow) -> pl.DataFrame:
    """Return one row per outage; intervals that touch, of which some may be uncertain, are one outage."""
    rows = _channel(tables, flow, "interval").filter("lost").sort("t_ns")
    begins = (pl.col("t_ns") > pl.col("end_ns").cum_max().shift(1)).fill_null(value=True)
    one = rows.with_columns(number=begins.cum_sum()).group_by("number", maintain_order=True)
    merged = one.agg(pl.col("t_ns").min(), pl.col("end_ns").max(), pl.col("record", "evidence").first())
    empty = {name: pl.lit(None, dtype) for name, dtype in (("seq_start", pl.Int64), ("seq_end", pl.Int64))}
    return merged.with_columns(kind=pl.lit("outage"), cause=pl.lit("outage"), **empty)


def _channel(tables: Tables, flow: Flow, kind: str) -> pl.DataFrame:
    """Return the rows of one kind that overlap the flow; none for a replay, because `channel` describes the capture."""
    columns = ["kind", "direction", "t_ns", "end_ns", "lost", "cause", "rate_bps", "delay_ns", "record", "evidence"]
    if flow.view.run_id:
        return read(tables, "channel", columns, pl.lit(value=False))
    lasted = (pl.coalesce("end_ns", "t_ns") >= flow.start_ns) & (pl.col("t_ns") <= flow.end_ns)
    return read(tables, "channel", columns, (pl.col("kind") == kind) & (pl.col("direction") == flow.data) & lasted)
