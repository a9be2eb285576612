"""Columns of `flows` against tcptrace's long report, where both mean the same."""

from __future__ import annotations

import csv
import lzma
import shutil
import subprocess
from pathlib import Path

import pytest

from hindflight.toolkit.capture import load_capture

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernel"
KERNEL = Path(__file__).parents[2].parent / "shared" / "data" / "kernel"
CAPTURES = [FIXTURES / "S2-reno" / "snd.pcap.xz", *sorted(KERNEL.glob("*/snd.pcap.xz"))]

pytestmark = [
    pytest.mark.peer,
    pytest.mark.skipif(shutil.which("tcptrace") is None, reason="tcptrace is not installed"),
]

SAME = {
    "segments": "total_packets",
    "data_segments": "actual_data_pkts",
    "payload_bytes": "actual_data_bytes",
    "unique_bytes": "unique_bytes_sent",
    "retransmitted_segments": "rexmt_data_pkts",
    "retransmitted_bytes": "rexmt_data_bytes",
    "out_of_order_segments": "outoforder_pkts",
    "sack_segments": "sack_pkts_sent",
    "dsack_segments": "dsack_pkts_sent",
    "mss_bytes": "mss_requested",
    "wscale": "adv_wind_scale",
    "max_segment_bytes": "max_segm_size",
}


def tcptrace(capture: Path, folder: Path) -> list[dict[str, str]]:
    """One row per connection; tcptrace reads no xz."""
    plain = folder / "plain.pcap"
    plain.write_bytes(lzma.decompress(capture.read_bytes()))
    run = subprocess.run(["tcptrace", "-n", "-l", "-r", "--csv", plain], capture_output=True, text=True, check=True)
    lines = [line for line in run.stdout.splitlines() if line and not line.startswith("#")]
    return list(csv.DictReader(lines, skipinitialspace=True))


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.parent.name)
def test_counts_equal_tcptraces(capture: Path, tmp_path: Path) -> None:
    rows = {(row["a_port"], row["b_port"]): row for row in load_capture(capture).flows.to_pylist()}
    theirs = tcptrace(capture, tmp_path)
    assert len(theirs) == len(rows)
    for report in theirs:
        row = rows[int(report["port_a"]), int(report["port_b"])]
        for direction in ("a2b", "b2a"):
            ours = {name: row[f"{direction}_{name}"] for name in SAME}
            assert ours == {name: int(report[f"{field}_{direction}"]) for name, field in SAME.items()}
        # tcptrace times cumulative acknowledgements only; a SACKed segment may have met a shorter path.
        assert row["a2b_rtt_min_ns"] / 1e6 <= float(report["RTT_min_a2b"]) + 0.06
