"""The findings on a captured flow: what they count, and until when."""

from __future__ import annotations

import dataclasses
import struct
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_captures import Record, Variant, checksum
from hindflight import flight_findings as module
from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.channels.trace import Trace
from hindflight.flight_findings import flight_findings, flight_sentences
from hindflight.replay.experiment.interruptions import utc_text
from hindflight.toolkit.captured_flow import read_flow
from hindflight.toolkit.schema import table_from_rows
from hindflight.toolkit.source import open_source
from tests.reports.conftest import required
from tests.toolkit.test_artefacts import ACK, MSS, RTT_US, SYN, bulk, segment

FIN = 1


def found(records: list[Record], folder: Path) -> list[dict[str, Any]]:
    """Return the rows of `findings` on the flow with the most data of a capture."""
    path = folder / "capture.pcap"
    path.write_bytes(Variant("flight", tuple(records), len(records)).octets())
    with open_source(path) as tables:
        rows: list[dict[str, Any]] = flight_findings(tables.workspace).tables["findings"].to_pylist()
    return rows


def said(rows: list[dict[str, Any]], metric: str, section: str = "summary") -> str:
    (text,) = (row["text"] for row in rows if (row["section"], row["metric"]) == (section, metric))
    return str(text)


def test_goodput_ends_with_the_last_data_however_late_the_fin(tmp_path: Path) -> None:
    """2,000 segments in 2 s, and an application that closes after a minute."""
    last, end = 60_000_000, 100 + 2000 * MSS
    closing = [
        segment(last, True, end, 1000, FIN | ACK),
        segment(last + RTT_US, False, 1000, end + 1, FIN | ACK),
        segment(last + RTT_US + 100, True, end + 1, 1001),
    ]
    rows = found([*bulk(2000), *closing], tmp_path)
    assert said(rows, "goodput").startswith(
        "In 2.02 s the captured flow delivered 2.9 MB: 11.47 Mbit/s (95 % interval "
    )
    assert said(rows, "goodput", "key_numbers").startswith("acknowledged in order over 2.0 s; its interval ")


def test_when_and_where_a_flow_was_captured(tmp_path: Path) -> None:
    path = tmp_path / "capture.pcap"
    path.write_bytes(Variant("flight", tuple(bulk(2000)), 2000).octets())
    with open_source(path) as tables:
        flow = read_flow(tables.workspace, None)
    start_ns = int(flow.row["start_ns"])
    log = [(0, "lat_deg", 48.0), (0, "lon_deg", -11.0), (10**9, "lat_deg", 48.5), (10**10, "lon_deg", -11.0)]
    rows = [required("telemetry", t_ns=start_ns + t_ns, name=name, value=value) for t_ns, name, value in log]

    def text(rows: list[dict[str, Any]]) -> str:
        return str(flight_sentences(flow, None, table_from_rows("telemetry", rows), {})[0]["text"])

    assert text([]).startswith(f"The flow was captured from {utc_text(start_ns)} to ")
    assert text([]).endswith(" UTC.")
    place = "48.00000\N{DEGREE SIGN}, -11.00000\N{DEGREE SIGN}"
    assert text(rows).endswith(f" UTC; at its first packet the platform was at {place}.")
    rows.append(required("telemetry", t_ns=start_ns + 10**10, name="lat_deg", value=49.0))
    assert text(rows).endswith(f"; the platform flew from {place} to 48.50000{place[8:]}.")


def test_a_path_whose_delay_changed_has_several_propagation_delays() -> None:
    def base(ms: float, *, known: bool = True) -> Estimate:
        return Estimate("base_rtt_ns", ms * 1e6, (ms - 1) * 1e6, (ms + 1) * 1e6, "ns", known, "")

    def stretch(value: Estimate) -> LinkStretch:
        return LinkStretch(0, 10**9, 100, (value,))

    channel = table_from_rows("channel", [])
    parts = [stretch(base(500)), stretch(base(50)), stretch(base(9, known=False))]
    steps = Trace(channel, [base(500)], stretches=parts)
    assert [one.value for one in module._propagation(steps)] == [50e6, 500e6]
    steady = Trace(channel, [base(500)], stretches=[stretch(base(500)), stretch(base(501))])
    assert [one.value for one in module._propagation(steady)] == [500e6]


def repeated_records() -> list[Record]:
    """Return 20 records of ten segments (TSO); then the last one again by a timeout, and, after an ACK of six of its
    segments, a record that repeats the other four and has six new ones."""
    size = 10 * 1460
    records = [segment(0, True, 99, 0, SYN), segment(RTT_US, False, 999, 100, SYN | ACK)]
    records.append(segment(RTT_US + 100, True, 100, 1000))
    for n in range(20):
        t_us, seq = RTT_US + 200 + 1000 * n, 100 + n * size
        records.append(segment(t_us, True, seq, 1000, payload=size))
        records.append(segment(t_us + RTT_US, False, 1000, min(seq + size, 100 + 19 * size)))
    records.append(segment(400_000, True, 100 + 19 * size, 1000, payload=size))
    records.append(segment(400_000 + RTT_US, False, 1000, 100 + 19 * size + 6 * 1460))
    records.append(segment(900_000, True, 100 + 19 * size + 6 * 1460, 1000, payload=size))
    records.append(segment(900_000 + RTT_US, False, 1000, 100 + 20 * size + 6 * 1460))
    return sorted(records, key=lambda record: (record.second or 0, record.fraction or 0))


def test_retransmissions_count_segments_where_a_record_stands_for_several(tmp_path: Path) -> None:
    rows = found(repeated_records(), tmp_path)
    text = said(rows, "retransmissions")
    assert text.startswith("It retransmitted 14 of 220 data segments, 6.4 %"), "ten of the first, four of the second"
    assert "14 by a timeout" in text
    (number,) = (row for row in rows if row["metric"] == "retransmitted segments")
    assert (number["value"], number["text"]) == (14, "14 of 220 data segments")


def with_port(record: Record, port: int) -> Record:
    """Return the same segment of another connection, which has `port` at its sender."""
    frame = bytearray(record.data)
    at = 34 if frame[34:36] == struct.pack("!H", 40_000) else 36
    frame[at : at + 2] = struct.pack("!H", port)
    frame[50:52] = b"\0\0"
    body = bytes(frame[34:])
    frame[50:52] = struct.pack("!H", checksum(bytes(frame[26:34]) + struct.pack("!II", 6, len(body)) + body))
    return dataclasses.replace(record, data=bytes(frame))


def test_the_link_is_not_extracted_where_its_capture_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All flows of the capture are read for it, not only that of the findings."""
    large = bulk(60)
    both = [*large, *(with_port(record, 40_001) for record in bulk(40))]
    both.sort(key=lambda record: (record.second or 0, record.fraction or 0))
    monkeypatch.setattr(module, "MAX_LINK_PACKETS", len(large))
    rows = found(both, tmp_path)
    assert any(row["text"].endswith("the most data of 2 flows.") for row in rows)
    refused = said(rows, "link", "unknown")
    assert f"its capture has {len(both)} TCP packets, and a report reads up to {len(large)}." in refused
    assert not any("has no such limit" in row["text"] for row in found(large, tmp_path))
