"""Goodput over time and round-trip times of recorded runs, next to the captured flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import vl_convert

from benches.browser import program
from hindflight.reports import charts
from hindflight.reports.bundle import vega_lite_version
from hindflight.reports.charts import application_delay, distributions
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import table_from_rows
from tests.reports.accessibility import assert_drawn_and_accessible
from tests.reports.conftest import LOST, MSS, RTT_NS, SEGMENTS, Tables, flow_row, flow_segments, required, run_row
from tests.reports.test_charts import layer_rows, rows_of

END_TO_END, SPLIT = "reno", "reno, through gateway"


@pytest.fixture
def recorded() -> Tables:
    """The captured flow, a run without a proxy, and one whose second connection delivers a second later."""
    captured, alone, first = flow_segments(), flow_segments(3, start_ns=0), flow_segments(4, start_ns=0)
    second = [{**row, "leg": 1, "t_ns": int(str(row["t_ns"])) + 10**9} for row in first]
    rows = {
        "segments": [*captured, *alone, *first, *second],
        "flows": [flow_row(captured), flow_row(alone, 3), flow_row(first, 4)],
        "runs": [run_row(3, "reno", "none"), run_row(4, "reno", "gateway")],
    }
    return {name: table_from_rows(name, table) for name, table in rows.items()}


def rates(spec: dict[str, Any], label: str) -> list[tuple[float, float]]:
    return [(float(row["t"]), float(row["mbps"])) for row in layer_rows(spec, label)]


def test_goodput_over_time_counts_what_the_receiver_acknowledged(recorded: Tables) -> None:
    spec = charts.what_if_throughput(recorded).to_dict()
    alone, split = rates(spec, END_TO_END), rates(spec, SPLIT)
    assert rates(spec, distributions.CAPTURED) == alone  # the same packets
    width = alone[1][0] - alone[0][0]
    for series in (alone, split):
        octets = sum(mbps for _, mbps in series[:-2]) * width + series[-2][1] * (series[-1][0] - series[-2][0])
        assert octets * 1e6 / 8 == pytest.approx((SEGMENTS - 1) * MSS, rel=0.01)
    starts = [next(t for t, mbps in series if mbps > 0) for series in (alone, split)]
    assert starts[1] - starts[0] == pytest.approx(1, abs=width)


def test_round_trip_times_are_shares_of_all_samples_of_the_sender(recorded: Tables) -> None:
    spec = charts.what_if_rtt(recorded).to_dict()
    for label in (distributions.CAPTURED, END_TO_END, SPLIT):
        points = [(float(row["share"]), float(row["ms"])) for row in layer_rows(spec, label)]
        assert [share for share, _ in points] == [i / 2 for i in range(201)]
        assert points == sorted(points)
        assert points[100][1] == pytest.approx(RTT_NS / 1e6, rel=0.01)
    assert any("With a proxy" in note for note in spec["title"]["subtitle"])


@pytest.fixture
def lossy(recorded: Tables) -> Tables:
    """The same runs with their losses: on both connections of the split run."""
    rows = [*flow_losses(0), *flow_losses(3), *flow_losses(4), *({**row, "leg": 1} for row in flow_losses(4))]
    return {**recorded, "events": table_from_rows("events", rows)}


def flow_losses(run_id: int) -> list[dict[str, object]]:
    """Return the losses of segments 23 and 24, sent one after the other, 57 and 91, and of the retransmission of 91."""
    sent = flow_segments(run_id, start_ns=0)
    data = [row for row in sent if row["direction"] == "a2b"]
    lost = [row for row in data if not row["retransmission"] and row["seq"] in {1 + n * MSS for n in LOST}]
    again = [row for row in data if row["retransmission"] and row["seq"] == 1 + 91 * MSS]
    same = {"run_id": run_id, "kind": "loss", "direction": "a2b", "flow_id": 1}
    return [required("events", **same, t_ns=row["t_ns"], record=row["record"]) for row in (*lost, *again)]


def test_bursts_are_losses_in_a_row_in_order_of_sending(lossy: Tables) -> None:
    spec = charts.what_if_loss_bursts(lossy).to_dict()
    for label in (distributions.CAPTURED, END_TO_END, SPLIT):
        points = [(int(row["pkts"]), float(row["share"])) for row in layer_rows(spec, label)]
        # 23 and 24 are one burst; the retransmission of 91 follows others, so it is one of its own.
        assert points == [(1, 0), (1, 75), (2, 100), (10, 100)]
    assert f"{SPLIT} 8, at most 2 packets long" in spec["description"]


def test_losses_that_name_no_segment_are_said_to_be_in_no_burst(lossy: Tables) -> None:
    same = {"run_id": 0, "kind": "loss", "direction": "a2b", "flow_id": 1, "t_ns": 1}
    unplaced = table_from_rows("events", [required("events", **same, record=record) for record in (None, 10**9)])
    tables = {**lossy, "events": pa.concat_tables([lossy["events"], unplaced])}
    spec = charts.what_if_loss_bursts(tables).to_dict()
    note = f"{distributions.CAPTURED}: 2 losses name no segment, and no burst has them."
    assert note in spec["title"]["subtitle"]
    assert not any("no segment" in line for line in charts.what_if_loss_bursts(lossy).to_dict()["title"]["subtitle"])


@pytest.mark.chromium
@pytest.mark.skipif(program() is None, reason="Chromium is not installed")
def test_distributions_are_accessible_in_a_browser(lossy: Tables, tmp_path: Path) -> None:
    drawn = {"bursts": charts.what_if_loss_bursts(lossy), "rtt": charts.what_if_rtt(lossy)}
    assert_drawn_and_accessible(drawn, tmp_path / "distributions.html")


def test_without_a_recorded_loss_there_is_no_chart_of_bursts(recorded: Tables) -> None:
    with pytest.raises(ReportError, match="recorded a loss"):
        charts.what_if_loss_bursts(recorded)


def test_application_delays_are_boxes_over_the_seeds() -> None:
    delays_ms = [100, 200, 300, 400, 1000]
    runs = [
        {**run_row(number, "reno", "none"), "channel_mode": "resampled", "app_delay_p50_ns": ms * 500_000}
        | {"app_delay_p95_ns": ms * 1_000_000}
        for number, ms in enumerate(delays_ms, 1)
    ]
    captured = {**run_row(9, "reno", "none"), "channel_mode": "replayed", "app_delay_p95_ns": 5_000_000_000}
    tables = {"runs": table_from_rows("runs", [*runs, {**captured, "app_delay_p50_ns": 1}])}
    spec = charts.what_if_application_delay(tables).to_dict()
    for label, share in ((application_delay.MEDIAN, 0.5), (application_delay.LATE, 1.0)):
        (row,) = {tuple(sorted(row.items())) for row in layer_rows(spec, label)}
        box = {name: float(value) for name, value in row if name not in {"subject", "legend"}}
        assert [box[name] for name in ("low", "first", "middle", "third", "high")] == [
            share * ms for ms in delays_ms
        ], "quartiles of five values are values; the captured channel, replayed unchanged, is not one of them"
    without = {"runs": table_from_rows("runs", [run_row(1, "reno", "none")])}
    assert not charts.has_application_delay(without)
    with pytest.raises(ReportError):
        charts.what_if_application_delay(without)


def test_more_runs_than_can_be_told_apart_are_said_to_be_left_out(recorded: Tables, monkeypatch: Any) -> None:
    monkeypatch.setattr(distributions, "SHOWN", 1)
    spec = charts.what_if_throughput(recorded).to_dict()
    assert "1 more run is not drawn." in spec["title"]["subtitle"]
    assert len(spec["layer"]) == 2


@pytest.mark.parametrize("draw", [charts.what_if_rtt, charts.what_if_throughput])
def test_they_render_and_say_why_not(draw: Any, recorded: Tables) -> None:
    svg = vl_convert.vegalite_to_svg(draw(recorded).to_dict(), vl_version=vega_lite_version())
    assert "NaN" not in svg
    with pytest.raises(ReportError, match="recorded"):
        draw({"runs": recorded["runs"]})
    modelled = {**recorded, "flows": table_from_rows("flows", []), "segments": recorded["segments"]}
    assert rows_of(draw(modelled).to_dict(), draw(modelled).to_dict()["layer"][0]["data"]["name"])
