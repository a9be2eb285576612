"""Draws the picture of docs/scenario.md, "Trees": what each flow of docs/scenarios/swarm.toml delivers in each second.

`python -m docs.scripts.make_tree_picture` writes docs/images/scenario-tree.svg.
"""

from __future__ import annotations

from pathlib import Path

import altair as alt
import polars as pl

import hindflight as hf
from hindflight.reports.exports import write_chart

DOCS = Path(__file__).resolve().parents[1]
VARIANT = "cubic"
TITLE = "Three flows over one relay; radio-1 is down at 20 s and at 40 s"


def rates() -> pl.DataFrame:
    """Return the acknowledged rate of each flow (Mbit/s) in each second (s) of the run of VARIANT."""
    tables = hf.replay(DOCS / "scenarios" / "swarm.toml")
    runs = tables.runs.filter(pl.col("compared_variant") == VARIANT).select("run_id", "flow_id", "flow")
    states = tables.instruments.filter(pl.col("source") == "replay").join(runs, on=["run_id", "flow_id"])
    second = (pl.col("t_ns").cast(pl.Int64) // 1_000_000_000).alias("time_s")
    last = states.group_by("flow", second).agg(pl.col("snd_una").max()).collect()
    grid = last.select("flow").unique().join(pl.DataFrame({"time_s": range(60)}), how="cross")
    counted = grid.join(last, on=["flow", "time_s"], how="left").sort("flow", "time_s")
    octets = pl.col("snd_una").forward_fill().over("flow").fill_null(0)
    return counted.with_columns(((octets - octets.shift(1).over("flow")).fill_null(0) * 8e-6).alias("mbps"))


def main() -> None:
    """Draw the picture."""
    chart = (
        alt.Chart(rates())
        .mark_line(interpolate="step")
        .encode(
            x=alt.X("time_s:Q", title="time (s)"),
            y=alt.Y("mbps:Q", title="acknowledged (Mbit/s)"),
            color=alt.Color("flow:N", title=None),
        )
        .properties(width=620, height=240, title=TITLE, description=TITLE)
    )
    write_chart(chart, DOCS / "images" / "scenario-tree.svg")


if __name__ == "__main__":
    main()
