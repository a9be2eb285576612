"""The relay between two Linux stacks: a recorded run, what is drawn, and why a run misses."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hindflight.toolkit.errors import LogError
from validation.__main__ import main
from validation.rebuild import REPLAYS, as_it_was_timed
from validation.relay.judge import QUARTILES, RelayResult, _engine, _legs_late, compare, explain
from validation.relay.links import draw
from validation.relay.readings import EVERY, readings
from validation.relay.rebuild import first_left_of_relay, first_left_of_sender, rebuild_relay
from validation.relay.recorded import find_relay_runs, held_bytes, read_drawn, read_relay_run
from validation.relay.spread import RECORDINGS, Spread, recorded_again, same_run

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RUN = FIXTURES / "relay" / "R6203.2.1"


@pytest.fixture(scope="module")
def result() -> RelayResult:
    return compare(read_relay_run(RUN), Spread(()))


def test_the_proxy_of_profile_linux_follows_the_recorded_relay(result: RelayResult) -> None:
    goodput, *windows = result.checks
    assert goodput.verdict == "pass"
    assert [check.verdict for check in windows[:3]] == ["pass"] * 3, "the leg that the sender fills"
    assert result.engine.held_mean_bytes == pytest.approx(result.kernel.held_mean_bytes, rel=0.25)
    assert result.kernel.goodput_bps == pytest.approx(760e3, rel=0.01)


def test_times_count_from_the_first_syn_and_octets_lie_in_three_places() -> None:
    run = read_relay_run(RUN)
    sender, onward = run.flows
    assert sender.syn_ns <= 0 < onward.syn_ns < onward.start_ns < onward.end_ns == sender.end_ns
    assert run.link_t0_ns[0] == 0 < run.link_t0_ns[1]
    info = onward.tcp_info
    assert info is not None
    _, held = held_bytes(onward)
    assert (held == info["inq"] + info["pipe"] + info["outq"]).all()
    assert info["pipe"].max() <= 16 * 1448, "a segment takes a slot of the pipe"


def test_the_handshake_of_each_leg_takes_as_long_as_its_sender_saw() -> None:
    run = read_relay_run(RUN)
    configuration = rebuild_relay(run)
    links = configuration["path"]["links"]
    for link, leg, flow in zip(links, run.legs, run.flows, strict=True):
        assert flow.tcp_info is not None
        way_ns = link["forward"]["delay_ns"] + 60 * 8e9 / leg.params["rate"]
        (late_ns,) = link["reverse"]["jitter"]["delays_ns"]
        assert 0 < late_ns == pytest.approx(flow.tcp_info["rtt"][0] * 1000 - 2 * way_ns, abs=2)
    sender = run.flows[0]
    assert configuration["flows"][0]["application"]["first_write_ns"] == sender.packets.t_ns[0] - sender.syn_ns
    timed = as_it_was_timed(configuration, *run.legs)["path"]["links"]
    for link, late, leg in zip(links, timed, run.legs, strict=True):
        delays_ns = late["reverse"]["jitter"]["delays_ns"]
        assert delays_ns == [*link["reverse"]["jitter"]["delays_ns"], *leg.late_ns[1][1:]]
        assert late["forward"]["jitter"]["delays_ns"] == [0, *leg.late_ns[0][1:]], "the SYN's is in the handshake"
    silent = replace(sender, tcp_info=None)
    first = replace(run.legs[0], flows=(silent,))
    link, _ = rebuild_relay(replace(run, legs=(first, run.legs[1])))["path"]["links"]
    expected = sender.packets.t_ns[0] - sender.syn_ns - sender.first_write_ns
    assert link["reverse"]["jitter"]["delays_ns"] == [expected], "as the link's log tells"


def test_a_buffer_of_a_given_size_does_not_grow() -> None:
    run = read_relay_run(RUN)
    assert not run.given
    flow = rebuild_relay(run)["flows"][0]
    assert flow["stack"]["receive_buffer_max_bytes"] > flow["stack"]["receive_buffer_bytes"]
    assert "send_buffer_max_bytes" in flow["proxies"][0]["stack"]["overrides"]
    grown = rebuild_relay(replace(run, first={**run.first, "rcvbuf": 150000}))["flows"][0]
    assert grown["stack"]["receive_buffer_bytes"] == 131072 * 5 // 8, "not as it was once both were connected"
    fixed = replace(run, given={"rcvbuf": 32768, "sndbuf": 40000}, first={"rcvbuf": 65536, "sndbuf": 80000})
    flow = rebuild_relay(fixed)["flows"][0]
    assert flow["stack"]["receive_buffer_bytes"] == 65536 * 5 // 8
    assert "receive_buffer_max_bytes" not in flow["stack"]
    onward = flow["proxies"][0]["stack"]["overrides"]
    assert (onward["send_buffer_bytes"], "send_buffer_max_bytes" in onward) == (80000, False)


def test_what_had_left_when_the_relay_wrote_more_is_what_its_socket_took_beyond_whole_pieces() -> None:
    onward = read_relay_run(RUN).flows[1]

    def left(taken_pkts: float, acked: int = 1, snd_wnd: int = 65160) -> int | None:
        taken = np.array([16, 28, taken_pkts, taken_pkts, taken_pkts]) * onward.smss_bytes
        columns = {
            "bytes_sent": taken,
            "notsent_bytes": 0 * taken,
            "bytes_retrans": 0 * taken,
            "pipe": np.array([0, 1448, 1448, 1448, 1448]),
            "bytes_acked": np.full(5, acked),
            "snd_wnd": np.full(5, snd_wnd),
        }
        return first_left_of_relay(replace(onward, tcp_info=columns))

    assert [left(pkts) for pkts in (69, 71, 76)] == [3, 5, 10], "three pieces of 22 segments"
    assert left(50) == 6, "two"
    assert left(50, snd_wnd=2 * 40 * 1448) == 10, "pieces of 40 segments"
    assert left(50, acked=1449) is None, "an ACK has let more leave"
    assert left(57) is None, "no ten segments of the initial window"
    assert left(50.26) is None
    assert left(66) is None, "something always leaves"
    assert left(50, snd_wnd=2 * 11 * 1448) == 6, "four pieces of 11 segments"
    assert left(56, snd_wnd=2 * 10 * 1448) is None, "6 of pieces of 10, but 10 would not differ from none"
    assert left(50, snd_wnd=1448) is None, "half of the window has no segment"
    assert first_left_of_relay(replace(onward, tcp_info=None)) is None


def test_what_had_left_of_the_senders_first_write_is_what_its_socket_had_memory_for() -> None:
    sender = read_relay_run(RUN).flows[0]
    smss = sender.smss_bytes

    def left(taken: int, snd_wnd: int = 65535, sndbuf: int = 46080) -> int | None:
        polls = {"bytes_sent": [0, 10 * smss, 12 * smss], "bytes_acked": [1, 1, smss + 1], "bytes_retrans": [0] * 3}
        rest = {"notsent_bytes": [0, taken - 10 * smss, 0], "snd_wnd": [snd_wnd] * 3, "sndbuf": [sndbuf] * 3}
        columns = {name: np.array(values) for name, values in {**polls, **rest}.items()}
        return first_left_of_sender(replace(sender, tcp_info=columns))

    assert left(32 * smss) == 10, "ten, and a piece of 22 segments: no memory is left"
    assert left(65536) == 6, "with three bursts of two and a piece there is some"
    assert left(32 * smss, snd_wnd=2 * 11 * smss) == 10, "two pieces of 11"
    assert left(39 * smss, snd_wnd=2 * 11 * smss) == 6, "three"
    assert left(31 * smss) is None
    assert first_left_of_sender(replace(sender, tcp_info=None)) is None


def test_of_six_paths_two_lose_packets_two_change_their_rate_and_three_have_given_buffers() -> None:
    paths = [draw(11, number) for number in range(6)]
    assert paths == [draw(11, number) for number in range(6)]
    assert [any(leg.loss != "none" for leg in path.legs) for path in paths] == [False, True, False] * 2
    assert [any(leg.events for leg in path.legs) for path in paths] == [False, False, True] * 2
    assert [bool(path.buffers) for path in paths] == [False, True] * 3


def test_a_miss_is_explained_by_the_first_rule_that_covers_it(result: RelayResult) -> None:
    def with_leg0(kernel: float, engine: float, name: str = "R1.0.1", limited: float = 0.0) -> RelayResult:
        sides = [
            replace(side, windows_pkts=((pkts,) * 3, (10.0,) * 3))
            for side, pkts in ((result.kernel, kernel), (result.engine, engine))
        ]
        checks = tuple(replace(check, reference=kernel, value=engine) for check in result.checks[1:4])
        checks = tuple(replace(check, allowed=0.1 * kernel) for check in checks)
        return replace(
            result, name=name, kernel=sides[0], engine=sides[1], timed=sides[1], limited_share=limited, checks=checks
        )

    fine, small, large = with_leg0(50, 50), with_leg0(8, 9), with_leg0(50, 70)
    assert explain(fine) == ""
    assert explain(small) == "one packet"
    assert explain(large) == "not explained"
    timed = replace(large, timed=fine.engine)
    assert explain(timed) == "lateness"
    assert (large.holds(QUARTILES), large.timed_holds) == (False, False)
    assert (timed.holds(QUARTILES), timed.timed_holds) == (False, True)
    limited = with_leg0(50, 70, limited=0.4)
    assert explain(limited) == "window limits 40 %"


def test_quartiles_are_counted_one_by_one_and_all_together(result: RelayResult) -> None:
    def missing(*metrics: str, recorded: Sequence[float] = (1.0,)) -> RelayResult:
        checks = tuple(replace(one, value=(2 if one.metric in metrics else 1) * one.reference) for one in result.checks)
        numbers = {one.metric: one.reference for one in checks}
        medians = {
            metric: (1.2 if metrics and metric == "leg1_cwnd_p75" else 1) * numbers[metric] for metric in numbers
        }
        spread = Spread(tuple({metric: share * number for metric, number in numbers.items()} for share in recorded))
        return replace(result, checks=checks, spread=spread, medians=medians)

    runs = [
        missing(recorded=(1.0, 1.05, 1.2)),
        missing("leg0_cwnd_p25"),
        missing("leg1_cwnd_p50", recorded=(1.0, 1.0, 1.0, 1.0, 3.0)),
        missing("leg1_cwnd_p50", "leg1_cwnd_p75"),
        missing(),
    ]
    read = {one.counted: one for one in readings(runs)}
    assert list(read)[0::7] == ["goodput", EVERY]
    assert {name: (one.held, one.wanted, one.verdict) for name, one in read.items()} == {
        "goodput": (5, 5, "pass"),
        "leg 0: 25th percentile": (4, 4, "pass"),
        "leg 0: 50th percentile": (5, 4, "pass"),
        "leg 0: 75th percentile": (5, 4, "pass"),
        "leg 1: 25th percentile": (5, 4, "pass"),
        "leg 1: 50th percentile": (3, 4, "fail"),
        "leg 1: 75th percentile": (4, 4, "pass"),
        EVERY: (2, 4, "fail"),
    }
    assert (read[EVERY].with_spread, read["leg 1: 50th percentile"].with_spread) == (3, 4)
    assert [one.by_median for one in read.values()] == [5] * 6 + [2, 2]
    assert [(one.alike, one.pairs) for one in read.values()] == [(6, 13)] + [(7, 13)] * 7
    assert read[EVERY].row["Linux against itself, pairs"] == "7 of 13 (54 %)"
    assert read[EVERY].check.text == "relay: 2 of 5 runs with every quartile of both legs within 10 %; 4 are wanted."
    assert readings([missing()])[0].row["Linux against itself, pairs"] == "-"
    assert readings([missing("goodput"), missing()])[0].verdict == "fail", "goodput has to hold in all runs"


def test_the_median_of_the_replays_is_their_median(result: RelayResult) -> None:
    run = read_relay_run(RUN)
    legs = [_legs_late(run, draw) for draw in range(REPLAYS)]
    assert legs[0] == list(run.legs)
    sides = [_engine(run, as_it_was_timed(rebuild_relay(run), *each)) for each in legs]
    assert sides[0] == result.timed
    assert sides[1] != sides[0]
    assert result.medians["goodput"] == sorted(side.goodput_bps for side in sides)[REPLAYS // 2]


def test_what_five_recordings_of_linux_enclose_is_its_spread(result: RelayResult) -> None:
    goodput = result.checks[0]
    assert goodput.value is not None
    miss = replace(goodput, reference=2 * goodput.value, allowed=0.0)

    def recorded(*shares: float) -> Spread:
        return Spread(tuple({"goodput": share * goodput.value} for share in shares if goodput.value))

    around = recorded(0.9, 0.9, 0.9, 0.9, 1.1)
    assert len(around.recordings) == RECORDINGS
    assert around.holds(miss)
    assert not recorded(0.9, 0.9, 0.9, 1.1).holds(miss), "too few"
    assert not recorded(0.9, 0.9, 0.9, 0.9, 0.99).holds(miss), "below"
    missed = replace(result, checks=(miss,), spread=around, timed=replace(result.timed, goodput_bps=0.0))
    assert explain(missed) == "Linux's spread"
    assert missed.holds_with_spread({"goodput"})
    assert not replace(missed, spread=recorded(0.9)).holds_with_spread({"goodput"})
    assert around.agreement({"goodput": 0.02}) == (6, 10)
    assert around.agreement({"goodput": 0.5}) == (10, 10)


def test_recordings_of_one_run_share_its_losses(tmp_path: Path) -> None:
    run = read_relay_run(RUN)
    assert same_run(replace(run, name="R1.0.1")) == same_run(replace(run, name="R1.0.2")) == "R1.0"
    lossy = replace(run.legs[0], params={**run.legs[0].params, "loss": "bern:0.01"})
    assert same_run(replace(run, name="R1.0.2", legs=(run.legs[0], lossy))) == "R1.0.2"
    assert recorded_again(tmp_path) == []
    shutil.copytree(RUN, tmp_path / "again" / "1" / RUN.name)
    assert [one.name for one in recorded_again(tmp_path)] == [RUN.name]
    (tmp_path / "again" / "2").mkdir()
    with pytest.raises(LogError, match="holds no recorded run"):
        recorded_again(tmp_path)


def test_a_run_is_recorded_again_as_it_was_drawn() -> None:
    path, seed = read_drawn(RUN)
    assert (path.name, seed) == ("R6203.2", 1)
    assert path == draw(6203, 2)


def test_a_folder_without_a_run_and_a_damaged_run_say_so(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="holds no recorded run of a relay"):
        find_relay_runs(tmp_path)
    run = tmp_path / "R1.0.1"
    shutil.copytree(RUN, run)
    described = json.loads((run / "relay.json").read_text())
    del described["first"]
    (run / "relay.json").write_text(json.dumps(described))
    with pytest.raises(LogError, match=r"R1\.0\.1: not a whole recorded run of a relay \('first'\)"):
        read_relay_run(run)


def test_without_root_nothing_is_recorded_and_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert main(["relay"]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "the relay is not compared" in printed.err
    assert "needs root" in printed.err
    assert main(["relay", "--json"]) == 0
    assert "needs root" in json.loads(capsys.readouterr().out)["skipped"]


def test_the_command_compares_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["relay", str(RUN), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in document["runs"]] == ["R6203.2.1"]
    assert {row["metric"] for row in document["findings"]} >= {"goodput", "leg0_cwnd_p50", "leg1_cwnd_p50"}
    read = {row["counted"]: row for row in document["readings"]}
    assert (read["goodput"]["held"], read["goodput"]["verdict"]) == (1, "pass")
    assert len(read) == 8
    assert main(["relay", str(RUN)]) == 0
    printed = capsys.readouterr().out
    assert "R6203.2.1" in printed
    assert all(name in printed for name in read), "both readings"
