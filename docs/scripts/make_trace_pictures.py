"""Draws the pictures of the pages on channel traces: extracted, synthesised, converted, replayed.

`python -m docs.scripts.make_trace_pictures` writes docs/images/channels/*.svg; look at each before you commit it.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from docs.scripts.make_channel_pictures import FOLDER, SECOND, frame
from hindflight.channels.extraction.cross_traffic import no_cross_traffic
from hindflight.channels.formats import read_channel, write_channel
from hindflight.channels.intervals import read_states
from hindflight.channels.models.synth import Extent, read_model, synthesise, synthesise_trace
from hindflight.replay.experiment.sensitivity import WAYS, measure_sensitivity
from hindflight.replay.scenario.model import load_scenario
from tests.reference.shared_link import VIDEO, extracted, flown, telemetry

RED, INK = "#d62728", "#22262b"


def extract() -> Any:
    """Rate of a link that steps down, as extracted from a capture, with and without the datagrams next to the flow."""
    steps = [{"at": "0 s"}, {"at": "15 s", "rate": "5 Mbit/s", "delay": "60 ms"}]
    link = {"channel": {"model": "handover", "steps": steps}, "queue": "1000 pkts"}
    tables = flown(link, datagrams=[VIDEO], flow={"receive_buffer": "160 KiB"})
    rows: list[dict[str, Any]] = []
    for case, cross_traffic in (("other traffic counted", telemetry()), ("only the flow", no_cross_traffic())):
        for row in extracted(tables, cross_traffic).channel.to_pylist():
            if row["kind"] == "interval" and not row["lost"] and row["rate_bps"]:
                ends = (row["t_ns"], row["end_ns"])
                rows += [{"t": t / SECOND, "rate": row["rate_bps"] / 1e6, "case": case} for t in ends]
    rows += [{"t": t, "rate": r, "case": "truth"} for t, r in ((0, 8), (15, 8), (15, 5), (30, 5))]
    x, y = alt.X("t:Q", title="Time [s]"), alt.Y("rate:Q", title="Rate [Mbit/s]", scale=alt.Scale(domain=[0, 10]))
    colours = alt.Scale(domain=["truth", "other traffic counted", "only the flow"], range=[INK, "#2f93cc", RED])
    colour = alt.Color("case:N", title=None, scale=colours)
    dash = alt.StrokeDash("case:N", title=None, scale=alt.Scale(domain=colours.domain, range=[[2, 3], [1, 0], [6, 3]]))
    lines = alt.Chart(frame(rows)).mark_line().encode(x=x, y=y, color=colour, strokeDash=dash, detail="case:N")
    return lines.properties(width=520, height=200)


def synth() -> Any:
    """A minute of some models: when everything is lost."""
    street = {"satellite": {"azimuth": 60.0, "elevation": 38.0}, "speed": "5 m/s"}
    good, bad = (
        {"mean_length": "40 m", "direct_db": 0.0, "multipath_db": -10.0},
        {"mean_length": "15 m", "multipath_db": -15.0},
    )
    models: list[tuple[str, dict[str, Any]]] = [
        ("gilbert_elliott_time", {"mean_good": "4 s", "mean_bad": "500 ms"}),
        ("street", street),
        ("lms", {"states": [good, bad], "margin_db": 8.0, "speed": "5 m/s", "step": "20 ms"}),
        ("uav", {}),
        ("slots", {"gap": "400 ms", "queued": "lost"}),
    ]
    rows = []
    for name, settings in models:
        trace = synthesise_trace(read_model(name, settings), seed=4, extent=Extent(span_ns=60 * SECOND))
        for state in read_states(trace.channel, "a2b", name):
            what = "lost" if state.lost else "passes"
            rows.append({"model": name, "a": state.start_ns / SECOND, "b": state.end_ns / SECOND, "what": what})
    x = alt.X("a:Q", title="Time [s]", scale=alt.Scale(domain=[0, 60]))
    y = alt.Y("model:N", title=None, sort=[name for name, _ in models])
    colour = alt.Color("what:N", title=None, scale=alt.Scale(domain=["passes", "lost"], range=["#d5efe4", RED]))
    return (
        alt.Chart(frame(rows))
        .mark_bar(height=22)
        .encode(x=x, x2="b:Q", y=y, color=colour)
        .properties(width=520, height=170)
    )


def interop() -> Any:
    """The rate of a trace, and what it is after a way through Mahimahi's format, in spans of 100 ms."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        first, again = Path(folder) / "a.parquet", Path(folder) / "a.down"
        settings = {"rate_low": "2 Mbit/s", "rate_high": "30 Mbit/s", "slot": "2 s", "gap": "200 ms"}
        synthesise(read_model("slots", settings), first, seed=6, extent=Extent(span_ns=20 * SECOND))
        write_channel(read_channel(first), again)
        for path, case in ((first, "channel table"), (again, "Mahimahi trace of it")):
            sent = np.zeros(20_000)
            for state in read_states(read_channel(path).channel, "a2b", str(path)):
                sent[state.start_ns // 10**6 : state.end_ns // 10**6] = state.rate_bps or 0.0
            means = sent.reshape(-1, 100).mean(axis=1) / 1e6
            rows += [{"t": i / 10, "rate": float(mean), "case": case} for i, mean in enumerate(means)]
    x, y = alt.X("t:Q", title="Time [s]"), alt.Y("rate:Q", title="Rate [Mbit/s]")
    base = alt.Chart(frame(rows)).encode(x=x, y=y, color=alt.Color("case:N", title=None))
    line = base.transform_filter("datum.case == 'channel table'").mark_line(interpolate="step-after")
    point = base.transform_filter("datum.case != 'channel table'").mark_point(size=14, filled=True)
    return alt.layer(line, point).properties(width=520, height=180)


SCENARIO = """name = "spread"
duration = "60 s"
path = ["sender", "receiver"]
flow = { receive_buffer = "1 MiB" }
compare = { variants = ["newreno", "cubic", "westwood-plus"], seeds = 12 }
[[links]]
name = "up"
rate = "8 Mbit/s"
delay = "60 ms"
queue = "60 pkts"
loss = { model = "trace", file = "loss.parquet" }
"""


def trace() -> Any:
    """Goodput of three variants over one trace, by the way in which its losses are replayed."""
    from hindflight.replay.controllers.base import variant_names

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        model = read_model("gilbert_elliott", {"mean_loss": 0.004, "mean_burst": 6.0})
        synthesise(model, path / "loss.parquet", seed=3, extent=Extent(packets=20_000, spacing_ns=3_000_000))
        (path / "s.toml").write_text(SCENARIO)
        found = measure_sensitivity(load_scenario(path / "s.toml", variant_names()), path)
    rows = [
        {"variant": o.variant, "way": o.way, "mbps": o.goodput_bps / 1e6,
         "low": (o.low_bps or o.goodput_bps) / 1e6, "high": (o.high_bps or o.goodput_bps) / 1e6}
        for o in found.outcomes
    ]  # fmt: skip
    y = alt.Y("way:N", title=None, sort=list(WAYS))
    x = alt.X("mbps:Q", title="Goodput [Mbit/s]; bars: 95 % of the mean over seeds", scale=alt.Scale(zero=False))
    colour = alt.Color("variant:N", title=None)
    base = alt.Chart(frame(rows)).encode(y=y, color=colour, yOffset="variant:N")
    bars = base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q")
    return alt.layer(bars, base.mark_point(filled=True, size=60).encode(x=x)).properties(width=520, height=200)


def main() -> None:
    """Write every picture."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in (extract, synth, interop, trace):
        draw().save(FOLDER / f"{draw.__name__}.svg")


if __name__ == "__main__":
    main()
