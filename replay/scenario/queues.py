"""The queues of a scenario file: queue disciplines and active queue management.

Depends on the keys of the file and of the engine (`hindflight._native.replay`), not on how queues work. What is None
has the engine's default, which replay/engine/src/config/queue.rs gives with its source. Read docs/queues.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainValidator, model_validator

from hindflight.replay.scenario.quantities import MAX_PKTS, Dscp, Flag, Packets, Part, Probability, whole
from hindflight.toolkit.units import PACKETS, SIZE, TIME

PacketSize = Annotated[int, whole(SIZE), Field(ge=1, le=65_535)]
ControlTime = Annotated[int, whole(TIME), Field(ge=1000, le=60 * 10**9)]
Threshold = Annotated[float, BeforeValidator(PACKETS.parse), Field(le=MAX_PKTS)]
Gain = Annotated[float, Field(ge=0, le=1000, strict=True)]


@dataclass(frozen=True, slots=True)
class Limit:
    """What may wait, besides the packet in service: packets or octets."""

    pkts: int | None = None
    size_bytes: int | None = None


def _limit(text: object) -> Limit:
    if isinstance(text, Limit):
        return text
    if isinstance(text, str) and text.strip().endswith("B"):
        limit = Limit(size_bytes=round(SIZE.parse(text)))
    else:
        limit = Limit(pkts=round(PACKETS.parse(text)))
    if (limit.pkts or 0) > MAX_PKTS or (limit.size_bytes or 0) > MAX_PKTS << 16:
        raise ValueError(f"{text!r} is out of range; at most {MAX_PKTS} pkts")
    return limit


class DropTail(Part):
    """What comes joins the end, unless the queue is full. `limit` is in packets or in octets."""

    kind: Literal["drop_tail"] = "drop_tail"
    limit: Annotated[Limit, PlainValidator(_limit)] = Limit(pkts=1000)

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        return {"kind": "drop_tail", "limit_pkts": self.limit.pkts, "limit_bytes": self.limit.size_bytes}


class _Managed(Part):
    """A queue whose keys are the engine's without their units."""

    limit: Packets | None = None

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration of what the file gives."""
        given = {key: value for key, value in self.model_dump().items() if value is not None}
        return {_ENGINE.get(key, key): value for key, value in given.items()}


_ENGINE = {
    "limit": "limit_pkts",
    "min": "min_pkts",
    "max": "max_pkts",
    "mean_packet": "mean_packet_bytes",
    "target": "target_ns",
    "update": "update_ns",
    "max_burst": "max_burst_ns",
    "interval": "interval_ns",
    "mtu": "mtu_bytes",
    "quantum": "quantum_bytes",
}


class Red(_Managed):
    """Random early detection."""

    kind: Literal["red"]
    min: Threshold | None = None
    max: Threshold | None = None
    max_probability: Probability | None = None
    weight: Probability | None = None
    gentle: Flag | None = None
    mean_packet: PacketSize | None = None
    ecn: Flag | None = None

    @model_validator(mode="after")
    def _ascending(self) -> Red:
        if self.min is not None and self.max is not None and self.max <= self.min:
            raise ValueError(f"max = {self.max:g} pkts is not above min = {self.min:g} pkts")
        return self


class Pie(_Managed):
    """Proportional integral controller enhanced."""

    kind: Literal["pie"]
    target: ControlTime | None = None
    update: ControlTime | None = None
    max_burst: Annotated[int, whole(TIME), Field(le=60 * 10**9)] | None = None
    alpha: Gain | None = None
    beta: Gain | None = None
    mean_packet: PacketSize | None = None
    ecn: Flag | None = None
    ecn_threshold: Probability | None = None


class Codel(_Managed):
    """Controlled delay."""

    kind: Literal["codel"]
    target: ControlTime | None = None
    interval: ControlTime | None = None
    mtu: PacketSize | None = None
    ecn: Flag | None = None

    @model_validator(mode="after")
    def _interval_is_longer(self) -> Codel:
        if self.target is not None and self.interval is not None and self.interval < self.target:
            raise ValueError("interval is shorter than target")
        return self


class Priority(_Managed):
    """Strict priority by DSCP: the first class is served before all others, what no class names goes last."""

    kind: Literal["priority"]
    classes: Annotated[tuple[tuple[Dscp, ...], ...], Field(min_length=1, max_length=63)] | None = None

    @model_validator(mode="after")
    def _distinct(self) -> Priority:
        named = [dscp for group in self.classes or () for dscp in group]
        twice = next((dscp for dscp in named if named.count(dscp) > 1), None)
        if twice is not None:
            raise ValueError(f"classes name DSCP {twice} twice")
        return self


class Drr(_Managed):
    """Deficit round robin over flows."""

    kind: Literal["drr"]
    quantum: PacketSize | None = None


QUEUES: dict[str, type[Part]] = {
    "drop_tail": DropTail,
    "red": Red,
    "pie": Pie,
    "codel": Codel,
    "priority": Priority,
    "drr": Drr,
}


RANDOM_QUEUES = frozenset({"red", "pie"})
"""Kinds that drop or mark packets at random (Floyd and Jacobson 1993; RFC 8033 §4.1)."""


def _table(value: object) -> object:
    """Read a bare limit, `"200 pkts"` or `"64 kB"`, as drop-tail."""
    return value if isinstance(value, dict | Part) else DropTail(limit=_limit(value))


Queue = Annotated[
    Annotated[DropTail | Red | Pie | Codel | Priority | Drr, Field(discriminator="kind")], BeforeValidator(_table)
]
