"""Charts of channels: their data, their scales, and that they render."""

from __future__ import annotations

import polars as pl
import pytest
import vl_convert

from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.charts.channel import autocorrelation, run_lengths, skyline, states
from hindflight.toolkit.errors import ReportError

RUNS = pl.DataFrame(
    [
        {"series": series, "kind": kind, "length_pkts": length, "longer": longer}
        for series in ("trace", "gilbert")
        for kind in ("burst", "gap")
        for length, longer in ((0, 1.0), (1, 0.5), (4, 0.01), (9, 0.0 if series == "trace" else 1e-12))
    ]
)
LAGS = pl.DataFrame({"series": ["trace", "gilbert"], "lag_pkts": [1, 1], "autocorrelation": [0.5, 0.6]})
STATES = pl.DataFrame(
    {
        "quantity": ["rate_mbps", "rate_mbps", "delay_ms"], "start_s": [0.0, 1.0, 0.0], "end_s": [1.0, 2.0, 2.0],
        "low": [1.0, 0.0, 20.0], "mean": [2.0, 0.0, 25.0], "high": [3.0, 0.0, 30.0], "out": [0.0, 1.0, 0.0],
    }
)  # fmt: skip


STREET = pl.DataFrame(
    {"side": ["left", "right"], "start_m": [0.0, 30.0], "end_m": [20.0, 40.0], "height_m": [12.0, 30.0]}
)


def test_channel_charts_render() -> None:
    for chart in (run_lengths(RUNS), autocorrelation(LAGS), states(STATES), skyline(STREET)):
        svg = vl_convert.vegalite_to_svg(chart.to_dict(), vl_version=vega_lite_version())
        assert "<path" in svg


def test_zero_is_left_out_of_logarithmic_axes() -> None:
    spec = run_lengths(RUNS).to_dict()
    drawn = list(spec["datasets"].values())
    assert all("0,1.0" not in values and "1e-12" not in values and "4,0.01" in values for values in drawn)


def test_states_have_one_panel_per_quantity_with_a_common_time_axis() -> None:
    panels = states(STATES).to_dict()["vconcat"]
    assert len(panels) == 2
    for panel in panels:
        assert panel["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.0, 2.0]


def test_empty_frames_raise_report_error() -> None:
    with pytest.raises(ReportError):
        run_lengths(RUNS.filter(pl.col("length_pkts") == 0))
    with pytest.raises(ReportError):
        autocorrelation(LAGS.clear())
    with pytest.raises(ReportError):
        states(STATES.clear())


def test_panels_use_the_same_colours() -> None:
    only_gaps = RUNS.filter((pl.col("series") == "trace") | (pl.col("kind") == "gap"))
    spec = run_lengths(only_gaps).to_dict()
    scales = [layer["encoding"]["color"]["scale"] for panel in spec["hconcat"] for layer in panel["layer"]]
    assert all(scale == scales[0] for scale in scales)
    assert scales[0]["domain"] == ["trace", "gilbert"]
