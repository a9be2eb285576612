"""The table of public captures: differences from tshark get the rule that explains them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fixtures.make_captures import captures
from hindflight.toolkit.capture import load_capture
from validation.public_captures import Peer, explain, row_of

VARIANTS = captures()


def write(name: str, folder: Path) -> Path:
    path = folder / f"{name}.pcap"
    path.write_bytes(VARIANTS[name].octets())
    return path


def test_a_difference_without_a_rule_is_marked(tmp_path: Path) -> None:
    found = load_capture(write("little_us", tmp_path))
    records = frozenset(found.segments["record"].to_pylist())
    same = Peer(found.summary.packets, records, found.flows.num_rows)
    assert explain(found, same) == []
    assert explain(found, Peer(same.packets + 1, records, same.streams)) == ["? packets"]
    assert explain(found, Peer(same.packets, records | {99}, same.streams)) == ["? segments"]
    assert explain(found, Peer(same.packets, frozenset(), same.streams)) == ["? segments"]
    assert explain(found, Peer(same.packets, records, same.streams + 1)) == ["? streams"]


def test_what_is_listed_as_an_issue_explains_it(tmp_path: Path) -> None:
    found = load_capture(write("snaplen_40", tmp_path))
    cut = frozenset(row["record"] for row in found.issues.to_pylist() if row["kind"] == "frame_cut")
    records = frozenset(found.segments["record"].to_pylist()) | cut
    assert cut
    assert explain(found, Peer(found.summary.packets, records, found.flows.num_rows)) == [
        "too little of the header: listed as issues"
    ]


@pytest.mark.peer
def test_a_capture_without_a_difference(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    row = row_of(write("little_us", tmp_path))
    assert (row["d_packets"], row["d_tcp"], row["d_streams"], row["reasons"]) == (0, 0, 0, [])
