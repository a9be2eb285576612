"""Each kind of kernel log gives the values that its format describes, and those of the public logs."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from fixtures import make_logs
from fixtures.make_logs import CWND_SEGMENTS, FOLDER, MSS, START_MS, STEP_MS, samples, seeds
from fixtures.make_snaplog import LAYOUTS as MADE_LAYOUTS
from fixtures.make_snaplog import snaplog
from hindflight.toolkit.errors import LogError
from hindflight.toolkit.logs import KernelLog, ss
from hindflight.toolkit.logs.addresses import endpoint
from hindflight.toolkit.logs.model import Connection
from hindflight.toolkit.logs.times import LOCAL, TIME_OF_DAY, Moment, moment_at_end, moment_at_start
from hindflight.toolkit.logs.web100_layouts import LAYOUTS
from hindflight.toolkit.logs.web100_writer import Snaplog
from tests.toolkit.logs import open_log, read_log, rows_of_log

PUBLIC = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "public"
needs_public = pytest.mark.skipif(not PUBLIC.is_dir(), reason=f"public logs are not at {PUBLIC}")
ROWS = len(CWND_SEGMENTS)
TIMES = [(START_MS + i * STEP_MS) * 10**6 for i in range(ROWS)]


def read_content(tmp_path: Path, content: bytes) -> list[KernelLog]:
    file = tmp_path / "some.name"
    file.write_bytes(content)
    return read_log(file)


@pytest.mark.parametrize("name", ["tcp_info", "tcp-info archived", "tcp-info parsed", "ndt7"])
def test_every_form_of_tcp_info_gives_the_transfer(tmp_path: Path, name: str) -> None:
    (log,) = read_content(tmp_path, seeds()[name][1])
    table = log.instruments(1).to_pydict()
    assert table["t_ns"] == TIMES
    assert table["cwnd_bytes"] == [cwnd * MSS for cwnd in CWND_SEGMENTS]
    assert table["ssthresh_bytes"] == [None] * ROWS
    assert table["flight_bytes"] == [cwnd * MSS for cwnd in CWND_SEGMENTS]
    assert table["srtt_ns"] == [(100_000 + i) * 1000 for i in range(ROWS)]
    assert table["snd_una"] == [sample["bytes_acked"] for sample in samples()]
    assert table["delivery_rate_bps"] == [cwnd * MSS * 80 for cwnd in CWND_SEGMENTS]
    assert table["phase"] == ["slow_start"] * ROWS
    assert not log.issues
    if name != "tcp_info":
        assert log.connection is not None
        ends = (log.connection.local_addr, log.connection.local_port)
        assert ends == make_logs.LOCAL
        assert (log.connection.remote_addr, log.connection.remote_port) == make_logs.REMOTE
    if name == "tcp-info archived":
        assert log.texts["congestion"] == ["cubic"] * ROWS
    if name == "ndt7":
        assert log.numbers["BBRInfo.MaxBandwidth"].tolist() == [1_000_000] * ROWS


def test_old_tcp_probe_counts_segments_and_raw_sequence_numbers(tmp_path: Path) -> None:
    (log,) = read_content(tmp_path, seeds()["tcpprobe old"][1])
    assert log.clock != "utc"
    assert log.t_ns.tolist() == [5 * 10**9 + i * STEP_MS * 10**6 for i in range(ROWS)]
    assert "cwnd_bytes" not in log.columns
    joined = log.shifted(START_MS * 10**6 - 5 * 10**9).counted_from(0xFFFF_0000).with_segments_of(MSS)
    table = joined.instruments(1).to_pydict()
    assert table["t_ns"] == TIMES
    assert table["cwnd_bytes"] == [cwnd * MSS for cwnd in CWND_SEGMENTS]
    assert table["ssthresh_bytes"] == [None] * ROWS
    assert table["snd_una"] == [sample["bytes_acked"] for sample in samples()]
    assert table["flight_bytes"] == [cwnd * MSS for cwnd in CWND_SEGMENTS]
    assert table["source"] == ["tcp_probe"] * ROWS


@pytest.mark.parametrize("name", ["ftrace", "perf-script"])
def test_the_recorded_tracepoint_names_both_ends(tmp_path: Path, name: str) -> None:
    content = lzma.decompress((FOLDER / f"{name}.txt.xz").read_bytes())
    logs = read_content(tmp_path, content)
    addresses = {(log.connection.local_addr, log.connection.remote_addr) for log in logs if log.connection}
    assert addresses == {("10.93.7.1", "10.93.7.2"), ("10.93.7.2", "10.93.7.1")}, "mapped addresses are IPv4"
    assert sum(log.rows for log in logs) == content.count(b"tcp_probe: ")
    assert not logs[0].issues


def test_iperf3_reports_bytes_and_sums_retransmissions(tmp_path: Path) -> None:
    (log,) = read_content(tmp_path, seeds()["iperf3"][1])
    assert log.connection == Connection("10.93.7.1", 50036, "10.93.7.2", 5201)
    assert log.rows == 15
    assert log.t_ns[0] == 1795433889_200089000, "the start in whole seconds, and the end of the first interval"
    assert set(log.columns["cwnd_bytes"].tolist()) == {24616}
    assert log.columns["srtt_ns"][0] == 75_000


def test_an_iperf3_output_that_was_killed_keeps_its_intervals(tmp_path: Path) -> None:
    content = seeds()["iperf3"][1]
    fourth = [i for i in range(len(content)) if content.startswith(b'"snd_cwnd"', i)][3]
    (log,) = read_content(tmp_path, content[:fourth])
    assert log.rows == 3
    assert [issue.kind for issue in log.issues] == ["log_truncated"]


SS = (
    "ESTAB 0 12 10.0.0.1%eth0:5001 [::ffff:10.0.0.2]:80 timer:(on,200ms,0) ts sack cubic wscale:7,7 rto:292"
    " backoff:{backoff} rtt:91.842/1.498 mss:1402 cwnd:12 ssthresh:10 bytes_sent:9000 bytes_acked:4000 segs_out:9"
    " send 154.2Mbps lastrcv:18 pacing_rate 185.1Mbps/200Mbps delivery_rate 80Kbps busy:8ms rwnd_limited:4ms(50.0%)"
    " unacked:4 retrans:1/20 sacked:1 minrtt:90.5"
)


@pytest.mark.parametrize(
    ("stamp", "t_ns", "clock"),
    [
        ("2026-11-23T11:36:48.5+01:00", 1795430208_500_000_000, "utc"),
        ("Mon Nov 23 10:36:48 UTC 2026", 1795430208_000_000_000, "utc"),
        ("Mon 23 Nov 2026 10:36:48 AM UTC", 1795430208_000_000_000, "utc"),
        ("Mon Nov 23 11:36:48 CET 2026", 1795433808_000_000_000, LOCAL),
        ("1795430208.25", 1795430208_250_000_000, "utc"),
        ("10:36:48.5", 38208_500_000_000, TIME_OF_DAY),
    ],
)
@pytest.mark.parametrize("form", ["date line", "prefix", "two lines", "end"])
def test_polls_of_ss_with_times_as_people_record_them(
    tmp_path: Path, stamp: str, t_ns: int, clock: str, form: str
) -> None:
    text = SS.format(backoff=0)
    head, _, info = text.partition(" timer")
    content = {
        "date line": f"{stamp}\nState Recv-Q Send-Q Local Peer\n{text}\n",
        "prefix": f"{stamp} {text}\n",
        "two lines": f"{stamp}\n{head}\n\t timer{info}\n",
        "end": f"{text} {stamp}\n",
    }[form]
    (log,) = read_content(tmp_path, content.encode())
    assert log.connection == Connection("10.0.0.1", 5001, "10.0.0.2", 80)
    assert (log.t_ns.tolist(), log.clock) == ([t_ns], clock)
    (row,) = log.instruments(1).to_pylist()
    assert row["cwnd_bytes"] == 12 * 1402
    assert row["ssthresh_bytes"] == 10 * 1402
    assert row["flight_bytes"] == 3 * 1402
    assert (row["srtt_ns"], row["rttvar_ns"], row["rto_ns"]) == (91_842_000, 1_498_000, 292_000_000)
    assert row["min_rtt_ns"] == 90_500_000
    assert (row["pacing_rate_bps"], row["delivery_rate_bps"]) == (185_100_000, 80_000)
    assert (row["retransmissions"], row["phase"]) == (20, "recovery")
    assert log.numbers["rwnd_limited"].tolist() == [4000]
    assert log.texts["congestion"] == ["cubic"]


def test_ss_shows_loss_by_a_timer_that_backs_off_and_an_unset_ssthresh(tmp_path: Path) -> None:
    text = SS.format(backoff=2).replace(" ssthresh:10", "")
    (log,) = read_content(tmp_path, f"10:00:00\n{text}\n".encode())
    (row,) = log.instruments(1).to_pylist()
    assert (row["phase"], row["ssthresh_bytes"]) == ("loss", None)


@pytest.mark.parametrize(
    ("whole", "damaged", "name"),
    [
        ("retrans:1/20", "retrans:1/2x", "retrans"),
        ("bytes_acked:4000", "bytes_acked:" + "9" * 400, "bytes_acked"),
        ("ssthresh:10", "ssthresh:NaN", "ssthresh"),
        ("unacked:4", "unacked:-4", "unacked"),
        ("80Kbps", "80Kbqs", "delivery_rate"),
    ],
)
def test_a_socket_with_a_value_that_cannot_be_read_is_left_out(
    tmp_path: Path, whole: str, damaged: str, name: str
) -> None:
    line = SS.format(backoff=0)
    (log,) = read_content(tmp_path, f"10:00:00\n{line}\n10:00:01\n{line.replace(whole, damaged)}\n".encode())
    assert log.rows == 1
    assert [(issue.record, issue.kind) for issue in log.issues] == [(4, "log_damaged")]
    assert f"with a {name} that is no number" in log.issues[0].text


def test_times_of_day_go_on_after_midnight_and_sockets_without_addresses_are_told_apart(tmp_path: Path) -> None:
    info = "\t cubic rto:292 rtt:91/1 mss:1402 cwnd:{} bytes_acked:{} {}"
    polls = [(10, 1000, "23:59:59"), (20, 900_000, "23:59:59.5"), (11, 2000, "00:00:01"), (21, 950_000, "00:00:01.5")]
    logs = read_content(tmp_path, "\n".join([*(info.format(*poll) for poll in polls), ""]).encode())
    del logs[2:]
    assert ss.recognises(b"\n\n" + info.format(1, 2, "").encode())
    assert logs[0].numbers["snd_cwnd"].tolist()[0] == 10
    assert sum(log.rows for log in logs) == 4
    assert max(int(log.t_ns[-1]) for log in logs) == 86401_500_000_000


def test_moments_stand_at_either_end_and_impossible_ones_are_none() -> None:
    assert moment_at_start("[2023-11-14 22:13:20.5Z] rest") == (Moment(1700000000_500000000, "utc"), " rest")
    assert moment_at_end("cwnd:3 rcv_space:14020 08:39:50.031035 ")[1] == "cwnd:3 rcv_space:14020"
    assert moment_at_start("2023-13-14 22:13:20Z")[0] is None
    assert moment_at_start("25:00:00")[0] is None
    assert moment_at_start("cwnd:10:20:30")[0] is None


def test_endpoints() -> None:
    assert endpoint("[::ffff:10.0.0.1]:80") == ("10.0.0.1", 80)
    assert endpoint("[2001:db8::1%eth0]:443") == ("2001:db8::1", 443)
    assert endpoint("10.0.0.1:65536") is None
    assert endpoint("host:80") is None


@pytest.mark.parametrize("version", LAYOUTS)
def test_a_written_snaplog_is_read_back_equal(tmp_path: Path, version: str) -> None:
    layout = LAYOUTS[version]
    (made,) = read_content(tmp_path, snaplog(MADE_LAYOUTS["2.5.2-limssthresh"]))
    names = {field.name for field in layout.groups["read"]}
    rows = [{name: value for name, value in row.items() if name in names} for row in rows_of_log(made)]
    assert made.connection is not None
    for big_endian, octets in ((False, 4), (True, 8)):
        written = Snaplog(made.connection, 1_700_000_000, layout, big_endian, octets)
        (log,) = read_content(tmp_path, b"".join(written.octets(rows)))
        assert len(log.numbers) + len(log.texts) == len(layout.groups["read"]), "no variable is lost"
        for name, values in made.numbers.items():
            if name in names:
                bits = 0xFFFFFFFF if name == "SndNxt" else -1  # Logged as signed by some kernels.
                assert ((log.numbers[name] & bits) == (values & bits)).all(), name
        assert log.instruments(1) == made.instruments(1)
        assert not log.issues


def test_a_value_that_does_not_fit_is_not_written() -> None:
    there = Connection("10.0.0.1", 1, "10.0.0.2", 2)
    with pytest.raises(ValueError, match="CurMSS"):
        list(Snaplog(there, 1).octets([{"CurMSS": 1 << 32}]))


@needs_public
@pytest.mark.parametrize(
    ("name", "version", "undefined"),
    [("Duplex.log", "2.5.2", 15), ("overflow.log", "2.5.3", 0), ("ndt-44160.s2c_snaplog.gz", "2.5.27", 2)],
)
def test_a_public_snaplog_is_written_octet_by_octet(name: str, version: str, undefined: int) -> None:
    """But for the octets that the format leaves undefined: padding, and what follows the name of the group."""
    packed = (PUBLIC / "web100" / name).read_bytes()
    content = gzip.decompress(packed) if name.endswith("gz") else packed
    (log,) = read_log(PUBLIC / "web100" / name)
    head = content.index(b"-1 -1\n") + 6
    assert log.connection is not None
    written = Snaplog(log.connection, int.from_bytes(content[head : head + 4], "little"), LAYOUTS[version])
    octets = b"".join(written.octets(rows_of_log(log)))
    assert len(octets) == len(content)
    different = np.flatnonzero(np.frombuffer(octets, np.uint8) != np.frombuffer(content, np.uint8))
    assert len(different) == undefined
    assert ((different >= head + 4) & (different < head + 52)).all()


@needs_public
@pytest.mark.parametrize(
    ("name", "kind", "rows", "connections"),
    [
        ("ndt-7hhhv_1559749627_0000000000062D84.00000.jsonl.zst", "tcp_info_jsonl", 891, 1),
        ("ndt7-download-20200318.json", "ndt7", 33, 1),
        ("proc_net_tcpprobe_sample.txt", "tcp_probe", 5, 1),
        ("tracepoint_samples.txt", "tcp_probe", 2, 2),
        ("ss-ti-0840-cc.raw.gz", "ss", 1349, 2),
    ],
)
def test_public_logs(name: str, kind: str, rows: int, connections: int) -> None:
    reading = open_log(PUBLIC / "kernel_logs" / name)
    parts = list(reading.parts())
    assert (reading.kind, sum(part.rows for part in parts), len({part.key for part in parts})) == (
        kind,
        rows,
        connections,
    )
    assert not reading.issues()
    for part in parts:
        if "snd_una" in part.columns:
            assert (np.diff(part.columns["snd_una"]) >= 0).all()


@needs_public
def test_public_records_without_a_time_are_refused() -> None:
    with pytest.raises(LogError, match="no whole record") as caught:
        list(open_log(PUBLIC / "kernel_logs" / "archiveRecords.jsonl.zst").parts())
    assert caught.value.hint is not None
    assert "Timestamp was never set" in caught.value.hint
