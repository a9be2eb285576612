"""Proxies that a draft proposes for a captured path: where one may help, what it sends onward with, and its memory.

Depends on a few facts about the path, not on captures or the engine. Read docs/proxies.md, "From a capture".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from hindflight.replay.scenario.presets import PRESETS
from hindflight.replay.scenario.proxies import ERROR_FACTORS, JOIN, NO_PROXY

AUTO = "auto"
"""What `--proxy` calls the proposals."""

NEAR, RELAY, FAR = "near", "relay", "far"
"""Nodes of a draft where a proxy may stand: in the network of the sender, midway, in the network of the receiver."""

PLACES = {
    NEAR: "in the sender's network, before the bottleneck, its losses and nearly all of the delay",
    RELAY: "behind the bottleneck and its losses, with half of the delay on each side",
    FAR: "in the receiver's network, behind nearly all of the delay",
}
"""Where each node is."""

SENDER_SIDE, MIDWAY, RECEIVER_SIDE, FORWARDER = "sender-side", "midway", "receiver-side", "relay"
_NODES = {SENDER_SIDE: NEAR, MIDWAY: RELAY, RECEIVER_SIDE: FAR, FORWARDER: RELAY}

CHOICES = (
    AUTO,
    NO_PROXY,
    *_NODES,
    NEAR,
    FAR,
    *(name for name, preset in PRESETS.items() if not preset.tunnels),
)
"""What `--proxy` takes: a node stands for a proxy with defaults there."""

RENO_CONSTANT = 1.5
"""Mathis et al. 1997: losses with probability p hold the mean window of Reno, in packets, to sqrt(1.5 / p)."""

HYBLA_RTT0_NS = 25_000_000
"""Caini and Firrincieli 2004: Hybla is Reno below this round-trip time."""

RECEIVER_SHARE = 0.05
"""Share of the time from which the receiver's window counts as what limited the captured flow."""

RECEIVER_FACTOR = 4
"""Memory next to a receiver whose window limits, in such windows, where the rate of the path is not known."""

FORWARDER_PKTS = 200
"""Palazzi et al. 2005; also where nothing says how much memory the path needs."""


@dataclass(frozen=True, slots=True)
class PathFacts:
    """What a capture shows of its path: maximum rate (None: it was never filled) and round trip, octets of a full
    packet, share of packets that the channel lost, share of the time in which the receiver's window limited the flow,
    and the largest such window."""

    rate_bps: float | None = None
    round_trip_ns: float = 0.0
    packet_bytes: int = 1500
    loss_share: float = 0.0
    receiver_share: float = 0.0
    window_bytes: int | None = None

    @property
    def lossy(self) -> bool:
        """Whether losses of the channel keep Reno's window below the pipe."""
        if self.loss_share <= 0 or self.rate_bps is None:
            return self.loss_share > 0
        pipe_pkts = self.rate_bps * self.round_trip_ns / 8e9 / self.packet_bytes
        return math.sqrt(RENO_CONSTANT / self.loss_share) < pipe_pkts


@dataclass(frozen=True, slots=True)
class ProxyTable:
    """A `[[proxy]]` table: its name, its node, its other keys in TOML, and a comment on why it is there."""

    name: str
    node: str
    keys: Mapping[str, str] = field(default_factory=dict)
    why: str = ""


def propose(facts: PathFacts) -> tuple[str, ...]:
    """Return what `compare.proxies` lists: the path without a proxy, then the proxies that may help on it.

    A proxy at the sender's side pays only with another variant onward, one at the receiver's side only where the
    receiver's window is too small.
    """
    chains = [NO_PROXY]
    if _variant_onward(facts) is not None:
        chains.append(SENDER_SIDE)
    chains.append(MIDWAY)
    if facts.receiver_share >= RECEIVER_SHARE:
        chains.append(RECEIVER_SIDE)
    return tuple(chains)


def tables_of(chains: Iterable[str], facts: PathFacts) -> list[ProxyTable]:
    """Return the table of each proxy that `chains` name: a proposal, the forwarding agent, or a preset midway.

    What else they name has no table: a node.
    """
    names = dict.fromkeys(name for chain in chains for name in chain.split(JOIN))
    return [table for name in names if (table := _table(name, facts)) is not None]


def _table(name: str, facts: PathFacts) -> ProxyTable | None:
    if name in PRESETS:
        return ProxyTable(name, RELAY, {"preset": f'"{name}"'})
    if name == FORWARDER:
        return ProxyTable(name, RELAY, {"receive_buffer": f'"{FORWARDER_PKTS} pkts"'})
    if name not in _NODES:
        return None
    keys = {"receive_buffer": _memory(name, facts), "advertise": '"free"'}
    why = PLACES[_NODES[name]]
    variant = _variant_onward(facts) if name == SENDER_SIDE else None
    if variant is not None:
        keys = {"variant": f'"{variant[0]}"', **keys}
        why = f"{why}; {variant[1]}"
    return ProxyTable(name, _NODES[name], keys, why)


def _variant_onward(facts: PathFacts) -> tuple[str, str] | None:
    """Return the variant for the long and lossy part, with its reason; None where it needs none."""
    if facts.lossy:
        return "bbr", "BBR, because the channel's losses keep the window of Reno below the pipe"
    if facts.round_trip_ns > HYBLA_RTT0_NS:
        return "hybla", f"Hybla, because the round trip is longer than its {HYBLA_RTT0_NS / 1e6:.0f} ms"
    return None


def _memory(name: str, facts: PathFacts) -> str:
    """Return the memory in TOML: the peak rate times the delay, times the factor for losses of Shang et al. 2005."""
    if facts.rate_bps is not None:
        errors = "high" if facts.lossy else "low"
        octets = round(ERROR_FACTORS[errors] * facts.rate_bps * facts.round_trip_ns / 8e9)
        return f'"{max(octets, 2 * facts.packet_bytes)} B"'
    if name == RECEIVER_SIDE and facts.window_bytes:
        return f'"{RECEIVER_FACTOR * facts.window_bytes} B"'
    return f'"{FORWARDER_PKTS} pkts"'


def nodes_of(tables: Sequence[ProxyTable], chains: Sequence[str]) -> tuple[str, ...]:
    """Return the nodes between the ends that a draft needs, in the order of the path."""
    if all(chain == NO_PROXY for chain in chains):
        return ()
    used = {RELAY, *(table.node for table in tables), *(name for chain in chains for name in chain.split(JOIN))}
    return tuple(node for node in (NEAR, RELAY, FAR) if node in used)
