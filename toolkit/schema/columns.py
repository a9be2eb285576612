"""Columns that several tables have, each declared once.

Knows no table. Read toolkit/schema/model.py first.
"""

from __future__ import annotations

from hindflight.toolkit.schema.model import Column

DIRECTIONS = ("a2b", "b2a")

RUN = Column("run_id", "u32", "", "Replay run (key of `runs`); 0 for what a capture or log recorded")
FLOW = Column("flow_id", "u32", "", "Connection (key of `flows`, together with run_id)")
TIME = Column(
    "t_ns", "i64", "ns", "Time: since 1970-01-01 UTC in captures and logs, since the start of the run in replays"
)
DIRECTION = Column(
    "direction",
    "enum",
    "",
    "Who sent it: a2b from the end that opened the connection, b2a the other",
    values=DIRECTIONS,
)
LEG = Column(
    "leg",
    "u8",
    "",
    "TCP connection on the path: 0 is the one that leaves the data sender, 1 the one behind the first split proxy, and so on",
)
