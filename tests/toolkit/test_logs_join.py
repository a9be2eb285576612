"""Logs find their flow by address or by progress, and say so when they cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs.join import CLOCK_SLACK_NS, Flows, find_flow, own_flow
from hindflight.toolkit.logs.model import Connection, KernelLog
from hindflight.toolkit.logs.survey import Survey, survey
from hindflight.toolkit.schema import TABLES, table_from_rows
from hindflight.toolkit.workspace import Workspace

SECOND = 10**9
DURATION_S = 20
Row = dict[str, object]


def blank(table: str, **values: object) -> Row:
    """A row whose other columns that must hold something hold nothing much."""
    row: Row = {}
    for column in TABLES[table].columns:
        if not column.nullable:
            kinds: Row = {"bool": False, "text": "", "list_i64": [], "enum": (*column.values, "")[0]}
            row[column.name] = kinds.get(column.type, 0)
    return row | values


def flow(flow_id: int, bytes_per_s: int, start_s: int = 0, syn: bool = True, way: str = "a2b") -> tuple[Row, list[Row]]:
    """A flow that acknowledges so much each second, and its segments: one ACK per second."""
    other = {"a2b": "b2a", "b2a": "a2b"}[way]
    first = 1 if syn else 0
    times = [(start_s + i) * SECOND for i in range(DURATION_S + 1)]
    acks = [
        blank("segments", flow_id=flow_id, t_ns=t, direction=other, ack=first + i * bytes_per_s)
        for i, t in enumerate(times)
    ]
    data = blank("segments", flow_id=flow_id, t_ns=times[0], direction=way, ack=999_999_999)
    row = blank("flows", flow_id=flow_id, start_ns=times[0], end_ns=times[-1], syn=syn, data_direction=way)
    row |= {f"{way}_acked_bytes": bytes_per_s * DURATION_S, "a_addr": "10.0.0.1", "b_addr": "10.0.0.2"}
    return row | {"a_port": 1000 + flow_id, "b_port": 80}, [data, *acks]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.create(tmp_path / "ws")


def hold(workspace: Workspace, *flows: tuple[Row, list[Row]]) -> Workspace:
    with workspace.transaction("test") as transaction:
        transaction.write("flows", table_from_rows("flows", [row for row, _ in flows]))
        segments = sorted((s for _, ss in flows for s in ss), key=lambda s: str(s["t_ns"]).zfill(20))
        transaction.write("segments", table_from_rows("segments", segments))
    return workspace


def log(bytes_per_s: float, start_s: float = 0, first: int = 1, connection: Connection | None = None) -> Survey:
    """A series that says so much was acknowledged each second, ten rows a second."""
    seconds = np.arange(0, DURATION_S, 0.1)
    una = (first + np.floor(seconds) * bytes_per_s).astype(np.int64)
    t_ns = ((start_s + seconds) * SECOND).astype(np.int64)
    columns = {"snd_una": np.ma.MaskedArray(una)}
    part = KernelLog("tcp_info", t_ns, columns, np.zeros(len(t_ns), np.int64), {}, {}, connection)
    return survey([part])[None]


@pytest.mark.parametrize("way", ["a2b", "b2a"])
def test_by_progress(workspace: Workspace, way: str) -> None:
    hold(workspace, flow(1, 5000, way=way), flow(2, 7000, way=way), flow(3, 7000, start_s=100, way=way))
    match = find_flow(log(7000), Flows(workspace))
    assert match is not None
    assert (match.flow_id, match.sender) == (2, True)
    assert match.evidence == "acknowledged octets over time agree within 0.00 % (next, flow 1: 13.5 %)"


def test_a_capture_that_began_later_counts_from_its_own_first_octet(workspace: Workspace) -> None:
    hold(workspace, flow(1, 5000, syn=False), flow(2, 9000, syn=False))
    match = find_flow(log(5000, first=123_456_789), Flows(workspace))
    assert match is not None
    assert match.flow_id == 1


def test_two_similar_flows_are_not_distinguished(workspace: Workspace) -> None:
    hold(workspace, flow(1, 5000), flow(2, 5000))
    with pytest.raises(LogError, match="flows 1 and 2 both progress"):
        find_flow(log(5000), Flows(workspace))
    with pytest.raises(LogError, match="flows 1 and 2 both progress"):
        find_flow(log(5100), Flows(workspace))


@pytest.mark.parametrize(
    ("series", "message"),
    [
        (log(5000, start_s=1000), "no flow here is of the log's time"),
        (log(50_000), "no flow here progresses"),
        (log(0), "no flow here progresses"),
        (log(6800), "no flow here progresses"),
    ],
)
def test_a_log_that_fits_nothing(workspace: Workspace, series: Survey, message: str) -> None:
    hold(workspace, flow(1, 5000))
    with pytest.raises(LogError, match=message):
        find_flow(series, Flows(workspace))


def test_replayed_flows_are_no_candidates(workspace: Workspace) -> None:
    row, segments = flow(1, 5000)
    hold(workspace, (row | {"run_id": 1}, [segment | {"run_id": 1} for segment in segments]))
    with pytest.raises(LogError, match="no flow here is of the log's time"):
        find_flow(log(5000), Flows(workspace))


def test_by_connection_and_time(workspace: Workspace) -> None:
    first, second, third = flow(1, 5000), flow(2, 5000, start_s=3600), flow(3, 5000)
    second[0]["a_port"] = first[0]["a_port"]  # The port is used again an hour later.
    hold(workspace, first, second, third)
    sender = Connection("10.0.0.1", 1001, "10.0.0.2", 80, True)
    match = find_flow(log(5000, start_s=3601, connection=sender), Flows(workspace))
    assert match is not None
    assert (match.flow_id, match.sender) == (2, True)
    receiver = Connection("10.0.0.2", 80, "10.0.0.1", 1001, False)
    match = find_flow(log(5000, connection=receiver), Flows(workspace))
    assert match is not None
    assert (match.flow_id, match.sender) == (1, False)


def test_clocks_may_differ_by_a_minute_and_no_more(workspace: Workspace) -> None:
    hold(workspace, flow(1, 5000))
    connection = Connection("10.0.0.1", 1001, "10.0.0.2", 80, True)
    slack_s = CLOCK_SLACK_NS // SECOND
    assert find_flow(log(1, start_s=DURATION_S + slack_s - 1, connection=connection), Flows(workspace)) is not None
    assert find_flow(log(1, start_s=DURATION_S + slack_s + 1, connection=connection), Flows(workspace)) is None


def test_as_given(workspace: Workspace) -> None:
    hold(workspace, flow(1, 5000), flow(2, 5000))
    match = find_flow(log(1), Flows(workspace), 2)
    assert match is not None
    assert (match.flow_id, match.evidence) == (2, "as given")
    with pytest.raises(LogError, match="no flow 3"):
        find_flow(log(1), Flows(workspace), 3)


@pytest.mark.parametrize(
    ("opened", "sends", "a_port", "way", "vantage"),
    [
        (True, True, 5001, "a2b", "sender"),
        (True, False, 5001, "b2a", "receiver"),
        (False, True, 80, "b2a", "sender"),
        (False, False, 80, "a2b", "receiver"),
        (None, True, 5001, "a2b", "sender"),
    ],
)
def test_a_flow_made_from_a_log(opened: bool | None, sends: bool, a_port: int, way: str, vantage: str) -> None:
    series = log(1, connection=Connection("10.0.0.1", 5001, "10.0.0.2", 80, opened))
    series.sends = sends
    assert series.connection is not None
    (row,) = table_from_rows("flows", [own_flow(series, series.connection, 7, 3)]).to_pylist()
    assert (row["flow_id"], row["input_id"], row["run_id"]) == (7, 3, 0)
    assert (row["a_port"], row["data_direction"], row["vantage"]) == (a_port, way, vantage)
    assert (row["start_ns"], row["end_ns"], row["a2b_segments"]) == (series.start_ns, series.end_ns, 0)
