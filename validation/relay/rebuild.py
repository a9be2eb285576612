"""A recorded run of a relay as the engine's configuration: both links, and a proxy with the recorded sockets.

Buffers are those that the relay's and the sender's sockets reported when they were connected; where the relay set no
size they grow as the kernel's settings allow. The relay's process reads nothing before the first segment that it passed
on, as the sender's writes nothing before its first one.
"""

from __future__ import annotations

from typing import Any

from validation.cycle_phases import first_phases
from validation.rebuild import (
    ACK_QUEUE_PKTS,
    NOTSENT_LOWAT_BYTES,
    VARIANTS,
    WRITE_BYTES,
    drop_tail,
    losses,
    schedule,
    window_bytes,
)
from validation.recorded import KernelFlow, KernelRun
from validation.relay.recorded import RelayRun


def rebuild_relay(run: RelayRun) -> dict[str, Any]:
    """Return the engine's configuration of `run`, which ends with it."""
    sender, onward = run.flows
    proxy = {
        "node": "relay",
        "variant": VARIANTS[onward.variant],
        "params": _params(onward),
        "stack": {"profile": "linux", "overrides": _onward_stack(run)},
        "advertise": "sockets",
        "first_read_ns": int(onward.packets.t_ns[0]),
    }
    flow = {
        "name": "flow 1",
        "start_ns": 0,
        "variant": VARIANTS[sender.variant],
        "params": _params(sender),
        "profile": "linux",
        "application": {"kind": "greedy", "write_bytes": WRITE_BYTES, "first_write_ns": sender.first_write_ns},
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


def _params(flow: KernelFlow) -> dict[str, Any]:
    """What the kernel drew by chance."""
    if flow.variant != "bbr" or flow.tcp_info is None:
        return {}
    return {"first_phases": first_phases(flow.tcp_info, flow.acks_ns)}


def _link(name: str, leg: KernelRun, start_ns: int) -> dict[str, Any]:
    params = leg.params
    changes = [{**change, "at_ns": change["at_ns"] + start_ns} for change in schedule(params["events"])]
    shared = {
        "rate_bps": float(params["rate"]),
        "delay_ns": round(params["rtt_ms"] * 1e6 / 2),
        "in_order": False,
        "schedule": changes,
    }
    forward = {**shared, "queue": drop_tail(params["queue"]), "loss": losses(leg.lost)}
    return {"name": name, "forward": forward, "reverse": {**shared, "queue": drop_tail(ACK_QUEUE_PKTS)}}


def _first_stack(run: RelayRun) -> dict[str, Any]:
    """Of the connection to the relay: the sender's own buffer and the relay's receiving one."""
    info = run.flows[0].tcp_info
    send_bytes = int(info["sndbuf"][0]) if info is not None else None
    return {
        "smss_bytes": run.flows[0].smss_bytes,
        "notsent_lowat_bytes": NOTSENT_LOWAT_BYTES,
        "send_buffer_bytes": send_bytes,
        "send_buffer_max_bytes": _most(run, "tcp_wmem"),
        **_receive_buffer(run, run.first["rcvbuf"], run.flows[0].smss_bytes, "rcvbuf" in run.given),
    }


def _onward_stack(run: RelayRun) -> dict[str, Any]:
    """Of the connection onward: the relay's sending buffer and that of a receiver which sets none."""
    grows = {} if "sndbuf" in run.given else {"send_buffer_max_bytes": _most(run, "tcp_wmem")}
    default = int(run.legs[1].sysctl["tcp_rmem"].split()[1])
    return {
        "smss_bytes": run.flows[1].smss_bytes,
        "send_buffer_bytes": run.first["sndbuf"],
        **grows,
        **_receive_buffer(run, default, run.flows[1].smss_bytes, fixed=False),
    }


def _receive_buffer(run: RelayRun, memory_bytes: int, smss_bytes: int, fixed: bool) -> dict[str, int]:
    share = {"receive_buffer_bytes": window_bytes(memory_bytes, smss_bytes)}
    if not fixed:
        share["receive_buffer_max_bytes"] = window_bytes(_most(run, "tcp_rmem"), smss_bytes)
    return share


def _most(run: RelayRun, setting: str) -> int:
    return int(run.legs[0].sysctl[setting].split()[2])
