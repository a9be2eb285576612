"""Extraction compared with a reference link whose channel is known: causes, positions, estimates, unknowns."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from hindflight.channels.extraction import attribution as _attribution
from hindflight.channels.extraction import delivery as _delivery
from hindflight.channels.extraction import link as _link
from hindflight.channels.extraction.cross_traffic import no_cross_traffic
from hindflight.channels.extraction.extract import Extraction, extract
from hindflight.channels.extraction.states import interval_rows
from hindflight.channels.trace import check_intervals
from hindflight.toolkit.errors import ChannelError
from hindflight.toolkit.schema import arrow_schema, conform, table_from_rows
from tests.reference.link import Flown, LinkModel, bernoulli, bursts, fly

FULL = LinkModel(4e6, 200_000_000, 60, 30_000_000_000, bernoulli(0.001, 5))


@pytest.fixture(scope="module")
def full() -> tuple[Flown, Extraction]:
    flown = fly(FULL)
    return flown, _extract(flown)


def _extract(flown: Flown) -> Extraction:
    return extract(flown.segments, flown.flows, flown.events, 1)


def _packets(extraction: Extraction) -> list[dict[str, Any]]:
    return [row for row in extraction.channel.to_pylist() if row["kind"] == "packet"]


def _confusion(flown: Flown, extraction: Extraction) -> Counter[tuple[str, str]]:
    rows = _packets(extraction)
    return Counter((flown.fate[r["record"]], r["cause"]) for r in rows if flown.fate[r["record"]] != "delivered")


def test_queue_drops_are_distinguished_from_channel_losses(full: tuple[Flown, Extraction]) -> None:
    flown, extraction = full
    truth = Counter(flown.fate.values())
    assert truth["queue"] > 50
    assert truth["channel"] > 5
    assert _confusion(flown, extraction) == {
        ("queue", "queue"): truth["queue"],
        ("channel", "channel"): truth["channel"],
    }
    assert extraction.counts["channel"] == truth["channel"]
    assert extraction.counts["queue"] == truth["queue"]
    assert extraction.counts["unknown"] == 0


def test_loss_bursts_at_a_filling_queue_are_attributed() -> None:
    flown = fly(replace(FULL, loses=bursts(0.002, 0.25, 2)))
    extraction = _extract(flown)
    confusion = _confusion(flown, extraction)
    right = confusion["channel", "channel"]
    assert right >= 20
    assert right / sum(n for (_, said), n in confusion.items() if said == "channel") >= 0.9
    assert right / sum(n for (was, _), n in confusion.items() if was == "channel") >= 0.9
    assert confusion["queue", "queue"] > 50


def test_positions_number_packets_that_reached_the_loss_stage(full: tuple[Flown, Extraction]) -> None:
    flown, extraction = full
    rows = _packets(extraction)
    assert len(rows) == len(flown.fate)
    reached = [row for row in rows if row["position"] is not None]
    assert [row["position"] for row in reached] == list(range(len(reached)))
    for row in rows:
        assert (row["position"] is None) == (flown.fate[row["record"]] == "queue")
        assert row["lost"] == (flown.fate[row["record"]] == "channel")
        assert (row["evidence"] is not None) == (flown.fate[row["record"]] != "delivered")


def test_table_has_the_declared_schema(full: tuple[Flown, Extraction]) -> None:
    _, extraction = full
    assert extraction.channel.schema.equals(arrow_schema("channel"), check_metadata=True)
    assert conform("findings", extraction.findings).num_rows == extraction.findings.num_rows > 0
    intervals = [row for row in extraction.channel.to_pylist() if row["kind"] == "interval"]
    assert len(intervals) == 1
    assert intervals[0]["rate_bps"] == pytest.approx(4e6, rel=0.01)
    assert intervals[0]["delay_ns"] == pytest.approx(100_000_000, rel=0.01)
    assert intervals[0]["known"] is True


def test_intervals_of_estimates_contain_the_true_value_and_are_narrow(full: tuple[Flown, Extraction]) -> None:
    _, extraction = full
    for name, truth, width in (
        ("rate_bps", 4e6, 0.03), ("base_rtt_ns", 200e6, 0.03), ("queue_limit_pkts", 60, 0.2),
    ):  # fmt: skip
        estimate = extraction.estimate(name)
        assert estimate.known
        assert estimate.value == pytest.approx(truth, rel=width / 2)
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= truth <= estimate.high
        assert estimate.high - estimate.low <= width * truth
    share = extraction.estimate("channel_loss_share")
    assert share.low is not None
    assert share.high is not None
    assert share.low < 0.001 < share.high


def test_a_propagation_delay_that_serialisation_hides_has_bounds() -> None:
    # 40 ms for the packet, and next to nothing for the way.
    flown = fly(LinkModel(300e3, 1_000, 20, 20_000_000_000, bernoulli(0.0, 1)))
    base = _extract(flown).estimate("base_rtt_ns")
    assert base.value is not None
    assert base.low is not None
    assert base.high is not None
    assert 0.0 <= base.low <= base.value <= base.high
    assert base.low <= 2_000 <= base.high
    assert base.high > base.low


def test_delay_is_the_round_trip_time_of_each_packet(full: tuple[Flown, Extraction]) -> None:
    _, extraction = full
    # 200 ms propagation, 3 ms for the packet, 0.104 ms for the ACK; the full queue adds 61 x 3 ms at maximum.
    delays = [row["delay_ns"] for row in _packets(extraction) if row["delay_ns"] is not None]
    assert min(delays) == 203_104_000
    assert 203_104_000 + 58 * 3_000_000 < max(delays) <= 203_104_000 + 61 * 3_000_000


def test_lossless_link_with_jitter_has_no_channel_loss() -> None:
    flown = fly(LinkModel(5e6, 80_000_000, 40, 20_000_000_000, bernoulli(0.0, 1), jitter_ns=200_000))
    extraction = _extract(flown)
    assert Counter(flown.fate.values())["queue"] > 30
    assert extraction.counts["channel"] == extraction.counts["unknown_taken_as_channel"] == 0
    assert not any(row["lost"] for row in extraction.channel.to_pylist())
    assert extraction.estimate("rate_bps").value == pytest.approx(5e6, rel=0.005)
    assert extraction.estimate("queue_limit_pkts").value == pytest.approx(40, abs=1)


def test_outage_is_detected_and_becomes_an_interval() -> None:
    outage = (10_000_000_000, 11_000_000_000)
    flown = fly(LinkModel(2e6, 200_000_000, 50, 20_000_000_000, bernoulli(0.0, 1), outage=outage))
    extraction = _extract(flown)
    truth = Counter(flown.fate.values())
    assert truth["outage"] > 10
    assert _confusion(flown, extraction) == {("queue", "queue"): truth["queue"], ("outage", "outage"): truth["outage"]}
    intervals = [r for r in extraction.channel.to_pylist() if r["kind"] == "interval"]
    rows = [r for r in intervals if r["cause"] == "outage"]
    assert [r["known"] for r in rows] == [False, True, False]
    assert [r["t_ns"] for r in rows[1:]] == [r["end_ns"] for r in rows[:-1]]
    # A delay after the first departure that was lost (they are 6 ms apart), to the last one that the sender offered.
    assert outage[0] <= rows[1]["t_ns"] - 100_000_000 <= outage[0] + 6_100_000
    assert 0 < rows[1]["t_ns"] - rows[0]["t_ns"] <= 4_000_000
    assert outage[0] + 200_000_000 <= rows[1]["end_ns"] <= outage[1]
    # What is not known is half out, and the state beneath says so.
    (unsure,) = (r for r in intervals if not r["lost"] and not r["known"])
    assert abs(unsure["end_ns"] - rows[2]["end_ns"] - (rows[2]["end_ns"] - rows[2]["t_ns"])) <= 1
    assert abs(rows[0]["t_ns"] - unsure["t_ns"] - (rows[0]["end_ns"] - rows[0]["t_ns"])) <= 1
    assert any("outage began" in sentence for sentence in extraction.unknowns)


def test_loss_run_shorter_than_the_one_way_delay_is_not_an_outage() -> None:
    flown = fly(LinkModel(2e6, 200_000_000, 50, 20_000_000_000, bernoulli(0.0, 1), outage=(10 * 10**9, 11 * 10**9)))
    delivery = _delivery.with_cross_traffic(
        _delivery.of_flow(flown.segments, flown.events, 1, "a2b"), no_cross_traffic()
    )
    link = _link.of_delivery(delivery)
    assert len(_attribution.verdicts(delivery, link).outages) == 1
    # On a way of over a second a break of the link would have taken what was under way too, and for longer.
    far = replace(link, base=replace(link.base, per_packet_ns=link.base.per_packet_ns + 2 * 10**9))
    assert _attribution.verdicts(delivery, far).outages == ()


@pytest.mark.parametrize("whole", [True, False])
def test_time_zero_is_the_syn_of_the_flow_captured_or_computed(whole: bool) -> None:
    flown = fly(LinkModel(2e6, 200_000_000, 50, 5_000_000_000, bernoulli(0.0, 1)))
    flows = flown.flows.to_pylist()
    flows[0] |= {"syn": whole, "start_ns": 0}
    extraction = extract(flown.segments, table_from_rows("flows", flows), flown.events, 1)
    first = next(row for row in extraction.channel.to_pylist() if row["kind"] == "interval")
    # Without it the handshake's serialisation, 0.48 ms, and the host's microsecond are not known.
    assert first["t_ns"] == (0 if whole else pytest.approx(481_000, abs=100_000))


def test_a_packet_that_may_have_arrived_is_undecided() -> None:
    flown = fly(LinkModel(2e6, 200_000_000, 50, 5_000_000_000, bernoulli(0.01, 1)))
    whole = _delivery.of_flow(flown.segments, flown.events, 1, "a2b")
    record = int(whole.record[~whole.lost][40])
    rows = flown.events.to_pylist()
    events = table_from_rows("events", [*rows, {**rows[0], "kind": "undecided", "record": record}])
    unclear = _delivery.of_flow(flown.segments, events, 1, "a2b")
    assert set(unclear.record[unclear.undecided]) - set(whole.record[whole.undecided]) == {record}
    assert (unclear.lost == whole.lost).all()
    found = extract(flown.segments, flown.flows, events, 1)
    assert found.counts["undecided"] == int(unclear.undecided.sum())
    assert [one["known"] for one in found.channel.to_pylist() if one["record"] == record] == [False]


def test_states_cover_outages_and_outages_do_not_overlap() -> None:
    flown = fly(LinkModel(2e6, 200_000_000, 50, 5_000_000_000, bernoulli(0.0, 1)))
    delivery = _delivery.of_flow(flown.segments, flown.events, 1, "a2b")
    delivery = _delivery.with_cross_traffic(delivery, no_cross_traffic())
    link = _link.of_delivery(delivery)
    # Two outages at the very end, and a queue so deep that what was lost leaves it after the last packet was sent.
    last = len(delivery) - 1
    wait_ns = link.replay.wait_ns.copy()
    for packet, pkts in ((last - 10, 900.0), (last - 9, 850.0), (last, 1000.0)):
        wait_ns[packet] = pkts * link.full_ns[packet]
    link = replace(link, replay=replace(link.replay, wait_ns=wait_ns))
    outages = ((last - 20, last - 10, last - 9), (last - 9, last, None))
    verdicts = replace(_attribution.verdicts(delivery, link), outages=outages)
    # No ACK shows when these left the queue.
    delivery.prompt[last - 20 :] = False
    verdicts.cause[last - 20 :] = _attribution.OUTAGE
    rows = interval_rows(delivery, link, verdicts, int(delivery.t_ns[0]))
    out = [row for row in rows if row["cause"] == "outage"]
    states = [row for row in rows if row["cause"] == "none"]
    assert [row["t_ns"] for row in out[1:]] == [row["end_ns"] for row in out[:-1]]
    assert states[-1]["end_ns"] == out[-1]["end_ns"]
    assert int(str(states[-1]["end_ns"])) > delivery.t_ns[-1] + 5 * 10**9
    check_intervals(table_from_rows("channel", rows), "it")


def test_unsaturated_flow_gives_bounds() -> None:
    flown = fly(LinkModel(5e6, 100_000_000, 40, 10_000_000_000, bernoulli(0.05, 2), window_pkts=2))
    extraction = _extract(flown)
    rate, queue, base = (extraction.estimate(n) for n in ("rate_bps", "queue_limit_pkts", "base_rtt_ns"))
    assert rate.value is None
    assert not rate.known
    assert rate.low is not None
    assert 0.2e6 < rate.low <= 5e6
    assert queue.value is None
    assert not queue.known
    assert not base.known
    assert base.low is not None
    assert base.high is not None
    assert base.low < 100e6 < base.high
    assert extraction.counts["channel"] == Counter(flown.fate.values())["channel"] > 0
    assert any("lower bound" in sentence for sentence in extraction.unknowns)
    assert any("limit of the queue is not known" in sentence for sentence in extraction.unknowns)


def test_packets_sent_together_show_the_rate_without_a_standing_queue() -> None:
    flown = fly(LinkModel(5e6, 100_000_000, 40, 10_000_000_000, bernoulli(0.01, 2), window_pkts=10))
    rate = _extract(flown).estimate("rate_bps")
    assert rate.value == pytest.approx(5e6, rel=0.001)


def test_queue_that_never_fills_has_only_a_lower_bound() -> None:
    flown = fly(LinkModel(5e6, 100_000_000, 400, 15_000_000_000, bernoulli(0.001, 2), window_pkts=80))
    extraction = _extract(flown)
    queue = extraction.estimate("queue_limit_pkts")
    assert extraction.estimate("rate_bps").value == pytest.approx(5e6, rel=0.005)
    assert queue.value is None
    assert queue.low is not None
    assert 20 < queue.low < 80
    assert _confusion(flown, extraction).keys() == {("channel", "channel")}


def test_same_tables_give_the_same_extraction(full: tuple[Flown, Extraction]) -> None:
    flown, extraction = full
    again = _extract(flown)
    assert again.channel.equals(extraction.channel)
    assert again.estimates == extraction.estimates


def test_errors_name_the_flow_and_the_cause(full: tuple[Flown, Extraction]) -> None:
    flown, _ = full
    with pytest.raises(ChannelError, match="no flow 7"):
        extract(flown.segments, flown.flows, flown.events, 7)
    with pytest.raises(ChannelError, match="carries no data"):
        extract(flown.segments.slice(0, 1), flown.flows, flown.events, 1)
    with pytest.raises(ChannelError, match="acknowledged"):
        extract(flown.segments.slice(0, 8), flown.flows, flown.events, 1)
    rows = flown.flows.to_pylist()
    rows[0]["vantage"] = "receiver"
    with pytest.raises(ChannelError, match="taken at the receiver"):
        extract(flown.segments, type(flown.flows).from_pylist(rows), flown.events, 1)


def test_both_directions_give_the_same_extraction(full: tuple[Flown, Extraction]) -> None:
    flown, extraction = full
    other = {"a2b": "b2a", "b2a": "a2b"}
    segments = flown.segments.to_pylist()
    for row in segments:
        row["direction"] = other[row["direction"]]
        # The data sender answers the opening SYN now; its own SYN carries the ACK.
        row["flags"] |= 16
        row["ack"] = row["ack"] if row["ack"] is not None else 1
    events = [{**row, "direction": "b2a"} for row in flown.events.to_pylist()]
    flows = [{**row, "data_direction": "b2a"} for row in flown.flows.to_pylist()]
    mirrored = extract(
        table_from_rows("segments", segments), table_from_rows("flows", flows), table_from_rows("events", events), 1
    )
    assert mirrored.estimates == extraction.estimates
    assert set(mirrored.channel["direction"].to_pylist()) == {"b2a"}
    assert mirrored.channel.drop_columns(["direction"]).equals(extraction.channel.drop_columns(["direction"]))


def test_queue_drops_are_attributed_without_sack() -> None:
    flown = fly(FULL)
    segments = [{**row, "sack": []} for row in flown.segments.to_pylist()]
    extraction = extract(table_from_rows("segments", segments), flown.flows, flown.events, 1)
    truth, confusion = Counter(flown.fate.values()), _confusion(flown, extraction)
    assert confusion["queue", "queue"] >= 0.9 * truth["queue"]
    assert confusion["channel", "channel"] >= 0.9 * truth["channel"]
