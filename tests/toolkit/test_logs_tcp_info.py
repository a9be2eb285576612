"""TCP_INFO series in the tables' units, whole rows only."""

from __future__ import annotations

import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import KernelLog, log_kind
from tests.toolkit.logs import read_log

KERNEL = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "kernel"
HEADER = (
    "t_ns,app_limited,state,ca_state,rto,snd_mss,unacked,sacked,rtt,rttvar,snd_ssthresh,snd_cwnd,total_retrans,"
    "pacing_rate,bytes_acked,min_rtt,data_segs_out,delivery_rate,rwnd_limited,bytes_sent,bytes_retrans,snd_wnd,total_rto"
)
ROWS = (
    "1000,1,1,0,1444000,1448,0,0,480326,240163,2147483647,10,0,60292,1,480326,0,0,0,0,0,65535,0",
    "2000,0,1,0,1444000,1448,10,0,480326,240163,2147483647,10,0,60292,1,480326,10,0,0,14480,0,65535,0",
    "3000,0,1,3,900000,1448,10,4,490000,200000,5,6,1,18446744073709551615,4345,480000,11,1000,0,20272,1448,65535,0",
    "4000,0,1,4,900000,1448,8,0,490000,200000,5,1,2,1000,4345,480000,12,1000,0,21720,2896,65535,1",
    "5000,0,1,1,900000,1448,8,1,490000,200000,5,5,2,1000,8689,480000,12,1000,0,21720,2896,65535,1",
    "6000,0,1,0,900000,1448,8,1,490000,200000,5,5,2,1000,8689,480000,12,1000,70,21720,2896,65535,1",
)


def series(*rows: str, header: str = HEADER, end: str = "\n") -> bytes:
    return ("\n".join([header, *rows]) + end).encode()


def read_one(tmp_path: Path, content: bytes) -> KernelLog:
    file = tmp_path / "x"
    file.write_bytes(content)
    (log,) = read_log(file)
    return log


def test_units_and_meanings(tmp_path: Path) -> None:
    table = read_one(tmp_path, series(*ROWS)).instruments(3).to_pydict()
    assert table["t_ns"] == [1000, 2000, 3000, 4000, 5000, 6000]
    assert table["source"] == ["tcp_info"] * 6
    assert table["phase"] == ["slow_start", "slow_start", "recovery", "loss", "congestion_avoidance", "limited"]
    assert table["cwnd_bytes"] == [14480, 14480, 8688, 1448, 7240, 7240]
    assert table["ssthresh_bytes"] == [None, None, 7240, 7240, 7240, 7240]
    assert table["flight_bytes"] == [0, 14480, 8688, 11584, 10136, 10136]
    assert table["srtt_ns"][0] == 480_326_000
    assert table["rto_ns"][0] == 1_444_000_000
    assert table["snd_una"] == [1, 1, 4345, 4345, 8689, 8689]
    assert table["snd_nxt"] == [1, 14481, 18825, 18825, 18825, 18825]
    assert table["segments_out"] == [0, 10, 11, 12, 12, 12]
    assert table["rtos"] == [0, 0, 0, 1, 1, 1]
    assert table["pacing_rate_bps"][:3] == [482336, 482336, None]
    assert table["app_limited"] == [True] + [False] * 5
    assert table["recoveries"] == [None] * 6


def test_an_end_that_did_not_open_the_connection_counts_no_syn(tmp_path: Path) -> None:
    passive = [",".join([*row.split(",")[:14], str(int(row.split(",")[14]) - 1), *row.split(",")[15:]]) for row in ROWS]
    opened, accepted = read_one(tmp_path, series(*ROWS)), read_one(tmp_path, series(*passive))
    assert accepted.columns["snd_una"].tolist() == opened.columns["snd_una"].tolist()


def test_an_acknowledged_fin_has_been_sent(tmp_path: Path) -> None:
    *rest, last = ROWS
    closed = last.replace("6000,0,1,0,900000,1448,8,1,", "7000,0,4,0,900000,1448,0,0,").replace(",8689,", ",18826,")
    table = read_one(tmp_path, series(*rest, last, closed)).instruments(3).to_pydict()
    assert table["snd_una"][-1] == 18826
    assert table["snd_nxt"][-2:] == [18825, 18826]


def test_every_column_stays_within_reach(tmp_path: Path) -> None:
    rows = read_one(tmp_path, series(*ROWS)).variables(3).to_pylist()
    assert {row["name"] for row in rows} == set(HEADER.split(",")) - {"t_ns"}
    assert [(row["t_ns"], row["value"]) for row in rows if row["name"] == "ca_state"] == [
        (1000, 0),
        (3000, 3),
        (4000, 4),
        (5000, 1),
        (6000, 0),
    ]


def test_rows_that_are_not_whole_are_left_out_and_counted(tmp_path: Path) -> None:
    damaged = (ROWS[0], ROWS[1][:20], ROWS[2].replace("4345", "x"), ROWS[3], ROWS[4])
    log = read_one(tmp_path, series(*damaged, end=""))
    assert log.t_ns.tolist() == [1000, 4000], "the last row lacks its end: a number may be cut"
    assert [(issue.kind, issue.record) for issue in log.issues] == [("log_damaged", line) for line in (3, 4, 6)]
    assert log.issues[0].offset == len(HEADER) + len(ROWS[0]) + 2


def test_a_series_cut_anywhere_keeps_its_whole_rows(tmp_path: Path) -> None:
    content = series(*ROWS)
    for length in range(len(HEADER) + 1, len(content)):
        whole = content[:length].count(b"\n") - 1
        if whole == 0:
            with pytest.raises(LogError, match="no whole record"):
                read_one(tmp_path, content[:length])
        else:
            log = read_one(tmp_path, content[:length])
            assert len(log.t_ns) == whole
            assert len(log.issues) == (0 if content[length - 1 : length] == b"\n" else 1)


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("ca_state", "x").replace("snd_mss", "y"), "without ca_state, snd_mss"),
        (HEADER + ",rto", "twice"),
    ],
)
def test_headers_that_do_not_do(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(LogError, match=message):
        read_one(tmp_path, series(*ROWS, header=header))


def test_other_files_are_no_logs(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content in (b"", b"\0" * 100, b"a,b\n1,2\n", b"\x1f\x8b", lzma.compress(b"hello")):
        file.write_bytes(content)
        assert log_kind(file) is None


@pytest.mark.skipif(not KERNEL.is_dir(), reason=f"kernel logs are not at {KERNEL}")
@pytest.mark.parametrize("name", ["S9-reno", "S2-cubic", "S7-reno", "S1-bbr"])
def test_real_series(name: str) -> None:
    (log,) = read_log(KERNEL / name / "tcpinfo.csv.xz")
    lines = lzma.decompress((KERNEL / name / "tcpinfo.csv.xz").read_bytes()).count(b"\n")
    assert len(log.t_ns) == lines - 1
    assert not log.issues
    una, nxt = log.columns["snd_una"], log.columns["snd_nxt"]
    assert (np.diff(una) >= 0).all()
    established = log.numbers["state"] == 1
    # What is outstanding in octets is what is outstanding in segments, but for a last short one.
    outstanding = (nxt - una)[established]
    segments = (log.numbers["unacked"] * log.numbers["snd_mss"])[established]
    assert np.abs(outstanding - segments).max() <= 1448


def test_no_thread_of_arrow_reads_a_python_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread waits for the interpreter; if that ends meanwhile, the process aborts."""
    sources: list[object] = []
    read_csv = pyarrow.csv.read_csv

    def watched(source: object, **options: object) -> pa.Table:
        sources.append(source)
        return read_csv(source, **options)

    monkeypatch.setattr(pyarrow.csv, "read_csv", watched)
    read_one(tmp_path, series(*ROWS))
    assert [isinstance(source, pa.NativeFile) for source in sources] == [True]
