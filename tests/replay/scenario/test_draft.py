"""The drafted scenario reads back, carries its intervals, and says what it assumes."""

from __future__ import annotations

import dataclasses
import tomllib

import pytest

from hindflight.replay.scenario.captured_application import CapturedWrites
from hindflight.replay.scenario.draft import Draft, OtherFlow, SendBuffer, Stack, Value, draft_scenario
from hindflight.replay.scenario.model import Trace, parse_scenario
from hindflight.replay.scenario.proxies import StackLayers

DRAFT = Draft(
    name='a "quoted" name\nwith a second line',
    duration_ns=60_000_000_000,
    trace_file="channel.parquet",
    block_pkts=80,
    rate=Value(3_998_000.0, 3_990_000.0, 4_006_000.0, "ACK clock"),
    round_trip=Value(480_200_000.0, 480_100_000.0, 480_400_000.0, "least RTT less serialisation"),
    queue=Value(199.6, 195.0, 203.0, "RTT at its ceiling"),
    stack=Stack(1448, 52, 10, 6_000_000),
    input_name="flight.pcap",
    input_sha256="0" * 64,
    flow_id=3,
    variant="auto",
    variants=("newreno", "cubic"),
    seeds=50,
    unknowns=('losses of ACKs are "not" known',),
)


def test_reads_back_with_the_values_it_was_given() -> None:
    scenario = parse_scenario(tomllib.loads(draft_scenario(DRAFT)), "draft.toml", ("newreno", "cubic"))
    assert scenario.name == DRAFT.name
    assert scenario.unknowns == tuple(DRAFT.unknowns)
    up, down = scenario.links
    assert up.rate == pytest.approx(3.998e6)
    assert up.queue.engine()["limit_pkts"] == 200
    assert isinstance(up.loss, Trace)
    assert (up.loss.file, up.loss.block) == ("channel.parquet", 80)
    second_hop_ns = (1448 + 52 + 52) * 8e9 / 3.998e6
    assert 2 * (up.delay + down.delay) == pytest.approx(480.2e6 - second_hop_ns, rel=1e-5)
    assert up.backward.delay == up.delay
    assert down.loss.model == "none"
    assert scenario.flow.receive_buffer == 6_000_000
    assert scenario.captured is not None
    assert scenario.captured.variant == "auto"


def test_a_preset_of_one_proxy_stands_in_the_place_of_the_relay() -> None:
    draft = dataclasses.replace(DRAFT, proxies=("none", "snoop", "pepsal"))
    scenario = parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", ("newreno", "cubic", "hybla"))
    assert [(proxy.name, proxy.node, proxy.kind) for proxy in scenario.proxy] == [
        ("snoop", "relay", "snoop"),
        ("pepsal", "relay", "split"),
    ]


def test_intervals_and_assumptions_follow_the_values() -> None:
    text = draft_scenario(DRAFT)
    assert "95 %: 3.99 to 4.006 Mbit/s; ACK clock" in text
    assert "95 %: 195 to 203 pkts" in text
    second_hop_ms = (1448 + 52 + 52) * 8e3 / 3.998e6
    low, high = ((edge - second_hop_ms) / 4 for edge in (480.1, 480.4))
    assert f"95 %: {low:.6g} to {high:.6g} ms; 50 % of the path by assumption" in text


def test_what_the_capture_cannot_tell_is_left_open() -> None:
    blind = dataclasses.replace(DRAFT, rate=None, queue=None, stack=Stack(1448, 52, 10, None))
    text = draft_scenario(blind)
    assert "# rate: not known" in text
    assert "not known: the capture does not show its limit" in text
    assert "never filled" not in text
    scenario = parse_scenario(tomllib.loads(text), "draft.toml", ("newreno", "cubic"))
    assert scenario.links[0].rate is None
    assert scenario.links[0].queue.engine()["limit_pkts"] == 1000


def test_a_capture_that_begins_in_mid_flow_starts_with_what_was_in_flight() -> None:
    stack = Stack(1448, 52, None, None, flight_pkts=24)
    draft = dataclasses.replace(DRAFT, stack=stack)
    scenario = parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", ("newreno", "cubic"))
    assert (scenario.flow.initial_window, scenario.flow.initial_ssthresh) == (24, 24)


def test_without_a_proxy_the_path_is_one_hop_with_the_whole_delay() -> None:
    text = draft_scenario(dataclasses.replace(DRAFT, proxies=("none",)))
    (link,) = parse_scenario(tomllib.loads(text), "draft.toml", ("newreno", "cubic")).links
    assert 2 * link.delay == pytest.approx(480.2e6, rel=1e-5)


def test_what_the_capture_shows_of_its_sender_is_drafted() -> None:
    writes = CapturedWrites((0, 20_000_000), (1400, 600), 0.9, steady=False, until_ns=None)
    stack = Stack(1448, 52, 10, 60_000, sack=False, timestamps=False)
    other = OtherFlow("flow-2", "cubic", 3_000_000_000, Stack(1448, 52, 10, None), None, 0, None)
    draft = dataclasses.replace(
        DRAFT, stack=stack, application=writes, transfer_ns=59_500_000_000, probability=0.9,
        candidates={"cubic": 0.9}, others=[other],
    )  # fmt: skip
    scenario = parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", ("newreno", "cubic"))
    assert StackLayers(scenario.flow).engine()["sack"] is False
    assert scenario.flow.timestamps is False
    assert scenario.flow.application.engine() == {
        "kind": "writes", "at_ns": (500_000_000, 520_000_000), "bytes": (1400, 600)
    }  # fmt: skip
    assert [(flow.name, flow.start, flow.variant) for flow in scenario.flows] == [("flow-2", 3_000_000_000, "cubic")]
    assert scenario.captured is not None
    assert scenario.captured.others == ("flow-2",)
    assert (scenario.captured.transfer, scenario.captured.probability) == (59_500_000_000, 0.9)


def test_a_bulk_sender_without_sack_fills_its_send_buffer() -> None:
    stack = Stack(1448, 52, 10, 60_000, sack=False, send_buffer=SendBuffer(46_080, 4_194_304))
    other = OtherFlow("flow-2", "cubic", 3_000_000_000, stack, None, 0, 1_500_000)
    draft = dataclasses.replace(DRAFT, stack=stack, others=[other])
    scenario = parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", ("newreno", "cubic"))
    for flow in (scenario.flow, *scenario.flows):
        assert (flow.send_buffer, flow.send_buffer_max) == (46_080, 4_194_304)
        assert flow.application.engine()["write_bytes"] == 65_536
    assert [flow.size for flow in scenario.flows] == [1_500_000]


def test_captured_writes_need_no_send_buffer() -> None:
    writes = CapturedWrites((0, 20_000_000), (1400, 600), 0.9, steady=False, until_ns=None)
    stack = Stack(1448, 52, 10, 60_000, sack=False, send_buffer=SendBuffer(46_080, 4_194_304))
    draft = dataclasses.replace(DRAFT, stack=stack, application=writes)
    scenario = parse_scenario(tomllib.loads(draft_scenario(draft)), "draft.toml", ("newreno", "cubic"))
    assert scenario.flow.application.engine()["kind"] == "writes"
    assert scenario.flow.send_buffer is None
