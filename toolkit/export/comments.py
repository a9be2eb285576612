"""What the analysis says about each packet, as the text of its comment in a pcapng file.

The events of a packet are those with its `record`; a state of the sender is said at the first packet of its flow at
that time or later. Wireshark shows comments and filters by `frame.comment`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hindflight.toolkit.rows import rows_of

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Ints = npt.NDArray[np.int64]

PREFIX = "hindflight: "
_CWND = "cwnd "


def comments_of(segments: pa.Table, events: pa.Table, instruments: pa.Table) -> pa.Array:
    """Return the comment of each row of `segments`, "" for a packet about which there is nothing to say."""
    import pyarrow as pa

    rows = _Rows(segments)
    said: dict[int, list[str]] = {}
    for event in rows_of(events):
        row = rows.of_record(event) if event["record"] is not None else None
        if row is not None:
            said.setdefault(row, []).append(_event_text(event))
    for state in rows_of(instruments):
        row = rows.not_before(state)
        if row is not None and state["cwnd_bytes"] is not None:
            texts = said.setdefault(row, [])
            texts[:] = [text for text in texts if not text.startswith(_CWND)] + [_state_text(state)]
    texts_of = np.full(segments.num_rows, "", dtype=object)
    for row, texts in said.items():
        texts_of[row] = PREFIX + "; ".join(texts)
    return pa.array(texts_of, pa.string())


class _Rows:
    """Finds rows of `segments` by connection, and in it by record or time."""

    def __init__(self, segments: pa.Table) -> None:
        self._records = segments["record"].to_numpy().astype(np.int64)
        self._times: Ints = segments["t_ns"].to_numpy()
        keys = _key(segments["flow_id"].to_numpy().astype(np.int64), segments["leg"].to_numpy().astype(np.int64))
        order = np.argsort(keys, kind="stable")
        known, starts = np.unique(keys[order], return_index=True)
        self._rows = dict(zip(known.tolist(), np.split(order, starts[1:]), strict=True))
        self._by_record: dict[int, Ints] = {}

    def of_record(self, row: dict[str, Any]) -> int | None:
        """Return the row of this record."""
        key = _key(row["flow_id"], row["leg"])
        if key not in self._rows:
            return None
        if key not in self._by_record:
            rows = self._rows[key]
            self._by_record[key] = rows[np.argsort(self._records[rows], kind="stable")]
        rows = self._by_record[key]
        at = int(np.searchsorted(self._records[rows], row["record"]))
        return int(rows[at]) if at < len(rows) and self._records[rows[at]] == row["record"] else None

    def not_before(self, row: dict[str, Any]) -> int | None:
        """Return the first row of the connection that is not earlier."""
        rows = self._rows.get(_key(row["flow_id"], row["leg"]))
        if rows is None:
            return None
        at = int(np.searchsorted(self._times[rows], row["t_ns"]))
        return int(rows[at]) if at < len(rows) else None


def _key(flow: Any, leg: Any) -> Any:
    return flow * 256 + leg


def _event_text(event: dict[str, Any]) -> str:
    octets = "" if event["seq_start"] is None else f" of octets {event['seq_start']} to {event['seq_end']}"
    words = [f"{event['kind'].replace('_', ' ')}{octets}"]
    if event["cause"] != "unknown":
        words.append(f"cause {event['cause']}")
    if event["mechanism"] is not None:
        words.append(f"mechanism {event['mechanism']}")
    if event["spurious"] is not None:
        words.append("spurious" if event["spurious"] else "not spurious")
    if event["copy"] is not None:
        words.append(f"transmission {event['copy']}")
    if event["end_ns"] is not None:
        words.append(f"for {(event['end_ns'] - event['t_ns']) / 1e9:.6f} s")
    return ", ".join(words)


def _state_text(row: dict[str, Any]) -> str:
    words = [f"{_CWND}{row['cwnd_bytes']} B"]
    if row["cwnd_low_bytes"] is not None and row["cwnd_high_bytes"] is not None:
        words[0] += f" ({row['cwnd_low_bytes']} to {row['cwnd_high_bytes']} B)"
    if row["ssthresh_bytes"] is not None:
        words.append(f"ssthresh {row['ssthresh_bytes']} B")
    return ", ".join([*words, f"phase {row['phase'].replace('_', ' ')}", f"source {row['source']}"])
