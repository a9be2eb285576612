"""What a link layer makes of losses: retransmission (ARQ) and erasure codes (FEC) over any other model.

Parameters, and the words the kernels know; the kernels draw. Read docs/channels/protect.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import loss_spans
from hindflight.channels.models import losses
from hindflight.channels.models.handover import Handover, Slots
from hindflight.channels.models.lms import Lms
from hindflight.channels.models.parameters import Parameters, Stay
from hindflight.channels.models.signal import Signal
from hindflight.channels.models.street import Street
from hindflight.channels.models.track import Track
from hindflight.channels.models.uav import Uav

if TYPE_CHECKING:
    import numpy as np

BATCH = 262_144
SPANS = 4096
"""So many changes of a link are told at a time."""

ENDLESS_NS = 2**64 - 1

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

    def fates(self, packets: int, seed: int, *, size_bytes: int, spacing_ns: int) -> Iterator[Fates]:
        """Return the fates of `packets` packets, `spacing_ns` apart, in batches. Outages of a whole link are losses."""
        import numpy as np
        import pyarrow as pa

        told = _Told(self, packets * spacing_ns + 1, seed)
        left = packets
        while left:
            rows = pa.table(told.stream.fates(min(BATCH, left), size_bytes, spacing_ns))
            left -= len(rows)
            if len(rows):
                yield Fates(np.asarray(rows["lost"]), np.asarray(rows["added_ns"]).astype(np.int64))
            else:
                told.go_on()


class _Told:
    """The process of a link layer, told of the link beneath bit by bit: memory does not grow with the time covered."""

    def __init__(self, guard: _Guard, span_ns: int, seed: int) -> None:
        from hindflight.channels._native import LossStream

        self._spans: Iterator[dict[str, Any]] = iter(())
        words, told_ns = None, ENDLESS_NS
        if not isinstance(guard.over, LossModel):
            self._spans = loss_spans(guard.over.states(span_ns + guard.reach_ns, seed), outages=True)
            words, told_ns = self._next()
        over = guard.over.config() if isinstance(guard.over, LossModel) else words or losses.NoLoss().config()
        self.stream = LossStream(json.dumps(guard.guard(over)), seed=seed, told_ns=told_ns)

    def _next(self) -> tuple[losses.Config | None, int]:
        """The next spans as a timeline, none where nothing is lost any more, and until when they tell all."""
        spans = list(islice(self._spans, SPANS))
        timeline = {"kind": "timeline", "spans": spans} if spans else None
        return timeline, spans[-1]["start_ns"] if len(spans) == SPANS else ENDLESS_NS

    def go_on(self) -> None:
        """Tell of more spans."""
        words, told_ns = self._next()
        self.stream.extend(json.dumps(words or {"kind": "timeline", "spans": []}), told_ns)


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
