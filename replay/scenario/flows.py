"""The flows of a scenario file: the flow under test, those that share its path, and streams of datagrams.

Depends on the keys of the file and of the engine (`hindflight._native.replay`). What contradicts itself is refused
here, by key; what a profile holds is the engine's to know. Read docs/scenario.md.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from hindflight.channels.models.parameters import LONGEST_NS
from hindflight.replay.scenario import windows
from hindflight.replay.scenario.applications import Application, Greedy, Pages, PositiveTime, Spread, Stream, Writes
from hindflight.replay.scenario.quantities import MAX_PKTS, Dscp, Flag, Name, Part, Rate, Time, whole
from hindflight.toolkit.units import PACKETS, SIZE, TIME, Quantity

Profile = Literal["rfc", "linux", "ns2", "windows"]
Timeout = Annotated[int, whole(TIME), Field(ge=1_000_000, le=LONGEST_NS)]
Buffer = Annotated[int, whole(SIZE), Field(ge=2, le=2**40)]

STACK: dict[str, str] = {
    "handshake": "handshake",
    "close": "close",
    "user_timeout": "user_timeout_ns",
    "retry_limit": "retry_limit",
    "syn_retry_limit": "syn_retry_limit",
    "fast_open": "fast_open",
    "timestamps": "timestamps",
    "mss": "smss_bytes",
    "headers": "header_bytes",
    "initial_window": "initial_window_pkts",
    "initial_ssthresh": "initial_ssthresh_pkts",
    "slow_start_limit": "slow_start_limit_pkts",
    "slow_start": "slow_start",
    "limited_transmit": "limited_transmit",
    "sack": "sack",
    "recovery": "recovery",
    "rto_rule": "rto_rule",
    "min_rto": "min_rto_ns",
    "initial_rto": "initial_rto_ns",
    "max_rto": "max_rto_ns",
    "clock_granularity": "clock_granularity_ns",
    "delayed_ack": "delayed_ack",
    "delayed_ack_timeout": "delayed_ack_timeout_ns",
    "delayed_ack_after_slow_start": "delayed_ack_after_slow_start",
    "quickack_segments": "quickack_segments",
    "dsack": "dsack",
    "receive_buffer": "receive_buffer_bytes",
    "receive_buffer_max": "receive_buffer_max_bytes",
    "receive_window_growth": "receive_window_growth",
    "read_rate": "read_rate_bps",
    "reset_timer_on_each_partial_ack": "reset_timer_on_each_partial_ack",
    "tail_loss_probe": "tail_loss_probe",
    "undo": "undo",
    "frto": "frto",
    "pacing": "pacing",
    "nagle": "nagle",
    "send_buffer": "send_buffer_bytes",
    "send_buffer_max": "send_buffer_max_bytes",
    "notsent_lowat": "notsent_lowat_bytes",
    "ecn": "ecn",
    "ecn_beta": "ecn_beta",
    "freeze_warning": "freeze_warning_ns",
    "handover_adaptation": "handover_adaptation",
    "quick_start": "quick_start_bps",
    "fixed_window": "fixed_window_pkts",
}
"""Keys of a flow that override its profile, and the engine's names of them."""

USUAL_PACKET_BYTES = 1500
USUAL_HEADERS_BYTES = 52
"""What a segment is under every profile where the file does not say (replay/engine/src/config/stack.rs)."""

_SACK_RECOVERIES = ("sack", "fack", "prr", "rack_prr", "ns2_tcp_linux")


def _octets(size: Quantity, value: object) -> int:
    try:
        return round(size.parse(value))
    except ValueError as error:
        raise ValueError(f'{error}, or "greedy"') from None


FlowSize = Annotated[int, BeforeValidator(partial(_octets, SIZE)), Field(ge=1, le=2**60)]


class Stack(Part):
    """Stack parameters; what is None is as the profile has it."""

    handshake: Flag | None = None
    close: Flag | None = None
    user_timeout: Timeout | None = None
    retry_limit: Annotated[int, Field(ge=1, le=255, strict=True)] | None = None
    syn_retry_limit: Annotated[int, Field(ge=1, le=127, strict=True)] | None = None
    fast_open: Flag | None = None
    timestamps: Flag | None = None
    mss: Annotated[int, whole(SIZE), Field(ge=1, le=65_000)] | None = None
    headers: Annotated[int, whole(SIZE), Field(le=120)] | None = None
    initial_window: Annotated[int, whole(PACKETS), Field(ge=1, le=1_000_000)] | None = None
    initial_ssthresh: Annotated[int, whole(PACKETS), Field(ge=2, le=MAX_PKTS)] | None = None
    slow_start_limit: Annotated[int, whole(PACKETS), Field(ge=1, le=MAX_PKTS)] | None = None
    slow_start: Literal["standard", "hystart", "hystartpp"] | None = None
    limited_transmit: Flag | None = None
    sack: Flag | None = None
    recovery: Literal["reno", "newreno", "sack", "fack", "prr", "rack_prr", "ns2_tcp_linux"] | None = None
    rto_rule: Literal["rfc6298", "linux"] | None = None
    min_rto: Timeout | None = None
    initial_rto: Timeout | None = None
    max_rto: Timeout | None = None
    clock_granularity: Annotated[int, whole(TIME), Field(ge=0, le=10**9)] | None = None
    delayed_ack: Flag | None = None
    delayed_ack_timeout: Annotated[int, whole(TIME), Field(ge=1_000_000, le=500_000_000)] | None = None
    delayed_ack_after_slow_start: Flag | None = None
    quickack_segments: Annotated[int, Field(ge=0, le=MAX_PKTS, strict=True)] | None = None
    dsack: Flag | None = None
    receive_buffer: Annotated[int, whole(SIZE), Field(ge=2, le=2**30)] | None = None
    receive_buffer_max: Annotated[int, whole(SIZE), Field(ge=2, le=2**30)] | None = None
    receive_window_growth: Flag | None = None
    read_rate: Rate | None = None
    reset_timer_on_each_partial_ack: Flag | None = None
    tail_loss_probe: Flag | None = None
    undo: Flag | None = None
    frto: Flag | None = None
    pacing: Flag | None = None
    nagle: Literal["off", "rfc", "minshall"] | None = None
    send_buffer: Buffer | None = None
    send_buffer_max: Buffer | None = None
    notsent_lowat: Annotated[int, whole(SIZE), Field(ge=1, le=2**40)] | None = None
    ecn: Flag | None = None
    ecn_beta: Annotated[float, Field(ge=0.1, le=1, strict=True)] | None = None
    freeze_warning: PositiveTime | None = None
    handover_adaptation: Literal["off", "slow_start", "jump"] | None = None
    quick_start: Annotated[Rate, Field(ge=80_000)] | None = None
    fixed_window: Annotated[int, whole(PACKETS), Field(ge=2, le=1_000_000)] | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Stack:
        self.check_agreement()
        return self

    def packet_bytes(self) -> tuple[int, int]:
        """Return the payload and the headers of a full data packet."""
        headers = USUAL_HEADERS_BYTES if self.headers is None else self.headers
        return self.mss or USUAL_PACKET_BYTES - headers, headers

    def check_agreement(self) -> None:
        """Raise ValueError for what contradicts itself."""
        mss, headers = self.packet_bytes()
        if mss + headers > 65_535:
            raise ValueError("mss and headers together are more than an IP packet holds (65535 B)")
        if self.receive_buffer is not None and self.receive_buffer < 2 * mss:
            raise ValueError("receive_buffer holds less than two segments")
        if self.receive_buffer_max is not None and self.receive_buffer_max < (self.receive_buffer or 0):
            raise ValueError("receive_buffer_max is less than receive_buffer")
        self._send_buffer_agrees()
        if self.min_rto is not None and self.max_rto is not None and self.max_rto < self.min_rto:
            raise ValueError("max_rto is less than min_rto")
        if self.sack is False:
            if self.recovery in _SACK_RECOVERIES:
                raise ValueError(f"sack = false contradicts recovery = {self.recovery!r}, which reads SACK")
            if self.dsack:
                raise ValueError("sack = false contradicts dsack = true, which is a SACK block")
        if self.sack and self.recovery in {"reno", "newreno"}:
            raise ValueError(f"sack = true contradicts recovery = {self.recovery!r}, which does not read SACK")
        if self.tail_loss_probe and (self.sack is False or self.recovery not in {None, "rack_prr"}):
            raise ValueError('tail_loss_probe = true needs recovery = "rack_prr", which sends the probes')
        if self.ecn_beta is not None and not self.ecn:
            raise ValueError("ecn_beta has no effect without ecn = true")
        self._acks_agree()
        if self.handshake is False and self.fast_open:
            raise ValueError("handshake = false contradicts fast_open, which sends data with the SYN")
        if self.handshake is False and self.quick_start is not None:
            raise ValueError("handshake = false contradicts quick_start, which asks with the SYN")

    def _acks_agree(self) -> None:
        if self.delayed_ack is False and (self.delayed_ack_timeout is not None or self.quickack_segments is not None):
            raise ValueError("delayed_ack = false contradicts delayed_ack_timeout and quickack_segments")
        if self.delayed_ack is False and self.delayed_ack_after_slow_start:
            raise ValueError("delayed_ack = false contradicts delayed_ack_after_slow_start = true")

    def _send_buffer_agrees(self) -> None:
        if self.send_buffer_max is not None and (self.send_buffer or self.send_buffer_max + 1) > self.send_buffer_max:
            raise ValueError("send_buffer_max has no effect without a send_buffer that is no larger")
        if self.notsent_lowat is not None and self.send_buffer is None:
            raise ValueError("notsent_lowat has no effect without send_buffer")

    def overrides(self) -> dict[str, Any]:
        """Return what differs from the profile, by the keys of the file, in their order."""
        given = {key: getattr(self, key) for key in STACK}
        return {key: value for key, value in given.items() if value is not None}


def of_engine(profile: str) -> tuple[str, dict[str, Any]]:
    """Return the engine's profile for one of the file, and what differs from it, by the keys of the file."""
    if profile != "windows":
        return profile, {}
    values = {key: value for key, (value, _) in windows.WINDOWS.items()}
    return windows.BASE, Stack.model_validate(values).overrides()


class LegStack(Stack):
    """Stack parameters of one connection: what differs from the flow's, or from `profile` where that is given."""

    profile: Profile | None = None


class Flow(Stack):
    """The flow under test: variants and proxies are those that `compare` names."""

    start: Time = 0
    stop: Time | None = None
    size: Annotated[FlowSize | None, BeforeValidator(lambda size: None if size == "greedy" else size)] = None
    application: Application = Greedy()
    profile: Profile = "rfc"
    dscp: Dscp = 0

    @model_validator(mode="after")
    def _fits(self) -> Flow:
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop is not later than start")
        if self.size is not None and not isinstance(self.application, Greedy):
            kind = self.application.kind
            raise ValueError(f"size contradicts an application of kind {kind!r}, which determines its own size")
        if isinstance(self.application, Greedy) and self.application.write is not None and self.send_buffer is None:
            raise ValueError("application.write has no effect without send_buffer")
        if isinstance(self.application, Stream) and self.read_rate is not None:
            raise ValueError("read_rate contradicts a stream, which is read as it arrives and played at its own rate")
        if self.close and self._is_endless():
            raise ValueError("close has no effect on a flow without end: give it a size, or an application that ends")
        return self

    def _is_endless(self) -> bool:
        if self.stop is not None:
            return False
        match self.application:
            case Greedy():
                return self.size is None
            case Pages():
                return self.application.pages is None
            case _:
                return not isinstance(self.application, Writes)

    def engine_flow(self) -> dict[str, Any]:
        """Return the engine's configuration but for the name, the variant, the stack and the proxies."""
        return {
            "start_ns": self.start,
            "stop_ns": self.stop,
            "size_bytes": self.size,
            "application": self.application.engine(),
            "dscp": self.dscp,
        }


class SharingFlow(Flow):
    """A flow that shares the path of the flow under test, the same in every run."""

    name: Name
    variant: Name
    sender: Annotated[Name | None, Field(alias="from")] = None
    receiver: Annotated[Name | None, Field(alias="to")] = None
    proxies: tuple[Name, ...] = ()


class Datagrams(Part):
    """A stream of datagrams on the path: of constant rate, or on and off."""

    name: Name
    start: Time = 0
    stop: Time | None = None
    sender: Annotated[Name | None, Field(alias="from")] = None
    receiver: Annotated[Name | None, Field(alias="to")] = None
    dscp: Dscp = 0
    packet: Annotated[int, whole(SIZE), Field(ge=29, le=65_535)]
    rate: Rate
    on: PositiveTime | None = None
    off: Time | None = None
    spread: Spread | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Datagrams:
        if self.stop is not None and self.stop <= self.start:
            raise ValueError("stop is not later than start")
        if (self.on is None) != (self.off is None):
            raise ValueError("on and off belong together; leave both out for a constant rate")
        if self.spread is not None and self.on is None:
            raise ValueError("spread has no effect without on and off")
        return self

    def engine(self) -> dict[str, Any]:
        """Return the engine's configuration."""
        bursts = {"on_ns": self.on, "off_ns": self.off, "spread": self.spread or "fixed"}
        return {
            "name": self.name,
            "start_ns": self.start,
            "stop_ns": self.stop,
            "from": self.sender,
            "to": self.receiver,
            "dscp": self.dscp,
            "packet_bytes": self.packet,
            "rate_bps": self.rate,
            "bursts": None if self.on is None else bursts,
        }
