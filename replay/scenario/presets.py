"""Presets of proxies: the keys of `[[proxy]]` tables as a paper or a program has them, each of which a table overrides.

Depends on the keys of the file, not on how a proxy works. Read docs/proxies.md, "Presets".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hindflight.toolkit.errors import HindflightError, did_you_mean

Table = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of keys. `boxes` are the keys of its proxies in the order of the path.

    With `repeats` any number of proxies has the only box; else there are as many as `counts` allows.
    """

    name: str
    summary: str
    source: str
    boxes: tuple[Table, ...]
    counts: tuple[int, ...] = ()

    @property
    def repeats(self) -> bool:
        """Whether every proxy of it is alike."""
        return not self.counts

    @property
    def tunnels(self) -> bool:
        """Whether it protects the links between two nodes, which may be ends."""
        return self.boxes[0].get("kind") == "fec"

    def text(self) -> str:
        """Return its tables as a scenario writes them, with nodes to be filled in."""
        lines = []
        for number, box in enumerate(self.boxes, 1):
            name = self.name if len(self.boxes) == 1 else f"{self.name}-{number}"
            lines += ["[[proxy]]", f'name = "{name}"', f'node = "NODE{number}"']
            lines += [f"{key} = {_toml(value)}" for key, value in box.items()]
            if self.tunnels:
                lines.append('peer = "NODE2"')
            lines.append("")
        return "\n".join(lines).rstrip()


def _toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


_PEPSAL = {"acknowledge": "on_receipt", "advertise": "sockets", "handshake": "accept", "pending_timeout": "5 h"}
_QUIC = {
    "profile": "rfc",
    "headers": "63 B",
    "mss": "1437 B",
    "recovery": "rack_prr",
    "tail_loss_probe": True,
    "min_rto": "25 ms",
    "delayed_ack_timeout": "25 ms",
}
"""IP 20, UDP 8, short header 11 with a connection ID of 8, STREAM frame 8, AEAD tag 16; RFC 9002 §6."""
_PEAK = "400 kbit/s"
_SATELLITE, _GROUND = "480 ms", "80 ms"

PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            "haps-split",
            "forwarding agent: half of the free cache is advertised",
            "Palazzi et al. 2005, section 3: cache of 200 packets for each connection",
            (
                {
                    "receive_buffer": "200 pkts",
                    "acknowledge": "on_receipt",
                    "advertise": "half_free",
                    "forward_window": "unlimited",
                },
            ),
        ),
        Preset(
            "onboard-split",
            "on-board agent: a third of the cache comes in, a third goes on",
            "Luglio et al. 2004, section III: three pipes of 21 packets at 1 Mbit/s",
            (
                {
                    "receive_buffer": "63 pkts",
                    "acknowledge": "on_receipt",
                    "advertise": "third",
                    "forward_window": "third",
                },
            ),
        ),
        Preset(
            "pepsal",
            "two Linux sockets and a pipe; Hybla onward from the first, the flow's variant from the second",
            "Caini, Firrincieli and Lacamera 2006; CNES/pepsal: listener.c, workers.c, scheduler.c",
            (
                {"variant": "hybla", "stack": {"profile": "linux"}, **_PEPSAL},
                {"stack": {"profile": "linux"}, **_PEPSAL},
            ),
            (1, 2),
        ),
        Preset(
            "aerotcp-gateways",
            "ground and aircraft gateway: fixed window on the satellite link, blocking writes between buffers",
            "Shang, Hadjitheodosiou and Baras 2005, section IV: 400 kbit/s per connection, low error rate",
            (
                {
                    "variant": "aerotcp",
                    "receive_buffer": {"rate": _PEAK, "rtt": _GROUND, "errors": "low"},
                    "send_buffer": {"rate": _PEAK, "rtt": _SATELLITE, "errors": "low"},
                    "advertise": "free",
                },
                {
                    "receive_buffer": {"rate": _PEAK, "rtt": _SATELLITE, "errors": "low"},
                    "send_buffer": {"rate": _PEAK, "rtt": _SATELLITE, "errors": "none"},
                    "advertise": "free",
                },
            ),
            (2,),
        ),
        Preset(
            "i-tcp",
            "base station with two sockets, the flow's variant on both sides",
            "Bakre and Badrinath 1995; the sockets stay at their node, there is no handoff to another base station",
            ({"acknowledge": "on_receipt", "advertise": "sockets", "handshake": "accept"},),
        ),
        Preset(
            "scps-gateway",
            "SCPS-TP between two gateways, the flow's variant on their outer sides",
            "Durst, Miller and Travis 1996; CCSDS 714.0-B: gateways at both ends of the space link",
            (
                {"variant": "scps-tp", "acknowledge": "on_receipt", "advertise": "free"},
                {"acknowledge": "on_receipt", "advertise": "free"},
            ),
            (2,),
        ),
        Preset(
            "quic-tunnel",
            "QUIC between two gateways, the flow's variant on their outer sides",
            "RFC 9000 §13.2 and §17.3, RFC 9002 §6: packet and time threshold, max_ack_delay of 25 ms",
            (
                {"variant": "linux-reno", "stack": _QUIC, "acknowledge": "on_receipt", "advertise": "free"},
                {"acknowledge": "on_receipt", "advertise": "free"},
            ),
            (2,),
        ),
        Preset(
            "fec-tunnel",
            "block code between two gateways over the lossy link; connections stay whole, all packets share it",
            "RFC 6363 (framework), RFC 6865 (Reed-Solomon). 18 of 20 packets are not given, chosen because with 1.2 % "
            "of losses (1500 octets at a BER of 1e-6) 10 % of the rate leaves 0.03 % of losses",
            ({"kind": "fec", "layer": {"block": 20, "repair": 2}},),
            (1,),
        ),
        Preset(
            "snoop",
            "caches segments, retransmits them and suppresses the duplicate ACKs; the connection stays whole",
            "Balakrishnan, Seshan, Amir and Katz 1995, section 3; cache of 100 packets as in ns-2 (snoop.h)",
            ({"kind": "snoop", "receive_buffer": "100 pkts"},),
        ),
        Preset(
            "spoofing",
            "acknowledges on behalf of the receiver, which does not know, and retransmits",
            "RFC 3135 §2.1.1, RFC 2488 §4; the cache is that of haps-split, no source",
            ({"kind": "spoofing", "receive_buffer": "200 pkts"},),
        ),
        Preset(
            "ack-filter",
            "removes ACKs from the queue towards the sender that a newer one covers",
            "Balakrishnan, Padmanabhan and Katz 1997, section 3.2; RFC 3449 §5.2.1",
            ({"kind": "ack_filter"},),
        ),
    )
}


def find_preset(name: str) -> Preset:
    """Return the preset of that name: HindflightError with the most similar name if there is none."""
    if name not in PRESETS:
        raise HindflightError(f"there is no preset {name}", did_you_mean(name, PRESETS) or f"presets: {_names()}")
    return PRESETS[name]


def with_presets(tables: Sequence[Any], path: Sequence[Any], links: object = ()) -> list[Any]:
    """Return the `[[proxy]]` tables of a file with what their presets fill in: ValueError for what cannot be.

    `path` and `links` are those of the file.
    """
    filled = list(tables)
    order = [*path[1:-1], *_joined(links)]
    named = [(i, table["preset"]) for i, table in enumerate(tables) if _names_preset(table)]
    for i, name in named:
        if not isinstance(name, str):
            raise ValueError(f"proxy[{i}].preset: {name!r} is not a string")
    for name in dict.fromkeys(name for _, name in named):
        if name not in PRESETS:
            guess = did_you_mean(str(name), PRESETS, lead="; ") or f"; allowed: {_names()}"
            raise ValueError(f"proxy: unknown preset {name!r}{guess}")
        preset = PRESETS[name]
        places = [*path, *_joined(links)] if preset.tunnels else order
        mine = [i for i, table in enumerate(tables) if _names_preset(table) and table["preset"] == name]
        for i in mine:
            if (node := tables[i].get("node")) not in places:
                given = "" if node is None else f"{node!r}: "
                allowed = ", ".join(map(str, dict.fromkeys(places))) or "there is none"
                raise ValueError(
                    f"proxy[{i}].node: {given}preset {name!r} needs a node between the ends of the path: {allowed}"
                )
        if preset.counts and len(mine) not in preset.counts:
            wanted = " or ".join(map(str, preset.counts))
            raise ValueError(f"proxy: preset {name!r} is {wanted} proxies on one path; {len(mine)} have it")
        in_order = sorted(mine, key=lambda i: places.index(tables[i]["node"]))
        for i, box in zip(in_order, _boxes(preset), strict=False):
            kind = box.get("kind", "split")
            if tables[i].get("kind", kind) != kind:
                raise ValueError(f'proxy[{i}].kind: preset {name!r} has kind = "{kind}"; leave out one of the two')
            filled[i] = _over(box, tables[i])
    return filled


def _joined(links: object) -> Iterator[Any]:
    """Yield the nodes that links beside the path name."""
    for link in links if isinstance(links, list) else ():
        if isinstance(link, dict):
            yield from (link[key] for key in ("from", "to") if key in link)


def _boxes(preset: Preset) -> Iterator[Table]:
    while preset.repeats:
        yield preset.boxes[0]
    yield from preset.boxes


def _over(box: Table, table: Table) -> Table:
    """Return the keys of `box`, each of which `table` overrides; those of a stack one by one."""
    own = {key: value for key, value in table.items() if key != "preset"}
    both = {**box, **own}
    if isinstance(own.get("stack"), dict):
        both["stack"] = {**box.get("stack", {}), **own["stack"]}
    return both


def _names_preset(table: Any) -> bool:
    return isinstance(table, dict) and "preset" in table


def _names() -> str:
    return ", ".join(PRESETS)
