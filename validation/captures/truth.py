"""What happened in a recorded run: the fate of every transmission, why each was retransmitted, cwnd per round trip.

Depends on the recorded files and on the decoded headers of the sender's capture, not on the analysis. A row of TCP_INFO
holds until the next; the poll after a packet is the first row that counts it.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import LogError
from validation.recorded import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

POLL_NS = 5_000_000
"""TCP_INFO is read this often."""

SYN, ACK = 2, 16
RECOVERY, LOSS = 3, 4
"""Linux: TCP_CA_Recovery and TCP_CA_Loss."""

WRAP = 1 << 32


@dataclass(slots=True)
class Transmission:
    """A data packet that the sender sent; every copy of a segment is one.

    `seq` and `end` are octets relative to the SYN (0). `cause` is the mechanism of a retransmission: fast, sack/rack,
    rto, after_rto or tlp; None for the first copy. `unsettled`: ca_state changed more than once between two polls, so
    that the cause is not judged. `spurious`: an earlier copy had been delivered; `shown`: the sender's capture shows
    it, by DSACK or by the timestamp echoed. `ungraded`: the earlier copies were delivered, but PAWS discarded them.
    `arrived_ns` is the time in the receiver's capture; of a lost packet, when it would have left the link.
    """

    record: int
    t_ns: int
    seq: int
    end: int
    copy: int
    fate: str
    arrived_ns: int
    ts_val: int | None
    cause: str | None = None
    unsettled: bool = False
    spurious: bool = False
    shown: bool = False
    ungraded: bool = False
    discarded: bool = False

    @property
    def lost(self) -> bool:
        """Whether the link dropped it."""
        return self.fate.startswith("dropped_")

    @property
    def retransmitted(self) -> bool:
        """Whether it repeats octets sent before."""
        return self.cause is not None


@dataclass(frozen=True, slots=True)
class Tile:
    """One round trip, as long as srtt at its start: median of snd_cwnd and mean in-flight, in packets.

    `excluded` is the first reason for which it does not count, None if it counts.
    """

    start_ns: int
    end_ns: int
    cwnd_pkts: float
    inflight_pkts: float
    excluded: str | None


@dataclass(frozen=True, slots=True)
class FlowTruth:
    """One flow of a run; times are those of the captures."""

    congestion_control: str
    sport: int
    dport: int
    smss_bytes: int
    start_ns: int
    end_ns: int
    goodput_bps: float
    transmissions: Sequence[Transmission]
    tiles: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class RunTruth:
    """One run: `params` is the link as it was drawn, `sack` whether the hosts used SACK. `queued` are the arrival time
    and the length (the packet in service included) of the queue that each packet entered, of all flows. `passed` and
    `broken` are when the link handed packets of either direction over, behind its delay, and when it lost one because
    it was down."""

    name: str
    folder: Path
    params: Mapping[str, Any]
    t0_ns: int
    sack: bool
    flows: Sequence[FlowTruth]
    queued: Sequence[tuple[int, int]] = ()
    passed: Sequence[int] = ()
    broken: Sequence[int] = ()


@dataclass(slots=True)
class Steps:
    """A series whose values hold until the next; the first also before it, unless `begins` says that it begins then."""

    t_ns: Sequence[int]
    values: Sequence[Any]
    begins: bool = False

    def at(self, t_ns: int) -> Any:
        """Return the value at a time."""
        return self.values[max(0, bisect_right(self.t_ns, t_ns) - 1)]

    def pieces(self, start_ns: int, end_ns: int) -> Iterator[tuple[int, Any]]:
        """Yield (duration, value) within the span; values that are None are left out."""
        i = bisect_right(self.t_ns, start_ns) - 1
        if i < 0:
            start_ns, i = max(start_ns, self.t_ns[0]) if self.begins else start_ns, 0
        while start_ns < end_ns:
            until = min(end_ns, self.t_ns[i + 1]) if i + 1 < len(self.t_ns) else end_ns
            if until > start_ns and self.values[i] is not None:
                yield until - start_ns, self.values[i]
            start_ns, i = until, i + 1

    def median(self, start_ns: int, end_ns: int) -> float | None:
        """Return the median weighted by time; None where there is no value."""
        pieces = sorted((value, weight) for weight, value in self.pieces(start_ns, end_ns))
        left = 0.5 * sum(weight for _, weight in pieces)
        for value, weight in pieces:
            left -= weight
            if left <= 0:
                return float(value)
        return None

    def mean(self, start_ns: int, end_ns: int) -> float | None:
        """Return the mean weighted by time; None where there is no value."""
        pieces = list(self.pieces(start_ns, end_ns))
        total = sum(weight for weight, _ in pieces)
        return sum(weight * value for weight, value in pieces) / total if total else None

    def counted(self, t_ns: int) -> float:
        """Return a counter at a time; it rises within the poll interval before the row that shows the new value."""
        i = min(max(1, bisect_right(self.t_ns, t_ns)), len(self.t_ns) - 1)
        start = max(self.t_ns[i - 1], self.t_ns[i] - POLL_NS)
        span = max(1, self.t_ns[i] - start)
        share = min(1.0, max(0.0, (t_ns - start) / span))
        return float(self.values[i - 1] + (self.values[i] - self.values[i - 1]) * share)


@dataclass(slots=True)
class _Sent:
    """The data packets of a flow while their truth is worked out."""

    all: list[Transmission] = field(default_factory=list)
    copies: dict[int, list[Transmission]] = field(default_factory=lambda: defaultdict(list))


def read_truth(folder: Path, segments: pa.Table, received: pa.Table) -> RunTruth:
    """Return what happened in a run, given the decoded segments of both captures; LogError if the files disagree."""
    scenario = json.loads((folder / "scenario.json").read_text())
    link = read_csv(folder / "link.csv.xz").to_pylist()
    sack = scenario["params"].get("sack", 1) != 0
    durations = [float(one.removeprefix("dur=")) for one in scenario["linkemu_args"] if one.startswith("dur=")]
    end_ns = scenario["t0_ns"] + round(durations[0] * 1e9) if durations else None
    flows = tuple(_flow(folder, one, (link, end_ns), (segments, received), sack) for one in scenario["flows"])
    entered = [row for row in link if row["dir"] == "data" and row["fate"] != "dropped_queue"]
    queued = [(row["t_arr_ns"], row["qlen"]) for row in entered]
    passed, broken = (
        sorted(row["t_dep_ns"] for row in link if row["fate"] == fate) for fate in ("delivered", "dropped_outage")
    )
    return RunTruth(folder.name, folder, scenario["params"], scenario["t0_ns"], sack, flows, queued, passed, broken)


def _flow(
    folder: Path,
    described: Mapping[str, Any],
    log: tuple[list[dict[str, Any]], int | None],
    captures: tuple[pa.Table, pa.Table],
    sack: bool,
) -> FlowTruth:
    link, link_end_ns = log
    sport, dport = described["sport"], described["dport"]
    rows = [
        row for row in link if row["dir"] == "data" and (row["sport"], row["dport"]) == (sport, dport) and row["plen"]
    ]
    segments, received = (_of_flow(table, link, sport) for table in captures)
    info = {name: column.to_pylist() for name, column in _named(read_csv(folder / described["tcpinfo"]))}
    rows += _behind_the_end(segments, len(rows), link_end_ns)
    sent = _transmissions(rows, segments, info, sack)
    _mark_arrivals(sent, received)
    _mark_discarded(sent, received)
    _judge_spurious(sent)
    _mark_shown(sent, [row for row in segments if row["direction"] == "b2a"])
    start, end = described["t_start_ns"], described["t_end_ns"]
    bbr = described["cc"] == "bbr"
    return FlowTruth(
        congestion_control=described["cc"],
        sport=sport,
        dport=dport,
        smss_bytes=described["snd_mss"],
        start_ns=start,
        end_ns=end,
        goodput_bps=described["goodput_kbps"] * 1e3,
        transmissions=sent.all,
        tiles=list(_tiles(info, (start, end), bbr, sack)),
    )


def _named(table: pa.Table) -> Iterator[tuple[str, Any]]:
    return zip(table.column_names, table.columns, strict=True)


def _of_flow(table: pa.Table, link: list[dict[str, Any]], sport: int) -> list[dict[str, Any]]:
    """Return the decoded segments of the flow from `sport`, which the SYN's sequence number identifies."""
    import pyarrow.compute as pc

    isn = next(row["seq"] for row in link if row["dir"] == "data" and row["sport"] == sport and row["flags"] & SYN)
    syn = table.filter(
        pc.and_(pc.equal(table["seq_raw"], isn), pc.equal(pc.bit_wise_and(table["flags"], SYN | ACK), SYN))
    )
    if syn.num_rows == 0:
        raise LogError(f"a capture lacks the SYN from port {sport}", "record the run again")
    flow_id = syn["flow_id"][0].as_py()
    wanted = ["record", "t_ns", "direction", "seq", "ack", "payload_bytes", "flags", "ts_val", "ts_ecr", "sack"]
    rows: list[dict[str, Any]] = table.filter(pc.equal(table["flow_id"], flow_id)).select(wanted).to_pylist()
    return rows


def _data(segments: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the segments of the sender that have data."""
    return [one for one in segments if one["direction"] == "a2b" and one["payload_bytes"]]


def _behind_the_end(segments: list[dict[str, Any]], logged: int, end_ns: int | None) -> list[dict[str, Any]]:
    """Return rows for the data packets behind the `logged` ones that were sent after the emulator had ended, as those
    of the last timeouts may be: the link was down."""
    sent = _data(segments)[logged:]
    if end_ns is None or any(one["t_ns"] < end_ns for one in sent):
        return []
    return [{"fate": "dropped_outage", "t_dep_ns": one["t_ns"], "plen": one["payload_bytes"]} for one in sent]


def _transmissions(
    rows: list[dict[str, Any]], segments: list[dict[str, Any]], info: Mapping[str, list[int]], sack: bool
) -> _Sent:
    """The link's log and the capture name the same data packets in the same order."""
    data = _data(segments)
    if len(data) != len(rows) or any(one["payload_bytes"] != row["plen"] for one, row in zip(data, rows, strict=True)):
        raise LogError("the sender's capture and the link's log disagree", "record the run again")
    sent, polls = _Sent(), defaultdict(list)
    # Linux counts a repeated SYN in total_retrans, too, but no data packet shows it.
    syns = sum(one["direction"] == "a2b" and one["flags"] & SYN != 0 for one in segments)
    high, retransmitted = 0, max(0, syns - 1)
    for one, row in zip(data, rows, strict=True):
        copies, end = sent.copies[one["seq"]], one["seq"] + one["payload_bytes"]
        packet = Transmission(
            one["record"], one["t_ns"], one["seq"], end, len(copies) + 1, row["fate"], row["t_dep_ns"], one["ts_val"]
        )
        if packet.seq < high:
            retransmitted += 1
            poll = min(bisect_left(info["total_retrans"], retransmitted), len(info["t_ns"]) - 1)
            packet.cause = _cause(info["ca_state"][poll], sack, is_last=end >= high)
            packet.unsettled = _unsettled(info["ca_state"], poll)
            polls[poll].append(packet)
        copies.append(packet)
        sent.all.append(packet)
        high = max(high, end)
    for poll, packets in polls.items():
        timeouts = info["total_rto"][poll] - info["total_rto"][max(0, poll - 1)]
        for packet in sorted(packets, key=lambda packet: packet.seq)[:timeouts]:
            packet.cause = "rto"
    return sent


def _cause(state: int, sack: bool, *, is_last: bool) -> str:
    """By ca_state at the poll after it. Recovery may begin and end within one poll; a probe repeats the last octet."""
    if state == LOSS:
        return "after_rto"
    if state != RECOVERY and is_last:
        return "tlp"
    return "sack/rack" if sack else "fast"


def _unsettled(states: list[int], poll: int) -> bool:
    """Whether the state was one thing before the poll, another at it and a third after it."""
    around = states[max(0, poll - 1) : poll + 2]
    return len(around) == 3 and around[0] != around[1] and around[1] != around[2]


def _judge_spurious(sent: _Sent) -> None:
    for copies in sent.copies.values():
        for i, packet in enumerate(copies):
            earlier = [one for one in copies[:i] if one.fate == "delivered"]
            if packet.retransmitted and earlier:
                packet.spurious = True
                packet.ungraded = all(one.discarded for one in earlier)


def _mark_arrivals(sent: _Sent, received: list[dict[str, Any]]) -> None:
    """Take the time of arrival from the receiver's capture: the link's log notes a packet shortly after it has left."""
    delivered = defaultdict(list)
    for packet in sorted(sent.all, key=lambda packet: packet.arrived_ns, reverse=True):
        if packet.fate == "delivered":
            delivered[packet.seq].append(packet)
    for one in _data(received):
        if not delivered[one["seq"]]:
            raise LogError("the receiver's capture and the link's log disagree", "record the run again")
        delivered[one["seq"]].pop().arrived_ns = one["t_ns"]


def _mark_discarded(sent: _Sent, received: list[dict[str, Any]]) -> None:
    """Mark what PAWS discarded: data with a TSval older than the newest TSecr of the receiver (RFC 7323 §5)."""
    discarded, recent = set(), None
    for one in received:
        if one["ts_val"] is None:
            continue
        if one["direction"] == "b2a":
            if recent is None or (one["ts_ecr"] - recent) % WRAP < WRAP // 2:
                recent = one["ts_ecr"]
        elif one["payload_bytes"] and recent is not None and (one["ts_val"] - recent) % WRAP >= WRAP // 2:
            discarded.add((one["seq"], one["ts_val"]))
    for packet in sent.all:
        packet.discarded = packet.fate == "delivered" and (packet.seq, packet.ts_val) in discarded


def _mark_shown(sent: _Sent, acks: list[dict[str, Any]]) -> None:
    """Mark spurious retransmissions that a DSACK (RFC 2883) or the timestamp of an ACK (RFC 3522) shows to be so."""
    starts, dsacked, echoed = sorted(sent.copies), Counter[int](), set()
    una = 1
    for one in acks:
        blocks = list(zip(one["sack"][::2], one["sack"][1::2], strict=True))
        if blocks and one["ack"] is not None:
            low, high = blocks[0]
            if high <= max(one["ack"], una) or any(start <= low and high <= end for start, end in blocks[1:2]):
                dsacked.update(starts[bisect_left(starts, low) : bisect_left(starts, high)])
        if one["ack"] is not None and one["ack"] > una:
            for packet in sent.copies.get(una, ()):
                sent_before = packet.t_ns < one["t_ns"]
                if sent_before and None not in (one["ts_ecr"], packet.ts_val) and one["ts_ecr"] < packet.ts_val:
                    echoed.add(packet.record)
            una = one["ack"]
    for seq, copies in sent.copies.items():
        spurious = [packet for packet in copies if packet.spurious]
        for rank, packet in enumerate(spurious, 1):
            packet.shown = rank <= dsacked[seq] or packet.record in echoed


def _tiles(info: Mapping[str, list[int]], span: tuple[int, int], bbr: bool, sack: bool) -> Iterator[Tile]:
    names = ("rtt", "snd_cwnd", "app_limited", "rwnd_limited", "sndbuf_limited", "ca_state")
    series = {name: Steps(info["t_ns"], info[name]) for name in names}
    parts = zip(info["unacked"], info["sacked"], info["lost"], info["retrans"], strict=True)
    flight = [unacked - sacked - lost + retrans for unacked, sacked, lost, retrans in parts]
    full = Steps(info["t_ns"], [pkts >= cwnd - 1 for pkts, cwnd in zip(flight, info["snd_cwnd"], strict=True)])
    start, end = span
    while start < end:
        until = min(end, start + max(1000, series["rtt"].at(start)) * 1000)
        inflight = Steps(info["t_ns"], flight).mean(start, until) or 0.0
        excluded = _limited(series, start, until)
        if excluded is None and not sack and any(state >= 2 for _, state in series["ca_state"].pieces(start, until)):
            excluded = "recovery"
        if excluded is None and not bbr and (full.mean(start, until) or 0.0) < 0.1:
            excluded = "window not full"
        if excluded is None and bbr and not inflight:
            excluded = "idle"
        yield Tile(start, until, series["snd_cwnd"].median(start, until) or 0.0, inflight, excluded)
        start = until


def _limited(series: Mapping[str, Steps], start: int, end: int) -> str | None:
    """What other than the network limited the sender for a tenth of the time or more (tcp_info's counters, in us)."""
    if (series["app_limited"].mean(start, end) or 0.0) >= 0.1:
        return "app_limited"
    for name in ("rwnd_limited", "sndbuf_limited"):
        if (series[name].counted(end) - series[name].counted(start)) * 1000 / (end - start) >= 0.1:
            return name
    return None
