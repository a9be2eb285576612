"""What happened to one flow, verdict by verdict, each with its packets, its evidence and its probability.

Combines what the analysis of flows, the extraction of the channel and `shapes` found; finds nothing itself. The
probability of a verdict is the share of such verdicts that were right on recordings of the Linux stack whose truth is
known; a verdict that follows from a definition has none, nor has one that was never judged, as in a capture that was
not taken at the data sender.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import ChannelError

if TYPE_CHECKING:
    from hindflight.toolkit.captured_flow import Flow
    from hindflight.toolkit.workspace import Workspace

ABOUT = ("capture", "vantage", "proxy", "shape", "interruption", "retransmission", "need", "loss", "reordering")
"""What verdicts are about. `retransmission`: which mechanism sent it; `need`: whether an earlier copy had arrived;
`capture`: what the capture itself did."""

JUDGED: Mapping[tuple[str, str], tuple[int, int]] = {
    ("vantage", "sender"): (117, 117),
    ("retransmission", "fast"): (410, 410),
    ("retransmission", "rto"): (209, 212),
    ("retransmission", "after_rto"): (7_080, 7_150),
    ("retransmission", "sack"): (14_832, 14_832),
    ("retransmission", "tlp"): (4, 4),
    ("need", "spurious"): (4_482, 4_614),
    ("need", "needed"): (18_075, 18_094),
    ("loss", "channel"): (1_135, 1_518),
    ("loss", "outage"): (2_784, 2_833),
    ("loss", "queue"): (11_367, 11_554),
    ("interruption", "outage"): (52, 53),
}
"""How many verdicts were right, and of how many, at the data sender: `verdicts` of `python -m validation captures
DIR... --json` over 36 random links that the code had not seen (seeds 4501 to 4503 of the recorder)."""

CHANGED = ("path change", "outage and path change")
"""Interruptions after which round trips may be shorter."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """One verdict: what it is about, its packets (Wireshark's numbers; None: not in the capture), its time [ns since
    1970], the evidence, and its probability (None: a definition, or never judged)."""

    about: str
    verdict: str
    probability: float | None
    first_packet: int | None
    last_packet: int | None
    t_ns: int
    evidence: str


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The verdicts on one flow in order of time, and why there are none about the channel, if so."""

    flow: int
    start_ns: int
    verdicts: tuple[Verdict, ...]
    without_channel: str | None


def probability_of(about: str, verdict: str) -> float | None:
    """Return how likely a verdict is right, by Laplace's rule from the judged ones; None if it was never judged."""
    judged = JUDGED.get((about, verdict))
    return None if judged is None else (judged[0] + 1) / (judged[1] + 2)


def verdicts_on(source: Path, flow: int | None) -> Verdicts:
    """Return the verdicts on a flow of a capture or workspace, by default the one with most data.

    CaptureError, WorkspaceError, HindflightError: an input is wrong.
    """
    from hindflight.toolkit.captured_flow import read_flow
    from hindflight.toolkit.source import open_source

    with open_source(source) as tables:
        chosen = read_flow(tables.workspace, flow)
        found = [*_capture(chosen), _vantage(chosen), *_shapes(chosen), *_events(chosen)]
        without_channel = None
        try:
            found += _channel(chosen, tables.workspace)
        except ChannelError as error:
            without_channel = str(error)
        found += _proxy(chosen, changed=any(one.verdict in CHANGED for one in found))
        if chosen.row["vantage"] != "sender":
            found = [replace(one, probability=None) for one in found]
        start_ns = int(chosen.row["start_ns"])
        return Verdicts(chosen.number, start_ns, tuple(sorted(found, key=lambda one: one.t_ns)), without_channel)


def _verdict(about: str, verdict: str, packets: tuple[int | None, int | None], t_ns: int, evidence: str) -> Verdict:
    return Verdict(about, verdict, probability_of(about, verdict), *packets, t_ns, evidence)


def _capture(flow: Flow) -> Iterator[Verdict]:
    """What is missing from the capture, or damaged in it; nothing is known of workspaces of earlier versions."""
    for direction in ("a2b", "b2a"):
        missing = flow.row[f"{direction}_not_captured_bytes"]
        damaged = flow.row[f"{direction}_corrupted_segments"]
        at = ((None, None), int(flow.row["start_ns"]))
        if missing:
            evidence = f"{missing} octets of {direction} were acknowledged and are not in the capture"
            yield _verdict(
                "capture", "packets not captured", *at, f"{evidence}: the capture lost them, not the network"
            )
        if damaged:
            evidence = f"{damaged} segments of {direction} have a wrong checksum among right ones"
            yield _verdict("capture", "damaged segments", *at, f"{evidence}: no receiver accepts them")


def _vantage(flow: Flow) -> Verdict:
    """Where the capture was taken, by how soon each end answers."""
    row, direction = flow.row, flow.direction
    back = "b2a" if direction == "a2b" else "a2b"
    evidence = f"{_milliseconds(row[f'{direction}_rtt_min_ns'])} to the data receiver and back"
    if row[f"{back}_rtt_samples"]:
        evidence += f", {_milliseconds(row[f'{back}_rtt_min_ns'])} to the data sender and back, at the least"
    first = flow.tables["segments"]["record"][0].as_py()
    return _verdict("vantage", str(row["vantage"]), (first, first), int(row["start_ns"]), evidence)


def _proxy(flow: Flow, *, changed: bool) -> Iterator[Verdict]:
    from hindflight.proxy_signs import proxy_signs

    for sign in proxy_signs(flow, changed=changed):
        yield _verdict("proxy", sign.name, sign.packets, sign.t_ns, sign.evidence)


def _shapes(flow: Flow) -> Iterator[Verdict]:
    from hindflight.toolkit.shapes import shapes

    mss_bytes = int(flow.row[f"{flow.direction}_max_segment_bytes"])
    tables = flow.tables
    for one in shapes(tables["segments"], tables["events"], flow.direction, mss_bytes, str(flow.row["vantage"])):
        yield _verdict("shape", one.name, (one.first_record, one.last_record), one.t_ns, one.evidence)


NEED = {True: "spurious", False: "needed", None: "unknown"}


def _events(flow: Flow) -> Iterator[Verdict]:
    """Retransmissions with their mechanism, whether they were needed, and reordering."""
    for row in flow.tables["events"].to_pylist():
        if row["direction"] != flow.direction:
            continue
        packets, evidence = (row["record"], row["record"]), row["evidence"] or "no evidence"
        if row["kind"] == "retransmission":
            yield _verdict("retransmission", str(row["mechanism"]), packets, row["t_ns"], evidence)
            yield _verdict("need", NEED[row["spurious"]], packets, row["t_ns"], evidence)
        elif row["kind"] == "reordering":
            yield _verdict("reordering", "reordered", packets, row["t_ns"], evidence)


def _channel(flow: Flow, workspace: Workspace) -> list[Verdict]:
    """Losses with their cause, outages and changes of the path. ChannelError where no channel can be extracted."""
    from hindflight.captured_link import extract_channel
    from hindflight.channels.extraction.interruptions import interruptions

    channel = extract_channel(flow, workspace).channel
    packets = channel.filter(_is_lost_packet(channel)).to_pylist()
    found = [
        _verdict("loss", str(row["cause"]), (row["record"], row["record"]), row["t_ns"], row["evidence"] or "")
        for row in packets
    ]
    for one in interruptions(channel, flow.tables["segments"], flow.direction):
        evidence = _interruption_evidence(one)
        found.append(_verdict("interruption", one.kind, (one.last_record, one.next_record), one.start_ns, evidence))
    return found


def _is_lost_packet(channel: Any) -> Any:
    import pyarrow.compute as pc

    packets = pc.equal(channel["kind"].cast("string"), "packet")
    return pc.and_(packets, pc.not_equal(channel["cause"].cast("string"), "none"))


def _interruption_evidence(one: Any) -> str:
    parts = [f"{(one.end_ns - one.start_ns) / 1e9:.3f} s without delivery"] if one.end_ns > one.start_ns else []
    if one.rtt_before_ns is not None and one.rtt_after_ns is not None:
        parts.append(f"round trip {_milliseconds(one.rtt_before_ns)} before, {_milliseconds(one.rtt_after_ns)} after")
    if one.goodput_before_bps is not None and one.goodput_after_bps is not None:
        before, after = one.goodput_before_bps / 1e6, one.goodput_after_bps / 1e6
        parts.append(f"goodput {before:.2f} Mbit/s before, {after:.2f} after")
    return ", ".join(parts) or "delay or rate of the extracted path changes"


def _milliseconds(ns: float | None) -> str:
    return "no time" if ns is None else f"{ns / 1e6:.1f} ms"
