"""`flows --profile tcptrace` compared with `tcptrace --csv -l -r -n -W`: all fields of all connections."""

from __future__ import annotations

import ipaddress
from pathlib import Path

from hindflight.toolkit.capture import TcptraceStream
from validation.parity.compare import Difference, Facts, Outcome, plain, run, shown

KINDS = {
    "colon": "tcptrace writes one colon where an IPv6 address begins with two",
    "microseconds": "tcptrace writes the microseconds of a time without their leading zeros",
    "time": "the fraction of a second is one or more: added to the seconds here, undefined in tcptrace",
    "mss": "tcptrace takes an MSS of 32,768 and more for a negative number",
    "cut header": "the capture cuts a TCP header: tcptrace counts the rest of the header as missing payload",
    "wrap": "tcptrace subtracts sequence numbers as 64-bit ones: off by 2^32 around a wrap, above 2^63 below zero",
}
"""Differences on purpose, and faults of the peer."""

WRAPPING = ("max_owin", "avg_owin", "wavg_owin", "missed_data")
"""Fields that are differences of sequence numbers."""


def compare(path: Path) -> Outcome:
    """Compare all fields of all connections of a capture."""
    facts = Facts(path)
    with plain(path) as file:
        theirs = _rows(run("tcptrace", "--csv", "-l", "-r", "-n", "-W", str(file)))
    ours = _rows(b"".join(TcptraceStream(path).text()).decode().splitlines())
    outcome = Outcome(shown(path), damaged=facts.issue_kinds["record_time"] > 0)
    if not theirs:
        outcome.only_ours = len(ours)
        return outcome
    pairs = _pairs(theirs, ours, outcome)
    for number, (peer, mine) in enumerate(pairs, 1):
        for name, value in peer.items():
            outcome.compared += 1
            same_host = name.startswith("host_") and _address(value) == _address(mine[name])
            if value != mine[name] and not same_host:
                kind = _kind(name, value, mine[name], facts)
                place = f"connection {number}"
                outcome.differences.append(Difference(outcome.capture, place, name, value, mine[name], kind))
    return outcome


Row = dict[str, str]


def _rows(lines: list[str]) -> list[Row]:
    table = [line for line in lines if line and not line.startswith("#")]
    if not table:
        return []
    names = [name.strip() for name in table[0].rstrip(",").split(",")]
    return [dict(zip(names, (cell.strip() for cell in line.split(",")), strict=False)) for line in table[1:]]


def _pairs(theirs: list[Row], ours: list[Row], outcome: Outcome) -> list[tuple[Row, Row]]:
    """Both have the order of the first packets. Where one splits connections otherwise, the ends decide."""
    if len(theirs) == len(ours):
        return list(zip(theirs, ours, strict=True))
    left = list(ours)
    pairs = []
    for peer in theirs:
        found = next((mine for mine in left if _same_ends(peer, mine)), None)
        if found is None:
            outcome.only_peer += 1
        else:
            left.remove(found)
            pairs.append((peer, found))
    outcome.only_ours = len(left)
    return pairs


def _same_ends(peer: Row, mine: Row) -> bool:
    ports = peer["port_a"] == mine["port_a"] and peer["port_b"] == mine["port_b"]
    return ports and all(_address(peer[name]) == _address(mine[name]) for name in ("host_a", "host_b"))


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(":".join(part.lstrip("0") or part[:1] for part in text.split(":"))))
    except ValueError:
        return text


def _kind(name: str, peer: str, mine: str, facts: Facts) -> str:
    cut = facts.issue_kinds["options_cut"] > 0 and _number(peer) > _number(mine)
    rules = {
        "colon": name.startswith("host_") and _address(f":{peer}") == _address(mine),
        "microseconds": name.endswith("_packet") and _padded(peer) == mine,
        "mss": name.startswith("mss_requested") and _number(peer) - _number(mine) == 2**32 - 2**16,
        "time": facts.issue_kinds["record_time"] > 0,
        "cut header": name.startswith("truncated_data") and cut,
        "wrap": name.startswith(WRAPPING) and _number(peer) >= 2**31,
    }
    return next((kind for kind, holds in rules.items() if holds), "")


def _padded(time: str) -> str:
    seconds, _, fraction = time.partition(".")
    return f"{seconds}.{fraction.zfill(6)}"


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0
