"""Logs from the command line: one workspace of a capture, kernel logs and a flight log; offsets; first looks."""

from __future__ import annotations

import json
import lzma
import zlib
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_flight_logs import flight_seeds, relative_csv
from fixtures.make_logs import FOLDER, seeds
from hindflight.toolkit.workspace import Workspace
from tests.e2e.conftest import SHARED, Command

CAPTURE = FOLDER / "transfer.pcap.xz"
PUBLIC = SHARED / "data" / "public" / "web100"
START_S = 1_795_433_889
"""When the recorded transfer began."""


def ingested(hindflight: Command, tmp_path: Path, *arguments: object) -> tuple[Workspace, list[dict[str, Any]]]:
    ended = hindflight("ingest", *arguments, "-w", tmp_path / "ws", "--json")
    assert ended.returncode == 0, ended.stderr
    return Workspace.open(tmp_path / "ws"), json.loads(ended.stdout)["inputs"]


def test_a_capture_its_logs_and_a_flight_log_make_one_workspace(hindflight: Command, tmp_path: Path) -> None:
    flight = tmp_path / "flight.csv"
    flight.write_bytes(relative_csv())
    logs = ("ss-oneline.txt", "iperf3.json", "ftrace.txt.xz", "perf-script.txt.xz")
    workspace, inputs = ingested(hindflight, tmp_path, CAPTURE, *(FOLDER / name for name in logs))
    assert [each["kind"] for each in inputs] == ["capture", "ss", "iperf3", "tcp_probe", "tcp_probe"]
    assert workspace.rows("flows") == 2, "every log found its flows"
    ended = hindflight("ingest", flight, "-w", tmp_path / "ws", "--clock-offset", START_S)
    assert ended.returncode == 0, ended.stderr
    workspace = Workspace.open(tmp_path / "ws")
    assert "log_apart" not in workspace.table("issues")["kind"].to_pylist()
    joined = hindflight(
        "query",
        tmp_path / "ws",
        "SELECT count(*) AS n FROM segments s ASOF JOIN (FROM telemetry WHERE name = 'rssi_dbm') t ON s.t_ns >= t.t_ns",
        "--csv",
    )
    assert int(joined.stdout.split()[1]) > 500


@pytest.mark.parametrize("name", ["ftrace.txt.xz", "perf-script.txt.xz"])
def test_the_clock_of_a_trace_is_estimated_by_the_acknowledgements(
    hindflight: Command, tmp_path: Path, name: str
) -> None:
    workspace, (_, log) = ingested(hindflight, tmp_path, CAPTURE, FOLDER / name)
    assert "estimated from" in log["note"]
    rows = workspace.table("instruments").to_pylist()
    acks = [row for row in workspace.table("segments").to_pylist() if row["direction"] == "b2a" and row["flow_id"] == 2]
    probes = [row for row in rows if row["source"] == "tcp_probe" and row["flow_id"] == 2]
    assert len(probes) > 100
    assert {row["smss_bytes"] for row in probes} == {1448}
    times = sorted(row["t_ns"] for row in acks)
    before = [max(t for t in times if t <= row["t_ns"] + 1_000_000) for row in probes]
    late = sorted(row["t_ns"] - t for row, t in zip(probes, before, strict=True))
    assert abs(late[len(late) // 2]) < 1_000_000, "each probe is within a millisecond of the segment that fired it"


def test_a_given_offset_replaces_the_estimate(hindflight: Command, tmp_path: Path) -> None:
    log = tmp_path / "probe.txt"
    log.write_bytes(seeds()["tcpprobe old"][1])
    workspace, (one,) = ingested(hindflight, tmp_path, log, "--clock-offset", 1000)
    assert "as given" in one["note"]
    (flow,) = workspace.table("flows").to_pylist()
    assert flow["start_ns"] == 1005 * 10**9
    (kind,) = {row["kind"] for row in workspace.table("issues").to_pylist()}
    assert kind == "log_segment_size"


def test_an_unknown_clock_without_a_match_is_refused(hindflight: Command, tmp_path: Path) -> None:
    log = tmp_path / "probe.txt"
    text = lzma.decompress((FOLDER / "ftrace.txt.xz").read_bytes())
    log.write_bytes(text.replace(b"snd_una=0x", b"snd_una=0xf").replace(b"snd_una=0xf1c", b"snd_una=0x91"))
    ended = hindflight("ingest", CAPTURE, log, "-w", tmp_path / "ws")
    assert ended.returncode == 2
    assert "--clock-offset" in ended.stderr


@pytest.mark.parametrize("name", ["ss one line", "ndt7", "snaplog 2.5.27", "dataflash", "flight csv"])
def test_info_reports_every_log(hindflight: Command, tmp_path: Path, name: str) -> None:
    kind, content = (seeds() | flight_seeds())[name]
    log = tmp_path / "log"
    log.write_bytes(content)
    ended = hindflight("info", log, "--json")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["kind"], found["format"]) == ("log", kind)
    assert found["rows"] > 0
    assert found["start_utc"] is not None
    assert bool(found["top_connections"]) != bool(found["values"])
    assert "issues" in hindflight("info", log).stdout


def test_an_archive_bomb_is_one_clear_line_in_little_memory(hindflight: Command, tmp_path: Path) -> None:
    head, row, *_ = seeds()["tcp_info"][1].splitlines(keepends=True)
    packer = zlib.compressobj(9, wbits=31)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(packer.compress(head + row * 400_000) + packer.flush())
    ended = hindflight("ingest", bomb, "-w", tmp_path / "ws")
    assert ended.returncode == 2
    assert "unpacks to more than 250 times its size" in ended.stderr
    assert not (tmp_path / "ws").exists()


@pytest.mark.skipif(not PUBLIC.is_dir(), reason=f"public logs are not at {PUBLIC}")
def test_the_public_snaplog_and_its_capture_are_one_connection(hindflight: Command, tmp_path: Path) -> None:
    names = ("ndt-44160.s2c_ndttrace.pcap.gz", "ndt-44160.s2c_snaplog.gz")
    workspace, _ = ingested(hindflight, tmp_path, *(PUBLIC / name for name in names))
    (flow,) = workspace.table("flows").to_pylist()
    instruments = [row for row in workspace.table("instruments").to_pylist() if row["source"] == "web100"]
    assert len(instruments) == 2032
    assert {row["flow_id"] for row in instruments} == {flow["flow_id"]}
    other = {"a2b": "b2a", "b2a": "a2b"}[flow["data_direction"]]
    acks = [row["ack_raw"] for row in workspace.table("segments").to_pylist() if row["direction"] == other]
    una = [row["value"] for row in workspace.table("variables").to_pylist() if row["name"] == "SndUna"]
    assert una[-1] == max(acks), "log and capture end at the same octet"
