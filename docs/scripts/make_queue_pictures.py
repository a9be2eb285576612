"""Draws the pictures of docs/queues.md from whole runs of the engine.

`python -m docs.scripts.make_queue_pictures` runs replay/engine/examples/queues.rs and writes docs/images/queues-*.svg.
"""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import altair as alt
import polars as pl

from hindflight.reports.exports import write_chart

ROOT = Path(__file__).resolve().parents[2]
RUN = ("cargo", "run", "--quiet", "--release", "-p", "hindflight-engine", "--example", "queues")


def main() -> None:
    """Write both pictures."""
    text = subprocess.run(RUN, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rows = pl.read_csv(io.StringIO(text))
    delay = rows.filter(pl.col("picture") == "delay").with_columns(
        pl.col("series").str.split(", ").list.first().alias("discipline"),
        pl.when(pl.col("series").str.ends_with("marks")).then(pl.lit("marks")).otherwise(pl.lit("drops")).alias("by"),
    )
    lines = alt.Chart(delay, width=170, height=150).mark_line(strokeWidth=1.2)
    delays = lines.encode(
        x=alt.X("x:Q", title="time (s)"),
        y=alt.Y("y:Q", title="queueing delay (ms)").scale(type="symlog", constant=10),
        color=alt.Color("by:N", title="signals by"),
    ).facet(column=alt.Column("discipline:N", title=None, sort=["drop-tail", "RED", "PIE", "CoDel"]))
    title = "One greedy sack flow, 10 Mbit/s, 50 ms"
    write_chart(delays.properties(title=title, description=title), ROOT / "docs" / "images" / "queues-delay.svg")
    share = rows.filter(pl.col("picture") == "share").with_columns(
        pl.col("series").str.split(", ").list.first().alias("discipline"),
        pl.col("series").str.split(", ").list.last().alias("packets"),
    )
    curves = alt.Chart(share, width=260, height=150).mark_line(strokeWidth=1.5)
    shares = curves.encode(
        x=alt.X("x:Q", title="time (s)"),
        y=alt.Y("y:Q", title="mean rate so far (Mbit/s)"),
        color=alt.Color("packets:N", title="packets of"),
    ).facet(column=alt.Column("discipline:N", title=None, sort=["drop-tail", "deficit round robin"]))
    title = "Two greedy sack flows share 10 Mbit/s"
    write_chart(shares.properties(title=title, description=title), ROOT / "docs" / "images" / "queues-shares.svg")


if __name__ == "__main__":
    main()
