"""Channel traces on disk: round trips, and one line for files that are not valid."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hindflight.channels.estimate import Estimate, LinkStretch
from hindflight.channels.trace import METADATA_KEY, Trace, read_trace, write_trace
from hindflight.toolkit.errors import ChannelError, HindflightError
from hindflight.toolkit.schema import SCHEMA_VERSION, arrow_schema, empty_table, table_from_rows

RATE = Estimate("rate_bps", 4e6, 3.9e6, 4.1e6, "bit/s", known=True, how="timed")
BASE_RTT = Estimate("base_rtt_ns", 5e8, 4.9e8, 5.1e8, "ns", known=True, how="minimum")
QUEUE = Estimate("queue_limit_pkts", None, 7.0, None, "pkts", known=False, how="never filled")


def _packet(position: int | None, t_ns: int, lost: bool = False, cause: str = "none", **more: Any) -> dict[str, Any]:
    row = {"kind": "packet", "hop": "bottleneck", "direction": "a2b", "position": position, "t_ns": t_ns}
    return {**row, "size_bytes": 1500, "lost": lost, "cause": cause, "known": True, **more}


def _interval(t_ns: int, end_ns: int | None, **more: Any) -> dict[str, Any]:
    row = {"kind": "interval", "hop": "bottleneck", "direction": "a2b", "t_ns": t_ns, "end_ns": end_ns}
    return {**row, "lost": False, "cause": "none", "known": True, **more}


OUTAGE = {"lost": True, "cause": "outage"}

SOUND = [
    _packet(0, 10, delay_ns=5),
    _packet(None, 11, cause="queue"),
    _packet(1, 12, lost=True, cause="channel"),
    _interval(10, 12, rate_bps=4e6, delay_ns=2),
]


def _trace(rows: list[dict[str, object]]) -> Trace:
    return Trace(table_from_rows("channel", rows))


def test_trace_round_trips_through_parquet(tmp_path: Path) -> None:
    trace = Trace(
        table_from_rows("channel", list(SOUND)),
        (RATE, QUEUE),
        ("ACK losses are not seen.",),
        {"channel": 1},
        {"flow": "3"},
    )
    path = tmp_path / "trace.parquet"
    write_trace(trace, path)
    back = read_trace(path)
    assert back.channel.equals(trace.channel)
    assert back.channel.schema.equals(arrow_schema("channel"))
    assert pq.read_schema(path).field("t_ns").metadata[b"unit"] == b"ns"
    assert back.estimates == (RATE, QUEUE)
    assert back.estimate("rate_bps") == RATE
    assert back.estimate("colour") is None
    assert (back.unknowns, back.counts, back.source) == (("ACK losses are not seen.",), {"channel": 1}, {"flow": "3"})
    assert back.packets().num_rows == 3
    assert back.intervals().num_rows == 1
    assert os.listdir(tmp_path) == ["trace.parquet"]


def test_stretches_round_trip_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    stretch = LinkStretch(10, 12, 3, (BASE_RTT, RATE, QUEUE))
    write_trace(replace(_trace(list(SOUND)), stretches=(stretch,)), path)
    assert read_trace(path).stretches == (stretch,)
    assert read_trace(path).stretches[0].estimate("rate_bps") == RATE
    table = pq.read_table(path)
    note = table.schema.metadata[METADATA_KEY].replace(b'"packets": 3, ', b"")
    pq.write_table(table.replace_schema_metadata({**table.schema.metadata, METADATA_KEY: note}), path)
    with pytest.raises(ChannelError, match="metadata cannot be read"):
        read_trace(path)


def test_runs_that_are_a_burst_or_an_outage_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    write_trace(replace(_trace(list(SOUND)), bursts_or_outages=((0, 0), (1, 2))), path)
    assert read_trace(path).bursts_or_outages == ((0, 0), (1, 2))


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([_packet(0, 10), _packet(1, 9)], "not sorted by time"),
        ([_packet(0, 10), _packet(2, 11)], "positions"),
        ([_packet(0, 10), _packet(0, 11)], "positions"),
        ([_packet(None, 10, lost=True, cause="queue")], "without a position"),
        ([_packet(0, 10, delay_ns=-1)], "delay_ns"),
        ([_interval(10, None)], "lacks end_ns"),
        ([_interval(10, 9)], "ends before it starts"),
        ([_interval(10, 12), _interval(9, 12)], "not sorted by time"),
        ([_interval(10, 12, rate_bps=float("nan"))], "rate_bps must be finite"),
        ([_interval(10, 12, rate_bps=float("inf"))], "rate_bps must be finite"),
        ([_interval(10, 12, rate_bps=-1.0)], "rate_bps must be finite"),
        ([_interval(10, 12, ber=float("nan"))], "ber must be finite"),
        ([_packet(0, -1)], "t_ns must not be negative"),
        ([_packet(0, 10, added_ns=-1)], "added_ns must not be negative"),
        ([_interval(-10, 12)], "t_ns must not be negative"),
        ([_interval(10, 12, delay_ns=-1)], "delay_ns must not be negative"),
        ([_interval(10, 12, overlap_ns=-1)], "overlap_ns must not be negative"),
        ([_interval(10, 12, per=0.1, ber=1e-9)], "interval 1 has both per and ber"),
        ([_interval(10, 12), _interval(11, 13)], "intervals 1 and 2 overlap"),
        ([_interval(10, 13), _interval(10, 11, lost=True, cause="channel")], "intervals 1 and 2 overlap"),
        ([_interval(10, 13, **OUTAGE), _interval(11, 12), _interval(12, 14, **OUTAGE)], "intervals 1 and 3 overlap"),
    ],
)
def test_invalid_rows_are_refused_on_write_and_on_read(
    tmp_path: Path, rows: list[dict[str, object]], says: str
) -> None:
    path = tmp_path / "trace.parquet"
    with pytest.raises(ChannelError, match=says):
        write_trace(_trace(rows), path)
    assert os.listdir(tmp_path) == []
    pq.write_table(table_from_rows("channel", rows), path)
    with pytest.raises(ChannelError, match=says):
        read_trace(path)


def test_outages_may_overlap_states_of_the_same_link_and_direction(tmp_path: Path) -> None:
    rows = [
        _interval(10, 20),
        _interval(10, 14, direction="b2a"),
        _interval(11, 13, **OUTAGE),
        _interval(12, 15, hop="the next"),
        _interval(20, 30, per=0.5),
    ]
    write_trace(_trace(rows), tmp_path / "trace.parquet")
    assert read_trace(tmp_path / "trace.parquet").intervals().num_rows == 5


def test_file_that_is_not_a_channel_trace_is_refused_with_a_reason(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    with pytest.raises(ChannelError, match="no such file"):
        read_trace(path)
    with pytest.raises(ChannelError, match="folder"):
        read_trace(tmp_path)
    path.write_bytes(b"")
    with pytest.raises(ChannelError, match="not a Parquet file"):
        read_trace(path)
    path.write_bytes(b"t_ns,position,lost\n1,0,0\n")
    with pytest.raises(ChannelError, match="not a Parquet file"):
        read_trace(path)
    pq.write_table(empty_table("flows"), path)
    with pytest.raises(ChannelError, match="table `flows`"):
        read_trace(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(ChannelError, match="lacks column"):
        read_trace(path)
    pq.write_table(empty_table("channel"), path)
    with pytest.raises(ChannelError, match="empty"):
        read_trace(path)


def test_truncated_file_and_newer_schema_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    write_trace(_trace(list(SOUND)), path)
    whole = path.read_bytes()
    for length in range(0, len(whole), 97):
        path.write_bytes(whole[:length])
        with pytest.raises(ChannelError):
            read_trace(path)
    table = table_from_rows("channel", list(SOUND))
    newer = {b"hindflight.table": b"channel", b"hindflight.schema_version": str(SCHEMA_VERSION + 1).encode()}
    pq.write_table(table.replace_schema_metadata(newer), path)
    with pytest.raises(ChannelError, match="was written with schema"):
        read_trace(path)
    pq.write_table(table.replace_schema_metadata({b"hindflight.channel": b'{"estimates": [{"name": 1}]}'}), path)
    with pytest.raises(ChannelError, match="metadata"):
        read_trace(path)


def test_failed_write_keeps_the_previous_file(tmp_path: Path) -> None:
    path = tmp_path / "trace.parquet"
    write_trace(_trace(list(SOUND)), path)
    before = path.read_bytes()
    with pytest.raises(ChannelError):
        write_trace(_trace([_packet(3, 1)]), path)
    assert path.read_bytes() == before
    with pytest.raises(HindflightError, match="no such file or folder while writing"):
        write_trace(_trace(list(SOUND)), tmp_path / "nowhere" / "trace.parquet")
    assert os.listdir(tmp_path) == ["trace.parquet"]
