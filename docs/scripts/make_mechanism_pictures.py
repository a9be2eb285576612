"""Draws the pictures of docs/mechanisms.md: complete runs of the engine compared with expected values.

`python -m docs.scripts.make_mechanism_pictures` writes docs/images/mechanisms-*.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import polars as pl
import pyarrow.compute as pc

from docs.scripts.one_flow import PACKET_BITS, SMSS_BYTES, Row, run_flow
from hindflight.reports.exports import write_chart

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
EXPECTED = "expected"


def tables(seconds: float, variant: str = "newreno", **parts: Any) -> dict[str, Any]:
    """Run one flow over one link of 50 ms each way; `parts`: stack, forward, schedule (both ways)."""
    both = {"delay_ns": 50_000_000, "schedule": parts.get("schedule", [])}
    flow = {"variant": variant, "stack": parts.get("stack", {})}
    return run_flow(seconds, flow, {**both, **parts.get("forward", {})}, both)


def sent_s(found: dict[str, Any]) -> list[float]:
    """Return when each data segment was sent."""
    data = found["segments"].filter(pc.greater(found["segments"]["payload_bytes"], 0))
    return sorted(t / 1e9 for t in data["t_ns"].to_pylist())


def delayed_acks() -> list[Row]:
    """Segments per round trip of slow start."""
    start = {"handshake": False, "initial_window_pkts": 2, "delayed_ack_timeout_ns": 1_000_000}
    rows: list[Row] = []
    for series, stack in (
        ("never", {"delayed_ack": False}),
        ("after slow start", {"delayed_ack_after_slow_start": True}),
        ("always", {}),
    ):
        times = sent_s(tables(0.95, stack={**start, **stack}))
        rows += [(series, n, sum(n / 10 <= t < (n + 1) / 10 for t in times)) for n in range(9)]
    rows += [(f"{EXPECTED}: twofold", n, 2.0 * 2**n) for n in range(9)]
    window = 2
    for n in range(9):
        rows.append((f"{EXPECTED}: by half", n, window))
        window += (window + 1) // 2
    return rows


def quick_start() -> list[Row]:
    """Segments sent since the SYN, over a path of 100 ms that grants 1.28 Mbit/s."""
    rows: list[Row] = []
    for series, stack in (("quick_start of 2 Mbit/s", {"quick_start_bps": 2e6}), ("without", {})):
        times = sent_s(tables(0.36, stack={"delayed_ack": False, **stack}))
        rows += [(series, t, n) for n, t in enumerate(times, 1)]
    window = int(1.28e6 * 0.1 / PACKET_BITS)
    paced = [0.1 + n * PACKET_BITS / 1.28e6 for n in range(window)]
    echoed = [t + 0.1 for t in paced for _ in range(2)]
    expected = [*paced, *echoed, *(t + 0.1 for t in echoed for _ in range(2))]
    return [*rows, *((EXPECTED, t, n) for n, t in enumerate(expected, 1) if t < 0.36)]


SLOW = {"rate_bps": 832e3, "queue": {"kind": "drop_tail", "limit_pkts": 60}}


def handover() -> list[Row]:
    """cwnd over a path that becomes longer after 4 s."""
    longer = [{"at_ns": 4_000_000_000, "delay_ns": 250_000_000}]
    rows: list[Row] = []
    for rule in ("off", "slow_start", "jump"):
        stack = {"initial_ssthresh_pkts": 8, "handover_adaptation": rule}
        found = tables(12, forward=SLOW, schedule=longer, stack=stack)["instruments"]
        cwnd = zip(found["t_ns"].to_pylist(), found["cwnd_bytes"].to_pylist(), strict=True)
        rows += [(rule, t / 1e9, octets / SMSS_BYTES) for t, octets in cwnd if octets is not None and t > 2e9]
    product = [(EXPECTED + ": product", t, 832e3 * rtt_s / PACKET_BITS + 1) for t, rtt_s in ((2, 0.1), (4.2, 0.1))]
    return [*rows, *product, *((EXPECTED + ": product", t, 832e3 * 0.5 / PACKET_BITS + 1) for t in (4.25, 12))]


def freezing() -> list[Row]:
    """Segments sent, over a path that is down from 2 to 5 s."""
    down = [{"at_ns": 2_000_000_000, "outage": True}, {"at_ns": 5_000_000_000, "outage": False}]
    rows: list[Row] = []
    for variant in ("freeze-tcp", "sack"):
        stack = {"initial_ssthresh_pkts": 20}
        found = tables(9, variant, forward=SLOW, schedule=down, stack=stack)
        times = sent_s(found)
        rows += [(variant, t, n) for n, t in enumerate(times, 1) if n % 5 == 0]
    rate = 832e3 / PACKET_BITS
    # The first ACK comes at 0.21 s; the closed window at 1.55 s; all is acknowledged when it opens at 5.05 s.
    frozen = 20 + (1.55 - 0.21) * rate
    thawed = frozen + 21
    knees = [(0.3, 20 + 0.09 * rate), (1.55, frozen), (5.05, frozen), (5.05, thawed), (5.16, thawed)]
    return [*rows, *((EXPECTED, t, n) for t, n in [*knees, (9.0, thawed + 3.84 * rate)])]


def draw(name: str, title: str, x: str, y: str, rows: list[Row], log: bool = False) -> None:
    """Write one picture: expected values as a broad grey line behind those of the engine."""
    frame = pl.DataFrame(rows, schema=["series", "x", "y"], orient="row")
    expected = frame["series"].str.starts_with(EXPECTED)
    scale = alt.Scale(type="log") if log else alt.Scale()
    axes = {"x": alt.X("x:Q", title=x), "y": alt.Y("y:Q", title=y, scale=scale)}
    grey = alt.Chart(frame.filter(expected), width=420, height=200).mark_line(strokeWidth=6, color="#bbb")
    lines = alt.Chart(frame.filter(~expected), width=420, height=200).mark_line(strokeWidth=1.5)
    chart = alt.layer(
        grey.encode(**axes, detail="series:N"),
        lines.encode(**axes, color=alt.Color("series:N", title="engine (grey: expected)")),
    )
    write_chart(chart.properties(title=title, description=title), IMAGES / f"mechanisms-{name}.svg")


def main() -> None:
    """Write all pictures."""
    title = "ACKs delayed in slow start, RTT 100 ms"
    draw("delayed-acks", title, "round trip", "segments sent in it", delayed_acks(), log=True)
    draw("quick-start", "Handshake and first round trips, RTT 100 ms", "time (s)", "segments sent", quick_start())
    title = "832 kbit/s, RTT from 100 to 500 ms after 4 s"
    draw("handover", title, "time (s)", "cwnd (segments)", handover())
    draw("freezing", "832 kbit/s, down from 2 to 5 s", "time (s)", "segments sent", freezing())


if __name__ == "__main__":
    main()
