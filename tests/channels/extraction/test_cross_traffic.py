"""Extraction with cross traffic in the capture: flows simulated by the engine, and a recorded pair of flows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from hindflight.channels.extraction import link as link_module
from hindflight.channels.extraction import queue
from hindflight.channels.extraction.attribution import verdicts
from hindflight.channels.extraction.cross_traffic import cross_traffic_of, no_cross_traffic
from hindflight.channels.extraction.delivery import of_flow
from hindflight.channels.extraction.extract import Context, Extraction, extract
from hindflight.channels.extraction.link import of_delivery
from hindflight.toolkit.schema import table_from_rows
from tests.channels.extraction.kernel_table import ALL
from tests.reference.shared_link import VIDEO, extracted, flown, telemetry

SECOND = 10**9
CAUSES = Path(__file__).resolve().parents[3] / "fixtures" / "causes"


def value(extraction: Extraction, name: str) -> float:
    found = extraction.estimate(name).value
    assert found is not None
    return found


def test_cross_traffic_counts_in_the_rate() -> None:
    tables = flown({"loss": {"model": "bernoulli", "per": 0.0005}}, datagrams=[VIDEO])
    counted, unshared = extracted(tables, telemetry()), extracted(tables, no_cross_traffic())
    # What the flow got is what the datagrams left it; the link's rate is both together.
    assert value(unshared, "rate_bps") < 0.65 * 8e6
    assert value(counted, "rate_bps") == pytest.approx(8e6, rel=0.002)
    assert value(counted, "base_rtt_ns") == pytest.approx(80e6, rel=0.002)
    assert value(unshared, "base_rtt_ns") < 79.5e6
    limit = counted.estimate("queue_limit_pkts")
    assert not limit.known
    assert "In full-sized packets" in limit.how
    assert "cross traffic" in counted.estimate("rate_bps").how
    truth = {row["record"]: row["cause"] for row in tables["events"].to_pylist() if row["kind"] == "loss"}
    said = {row["record"]: row["cause"] for row in counted.channel.to_pylist() if row["record"] in truth}
    assert len(truth) > 50
    assert sum(said[record] == cause for record, cause in truth.items()) >= len(truth) - 1
    # Rows and positions are the flow's own.
    assert counted.counts["data_packets"] == unshared.counts["data_packets"]
    assert counted.counts["other_traffic"] > 11_000
    positions = counted.channel["position"].drop_null().to_pylist()
    assert positions == list(range(len(positions)))


def test_gaps_say_on_a_shared_link_what_the_queue_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "LATE_SHARE", -1.0)
    tables = flown({"loss": {"model": "bernoulli", "per": 0.005}}, datagrams=[{**VIDEO, "rate": "6 Mbit/s"}])
    delivery = of_flow(tables["segments"], tables["events"], 1, "a2b")
    link = of_delivery(delivery)
    assert not link.unshared
    assert link.ceiling is not None
    # Residuals count from the queue that was simulated.
    simulated = queue.replay(link.arrivals, link.ceiling.limit, unshared=False)
    assert np.array_equal(link.replay.entered, simulated.entered)
    assert np.array_equal(link.replay.residual, simulated.residual, equal_nan=True)
    found = verdicts(delivery, link)
    for record, text in _evidence_of(extracted(tables, no_cross_traffic())):
        gap = found.gap_odds[np.flatnonzero(delivery.record == record)[0]]
        assert ("used the link" in text) == (gap < 0)
        assert ("did not use the link" in text) == (gap > 0)


def _evidence_of(extraction: Extraction) -> list[tuple[int, str]]:
    rows = extraction.channel.to_pylist()
    found = [(row["record"], row["evidence"]) for row in rows if row["kind"] == "packet" and row["evidence"]]
    assert len(found) > 50
    return found


def test_packets_of_a_parallel_flow_count_once() -> None:
    from hindflight.toolkit.capture import load_capture

    capture = load_capture(CAUSES / "L4602.9-cubic" / "snd.pcap.xz")
    tables = capture.segments, capture.flows, capture.events
    flow = next(row for row in capture.flows.to_pylist() if row["flow_id"] == 1)
    once = extract(*tables, 1)
    both = "data packets of the flow and of those parallel to it"
    assert both in once.estimate("channel_loss_share").how
    # A caller that did not leave the other flow out has its packets as cross traffic only.
    everything = cross_traffic_of(flow, *tables)
    again = extract(*tables, 1, Context(everything))
    within = everything.t_ns <= max(row["t_ns"] for row in again.channel.to_pylist() if row["kind"] == "packet")
    assert again.counts["other_traffic"] == within.sum()
    assert both not in again.estimate("channel_loss_share").how


def test_the_whole_link_has_the_packets_and_losses_of_parallel_flows() -> None:
    from hindflight.toolkit.capture import load_capture

    capture = load_capture(CAUSES / "L4602.9-cubic" / "snd.pcap.xz")
    tables = capture.segments, capture.flows, capture.events
    own = extract(*tables, 1).channel
    whole = extract(*tables, 1, Context(whole_link=True)).channel
    rows = {row["record"]: row for row in whole.to_pylist() if row["kind"] == "packet"}
    mine = [row for row in own.to_pylist() if row["kind"] == "packet"]
    assert len(rows) > 1.05 * len(mine)
    assert [(rows[r["record"]]["lost"], rows[r["record"]]["cause"]) for r in mine] == [
        (r["lost"], r["cause"]) for r in mine
    ]
    records = {row["record"] for row in mine}
    assert any(row["lost"] for record, row in rows.items() if record not in records)
    # One sequence of positions, over the packets of both flows.
    positions = [row["position"] for row in rows.values() if row["position"] is not None]
    assert positions == list(range(len(positions)))
    assert whole.filter(pc.equal(whole["kind"], "interval")).equals(own.filter(pc.equal(own["kind"], "interval")))


def test_rate_and_delay_changes_become_intervals_despite_cross_traffic() -> None:
    steps = [{"at": "0 s"}, {"at": "15 s", "rate": "5 Mbit/s", "delay": "60 ms"}]
    # No packet of either flow meets a full queue, so that no loss of cross traffic is hidden.
    link = {"channel": {"model": "handover", "steps": steps}, "queue": "1000 pkts"}
    tables = flown(link, datagrams=[VIDEO], flow={"receive_buffer": "160 KiB"})
    found = extracted(tables, telemetry())
    rows = [row for row in found.channel.to_pylist() if row["kind"] == "interval" and not row["lost"]]
    for at, rate_bps, delay_ns in ((7, 8e6, 40e6), (25, 5e6, 60e6)):
        (row,) = [r for r in rows if r["t_ns"] <= at * SECOND < r["end_ns"]]
        assert row["rate_bps"] == pytest.approx(rate_bps, rel=0.01)
        assert row["delay_ns"] == pytest.approx(delay_ns, rel=0.02)
    assert rows[0]["known"]
    # The window keeps the slower link busy: no round trip without a queue shows its delay.
    assert not rows[-1]["known"]
    changes = [row["t_ns"] for row in rows[1:]]
    assert changes
    assert all(abs(t_ns - 15 * SECOND) < SECOND for t_ns in changes)


def test_traffic_on_another_path_does_not_count() -> None:
    tables = flown({})
    flow = tables["flows"].to_pylist()[0]
    row = {"input_id": flow["input_id"], "record": 1, "kind": "udp", "ip_bytes": 500}
    ways = [
        ("10.0.0.1", "192.0.2.9"), ("192.0.2.9", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"), ("192.0.2.9", "10.0.0.1")
    ]  # fmt: skip
    others = table_from_rows(
        "others", [{**row, "t_ns": i, "src_addr": src, "dst_addr": dst} for i, (src, dst) in enumerate(ways)]
    )
    assert (flow["a_addr"], flow["b_addr"], flow["data_direction"]) == ("10.0.0.1", "10.0.0.2", "a2b")
    found = cross_traffic_of(flow, tables["segments"], tables["flows"], tables["events"], others)
    assert found.t_ns.tolist() == [0, 1]
    assert found.kinds == {"udp": 2}
    assert found.octets == 1000
    elsewhere = table_from_rows("others", [{**r, "input_id": flow["input_id"] + 1} for r in others.to_pylist()])
    assert len(cross_traffic_of(flow, tables["segments"], tables["flows"], tables["events"], elsewhere)) == 0


@pytest.mark.skipif(not (ALL / "S12-cubic+reno").is_dir(), reason="the recording of two flows is not at hand")
def test_each_of_two_recorded_flows_shows_the_full_rate() -> None:
    from hindflight.toolkit.capture import load_capture

    capture = load_capture(ALL / "S12-cubic+reno" / "snd.pcap.xz")
    for flow_id in (1, 2):
        found = extract(capture.segments, capture.flows, capture.events, flow_id)
        for name, truth, tolerance in (("rate_bps", 5e6, 0.001), ("base_rtt_ns", 80e6, 0.002)):
            assert found.estimate(name).known
            assert value(found, name) == pytest.approx(truth, rel=tolerance)
        assert found.estimate("queue_limit_pkts").known
        assert value(found, "queue_limit_pkts") == 40
        assert found.counts["channel"] == 0
        assert found.counts["other_traffic"] > 4000


def test_cross_traffic_of_thousands_of_flows_takes_one_pass() -> None:
    tables = {name: table.slice(0, 1) for name, table in flown({}).items()}
    flow, segment = tables["flows"].to_pylist()[0], tables["segments"].to_pylist()[0]
    flow |= {"flow_id": 1, "a_addr": "10.0.0.1", "b_addr": "10.9.9.9", "data_direction": "a2b"}
    rng = np.random.default_rng(1)
    flows, expected = [flow], []
    segments: list[dict[str, Any]] = []
    events: list[dict[str, Any]] = []
    for number in range(2, 4002):
        a, b = (f"10.0.0.{rng.integers(1, 4)}", f"10.9.9.{rng.integers(7, 10)}")
        ends = (a, b) if number % 2 else (b, a)
        flows.append({**flow, "flow_id": number, "a_addr": ends[0], "b_addr": ends[1]})
        for direction, (src, dst) in (("a2b", ends), ("b2a", ends[::-1])):
            t_ns, record = int(rng.integers(SECOND)), len(segments)
            segments.append(
                {
                    **segment,
                    "flow_id": number,
                    "direction": direction,
                    "t_ns": t_ns,
                    "ip_bytes": number,
                    "record": record,
                }
            )
            if record % 7 == 0:
                events.append(
                    {
                        "run_id": 0, "leg": 0, "flow_id": number, "direction": direction, "kind": "loss",
                        "cause": "unknown", "t_ns": t_ns, "record": record,
                    }
                )  # fmt: skip
            elif src == "10.0.0.1" or dst == "10.9.9.9":
                expected.append((t_ns, number))
    found = cross_traffic_of(
        flow,
        *(table_from_rows(n, rows) for n, rows in (("segments", segments), ("flows", flows), ("events", events))),
    )
    assert found.kinds == {"tcp": len(expected)}
    assert 1000 < len(expected) < 6000
    assert sorted(zip(found.t_ns.tolist(), found.size_bytes.tolist(), strict=True)) == sorted(expected)
