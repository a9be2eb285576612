"""From the tables to the frames that charts draw: one flow of one run, on one time axis.

Knows the schema (toolkit/schema) and Polars; draws nothing. Read docs/tables.md for how the tables hang together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import polars as pl
import pyarrow as pa

from hindflight.toolkit import schema
from hindflight.toolkit.errors import ReportError

Source: TypeAlias = "pa.Table | pl.DataFrame | pl.LazyFrame"
Tables: TypeAlias = Mapping[str, Source]
"""Tables by name, as toolkit/schema declares them; a table that is left out counts as empty."""

TIME = "t"
"""Column of the time axis in every frame over time."""

TRUTH = ("tcp_probe", "tcp_info", "web100")
"""Sources that are the kernel's own word, best first."""


@dataclass(frozen=True, slots=True)
class View:
    """Which flow of which run, which of its legs where proxies split it, and on which time axis.

    `utc` puts UTC on the time axis instead of seconds from the flow's start (captures only); `from_s` and `to_s`
    cut the flow to a stretch, counted from its start; `bins` is how many columns of pixels decimation
    reckons with: some three per pixel of the page, so that a zoom still has something to show.
    """

    flow_id: int = 1
    run_id: int = 0
    leg: int = 0
    utc: bool = False
    from_s: float | None = None
    to_s: float | None = None
    bins: int = 2400


@dataclass(frozen=True, slots=True)
class Flow:
    """What charts need to know of a flow before they read its segments."""

    view: View
    start_ns: int
    end_ns: int
    data: str
    """Direction of the data; the other one acknowledges."""

    @property
    def acks(self) -> str:
        """Direction of the acknowledgements."""
        return "b2a" if self.data == "a2b" else "a2b"

    @property
    def span_s(self) -> tuple[float, float]:
        """Start and end of what is drawn, in seconds from the start of the flow."""
        length = (self.end_ns - self.start_ns) / 1e9
        low = 0.0 if self.view.from_s is None else self.view.from_s
        high = length if self.view.to_s is None else self.view.to_s
        return low, max(high, low + 1e-3)

    def at(self, seconds: float) -> float:
        """Return the place on the time axis of what lies `seconds` after the start of the flow."""
        return self.start_ns / 1e6 + seconds * 1e3 if self.view.utc else seconds


def read(tables: Tables, name: str, columns: Sequence[str]) -> pl.DataFrame:
    """Return `columns` of table `name`, enumerations as text; no rows where the table is left out."""
    table = tables.get(name)
    if table is None:
        table = schema.empty_table(name)
    if isinstance(table, pl.LazyFrame):
        frame = table.select(columns).collect()
    elif isinstance(table, pl.DataFrame):
        frame = table.select(columns)
    else:
        frame = pl.DataFrame(table.select(list(columns)))
    return frame.with_columns(pl.col(pl.Categorical).cast(pl.String))


def read_flow(tables: Tables, name: str, flow: View, columns: Sequence[str]) -> pl.DataFrame:
    """Return `columns` of the rows of table `name` that belong to the flow, run and leg of `flow`."""
    wanted = {"run_id": flow.run_id, "flow_id": flow.flow_id, "leg": flow.leg}
    keys = {key: value for key, value in wanted.items() if key in _names(name)}
    frame = read(tables, name, list(dict.fromkeys([*keys, *columns])))
    return frame.filter(**keys).select(columns)


@cache
def _names(name: str) -> frozenset[str]:
    return frozenset(column.name for column in schema.TABLES[name].columns)


def flow_of(tables: Tables, view: View) -> Flow:
    """Return the flow that `view` names, from `flows`, else from its first segment, instrument or event.

    ReportError where no table has a row of it.
    """
    row = read_flow(tables, "flows", view, ["start_ns", "end_ns", "data_direction"])
    if row.height:
        start, end, data = row.row(0)
        return Flow(view, start, end, data)
    times = [read_flow(tables, name, view, ["t_ns"])["t_ns"] for name in ("segments", "instruments", "events")]
    stamps = pl.concat(times)
    if stamps.is_empty():
        raise ReportError(f"There is nothing on flow {view.flow_id} of run {view.run_id} in these tables.")
    ordered = stamps.sort()
    low, high = int(ordered[0]), int(ordered[-1])
    return Flow(view, 0 if view.run_id else low, high, _heavier_direction(tables, view))


def _heavier_direction(tables: Tables, view: View) -> str:
    payload = read_flow(tables, "segments", view, ["direction", "payload_bytes"])
    sums = payload.group_by("direction").agg(pl.col("payload_bytes").cast(pl.Int64).sum()).sort("payload_bytes")
    return str(sums["direction"][-1]) if sums.height else "a2b"


def on_axis(frame: pl.DataFrame, flow: Flow, column: str = "t_ns", name: str = TIME) -> pl.DataFrame:
    """Replace the time `column` by `name`: seconds from the flow's start, or milliseconds since 1970 with utc.

    Rows outside the view's stretch are dropped (by `column`); the frame is sorted by time.
    """
    seconds = (pl.col(column) - flow.start_ns) / 1e9
    low, high = flow.span_s
    value = (pl.col(column) / 1e6).round(3) if flow.view.utc else seconds.round(6)
    cut = frame.filter(seconds.is_between(low, high)) if _is_cut(flow.view) else frame
    return cut.sort(column, maintain_order=True).with_columns(value.alias(name)).drop(column)


def least(frame: pl.DataFrame, column: str) -> float:
    """Return the least value of a column; 0 where it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return 0.0 if value is None else float(value)


def greatest(frame: pl.DataFrame, column: str) -> float:
    """Return the greatest value of a column; 0 where it has none."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return 0.0 if value is None else float(value)


def _is_cut(view: View) -> bool:
    return view.from_s is not None or view.to_s is not None


def captured_flows(tables: Tables) -> list[View]:
    """Return a view of each flow that was captured or logged, the one with the most data first."""
    flows = read(tables, "flows", ["run_id", "flow_id", "data_direction", "a2b_unique_bytes", "b2a_unique_bytes"])
    size = pl.max_horizontal("a2b_unique_bytes", "b2a_unique_bytes")
    ranked = flows.filter(pl.col("run_id") == 0).sort(size, descending=True, maintain_order=True)["flow_id"].to_list()
    seen = set(ranked)
    for name in ("segments", "instruments"):
        rows = read(tables, name, ["run_id", "flow_id"]).filter(pl.col("run_id") == 0)
        more = rows["flow_id"].unique(maintain_order=True).to_list()
        ranked += [flow_id for flow_id in more if flow_id not in seen]
        seen.update(more)
    return [View(flow_id=flow_id) for flow_id in ranked]


def runs_with_subject(tables: Tables, columns: Sequence[str]) -> pl.DataFrame:
    """Return `columns` of `runs` and `subject`, the name under which `findings` speaks of a run.

    Of each run the studied flow only: those that share its path have no subject.
    """
    wanted = list(dict.fromkeys(["variant", "proxy", "role", *columns]))
    frame = read(tables, "runs", wanted).filter(pl.col("role") == "studied")
    subjects = [schema.run_subject(v, p) for v, p in frame.select("variant", "proxy").iter_rows()]
    return frame.with_columns(subject=pl.Series(subjects, dtype=pl.String))


def is_modelled(tables: Tables, purpose: str) -> bool:
    """Return whether the runs of `purpose` drew their channel from a model, so that none of it was captured."""
    runs = read(tables, "runs", ["purpose", "channel_mode"]).filter(pl.col("purpose") == purpose)
    return not runs.is_empty() and bool((runs["channel_mode"] == "model").all())


def has_series(tables: Tables, name: str) -> set[int]:
    """Return the run_id of every run that has rows in table `name`."""
    return set(read(tables, name, ["run_id"])["run_id"].unique().to_list())
