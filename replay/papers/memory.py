"""Whether a proxy had room for all that was sent to it.

`runs` does not count what a proxy refuses for lack of memory. A proxy refuses octets beyond the window that it has
advertised, so a sender that never goes beyond it, and a window that is never withdrawn, leave nothing to refuse.
Depends on the lab; knows no paper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hindflight.replay.papers.lab import Lab, Tables
from hindflight.replay.papers.model import Cell, Part
from hindflight.replay.papers.verdicts import holds

if TYPE_CHECKING:
    import polars as pl

MSS_BYTES = 1460


def memory_part(lab: Lab, name: str, cell: Cell, cache_pkts: int) -> Part:
    """Return whether no run stored more packets than the cache has, and the first sent nothing beyond the window."""
    (refusable,) = lab.observe([cell], refusable_bytes, maximum=1, segments=False)[0]
    stored = float(lab.sample(cell, "proxy_stored_max_bytes").max()) / MSS_BYTES
    note = f"at most {stored:.4g} packets stored, {refusable} B beyond the advertised window"
    return holds(name, stored <= cache_pkts and refusable == 0, stored, note)


def refusable_bytes(tables: Tables) -> int:
    """Return by how many octets the first sender went beyond the window it was given or had withdrawn: the maximum."""
    import polars as pl

    states = pl.DataFrame(tables["instruments"]).filter(
        pl.col("flow_id") == 1, pl.col("leg") == 0, pl.col("source") == "replay"
    )
    return beyond_window(states)


def beyond_window(states: pl.DataFrame) -> int:
    """Return the same of the states of a sender in order of time: `snd_una`, `snd_nxt`, `snd_wnd_bytes`."""
    edge = (states["snd_una"] + states["snd_wnd_bytes"]).cast(int).to_numpy()
    withdrawn = np.maximum.accumulate(edge) - edge
    beyond = states["snd_nxt"].cast(int).to_numpy() - edge
    return max(0, int(withdrawn.max()), int(beyond.max()))
