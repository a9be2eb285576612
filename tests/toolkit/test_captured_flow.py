"""Which flow of a capture is analysed unless one is named."""

from __future__ import annotations

from pathlib import Path

from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

import hindflight as hf
from hindflight.toolkit.captured_flow import read_flow


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
