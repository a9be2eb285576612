"""Which flow of a capture is analysed unless one is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import hindflight as hf
from hindflight.toolkit.captured_flow import Flow, input_of, read_flow
from hindflight.toolkit.errors import WorkspaceError
from hindflight.toolkit.ingest import Ingest
from hindflight.toolkit.workspace import Workspace


def _data(port: int, seqs: list[int]) -> list[Packet]:
    head = Ether() / IP(src="10.0.0.1", dst="10.0.0.2")
    return [head / TCP(sport=port, dport=80, flags="A", seq=seq, ack=1) / Raw(bytes(1000)) for seq in seqs]


def test_it_is_the_one_with_the_most_data_not_the_one_with_the_most_retransmissions(tmp_path: Path) -> None:
    packets = [*_data(1000, [1] * 9), *_data(2000, [1, 1001, 2001])]
    for at, packet in enumerate(packets):
        packet.time = 1_700_000_000 + 0.5 * at
    wrpcap(str(tmp_path / "two.pcap"), packets)
    with hf.open(tmp_path / "two.pcap") as tables:
        flow = read_flow(tables.workspace, None)
    assert (flow.number, flow.row["a2b_unique_bytes"], flow.row["a2b_payload_bytes"]) == (2, 3000, 3000)


def _ingested(folder: Path) -> tuple[Workspace, Flow]:
    wrpcap(str(folder / "one.pcap"), _data(1000, [1, 1001]))
    workspace = Workspace.create(folder / "ws")
    Ingest(workspace, "test")([folder / "one.pcap"])
    return workspace, read_flow(workspace, None)


def test_a_flow_whose_input_the_manifest_does_not_list_is_that_of_a_damaged_workspace(tmp_path: Path) -> None:
    workspace, flow = _ingested(tmp_path)
    workspace.manifest = replace(workspace.manifest, inputs=())
    for read in (lambda: read_flow(workspace, None), lambda: input_of(workspace, flow)):
        with pytest.raises(WorkspaceError, match="is damaged: it does not list input 1"):
            read()


def test_a_note_alone_makes_no_rebuilt_capture_and_a_workspace_of_version_3_is_read(tmp_path: Path) -> None:
    workspace, _ = _ingested(tmp_path)
    manifest = json.loads(workspace.manifest_path.read_text())
    manifest["format_version"] = 3
    (entry,) = manifest["inputs"]
    del entry["rebuilt"]
    entry["note"] += ", rebuilt from a capture at the receiver"
    workspace.manifest_path.write_text(json.dumps(manifest))
    assert read_flow(Workspace.open(workspace.path), None).rebuilt == ""
