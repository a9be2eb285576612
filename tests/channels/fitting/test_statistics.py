"""Statistics of `channel show`, compared with traces whose statistics are known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hindflight.channels.fitting.statistics import Statistic, chart_data, statistics
from hindflight.channels.intervals import State, tables
from hindflight.channels.models.synth import Extent, read_model, synthesise_trace
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError
from tests.channels.formats.test_formats import MS, packets, states


def named(rows: list[Statistic]) -> dict[str, float | int | None]:
    return {row.name: row.value for row in rows}


def test_losses_are_counted_by_runs() -> None:
    found = named(statistics(packets({3, 4, 10, 90}, 100), "x"))
    assert found["packets at the loss stage"] == 100
    assert found["loss rate"] == 0.04
    assert (found["bursts"], found["longest burst"], found["longest run between losses"]) == (3, 2, 79)
    assert found["mean burst"] == pytest.approx(4 / 3)
    # One pair one packet apart of 99; mean 0.04.
    assert found["autocorrelation at lag 1"] == pytest.approx((1 / 99 - 0.0016) / (0.04 * 0.96))


def test_statistics_of_intervals_are_weighted_by_duration() -> None:
    up = [State(0, 10 * MS, 1e6, 20 * MS), State(15 * MS, 20 * MS, 4e6, 40 * MS)]
    down = [State(10 * MS, 12 * MS, 0.0, 20 * MS, outage=True), State(12 * MS, 15 * MS, 0.0, outage=True)]
    trace = Trace(pa.concat_tables(tables([up[0], *down, up[1]])))
    found = named(statistics(trace, "x"))
    assert found["duration"] == 20 * MS
    assert (found["outages"], found["time in outage"], found["longest outage"]) == (1, 5 * MS, 5 * MS)
    assert found["share of time in outage"] == 0.25
    assert found["mean rate"] == 2e6
    assert (found["rate, median"], found["rate, 95 %"]) == (1e6, 4e6)
    assert found["delay, maximum"] == 40 * MS


def test_states_do_not_count_during_an_outage() -> None:
    below = states((0, 10, None, 10, None), (10, 20, None, 20, None)).channel
    above = tables([State(start * MS, 9 * MS, outage=True) for start in (5, 8)], directions=["a2b"])
    over = pa.concat_tables([below, *above])
    found = named(statistics(Trace(over), "x"))
    assert (found["outages"], found["time in outage"]) == (1, 4 * MS)
    assert found["mean delay"] == 16.25 * MS


def test_losses_in_a_shadow_are_not_an_outage() -> None:
    # Blocked from 5 to 9 ms and from 12 to 13 ms, out from 13 to 15 ms; the link sends at its rate while it is blocked.
    trace = Trace(
        pa.concat_tables(
            tables(
                [
                    State(0, 5 * MS, 1e6),
                    State(5 * MS, 9 * MS, 3e6, per=1.0),
                    State(9 * MS, 12 * MS, 1e6),
                    State(12 * MS, 13 * MS, 1e6, per=1.0),
                    State(13 * MS, 15 * MS, outage=True),
                    State(15 * MS, 20 * MS, 1e6),
                ]
            )
        )
    )
    found = named(statistics(trace, "x"))
    assert (found["outages"], found["time in outage"], found["longest outage"]) == (1, 2 * MS, 2 * MS)
    assert (found["blockages"], found["time blocked"], found["longest blockage"]) == (2, 5 * MS, 4 * MS)
    assert (found["share of time in outage"], found["share of time blocked"]) == (0.1, 0.25)
    assert found["mean rate"] == pytest.approx((14 * 1e6 + 4 * 3e6) / 18)
    drawn = chart_data(trace, "x")["states"].to_pylist()
    assert {(row["quantity"], row["out"]) for row in drawn if 5e-3 < row["start_s"] < 8.9e-3} == {
        ("rate_mbps", 0.0),
        ("loss_share", 0.0),
    }
    assert max(row["high"] for row in drawn if row["quantity"] == "rate_mbps") == 3.0


def test_street_has_blockages_and_no_outages() -> None:
    street = read_model("street", {"satellite": {"geo": -96.0}, "latitude": 40.7, "longitude": -74.0, "azimuth": 120.0})
    trace = synthesise_trace(street, seed=1, extent=Extent(span_ns=600 * 10**9))
    found = named(statistics(trace, "street"))
    lost = sum(row["end_ns"] - row["t_ns"] for row in trace.intervals().to_pylist() if row["lost"])
    assert (found["outages"], found["time in outage"]) == (0, 0)
    assert found["time blocked"] == lost > 0


def test_chart_data_keeps_extremes_of_merged_bins() -> None:
    trace = states(*((i, i + 1, 1e6 * (1 + i % 10), None, None) for i in range(5000)), (5000, 5001, 99e6, None, None))
    rows = chart_data(trace, "x")["states"].to_pylist()
    assert len(rows) <= 430
    assert min(row["low"] for row in rows) == 1.0
    assert max(row["high"] for row in rows) == 99.0
    total = sum(row["mean"] * (row["end_s"] - row["start_s"]) for row in rows)
    assert total == pytest.approx((5000 * 5.5 + 99) / 1000)


def test_chart_data_of_packets_and_of_an_empty_trace() -> None:
    assert set(chart_data(packets({3, 5}), "x")) == {"runs", "autocorrelation"}
    empty = Trace(pa.concat_tables([states((0, 1, None, None, None)).channel]))
    with pytest.raises(ChannelError, match="there is nothing to draw"):
        chart_data(empty, "x")
