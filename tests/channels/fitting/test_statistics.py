"""Statistics of `channel show`, compared with traces whose statistics are known."""

from __future__ import annotations

import pyarrow as pa
import pytest

from hindflight.channels.fitting.statistics import Statistic, chart_data, statistics
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
    trace = states((0, 10, 1e6, 20, None), (10, 12, 0.0, 20, 1), (12, 15, 0.0, 20, 1), (15, 20, 4e6, 40, None))
    found = named(statistics(trace, "x"))
    assert found["duration"] == 20 * MS
    assert (found["outages"], found["time in outage"], found["longest outage"]) == (1, 5 * MS, 5 * MS)
    assert found["share of time in outage"] == 0.25
    assert found["mean rate"] == 2e6
    assert (found["rate, median"], found["rate, 95 %"]) == (1e6, 4e6)
    assert found["delay, maximum"] == 40 * MS


def test_states_do_not_count_during_an_outage() -> None:
    below = states((0, 10, None, 10, None), (10, 20, None, 20, None)).channel
    above = states((5, 9, None, None, 1), (8, 9, None, None, 1)).channel
    over = pa.concat_tables([below, above])
    found = named(statistics(Trace(over), "x"))
    assert (found["outages"], found["time in outage"]) == (1, 4 * MS)
    assert found["mean delay"] == 16.25 * MS


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
