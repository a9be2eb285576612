"""State sequences and random numbers from the kernels, generated lazily, so that memory stays constant."""

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


def state_sequence(chain: Config, seed: int, owner: int) -> Iterator[tuple[int, int]]:
    """Yield states and their sojourn times in the chain's unit, without end."""
    import pyarrow as pa

    from hindflight.channels._native import StateWalk

    walk = StateWalk(json.dumps(chain), seed=seed, owner=owner)
    while True:
        rows = pa.table(walk.read(_ROWS))
        yield from zip(rows["state"].to_pylist(), rows["stay"].to_pylist(), strict=True)


def chain_states(chain: Config, seed: int, owner: int) -> Iterator[State]:
    """Yield the losses of a chain in continuous time as link states, without end."""
    t_ns = 0
    for state, stay in state_sequence(chain, seed, owner):
        loss = chain["states"][state]
        yield State(t_ns, t_ns + stay, per=loss.get("per"), ber=loss.get("ber"))
        t_ns += stay


def normals(seed: int, owner: int) -> Iterator[float]:
    """Yield standard normal numbers, equal on every machine; each block comes from a separate stream."""
    import pyarrow as pa

    from hindflight.channels._native import normal_numbers

    for block in count():
        # A separate stream per block: no stream is used twice.
        yield from pa.table(normal_numbers(_ROWS, seed=seed, owner=owner * 65_536 + block % 65_536))[
            "normal"
        ].to_pylist()


def uniform(normal: float) -> float:
    """Return a uniform number in (0, 1) from a standard normal one."""
    return 0.5 * erfc(-normal / math.sqrt(2))
