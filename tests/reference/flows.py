"""The annotations of `segments`, computed once more with plain lists: every ACK looks at everything outstanding.

Takes rows of one connection whose SYNs were captured, at its data sender, and segments that are repeated whole. Read
RFC 9293 §3.4, RFC 6675 §2 and RFC 6298 §3 first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

SYN, ACK = 2, 16
Row = dict[str, Any]


@dataclass(slots=True)
class Piece:
    """A range of sequence space that was sent as one."""

    start: int
    end: int
    sent_ns: int
    times: int = 1
    delivered: bool = False


@dataclass(slots=True)
class Half:
    """One direction as the sender of its data."""

    first_raw: int | None = None
    newest: int = 0
    snd_una: int = 0
    snd_nxt: int = 0
    pieces: list[Piece] = field(default_factory=list)

    def position(self, raw: int) -> int:
        """Unwrap `raw` to the position nearest to the newest one."""
        assert self.first_raw is not None
        step = (raw - self.first_raw - self.newest) % 2**32
        return self.newest + (step if step < 2**31 else step - 2**32)

    def flight(self) -> int:
        sacked = sum(piece.end - piece.start for piece in self.pieces if piece.delivered)
        return self.snd_nxt - self.snd_una - sacked


def annotate(rows: list[Row]) -> list[Row]:
    """Return direction, seq, ack, sack, retransmission, dup_ack, rtt_ns and flight_bytes of each row."""
    opener = (rows[0]["direction"],)
    assert rows[0]["flags"] & SYN
    halves = {"a2b": Half(), "b2a": Half()}
    return [_annotate(row, halves, opener[0]) for row in rows]


def _annotate(row: Row, halves: dict[str, Half], opener: str) -> Row:
    direction = row["direction"]
    assert opener == "a2b"
    own, peer = halves[direction], halves["b2a" if direction == "a2b" else "a2b"]
    if row["flags"] & SYN and own.first_raw is None:
        own.first_raw = row["seq_raw"]
    note: Row = {"seq": own.position(row["seq_raw"]), "ack": None, "dup_ack": False, "rtt_ns": None}
    if row["flags"] & ACK:
        note["ack"] = peer.position(row["ack_raw"])
        peer.newest = max(peer.newest, note["ack"])
        note["dup_ack"], note["rtt_ns"] = _acknowledge(peer, note["ack"], row["sack"], row["t_ns"])
    octets = row["payload_bytes"] + bool(row["flags"] & SYN) + bool(row["flags"] & 1)
    note["retransmission"] = bool(octets) and _send(own, note["seq"], note["seq"] + octets, row["t_ns"])
    own.newest = max(own.newest, note["seq"] + octets)
    note["flight_bytes"] = (own if octets else peer).flight()
    return note


def _send(half: Half, start: int, end: int, t_ns: int) -> bool:
    repeats = [piece for piece in half.pieces if piece.start < end and start < piece.end]
    for piece in repeats:
        assert (piece.start, piece.end) == (start, end), "repeated in other pieces than before"
        piece.times += 1
    if start >= half.snd_nxt:
        half.pieces.append(Piece(start, end, t_ns))
        half.snd_nxt = end
        return False
    return bool(repeats) or start < half.snd_una


def _acknowledge(half: Half, ack: int, sack: list[int], t_ns: int) -> tuple[bool, int | None]:
    """Process one ACK; return whether it is a duplicate with SACK, and the round-trip time it measures."""
    covered = [piece for piece in half.pieces if piece.end <= ack]
    fresh = [piece for piece in covered if not piece.delivered]
    timed = [] if any(piece.times > 1 for piece in fresh) else fresh
    moved = ack > half.snd_una
    half.snd_una = max(half.snd_una, ack)
    half.pieces = [piece for piece in half.pieces if piece.end > ack]
    news = False
    for left, right in zip(sack[::2], sack[1::2], strict=True):
        for piece in half.pieces:
            if left <= piece.start and piece.end <= right and not piece.delivered:
                piece.delivered = news = True
                if piece.times == 1:
                    timed.append(piece)
    newest = max((piece.sent_ns for piece in timed if piece.times == 1), default=None)
    return news and not moved, None if newest is None else t_ns - newest
