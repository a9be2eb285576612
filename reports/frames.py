"""Frames for the charts: one flow of one run, on one time axis, selected from the tables of toolkit/schema.

docs/tables.md describes the keys that join the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeVar

import polars as pl
import pyarrow as pa

from hindflight.toolkit import schema
from hindflight.toolkit.errors import ReportError

Source: TypeAlias = "pa.Table | pl.DataFrame | pl.LazyFrame"
Tables: TypeAlias = Mapping[str, Source]
"""Tables by their name in toolkit/schema. A missing table counts as empty."""

Found = TypeVar("Found")

KEPT_BYTES = 1 << 20
"""Size up to which what was read is kept."""

MAX_KEPT = 256
"""Maximum number of frames that are kept, and of other results: those of a few flows."""

TIME = "t"
"""Name of the time column in every frame over time."""

KERNEL_SOURCES = ("tcp_probe", "tcp_info", "web100")
"""Values of `instruments.source` that the kernel itself reported, the most precise first."""


class KeptTables(Mapping[str, Source]):
    """Tables of which `read` keeps what it read, if it is small, and `once` what was found: the charts of a report read
    the same rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.frames: dict[tuple[str, tuple[str, ...], bytes | None], pl.DataFrame] = {}
        self.found: dict[Hashable, Any] = {}

    def __getitem__(self, name: str) -> Source:
        return self._tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


@dataclass(frozen=True, slots=True)
class View:
    """Selects a flow of a run, one of its legs if proxies split it, and a time axis.

    With `utc`, the time axis shows UTC instead of seconds since the start of the flow (captures only). `from_s` and
    `to_s` limit the chart to an interval, in seconds since the start of the flow. `bins` is the number of pixel columns
    that decimation assumes: about those of a wide page, because a browser takes seconds to draw more.
    """

    flow_id: int = 1
    run_id: int = 0
    leg: int = 0
    utc: bool = False
    from_s: float | None = None
    to_s: float | None = None
    bins: int = 1000


@dataclass(frozen=True, slots=True)
class Flow:
    """Time span and data direction of a flow."""

    view: View
    start_ns: int
    end_ns: int
    data: str
    """Direction of the data, `a2b` or `b2a`."""

    @property
    def acks(self) -> str:
        """Direction of the ACKs, opposite to the data."""
        return "b2a" if self.data == "a2b" else "a2b"

    @property
    def span_s(self) -> tuple[float, float]:
        """Start and end of the time axis in seconds since the start of the flow."""
        length = (self.end_ns - self.start_ns) / 1e9
        low = 0.0 if self.view.from_s is None else self.view.from_s
        high = length if self.view.to_s is None else self.view.to_s
        return low, max(high, low + 1e-3)

    def at(self, seconds: float) -> float:
        """Return the position on the time axis of the instant `seconds` after the start of the flow."""
        return self.start_ns / 1e6 + seconds * 1e3 if self.view.utc else seconds


def lazy(tables: Tables, name: str) -> pl.LazyFrame:
    """Return table `name`, not read yet where it is a file; a missing table is empty."""
    table = tables.get(name)
    if table is None:
        table = schema.empty_table(name)
    if isinstance(table, pl.LazyFrame):
        return table
    return (table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)).lazy()


def read(tables: Tables, name: str, columns: Sequence[str], where: pl.Expr | None = None) -> pl.DataFrame:
    """Return `columns` of the rows of table `name` where `where` is true, with enumerations as strings.

    Reads no other column and, of a file, no row group that `where` excludes. A missing table gives an empty frame.
    """
    if not isinstance(tables, KeptTables):
        return _read(tables, name, columns, where)
    key = name, tuple(columns), None if where is None else where.meta.serialize()
    found = tables.frames.get(key)
    if found is None:
        found = _read(tables, name, columns, where)
        if found.estimated_size() <= KEPT_BYTES:
            _keep(tables.frames, key, found)
    return found


def _read(tables: Tables, name: str, columns: Sequence[str], where: pl.Expr | None) -> pl.DataFrame:
    rows = lazy(tables, name)
    rows = rows if where is None else rows.filter(where)
    return rows.select(columns).collect().with_columns(pl.col(pl.Categorical).cast(pl.String))


def once(tables: Tables, key: Hashable, find: Callable[[], Found]) -> Found:
    """Return what `find` finds in `tables`; where they keep it, what it found for `key` the first time."""
    if not isinstance(tables, KeptTables):
        return find()
    if key not in tables.found:
        _keep(tables.found, key, find())
    found: Found = tables.found[key]
    return found


def _keep(kept: dict[Any, Any], key: Hashable, value: object) -> None:
    """Keep `value`; in place of the oldest one if there are MAX_KEPT."""
    if len(kept) >= MAX_KEPT:
        del kept[next(iter(kept))]
    kept[key] = value


def read_flow(
    tables: Tables, name: str, flow: View, columns: Sequence[str], where: pl.Expr | None = None
) -> pl.DataFrame:
    """Return `columns` of table `name`, limited to the flow, run and leg of `flow` and to `where`."""
    return read(tables, name, columns, _of_flow(name, flow) if where is None else _of_flow(name, flow) & where)


def _of_flow(name: str, flow: View) -> pl.Expr:
    wanted = {"run_id": flow.run_id, "flow_id": flow.flow_id, "leg": flow.leg}
    return pl.all_horizontal(pl.col(key) == value for key, value in wanted.items() if key in column_names(name))


@cache
def column_names(name: str) -> frozenset[str]:
    """Return the names of the columns of table `name`."""
    return frozenset(column.name for column in schema.TABLES[name].columns)


def flow_of(tables: Tables, view: View) -> Flow:
    """Return the flow that `view` selects, from `flows`, or else from its segments, instruments and events.

    Raises ReportError if no table has a row of the flow.
    """
    row = read_flow(tables, "flows", view, ["start_ns", "end_ns", "data_direction"])
    if row.height:
        start, end, data = row.row(0)
        return Flow(view, start, end, data)
    spans = [
        lazy(tables, name).filter(_of_flow(name, view)).select(low=pl.col("t_ns").min(), high=pl.col("t_ns").max())
        for name in ("segments", "instruments", "events")
    ]
    span = pl.concat(spans).collect()
    if span["low"].null_count() == span.height:
        raise ReportError(f"These tables hold no data of flow {view.flow_id} of run {view.run_id}.")
    low, high = int(span["low"].drop_nulls().sort()[0]), int(span["high"].drop_nulls().sort()[-1])
    return Flow(view, 0 if view.run_id else low, high, _heavier_direction(tables, view))


def _heavier_direction(tables: Tables, view: View) -> str:
    payload = lazy(tables, "segments").filter(_of_flow("segments", view))
    sums = payload.group_by("direction").agg(pl.col("payload_bytes").cast(pl.Int64).sum()).collect()
    ranked = sums.sort("payload_bytes")
    return str(ranked["direction"][-1]) if sums.height else "a2b"


def on_axis(frame: pl.DataFrame, flow: Flow, column: str = "t_ns", name: str = TIME) -> pl.DataFrame:
    """Replace the time `column` [ns] by `name`: seconds since the start of the flow, or, with utc, Unix time in ms.

    The result is sorted by time and limited to the interval of the view.
    """
    seconds = (pl.col(column) - flow.start_ns) / 1e9
    low, high = flow.span_s
    value = (pl.col(column) / 1e6).round(3) if flow.view.utc else seconds.round(6)
    cut = frame.filter(seconds.is_between(low, high)) if _is_cut(flow.view) else frame
    return cut.sort(column, maintain_order=True).with_columns(value.alias(name)).drop(column)


def minimum(frame: pl.DataFrame, column: str) -> float:
    """Return the minimum of a column; 0 if it has no value."""
    value = frame.select(pl.col(column).cast(pl.Float64).min()).item()
    return 0.0 if value is None else float(value)


def maximum(frame: pl.DataFrame, column: str) -> float:
    """Return the maximum of a column; 0 if it has no value."""
    value = frame.select(pl.col(column).cast(pl.Float64).max()).item()
    return 0.0 if value is None else float(value)


def _is_cut(view: View) -> bool:
    return view.from_s is not None or view.to_s is not None


def captured_flows(tables: Tables) -> list[View]:
    """Return a view of each captured or logged flow, the one with the most data first."""
    flows = read(tables, "flows", ["run_id", "flow_id", "data_direction", "a2b_unique_bytes", "b2a_unique_bytes"])
    size = pl.max_horizontal("a2b_unique_bytes", "b2a_unique_bytes")
    ranked = flows.filter(pl.col("run_id") == 0).sort(size, descending=True, maintain_order=True)["flow_id"].to_list()
    seen = set(ranked)
    for name in ("segments", "instruments"):
        rows = lazy(tables, name).filter(pl.col("run_id") == 0).select("flow_id").unique().collect()
        more = rows["flow_id"].sort().to_list()
        ranked += [flow_id for flow_id in more if flow_id not in seen]
        seen.update(more)
    return [View(flow_id=flow_id) for flow_id in ranked]


def runs_with_subject(tables: Tables, columns: Sequence[str]) -> pl.DataFrame:
    """Return `columns` of `runs`, and `subject`, the run's key in `findings`.

    The result has the flow under test of each run only; flows that share its path have no subject.
    """
    wanted = list(dict.fromkeys(["variant", "proxy", "role", *columns]))
    frame = read(tables, "runs", wanted).filter(pl.col("role") == "under_test")
    subjects = [schema.run_subject(v, p) for v, p in frame.select("variant", "proxy").iter_rows()]
    return frame.with_columns(subject=pl.Series(subjects, dtype=pl.String))


def uses_channel_model(tables: Tables, purpose: str) -> bool:
    """Return whether a channel model, not a captured trace, generated the channel of all runs of `purpose`."""
    runs = read(tables, "runs", ["purpose", "channel_mode"]).filter(pl.col("purpose") == purpose)
    return not runs.is_empty() and bool((runs["channel_mode"] == "model").all())


def predicts_flights(tables: Tables) -> bool:
    """Return whether the goodputs of section `what_if` are predictions for one flight, whose texts say how, and not
    means over the seeds."""
    rows = read(tables, "findings", ["section", "metric", "text"])
    goodputs = rows.filter((pl.col("section") == "what_if") & (pl.col("metric") == "goodput"))
    return bool((goodputs["text"].fill_null("") != "").any())


def uses_proxies(tables: Tables) -> bool:
    """Return whether a split proxy stands on the path of a run."""
    return bool((read(tables, "runs", ["proxy"])["proxy"] != "none").any())


def runs_with_rows(tables: Tables, name: str) -> frozenset[int]:
    """Return the run_id of each run with rows in table `name`."""

    def found() -> frozenset[int]:
        return frozenset(lazy(tables, name).select("run_id").unique().collect()["run_id"].to_list())

    return once(tables, ("runs_with_rows", name), found)
