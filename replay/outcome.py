"""What a flow achieved, from its tables alone: the same code reads a capture and a replay of it.

Depends on the tables of hindflight.toolkit.schema, not on where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

SOURCES_BY_TRUST = ("replay", "tcp_info", "tcp_probe", "web100", "inferred")
"""Where a cwnd may come from, the sender's own account before our inference."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A flow's data transfer in numbers.

    `start_ns` is the first data segment, `duration_ns` reaches to `until`; `cwnd_bytes[i]` is the congestion window
    in force when data segment i left (NaN where not known), from `cwnd_source`. A record that stands for several
    segments (TSO, GRO) counts as these. `delivered_bytes` are the octets
    delivered in order to the receiving application; a capture at the sender shows those that were acknowledged.
    """

    start_ns: int
    duration_ns: int
    delivered_bytes: int
    data_segments: int
    retransmissions: int
    rtos: int
    cwnd_bytes: npt.NDArray[np.float64]
    cwnd_source: str

    @property
    def goodput_bps(self) -> float:
        """Octets delivered in order, x 8 / duration, in bit/s: column `goodput_bps` of `runs`."""
        return self.delivered_bytes * 8e9 / self.duration_ns


def transfer_span(segments: pa.Table, direction: str) -> tuple[int, int] | None:
    """Return the times (ns) of the first and the last new data segment of `direction`; None without data."""
    data = segments.filter(_is_data(segments, direction))
    data = data.filter(pc.invert(data["retransmission"]))
    if data.num_rows == 0:
        return None
    t_ns = data["t_ns"].to_numpy()
    return int(t_ns.min()), int(t_ns.max())


def measure(
    segments: pa.Table, events: pa.Table, instruments: pa.Table, direction: str, duration_ns: int
) -> Outcome | None:
    """Measure one flow over `duration_ns` from its first data segment.

    The tables hold this flow (and run, and leg) only. None if there is no data in `direction`.
    """
    span = transfer_span(segments, direction)
    if span is None:
        return None
    start_ns = span[0]
    end_ns = start_ns + duration_ns
    segments = segments.filter(pc.less_equal(segments["t_ns"], end_ns))
    data = segments.filter(_is_data(segments, direction))
    acks = segments.filter(pc.not_equal(segments["direction"].cast("string"), direction))
    first_octet = pc.min(data["seq"]).as_py()
    last_ack = pc.max(acks["ack"]).as_py() if acks.num_rows else None
    rtos = events.filter(
        pc.and_(pc.equal(events["kind"].cast("string"), "rto"), pc.less_equal(events["t_ns"], end_ns))
    ).num_rows
    segments_n = _segments_n(data)
    sent_ns = np.sort(np.repeat(data["t_ns"].to_numpy(), segments_n))
    cwnd, source = _cwnd_at(instruments, sent_ns)
    return Outcome(
        start_ns=start_ns,
        duration_ns=duration_ns,
        delivered_bytes=max(0, (last_ack or first_octet) - first_octet),
        data_segments=int(segments_n.sum()),
        retransmissions=int(_repeated_segments(data).sum()),
        rtos=rtos,
        cwnd_bytes=cwnd,
        cwnd_source=source,
    )


def segments_of_records(segments: pa.Table, direction: str) -> dict[int, int]:
    """Return how many segments each record of `direction` retransmitted, by its number, for those that did."""
    data = segments.filter(_is_data(segments, direction))
    repeated = _repeated_segments(data)
    (again,) = np.nonzero(repeated)
    return dict(zip(data["record"].take(again).to_pylist(), repeated[again].tolist(), strict=True))


def _segments_n(data: pa.Table) -> npt.NDArray[np.int64]:
    """Return the segments that each record stands for: one in tables of schema versions that do not say it."""
    return np.asarray(pc.fill_null(data["segments_n"], 1).to_numpy(), np.int64)


def _repeated_segments(data: pa.Table) -> npt.NDArray[np.int64]:
    """Return how many segments of each data record had an octet that was sent before; 0 where it is new data.

    What a record repeats may end within it, and new data follow.
    """
    seq, payload = (data[name].to_numpy().astype(np.int64) for name in ("seq", "payload_bytes"))
    segments_n = _segments_n(data)
    if not len(seq):
        return segments_n
    before = np.append(seq[0], np.maximum.accumulate(seq + payload)[:-1])
    repeated = np.clip(before - seq, 1, payload)
    size = -(-payload // segments_n)
    return np.where(data["retransmission"].to_numpy(zero_copy_only=False), -(-repeated // size), 0)


def _is_data(segments: pa.Table, direction: str) -> pa.ChunkedArray:
    return pc.and_(pc.equal(segments["direction"].cast("string"), direction), pc.greater(segments["payload_bytes"], 0))


def _cwnd_at(instruments: pa.Table, t_ns: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], str]:
    known = instruments.filter(pc.is_valid(instruments["cwnd_bytes"]))
    present = set(pc.unique(known["source"].cast("string")).to_pylist())
    for source in SOURCES_BY_TRUST:
        if source in present:
            rows = known.filter(pc.equal(known["source"].cast("string"), source)).sort_by("t_ns")
            at = np.searchsorted(rows["t_ns"].to_numpy(), t_ns, side="right") - 1
            cwnd = rows["cwnd_bytes"].to_numpy().astype(np.float64)[np.maximum(at, 0)]
            return np.where(at >= 0, cwnd, np.nan), source
    return np.full(len(t_ns), np.nan), "none"


def cwnd_error(a: Outcome, b: Outcome) -> float | None:
    """Return the median relative difference of two cwnd series at equal data-segment index; None without overlap.

    Compared by index, not by time: two sawteeth that drift apart by a fraction of a round trip are still the same.
    """
    n = min(len(a.cwnd_bytes), len(b.cwnd_bytes))
    if n == 0:
        return None
    ours, theirs = a.cwnd_bytes[:n], b.cwnd_bytes[:n]
    both = np.isfinite(ours) & np.isfinite(theirs) & (theirs > 0)
    if not both.any():
        return None
    return float(np.median(np.abs(ours[both] - theirs[both]) / theirs[both]))
