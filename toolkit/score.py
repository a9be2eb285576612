"""Compares the inferred congestion window with the kernel's, flow by flow.

One comparison per round trip: the transfer, from the first to the last time at which the kernel had data outstanding,
is cut into bins as long as the kernel's smoothed RTT at their start (at least 1 ms). At the end of each bin the
kernel's cwnd and the inferred one, each the value of its last row, are compared; the error is |inferred - kernel| /
kernel. Bins that end while the application or the receiver's window limited the sender
are left out: cwnd does not show then. So are bins without an estimate, but `coverage` counts them: it is the share of
the transfer's time, limited stretches left out, in which an estimate is offered. Reads `instruments`, writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hindflight.toolkit.errors import HindflightError

if TYPE_CHECKING:
    import pyarrow as pa

    from hindflight.toolkit.workspace import Workspace

TRUTHS = ("tcp_info", "web100", "tcp_probe")
"""Sources that report the kernel's cwnd."""

MIN_BIN_NS = 1_000_000

Times = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """One flow's inferred cwnd against one kernel log.

    Errors are shares of the kernel's cwnd, None where no bin could be compared; `bias` is the median with its sign.
    `rtts` counts the bins that are not limited, `compared` those of them with an estimate.
    """

    flow_id: int
    truth: str
    rtts: int
    compared: int
    median_error: float | None
    p95_error: float | None
    bias: float | None
    coverage: float


@dataclass(frozen=True, slots=True)
class _Series:
    """One source's rows in order of time; NaN where it offers no value."""

    t_ns: Times
    cwnd: Values
    srtt_ns: Values
    flight: Values
    limited: npt.NDArray[np.bool_]

    def at(self, times: Times) -> npt.NDArray[np.intp]:
        """Index of the row that is valid at each time; -1 before the first."""
        return np.searchsorted(self.t_ns, times, side="right") - 1


def score(workspace: Workspace) -> list[Score]:
    """Score every flow that has both an inferred cwnd and the kernel's.

    HindflightError: no flow has both.
    """
    import pyarrow.compute as pc

    columns = ["flow_id", "t_ns", "source", "phase", "cwnd_bytes", "srtt_ns", "flight_bytes", "app_limited"]
    data = workspace.table("instruments", columns, pc.field("run_id") == 0)
    keys = data.group_by(["flow_id", "source"]).aggregate([]).to_pylist()
    sources = {(int(key["flow_id"]), str(key["source"])) for key in keys}
    pairs = [(flow, truth) for flow, truth in sorted(sources) if truth in TRUTHS and (flow, "inferred") in sources]
    if not pairs:
        raise HindflightError(
            "no flow here has both an inferred cwnd and the kernel's",
            "ingest a capture of the sender together with its TCP_INFO or WEB100 log",
        )
    return [
        score_pair(flow, truth, _series(data, flow, "inferred"), _series(data, flow, truth)) for flow, truth in pairs
    ]


def score_pair(flow_id: int, truth_name: str, inferred: _Series, truth: _Series) -> Score:
    """Compare two series of one flow as the head of this file says."""
    start, end = _transfer(truth)
    edges = _bin_ends(truth, start, end)
    edges = edges[~truth.limited[truth.at(edges)]]
    kernel, estimate = truth.cwnd[truth.at(edges)], _values_at(inferred, edges)
    both = ~np.isnan(estimate) & (kernel > 0)
    errors = (estimate[both] - kernel[both]) / kernel[both]
    return Score(
        flow_id=flow_id,
        truth=truth_name,
        rtts=len(edges),
        compared=int(both.sum()),
        median_error=float(np.median(np.abs(errors))) if len(errors) else None,
        p95_error=float(np.quantile(np.abs(errors), 0.95)) if len(errors) else None,
        bias=float(np.median(errors)) if len(errors) else None,
        coverage=_coverage(inferred, truth, start, end),
    )


def _transfer(truth: _Series) -> tuple[int, int]:
    """From when to when the kernel had data outstanding; all of the log where it does not say."""
    busy = np.flatnonzero(np.isnan(truth.flight) | (truth.flight > 0))
    if not len(busy):
        return int(truth.t_ns[0]), int(truth.t_ns[0])
    last = min(int(busy[-1]) + 1, len(truth.t_ns) - 1)
    return int(truth.t_ns[busy[0]]), int(truth.t_ns[last])


def _bin_ends(truth: _Series, start: int, end: int) -> Times:
    ends: list[int] = []
    time = start
    while True:
        srtt_ns = truth.srtt_ns[truth.at(np.array([time]))[0]]
        time += MIN_BIN_NS if np.isnan(srtt_ns) else max(int(srtt_ns), MIN_BIN_NS)
        if time > end:
            return np.array(ends, np.int64)
        ends.append(time)


def _values_at(series: _Series, times: Times) -> Values:
    at = series.at(times)
    return np.where(at >= 0, series.cwnd[at], np.nan)


def _coverage(inferred: _Series, truth: _Series, start: int, end: int) -> float:
    """Share of the unlimited time from start to end in which the inferred series has a value."""
    times = np.unique(np.concatenate([inferred.t_ns, truth.t_ns, [start, end]]))
    times = times[(times >= start) & (times <= end)]
    lengths = np.diff(times)
    free = ~truth.limited[truth.at(times[:-1])]
    offered = ~np.isnan(_values_at(inferred, times[:-1]))
    total = int(lengths[free].sum())
    return float(lengths[free & offered].sum() / total) if total else 0.0


def _series(data: pa.Table, flow_id: int, source: str) -> _Series:
    import pyarrow.compute as pc

    mine = pc.and_(pc.equal(data["flow_id"], flow_id), pc.equal(data["source"].cast("string"), source))
    rows = data.filter(mine).sort_by("t_ns")
    app_limited = pc.fill_null(rows["app_limited"], False).to_numpy()
    limited = pc.equal(rows["phase"].cast("string"), "limited").to_numpy()
    return _Series(
        t_ns=rows["t_ns"].to_numpy(),
        cwnd=_floats(rows["cwnd_bytes"]),
        srtt_ns=_floats(rows["srtt_ns"]),
        flight=_floats(rows["flight_bytes"]),
        limited=app_limited | limited,
    )


def _floats(column: Any) -> Values:
    values: Values = column.cast("float64").to_numpy()
    return values
