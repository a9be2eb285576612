"""The profiles: streams of rows, their formats, and what the commands print."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hindflight as hf
from hindflight.toolkit.capture import TcptraceStream, WiresharkStream
from hindflight.toolkit.errors import CaptureError

CAPTURE = Path(__file__).resolve().parents[2] / "fixtures" / "kernel" / "S2-reno" / "rcv.pcap.xz"
COMMANDS = {"flows": ("flows", "--profile", "tcptrace"), "segments": ("segments", "--profile", "wireshark")}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("stream", [TcptraceStream, WiresharkStream])
def test_csv_and_json_have_the_same_values(stream: type[TcptraceStream]) -> None:
    lines = b"".join(stream(CAPTURE).text()).decode().splitlines()
    names = lines[0].split(",")
    rows = json.loads(b"[" + b"".join(stream(CAPTURE, json=True).text()) + b"]")
    assert len(rows) == len(lines) - 1 > 0
    for line, row in zip(lines[1:], rows, strict=True):
        assert list(row) == names
        assert [cell in {"", "NA"} for cell in line.split(",")] == [value is None for value in row.values()]


def test_a_missing_file_is_a_capture_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError):
        TcptraceStream(tmp_path / "none.pcap")
    (tmp_path / "text.pcap").write_text("no capture at all")
    with pytest.raises(CaptureError):
        WiresharkStream(tmp_path / "text.pcap")


@pytest.mark.parametrize("table", COMMANDS)
def test_the_commands_print_one_json_document(table: str) -> None:
    done = run("-m", "hindflight", *COMMANDS[table], "--json", str(CAPTURE))
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert document["profile"] == COMMANDS[table][2]
    assert document[table]


@pytest.mark.parametrize("table", COMMANDS)
def test_an_unknown_profile_and_a_filter_are_refused(table: str) -> None:
    assert run("-m", "hindflight", table, "--profile", "other", str(CAPTURE)).returncode == 2
    assert run("-m", "hindflight", *COMMANDS[table], "--port", "80", str(CAPTURE)).returncode == 2


def test_a_profile_of_flows_imports_no_library_for_tables() -> None:
    words = ("-X", "importtime", "-m", "hindflight", "flows", "--profile", "tcptrace", "--csv", str(CAPTURE))
    imported = {line.rsplit("|", 1)[-1].strip() for line in run(*words).stderr.splitlines()}
    assert imported
    assert not imported & {"pyarrow", "polars", "duckdb", "numpy"}


def test_both_profiles_come_as_frames() -> None:
    capture = Path(__file__).parents[2] / "fixtures/kernel/S2-reno/snd.pcap.xz"
    flows = hf.flows(capture, profile="tcptrace")
    segments = hf.segments(capture, profile="wireshark")
    assert flows["conn_#"].to_list() == [1]
    assert flows["total_packets"][0] == segments.height == hf.segments(capture).height
    resent = segments["tcp.analysis.retransmission"].fill_null(0).cast(bool).sum()
    assert resent > 0
    with pytest.raises(hf.HindflightError, match="not known"):
        hf.flows(capture, profile="wireshark")
    with pytest.raises(hf.HindflightError, match="flow"):
        hf.segments(capture, profile="wireshark", flow=1)
