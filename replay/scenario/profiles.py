"""What each stack profile sets, key by key: values from the engine, ranges from the scenario's model, and where each
comes from.

Depends on the keys of `[flow]` and the engine's profiles, not on how a stack uses them. `docs/profiles.md` is
generated from this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from hindflight.replay.catalogue import profile_parameters
from hindflight.replay.scenario.flows import STACK, Profile, Stack, of_engine
from hindflight.toolkit.errors import HindflightError, did_you_mean
from hindflight.toolkit.units import PACKETS, RATE, SIZE, TIME

PROFILES: tuple[str, ...] = get_args(Profile)
ENGINE_PROFILES = tuple(dict.fromkeys(of_engine(profile)[0] for profile in PROFILES))
"""Those that the engine knows."""

_TIMESTAMPS_BYTES = 12

_WRITTEN: dict[str, Callable[[float], str]] = {
    "ns": TIME.write,
    "bps": RATE.write,
    "bytes": SIZE.write,
    "pkts": PACKETS.write,
}

MEANINGS: dict[str, tuple[str, str]] = {
    "handshake": (
        "open with SYN, SYN-ACK, ACK; else the connection is open when the flow starts",
        "RFC 9293 §3.5; ns-2's one-way agents have none",
    ),
    "close": ("FIN in both directions after the last octet", "RFC 9293 §3.6; off: a run measures the transfer"),
    "user_timeout": (
        "reset when nothing is acknowledged for so long after the first timeout",
        "RFC 5482; Linux: unset",
    ),
    "retry_limit": (
        "reset after the time of so many successive timeouts from min_rto on, or after so many unanswered probes",
        "Linux tcp_retries2; ns-2 never gives up",
    ),
    "syn_retry_limit": ("retransmissions of the SYN before the sender gives up", "Linux tcp_syn_retries"),
    "fast_open": (
        "the SYN carries the first data, as after an earlier connection (TCP Fast Open)",
        "RFC 7413; Linux: only where the application asks for it",
    ),
    "timestamps": (
        "timestamps option: 12 octets of header, at most three SACK blocks instead of four",
        "RFC 7323 §3; Linux tcp_timestamps; ns-2 timestamps_",
    ),
    "mss": ("payload of a full segment", "a packet of 1500 B less headers"),
    "headers": ("IP and TCP headers with the options of every segment", "RFC 9293 §3.1 and RFC 7323 appendix A"),
    "initial_window": ("first congestion window", "RFC 6928 §2; Linux TCP_INIT_CWND; ns-2 windowInit_"),
    "initial_ssthresh": (
        "first slow start threshold; none: unlimited",
        "RFC 5681 §3.1; Linux TCP_INFINITE_SSTHRESH; ns-2 window_, as receive_buffer",
    ),
    "slow_start_limit": (
        "segments by which one ACK may raise cwnd in slow start; none: what it acknowledges",
        "RFC 5681 §3.1; Linux tcp_slow_start",
    ),
    "slow_start": (
        "exit from slow start without a loss; none: the variant's, standard except for cubic under linux (hystart)",
        "RFC 5681 §3.1; Linux tcp_cubic.c; RFC 9406",
    ),
    "limited_transmit": ("a new segment for each of the first two duplicate ACKs", "RFC 3042; ns-2 singledup_"),
    "sack": ("selective acknowledgements, where the recovery uses them", "RFC 2018; Linux tcp_sack; ns-2 Sack1"),
    "recovery": (
        "loss detection and recovery, for variants that do not determine it",
        "RFC 6675; Linux: RFC 8985 (RACK) and RFC 9937 (PRR); ns-2 TCP/Linux for Linux modules, else Sack1",
    ),
    "rto_rule": (
        "formula of the retransmission timeout; ns2 only under profile ns2",
        "RFC 6298 §2; Linux tcp_rtt_estimator; ns-2 tcp.cc",
    ),
    "min_rto": ("minimum retransmission timeout", "RFC 6298 §2.4; Linux TCP_RTO_MIN; ns-2 minrto_"),
    "initial_rto": ("timeout before the first round-trip time", "RFC 6298 §2.1; Linux TCP_TIMEOUT_INIT; ns-2 3 s"),
    "max_rto": ("maximum retransmission timeout", "RFC 6298 §2.5; Linux TCP_RTO_MAX; ns-2 maxrto_"),
    "clock_granularity": (
        "granularity G of the timeout's clock",
        "RFC 6298 §2.3 and §4; Linux asks for none, its ticks are fixed; ns-2 tcpTick_ of older releases, the papers",
    ),
    "delayed_ack": (
        "acknowledge every second full segment, or after a time",
        "RFC 5681 §4.2; Linux; ns-2 TCPSink does not",
    ),
    "delayed_ack_timeout": (
        "maximum delay of an ACK",
        "RFC 9293 §3.8.6.3: less than 0.5 s; Linux TCP_DELACK_MIN",
    ),
    "delayed_ack_after_slow_start": (
        "acknowledge every segment while the sender is in slow start (docs/mechanisms.md)",
        "RFC 2760 §3.2.3",
    ),
    "quickack_segments": (
        "segments acknowledged immediately, at the start and after a duplicate",
        "Linux TCP_MAX_QUICKACKS",
    ),
    "dsack": ("report duplicates", "RFC 2883; Linux tcp_dsack"),
    "receive_buffer": (
        "receive buffer, which limits the window",
        "large enough not to limit; Linux tcp_rmem of 6.18, 5/8 of it; ns-2 window_ of 20 packets, here as octets",
    ),
    "receive_buffer_max": (
        "maximum to which it grows with the octets read per round trip; none: fixed, as where receive_buffer is given",
        "Linux tcp_rmem of 6.18, 5/8 of it",
    ),
    "receive_window_growth": ("the window opens as data come", "Linux tcp_grow_window"),
    "read_rate": ("rate at which the application reads; none: immediately", "Hindflight"),
    "reset_timer_on_each_partial_ack": (
        "restart the timer at every partial ACK (slow but steady); else at the first (impatient)",
        "RFC 6582 §4",
    ),
    "tail_loss_probe": (
        "probe for a loss at the tail; needs recovery rack_prr",
        "RFC 8985 §7; Linux tcp_early_retrans",
    ),
    "undo": (
        "undo the window decrease of a spurious retransmission or timeout, detected by timestamp echo or DSACK",
        "RFC 3522, RFC 3708, RFC 4015; Linux tcp_try_undo_recovery; ns-2 does not",
    ),
    "frto": (
        "send new data after a timeout to detect whether it was spurious: under Linux's recovery always, else without "
        "timestamps",
        "RFC 5682; Linux tcp_frto; ns-2 does not",
    ),
    "pacing": (
        "space the segments of a window-based variant: twice the window per round trip in slow start, 1.2 times after "
        "it; bbr, bbr3 and other variants that pace always do so",
        "Linux tcp_pacing_ss_ratio, tcp_pacing_ca_ratio, off unless a socket asks",
    ),
    "nagle": (
        "rule that delays a segment that is not full",
        "RFC 9293 §3.7.4; Linux tcp_minshall_check",
    ),
    "send_buffer": (
        "memory for octets written and not acknowledged; none: unlimited",
        "Hindflight",
    ),
    "send_buffer_max": ("maximum to which it grows with cwnd; none: fixed", "Linux tcp_sndbuf_expand"),
    "notsent_lowat": ("limit of unsent octets in the send buffer", "Linux TCP_NOTSENT_LOWAT, unlimited"),
    "ecn": ("negotiate ECN", "RFC 3168 §6.1; Linux tcp_ecn asks for it where it is 1"),
    "ecn_beta": ("factor on FlightSize at a congestion mark; none: as for a loss", "RFC 8511 §3"),
    "freeze_warning": (
        "time before an outage at which the receiver closes its window; none: never, except for freeze-tcp (500 ms)",
        "Goff et al. 2000 §3.1",
    ),
    "handover_adaptation": ("reaction of the sender to announced handovers", "docs/mechanisms.md"),
    "quick_start": ("rate that the SYN requests from the routers; none: no request", "RFC 4782"),
    "fixed_window": ("fixed window, for measurements; none: the variant's", "Hindflight"),
}
"""Meaning of each key, and the source of the profiles' values."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One key: what it may be, what each profile sets (as a file would have it), what it is, and the source."""

    key: str
    allowed: str
    values: Mapping[str, str]
    meaning: str
    source: str


def parameters_of(profile: str) -> dict[str, Any]:
    """Return the stack parameters that a profile fixes, by the engine's names; ValueError for an unknown profile."""
    base, own = of_engine(profile)
    values = profile_parameters(base)
    changed = {STACK[key]: value for key, value in own.items()}
    if values["timestamps"] and changed.get("timestamps") is False:
        changed["smss_bytes"] = values["smss_bytes"] + _TIMESTAMPS_BYTES
        changed["header_bytes"] = values["header_bytes"] - _TIMESTAMPS_BYTES
    return values | changed


def settings() -> tuple[Setting, ...]:
    """Return every key of the stack in the order of the scenario's model."""
    profiles = {profile: parameters_of(profile) for profile in PROFILES}
    fields = Stack.model_json_schema()["properties"]
    return tuple(
        Setting(
            key,
            _allowed(name, _without_null(fields[key])),
            {profile: _written(name, parameters[name]) for profile, parameters in profiles.items()},
            *MEANINGS[key],
        )
        for key, name in STACK.items()
    )


def find_setting(key: str) -> Setting:
    """Return the setting of `key`. HindflightError with the most similar key if there is none."""
    known = {setting.key: setting for setting in settings()}
    if key not in known:
        guess = did_you_mean(key, known)
        raise HindflightError(f"there is no key {key}", guess or "`hindflight scenario profiles` lists them all")
    return known[key]


def _written(name: str, value: object) -> str:
    """Return a value of the engine as a file has it."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int() | float():
            unit = name.rpartition("_")[2]
            return _WRITTEN[unit](value) if unit in _WRITTEN else f"{value:.12g}"
        case _:
            return str(value)


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    chosen = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return dict(chosen[0])


def _allowed(name: str, schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(schema["enum"])
    if schema.get("type") == "boolean":
        return "true, false"
    # Where a text with a unit is read first, pydantic leaves the bounds under their own names.
    minimum, maximum = schema.get("minimum", schema.get("ge", 0)), schema.get("maximum", schema.get("le"))
    return f"{_written(name, minimum)} to {_written(name, maximum)}"
