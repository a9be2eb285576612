"""A recorded run as the engine's configuration: the same link, the same schedule, the same losses by position.

Depends on the recorded run and the engine's configuration (`hindflight._native.replay`). Only losses of the loss stage
are replayed; what the queue drops must come from the engine's own queue.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from validation.cycle_phases import first_phases
from validation.recorded import KernelFlow, KernelRun, Packets

if TYPE_CHECKING:
    import numpy.typing as npt

    Integers = npt.NDArray[np.int64]

VARIANTS = {"reno": "linux-reno", "cubic": "cubic", "bbr": "bbr"}
"""The kernel's name of a congestion control, and ours."""

ACK_QUEUE_PKTS = 1000
"""Queue of the ACK direction."""

BEYOND_PKTS = 1 << 40
"""Length of the replayed trace: longer than any run, so that it never starts again."""

WRITE_BYTES = 65536
"""What the recorded application wrote by one call: every short segment of the captures ends a multiple of it."""

WRITE_EVERY_NS = 20_000_000
"""How often a recorded application of a given rate wrote (`flow.py`); a write that is late follows the last at once."""

PIECE_MEMORY_BYTES = 832
"""Memory that a piece of a write takes in addition to its octets: see the engine (`app/send_buffer.rs`)."""

POLL_EVERY_NS = 5_000_000
"""How often TCP_INFO was read (`flow.py`): a write is shown this much later, at most."""

NOTSENT_LOWAT_BYTES = 131072
"""The recorded socket's `TCP_NOTSENT_LOWAT`: TCP_INFO has up to 131,064 unsent octets in every run, in none more."""

ACKED_BY_HANDSHAKE = 1
"""`bytes_acked` before any data: the SYN's octet."""

BARE_SYN_BYTES, TIMESTAMPS_BYTES, SACK_PERMITTED_BYTES = 48, 12, 4
"""Of a SYN and its answer with MSS and window scale, and of the options that a run can be without. The timestamps come
with two octets of padding; SACK-permitted takes their place, if there are timestamps."""

REPLAYS = 5
"""Replays of a run of which the median is taken, as many as Linux's own spread takes recordings."""

SEGMENT_MEMORY_BYTES = 2304
"""Memory that a received full Ethernet frame takes: a buffer of 2048 octets and its header of 256."""


def missing_variants(run: KernelRun, built: tuple[str, ...]) -> list[str]:
    """Return our names of the variants of `run` that the engine does not have."""
    wanted = {VARIANTS.get(flow.variant, flow.variant) for flow in run.flows}
    return sorted(wanted - set(built))


def rebuild(run: KernelRun, duration_ns: int) -> dict[str, Any]:
    """Return the engine's configuration of `run`, which ends `duration_ns` after the first SYN.

    The engine's clock begins with a step of its timer wheel, of every length. It is the hosts' last one before that SYN
    of the longest kind that the recording shows; where it shows not even a tick, it is at the SYN.
    """
    params = run.params
    shared = {
        "rate_bps": float(params["rate"]),
        "delay_ns": _one_way_ns(params["rtt_ms"]),
        "in_order": bool(params.get("fifo", 0)),
        "schedule": schedule(params.get("events", []), run.since_step_ns),
    }
    syn, answer = handshake_jitter(run)
    forward = {**shared, "queue": drop_tail(params["queue"]), "loss": losses(run.lost), "jitter": syn}
    reverse = {**shared, "queue": drop_tail(ACK_QUEUE_PKTS), "jitter": answer, **_ack_losses(run)}
    return {
        "duration_ns": duration_ns + run.since_step_ns,
        "path": {
            "nodes": ["sender", "receiver"],
            "links": [{"name": "link", "forward": forward, "reverse": reverse}],
        },
        "flows": [_flow(run, number, flow) for number, flow in enumerate(run.flows, 1)],
    }


def handshake_jitter(run: KernelRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the jitter of both directions of the link that makes the handshake of the first flow as long as it was.

    All of it is in the answer to the SYN, the first packet of its direction: what hosts and emulator took, each way.
    """
    return recorded_delays(0), recorded_delays(_handshake_late_ns(run))


def recorded_delays(*delays_ns: int) -> dict[str, Any]:
    """Return jitter that delays the first packets so much, and no others."""
    return {"kind": "recorded", "delays_ns": list(delays_ns)}


def _handshake_late_ns(run: KernelRun) -> int:
    """By how much longer the first handshake took than the link, as its sender saw it: its first round-trip time."""
    flow = run.flows[0]
    info = flow.tcp_info
    if info is None or info["bytes_acked"][0] > ACKED_BY_HANDSHAKE:
        return max(0, flow.first_data_ns - flow.first_write_ns)
    link_ns: int = round(run.params["rtt_ms"] * 1e6) + 2 * round(_syn_bytes(run) * 8e9 / run.params["rate"])
    return max(0, int(info["rtt"][0]) * 1000 - link_ns)


def _syn_bytes(run: KernelRun) -> int:
    """Of a SYN of `run`, and of its answer, with their options."""
    if run.params.get("timestamps", 1):
        return BARE_SYN_BYTES + TIMESTAMPS_BYTES
    return BARE_SYN_BYTES + (SACK_PERMITTED_BYTES if run.params.get("sack", 1) else 0)


def as_it_was_timed(configuration: dict[str, Any], *runs: KernelRun) -> dict[str, Any]:
    """Return `configuration` with packets as late as the emulator delivered them; one of `runs` for each link.

    What `configuration` delays already, the handshake, stays as it is, which contains the emulator's share. Late, it
    delivered all packets that were due, in their order: none overtook another unless the delay fell.
    """
    timed = []
    for link, run in zip(configuration["path"]["links"], runs, strict=True):
        late = zip(("forward", "reverse"), run.late_ns, strict=True)
        sides = {side: _as_late(link[side], delays_ns) for side, delays_ns in late}
        timed.append({**link, **sides})
    return {**configuration, "path": {**configuration["path"], "links": timed}}


def late_as_at_another_time(run: KernelRun, draw: int) -> KernelRun:
    """Return `run` with the emulator's delays rotated by a random offset that depends on `draw`; as it was for 0.

    The delays stay in their order, so that those that came together do so again.
    """
    if draw == 0:
        return run
    chance = np.random.default_rng(draw)
    data, acks = (np.roll(late, chance.integers(1, max(2, len(late)))).tolist() for late in run.late_ns)
    return replace(run, late_ns=(data, acks))


def _as_late(direction: Mapping[str, Any], delays_ns: Sequence[int]) -> dict[str, Any]:
    delays = [direction["delay_ns"], *(step["delay_ns"] for step in direction["schedule"] if "delay_ns" in step)]
    falls = any(after < before for before, after in pairwise(delays))
    handshake = direction["jitter"]["delays_ns"]
    jitter = recorded_delays(*handshake, *delays_ns[len(handshake) :])
    return {**direction, "jitter": jitter, "in_order": direction["in_order"] or not falls}


def losses(positions: Sequence[int]) -> dict[str, Any]:
    """Return a loss model: the packets at these positions of the loss stage are lost, and no others."""
    if not positions:
        return {"kind": "none"}
    return {"kind": "trace", "mode": "replayed", "positions": list(positions), "known_pkts": BEYOND_PKTS}


def _ack_losses(run: KernelRun) -> dict[str, Any]:
    """Lost ACKs by position: the engine's receiver acknowledges as the recorded one does, until the two part."""
    return {"loss": losses(run.acks_lost), "loss_applies_to": "all"} if run.acks_lost else {}


def drop_tail(limit_pkts: int) -> dict[str, Any]:
    """Return a queue of so many packets."""
    return {"kind": "drop_tail", "limit_pkts": limit_pkts}


def _flow(run: KernelRun, number: int, flow: KernelFlow) -> dict[str, Any]:
    stack: dict[str, Any] = {"smss_bytes": flow.smss_bytes, **buffers(run.sysctl, flow.smss_bytes)}
    for option in ("sack", "timestamps"):
        if not run.params.get(option, 1):
            stack[option] = False
    if "rcvbuf" in run.params:
        # A buffer of a given size (SO_RCVBUF) does not grow. Linux doubles the size that it is given.
        stack["receive_buffer_bytes"] = window_bytes(2 * int(run.params["rcvbuf"]), flow.smss_bytes)
        stack.pop("receive_buffer_max_bytes", None)
    described: dict[str, Any] = {
        "name": f"flow {number}",
        "start_ns": flow.syn_ns + run.since_step_ns,
        "variant": VARIANTS[flow.variant],
        "profile": "linux",
        "application": _application(run, flow),
        "stack": stack,
    }
    if params := chance_params(flow):
        described["params"] = params
    return described


def chance_params(flow: KernelFlow) -> dict[str, Any]:
    """Return what the kernel drew by chance in `flow`, as parameters of its variant."""
    if flow.variant != "bbr" or flow.tcp_info is None:
        return {}
    return {"first_phases": first_phases(flow.tcp_info, flow.acks_ns)}


def _application(run: KernelRun, flow: KernelFlow) -> dict[str, Any]:
    """One that always has data, or the recorded writes where the recorded one paused or wrote by the clock."""
    kind, _, rate_bps = run.params.get("write", "greedy").partition(":")
    start_ns = flow.syn_ns
    if kind == "rate":
        octets = max(1, int(float(rate_bps) * WRITE_EVERY_NS / 8e9))
        at_ns = clocked_writes(run, flow, octets)
        return {"kind": "writes", "at_ns": at_ns, "bytes": [octets] * len(at_ns)}
    if kind == "greedy" or flow.tcp_info is None:
        return {"kind": "greedy", "write_bytes": WRITE_BYTES, "first_write_ns": _first_write_ns(run, flow)}
    times_ns, sizes = writes(flow.tcp_info, flow.packets)
    return {"kind": "writes", "at_ns": [max(0, at - start_ns) for at in times_ns], "bytes": sizes}


def _first_write_ns(run: KernelRun, flow: KernelFlow) -> int:
    """Return when the application wrote first, from the SYN: the handshake of the first flow is as long as it was."""
    return flow.first_data_ns if flow is run.flows[0] else flow.first_write_ns


def clocked_writes(run: KernelRun, flow: KernelFlow, octets: int) -> list[int]:
    """Return when the application wrote by its clock, `octets` each time, from the start of the flow.

    A write was late where what shows it came more than a poll after it was due, although the socket had room at the
    poll before: the host had not woken the application. One without room was called when it was due. Room is a third of
    the buffer as it was at first: it only grows, so that none is seen where there was none.
    """
    start_ns = flow.syn_ns
    due_ns = np.arange(_first_write_ns(run, flow), flow.end_ns - start_ns, WRITE_EVERY_NS)
    buffer_bytes = buffers(run.sysctl, flow.smss_bytes).get("send_buffer_bytes")
    info = flow.tcp_info
    if info is None or buffer_bytes is None:
        return [int(at) for at in due_ns]
    number = np.arange(len(due_ns))
    accepted = np.append(_accepted(info), np.iinfo(np.int64).max)
    held = np.append(0, accepted[:-1] - info["bytes_acked"])
    used = held + octets + PIECE_MEMORY_BYTES * -(-(held + octets) // min(octets, flow.smss_bytes))
    had_room = 3 * used <= 2 * buffer_bytes
    poll = np.searchsorted(accepted, octets * number, side="right")
    polled_ns = np.append(info["t_ns"], 0)[poll]
    shown_ns = np.minimum(polled_ns, _left_ns(flow.packets, octets * number + 1)) - start_ns
    late = had_room[poll] & (shown_ns > due_ns + POLL_EVERY_NS)
    # Each is a separate call: what one of them cannot send waits for the next.
    at_ns = np.maximum.accumulate(np.where(late, shown_ns, due_ns) - number) + number
    return [int(at) for at in at_ns]


def writes(info: Mapping[str, Integers], packets: Packets) -> tuple[list[int], list[int]]:
    """Return when the application wrote, and how many octets.

    That was by the poll of TCP_INFO that first shows the octets, and no later than the first of them left. A write for
    which the socket had no room was called when the one before it was accepted: when there is room for it is for the
    engine's socket to say.
    """
    accepted = _accepted(info)
    new = np.diff(accepted, prepend=0)
    shown = np.flatnonzero(new > 0)
    left_ns = _left_ns(packets, accepted[shown] - new[shown] + 1)
    at_ns = np.maximum.accumulate(np.minimum(info["t_ns"][shown], left_ns))
    waited = _had_no_room(info)[shown]
    first = np.maximum.accumulate(np.where(waited, 0, np.arange(len(shown))))
    return at_ns[first].tolist(), new[shown].tolist()


def _accepted(info: Mapping[str, Integers]) -> Integers:
    """Octets that the socket had taken from the application by each poll."""
    return info["bytes_sent"] - info["bytes_retrans"] + info["notsent_bytes"]


def _left_ns(packets: Packets, octets: Integers) -> Integers:
    """Return when each of `octets`, by number, left first; the end of time where it never did."""
    carrier = np.searchsorted(np.maximum.accumulate(packets.end), octets, side="right")
    return np.append(packets.t_ns, np.iinfo(np.int64).max)[carrier]


def _had_no_room(info: Mapping[str, Integers]) -> npt.NDArray[np.bool_]:
    """Mark the polls that show a write which had to wait.

    At the poll before, more than half of `TCP_NOTSENT_LOWAT` was unsent, where Linux (`tcp_stream_memory_free`) wakes
    no writer, or the memory of the send buffer was full since then.
    """
    unsent = np.concatenate([[0], info["notsent_bytes"][:-1]])
    full = np.diff(info["sndbuf_limited"], prepend=0) > 0
    return np.asarray((unsent >= NOTSENT_LOWAT_BYTES // 2) | full, bool)


def window_bytes(memory_bytes: int, smss_bytes: int) -> int:
    """Return the window that Linux takes from so much memory (`tcp_measure_rcv_mss`).

    It is the share that the octets of a full segment have in its memory, in 256ths.
    """
    return memory_bytes * (smss_bytes * 256 // SEGMENT_MEMORY_BYTES) // 256


def buffers(sysctl: Mapping[str, str], smss_bytes: int) -> dict[str, int]:
    """Both buffers as the kernel's settings have them, memory made octets of window; defaults where none is known."""
    if "tcp_rmem" not in sysctl or "tcp_wmem" not in sysctl:
        return {}
    _, receive, receive_most = (window_bytes(int(octets), smss_bytes) for octets in sysctl["tcp_rmem"].split())
    _, send, send_most = (int(octets) for octets in sysctl["tcp_wmem"].split())
    return {
        "receive_buffer_bytes": receive,
        "receive_buffer_max_bytes": receive_most,
        "send_buffer_bytes": send,
        "send_buffer_max_bytes": send_most,
        "notsent_lowat_bytes": NOTSENT_LOWAT_BYTES,
    }


def schedule(events: list[list[Any]], start_ns: int = 0) -> list[dict[str, Any]]:
    """Return changes by time, which counts from `start_ns`; those of one time become one."""
    changes: dict[int, dict[str, Any]] = {}
    for at_s, what, value in events:
        change = changes.setdefault(start_ns + round(at_s * 1e9), {})
        match what:
            case "rate":
                change["rate_bps"] = float(value)
            case "rtt_ms":
                change["delay_ns"] = _one_way_ns(value)
            case "outage":
                change["outage"] = bool(value)
            case _:
                raise ValueError(f"the schedule has an unknown change {what!r}")
    return [{"at_ns": at_ns, **changes[at_ns]} for at_ns in sorted(changes)]


def _one_way_ns(rtt_ms: float) -> int:
    return round(rtt_ms * 1e6 / 2)
