"""WEB100 snaplogs of every layout give equal tables; damage affects only what is damaged."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from fixtures.make_snaplog import (
    CWND_SEGMENTS,
    ISS,
    LAYOUTS,
    MSS,
    START_SEC,
    START_USEC,
    STEP_USEC,
    UNSET_SSTHRESH,
    Layout,
    snaplog,
    snapshots,
)
from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import KernelLog, log_kind
from tests.toolkit.logs import read_log

PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "public" / "web100"
needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason=f"public logs are not at {PUBLIC}")


def read_one(tmp_path: Path, content: bytes) -> KernelLog:
    file = tmp_path / "some.name"
    file.write_bytes(content)
    (log,) = read_log(file)
    return log


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_transfer(tmp_path: Path, name: str) -> None:
    log = read_one(tmp_path, snaplog(LAYOUTS[name]))
    table = log.instruments(7)
    sent = np.cumsum((0, *CWND_SEGMENTS)) * MSS
    assert table["flow_id"].to_pylist() == [7] * len(CWND_SEGMENTS)
    first_ns = START_SEC * 10**9 + (START_USEC + 7) * 1000
    assert table["t_ns"].to_pylist() == [first_ns + i * STEP_USEC * 1000 for i in range(len(CWND_SEGMENTS))]
    assert table["cwnd_bytes"].to_pylist() == [segments * MSS for segments in CWND_SEGMENTS]
    assert table["ssthresh_bytes"].to_pylist() == [None] * 4 + [8 * MSS] * 6
    assert table["snd_una"].to_pylist() == [1 + int(octets) for octets in sent[:-1]]
    assert table["snd_nxt"].to_pylist() == [1 + int(octets) for octets in sent[1:]]
    assert table["flight_bytes"].to_pylist() == [segments * MSS for segments in CWND_SEGMENTS]
    assert table["srtt_ns"].to_pylist() == [None, *((500 + i) * 1_000_000 for i in range(1, 10))]
    assert table["min_rtt_ns"].to_pylist() == [None] + [500_000_000] * 9
    assert table["phase"].to_pylist()[0] == "limited"
    assert table["phase"].to_pylist()[1:] == ["slow_start"] * 3 + ["congestion_avoidance"] * 6
    assert table["app_limited"].to_pylist() == [True] + [False] * 9
    assert table["recoveries"].to_pylist() == [0] * 4 + [1] * 6
    assert table["delivery_rate_bps"].null_count == len(CWND_SEGMENTS)
    assert log.sends
    assert not log.issues


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_names_its_connection(tmp_path: Path, name: str) -> None:
    connection = read_one(tmp_path, snaplog(LAYOUTS[name])).connection
    assert connection is not None
    addresses = ("2001:db8::1", "2001:db8::2") if LAYOUTS[name].ipv6 else ("10.9.0.1", "10.9.0.2")
    assert (connection.local_addr, connection.remote_addr) == addresses
    assert (connection.local_port, connection.remote_port, connection.opened) == (5001, 40000, True)


def test_no_variable_is_lost(tmp_path: Path) -> None:
    log = read_one(tmp_path, snaplog(LAYOUTS["2.5.2-limssthresh"]))
    variables = log.variables(7).to_pylist()
    names = {row["name"] for row in variables}
    assert {"LimSsthresh", "_CurrentCwnd", "DataBytesOut", "RemAddress", "SumRTT"} <= names
    mss = [row for row in variables if row["name"] == "CurMSS"]
    assert [(row["t_ns"], row["value"]) for row in mss] == [(log.start_ns, MSS)], "a constant is one row"
    cwnd = [row["value"] for row in variables if row["name"] == "CurCwnd"]
    assert cwnd == [segments * MSS for segments in CWND_SEGMENTS]
    (address,) = [row for row in variables if row["name"] == "RemAddress"]
    assert (address["value"], address["text"]) == (None, "10.9.0.2")


def test_infinite_ssthresh_is_the_kernels_wrapped_product() -> None:
    assert UNSET_SSTHRESH > 2**31 - 2**16
    assert (0x7FFF_FFFF * 1448) % 2**32 == 4294965848


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed_logs_are_recognised_by_content(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "log"
    file.write_bytes(pack(snaplog()))
    assert log_kind(file) == "web100"
    assert len(read_log(file)[0].t_ns) == len(CWND_SEGMENTS)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_cut_archive_keeps_what_it_gives(tmp_path: Path, pack) -> None:  # type: ignore[no-untyped-def]
    noise = np.random.default_rng(1).integers(0, 2**32, (400, 2))
    rows = [
        snapshots()[0] | {"SumRTT": int(a), "Duration": 7 + i, "DupAcksIn": int(b)} for i, (a, b) in enumerate(noise)
    ]
    content = pack(snaplog(rows=rows))
    log = read_one(tmp_path, content[: len(content) * 3 // 4])
    assert 200 < len(log.t_ns) < 400
    assert any(issue.kind == "archive_damaged" for issue in log.issues)


def test_a_log_cut_anywhere_keeps_its_whole_records(tmp_path: Path) -> None:
    content = snaplog()
    record = (len(content) - content.index(b"----Begin")) // len(CWND_SEGMENTS)
    body = content.index(b"----Begin")
    for length in range(0, len(content), 7):
        whole = max(0, (length - body) // record)
        if whole == 0:
            with pytest.raises(LogError):
                read_one(tmp_path, content[:length])
            continue
        log = read_one(tmp_path, content[:length])
        assert len(log.t_ns) == whole
        tail = (length - body) % record
        assert [(i.kind, i.record) for i in log.issues] == ([("log_truncated", whole + 1)] if tail else [])


def test_a_record_without_its_marker_is_left_out(tmp_path: Path) -> None:
    content = bytearray(snaplog())
    third = -1
    for _ in range(3):
        third = content.index(b"----Begin", third + 1)
    content[third] = 0
    log = read_one(tmp_path, bytes(content))
    assert log.columns["cwnd_bytes"].tolist() == [s * MSS for i, s in enumerate(CWND_SEGMENTS) if i != 2]
    assert [(issue.kind, issue.record, issue.offset) for issue in log.issues] == [("log_damaged", 3, third)]


def test_a_marker_inside_the_data_is_data(tmp_path: Path) -> None:
    rows = snapshots()
    rows[1]["SumRTT"] = int.from_bytes(b"----Begi", "little")
    log = read_one(tmp_path, snaplog(rows=rows))
    assert len(log.t_ns) == len(CWND_SEGMENTS)
    assert not log.issues


def test_time_that_runs_backwards_is_put_in_order(tmp_path: Path) -> None:
    rows = snapshots()
    rows[4], rows[5] = rows[5], rows[4]
    log = read_one(tmp_path, snaplog(rows=rows))
    assert log.columns["cwnd_bytes"].tolist() == [segments * MSS for segments in CWND_SEGMENTS]
    assert [issue.kind for issue in log.issues] == ["log_order"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"/read\n", b"/rend\n", "group 'read'"),
        (b"CurMSS ", b"CurMsX ", "does not log CurMSS"),
        (b"CurMSS ", b"Cur MSS ", "does not log CurMSS"),
        (b"----End-Of", b"-+--End-Of", "header"),
    ],
)
def test_a_damaged_header_is_an_error(tmp_path: Path, old: bytes, new: bytes, message: str) -> None:
    with pytest.raises(LogError, match=message):
        read_one(tmp_path, snaplog().replace(old, new))


def test_time_of_an_impossible_width_is_an_error(tmp_path: Path) -> None:
    content = snaplog()
    end = content.index(b"-1 -1\n") + 6
    with pytest.raises(LogError, match="50 octets between header and snapshots"):
        read_one(tmp_path, content[:end] + content[end + 2 :])


def test_sequence_numbers_need_no_wrap_to_be_right(tmp_path: Path) -> None:
    assert ISS + 1 + sum(CWND_SEGMENTS[:5]) * MSS > 2**32, "the fixture is meant to wrap"
    log = read_one(tmp_path, snaplog(Layout(), snapshots()[:1]))
    assert log.columns["snd_una"].tolist() == [1]


def test_next_octet_behind_what_is_acknowledged_is_unknown(tmp_path: Path) -> None:
    first, second, *_ = snapshots()
    second = second | {"SndNxt": (int(second["SndUna"]) - 1) % 2**32}
    table = read_one(tmp_path, snaplog(Layout(), [first, second])).instruments(1)
    assert table["snd_una"].null_count == 0
    assert [value is None for value in table["snd_nxt"].to_pylist()] == [False, True]
    assert [value is None for value in table["flight_bytes"].to_pylist()] == [False, True]


def test_sidestream_lines_are_connections(tmp_path: Path) -> None:
    names = "cid PollTime LocalAddress LocalPort RemAddress RemPort State"
    names += " CurCwnd CurMSS StartTimeSec StartTimeUsec Duration"
    good = "C: 1 2017-02-03-12:00:03Z 10.0.0.1 80 10.0.0.2 4000 5 5840 1460 1486123188 191060 14839426"
    file = tmp_path / "x"
    file.write_text(f"K: {names}\n{good}\nC: 2 short\n{good.replace('4000', '4001')}\n{good[:40]}")
    logs = read_log(file)
    assert [log.connection.remote_port for log in logs if log.connection] == [4000, 4001]
    assert logs[0].columns["cwnd_bytes"].tolist() == [5840]
    assert logs[0].t_ns.tolist() == [1486123188_191060_000 + 14839426_000]
    assert [(issue.record, issue.kind) for issue in logs[0].issues] == [(3, "log_damaged"), (5, "log_damaged")]


@needs_public
@pytest.mark.parametrize(
    ("name", "records", "local", "remote_port", "first", "last"),
    [
        ("Duplex.log", 12, "192.88.115.170", 56117, 1, 4),
        ("overflow.log", 73, "192.88.115.170", 56117, 3, 31),
        ("ndt-44160.s2c_snaplog.gz", 2032, "213.208.152.37", 44160, 3, 2),
    ],
)
def test_real_logs(name: str, records: int, local: str, remote_port: int, first: int, last: int) -> None:
    (log,) = read_log(PUBLIC / name)
    assert log.connection is not None
    assert len(log.t_ns) == records
    assert (log.connection.local_addr, log.connection.remote_port) == (local, remote_port)
    cwnd = log.columns["cwnd_bytes"] / log.columns["smss_bytes"]
    assert (cwnd[0], cwnd[-1]) == (first, last)
    assert (np.diff(log.t_ns) > 0).all()
    assert (np.diff(log.columns["snd_una"]) >= 0).all()
    assert not log.issues
    seconds = (log.end_ns - log.start_ns) / 1e9
    assert seconds == pytest.approx({12: 11.0, 73: 220.0, 2032: 10.52}[records], abs=0.1)


@needs_public
def test_a_real_log_of_overflow_passes_two_to_the_32() -> None:
    (log,) = read_log(PUBLIC / "overflow.log")
    raw = log.numbers["SndUna"]
    assert (np.diff(raw) < 0).sum() == 1
    assert log.columns["ssthresh_bytes"][:2].tolist() == [None, None]


@needs_public
def test_real_sidestream() -> None:
    logs = read_log(PUBLIC / "sidestream-20170203.web100")
    assert len(logs) == 6
    assert [log.sends for log in logs] == [False, True, False, True, True, True]
