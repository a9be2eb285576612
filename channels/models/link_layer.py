"""Link-layer protection over any other model: retransmission (ARQ) and erasure codes (FEC).

See docs/channels/protect.md.
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
"""Number of changes of a link that are passed to the kernel at a time."""

ENDLESS_NS = 2**64 - 1

LossModel = losses.PacketLoss | losses.TimeLoss
"""Models of losses without a link."""

LinkModel = Street | Lms | Signal | Track | Uav | Handover | Slots
"""Models of a whole link over time."""

Inner = Annotated[LossModel | LinkModel, Field(discriminator="model")]


@dataclass(frozen=True, slots=True)
class PacketOutcomes:
    """A batch of packets: which are lost, and the delay that retransmission or decoding adds to the others [ns]."""

    lost: np.ndarray[Any, np.dtype[np.bool_]]
    added_ns: np.ndarray[Any, np.dtype[np.int64]]


class _Protection(Parameters):
    """The model below a link-layer protection, common to ARQ and FEC."""

    over: Inner

    @property
    def reach_ns(self) -> int:
        """How long after a packet's arrival its outcome still depends on the model below, in ns."""
        raise NotImplementedError

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's configuration over the loss process `over`."""
        raise NotImplementedError

    def config(self) -> losses.Config:
        """Return the kernel's configuration. Raises ValueError over a model of a whole link, which needs a time and a
        seed.
        """
        if not isinstance(self.over, LossModel):
            raise ValueError(f"{self.over.model} models a whole link")
        return self.guard(self.over.config())

    def outcomes(self, packets: int, seed: int, *, size_bytes: int, spacing_ns: int) -> Iterator[PacketOutcomes]:
        """Yield the outcomes of `packets`, `spacing_ns` apart, in batches. Outages of a link count as losses."""
        import numpy as np
        import pyarrow as pa

        process = _IncrementalProcess(self, packets * spacing_ns + 1, seed)
        left = packets
        while left:
            rows = pa.table(process.stream.outcomes(min(BATCH, left), size_bytes, spacing_ns))
            left -= len(rows)
            if len(rows):
                yield PacketOutcomes(np.asarray(rows["lost"]), np.asarray(rows["added_ns"]).astype(np.int64))
            else:
                process.extend()


class _IncrementalProcess:
    """The loss process of a link layer, which gets the states of the link below step by step, so that memory stays
    constant.
    """

    def __init__(self, guard: _Protection, span_ns: int, seed: int) -> None:
        from hindflight.channels._native import LossStream

        self._spans: Iterator[dict[str, Any]] = iter(())
        timeline, known_until_ns = None, ENDLESS_NS
        if not isinstance(guard.over, LossModel):
            self._spans = loss_spans(guard.over.states(span_ns + guard.reach_ns, seed), outages=True)
            timeline, known_until_ns = self._next()
        over = guard.over.config() if isinstance(guard.over, LossModel) else timeline or losses.NoLoss().config()
        self.stream = LossStream(json.dumps(guard.guard(over)), seed=seed, known_until_ns=known_until_ns)

    def _next(self) -> tuple[losses.Config | None, int]:
        """Return the next spans as a timeline (None after the last), and the time up to which they are complete."""
        spans = list(islice(self._spans, SPANS))
        timeline = {"kind": "timeline", "spans": spans} if spans else None
        return timeline, spans[-1]["start_ns"] if len(spans) == SPANS else ENDLESS_NS

    def extend(self) -> None:
        """Pass the next spans to the kernel."""
        timeline, known_until_ns = self._next()
        self.stream.extend(json.dumps(timeline or {"kind": "timeline", "spans": []}), known_until_ns)


class Arq(_Protection):
    """Retransmission by the link as in IEEE 802.11: up to `retries` further attempts of `try_time` each, then a loss.

    Each attempt is a packet to the model below, at its own time. `in_order`: later packets wait for one that is being
    retried.
    """

    model: Literal["arq"]
    retries: Annotated[int, Field(ge=0, le=255, strict=True)] = 7
    try_time: Stay = 1_000_000
    in_order: Annotated[bool, Field(strict=True)] = True

    @property
    def reach_ns(self) -> int:
        """How long after a packet's arrival its outcome still depends on the model below, in ns."""
        return self.retries * self.try_time

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's configuration over the loss process `over`."""
        return {
            "kind": "arq", "over": over, "retries": self.retries, "try_ns": self.try_time, "in_order": self.in_order
        }  # fmt: skip


class Fec(_Protection):
    """An erasure code: of `block` packets `repair` are redundant; up to `repair` losses per block are recovered.

    A recovered packet arrives at the end of its block, whose packets are `packet_time` apart. `in_order`: later packets
    wait for it.
    """

    model: Literal["fec"]
    block: Annotated[int, Field(ge=2, le=65_535, strict=True)] = 20
    repair: Annotated[int, Field(ge=1, strict=True)] = 2
    packet_time: Stay = 1_000_000
    in_order: Annotated[bool, Field(strict=True)] = False

    @model_validator(mode="after")
    def _some_data(self) -> Self:
        if self.repair >= self.block:
            raise ValueError("repair must be less than block, which holds data too")
        return self

    @property
    def reach_ns(self) -> int:
        """How long after a packet's arrival its outcome still depends on the model below, in ns."""
        return self.block * self.packet_time

    def guard(self, over: losses.Config) -> losses.Config:
        """Return the kernel's configuration over the loss process `over`."""
        return {
            "kind": "fec", "over": over, "block": self.block, "repair": self.repair, "packet_ns": self.packet_time,
            "in_order": self.in_order,
        }  # fmt: skip


LinkProtection = Arq | Fec
"""Models of link-layer protection."""
