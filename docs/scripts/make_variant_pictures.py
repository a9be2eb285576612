"""Draws what a plot of the window does not show: supertcp's segments and a ladder diagram, peach next to cubic.

`python -m docs.scripts.make_variant_pictures` writes docs/images/variants/{supertcp-segments,peach-priority}.svg.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import polars as pl
import pyarrow.compute as pc

from docs.scripts.one_flow import PACKET_BITS, SMSS_BYTES, Row, run_flow
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.reports.exports import write_chart
from hindflight.reports.style import BLUE, SHADE

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images" / "variants"
PACKETS_PER_S = 1000
RATE_BPS = PACKETS_PER_S * PACKET_BITS
RTT_S = 0.1
EXPECTED = "expected"
GEO_BPS, GEO_S, SPAN_S = 10e6, 120.0, 4.0
GEO_QUEUES: dict[str, dict[str, Any]] = {
    "drop_tail": {"kind": "drop_tail", "limit_pkts": 200},
    "priority, dummy segments after data": {"kind": "priority", "limit_pkts": 200, "classes": [[0]]},
}


def tables(seconds: float, variant: str, flow: dict[str, Any], losses: list[int]) -> dict[str, Any]:
    """Run one flow over one link of 1000 packets a second and 100 ms there and back, which loses packets by number."""
    positions = [number - 1 for number in losses]
    trace = {"kind": "trace", "mode": "replayed", "positions": positions, "known_pkts": 1 << 20}
    loss = {"loss": trace} if losses else {}
    half_ns = round(RTT_S * 5e8)
    hop = {"rate_bps": RATE_BPS, "delay_ns": half_ns, "queue": {"kind": "drop_tail", "limit_pkts": 200}}
    return run_flow(seconds, {"variant": variant, **flow}, {**hop, **loss}, {"delay_ns": half_ns})


def sent(found: dict[str, Any]) -> list[tuple[float, float]]:
    """Return when each data segment was sent, and its number from 1 on; a retransmission has two rows."""
    data = found["segments"].filter(pc.greater(found["segments"]["payload_bytes"], 0))
    first = min(data["seq"].to_pylist())
    numbers = ((seq - first) / SMSS_BYTES + 1 for seq in data["seq"].to_pylist())
    return sorted(zip((t / 1e9 for t in data["t_ns"].to_pylist()), numbers, strict=True))


def supertcp() -> list[Row]:
    """Segments sent, of a window of twenty, around the losses of 41 to 43; recovery takes two round trips."""
    own = {"satellite_rate": 20 * PACKET_BITS / RTT_S, "satellite_rtt": RTT_S, "connections": 1}
    flow = {"params": own, "stack": {"delayed_ack": False, "handshake": False}}
    rows = [("engine", t, n) for t, n in sent(tables(0.5, "supertcp", flow, [41, 42, 43]))]
    step_s = 1 / PACKETS_PER_S
    round_s = RTT_S + step_s
    # Three windows, then the first duplicate (of 44): the first retransmission; each duplicate releases a new segment.
    expected = [
        (round_s * flight + step_s * (flight > 0) * n, 20 * flight + n + 1) for flight in range(3) for n in range(20)
    ]
    reported_s = 3 * round_s + 3 * step_s
    expected += [(reported_s, 41), *((reported_s + n * step_s, 61 + n) for n in range(17))]
    # Its ACK shows the gap: two more retransmissions and a new segment, then one for each that arrives.
    recovered_s = reported_s + round_s
    expected += [(recovered_s, 42), (recovered_s, 43), *((recovered_s + n * step_s, 78 + n) for n in range(18))]
    return [*rows, *((EXPECTED, t, n) for t, n in expected)]


def peach(queue: dict[str, Any]) -> list[Row]:
    """Goodput by spans of time of cubic, and of peach that comes 20 s later, behind `queue` of a GEO link."""
    link = {"rate_bps": GEO_BPS, "delay_ns": 125_000_000}
    common = {"profile": "linux", "stack": {"receive_buffer_bytes": 1 << 24}}
    config = {
        "duration_ns": round(1e9 * GEO_S),
        "path": {
            "nodes": ["sender", "receiver"],
            "links": [{"name": "geo", "forward": {**link, "queue": queue}, "reverse": link}],
        },
        "flows": [
            {"name": "cubic", "variant": "cubic", **common},
            {"name": "peach", "variant": "peach", "start_ns": 20_000_000_000, **common},
        ],
    }
    found = run_configurations([Configuration(config, 1, recorded=True)])["instruments"]
    found = found.filter(pc.equal(found["source"], "replay"))
    rows: list[Row] = []
    for flow, series in enumerate(("cubic", "peach"), 1):
        own = found.filter(pc.equal(found["flow_id"], flow))
        t_s, snd_una = own["t_ns"].to_numpy() / 1e9, own["snd_una"].to_numpy().astype(np.int64)
        edges = np.arange(0.0, GEO_S + SPAN_S, SPAN_S)
        places = np.searchsorted(t_s, edges, side="right") - 1
        octets = np.where(places < 0, 0, snd_una[np.maximum(places, 0)] - snd_una[0])
        rows += [
            (series, float(t), float(mbps)) for t, mbps in zip(edges[1:], 8e-6 * np.diff(octets) / SPAN_S, strict=True)
        ]
    return rows


def draw_peach() -> None:
    """Write the picture of peach: a panel per queue."""
    frames = []
    for name, queue in GEO_QUEUES.items():
        frame = pl.DataFrame(peach(queue), schema=["series", "x", "y"], orient="row")
        frames.append(frame.with_columns(queue=pl.lit(name)))
    title = "peach joins cubic after 20 s: goodput by spans of 4 s"
    lines = alt.Chart(pl.concat(frames), width=280, height=180).mark_line(interpolate="step-before", strokeWidth=1.5)
    chart = lines.encode(
        x=alt.X("x:Q", title="time (s)"),
        y=alt.Y("y:Q", title="Mbit/s"),
        color=alt.Color("series:N", title=None),
        column=alt.Column("queue:N", title=None),
    )
    write_chart(chart.properties(title=title, description=title), IMAGES / "peach-priority.svg")


def draw(name: str, title: str, y: str, rows: list[Row]) -> None:
    """Write one picture: expected values as wide discs behind the points of the engine."""
    frame = pl.DataFrame(rows, schema=["series", "x", "y"], orient="row")
    expected = frame["series"].str.starts_with(EXPECTED)
    axes = {"x": alt.X("x:Q", title="time (s)"), "y": alt.Y("y:Q", title=y)}
    names = [EXPECTED, *frame.filter(~expected)["series"].unique(maintain_order=True)]
    colour = alt.Color("series:N", title=None, scale=alt.Scale(domain=names, range=[SHADE, BLUE]))
    wide = alt.Chart(frame.filter(expected), width=480, height=240).mark_circle(size=70, opacity=1)
    points = alt.Chart(frame.filter(~expected), width=480, height=240).mark_circle(size=12, opacity=1)
    chart = alt.layer(wide.encode(**axes, color=colour), points.encode(**axes, color=colour))
    write_chart(chart.properties(title=title, description=title), IMAGES / f"{name}.svg")


def main() -> None:
    """Write all pictures."""
    draw_peach()
    draw("supertcp-segments", "supertcp: a window of 20, 41 to 43 are lost", "segment", supertcp())


if __name__ == "__main__":
    main()
