"""Recorded runs of the Linux stack: read, rebuilt, measured, judged."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pytest

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.schema import table_from_rows
from validation.divergence import CWND_RUN, divergences
from validation.judge import Check, finding, not_made, within_share
from validation.linux import jain_index, measure_runs, validate_run
from validation.measured import Measured, held_quantiles, measure_kernel, segment_numbers
from validation.page import render_page
from validation.rebuild import (
    as_it_was_timed,
    handshake_jitter,
    late_as_at_another_time,
    rebuild,
    window_bytes,
    writes,
)
from validation.recorded import KernelRun, find_runs, is_new, read_csv, read_run
from validation.tables import Results

if TYPE_CHECKING:
    pass

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "fixtures" / "kernel"
RECORDED = ROOT.parent / "shared" / "data" / "kernel"


@pytest.fixture(scope="module")
def s2() -> KernelRun:
    """As if a step of the hosts' clock were at the SYN."""
    return replace(read_run(RUNS / "S2-reno"), since_step_ns=0)


@pytest.fixture(scope="module")
def s9() -> KernelRun:
    return read_run(RUNS / "S9-reno")


def test_reading_agrees_with_the_recorders_own_counts(s2: KernelRun) -> None:
    flow = s2.flows[0]
    assert len(s2.lost) == 16
    assert flow.packets.fate.count("queue") == 1
    assert flow.packets.seq[0] == 1
    assert flow.syn_ns == 0, "times count from its arrival"
    assert flow.end_ns - flow.start_ns == 60_000_000_000
    measured = measure_kernel(flow)
    assert measured.retransmissions == 17
    assert measured.rtos == 0


def test_reading_knows_the_recorders_own_timing(s2: KernelRun) -> None:
    data, acks = s2.late_ns
    # The SYN and the handshake's ACK pass too; 16 were lost and one never came to the loss stage.
    packets = s2.flows[0].packets
    assert len(data) > len(packets.fate) - 17
    # The README of the recordings: half within 0.02 ms, 99 % within 0.2 ms.
    for late in (data, acks):
        assert 5_000 < np.median(late) < 60_000
        assert np.quantile(late, 0.99) < 1_000_000
    # Once connected, after a round trip of 500 ms.
    assert 500_000_000 < s2.flows[0].first_write_ns < 505_000_000


def test_the_first_write_follows_the_links_own_handshake_as_it_followed_the_recorded_one(s2: KernelRun) -> None:
    link = read_csv(RUNS / "S2-reno" / "link.csv.xz")
    syn_ns, ack_ns, data_ns = link.filter(pc.equal(link["dir"], "data"))["t_arr_ns"].to_pylist()[:3]
    # A SYN has 60 octets.
    handshake_ns = 1e6 * s2.params["rtt_ms"] + 2 * 60 * 8e9 / s2.params["rate"]
    assert ack_ns - syn_ns > handshake_ns + 50_000
    assert s2.flows[0].first_write_ns == pytest.approx(handshake_ns + data_ns - ack_ns, abs=1000)


def test_a_run_begins_with_the_syn_and_writes_when_the_recorded_one_did(s2: KernelRun) -> None:
    events = [[20, "rtt_ms", 50]]
    run = replace(s2, params={**s2.params, "events": events})
    config = rebuild(run, 60_000_000_000)
    assert config["duration_ns"] == 60_000_000_000
    (flow,), (link,) = config["flows"], config["path"]["links"]
    assert flow["start_ns"] == 0
    assert flow["application"]["first_write_ns"] == s2.flows[0].first_data_ns
    assert [change["at_ns"] for change in link["forward"]["schedule"]] == [20_000_000_000]


def test_options_buffer_and_lost_acks_are_those_of_the_recording(s2: KernelRun) -> None:
    run = replace(s2, params={**s2.params, "timestamps": 0, "sack": 0, "rcvbuf": 90_000}, acks_lost=(3, 5))
    config = rebuild(run, 60_000_000_000)
    (flow,), (link,) = config["flows"], config["path"]["links"]
    stack = flow["stack"]
    assert (stack["timestamps"], stack["sack"]) == (False, False)
    # A full segment of 1448 octets takes 2304 of memory: 160/256.
    assert stack["receive_buffer_bytes"] == 180_000 * 160 // 256
    assert window_bytes(180_990, 1460) == 114_532, "the recorded kernel's window of SO_RCVBUF 90,495 without timestamps"
    assert "receive_buffer_max_bytes" not in stack
    assert (link["reverse"]["loss"]["positions"], link["reverse"]["loss_applies_to"]) == ([3, 5], "all")


def test_an_application_that_pauses_writes_what_the_recorded_one_wrote(s2: KernelRun) -> None:
    info = {
        "t_ns": np.array([10, 20, 30, 40]),
        "bytes_sent": np.array([1000, 1000, 3500, 3500]),
        "bytes_retrans": np.array([0, 0, 500, 500]),
        "notsent_bytes": np.array([0, 0, 700, 900]),
        "sndbuf_limited": np.array([0, 0, 0, 0]),
        "bytes_acked": np.array([1001, 1001, 3001, 3001]),
    }
    # The second write is shown at 30, but its first octet left at 25.
    packets = replace(s2.flows[0].packets, t_ns=np.array([5, 25]), seq=np.array([1, 1001]), end=np.array([1001, 3001]))
    assert writes(info, packets) == ([5, 25, 40], [1000, 2700, 200])
    run = replace(
        s2, params={**s2.params, "write": "onoff:1,1"}, flows=(replace(s2.flows[0], tcp_info=info, packets=packets),)
    )
    application = rebuild(run, 50)["flows"][0]["application"]
    assert application == {"kind": "writes", "at_ns": [5, 25, 40], "bytes": [1000, 2700, 200]}


def test_a_write_that_had_to_wait_was_called_when_the_one_before_it_was_accepted(s2: KernelRun) -> None:
    info = {
        "t_ns": np.array([10, 20, 30, 40]),
        "bytes_sent": np.array([1000, 2000, 3000, 4000]),
        "bytes_retrans": np.array([0, 0, 0, 0]),
        "notsent_bytes": np.array([70_000, 130_000, 129_500, 128_500]),
        "sndbuf_limited": np.array([0, 0, 0, 7]),
    }
    packets = replace(s2.flows[0].packets, t_ns=np.array([5]), seq=np.array([1]), end=np.array([1001]))
    assert writes(info, packets) == ([5, 5, 5], [71_000, 61_000, 500])
    # With half of the mark or less unsent there was room, unless the memory was full.
    info["notsent_bytes"] = np.array([60_000, 65_000, 65_000, 65_000])
    assert writes(info, packets) == ([5, 20, 30, 30], [61_000, 6_000, 1_000, 1_000])


def test_an_application_of_a_given_rate_writes_every_20_ms_whether_there_is_room_or_not(s2: KernelRun) -> None:
    first_ns = s2.flows[0].first_data_ns
    run = replace(s2, params={**s2.params, "write": "rate:800000"})
    run = replace(run, flows=(replace(s2.flows[0], end_ns=first_ns + 50_000_000),))
    application = rebuild(run, 50)["flows"][0]["application"]
    at_ns = [first_ns, first_ns + 20_000_000, first_ns + 40_000_000]
    assert application == {"kind": "writes", "at_ns": at_ns, "bytes": [2000] * 3}


def test_a_clocked_write_that_the_host_delayed_is_replayed_when_it_was_called(s2: KernelRun) -> None:
    first_ns = s2.flows[0].first_data_ns
    due = [first_ns + 20_000_000 * i for i in range(5)]
    late_ns = due[2] + 15_000_000
    # The first two writes were in time, the third was late, and the fourth and the fifth are due after it.
    info = {
        "t_ns": np.array([due[0] + 4_000_000, due[1] + 4_000_000, late_ns + 2_000_000, due[3] + 1, due[4] + 4_000_000]),
        "bytes_sent": np.array([2000, 4000, 6000, 8000, 10_000]),
        "bytes_retrans": np.zeros(5, np.int64),
        "notsent_bytes": np.zeros(5, np.int64),
        "bytes_acked": np.array([0, 2000, 4000, 6000, 8000]),
        "rtt": np.full(5, 500_000),
    }
    ends = np.arange(2001, 12_001, 2000)
    left = np.array([due[0], due[1], late_ns, due[3], due[4]])
    packets = replace(s2.flows[0].packets, t_ns=left, seq=ends - 2000, end=ends)
    flow = replace(s2.flows[0], end_ns=due[4] + 10_000_000, tcp_info=info, packets=packets)
    sysctl = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 12288 4194304"}
    run = replace(s2, params={**s2.params, "write": "rate:800000"}, sysctl=sysctl, flows=(flow,))
    application = rebuild(run, 50)["flows"][0]["application"]
    assert application["at_ns"] == [due[0], due[1], late_ns, due[3], due[4]]
    assert application["bytes"] == [2000] * 5
    # With 6,000 octets in five pieces no third of the buffer is free, and it may have waited: the engine's socket says.
    info["bytes_acked"] = np.zeros(5, np.int64)
    assert rebuild(run, 50)["flows"][0]["application"]["at_ns"] == due
    # Two that came at once are two calls.
    info["bytes_acked"] = np.array([0, 2000, 4000, 6000, 8000])
    left[3] = info["t_ns"][3] = late_ns + 30_000_000
    left[4] = info["t_ns"][4] = late_ns + 30_000_000
    assert rebuild(run, 50)["flows"][0]["application"]["at_ns"][3:] == [left[3], left[3] + 1]


def test_a_run_as_it_was_timed_delivers_late(s2: KernelRun) -> None:
    plain = rebuild(s2, 60_000_000_000)
    timed = as_it_was_timed(plain, s2)
    link = timed["path"]["links"][0]
    assert link["forward"]["jitter"] == {"kind": "recorded", "delays_ns": [0, *s2.late_ns[0][1:]]}
    (handshake_ns,) = plain["path"]["links"][0]["reverse"]["jitter"]["delays_ns"]
    assert link["reverse"]["jitter"] == {"kind": "recorded", "delays_ns": [handshake_ns, *s2.late_ns[1][1:]]}


def test_the_first_handshake_takes_as_long_as_its_sender_saw(s2: KernelRun) -> None:
    info = {"bytes_acked": np.array([1]), "rtt": np.array([501_000])}
    way_ns = 500e6 + 2 * 60 * 8e9 / s2.params["rate"]
    run = replace(s2, flows=(replace(s2.flows[0], tcp_info=info), s2.flows[0]))
    config = rebuild(run, 50)
    (link,) = config["path"]["links"]
    assert link["reverse"]["jitter"]["delays_ns"] == [pytest.approx(501e6 - way_ns, abs=2)]
    first, second = (flow["application"]["first_write_ns"] for flow in config["flows"])
    assert first - second == s2.flows[0].first_data_ns - s2.flows[0].first_write_ns > 50_000
    info["rtt"][0] = 499_000
    assert handshake_jitter(run)[1]["delays_ns"] == [0], "no packet is early"
    early = replace(s2.flows[0], tcp_info=None, first_write_ns=s2.flows[0].first_data_ns + 1)
    assert handshake_jitter(replace(s2, flows=(early,)))[1]["delays_ns"] == [0]


@pytest.mark.parametrize(
    ("options", "syn_bytes"),
    [({}, 60), ({"sack": 0}, 60), ({"timestamps": 0}, 52), ({"timestamps": 0, "sack": 0}, 48)],
)
def test_the_handshake_of_the_link_is_that_of_a_syn_with_its_options(
    s2: KernelRun, options: dict[str, int], syn_bytes: int
) -> None:
    info = {"bytes_acked": np.array([1]), "rtt": np.array([501_000])}
    params = {**s2.params, **options}
    run = replace(s2, params=params, flows=(replace(s2.flows[0], tcp_info=info),))
    (late_ns,) = handshake_jitter(run)[1]["delays_ns"]
    assert late_ns == pytest.approx(501e6 - 500e6 - 2 * syn_bytes * 8e9 / params["rate"], abs=2)


def test_lateness_lets_no_packet_overtake_unless_the_delay_falls(s2: KernelRun) -> None:
    rises, falls = [20, "rtt_ms", 900], [25, "rtt_ms", 50]
    orders = [([], True), ([[20, "rate", 2e6]], True), ([rises], True), ([falls], False), ([rises, falls], False)]
    for events, in_order in orders:
        run = replace(s2, params={**s2.params, "events": events})
        link = as_it_was_timed(rebuild(run, 60_000_000_000), run)["path"]["links"][0]
        assert [link[side]["in_order"] for side in ("forward", "reverse")] == [in_order, in_order]


def test_another_draw_has_the_same_delays_in_the_same_order_but_for_where_they_begin(s2: KernelRun) -> None:
    assert late_as_at_another_time(s2, 0) is s2
    for was, begun in zip(s2.late_ns, late_as_at_another_time(s2, 1).late_ns, strict=True):
        places = [at for at in range(len(was)) if was[at:] + was[:at] == begun]
        assert len(places) == 1
        assert places[0] > 0
    late = [late_as_at_another_time(s2, draw).late_ns for draw in range(3)]
    assert late[0] != late[1] != late[2] != late[0]
    assert late_as_at_another_time(replace(s2, late_ns=([], [])), 1).late_ns == ([], [])


def test_the_engine_begins_at_the_step_of_the_clock_that_the_recording_shows(s2: KernelRun) -> None:
    run = replace(s2, params={**s2.params, "events": [[20, "outage", 1]]}, since_step_ns=3_000_000)
    config = rebuild(run, 60_000_000_000)
    assert config["duration_ns"] == 60_003_000_000
    assert config["flows"][0]["start_ns"] == 3_000_000
    assert config["path"]["links"][0]["forward"]["schedule"] == [{"at_ns": 20_003_000_000, "outage": True}]
    (later,), (plain,) = (measure_runs(replace(s2, since_step_ns=since), threads=1) for since in (3_000_000, 0))
    # What a timer does may move; when the first packets leave does not, by the recording's clock.
    assert list(later.t_ns[:10]) == list(plain.t_ns[:10])


def test_a_loss_position_counts_only_packets_that_passed_the_queue(s2: KernelRun) -> None:
    fates = s2.flows[0].packets.fate
    passed = [fate for fate in fates if fate != "queue"]
    assert all(passed[position] == "channel" for position in s2.lost)
    assert any(fates[position] != "channel" for position in s2.lost)


def test_the_schedule_of_one_time_becomes_one_change(s2: KernelRun) -> None:
    events = [[20, "rtt_ms", 50], [20, "outage", 1], [21.0, "outage", 0], [21.5, "rate", 2e6]]
    run = replace(s2, params={**s2.params, "events": events, "fifo": 1})
    config = rebuild(run, 60_000_000_000)
    forward, reverse = (config["path"]["links"][0][side] for side in ("forward", "reverse"))
    assert forward["schedule"] == [
        {"at_ns": 20_000_000_000, "delay_ns": 25_000_000, "outage": True},
        {"at_ns": 21_000_000_000, "outage": False},
        {"at_ns": 21_500_000_000, "rate_bps": 2e6},
    ]
    assert reverse["schedule"] == forward["schedule"]
    assert forward["in_order"]
    assert (forward["delay_ns"], forward["rate_bps"]) == (250_000_000, 1e6)
    assert forward["queue"] == {"kind": "drop_tail", "limit_pkts": 50}
    assert "loss" not in reverse


def test_without_sack_the_engine_recovers_without_it(s2: KernelRun) -> None:
    config = rebuild(replace(s2, params={**s2.params, "sack": 0}), 1)
    assert config["flows"][0]["stack"]["sack"] is False
    assert "sack" not in rebuild(s2, 1)["flows"][0]["stack"]


def test_s9_reno_lies_within_every_bound(s9: KernelRun) -> None:
    result = validate_run(s9, threads=1)
    metrics = [check.metric for check in result.checks]
    assert metrics == ["goodput", "retransmissions", "rtos", "cwnd_error", "cwnd_p25", "cwnd_p50", "cwnd_p75"]
    assert [check for check in result.checks if check.verdict != "pass"] == []


def test_the_median_of_several_replays_is_their_median(s9: KernelRun) -> None:
    assert validate_run(s9, threads=1).flows[0].medians == ()
    (flow,) = validate_run(s9, replays=3, threads=1).flows
    drawn = [measure_runs(late_as_at_another_time(s9, draw), threads=1)[0] for draw in range(3)]
    goodputs = [one.goodput_bps for one in drawn]
    assert len(set(goodputs)) > 1
    checks = {check.metric: check for check in flow.medians}
    assert set(checks) == {"goodput", "cwnd_p25", "cwnd_p50", "cwnd_p75"}
    assert checks["goodput"].value == sorted(goodputs)[1]
    assert checks["cwnd_p50"].value == sorted(one.cwnd_quantiles[1] for one in drawn if one.cwnd_quantiles)[1]
    assert flow.checks[0].value == goodputs[0]


def test_a_run_without_tcp_info_says_so(s9: KernelRun) -> None:
    result = validate_run(replace(s9, flows=(replace(s9.flows[0], tcp_info=None),)), threads=1)
    unknown = [check for check in result.checks if check.verdict == "unknown"]
    assert [check.metric for check in unknown] == ["cwnd_error"]
    assert "no TCP_INFO" in unknown[0].text


def test_a_variant_that_is_not_built_is_named(s2: KernelRun) -> None:
    flow = replace(s2.flows[0], variant="vegas-of-tomorrow")
    result = validate_run(replace(s2, flows=(flow,)))
    assert [(check.verdict, check.text) for check in result.checks] == [("unknown", "vegas-of-tomorrow: not built yet")]


def test_the_page_shows_every_run_and_each_failure(s9: KernelRun) -> None:
    result = validate_run(s9, threads=1)
    wrong = Check(s9.name, "goodput", 1.0, 2.0, 0.5, "bit/s")
    shown = replace(result, flows=(replace(result.flows[0], checks=(wrong, *result.flows[0].checks[1:])),))
    page = render_page(Results(linux=[shown]), {"reno: windows": "images/x.png"})
    assert "| S9-reno | 0.0 / 0.0 **fail** |" in page
    assert "![reno: windows](images/x.png)" in page
    assert "Those that fail in goodput: S9-reno." in page
    assert "* S9-reno: goodput 1 bit/s where 2 ± 0.5 is allowed" in page


def test_retransmissions_and_segment_numbers_by_hand() -> None:
    # Segments of 10, 10 and 5 octets; the second again; then a third sent first as part of an earlier cut.
    seq = np.array([1, 11, 21, 11, 26])
    end = np.array([11, 21, 26, 21, 36])
    assert is_new(seq, end).tolist() == [True, True, True, False, True]
    assert segment_numbers(seq, end).tolist() == [0, 1, 2, 1, 3]


def test_quantiles_weigh_by_time_within_the_span() -> None:
    t_ns = np.array([0, 10, 30, 100])
    values = np.array([1.0, 2.0, 3.0, 50.0])
    # From 5 to 45: 1 for 5, 2 for 20, 3 for 15; the value from 100 on lies outside.
    assert held_quantiles(t_ns, values, 5, 45) == (2.0, 2.0, 3.0)


def _measured(segment: list[int], fate: list[str], cwnd: list[float]) -> Measured:
    n = len(segment)
    return Measured(1e6, 0, 0, np.arange(n), np.array(segment), fate, np.array(cwnd), ["open"] * n, (1.0, 1.0, 1.0))


def test_the_first_divergence_of_each_kind_is_named() -> None:
    n = 60
    kernel = _measured(list(range(n)), ["delivered"] * n, [100.0] * n)
    segment, fate, cwnd = list(range(n)), ["delivered"] * n, [100.0] * n
    segment[50], fate[7] = 3, "queue"
    segment[51:57] = [4, 5, 6, 7, 8, 9]
    cwnd[2] = 120.0  # Alone: no divergence.
    cwnd[10 : 10 + CWND_RUN] = [106.0] * CWND_RUN
    found = divergences(kernel, _measured(segment, fate, cwnd))
    assert [(d.reason, d.index) for d in found] == [("fate", 7), ("cwnd", 10), ("segment", 50), ("retransmissions", 55)]
    assert "kernel at 0.0000 s segment 7 (delivered), cwnd 100.0 in open; engine" in str(found[0])
    assert divergences(kernel, kernel) == []


def test_a_bound_has_two_sides() -> None:
    verdicts = [
        within_share("x", "goodput", value, 100.0, 0.02, "bit/s").verdict for value in (97.9, 98.1, 101.9, 102.1)
    ]
    assert verdicts == ["fail", "pass", "pass", "fail"]


def test_checks_become_findings() -> None:
    rows = [finding(Check("x", "rtos", 3, 1, 1, "")), finding(not_made("y", "all", "not built yet"))]
    table = table_from_rows("findings", rows)
    assert table["verdict"].to_pylist() == ["fail", "unknown"]
    assert (rows[0]["low"], rows[0]["high"], rows[1]["value"]) == (0, 2, None)


def test_jain_by_hand() -> None:
    assert jain_index([2.0, 2.0]) == 1.0
    assert jain_index([3.0, 1.0]) == pytest.approx(0.8)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="holds no recorded run"):
        find_runs(tmp_path)
    with pytest.raises(LogError, match="no such folder"):
        find_runs(tmp_path / "absent")


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    run = tmp_path / "S2-reno"
    run.mkdir()
    shutil.copy(RUNS / "S2-reno" / "scenario.json", run)
    (run / "link.csv.xz").write_bytes((RUNS / "S2-reno" / "link.csv.xz").read_bytes()[:5000])
    with pytest.raises(LogError, match="S2-reno"):
        read_run(run)
