"""What a link layer makes of losses: retransmission (ARQ) and erasure codes (FEC) over any model stepped per packet.

Parameters, and the fates of packets from those of transmissions. Read docs/channels/protect.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from channels import losses
from channels.parameters import Parameters, Stay

if TYPE_CHECKING:
    import numpy as np

BATCH = 262_144
Inner = Annotated[losses.PacketLoss, Field(discriminator="model")]


@dataclass(frozen=True, slots=True)
class Fates:
    """A batch of packets: which are lost, and how much later than at the first try the others come (ns)."""

    lost: np.ndarray[Any, np.dtype[np.bool_]]
    added_ns: np.ndarray[Any, np.dtype[np.int64]]


class Arq(Parameters):
    """Retransmission by the link as in IEEE 802.11: `retries` more tries of `try_time` each, then it gives up.

    Each try is a packet to the model beneath. `in_order`: later packets wait for the one that is being tried.
    """

    model: Literal["arq"]
    over: Inner
    retries: Annotated[int, Field(ge=0, le=255, strict=True)] = 7
    try_time: Stay = 1_000_000
    in_order: Annotated[bool, Field(strict=True)] = True

    def fates(self, packets: int, seed: int, *, size_bytes: int, spacing_ns: int) -> Iterator[Fates]:
        """Return the fates of `packets` packets, `spacing_ns` apart, in batches."""
        tries = _fates_of(self.over, seed, size_bytes)
        yield from _batches(self._packets(packets, tries, spacing_ns))

    def _packets(self, packets: int, tries: Iterator[bool], spacing_ns: int) -> Iterator[tuple[bool, int]]:
        free_ns = 0
        for number in range(packets):
            failed = 0
            while failed <= self.retries and next(tries):
                failed += 1
            offered_ns = number * spacing_ns
            start_ns = max(offered_ns, free_ns) if self.in_order else offered_ns
            free_ns = start_ns + min(failed, self.retries) * self.try_time
            yield failed > self.retries, free_ns - offered_ns


class Fec(Parameters):
    """An erasure code: of `block` packets `repair` are redundant, and any `repair` losses in a block are made good."""

    model: Literal["fec"]
    over: Inner
    block: Annotated[int, Field(ge=2, le=65_535, strict=True)] = 20
    repair: Annotated[int, Field(ge=1, strict=True)] = 2

    @model_validator(mode="after")
    def _some_data(self) -> Self:
        if self.repair >= self.block:
            raise ValueError("repair leaves no data in a block")
        return self

    def fates(self, packets: int, seed: int, *, size_bytes: int, spacing_ns: int) -> Iterator[Fates]:
        """Return the fates of `packets` data packets, `spacing_ns` apart, in batches; what is made good comes late."""
        sent = _fates_of(self.over, seed, size_bytes)
        yield from _batches(islice(self._packets(sent, spacing_ns), packets))

    def _packets(self, sent: Iterator[bool], spacing_ns: int) -> Iterator[tuple[bool, int]]:
        while True:
            block = list(islice(sent, self.block))
            beyond = sum(block) > self.repair
            for place, lost in enumerate(block[: self.block - self.repair]):
                # A packet is made good when enough of its block has come: at its end, at the latest.
                late_ns = (self.block - 1 - place) * spacing_ns if lost and not beyond else 0
                yield lost and beyond, late_ns


def _fates_of(model: losses.PacketLoss, seed: int, size_bytes: int) -> Iterator[bool]:
    """Whether the model loses packet after packet; it never ends."""
    import numpy as np
    import pyarrow as pa

    from channels._native import LossStream

    stream = LossStream(json.dumps(model.config()), seed=seed)
    for first in count(0, BATCH):
        lost = np.zeros(BATCH, dtype=bool)
        positions = np.asarray(pa.table(stream.read(BATCH, size_bytes, 0))["position"])
        lost[positions - np.uint64(first)] = True
        yield from lost.tolist()


def _batches(packets: Iterator[tuple[bool, int]]) -> Iterator[Fates]:
    import numpy as np

    while chunk := list(islice(packets, BATCH)):
        lost, added = zip(*chunk, strict=True)
        yield Fates(np.array(lost), np.array(added, dtype=np.int64))
