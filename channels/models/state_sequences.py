"""Walks of states from the kernels, step by step, and numbers from their streams.

Knows no model. Memory does not grow with the walk.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from hindflight.channels.intervals import State
from hindflight.channels.portable import erfc

if TYPE_CHECKING:
    from hindflight.channels.models.losses import Config

_ROWS = 4096


def packet_steps(chain: Config, seed: int, owner: int) -> Iterator[tuple[int, int]]:
    """Return state after state with how long it lasts, in the chain's own unit; it never ends."""
    import pyarrow as pa

    from hindflight.channels._native import StateWalk

    walk = StateWalk(json.dumps(chain), seed=seed, owner=owner)
    while True:
        rows = pa.table(walk.read(_ROWS))
        yield from zip(rows["state"].to_pylist(), rows["stay"].to_pylist(), strict=True)


def chain_states(chain: Config, seed: int, owner: int) -> Iterator[State]:
    """Return what a chain in time loses, state after state; it never ends."""
    t_ns = 0
    for state, stay in packet_steps(chain, seed, owner):
        loss = chain["states"][state]
        yield State(t_ns, t_ns + stay, per=loss.get("per"), ber=loss.get("ber"))
        t_ns += stay


def normals(seed: int, owner: int) -> Iterator[float]:
    """Return standard normal numbers, equal on every machine; a block of them per stream."""
    import pyarrow as pa

    from hindflight.channels._native import normal_numbers

    for block in count():
        # Each block has a stream of its own: streams are cheap, and none is drawn twice.
        yield from pa.table(normal_numbers(_ROWS, seed=seed, owner=owner * 65_536 + block % 65_536))[
            "normal"
        ].to_pylist()


def uniform(normal: float) -> float:
    """A number of (0, 1) from a standard normal one."""
    return 0.5 * erfc(-normal / math.sqrt(2))
