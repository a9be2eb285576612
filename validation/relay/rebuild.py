"""A recorded run of a relay as the engine's configuration: both links, and a proxy with the recorded sockets.

Buffers are those that the relay's and the sender's sockets reported when they were connected; where the relay set no
size they grow as the kernel's settings allow. The relay's process reads nothing before the first segment that it passed
on, as the sender's writes nothing before its first one. How much of a first write had left when its process went on is
as recorded, where the recording shows that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from validation.rebuild import (
    ACK_QUEUE_PKTS,
    ACKED_BY_HANDSHAKE,
    NOTSENT_LOWAT_BYTES,
    PIECE_MEMORY_BYTES,
    VARIANTS,
    WRITE_BYTES,
    chance_params,
    drop_tail,
    handshake_jitter,
    losses,
    schedule,
    window_bytes,
)
from validation.recorded import KernelFlow, KernelRun
from validation.relay.recorded import RelayRun

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

INITIAL_WINDOW_PKTS = 10
"""Linux (`TCP_INIT_CWND`)."""

BURST_PKTS = 2
"""Linux (`tcp_min_tso_segs`): segments of the bursts that an initial window leaves in."""


def rebuild_relay(run: RelayRun) -> dict[str, Any]:
    """Return the engine's configuration of `run`, which ends with it."""
    sender, onward = run.flows
    proxy = {
        "node": "relay",
        "variant": VARIANTS[onward.variant],
        "params": chance_params(onward),
        "stack": {"profile": "linux", "overrides": _onward_stack(run)},
        "advertise": "sockets",
        "first_read_ns": int(onward.packets.t_ns[0]),
        "first_left_pkts": first_left_of_relay(onward),
    }
    flow = {
        "name": "flow 1",
        "start_ns": 0,
        "variant": VARIANTS[sender.variant],
        "params": chance_params(sender),
        "profile": "linux",
        "application": {
            "kind": "greedy",
            "write_bytes": WRITE_BYTES,
            "first_write_ns": sender.first_data_ns,
            "first_left_pkts": first_left_of_sender(sender),
        },
        "stack": _first_stack(run),
        "proxies": [proxy],
    }
    links = [
        _link(f"leg{at}", leg, start_ns)
        for at, (leg, start_ns) in enumerate(zip(run.legs, run.link_t0_ns, strict=True))
    ]
    return {
        "duration_ns": sender.end_ns,
        "path": {"nodes": ["sender", "relay", "receiver"], "links": links},
        "flows": [flow],
    }


def first_left_of_relay(onward: KernelFlow) -> int | None:
    """Return how many segments of the relay's first write had left when it wrote more; None where that is not shown.

    What the device has not confirmed holds back the rest (Linux, `tcp_small_queue_check`), and the device confirms
    while the process goes on writing, so that it is not the same twice. What had left is no longer in the piece that
    the second write fills up, and all pieces behind it are full ones: until an ACK comes the socket takes a number of
    whole pieces more than these segments. That is not shown where a piece may be as small as what leaves.
    """
    info = onward.tcp_info
    if info is None:
        return None
    taken, pipe = _taken(info), info["pipe"]
    refused = (pipe[:-1] > 0) & (pipe[1:] > 0) & (taken[:-1] == taken[1:]) & (taken[:-1] > 0)
    at = int(np.argmax(refused))
    if not refused.any() or info["bytes_acked"][at] > ACKED_BY_HANDSHAKE:
        return None
    piece = _piece_bytes(info, at, onward.smss_bytes)
    if piece <= INITIAL_WINDOW_PKTS * onward.smss_bytes:
        return None
    left = int(taken[at]) % piece
    return left // onward.smss_bytes if _is_of_initial_window(left, onward.smss_bytes) else None


def first_left_of_sender(sender: KernelFlow) -> int | None:
    """Return how many segments of the sender's first write had left when it went on; None where that is not shown.

    As with the relay, but the write has an end: where the socket has taken all of it, the most segments with which it
    has the memory for that.
    """
    info, smss = sender.tcp_info, sender.smss_bytes
    if info is None:
        return None
    taken = _taken(info)
    unacknowledged = np.flatnonzero((taken > 0) & (info["bytes_acked"] <= ACKED_BY_HANDSHAKE))
    if len(unacknowledged) == 0:
        return None
    at = int(unacknowledged[-1])
    piece, limit = _piece_bytes(info, at, smss), int(info["sndbuf"][at])
    for left_pkts in range(INITIAL_WINDOW_PKTS, 0, -BURST_PKTS):
        filled, pieces = left_pkts * smss + piece, left_pkts // BURST_PKTS + 1
        while filled < WRITE_BYTES and filled + pieces * PIECE_MEMORY_BYTES < limit:
            filled, pieces = filled + piece, pieces + 1
        if min(filled, WRITE_BYTES) == taken[at]:
            return left_pkts
    return None


def _taken(info: Mapping[str, Integers]) -> Integers:
    """Octets that the socket had taken from its process by each poll."""
    return info["bytes_sent"] - info["bytes_retrans"] + info["notsent_bytes"]


def _piece_bytes(info: Mapping[str, Integers], at: int, smss_bytes: int) -> int:
    """Size of a full piece of what is written: whole segments in half of the window (`tcp_bound_to_half_wnd`)."""
    return int(info["snd_wnd"][at]) // 2 // smss_bytes * smss_bytes


def _is_of_initial_window(octets: int, smss_bytes: int) -> bool:
    """Whether so much can have left, in whole segments.

    Not nothing: the device holds back no packet while all that was sent is acknowledged (`tcp_small_queue_check`).
    """
    return octets % smss_bytes == 0 and 0 < octets <= INITIAL_WINDOW_PKTS * smss_bytes


def _link(name: str, leg: KernelRun, start_ns: int) -> dict[str, Any]:
    params = leg.params
    shared = {
        "rate_bps": float(params["rate"]),
        "delay_ns": round(params["rtt_ms"] * 1e6 / 2),
        "in_order": False,
        "schedule": schedule(params["events"], start_ns),
    }
    syn, answer = handshake_jitter(leg)
    forward = {**shared, "queue": drop_tail(params["queue"]), "loss": losses(leg.lost), "jitter": syn}
    reverse = {**shared, "queue": drop_tail(ACK_QUEUE_PKTS), "jitter": answer}
    return {"name": name, "forward": forward, "reverse": reverse}


def _first_stack(run: RelayRun) -> dict[str, Any]:
    """Of the connection to the relay: the sender's own buffer and the relay's receiving one."""
    info = run.flows[0].tcp_info
    send_bytes = int(info["sndbuf"][0]) if info is not None else None
    return {
        "smss_bytes": run.flows[0].smss_bytes,
        "notsent_lowat_bytes": NOTSENT_LOWAT_BYTES,
        "send_buffer_bytes": send_bytes,
        "send_buffer_max_bytes": _most(run, "tcp_wmem"),
        **_receive_buffer(run, 0, run.first["rcvbuf"] if "rcvbuf" in run.given else None),
    }


def _onward_stack(run: RelayRun) -> dict[str, Any]:
    """Of the connection onward: the relay's sending buffer and that of a receiver which sets none."""
    grows = {} if "sndbuf" in run.given else {"send_buffer_max_bytes": _most(run, "tcp_wmem")}
    return {
        "smss_bytes": run.flows[1].smss_bytes,
        "send_buffer_bytes": run.first["sndbuf"],
        **grows,
        **_receive_buffer(run, 1, None),
    }


def _receive_buffer(run: RelayRun, leg: int, given_bytes: int | None) -> dict[str, int]:
    """Of the size that the receiver of `leg` was given; without one it begins with the default and grows.

    Not with what a socket of the relay reports: that may have grown by then (Linux, `tcp_clamp_window`).
    """
    smss_bytes = run.flows[leg].smss_bytes
    if given_bytes is not None:
        return {"receive_buffer_bytes": window_bytes(given_bytes, smss_bytes)}
    default = int(run.legs[leg].sysctl["tcp_rmem"].split()[1])
    return {
        "receive_buffer_bytes": window_bytes(default, smss_bytes),
        "receive_buffer_max_bytes": window_bytes(_most(run, "tcp_rmem"), smss_bytes),
    }


def _most(run: RelayRun, setting: str) -> int:
    return int(run.legs[0].sysctl[setting].split()[2])
