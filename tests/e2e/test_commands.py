"""The reading commands on one recorded flow: output for terminals and for programs."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from fixtures.make_snaplog import CWND_SEGMENTS, MSS, snaplog
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.score import score
from hindflight.toolkit.workspace import Workspace
from tests.e2e.conftest import FLOW, ROOT, SHARED, Command, words

CAPTURE, LOG = FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz"
TRUTH = json.loads((FLOW / "scenario.json").read_text())["flows"][0]
PUBLIC = SHARED / "data" / "public" / "web100"
KERNEL = SHARED / "data" / "kernel"


def document(hindflight: Command, *arguments: object) -> Any:
    """Run a command with --json and return its document, which must be all of stdout."""
    ended = hindflight(*arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "ws"
    subprocess.run(words("ingest", LOG, CAPTURE, "-w", folder), cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture
def workspace(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "ws"))


def test_info_reports_the_capture_as_json(hindflight: Command) -> None:
    found = document(hindflight, "info", CAPTURE)
    assert (found["compression"], found["link_type"]) == ("xz", "EN10MB")
    assert (found["clock_resolution_ns"], found["snaplen_bytes"]) == (1, 100)
    assert found["packets"] == found["tcp"]["packets"]
    assert found["tcp_share_of_bytes"] == 1.0
    assert found["issues"] == 0
    (flow,) = found["top_flows"]
    assert (flow["from"], flow["to"]) == (f"10.77.0.1:{TRUTH['sport']}", "10.77.0.2:5001")
    assert flow["retransmitted_segments"] == TRUTH["retransmits_seen_on_link"]
    assert flow["captured_at"] == "sender"
    assert found["start_utc"] < found["end_utc"]


def test_info_prints_text_for_a_terminal(hindflight: Command) -> None:
    ended = hindflight("info", CAPTURE)
    assert ended.stderr == ""
    for said in ("clock", "nanoseconds", "100 bytes", "EN10MB", "other traffic", "captured at"):
        assert said in ended.stdout


def test_flows_of_a_capture_and_its_workspace_are_equal(hindflight: Command, workspace: Path) -> None:
    of_capture = document(hindflight, "flows", CAPTURE)
    assert of_capture == document(hindflight, "flows", workspace)
    (flow,) = of_capture["flows"]
    assert flow["a2b_retransmitted_segments"] == TRUTH["retransmits_seen_on_link"]
    assert (flow["flow_id"], flow["input_id"], flow["run_id"]) == (1, 1, 0)


def test_flows_are_limited_to_an_interval(hindflight: Command, workspace: Path) -> None:
    start_ns = document(hindflight, "flows", workspace)["start_ns"]
    for arguments, count in (
        (["--from", "3"], 1),
        (["--to", "-1"], 0),
        (["--from", "1000"], 0),
        (["--from", "2026-01-01T00:00:00", "--to", "2027-01-01"], 1),
        (["--to", "2026-01-01"], 0),
    ):
        assert len(document(hindflight, "flows", workspace, *arguments)["flows"]) == count, arguments
    (flow,) = document(hindflight, "flows", workspace, "--utc")["flows"]
    assert flow["start_utc"].startswith("2026-")
    assert flow["start_ns"] == start_ns


def test_csv_has_every_column(hindflight: Command, workspace: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(hindflight("flows", workspace, "--csv").stdout)))
    assert len(rows) == 1
    assert set(rows[0]) == set(document(hindflight, "flows", workspace)["flows"][0])


def test_series_contains_the_kernel_log(hindflight: Command, workspace: Path) -> None:
    found = document(hindflight, "series", workspace, "--flow", 1, "--source", "tcp_info")
    series = found["series"]
    assert {row["source"] for row in series} == {"tcp_info"}
    assert series[-1]["retransmissions"] == TRUTH["retransmits"]
    assert [row["t_ns"] for row in series] == sorted(row["t_ns"] for row in series)
    middle = document(hindflight, "series", workspace, "--flow", 1, "--source", "tcp_info", "--from", 5, "--to", 6)
    wanted = [row for row in series if 5e9 <= row["t_ns"] - found["start_ns"] <= 6e9]
    assert middle["series"] == wanted
    assert wanted


def test_series_prints_relative_and_utc_times(hindflight: Command, workspace: Path) -> None:
    seconds = hindflight("series", workspace, "--flow", 1, "--source", "tcp_info", "--to", 2).stdout
    assert "t_s" in seconds
    assert "slow_start" in seconds
    utc = hindflight("series", workspace, "--flow", 1, "--source", "tcp_info", "--to", 2, "--utc", "--csv").stdout
    assert utc.splitlines()[0].startswith("time_utc,source,")
    assert utc.splitlines()[1].startswith("2026-")


def test_repeated_ingest_is_reported_and_changes_nothing(hindflight: Command, workspace: Path, tmp_path: Path) -> None:
    before = {entry.name: entry.read_bytes() for entry in workspace.iterdir()}
    shutil.copy(CAPTURE, tmp_path / "another name")
    again = hindflight("ingest", tmp_path / "another name", LOG, "-w", workspace)
    assert again.returncode == 0
    assert again.stderr.count("already here as input") == 2
    assert {entry.name: entry.read_bytes() for entry in workspace.iterdir()} == before


def test_ingest_reports_json(hindflight: Command) -> None:
    ended = hindflight("ingest", CAPTURE, LOG, "-w", "ws", "--json")
    inputs = json.loads(ended.stdout)["inputs"]
    assert [(one["kind"], one["input_id"], one["known"]) for one in inputs] == [
        ("capture", 1, False),
        ("tcp_info", 2, False),
    ]
    assert "to flow 1: acknowledged octets over time agree within 0.0" in inputs[1]["note"]


def test_manifest_lists_inputs_and_commands(workspace: Path) -> None:
    manifest = json.loads((workspace / "manifest.json").read_text())
    assert [one["name"] for one in manifest["inputs"]] == ["snd.pcap.xz", "tcpinfo.csv.xz"]
    assert all(len(one["sha256"]) == 64 for one in manifest["inputs"])
    assert all(one["command"].startswith("hindflight ingest ") for one in manifest["commands"])


def test_second_capture_adds_separate_flows(hindflight: Command, workspace: Path) -> None:
    assert hindflight("ingest", FLOW / "rcv.pcap.xz", "-w", workspace).returncode == 0
    flows = document(hindflight, "flows", workspace)["flows"]
    assert sorted((flow["flow_id"], flow["input_id"]) for flow in flows) == [(1, 1), (2, 3)]
    sql = "SELECT flow_id, count(*) AS n FROM segments GROUP BY 1 ORDER BY 1"
    rows = document(hindflight, "query", workspace, sql)["rows"]
    assert [row["flow_id"] for row in rows] == [1, 2]


def test_log_is_matched_to_its_flow_in_a_receiver_capture(hindflight: Command) -> None:
    ended = hindflight("ingest", FLOW / "rcv.pcap.xz", LOG, "-w", "ws")
    assert ended.returncode == 0
    assert "rows to flow 1: acknowledged octets" in ended.stderr


def test_flow_option_assigns_a_log(hindflight: Command, workspace: Path) -> None:
    ended = hindflight("ingest", FLOW / "rcv.pcap.xz", "-w", workspace)
    assert ended.returncode == 0
    copy = workspace.parent / "copy.csv.xz"
    copy.write_bytes(LOG.read_bytes() + b"\0" * 4)  # Padding of an xz stream: the same log, another SHA-256.
    assert "to flow 1: acknowledged" in hindflight("ingest", copy, "-w", workspace).stderr, "the sender fits best"
    copy.write_bytes(copy.read_bytes() + b"\0" * 4)
    assert hindflight("ingest", copy, "-w", workspace, "--flow", 9).returncode == 2
    assert "rows to flow 2: as given" in hindflight("ingest", copy, "-w", workspace, "--flow", 2).stderr


def test_snaplog_without_a_capture_is_a_separate_flow(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(snaplog())
    assert "made for it: no capture here holds this connection" in hindflight("ingest", "log", "-w", "ws").stderr
    (flow,) = document(hindflight, "flows", "ws")["flows"]
    assert (flow["a_addr"], flow["a_port"], flow["b_port"]) == ("10.9.0.1", 5001, 40000)
    assert (flow["a2b_segments"], flow["vantage"]) == (0, "sender")
    series = document(hindflight, "series", "ws", "--flow", 1)["series"]
    assert [row["cwnd_bytes"] for row in series] == [segments * MSS for segments in CWND_SEGMENTS]


def test_score_compares_the_inferred_window_with_the_kernel(hindflight: Command, workspace: Path) -> None:
    (found,) = document(hindflight, "score", workspace)["scores"]
    assert (found["flow_id"], found["truth"]) == (1, "tcp_info")
    assert found["median_error"] <= 0.05
    assert found["coverage"] >= 0.9
    assert found["compared"] > 100
    assert "median error" in hindflight("score", workspace).stdout


@pytest.mark.skipif(not KERNEL.is_dir(), reason=f"kernel flows are not at {KERNEL}")
@pytest.mark.parametrize("scenario", ["S1", "S2", "S4", "S9"])
@pytest.mark.parametrize("variant", ["reno", "cubic"])
def test_score_for_every_kernel_recording(tmp_path: Path, scenario: str, variant: str) -> None:
    folder = KERNEL / f"{scenario}-{variant}"
    workspace = Workspace.create(tmp_path / "ws")
    Ingest(workspace, "test")([folder / "snd.pcap.xz", folder / "tcpinfo.csv.xz"])
    (found,) = score(workspace)
    assert found.median_error is not None
    assert found.median_error <= 0.05
    assert found.coverage >= 0.9


def test_query_prints_a_table_and_csv(hindflight: Command, workspace: Path) -> None:
    sql = "SELECT source, count(*) AS rows FROM instruments WHERE source = 'tcp_info' GROUP BY 1"
    eye, as_csv = hindflight("query", workspace, sql), hindflight("query", workspace, sql, "--csv")
    assert "tcp_info" in eye.stdout
    assert as_csv.stdout.splitlines()[0] == "source,rows"
    wide = hindflight("query", workspace, "SELECT * FROM flows")
    assert "b2a_recoveries" in wide.stdout


def test_help_and_version_are_printed(hindflight: Command) -> None:
    for arguments in ([], ["--help"], ["-h"]):
        ended = hindflight(*arguments)
        assert ended.returncode == 0
        for command in ("info", "ingest", "flows", "series", "score", "query", "explain"):
            assert f"\n  {command} " in ended.stdout
    assert hindflight("--version").stdout.startswith("hindflight 0.")


@pytest.mark.skipif(not PUBLIC.is_dir(), reason=f"public logs are not at {PUBLIC}")
def test_recorded_snaplog_is_matched_with_its_capture(hindflight: Command) -> None:
    log, capture = PUBLIC / "ndt-44160.s2c_snaplog.gz", PUBLIC / "ndt-44160.s2c_ndttrace.pcap.gz"
    ended = hindflight("ingest", log, capture, "-w", "ws")
    assert "2032 rows to flow 1: same addresses and ports" in ended.stderr
    sql = "SELECT max(value) AS una FROM variables WHERE name = 'SndUna'"
    logged = document(hindflight, "query", "ws", sql)["rows"][0]["una"]
    assert logged == 2_531_263_093
    sql = """SELECT max(s.ack_raw) AS una FROM segments s JOIN flows f USING (flow_id)
        WHERE s.direction <> f.data_direction"""
    assert document(hindflight, "query", "ws", sql)["rows"][0]["una"] == logged


@pytest.mark.skipif(not KERNEL.is_dir(), reason=f"kernel flows are not at {KERNEL}")
def test_two_logs_without_addresses_are_matched_to_two_flows(hindflight: Command) -> None:
    folder = KERNEL / "S12-cubic+reno"
    inputs = [folder / name for name in ("tcpinfo_2.csv.xz", "tcpinfo.csv.xz", "snd.pcap.xz")]
    assert hindflight("ingest", *inputs, "-w", "ws").returncode == 0
    sql = """SELECT f.b_port, max(i.retransmissions) AS n FROM instruments i JOIN flows f USING (flow_id)
        WHERE i.source = 'tcp_info' GROUP BY 1 ORDER BY 1"""
    truth = json.loads((folder / "scenario.json").read_text())["flows"]
    wanted = sorted((flow["dport"], flow["retransmits"]) for flow in truth)
    assert [(row["b_port"], row["n"]) for row in document(hindflight, "query", "ws", sql)["rows"]] == wanted
