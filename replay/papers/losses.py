"""Runs of a cell that lose chosen packets: what one call into the engine answers about recovery.

Depends on the lab; knows no paper.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from hindflight.replay.experiment.engine_documents import column_types
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.replay.papers.lab import Tables, config_of
from hindflight.replay.papers.model import Cell

ALWAYS = 1 << 20
"""Packets that a list of losses covers; it would start again after them."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A data segment that the sender sent: time in ms, number from 1, and whether it was a retransmission."""

    at_ms: float
    number: int
    again: bool


def run_with_losses(cell: Cell, link: int, positions: Sequence[int]) -> Tables:
    """Return the tables of a run of `cell` in which `link` loses the data packets at `positions` only (both from 0)."""
    config = copy.deepcopy(config_of(cell, 1))
    for number, each in enumerate(config["path"]["links"]):
        each["forward"]["loss"] = _trace(positions) if number == link else {"kind": "none"}
        each["reverse"]["loss"] = {"kind": "none"}
    return run_configurations([Configuration(config, 1, recorded=True)], threads=1, segments=True)


def _trace(positions: Sequence[int]) -> dict[str, Any]:
    return {
        "kind": "trace",
        "mode": "replayed",
        "positions": pa.array(list(positions), pa.uint64()),
        "known_pkts": ALWAYS,
        "block_pkts": ALWAYS,
        "late": pa.array([], column_types()["late"]),
    }


def sent_by(tables: Tables, mss_bytes: int, leg: int = 0) -> list[Segment]:
    """Return the data segments of connection `leg` of the flow under test in the order in which they were sent."""
    rows = [row for row in tables["segments"].to_pylist() if row["flow_id"] == 1 and row["leg"] == leg]
    data = [row for row in rows if row["direction"] == "a2b" and row["payload_bytes"] > 0]
    return [Segment(row["t_ns"] / 1e6, 1 + (row["seq"] - 1) // mss_bytes, bool(row["retransmission"])) for row in data]


def duplicate_acks_ms(tables: Tables, leg: int = 0) -> list[float]:
    """Return the times in ms at which duplicate ACKs reached the sender of connection `leg`."""
    rows = [row for row in tables["segments"].to_pylist() if row["flow_id"] == 1 and row["leg"] == leg]
    return [row["t_ns"] / 1e6 for row in rows if row["direction"] == "b2a" and row["dup_ack"]]


def timeouts_of(tables: Tables) -> int:
    """Return the retransmission timeouts of the flow under test."""
    return int(tables["runs"].to_pylist()[0]["rtos"])
