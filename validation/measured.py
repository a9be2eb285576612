"""Numbers for one flow up to its end, the kernel's and the engine's alike: the same questions to different records.

Depends on the recorded run and the tables of the engine; does not compare. Windows are in packets of the flow's SMSS.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from validation.recorded import KernelFlow, is_new

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Integers = npt.NDArray[np.int64]
    Floats = npt.NDArray[np.float64]

QUANTILES = (0.25, 0.50, 0.75)
"""Of cwnd over time."""

CA_STATES = ("open", "disorder", "cwr", "recovery", "loss")
"""TCP_INFO's ca_state by number (Linux, include/net/tcp.h: enum tcp_ca_state)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One flow. Arrays run over its data packets, retransmissions included, in the order of sending.

    `segment[i]` is the number, from 0, of the segment that packet i carries, in the order of first sending: it shows
    packets apart where the two sides cut the octets differently. `cwnd_pkts[i]` is the window after packet i left (NaN
    where no record follows) and `state[i]` what the sender did then; `cwnd_quantiles` are weighted by time. The last
    three are None where the kernel's own account is missing.
    """

    goodput_bps: float
    retransmissions: int
    rtos: int
    t_ns: Integers
    segment: Integers
    fate: list[str]
    cwnd_pkts: Floats | None
    state: list[str] | None
    cwnd_quantiles: tuple[float, ...] | None


def measure_kernel(flow: KernelFlow) -> Measured:
    """Measure the recorded flow up to its end: the drain behind it does not count."""
    packets, info = flow.packets, flow.tcp_info
    n = int(np.searchsorted(packets.t_ns, flow.end_ns, side="right"))
    cwnd, state, quantiles, rtos = None, None, None, flow.rtos
    if info is not None:
        t_ns = info["t_ns"]
        window = info["snd_cwnd"].astype(np.float64)
        at, cwnd = _after_each_packet(n, info["data_segs_out"], window)
        state = [CA_STATES[code] for code in info["ca_state"][at]]
        quantiles = held_quantiles(t_ns, window, flow.start_ns, flow.end_ns)
        rtos = int(info["total_rto"][t_ns <= flow.end_ns][-1])
    return Measured(
        goodput_bps=flow.goodput_bps,
        retransmissions=int((~is_new(packets.seq[:n], packets.end[:n])).sum()),
        rtos=rtos,
        t_ns=packets.t_ns[:n],
        segment=segment_numbers(packets.seq[:n], packets.end[:n]),
        fate=packets.fate[:n],
        cwnd_pkts=cwnd,
        state=state,
        cwnd_quantiles=quantiles,
    )


def measure_engine(flow: KernelFlow, tables: Mapping[str, pa.Table], number: int, syn_ns: int) -> Measured:
    """Measure flow `number` of the engine run of that number, which ended with the flow; the first SYN left at
    `syn_ns` of its clock."""
    import pyarrow.compute as pc

    own = {
        name: table.filter(pc.and_(pc.equal(table["run_id"], number), pc.equal(table["flow_id"], number)))
        for name, table in tables.items()
    }
    run = own["runs"].to_pylist()[0]
    segments = own["segments"]
    data = segments.filter(
        pc.and_(pc.equal(segments["direction"].cast("string"), "a2b"), pc.greater(segments["payload_bytes"], 0))
    ).sort_by("record")
    states = own["instruments"]
    states = states.filter(pc.equal(states["source"].cast("string"), "replay"))
    seq = data["seq"].to_numpy()
    window = states["cwnd_bytes"].to_numpy() / flow.smss_bytes
    t_ns, states_ns = data["t_ns"].to_numpy() - syn_ns, states["t_ns"].to_numpy() - syn_ns
    # A row holds until the next one; states without a change have no row.
    at = np.searchsorted(states_ns, t_ns, side="right") - 1
    phases = states["phase"].cast("string").to_pylist()
    return Measured(
        goodput_bps=engine_goodput_bps(flow, run["delivered_bytes"]),
        retransmissions=run["retransmissions"],
        rtos=run["rtos"],
        t_ns=t_ns,
        segment=segment_numbers(seq, seq + data["payload_bytes"].to_numpy()),
        fate=_fates(data, own["events"]),
        cwnd_pkts=window[at],
        state=[phases[i] for i in at],
        cwnd_quantiles=held_quantiles(states_ns, window, flow.start_ns, flow.end_ns),
    )


def engine_goodput_bps(flow: KernelFlow, delivered_bytes: int) -> float:
    """Return the goodput in bit/s of an engine run of `flow` that delivered so many octets until the flow's end."""
    return delivered_bytes * 8e9 / (flow.end_ns - flow.start_ns)


def segment_numbers(seq: Integers, end: Integers) -> Integers:
    """Return, packet by packet, the number of its segment in the order of first sending."""
    starts = seq[is_new(seq, end)]
    return np.searchsorted(starts, seq, side="right") - 1


def _fates(data: pa.Table, events: pa.Table) -> list[str]:
    import pyarrow.compute as pc

    losses = events.filter(pc.equal(events["kind"].cast("string"), "loss"))
    cause = dict(zip(losses["record"].to_pylist(), losses["cause"].cast("string").to_pylist(), strict=True))
    return [cause.get(record, "delivered") for record in data["record"].to_pylist()]


def _after_each_packet(n: int, sent_so_far: Integers, window: Floats) -> tuple[Integers, Floats]:
    """Return, for each of `n` packets, the first record at or after it by the sender's own count, and its window.

    The index of a packet that no record follows is that of the last record; its window is NaN.
    """
    at = np.searchsorted(sent_so_far, np.arange(1, n + 1), side="left")
    last = len(sent_so_far) - 1
    clipped = np.minimum(at, last)
    return clipped, np.where(at <= last, window[clipped], np.nan)


def held_quantiles(t_ns: Integers, values: Floats, start_ns: int, end_ns: int) -> tuple[float, ...]:
    """Return QUANTILES of a value that holds from each time to the next, weighted by time within the span."""
    edges = np.clip(np.append(t_ns, end_ns), start_ns, end_ns)
    weights = np.diff(edges)
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    return tuple(float(values[order[np.searchsorted(share, q)]]) for q in QUANTILES)
