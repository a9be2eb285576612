"""Captures at both ends: losses of data and of ACKs are observed instead of inferred."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from hindflight.channels.extraction.arrivals import arrivals_of
from hindflight.channels.extraction.extract import Context, extract
from hindflight.toolkit.capture import Capture, load_capture
from hindflight.toolkit.errors import ChannelError
from tests.channels.extraction.kernel_table import ROOT

FOLDER = ROOT / "fixtures" / "kernel" / "S9-reno"


@pytest.fixture(scope="module")
def ends() -> tuple[Capture, Capture]:
    return load_capture(FOLDER / "snd.pcap.xz"), load_capture(FOLDER / "rcv.pcap.xz")


def test_packets_missing_at_the_receiver_are_lost(ends: tuple[Capture, Capture]) -> None:
    sender, receiver = ends
    flow = sender.flows.to_pylist()[0]
    arrivals = arrivals_of(flow, sender.segments, receiver.flows, receiver.segments)
    data = sender.segments.filter(pa.compute.greater(sender.segments["payload_bytes"], 0))
    assert len(arrivals.arrived) == sum(n > 0 for n in receiver.segments["payload_bytes"].to_pylist())
    assert (arrivals.acks, arrivals.acks_lost) == (len(receiver.segments) - flow_data(receiver, flow), 0)
    one = extract(sender.segments, sender.flows, sender.events, 1)
    # Without the sender's own verdicts: two captures need no inference of losses.
    two = extract(sender.segments, sender.flows, sender.events.slice(0, 0), 1, Context(None, arrivals))
    assert two.counts["lost"] == len(data) - len(arrivals.arrived) > 100
    assert two.counts == one.counts
    assert two.channel["lost"].equals(one.channel["lost"])
    assert two.estimate("ack_loss_share").value == 0.0
    assert any("Losses of ACKs" in sentence for sentence in one.unknowns)
    assert not any("Losses of ACKs" in sentence for sentence in two.unknowns)


def flow_data(receiver: Capture, flow: dict[str, object]) -> int:
    """Return the segments of the data direction in the receiver's capture."""
    return sum(way == flow["data_direction"] for way in receiver.segments["direction"].to_pylist())


def test_lost_acks_are_counted(ends: tuple[Capture, Capture]) -> None:
    sender, receiver = ends
    flow = sender.flows.to_pylist()[0]
    backward = np.array([way == "b2a" for way in sender.segments["direction"].to_pylist()])
    gone = backward & (np.arange(len(backward)) % 10 == 3)
    fewer = sender.segments.filter(pa.array(~gone))
    arrivals = arrivals_of(flow, fewer, receiver.flows, receiver.segments)
    assert arrivals.acks_lost == pytest.approx(gone.sum(), abs=1)
    share = extract(fewer, sender.flows, sender.events, 1, Context(None, arrivals)).estimate("ack_loss_share")
    assert share.low is not None
    assert share.high is not None
    assert share.value == pytest.approx(gone.sum() / backward.sum(), rel=0.01)
    assert share.low < gone.sum() / backward.sum() < share.high


def test_capture_of_another_connection_is_refused(ends: tuple[Capture, Capture]) -> None:
    sender, receiver = ends
    flow = sender.flows.to_pylist()[0]
    with pytest.raises(ChannelError, match="does not contain the connection"):
        arrivals_of({**flow, "a_port": 1}, sender.segments, receiver.flows, receiver.segments)
    with pytest.raises(ChannelError, match="none of the flow's data packets"):
        arrivals_of(flow, sender.segments, receiver.flows, replace(receiver, segments=receiver.segments[:3]).segments)
