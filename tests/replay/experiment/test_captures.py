"""Captures of replays: our own reading of them gives the replay's tables, tshark and tcptrace agree, and errors."""

from __future__ import annotations

import csv
import os
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hindflight.replay.experiment.captures import capture_folder, place_captures
from hindflight.replay.experiment.engine_inputs import Job
from hindflight.replay.experiment.run import Recording, run_jobs
from hindflight.replay.scenario.model import Keep, Scenario, parse_scenario
from hindflight.toolkit.capture import load_capture
from hindflight.toolkit.errors import HindflightError, MachineError, ScenarioError

VARIANTS = ("newreno", "sack", "cubic")

# Run, flow and input number their own way; a capture keeps the headers alone, and a replay has no checksums.
ELSEWHERE = {"run_id", "flow_id", "input_id", "captured_bytes", "ip_checksum", "tcp_checksum"}

WRAPPING_SEED = 5797
"""Its initial sequence number lies 0.7 MB before 2^32."""

Runs = Callable[[str], tuple[dict[str, pa.Table], Path]]

LOSSY = {"model": "bernoulli", "per": 0.01}


def _scenario(
    flow: dict[str, Any],
    *,
    forward: dict[str, Any] | None = None,
    nodes: str = "ab",
    proxy: str = "none",
    **more: Any,
) -> Scenario:
    link = {"rate": "2 Mbit/s", "delay": "30 ms", "queue": "40 pkts", **(forward or {})}
    links = [{"name": f"{a}{b}", **link} for a, b in pairwise(nodes)]
    compare = {"variants": ["cubic"], "proxies": [proxy], "seeds": 1}
    data = {"name": "s", "duration": "12 s", "path": list(nodes), "links": links, "flow": flow, "compare": compare}
    return parse_scenario({**data, **more}, "s.toml", VARIANTS)


def _run(scenario: Scenario, folder: Path, *, variant: str = "cubic", seed: int = 1) -> dict[str, pa.Table]:
    job = Job(variant, scenario.compare.proxies[0], "what_if", "model", seed, recorded=True)
    return run_jobs(scenario, {1: job}, {}, recording=Recording(captures=folder))


CASES: dict[str, tuple[Scenario, str]] = {
    "linux": (
        _scenario(
            {"size": "1 MB", "profile": "linux", "receive_buffer": "4 MiB", "receive_window_growth": False},
            forward={"loss": LOSSY},
        ),
        "cubic",
    ),
    "closed": (_scenario({"size": "100 kB", "profile": "linux", "close": True}), "sack"),
    "rfc without SACK": (
        _scenario(
            {"size": "400 kB", "profile": "rfc", "timestamps": False, "sack": False},
            forward={"loss": LOSSY},
        ),
        "newreno",
    ),
    "ns2": (_scenario({"profile": "ns2"}, forward={"loss": LOSSY}), "sack"),
    "marked": (
        _scenario({"ecn": True}, forward={"queue": {"kind": "red", "limit": "60 pkts", "min": "4 pkts"}}),
        "cubic",
    ),
    "overtaken": (_scenario({}, forward={"jitter": {"kind": "exponential", "spread": "5 ms"}}), "cubic"),
    "given up": (
        _scenario({"user_timeout": "2 s"}, forward={"changes": [{"at": "1 s", "outage": True}]}),
        "sack",
    ),
    "long headers": (_scenario({"headers": "80 B", "size": "300 kB"}, forward={"loss": LOSSY}), "sack"),
    "slow reader": (_scenario({"receive_buffer": "20 kB", "read_rate": "200 kbit/s"}), "sack"),
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Tables of a case and the folder of its captures; each case runs once."""

    @cache
    def run(case: str) -> tuple[dict[str, pa.Table], Path]:
        folder = tmp_path_factory.mktemp("captures")
        scenario, variant = CASES[case]
        return _run(scenario, folder, variant=variant), folder

    return run


def _rows(table: pa.Table) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name not in ELSEWHERE} for row in table.to_pylist()]


@pytest.mark.parametrize("case", CASES)
def test_a_capture_reads_back_as_the_replay(case: str, runs: Runs) -> None:
    replayed, folder = runs(case)
    read = load_capture(folder / "1-a.pcap")
    assert read.issues.num_rows == 0
    assert read.summary.resolution_ns == 1
    assert _rows(read.segments) == _rows(replayed["segments"])
    assert _rows(read.flows) == _rows(replayed["flows"])
    inferred = replayed["instruments"].filter(
        pa.compute.equal(replayed["instruments"]["source"].cast("string"), "inferred")
    )
    assert _rows(read.instruments) == _rows(inferred)
    # The replay knows why a packet was lost and what a recovery proved to be; the capture must infer it.
    guessed, known = (
        [row for row in _rows(table) if row["kind"] != "loss"] for table in (read.events, replayed["events"])
    )
    for row in (*guessed, *known):
        if row["kind"] == "recovery":
            del row["evidence"]
    assert sorted(map(repr, guessed)) == sorted(map(repr, known))


def test_sequence_numbers_wrap(tmp_path: Path) -> None:
    replayed = _run(CASES["linux"][0], tmp_path, seed=WRAPPING_SEED)
    raw = (
        replayed["segments"].filter(pa.compute.greater(replayed["segments"]["payload_bytes"], 0))["seq_raw"].to_pylist()
    )
    assert raw[0] > 2**32 - 10**6 > raw[-1]
    read = load_capture(tmp_path / "1-a.pcap")
    assert _rows(read.flows) == _rows(replayed["flows"])
    assert read.flows["a2b_unique_bytes"].to_pylist() == [10**6]


def test_the_receiver_sees_what_arrived(runs: Runs) -> None:
    replayed, folder = runs("linux")
    lost = [row for row in replayed["events"].to_pylist() if row["kind"] == "loss"]
    assert lost
    sent = [row for row in replayed["segments"].to_pylist() if row["direction"] == "a2b"]
    gone = {row["record"] for row in lost}
    there = [row for row in load_capture(folder / "1-b.pcap").segments.to_pylist() if row["direction"] == "a2b"]
    arrived = [row["ip_id"] for row in sent if row["record"] not in gone]
    # What is under way when the run ends is lacking.
    assert len(arrived) - 3 <= len(there) <= len(arrived)
    assert [row["ip_id"] for row in there] == arrived[: len(there)]
    by_id = {row["ip_id"]: row for row in sent}
    for row in there:
        # 30 ms of the link and the packet's own serialisation at least.
        assert row["t_ns"] - by_id[row["ip_id"]]["t_ns"] >= 30_000_000 + row["ip_bytes"] * 4000


def test_each_node_has_the_connections_that_end_there(tmp_path: Path) -> None:
    scenario = _scenario(
        {"size": "200 kB", "close": True},
        nodes="abc",
        proxy="b",
        flows=[{"name": "other", "variant": "sack", "size": "100 kB"}],
        datagrams=[{"name": "voice", "packet": "200 B", "rate": "64 kbit/s"}],
    )
    replayed = _run(scenario, tmp_path)
    ends = {
        path.name: Counter(
            (row["a_addr"], row["b_addr"], row["a2b_unique_bytes"]) for row in load_capture(path).flows.to_pylist()
        )
        for path in tmp_path.iterdir()
    }
    first, second = ("10.0.0.1", "10.0.0.2", 200_000), ("10.0.0.2", "10.0.0.3", 200_000)
    through = ("10.0.0.1", "10.0.0.3", 100_000)
    assert ends == {
        "1-a.pcap": Counter([first, through]),
        "1-b.pcap": Counter([first, second]),
        "1-c.pcap": Counter([second, through]),
    }
    relay = load_capture(tmp_path / "1-b.pcap")
    assert set(relay.flows["fin"].to_pylist()) == {2}
    behind = replayed["segments"].filter(pa.compute.equal(replayed["segments"]["leg"], 1))
    leaving = [row for row in relay.segments.to_pylist() if row["flow_id"] == 2]
    assert [(row["t_ns"], row["seq"], row["ack"]) for row in leaving] == [
        (row["t_ns"], row["seq"], row["ack"]) for row in behind.to_pylist()
    ]


def whole(capture: Path) -> Path:
    """The capture with the payload, zeros, that its records leave out: without it nobody can check TCP's checksums."""
    octets, at = capture.read_bytes(), 24
    out = [octets[:at]]
    while at < len(octets):
        seconds, fraction, kept, frame = struct.unpack_from("<4I", octets, at)
        data = octets[at + 16 : at + 16 + kept]
        out.append(struct.pack("<4I", seconds, fraction, frame, frame) + data + bytes(frame - kept))
        at += 16 + kept
    path = capture.with_suffix(".whole.pcap")
    path.write_bytes(b"".join(out))
    return path


SHOWN = (
    *("frame.number", "ip.checksum.status", "tcp.checksum.status", "_ws.malformed"),
    *("tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.duplicate_ack"),
)


def _tshark(capture: Path) -> list[dict[str, str]]:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    words = ["tshark", "-n", "-r", str(capture), "-Y", "tcp", "-T", "fields", "-E", "separator=;"]
    words += ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    ended = subprocess.run([*words, *(w for f in SHOWN for w in ("-e", f))], capture_output=True, text=True, check=True)
    return [dict(zip(SHOWN, line.split(";"), strict=True)) for line in ended.stdout.splitlines()]


@pytest.mark.peer
@pytest.mark.parametrize("case", CASES)
def test_tshark_finds_nothing_wrong_and_counts_the_same(case: str, runs: Runs) -> None:
    tables, folder = runs(case)
    replayed = tables["segments"].to_pylist()
    theirs = _tshark(whole(folder / "1-a.pcap"))
    assert [int(row["frame.number"]) for row in theirs] == [row["record"] for row in replayed]
    # 1: the checksum is good.
    assert {(row["ip.checksum.status"], row["tcp.checksum.status"], row["_ws.malformed"]) for row in theirs} == {
        ("1", "1", "")
    }
    # What leaves again at once it takes for a segment that was overtaken.
    again = [bool(row["tcp.analysis.retransmission"] or row["tcp.analysis.out_of_order"]) for row in theirs]
    assert again == [row["retransmission"] for row in replayed]
    assert any(again) or case in {"closed", "marked", "slow reader"}
    duplicate = [bool(row["tcp.analysis.duplicate_ack"]) for row in theirs]
    comparable = _same_rule(replayed)
    assert [duplicate[i] for i in comparable] == [replayed[i]["dup_ack"] for i in comparable]
    assert sum(replayed[i]["dup_ack"] for i in comparable) >= 0.5 * sum(row["dup_ack"] for row in replayed)


def _same_rule(replayed: list[dict[str, Any]]) -> list[int]:
    """The ACKs that are duplicates by both rules or by neither.

    With SACK hindflight counts ACKs that report more data, whatever the window; tshark counts those that change
    neither ACK nor window.
    """
    starts = {row["seq"] for row in replayed if row["payload_bytes"]}
    sacked: set[int] = set()
    window, found = None, []
    for i, row in enumerate(replayed):
        if row["direction"] == "a2b":
            continue
        blocks = list(zip(row["sack"][::2], row["sack"][1::2], strict=True))
        news = {start for start in starts if any(left <= start < right for left, right in blocks)} - sacked
        sacked |= news
        if row["wnd_bytes"] == window and (news or not replayed[0]["sack_permitted"]):
            found.append(i)
        window = row["wnd_bytes"]
    return found


TCPTRACE = {
    "segments": "total_packets",
    "data_segments": "actual_data_pkts",
    "payload_bytes": "actual_data_bytes",
    "unique_bytes": "unique_bytes_sent",
    "retransmitted_segments": "rexmt_data_pkts",
    "retransmitted_bytes": "rexmt_data_bytes",
    "sack_segments": "sack_pkts_sent",
    "dsack_segments": "dsack_pkts_sent",
    "max_segment_bytes": "max_segm_size",
}


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed")
@pytest.mark.parametrize("case", CASES)
def test_tcptrace_counts_the_same(case: str, runs: Runs) -> None:
    tables, folder = runs(case)
    (flow,) = tables["flows"].to_pylist()
    words = ["tcptrace", "-n", "-l", "-r", "--csv", str(folder / "1-a.pcap")]
    run = subprocess.run(words, capture_output=True, text=True, check=True)
    lines = [line for line in run.stdout.splitlines() if line and not line.startswith("#")]
    (report,) = csv.DictReader(lines, skipinitialspace=True)
    for way in ("a2b", "b2a"):
        ours = {name: flow[f"{way}_{name}"] for name in TCPTRACE}
        assert ours == {name: int(report[f"{field}_{way}"]) for name, field in TCPTRACE.items()}


@pytest.mark.parametrize(("headers", "why"), [("40 B", "60 to 120 B"), ("54 B", "in steps of 4 B")])
def test_headers_that_no_packet_has_are_an_error(headers: str, why: str, tmp_path: Path) -> None:
    scenario = _scenario({"headers": headers, "size": "100 kB"})
    with pytest.raises(ScenarioError, match=f"flows.0.: no capture can hold segment 1 .*{why}"):
        _run(scenario, tmp_path)


def _stop(out: Path) -> None:
    with capture_folder(out, Keep()) as folder:
        assert folder is not None
        (folder / "1-a.pcap").write_bytes(b"half")
        raise HindflightError("takes no variant")


def test_captures_appear_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "new" / "captures"
    job = Job("cubic", "none", "what_if", "model", 1, recorded=True)
    with pytest.raises(HindflightError, match="takes no variant"):
        _stop(out)
    assert list(out.iterdir()) == []
    with capture_folder(out, Keep()) as folder:
        assert folder is not None
        (folder / "1-a.pcap").write_bytes(b"whole")
        placed = place_captures(folder, out, {1: job})
    assert placed == (out / "1-cubic-none-a.pcap",)
    assert [path.read_bytes() for path in out.iterdir()] == [b"whole"]


def test_a_folder_that_cannot_be_written_and_a_scenario_that_keeps_nothing(tmp_path: Path) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    with pytest.raises(HindflightError, match="writing captures to"), capture_folder(occupied, Keep()):
        pass
    with pytest.raises(ScenarioError, match=r"keep\.series"), capture_folder(tmp_path, Keep(series="none")):
        pass
    if os.geteuid() != 0:
        (tmp_path / "closed").mkdir(mode=0o500)
        with pytest.raises(MachineError), capture_folder(tmp_path / "closed" / "in", Keep()):
            pass
    with pytest.raises(HindflightError, match="writing captures to"):
        _run(CASES["linux"][0], tmp_path / "missing")
