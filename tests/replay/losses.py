"""Losses of a trace by position, as a channel file would give them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from hindflight.replay.experiment.engine_documents import column_types
from hindflight.replay.scenario.loss_trace import LossTrace


def lost(positions: Iterable[int], length: int) -> LossTrace:
    """Return a trace of `length` packets that lost those at `positions`, with none delayed."""
    return LossTrace(pa.array(list(positions), pa.uint64()), length, pa.array([], column_types()["late"]))
