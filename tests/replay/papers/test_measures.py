"""What the judges of the papers measure: traces of a run, shares of a channel, chosen losses, utilisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from hindflight.replay.papers.aerotcp.cells import AERO, END_TO_END, SPLIT, jain, response_s, ten, utilisation
from hindflight.replay.papers.asran import model
from hindflight.replay.papers.asran.cells import disconnection_s, exchange, throughput
from hindflight.replay.papers.asran.judges import _spans
from hindflight.replay.papers.hybrid_handover.cells import (
    DELAYS,
    HYBLA,
    PEPSAL,
    SHORT_BREAK_S,
    Trace,
    cell,
    handovers,
    trace,
)
from hindflight.replay.papers.hybrid_handover.readings import LONGER
from hindflight.replay.papers.lab import Bench, Lab, config_of
from hindflight.replay.papers.losses import duplicate_acks_ms, run_with_losses, sent_by, timeouts_of
from hindflight.replay.papers.memory import beyond_window
from hindflight.toolkit.errors import HindflightError


def hand_made(acked_s: list[float]) -> Trace:
    times = np.array(acked_s)
    levels = np.arange(1.0, len(acked_s) + 1)
    none = np.array([])
    return Trace(times, levels, times, levels, np.array([21.0, 25.0, 41.0]), none, 70.0, 0, 0)


def test_a_pause_spans_the_handover_or_begins_soon_after_it() -> None:
    found = hand_made([1.0, 19.5, 20.5, 23.5, 24.0, 45.0, 89.0])
    assert found.pause_s(20.0) == 21.0
    assert hand_made([19.0, 22.0, 22.5, 31.0, 60.0]).pause_s(20.0) == 8.5
    assert hand_made([15.0]).pause_s(20.0) == 75.0
    assert found.resent(20.0, 25.0) == 2


def test_a_sequence_number_is_the_last_one_by_then() -> None:
    found = hand_made([1.0, 2.0, 3.0])
    assert [found.acked_at(at_s) for at_s in (0.5, 1.0, 2.9, 9.0)] == [0.0, 1.0, 2.0, 3.0]


def test_handovers_change_the_link_after_the_break() -> None:
    emulator = config_of(cell(HYBLA, handovers(DELAYS, SHORT_BREAK_S)), 1)["path"]["links"][1]
    for way in ("forward", "reverse"):
        assert (emulator[way]["rate_bps"], emulator[way]["delay_ns"]) == (2e6, 250_000_000)
        schedule = [(each["at_ns"] / 1e9, each["outage"], each["delay_ns"]) for each in emulator[way]["schedule"]]
        assert schedule == [
            (20.0, True, None), (20.5, False, 25_000_000), (40.0, True, None), (40.5, False, 250_000_000),
        ]  # fmt: skip


def test_a_trace_is_of_the_last_connection() -> None:
    lab = Lab(Bench(), 1, quick=True)
    [[found]] = lab.observe([cell(PEPSAL)], trace)
    assert found.acked_at(60.0) < 512e3 * 60 / 8 / 1e6
    assert found.sent_at(10.0) > found.acked_at(10.0) > 0.3


def states(rows: list[tuple[int, float, int]]) -> dict[str, Any]:
    flow, time_s, acked = zip(*rows, strict=True)
    times = [int(at * 1e9) for at in time_s]
    columns = {"flow_id": flow, "t_ns": times, "snd_una": acked, "source": ["replay"] * len(rows)}
    return {"instruments": pa.table(columns), "runs": pa.table({"duration_ns": [4_000_000_000]})}


def test_throughput_is_what_each_second_acknowledged() -> None:
    found = throughput(states([(1, 0.5, 125_000), (2, 0.7, 250_000), (1, 3.5, 375_000)])).per_second
    assert found[0].tolist() == [1.0, 0.0, 0.0, 2.0]
    assert found[1].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert disconnection_s(throughput(states([(1, 0.5, 125_000), (1, 3.5, 375_000)]))) == 2.0


def test_an_outage_is_a_time_of_rate_zero() -> None:
    schedule: list[dict[str, Any]] = [
        {"at_ns": 0, "rate_bps": 2e6, "outage": False},
        {"at_ns": 4, "outage": True},
        {"at_ns": 6, "rate_bps": 1e6, "outage": False},
    ]
    assert _spans(schedule, 10) == [(2e6, 4), (0.0, 2), (1e6, 4)]


def test_the_model_has_the_printed_sum_of_cubic() -> None:
    assert model.cubic_total() == pytest.approx(62.375)
    assert model.asran_window(model.time_to_last_max()) == pytest.approx(model.LAST_MAX)


def test_a_run_loses_the_chosen_packets_alone() -> None:
    steady = exchange("newreno", ("links.relays.changes", None), ("flow.receive_buffer", "30 KiB"))
    tables = run_with_losses(steady, 0, (30, 31))
    again = [each.number for each in sent_by(tables, 1448) if each.again]
    assert again == [31, 32]
    assert timeouts_of(tables) == 0
    assert len(duplicate_acks_ms(tables)) > 2
    run = tables["runs"].to_pylist()[0]
    assert (run["channel_losses"], run["queue_losses"]) == (2, 0)


def test_utilisation_counts_until_the_last_file() -> None:
    rows = [{"delivered_bytes": 1_460_000, "duration_ns": at, "goodput_bps": 1e6} for at in (int(3e9), int(6e9))]
    assert utilisation(rows) == pytest.approx(2 * 1.5e6 * 8 / (4e6 * 6))
    assert jain(rows) == 1.0


@pytest.mark.parametrize(("scheme", "proxies"), [(AERO, 2), (SPLIT, 2), (END_TO_END, 0)])
def test_all_ten_connections_use_the_scheme(scheme: str, proxies: int) -> None:
    flows = config_of(ten(scheme, 1e-6), 1)["flows"]
    assert [len(flow["proxies"]) for flow in flows] == [proxies] * 10
    if proxies:
        satellite = {flow["proxies"][0]["variant"] for flow in flows}
        assert satellite == ({"aerotcp"} if scheme == AERO else {"sack"})


def test_a_file_that_is_not_delivered_is_an_error() -> None:
    with pytest.raises(HindflightError, match="not delivered"):
        response_s([{"completed": False, "duration_ns": 1}])


def test_what_a_proxy_refuses_is_beyond_its_window_or_withdrawn_from_it() -> None:
    def states(una: list[int], nxt: list[int], window: list[int]) -> pl.DataFrame:
        return pl.DataFrame({"snd_una": una, "snd_nxt": nxt, "snd_wnd_bytes": window})

    assert beyond_window(states([1, 101], [201, 301], [200, 200])) == 0
    assert beyond_window(states([1, 101], [201, 311], [200, 200])) == 10
    assert beyond_window(states([1, 101], [101, 101], [200, 80])) == 20


def test_longer_breaks_end_a_second_later_and_other_paths_stay() -> None:
    events = dict(LONGER.of(cell(HYBLA, handovers(DELAYS, SHORT_BREAK_S))))["links.emulator.changes"]
    assert [(dict(event)["at"], dict(event)["outage"]) for event in events] == [
        ("20 s", True), ("21.5 s", False), ("40 s", True), ("41.5 s", False),
    ]  # fmt: skip
    assert LONGER.of(cell(HYBLA)) == ()
