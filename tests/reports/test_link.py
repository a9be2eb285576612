from __future__ import annotations

from typing import Any

import pytest

from hindflight.reports import charts
from hindflight.reports.frames import View, flow_of
from hindflight.reports.link import events_of, states_of
from hindflight.reports.sections import Figure, Section, Source, sections
from hindflight.toolkit.errors import ReportError
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.text import shell_line
from tests.reports.conftest import (
    LOST,
    MSS,
    RTT_NS,
    SEGMENTS,
    START_NS,
    Rows,
    Tables,
    flow_events,
    flow_row,
    flow_segments,
    required,
)
from tests.reports.test_charts import layer_rows

SECOND = 1_000_000_000


def packet(event: dict[str, Any], cause: str, **given: object) -> dict[str, object]:
    same = {"record": event["record"], "t_ns": event["t_ns"], "direction": "a2b"}
    return required("channel", kind="packet", cause=cause, evidence=f"because of the {cause}", **{**same, **given})


def state(start_s: float, end_s: float, **given: object) -> dict[str, object]:
    times = {"t_ns": START_NS + round(start_s * SECOND), "end_ns": START_NS + round(end_s * SECOND)}
    return required("channel", kind="interval", direction="a2b", cause="none", known=True, **times, **given)


def link_tables(channel: Rows, **unsaid: object) -> Tables:
    rows = flow_segments()
    events = [{**event, **unsaid} if event["kind"] == "loss" else event for event in flow_events()]
    given = {"segments": rows, "flows": [flow_row(rows)], "events": events, "channel": channel}
    return {name: table_from_rows(name, table) for name, table in given.items()}


def losses(tables: Tables) -> list[dict[str, Any]]:
    return [row for row in events_of(tables, flow_of(tables, View())).to_dicts() if row["kind"] == "loss"]


def test_losses_of_unknown_cause_take_it_from_the_channel() -> None:
    events = [event for event in flow_events() if event["kind"] == "loss"]
    channel = [packet(events[0], "channel"), packet(events[1], "queue"), packet(events[2], "none")]
    said = losses(link_tables(channel, cause="unknown", evidence="a hole"))
    assert [(row["cause"], row["evidence"]) for row in said] == [
        ("channel", "because of the channel"),
        ("queue", "because of the queue"),
        ("unknown", "a hole"),
        ("unknown", "a hole"),
    ]


def test_cause_of_the_event_takes_precedence() -> None:
    events = [event for event in flow_events() if event["kind"] == "loss"]
    said = losses(link_tables([packet(event, "outage") for event in events]))
    assert [row["cause"] for row in said] == ["channel", "channel", "queue", "outage"]
    assert list(LOST.values()) == ["channel", "channel", "queue", "unknown"]


@pytest.mark.parametrize("given", [{"record": 99_999}, {"t_ns": START_NS + 1}, {"direction": "b2a"}])
def test_other_packets_do_not_change_the_cause(given: dict[str, object]) -> None:
    events = [event for event in flow_events() if event["kind"] == "loss"]
    said = losses(link_tables([packet(events[0], "queue", **given)], cause="unknown"))
    assert {row["cause"] for row in said} == {"unknown"}


def test_outages_of_the_link_are_drawn_in_the_timeline() -> None:
    out = state(2.0, 2.5, lost=True)
    tables = link_tables([{**out, "cause": "outage", "evidence": "all lost"}, state(900, 901, lost=True)])
    outages = [row for row in events_of(tables, flow_of(tables, View())).to_dicts() if row["kind"] == "outage"]
    assert [(row["t"], row["t_end"], row["evidence"]) for row in outages] == [(1.5, 2.0, None), (2.0, 2.5, "all lost")]
    lanes = [layer["encoding"]["y"] for layer in charts.losses(tables).to_dict()["layer"] if "y" in layer["encoding"]]
    assert "outage (2)" in lanes[0]["scale"]["domain"]


def test_intervals_of_an_outage_that_touch_are_one_outage() -> None:
    parts = [state(2.0, 2.5, lost=True), state(2.5, 2.7, lost=True), state(3.0, 3.1, lost=True)]
    tables = link_tables(parts)
    outages = [row for row in events_of(tables, flow_of(tables, View())).to_dicts() if row["kind"] == "outage"]
    assert [(row["t"], row["t_end"]) for row in outages] == [(1.5, 2.0), (2.0, 2.7), (3.0, 3.1)]


def test_bottleneck_rate_and_propagation_delay_are_drawn() -> None:
    channel = [
        state(0, 3, rate_bps=1e6, delay_ns=RTT_NS // 2),
        state(3, 6, rate_bps=2e6, delay_ns=RTT_NS // 4),
        state(1, 2, lost=True),
    ]
    tables = link_tables(channel)
    rate = layer_rows(charts.throughput(tables).to_dict(), "bottleneck rate")
    assert [(float(row["t"]), float(row["mbps"])) for row in rate] == [(0, 1), (3, 2), (6, 2)]
    floor = layer_rows(charts.rtt(tables).to_dict(), "propagation delay, both directions")
    assert [(float(row["t"]), float(row["ms"])) for row in floor] == [(0, 500), (3, 250), (6, 250)]


def test_channel_of_the_capture_does_not_apply_to_a_replay(tables: Tables) -> None:
    with_link = {**tables, "channel": table_from_rows("channel", [state(0, 5, rate_bps=1e6, delay_ns=1)])}
    replay = flow_of(with_link, View(run_id=1))
    assert states_of(with_link, replay, "rate_bps").is_empty()
    assert states_of(with_link, flow_of(with_link, View()), "rate_bps").height == 2


def test_sequence_range_of_a_loss_is_kept() -> None:
    first = losses(link_tables([]))[0]
    number = next(iter(LOST))
    assert (first["seq_start"], first["seq_end"]) == (1 + number * MSS, 1 + (number + 1) * MSS)


def test_the_queue_is_the_delay_above_propagation_times_the_rate_at_that_time() -> None:
    tables = link_tables([state(0, 3, rate_bps=1e6, delay_ns=RTT_NS // 2), state(3, 9, rate_bps=2e6, delay_ns=0)])
    limit = {"section": "key_numbers", "metric": "queue limit", "value": 50.0, "unit": "pkts", "verdict": "info"}
    tables["findings"] = table_from_rows("findings", [required("findings", **limit)])
    spec = charts.queue_occupancy(tables).to_dict()
    held = layer_rows(spec, "in the queue, as a packet came")
    first, late = held[0], next(row for row in held if float(row["t"]) > 3)
    assert float(first["bytes"]) == pytest.approx(0.5e-3 * 1e6 / 8, abs=1), "0.5 ms above 500 ms at 1 Mbit/s"
    assert float(late["bytes"]) == pytest.approx(RTT_NS / 1e9 * 2e6 / 8, rel=0.01), "all of the delay at 2 Mbit/s"
    assert float(first["pkts"]) == pytest.approx(float(first["bytes"]) / 1500, abs=0.05)
    assert layer_rows(spec, "limit of the queue") == [{"bytes": str(50 * 1500)}]
    with pytest.raises(ReportError, match="not both known"):
        charts.queue_occupancy(link_tables([state(0, 3, rate_bps=1e6)]))


@pytest.mark.parametrize(("vantage", "said"), [("sender", False), ("middle", True), ("unknown", True)])
def test_the_application_delay_begins_at_the_place_of_the_capture(vantage: str, said: bool) -> None:
    rows = flow_segments()
    flow = {**flow_row(rows), "vantage": vantage}
    tables = {"segments": table_from_rows("segments", rows), "flows": table_from_rows("flows", [flow])}
    spec = charts.captured_application_delay(tables).to_dict()
    assert ("From the place of the capture, not from the sender." in spec["title"]["subtitle"]) == said
    assert ("From the place of the capture" in spec["description"]) == said


def test_a_capture_at_the_receiver_shows_no_application_delay() -> None:
    rows = flow_segments()
    flow = {**flow_row(rows), "vantage": "receiver"}
    tables = {"segments": table_from_rows("segments", rows), "flows": table_from_rows("flows", [flow])}
    with pytest.raises(ReportError, match="taken at the receiver"):
        charts.captured_application_delay(tables)


def flows_of_one_link() -> Tables:
    """Return two flows, and the link as extracted for the first."""
    rows = flow_segments()
    later = flow_segments(flow_id=2, start_ns=START_NS + 1_000_000)
    sent = [row for row in rows if row["direction"] == "a2b"]
    states = [state(0, 9, rate_bps=1e6, delay_ns=RTT_NS // 2)]
    limit = {"section": "key_numbers", "metric": "queue limit", "value": 50.0, "unit": "pkts", "verdict": "info"}
    given = {
        "segments": [*rows, *later],
        "flows": [flow_row(rows), flow_row(later, flow_id=2)],
        "channel": [*states, *(packet(row, "none") for row in sent)],
        "findings": [required("findings", **limit)],
    }
    return {name: table_from_rows(name, table) for name, table in given.items()}


def test_the_link_of_one_flow_is_not_drawn_for_another() -> None:
    extract = ["hindflight", "channel", "extract", "ws", "--flow", "1", "-o", "channel.parquet"]
    source = Source(flows_of_one_link(), "ws", {"channel": tuple(extract)})
    (happened,) = (one for one in sections(source, {}) if one.key == "what_happened")
    first, second = (part for part in happened.parts if isinstance(part, Section))
    assert (first.key, second.key) == ("flow-1", "flow-2")
    of_first, of_second = (
        {part.key: part for part in flow.parts if isinstance(part, Figure)} for flow in (first, second)
    )
    assert "limit of the queue" in str(of_first["flow-1-queue_occupancy"].chart.to_dict())
    assert {"flow-2-queue_occupancy", "flow-2-link_state"}.isdisjoint(of_second)
    assert shell_line(extract) in of_first["flow-1-throughput"].commands
    assert not any("channel" in line for figure in of_second.values() for line in figure.commands)
    assert "hindflight channel extract ws --flow 2 -o channel.parquet" in " ".join(second.sentences)
    assert not any("channel extract" in sentence for sentence in first.sentences)


def test_a_lost_segment_delays_all_that_follow_it(tables: Tables) -> None:
    spec = charts.captured_application_delay(tables).to_dict()
    rows = layer_rows(spec, "new segment, until acknowledged with all before it")
    delays = [float(row["ms"]) for row in rows]
    assert len(delays) == SEGMENTS
    assert delays[0] == pytest.approx(500.5)
    first = min(LOST)
    assert min(delays[first : first + 5]) > 900, "they wait for the retransmission"
