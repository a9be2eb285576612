"""`info`, `flows` and `series` of one capture: consistent definitions, and sentences for missing data."""

from __future__ import annotations

import json
import lzma
import struct
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import FLOW, SHARED, Command

CAPTURE, LOG = FLOW / "snd.pcap.xz", FLOW / "tcpinfo.csv.xz"
IPV6 = SHARED / "data" / "public" / "zeek" / "ipv6.pcap"
EMPTY = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
"""The header of a pcap file, and no record."""


def found(hindflight: Command, *arguments: object) -> Any:
    ended = hindflight(*arguments, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@pytest.mark.parametrize("group", ["channel", "scenario"])
def test_command_group_without_a_command_shows_its_help(hindflight: Command, group: str) -> None:
    ended = hindflight(group)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(f"Usage: hindflight {group} ")
    assert "\nCommands:\n" in ended.stdout
    assert ended.stdout.rstrip() == hindflight(group, "--help").stdout.rstrip()


def test_info_and_flows_count_the_same_payload(hindflight: Command) -> None:
    captures = [CAPTURE, *([IPV6] if IPV6.exists() else [])]
    for capture in captures:
        flows = {row["flow_id"]: row for row in found(hindflight, "flows", capture)["flows"]}
        for top in found(hindflight, "info", capture)["top_flows"]:
            row = flows[top["flow"]]
            assert top["payload_bytes"] == row[f"{row['data_direction']}_payload_bytes"]


@pytest.mark.skipif(not IPV6.exists(), reason=f"{IPV6} is not there")
def test_ipv6_endpoints_are_in_brackets(hindflight: Command) -> None:
    top = found(hindflight, "info", IPV6)["top_flows"][0]
    assert (top["from"], top["payload_bytes"]) == ("[2001:470:4867:99::21]:21", 3448)
    assert top["from"] in hindflight("flows", IPV6, "--wide").stdout


def test_table_headings_have_names_and_units(hindflight: Command) -> None:
    seconds, utc = hindflight("flows", CAPTURE).stdout, hindflight("flows", CAPTURE, "--utc").stdout
    for head in ("start [s]", "seconds", "payload bytes", "retrans", "RTT min [ms]", "RTT mean [ms]"):
        assert head in seconds
    assert "start [UTC]" in utc
    assert "start [s]" not in utc


def test_capture_without_connections_is_reported(hindflight: Command, tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(EMPTY)
    ended = hindflight("flows", "empty.pcap")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "no TCP connections in empty.pcap\n")
    assert found(hindflight, "flows", "empty.pcap")["flows"] == []
    ended = hindflight("flows", CAPTURE, "--from", "1000")
    assert ended.stderr == f"none of the 1 TCP connections in {CAPTURE} was chosen\n"


def test_info_names_damaged_records(hindflight: Command, tmp_path: Path) -> None:
    whole = lzma.decompress(CAPTURE.read_bytes())
    (tmp_path / "cut.pcap").write_bytes(whole[:-5])
    document = found(hindflight, "info", "cut.pcap")
    assert document["issues"] == sum(document["issues_by_kind"].values()) == 1
    (kind,) = document["issues_by_kind"]
    assert f"1 ({kind} 1)" in hindflight("info", "cut.pcap").stdout
    assert found(hindflight, "info", CAPTURE)["issues_by_kind"] == {}


def test_series_puts_inferred_and_true_windows_side_by_side(hindflight: Command) -> None:
    assert hindflight("ingest", CAPTURE, LOG, "-w", "ws").returncode == 0
    rows = found(hindflight, "series", "ws", "--flow", 1)["series"]
    assert {row["source"] for row in rows} == {"inferred", "tcp_info"}
    assert [row["t_ns"] for row in rows] == sorted(row["t_ns"] for row in rows)
    changes = sum(a["source"] != b["source"] for a, b in pairwise(rows))
    assert changes > 10
    assert "source" in hindflight("series", "ws", "--flow", 1, "--to", 2).stdout.splitlines()[1]
    assert "source" not in hindflight("series", "ws", "--flow", 1, "--source", "tcp_info", "--to", 2).stdout
