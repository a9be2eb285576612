"""The log of the link emulator that recorded this project's test data: a row per packet with its fate. Read only.

fixtures/PROVENANCE.md describes the columns. Packets that the emulator's queue dropped never reached the loss stage and
are left out, so that the rest is in the order of the loss stage.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.formats.rows import table_of
from hindflight.channels.formats.text import Source, csv_rows, parse_integer
from hindflight.channels.trace import Trace

REACHED = {"delivered": None, "unfinished": None, "dropped_loss": "channel", "dropped_outage": "outage"}
"""Fates of packets that passed the queue, and the cause of their loss."""

NEEDED = ("dir", "plen", "fate", "t_arr_ns", "size")


def read(source: Source) -> Trace:
    """Read the data packets that passed the queue. Raises ChannelError with the line."""
    lines = csv_rows(source)
    header, names = next(lines)
    for name in NEEDED:
        if name not in names:
            raise source.error_at(header, f"the column {name} is missing")
    rows: list[tuple[int, int, str | None]] = []
    for number, fields in lines:
        row = dict(zip(names, fields, strict=True))
        if row["dir"] != "data" or row["plen"] == "0" or row["fate"] == "dropped_queue":
            continue
        if row["fate"] not in REACHED:
            raise source.error_at(number, f"unknown fate {row['fate']!r}")
        if row["fate"] == "unfinished":
            continue
        size = parse_integer(source, number, row["size"], "size", 2**32 - 1)
        t_ns = parse_integer(source, number, row["t_arr_ns"], "t_arr_ns")
        if rows and t_ns < rows[-1][0]:
            raise source.error_at(
                number, f"t_arr_ns is {t_ns}, earlier than the previous packet: the log is not sorted"
            )
        rows.append((t_ns, size, REACHED[row["fate"]]))
    if not rows:
        raise source.empty_error()
    causes = [cause or "none" for _, _, cause in rows]
    columns = {
        "position": np.arange(len(rows), dtype=np.uint64),
        "t_ns": np.array([t for t, _, _ in rows], dtype=np.int64),
        "size_bytes": np.array([size for _, size, _ in rows], dtype=np.uint32),
        "lost": np.array([cause != "none" for cause in causes]),
        "cause": causes,
    }
    return Trace(table_of("packet", columns, len(rows)), source={"name": source.name})
