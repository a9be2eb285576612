"""What a link layer makes of losses: retransmission (ARQ) and erasure codes (FEC) over any other model.

Parameters, and the words the kernels know; the kernels draw. Read docs/channels/protect.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from channels import losses
from channels.handover import Handover, Slots
from channels.intervals import loss_words
from channels.lms import Lms
from channels.parameters import Parameters, Stay
from channels.signal import Signal
from channels.street import Street
from channels.track import Track
from channels.uav import Uav

if TYPE_CHECKING:
    import numpy as np

BATCH = 262_144

LossModel = losses.PacketLoss | losses.TimeLoss
"""Models of losses alone."""

LinkModel = Street | Lms | Signal | Track | Uav | Handover | Slots
"""Models that say what a whole link is like over time."""

Inner = Annotated[LossModel | LinkModel, Field(discriminator="model")]


@dataclass(frozen=True, slots=True)
class Fates:
    """A batch of packets: which are lost, and how much later than at the first try the others come (ns)."""

    lost: np.ndarray[Any, np.dtype[np.bool_]]
    added_ns: np.ndarray[Any, np.dtype[np.int64]]


class _Guard(Parameters):
    """What both have in common: the model beneath."""

    over: Inner

    @property
    def reach_ns(self) -> int:
        """How long after a packet comes the model beneath is still asked for it."""
        raise NotImplementedError

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's words with those of the process beneath."""
        raise NotImplementedError

    def config(self) -> losses.Config:
        """Return the kernel's words. ValueError over a model of a whole link: it takes a time and a seed."""
        if not isinstance(self.over, LossModel):
            raise ValueError(f"{self.over.model} says what a whole link is like")
        return self.guard(self.over.config())

    def drawn(self, span_ns: int, seed: int, owner: int = 0) -> losses.Config:
        """Return the kernel's words over any model; one of a whole link is drawn for `span_ns`; its outages lose."""
        if isinstance(self.over, LossModel):
            return self.config()
        return self.guard(loss_words(self.over.states(span_ns + self.reach_ns, seed, owner), outages=True))

    def fates(self, packets: int, seed: int, *, size_bytes: int, spacing_ns: int) -> Iterator[Fates]:
        """Return the fates of `packets` packets, `spacing_ns` apart, in batches."""
        import numpy as np
        import pyarrow as pa

        from channels._native import LossStream

        stream = LossStream(json.dumps(self.drawn(packets * spacing_ns + 1, seed)), seed=seed)
        for first in range(0, packets, BATCH):
            rows = pa.table(stream.fates(min(BATCH, packets - first), size_bytes, spacing_ns))
            yield Fates(np.asarray(rows["lost"]), np.asarray(rows["added_ns"]).astype(np.int64))


class Arq(_Guard):
    """Retransmission by the link as in IEEE 802.11: `retries` more tries of `try_time` each, then it gives up.

    Each try is a packet to the model beneath, at its own time. `in_order`: later packets wait for the one that is being
    tried.
    """

    model: Literal["arq"]
    retries: Annotated[int, Field(ge=0, le=255, strict=True)] = 7
    try_time: Stay = 1_000_000
    in_order: Annotated[bool, Field(strict=True)] = True

    @property
    def reach_ns(self) -> int:
        """How long after a packet comes the model beneath is still asked for it."""
        return self.retries * self.try_time

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's words with those of the process beneath."""
        return {
            "kind": "arq", "over": over, "retries": self.retries, "try_ns": self.try_time, "in_order": self.in_order
        }  # fmt: skip


class Fec(_Guard):
    """An erasure code: of `block` packets `repair` are redundant, and any `repair` losses in a block are made good.

    What is made good comes at the end of its block, whose packets follow one another by `packet_time`. `in_order`: what
    follows waits for it.
    """

    model: Literal["fec"]
    block: Annotated[int, Field(ge=2, le=65_535, strict=True)] = 20
    repair: Annotated[int, Field(ge=1, strict=True)] = 2
    packet_time: Stay = 1_000_000
    in_order: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _some_data(self) -> Self:
        if self.repair >= self.block:
            raise ValueError("repair leaves no data in a block")
        return self

    @property
    def reach_ns(self) -> int:
        """How long after a packet comes the model beneath is still asked for it."""
        return self.block * self.packet_time

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's words with those of the process beneath."""
        return {
            "kind": "fec", "over": over, "block": self.block, "repair": self.repair, "packet_ns": self.packet_time,
            "in_order": self.in_order,
        }  # fmt: skip


Guarded = Arq | Fec
"""Models that a link layer protects."""
