"""Exports: packets that are read back, graphs that are tcptrace's, tables in other formats, and mapped addresses."""

from __future__ import annotations

import csv
import json
import lzma
import shutil
import sqlite3
import subprocess
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import hindflight as hf
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.export.graphs import Connection
from tests.toolkit.logs import read_log

ROOT = Path(__file__).resolve().parents[2]
SENDER = ROOT / "fixtures" / "kernel" / "S2-reno" / "snd.pcap.xz"
CAPTURES = [SENDER, ROOT / "fixtures" / "recorded" / "L4101.1-bbr" / "snd.pcap.xz"]
PUBLIC = ROOT.parent / "shared" / "data" / "public"
SCENARIO = """
name = "given back"
duration = "5 s"
path = ["a", "b", "c"]
[[links]]
name = "ab"
rate = "2 Mbit/s"
delay = "20 ms"
loss = { model = "bernoulli", per = 0.01 }
[[links]]
name = "bc"
delay = "10 ms"
[compare]
variants = ["newreno"]
proxies = ["none", "b"]
seeds = 1
"""

OF_THE_FILE = ("record", "frame_bytes", "captured_bytes", "ip_checksum", "tcp_checksum")
"""Columns that the export changes: it renumbers packets, writes Ethernet, and keeps headers alone."""


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> hf.Tables:
    """The tables of a replay."""
    path = tmp_path_factory.mktemp("export") / "s.toml"
    path.write_text(SCENARIO)
    return hf.replay(path)


def segments_of(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = load_capture(path).segments.to_pylist()
    return rows


def test_a_run_that_is_exported_and_read_again_has_its_tables(replayed: hf.Tables, tmp_path: Path) -> None:
    hf.export(replayed.workspace.path, tmp_path / "run.pcapng", format="pcapng", run=1)
    again = load_capture(tmp_path / "run.pcapng")
    before = [row for row in replayed.arrow("segments").to_pylist() if row["run_id"] == 1]
    after = again.segments.to_pylist()
    assert len(after) == len(before) > 500
    for one, other in zip(sorted(before, key=lambda row: (row["t_ns"], row["record"])), after, strict=True):
        for name in one:
            if name not in {"run_id", "flow_id", "leg", *OF_THE_FILE}:
                assert one[name] == other[name], (one["record"], name)
    (flow,) = [row for row in replayed.arrow("flows").to_pylist() if row["run_id"] == 1]
    (found,) = again.flows.to_pylist()
    inferred = {"run_id", "flow_id", "input_id", "a2b_rtos", "a2b_recoveries"}
    assert {n: v for n, v in flow.items() if n not in inferred} == {n: v for n, v in found.items() if n not in inferred}
    assert again.issues.num_rows == 0


def test_both_legs_of_a_split_connection_are_given_back(replayed: hf.Tables, tmp_path: Path) -> None:
    workspace = replayed.workspace.path
    hf.export(workspace, tmp_path / "run.pcapng", format="pcapng", run=2)
    ends = hf.flows(tmp_path / "run.pcapng").sort("flow_id").select("a_addr", "b_addr").rows()
    assert ends == [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.3")]
    names = {path.name for path in hf.export(workspace, tmp_path / "graphs", format="xpl", run=2)}
    assert {"1-a2b-tsg.xpl", "1.1-a2b-tsg.xpl", "1.1-timeline.xpl"} <= names
    assert len(names) == 22


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_packets_of_a_capture_are_read_back(capture: Path, tmp_path: Path) -> None:
    hf.export(capture, tmp_path / "a.pcapng", format="pcapng")
    before, after = segments_of(capture), segments_of(tmp_path / "a.pcapng")
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert {n: v for n, v in one.items() if n not in OF_THE_FILE} == {
            n: v for n, v in other.items() if n not in OF_THE_FILE
        }
    assert max(row["captured_bytes"] for row in after) <= 14 + 120


@pytest.mark.skipif(not PUBLIC.exists(), reason=f"{PUBLIC} is not there")
def test_packets_of_public_captures_are_read_back(tmp_path: Path) -> None:
    read = 0
    for capture in sorted(path for path in PUBLIC.rglob("*") if path.suffix in {".pcap", ".dmp", ".trace", ".gz"}):
        out = tmp_path / f"{read}.pcapng"
        try:
            hf.export(capture, out, format="pcapng")
        except hf.HindflightError:
            continue  # Not a capture, or without a connection.
        key = ("t_ns", "seq_raw", "ack_raw", "flags", "payload_bytes", "sack", "ts_val", "options_other", "ip_id")
        before = Counter(str([row[name] for name in key]) for row in segments_of(capture))
        after = Counter(str([row[name] for name in key]) for row in segments_of(out))
        assert before == after, capture
        out.unlink()
        read += 1
    assert read > 20


def test_one_flow_goes_to_a_file(tmp_path: Path) -> None:
    captures = [str(SENDER), str(SENDER.with_name("rcv.pcap.xz"))]
    with hf.open(captures[0]) as tables:
        rows = tables.arrow("segments").num_rows
    hf.export(captures[0], tmp_path / "a.pcapng", format="pcapng", flow=1)
    assert len(segments_of(tmp_path / "a.pcapng")) == rows
    with pytest.raises(hf.HindflightError):
        hf.export(captures[0], tmp_path / "b.pcapng", format="pcapng", flow=2)
    assert not (tmp_path / "b.pcapng").exists()


def tshark(path: Path, *words: str) -> list[list[str]]:
    ended = subprocess.run(["tshark", "-r", path, *words], capture_output=True, text=True, check=True)
    return [line.split("\t") for line in ended.stdout.splitlines()]


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not on PATH")
def test_comments_show_in_wireshark_and_checksums_are_right(tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    hf.export(SENDER, path, format="pcapng")
    comments = dict(tshark(path, "-Y", "frame.comment", "-T", "fields", "-e", "frame.number", "-e", "frame.comment"))
    events = hf.events(SENDER, where="record IS NOT NULL AND kind = 'retransmission'").to_dicts()
    assert len(events) > 10
    for event in events:
        comment = comments[str(event["record"])]
        assert f"mechanism {event['mechanism']}" in comment
        assert event["spurious"] is None or ("not spurious" in comment) == (not event["spurious"])
    assert sum("cwnd " in text for text in comments.values()) > 100
    check = ("-o", "ip.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE", "-T", "fields")
    # Wireshark checks TCP only where it has the payload.
    shown = tshark(path, *check, "-e", "ip.checksum.status", "-e", "tcp.checksum.status", "-e", "tcp.len")
    assert {ip for ip, _, _ in shown} == {"1"}
    assert {tcp for _, tcp, length in shown if length == "0"} == {"1"}


Points = Counter[tuple[str, ...]]
_COLORS = {"white", "red", "green", "blue", "yellow", "orange", "purple", "magenta", "pink"}
_PLACES = {"line": 4} | dict.fromkeys(("dot", "diamond", "box", "uarrow", "darrow", "utick", "dtick", "htick"), 2)
_PLACES |= {"larrow": 2, "rarrow": 2}


def points(path: Path) -> Points:
    """Return the marks and lines of a graph with their colours; labels are left out."""
    found: Points = Counter()
    color = ""
    for line in path.read_text().splitlines()[7:]:
        words = line.split()
        if len(words) == 1 and words[0] in _COLORS:
            color = words[0]
        elif words and (places := _PLACES.get(words[0])) and len(words) > places:
            found[(*words[: 1 + places], words[1 + places] if len(words) > 1 + places else color)] += 1
    return found


@pytest.fixture(scope="module", params=CAPTURES, ids=lambda path: path.parent.name)
def graphs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the graphs of one capture, tcptrace's and ours."""
    folder = tmp_path_factory.mktemp("graphs")
    (folder / "a.pcap").write_bytes(lzma.decompress(request.param.read_bytes()))
    subprocess.run(["tcptrace", "-G", "-n", "a.pcap"], cwd=folder, check=True, capture_output=True)
    hf.export(folder / "a.pcap", folder / "ours", format="xpl")
    return folder


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not on PATH")
@pytest.mark.parametrize("way", ["a2b", "b2a"])
@pytest.mark.parametrize(
    ("graph", "theirs"), [("tsg", "tsg"), ("tput", "tput"), ("owin", "owin"), ("segsize", "ssize")]
)
def test_graphs_are_those_of_tcptrace_point_by_point(graphs: Path, way: str, graph: str, theirs: str) -> None:
    expected = points(graphs / f"{way}_{theirs}.xpl")
    assert points(graphs / "ours" / f"1-{way}-{graph}.xpl") == expected
    assert (
        (graphs / "ours" / f"1-{way}-{graph}.xpl")
        .read_text()
        .startswith((graphs / f"{way}_{theirs}.xpl").read_text().split("xlabel")[0])
    )


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not on PATH")
def test_round_trip_times_include_those_of_tcptrace_outside_recovery(graphs: Path) -> None:
    theirs, ours = (
        Counter({point: n for point, n in points(path).items() if point[0] == "dot"})
        for path in (graphs / "a2b_rtt.xpl", graphs / "ours" / "1-a2b-rtt.xpl")
    )
    assert (theirs - ours).total() <= 0.005 * theirs.total()
    line = {point for point in points(graphs / "a_b_tline.xpl") if point[0] in {"larrow", "rarrow"}}
    same = line & set(points(graphs / "ours" / "1-timeline.xpl"))
    assert len(same) > 0.8 * len(line)


def row(t_ns: int, direction: str, seq: int, payload: int, **changes: Any) -> dict[str, Any]:
    flags = 24 if payload else 16
    plain = {
        "ack": 1,
        "flags": flags,
        "wnd_bytes": 1000,
        "sack": [],
        "dscp_ecn": 0,
        "retransmission": False,
        "rtt_ns": None,
    }
    return {"t_ns": t_ns, "direction": direction, "seq": seq, "payload_bytes": payload, **plain, **changes}


def test_graphs_of_a_few_segments_by_hand() -> None:
    connection = Connection("a:1", "b:2", (100, 500))
    connection.add(row(1_000_000_999, "a2b", 0, 0, flags=2, ack=None))
    connection.add(row(1_100_000_000, "b2a", 0, 0, flags=18, rtt_ns=99_999_001))
    connection.add(row(1_100_000_000, "a2b", 1, 10))
    connection.add(row(1_100_000_002, "a2b", 11, 30))
    connection.add(row(1_300_000_000, "b2a", 1, 0, ack=11, sack=[41, 51, 61, 71], rtt_ns=200_000_000))
    connection.add(row(1_400_000_000, "a2b", 11, 30, retransmission=True))
    drawn = {(way, name): plot.commands for way, name, plot in connection.plots()}
    assert [c for c in drawn["a2b", "rtt"] if c.startswith("dot")] == ["dot 1.100000 100", "dot 1.300000 200"]
    assert [c for c in drawn["a2b", "segsize"] if c.startswith("dot")][::2] == [
        "dot 1.100000 10", "dot 1.100000 30", "dot 1.400000 30"
    ]  # fmt: skip
    assert "dot 1.100000 15000000 yellow" not in drawn["a2b", "tput"]
    assert [c for c in drawn["a2b", "tput"] if c.startswith("dot")] == [
        "dot 1.100000 100 yellow", "dot 1.100000 30000 yellow", "dot 1.400000 100 yellow"
    ]  # fmt: skip
    tsg = drawn["a2b", "tsg"]
    assert "atext 1.400000 141\nR" in tsg
    assert "atext 1.300000 171\nS" in tsg
    assert "line 1.300000 141 1.300000 151" in tsg
    assert "line 1.300000 101 1.300000 111" in tsg
    assert "line 1.300000 1101 1.300000 1111" in tsg


def test_tables_have_the_same_rows_in_every_format(tmp_path: Path) -> None:
    with hf.open(SENDER) as tables:
        expected = tables.arrow("events").to_pylist()
    for form in ("csv", "jsonl", "parquet"):
        written = hf.export(SENDER, tmp_path / form, format=form)
        assert {path.stem for path in written} == {"segments", "flows", "events", "instruments"}
    hf.export(SENDER, tmp_path / "a.sqlite", format="sqlite")
    assert pq.read_table(tmp_path / "parquet" / "events.parquet").to_pylist() == expected
    lines = (tmp_path / "jsonl" / "events.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == expected
    with (tmp_path / "csv" / "events.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(one["t_ns"]) for one in rows] == [one["t_ns"] for one in expected]
    with sqlite3.connect(tmp_path / "a.sqlite") as database:
        found = database.execute("SELECT t_ns, kind, mechanism FROM events").fetchall()
        unit = database.execute("SELECT unit FROM columns WHERE table_name = 'events' AND name = 't_ns'").fetchone()
        sack = database.execute("SELECT sack FROM segments WHERE sack != '[]' LIMIT 1").fetchone()
    assert found == [(one["t_ns"], one["kind"], one["mechanism"]) for one in expected]
    assert unit == ("ns",)
    assert len(json.loads(sack[0])) % 2 == 0
    (one,) = hf.export(SENDER, tmp_path / "flows.csv", format="csv", table="flows")
    assert one.read_text() == (tmp_path / "csv" / "flows.csv").read_text()


def test_states_go_to_a_snaplog_and_come_back(replayed: hf.Tables, tmp_path: Path) -> None:
    workspace = replayed.workspace.path
    hf.export(workspace, tmp_path / "a.log", format="web100", run=1)
    (log,) = list(read_log(tmp_path / "a.log"))
    assert log.connection is not None
    assert (log.connection.local_addr, log.connection.remote_addr) == ("10.0.0.1", "10.0.0.3")
    found = log.instruments(1).to_pylist()
    before = [
        row for row in replayed.arrow("instruments").to_pylist() if row["run_id"] == 1 and row["source"] == "replay"
    ]
    assert len(found) == len(before) > 100
    for one, other in zip(before, found, strict=True):
        for name in ("cwnd_bytes", "ssthresh_bytes", "segments_out", "retransmissions", "rtos", "snd_una", "snd_nxt"):
            assert one[name] == other[name], name
        assert one["srtt_ns"] is None or abs(one["srtt_ns"] - other["srtt_ns"]) <= 500_000
        assert (other["t_ns"] - found[0]["t_ns"]) // 1000 == one["t_ns"] // 1000 - before[0]["t_ns"] // 1000
    (capture,) = hf.export(SENDER, tmp_path / "b.log", format="web100")
    assert hf.info(capture)["kind"] == "log"


def test_anonymised_addresses_keep_their_prefixes_and_leave_no_trace(tmp_path: Path) -> None:
    key = tmp_path / "key"
    for form, name in (("pcapng", "a.pcapng"), ("sqlite", "a.sqlite"), ("csv", "tables")):
        written = hf.export(SENDER, tmp_path / name, format=form, anonymize=True, key=key)
        assert (key in written) == (form == "pcapng")
    assert key.stat().st_mode & 0o077 == 0
    before, after = hf.flows(SENDER).row(0, named=True), hf.flows(tmp_path / "a.pcapng").row(0, named=True)
    assert (before["a_port"], before["a2b_unique_bytes"]) == (after["a_port"], after["a2b_unique_bytes"])
    real, mapped = ([int(ip_address(flow[end])) for end in ("a_addr", "b_addr")] for flow in (before, after))
    assert not set(real) & set(mapped)
    assert (real[0] ^ real[1]).bit_length() == (mapped[0] ^ mapped[1]).bit_length()
    for path in [tmp_path / "a.pcapng", tmp_path / "a.sqlite", *(tmp_path / "tables").iterdir()]:
        octets = path.read_bytes()
        assert before["a_addr"].encode() not in octets
        assert ip_address(before["a_addr"]).packed not in octets
    hf.export(SENDER, tmp_path / "again.pcapng", format="pcapng", anonymize=True, key=key)
    assert (tmp_path / "again.pcapng").read_bytes() == (tmp_path / "a.pcapng").read_bytes()
    hf.export(SENDER, tmp_path / "other.pcapng", format="pcapng", anonymize=True, key=tmp_path / "other")
    assert hf.flows(tmp_path / "other.pcapng")["a_addr"][0] != after["a_addr"]
    key.write_text("short")
    with pytest.raises(hf.HindflightError, match="not a key"):
        hf.export(SENDER, tmp_path / "c.pcapng", format="pcapng", anonymize=True, key=key)


def test_nothing_of_the_users_is_replaced_and_errors_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.pcapng").write_text("mine")
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("mine.pcapng", {"format": "pcapng"}),
        ("a", {"format": "pcap"}),
        ("a", {"format": "csv", "table": "segment"}),
        ("a", {"format": "pcapng", "table": "segments"}),
        ("a", {"format": "xpl", "flow": 3}),
        ("a", {"format": "pcapng", "run": 2}),
        ("a", {"format": "csv", "key": tmp_path / "key"}),
    ]
    for name, options in wrong:
        with pytest.raises(hf.HindflightError):
            hf.export(SENDER, tmp_path / name, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.pcapng"]
    assert (tmp_path / "mine.pcapng").read_text() == "mine"
    hf.export(SENDER, tmp_path / "mine.pcapng", format="pcapng", force=True)
    assert (tmp_path / "mine.pcapng").read_text("latin-1") != "mine"


def test_an_export_may_be_repeated_and_a_changed_file_stays(tmp_path: Path) -> None:
    for form, name in (("pcapng", "a.pcapng"), ("sqlite", "a.sqlite"), ("csv", "csv"), ("parquet", "pq"), ("xpl", "x")):
        written = hf.export(SENDER, tmp_path / name, format=form)
        before = [path.read_bytes() for path in written]
        assert hf.export(SENDER, tmp_path / name, format=form) == written
        assert [path.read_bytes() for path in written] == before
        changed = written[-1]
        changed.write_bytes(changed.read_bytes() + b" ")
        with pytest.raises(hf.HindflightError, match="exists"):
            hf.export(SENDER, tmp_path / name, format=form)
        assert changed.read_bytes() == before[-1] + b" "
        assert [path.read_bytes() for path in written[:-1]] == before[:-1]


def test_a_failed_export_leaves_no_key(tmp_path: Path) -> None:
    with pytest.raises(hf.HindflightError, match="no flow 7"):
        hf.export(SENDER, tmp_path / "a.pcapng", format="pcapng", anonymize=True, flow=7)
    assert not list(tmp_path.iterdir())


def test_tables_are_written_a_batch_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hindflight.toolkit import workspace

    hf.export(SENDER, tmp_path / "whole.csv", format="csv", table="segments")
    monkeypatch.setattr(workspace, "ROWS_PER_GROUP", 1000)
    monkeypatch.setattr(workspace.Workspace, "table", _only_flows(workspace.Workspace.table))
    for form in ("csv", "jsonl", "parquet"):
        hf.export(SENDER, tmp_path / f"parts.{form}", format=form, table="segments")
    assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()


def _only_flows(table: Any) -> Any:
    def read(self: Any, name: str, *arguments: Any) -> Any:
        assert name == "flows", f"{name} is read as a whole"
        return table(self, name, *arguments)

    return read
