"""`segments --profile wireshark` compared with `tshark -T fields`: all fields of all segments."""

from __future__ import annotations

from pathlib import Path

from hindflight.toolkit.capture import WiresharkStream
from validation.parity.compare import Difference, Facts, Outcome, plain, run, shown

KINDS = {
    "length": "the IP header gives another length than the layer below, which tshark takes: other values follow",
    "cut options": "the capture cuts the TCP options: tshark stops there and shows no analysis",
    "time": "the fraction of a second is one or more: added to the seconds here, printed as it is by tshark",
    "announced": "FTP announced the connection, so that tshark does not take its SYN for the first packet",
}
"""Differences on purpose, and faults of the peer."""

EXTRA = ("tcp.len", "_ws.short", "_ws.malformed")
"""Fields of tshark that the rules ask for."""
FTP = 21
TIMES = ("ack_rtt", "initial_rtt", "rto")


def compare(path: Path) -> Outcome:
    """Compare all fields of all segments of a capture, by the number of the record."""
    facts = Facts(path)
    lines = b"".join(WiresharkStream(path).text()).decode().splitlines()
    names = lines[0].split(",")
    ours = {row["frame.number"]: row for row in (dict(zip(names, line.split(","), strict=True)) for line in lines[1:])}
    outcome = Outcome(shown(path), damaged=facts.issue_kinds["record_time"] > 0)
    wanted = [*names, *EXTRA]
    options = [word for name in wanted for word in ("-e", name)]
    with plain(path) as file:
        rows = run("tshark", "-n", "-r", str(file), "-Y", "tcp", "-T", "fields", "-E", "occurrence=f", *options)
    seen = set()
    other_length: set[str] = set()
    for line in rows:
        peer = dict(zip(wanted, line.split("\t"), strict=False))
        number = peer["frame.number"]
        mine = ours.get(number)
        if mine is None:
            outcome.only_peer += 1
            continue
        seen.add(number)
        if int(peer["tcp.len"] or -1) != facts.payload_bytes.get(number):
            other_length.add(peer["tcp.stream"])
        for name in names[1:]:
            outcome.compared += 1
            if peer[name] != mine[name]:
                kind = _kind(name, peer, mine, facts, other_length)
                place = f"record {number}"
                outcome.differences.append(Difference(outcome.capture, place, name, peer[name], mine[name], kind))
    outcome.only_ours = len(ours.keys() - seen)
    return outcome


def _kind(name: str, peer: dict[str, str], mine: dict[str, str], facts: Facts, other_length: set[str]) -> str:
    if peer["_ws.short"] or peer["_ws.malformed"]:
        return "cut options"
    if peer["tcp.stream"] in other_length:
        return "length"
    if name.endswith(TIMES) and facts.issue_kinds["record_time"]:
        return "time"
    if name == "tcp.completeness" and int(mine[name]) == int(peer[name]) | 1 and FTP in facts.ports:
        return "announced"
    return ""
