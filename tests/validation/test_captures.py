"""The judge of captures: the truth fed back scores perfectly, a corrupted one as computed."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist

import pytest

from hindflight.replay.experiment.compare import Forecast, compare_runs
from hindflight.replay.experiment.prediction import FACTOR
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.errors import HindflightError
from validation.__main__ import main
from validation.calibration import calibrate, deviations, held_out
from validation.captures import whatif
from validation.captures.claims import CauseClaim, LossClaim, WindowClaim, claims_of, when_sent
from validation.captures.identifiable import is_identifiable, limited_ns, reductions
from validation.captures.lines import engine_lines, loss_lines, whatif_lines, window_lines
from validation.captures.links import stretches_of
from validation.captures.reliability import reliability
from validation.captures.report import FlowScore, disturbed, judge_captures
from validation.captures.scores import CauseScore, Counts, WindowScore, score_causes, score_losses, score_windows
from validation.captures.spread import RECORDINGS, Spread, spreads_of
from validation.captures.truth import FlowTruth, RunTruth, Steps, Tile, Transmission, _behind_the_end, read_truth
from validation.captures.whatif import Asked, Pair, as_predicted, flow_number, group_of, summarise
from validation.judge import Check
from validation.linux import FlowResult, RunResult

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "kernel"


@pytest.fixture(scope="module")
def run() -> RunTruth:
    folder = FIXTURES / "S9-reno"
    captures = [load_capture(folder / name).segments for name in ("snd.pcap.xz", "rcv.pcap.xz")]
    return read_truth(folder, captures[0], captures[1])


def lost(flow: FlowTruth) -> list[Transmission]:
    return [packet for packet in flow.transmissions if packet.lost]


def test_the_truth_agrees_with_what_the_recorder_counted(run: RunTruth) -> None:
    scenario = json.loads((run.folder / "scenario.json").read_text())
    (flow,) = run.flows
    assert len(lost(flow)) == sum(scenario["drops"].values()) > 0
    retransmitted = [packet for packet in flow.transmissions if packet.retransmitted]
    assert len(retransmitted) == scenario["flows"][0]["retransmits_seen_on_link"]
    in_time = [packet for packet in retransmitted if packet.t_ns <= flow.end_ns]
    assert sum(packet.cause == "rto" for packet in in_time) == scenario["flows"][0]["rto_count"]


def test_what_is_sent_after_the_emulator_ended_meets_a_link_that_is_down() -> None:
    segments = [
        {"direction": direction, "payload_bytes": 1448 * (direction == "a2b"), "t_ns": t_ns}
        for t_ns, direction in enumerate(("a2b", "b2a", "a2b", "a2b"), 5)
    ]
    assert [row["t_dep_ns"] for row in _behind_the_end(segments, 1, 7)] == [7, 8]
    assert {row["fate"] for row in _behind_the_end(segments, 1, 7)} == {"dropped_outage"}
    # The log lacks a packet that the emulator should have seen: the files disagree.
    assert not _behind_the_end(segments, 1, 8)
    assert not _behind_the_end(segments, 1, None)
    assert not _behind_the_end(segments, 3, 7)


def test_the_truth_scores_perfectly(run: RunTruth) -> None:
    (flow,) = run.flows
    dropped = lost(flow)
    by_record = [LossClaim(packet.record, packet.seq, 1) for packet in dropped]
    by_copy = [LossClaim(None, packet.seq, packet.copy) for packet in dropped]
    assert score_losses(flow, by_record) == score_losses(flow, by_copy) == Counts(right=len(dropped))

    repeated = [packet for packet in flow.transmissions if packet.cause]
    causes = [CauseClaim(packet.record, str(packet.cause), packet.spurious) for packet in repeated]
    score = score_causes(flow, causes)
    assert score.by_cause
    assert all(counts.precision == counts.recall == 1 for counts in score.by_cause.values())
    assert score.spurious.wrong == score.spurious.missed == 0

    windows = [
        WindowClaim(tile.start_ns, tile.cwnd_pkts * flow.smss_bytes, None, 0, tile.cwnd_pkts * flow.smss_bytes + 1)
        for tile in flow.tiles
    ]
    window = score_windows(flow, windows)
    assert window.counted == len(window.errors) == window.within == window.held > 0
    assert window.quantile(1) == pytest.approx(0, abs=1e-9)


def test_what_is_missed_or_invented_is_counted(run: RunTruth) -> None:
    (flow,) = run.flows
    dropped, delivered = lost(flow), [packet for packet in flow.transmissions if not packet.lost]
    claims = [LossClaim(packet.record, packet.seq, 1) for packet in dropped[1:] + delivered[:2]]
    nowhere = LossClaim(None, dropped[0].seq, 99)
    assert score_losses(flow, [*claims, nowhere]) == Counts(right=len(dropped) - 1, wrong=3, missed=1)

    repeated = [packet for packet in flow.transmissions if packet.cause]
    claimed = [CauseClaim(packet.record, "rto", not packet.spurious) for packet in repeated[1:]]
    score = score_causes(flow, claimed)
    assert score.by_cause["rto"].wrong == sum(packet.cause != "rto" for packet in repeated[1:])
    assert score.spurious.missed == sum(packet.spurious for packet in repeated)


def test_unknown_is_neither_right_nor_wrong(run: RunTruth) -> None:
    (flow,) = run.flows
    repeated = [packet for packet in flow.transmissions if packet.cause]
    score = score_causes(flow, [CauseClaim(packet.record, "unknown", None) for packet in repeated])
    assert sum(counts.unknown for counts in score.by_cause.values()) == len(repeated)
    assert all(counts.wrong == counts.missed == 0 for counts in score.by_cause.values())


def _flow_of(*copies: tuple[int, int, str]) -> FlowTruth:
    """Transmissions of segments of 100 octets, (segment, copy, fate)."""
    sent = [
        Transmission(n, n, 1 + 100 * k, 101 + 100 * k, copy, fate, n, None) for n, (k, copy, fate) in enumerate(copies)
    ]
    return FlowTruth("reno", 1, 2, 100, 0, len(copies), 1e6, sent, [])


def test_octets_sent_in_unknown_segments_are_unknown_where_nothing_else_names_them() -> None:
    gone, passed = "dropped_queue", "delivered"
    flow = _flow_of((0, 1, gone), (1, 1, gone), (2, 1, gone), (3, 1, passed), (4, 1, gone), (0, 2, gone), (0, 3, gone))
    first = [LossClaim(None, 1, 1, 101), LossClaim(None, 1, 2, 101)]
    octets = LossClaim(None, 1, None, 401)
    # The third copy of the first segment is missed: claims tell its lost copies. Segment 4 is above the octets.
    assert score_losses(flow, first, [octets]) == Counts(right=2, missed=2, unknown=3)
    assert score_losses(flow, [], [octets]) == Counts(missed=1, unknown=6)
    assert score_losses(flow, [], [replace(octets, end=400)]) == Counts(missed=1, unknown=5), "a part names no segment"


def test_a_loss_of_octets_without_a_copy_names_none() -> None:
    flow = _flow_of(*((k, 1, "dropped_queue") for k in range(5)))
    assert score_losses(flow, [LossClaim(None, 1, None, 501)]) == Counts(wrong=1, missed=5)


def test_lost_copies_of_unknown_fate_keep_a_flow_among_those_with_many_losses() -> None:
    def judged(lost: int, losses: Counts) -> FlowScore:
        return FlowScore("run", "receiver", "reno", True, 100, lost, losses, CauseScore(), WindowScore(), None)

    flows = [judged(21, Counts(right=13, missed=3, unknown=6)), judged(20, Counts(right=20))]
    lines = {line.metric: line for line in loss_lines(flows) if line.subject == "losses, receiver"}
    worst = lines["worst flow with 20 losses or more, SACK"]
    assert (worst.value, worst.of, worst.verdict) == (13 / 16, 2, "fail")
    fewer = lines["errors in a flow with fewer"]
    assert (fewer.value, fewer.of, fewer.verdict) == (3, 1, "fail"), "no more lenient by what is unknown"
    unknown = lines["lost transmissions of unknown fate"]
    assert (unknown.value, unknown.of) == (5 / 41, 41)
    most = lines["their share in the worst flow with 20 losses or more, SACK"]
    assert (most.value, most.of, most.bound) == (5 / 21, 2, None)


def test_an_interval_that_misses_and_an_estimate_that_comes_late() -> None:
    tiles = [Tile(0, 100, 10.0, 8.0, None), Tile(100, 200, 10.0, 8.0, None), Tile(200, 300, 10.0, 8.0, "idle")]
    flow = FlowTruth("reno", 1, 2, 1000, 0, 300, 1e6, [], tiles)
    score = score_windows(flow, [WindowClaim(120, 12_500, None, 11_000, 13_000)])
    assert (score.counted, score.errors, score.within, score.held) == (2, [0.25], 0, 0)
    assert score.widths == [pytest.approx(0.2)]


def test_a_loss_at_the_receiver_names_the_copy() -> None:
    capture = load_capture(FIXTURES / "S2-reno" / "rcv.pcap.xz")
    folder = FIXTURES / "S2-reno"
    run = read_truth(folder, load_capture(folder / "snd.pcap.xz").segments, capture.segments)
    flow = run.flows[0]
    claims = claims_of(capture, (flow.sport, flow.dport))
    assert claims is not None
    assert claims.vantage == "receiver"
    assert claims.losses
    assert all(claim.record is None for claim in claims.losses)
    score = score_losses(flow, claims.losses)
    assert score.right > 0.9 * score.cases


def test_what_a_packet_shows_at_the_receiver_is_judged_when_it_was_sent() -> None:
    folder = FIXTURES / "S2-reno"
    received = load_capture(folder / "rcv.pcap.xz").segments
    (flow,) = read_truth(folder, load_capture(folder / "snd.pcap.xz").segments, received).flows
    arrived = [row for row in received.to_pylist() if row["direction"] == "a2b" and row["payload_bytes"]]
    claims = when_sent(flow, [WindowClaim(row["t_ns"], row["record"], None, None, None) for row in arrived])
    assert len(claims) == len(arrived)
    sent_with = {packet.t_ns: packet.ts_val for packet in flow.transmissions}
    assert [sent_with[claim.t_ns] for claim in claims] == [row["ts_val"] for row in arrived]


def test_a_claim_between_two_packets_is_of_the_time_at_which_one_would_have_left() -> None:
    folder = FIXTURES / "S2-reno"
    captures = [load_capture(folder / name).segments for name in ("snd.pcap.xz", "rcv.pcap.xz")]
    (flow,) = read_truth(folder, *captures).flows
    arrived = sorted((packet.arrived_ns, packet.t_ns) for packet in flow.transmissions if packet.fate == "delivered")
    _, last = max((after[0] - before[0], before) for before, after in pairwise(arrived))
    claim = WindowClaim(last[0] + 1_000_000, 1, None, None, None)
    assert when_sent(flow, [claim]) == [replace(claim, t_ns=last[1] + 1_000_000)]
    end = WindowClaim(arrived[-1][0] + 10**12, 1, None, None, None)
    assert [one.t_ns for one in when_sent(flow, [end])] == [max(flow.end_ns, arrived[-1][1])]


def test_a_series_holds_until_the_next_value() -> None:
    steps = Steps([10, 20, 30], [1, 5, 9])
    assert [steps.at(t) for t in (0, 10, 25, 99)] == [1, 1, 5, 9]
    assert steps.mean(15, 35) == (5 * 1 + 10 * 5 + 5 * 9) / 20
    assert steps.median(0, 100) == 9
    assert Steps([10], [1], begins=True).mean(0, 10) is None


def test_stretches_follow_the_schedule(run: RunTruth) -> None:
    events = [[1, "rate", 5e6], [1, "outage", 1], [2, "outage", 0], [3, "rtt_ms", 40]]
    changed = replace(run, params={"rate": 1e6, "rtt_ms": 20, "events": events}, t0_ns=0)
    found = stretches_of(changed, 4_000_000_000)
    assert [(one.rate_bps, one.rtt_ns, one.outage) for one in found] == [
        (1e6, 20e6, False),
        (5e6, 20e6, True),
        (5e6, 20e6, False),
        (5e6, 40e6, False),
    ]


def test_pairs_sum_up() -> None:
    pairs = [
        Pair("a", "reno", "bbr", "steps", 110.0, 90.0, 130.0, 100.0),
        Pair("a", "bbr", "reno", "steps", 100.0, 99.0, 101.0, 200.0),
        Pair("b", "reno", "bbr", "steps", None, 50.0, 150.0, 100.0),
    ]
    summary = summarise(pairs)
    assert (summary.asked, summary.answered, summary.coverage) == (3, 2, 0.5)
    assert summary.median == pytest.approx((0.1 + 0.5) / 2)
    assert summary.score == pytest.approx((0.4 + (2 + 40 * 99) / 200) / 2)
    assert summary.score is not None
    assert summary.constant_score is not None
    assert summary.constant_score < summary.score


def test_recordings_are_counted_as_predictions_are() -> None:
    pairs = [
        Pair("a", "reno", "bbr", "steps", 110.0, 90.0, 130.0, 140.0),
        Pair("a", "bbr", "reno", "steps", 100.0, 99.0, 101.0, 200.0),
    ]
    asked = [
        Asked("a", "bbr", "steps", None, "bbr", 1.0, 1.0, True, captured_bps=120.0),
        Asked("a", "reno", "steps", "no answer", None, None, None, True),
    ]
    assert as_predicted(asked, pairs) == [replace(pairs[0], recorded=120.0)]


def test_classes_of_links() -> None:
    assert group_of({"second": "reno", "write": "rate:1"}) == "two flows"
    assert group_of({"rcvbuf": 1, "events": [1]}) == "limited"
    assert group_of({"events": [1], "loss": "bern:0.1"}) == "steps"
    assert group_of({"loss": "bern:0.1"}) == "loss"
    assert group_of({"loss": "none"}) == "steady"


def test_a_disturbed_recording_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "S9-reno"
    shutil.copytree(FIXTURES / "S9-reno", folder)
    scenario = json.loads((folder / "scenario.json").read_text())
    scenario["timing_error_us"]["p99"] = 5000.0
    (folder / "scenario.json").write_text(json.dumps(scenario))
    judged = judge_captures(tmp_path, lambda _done, _of: None)
    assert not judged.flows
    assert judged.left_out == [("S9-reno", disturbed(folder))]


def test_the_command_prints_one_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "accuracy.md"
    assert main(["captures", str(FIXTURES), "--json", "--write", str(page)]) == 0
    assert "Judged: 2 runs in kernel." in page.read_text()
    assert "## Losses, sender" in page.read_text()
    document = json.loads(capsys.readouterr().out)
    assert {line["verdict"] for line in document["lines"]} <= {"pass", "fail", "-"}
    pooled = next(
        line for line in document["lines"] if (line["subject"], line["metric"]) == ("losses, sender", "recall, pooled")
    )
    assert pooled["value"] > 0.9
    assert pooled["of"] > 20


def test_the_spread_of_a_run_is_that_of_its_recordings(tmp_path: Path) -> None:
    for number in range(1, RECORDINGS):
        shutil.copytree(FIXTURES / "S9-reno", tmp_path / f"S9.{number}-reno")
    (key,), (spread,) = zip(*spreads_of(tmp_path).items(), strict=True)
    assert key == ("S9-reno", 0)
    assert set(spread.measured) == {"goodput", "cwnd_p25", "cwnd_p50", "cwnd_p75"}
    for metric, (value, *others) in spread.measured.items():
        assert others == [value] * (RECORDINGS - 2)
        check = Check("S9-reno", metric, value, value, 0.0, "")
        assert spread.holds(check)
        assert spread.holds(replace(check, value=1.001 * value, reference=1.002 * value))
        assert not spread.holds(replace(check, value=1.001 * value))
    value = spread.measured["goodput"].pop()
    assert not spread.holds(Check("S9-reno", "goodput", value, value, 0.0, ""))
    assert not spread.predicts(Check("S9-reno", "goodput", value, value, 0.0, ""))


def test_the_median_of_several_replays_has_lines_of_its_own() -> None:
    off, near = (Check("L-reno", "goodput", value, 100.0, 0.0, "") for value in (105.0, 101.0))
    flow = FlowResult("L-reno", "reno", (off,), (), None)

    def shares(flow: FlowResult) -> dict[str, float | None]:
        lines = engine_lines([RunResult("L-reno", (flow,), ())], {})
        return {line.subject: line.value for line in lines if line.metric.startswith("goodput")}

    assert shares(flow) == {"engine": 0.0}
    assert shares(replace(flow, medians=(near,))) == {"engine": 0.0, "engine, median of several replays": 1.0}


def test_one_more_recording_may_lie_beyond_those_that_there_are() -> None:
    spread = Spread({"goodput": [98.0, 99.0, 101.0, 102.0]})
    check = Check("S9-reno", "goodput", 100.0, 100.0, 0.0, "")
    # Student's quantile for 4 degrees of freedom is 2.776, the standard deviation is 1.581.
    for value, is_possible in ((104.80, True), (104.82, False), (95.20, True), (95.18, False)):
        assert spread.predicts(replace(check, value=value)) == is_possible
        assert not spread.holds(replace(check, value=value))


def test_verdicts_are_counted_at_the_sender(run: RunTruth) -> None:
    rows = {(row["about"], row["verdict"]): row for row in reliability(judge_captures(run.folder, print).flows)}
    assert rows["vantage", "sender"] == {"about": "vantage", "verdict": "sender", "right": 1, "of": 1}
    assert 0 < rows["need", "needed"]["right"] <= rows["need", "needed"]["of"]


def test_the_flow_under_test_is_found_where_another_begins_first() -> None:
    first, second = {"t_syn_ns": 4_360_277}, {"t_syn_ns": -56_358}
    assert (flow_number([first]), flow_number([first, second]), flow_number([second, first])) == (1, 2, 1)


def test_the_factor_is_the_conformal_quantile() -> None:
    # Predictions of 100 with a deviation of 0.1; what was recorded lies 0.01 to 0.2 away.
    wide = math.exp(FACTOR * 0.1)
    pairs = [
        Pair(
            "l",
            "reno",
            "bbr",
            "steps",
            100.0,
            100 / wide,
            100 * wide,
            100 * math.exp(k / 100),
            None,
            (0.2, 0.1),
        )
        for k in range(1, 21)
    ]
    # Of 20 distances of 0.1 to 2 deviations the 20th smallest, of 43 the 42nd.
    found = calibrate(pairs)
    assert found.factor == 2.0
    assert found.pairs == {"steps": 20}
    assert deviations(replace(pairs[0], mean=None)) is None
    assert deviations(replace(pairs[0], capacity=99.5)) == deviations(pairs[0])
    assert deviations(replace(pairs[4], capacity=102.0)) == math.inf
    far = [replace(pairs[-1], recorded=100 * math.exp(k)) for k in (2, 3, 4)]
    assert calibrate([*pairs, *pairs, *far]).factor == pytest.approx(30.0)
    shares = held_out({"near": pairs, "same": pairs, "far": [*far, pairs[0]]})
    assert shares == {"near": 1.0, "same": 1.0, "far": 0.25}
    with pytest.raises(HindflightError):
        calibrate(pairs[:18])


def test_a_pair_has_what_its_interval_is_made_of(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FIXTURES / "S9-reno"
    scenario = json.loads((folder / "scenario.json").read_text())
    predicted = compare_runs(
        [
            {
                "purpose": "what_if", "role": "under_test", "variant": "cubic", "proxy": "none",
                "channel_mode": "resampled", "seed": seed, "goodput_bps": 1e6 / (1 + seed // 18),
                "duration_ns": 10**9, "reset_ns": None,
            }
            for seed in range(20)
        ],
        ("linux-reno", "none"),
        Forecast(10**9, 1e6, 0.0),
    )  # fmt: skip
    monkeypatch.setattr(whatif, "_what_if", lambda *_, **__: ({"findings": predicted}, None))
    recorded = {"reno": scenario, "cubic": scenario}
    _, (pair,) = whatif._ask("S9", "reno", folder / "snd.pcap.xz", recorded)
    assert pair.mean == pytest.approx(1e6)
    # The next flight is slower than the second of 20 with a probability of 2 in 21.
    below = math.hypot(math.log(2) / NormalDist().inv_cdf(19 / 21), 0.015)
    assert pair.deviations == pytest.approx((below, 0.015), rel=1e-3)
    _, (none,) = whatif._ask("S9", "cubic", folder / "snd.pcap.xz", recorded)
    assert (none.mean, none.deviations) == (None, None)


def test_a_flow_shows_its_congestion_control_by_reductions_or_by_its_time_limited_by_the_network() -> None:
    second = 10**9
    states = [0, 3, 4, 0, 1, 3, 3, 0, 4, 3, 0, 3]
    info = {
        "t_ns": [second * k for k in range(12)], "ca_state": states, "app_limited": [0] * 12,
        "rwnd_limited": [0] * 12, "sndbuf_limited": [0] * 12,
    }  # fmt: skip
    assert reductions(info) == 5  # from loss back into recovery is no other reduction
    assert is_identifiable(info, "reno")
    assert not is_identifiable({**info, "ca_state": states[:-1]}, "cubic")
    assert is_identifiable(info, "bbr")
    assert not is_identifiable({**info, "app_limited": [1, 1, *[0] * 10]}, "bbr")
    assert limited_ns({**info, "rwnd_limited": [0] * 6 + [1_500_000] * 6}) == 10 * second  # at most the whole interval


def test_what_if_lines_count_names_where_they_can_show_and_both_self_checks() -> None:
    one = Asked("l", "reno", "steady", None, "linux-reno", 1.0, 6.0, identifiable=True)
    asked = [one, replace(one, named="unknown", identifiable=False), replace(one, named="bbr", identifiable=False)]
    found = {line.metric: (line.value, line.of) for line in whatif_lines(asked, [])}
    assert found["variant named rightly, where the network limits"] == (1.0, 1)
    assert found["variant named rightly, all captures"] == (1 / 3, 3)
    assert found["variant named wrongly"] == (1 / 3, 3)
    assert found["self-check within 5 %"] == (1.0, 3)
    assert found["self-check within 5 %, other flows as TCP"] == (0.0, 3)


def test_the_coverage_at_the_receiver_counts_flows_without_timestamps_and_says_so() -> None:
    def judged(side: str, estimates: int, *, timestamps: bool) -> FlowScore:
        windows = WindowScore(errors=[0.0] * estimates, counted=100)
        return FlowScore("run", side, "reno", True, 0, 0, Counts(), CauseScore(), windows, None, timestamps=timestamps)

    flows = [
        judged("sender", 100, timestamps=True),
        judged("receiver", 96, timestamps=True),
        judged("receiver", 0, timestamps=False),
    ]
    lines = {(line.subject, line.metric): line for line in window_lines(flows)}
    all_flows = lines["cwnd, receiver", "round trips with an estimate"]
    shown = lines["cwnd, receiver", "round trips with an estimate, flows with timestamps"]
    assert (all_flows.value, all_flows.of, all_flows.verdict) == (0.48, 200, "fail")
    assert (shown.value, shown.of, shown.verdict) == (0.96, 100, "pass")
