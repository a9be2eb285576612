"""Prints the tables of goodput that the pages of docs/variants have: `python -m docs.scripts.make_variant_rows hybla`.

Every table is of greedy flows over one link, GEO unless it says otherwise, and means of four seeds. Without random loss
nothing is random, and whether a retransmission meets a full queue depends on a fraction of a packet's time: the path of
each seed is therefore longer by a quarter of that time. tests/replay/engine/test_orderings.py and test_asran.py check
some rows.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hindflight.replay.experiment.run import Configuration, run_configurations
from validation.old_rules import OLD_VEGAS, OLD_WESTWOOD
from validation.simulator import run_script, simulator

PACKET_BITS = 8 * 1500
SEEDS = range(1, 5)
PROFILES = ("rfc", "ns2", "linux")
LOSSES = (0.001, 0.003, 0.01)
Runs = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Path:
    """A link with a drop-tail queue and random loss."""

    rate_bps: float = 10e6
    rtt_ns: int = 500_000_000
    products: float = 1.0
    """Its queue, in products of rate and round-trip time."""
    loss: float = 0.0
    duration_s: int = 200

    @property
    def product_pkts(self) -> float:
        """Bandwidth-delay product."""
        return self.rtt_ns * 1e-9 * self.rate_bps / PACKET_BITS

    def config(self, flows: Sequence[Mapping[str, Any]], seed: int) -> dict[str, Any]:
        """Return the run's configuration."""
        packet_ns = 1e9 * PACKET_BITS / self.rate_bps
        back = {"rate_bps": self.rate_bps, "delay_ns": self.rtt_ns // 2 + round(packet_ns * (seed - 1) / 8)}
        queue = {"kind": "drop_tail", "limit_pkts": round(self.products * self.product_pkts)}
        ahead = {**back, "queue": queue, "loss": {"kind": "bernoulli", "per": self.loss}}
        link = {"name": "link", "forward": ahead, "reverse": back}
        path = {"nodes": ["ground", "user"], "links": [link]}
        return {"duration_ns": self.duration_s * 10**9, "path": path, "flows": flows}


@dataclass(frozen=True, slots=True)
class Flow:
    """A variant with its parameters."""

    variant: str
    params: Mapping[str, Any] = field(default_factory=dict)
    stack: Mapping[str, Any] = field(default_factory=dict)

    def config(self, profile: str, name: str = "flow") -> dict[str, Any]:
        """Return the flow's part of a configuration."""
        stack = {"receive_buffer_bytes": 1 << 26, **self.stack}
        return {"name": name, "variant": self.variant, "profile": profile, "params": dict(self.params), "stack": stack}


def runs(path: Path, flow: Flow, profile: str, seeds: Sequence[int] = SEEDS) -> Runs:
    """Return the row of each seed's run."""
    configurations = [Configuration(path.config([flow.config(profile)], seed), seed, recorded=False) for seed in seeds]
    found: Runs = run_configurations(configurations)["runs"].to_pylist()
    return found


def goodputs_mbps(path: Path, found: Runs) -> list[float]:
    """Return the goodput of each of the runs found over `path`."""
    return [8e-6 * run["delivered_bytes"] / path.duration_s for run in found]


def goodput_mbps(path: Path, flow: Flow, profile: str, seeds: Sequence[int] = SEEDS) -> float:
    """Return the mean over the seeds."""
    return float(np.mean(goodputs_mbps(path, runs(path, flow, profile, seeds))))


NEWRENO = Flow("newreno")
SHORT = Path(20e6, 40_000_000, duration_s=120)
HYBLA = {
    "newreno": NEWRENO,
    "hybla": Flow("hybla"),
    "estimate": Flow("hybla", {"hoe_estimate": True}),
    "hybla-paper": Flow("hybla", {"hoe_estimate": True, "spacing": True, "scale_ssthresh": True}),
}

NS2_SCRIPT = """\
set ns [new Simulator]
Agent/TCP set tcpTick_ 0.1
Agent/TCP set packetSize_ 1460
Agent/TCP set window_ 40000
set a [$ns node]
set b [$ns node]
$ns duplex-link $a $b {rate_bps} {delay_s} DropTail
$ns queue-limit $a $b {limit_pkts}
$ns queue-limit $b $a 100000
set rng [new RNG]
for {{set n 1}} {{$n < {seed}}} {{incr n}} {{ set rng [new RNG] }}
set errors [new RandomVariable/Uniform]
$errors use-rng $rng
set model [new ErrorModel]
$model unit pkt
$model set rate_ {loss}
$model ranvar $errors
$model drop-target [new Agent/Null]
$ns link-lossmodel $model $a $b
set tcp [new Agent/TCP/{agent}]
set sink [new Agent/TCPSink{sink}]
{linux}
$ns attach-agent $a $tcp
$ns attach-agent $b $sink
$ns connect $tcp $sink
set ftp [new Application/FTP]
$ftp attach-agent $tcp
$ns at 0 "$ftp start"
$ns at {duration_s} {{ puts "acked [$tcp set ack_]"; exit 0 }}
$ns run
"""
NS2_LINUX = """$tcp set timestamps_ true
$sink set ts_echo_rfc1323_ true
$ns at 0 "$tcp set ssthresh_ {ssthresh_pkts}; $tcp select_ca {algorithm}"
"""


def ns2_mbps(path: Path, agent: str, ssthresh_pkts: int = 40_000, algorithm: str = "") -> str:
    """Return ns-2's goodput, a dash where it is not installed. An `algorithm` is a module of its TCP/Linux."""
    ns = simulator()
    if ns is None:
        return "-"
    cells = []
    for seed in SEEDS if path.loss else SEEDS[:1]:
        text = NS2_SCRIPT.format(
            rate_bps=path.rate_bps,
            delay_s=path.rtt_ns * 5e-10,
            limit_pkts=round(path.products * path.product_pkts) + 1,
            seed=seed,
            loss=path.loss,
            agent=agent,
            sink="/Sack1" if algorithm or agent == "Sack1" else "",
            linux=NS2_LINUX.format(ssthresh_pkts=ssthresh_pkts, algorithm=algorithm) if algorithm else "",
            duration_s=path.duration_s,
        )
        [acked] = [line.removeprefix("acked ") for line in run_script(ns, text) if line.startswith("acked ")]
        cells.append(float(acked) * 1460 * 8e-6 / path.duration_s)
    return f"{np.mean(cells):.2f}"


def row_of_hybla(path: Path, profile: str) -> Sequence[str]:
    """Return a row of its table; what falls behind newreno is bold."""
    newreno, *forms = (goodput_mbps(path, flow, profile) for flow in HYBLA.values())
    cells = [f"**{mbps:.2f}**" if mbps < 0.98 * newreno else f"{mbps:.2f}" for mbps in forms]
    return (f"{100 * path.loss:g} %", f"{path.rate_bps / 1e6:g} Mbit/s", profile, f"{newreno:.2f}", *cells)


def hybla() -> Iterator[Sequence[str]]:
    """Hybla's three forms and newreno, by random loss and rate."""
    yield ("random loss", "rate", "profile", *HYBLA)
    for loss in (0.0, 0.001, 0.01):
        for rate_bps in (10e6, 1e6):
            path = Path(rate_bps, loss=loss)
            for profile in PROFILES:
                *words, _, _, _, _, _ = row = row_of_hybla(path, profile)
                yield row
            theirs = ns2_mbps(path, "Linux", round(path.product_pkts), "hybla")
            yield (*words, "ns-2", ns2_mbps(path, "Sack1"), "", theirs, "")


def clean() -> Iterator[Sequence[str]]:
    """Variants over a GEO path without losses, ns-2 and the engine with the rules of its TCP/Linux."""
    variants = ("newreno", "vegas", "westwood-plus", "westwood-bwe")
    yield ("profile", *variants)
    for profile in PROFILES:
        yield (profile, *(f"{goodput_mbps(Path(), Flow(variant), profile):.2f}" for variant in variants))
    old = (f"{goodput_mbps(Path(), Flow(name), 'ns2'):.2f}" for name in (OLD_VEGAS, OLD_WESTWOOD))
    yield ("ns2, with the rules of ns-2's TCP/Linux", "", *old, "")
    theirs = (ns2_mbps(Path(), "Linux", algorithm=name) for name in ("reno", "vegas", "westwood"))
    yield ("ns-2, TCP/Linux", *theirs, "")
    yield ("ns-2, its own", ns2_mbps(Path(), "Newreno"), ns2_mbps(Path(), "Vegas"), "", "")


def over_random_loss(*variants: str) -> Iterator[Sequence[str]]:
    """Variants and newreno, queue of half the product, profile `linux`."""
    yield ("random loss", "newreno", *variants)
    for loss in LOSSES:
        path = Path(products=0.5, loss=loss)
        cells = []
        for variant in ("newreno", *variants):
            each = goodputs_mbps(path, runs(path, Flow(variant), "linux"))
            cells.append(f"{np.mean(each):.2f} ({min(each):.2f} to {max(each):.2f})")
        yield (f"{100 * loss:g} %", *cells)


def peach_short() -> Iterator[Sequence[str]]:
    """Peach and newreno over the short link, by profile."""
    yield ("random loss", *(f"{profile}: newreno, peach" for profile in PROFILES))
    for loss in (0.001, 0.01):
        path = replace(SHORT, loss=loss)
        pairs = ([goodput_mbps(path, Flow(name), profile) for name in ("newreno", "peach")] for profile in PROFILES)
        yield (f"{100 * loss:g} %", *(f"{newreno:.1f}, {peach:.1f}" for newreno, peach in pairs))


def peach_start() -> Iterator[Sequence[str]]:
    """Peach over paths without losses, with a capacity above and below Sudden Start sends."""
    yield ("path", "profile", "newreno", "peach, 64", "peach, 417")
    for path in (Path(duration_s=100), Path(2e6, 40_000_000, 6 / (2e6 * 0.04 / PACKET_BITS), duration_s=100)):
        words = (f"{path.rate_bps / 1e6:g} Mbit/s, {path.rtt_ns // 10**6} ms",)
        flows = (NEWRENO, Flow("peach"), Flow("peach", {"sudden_start_pkts": 417}))
        for profile in PROFILES:
            yield (*words, profile, *(f"{goodput_mbps(path, flow, profile):.2f}" for flow in flows))


ABSE = {
    "newreno": NEWRENO,
    "fixed 0.5 s": Flow("westwood-abse", {"tau": "fixed"}),
    "fixed 5 s": Flow("westwood-abse", {"tau": "fixed", "tau_fixed": 5.0}),
    "adaptive": Flow("westwood-abse"),
    "westwood-bwe": Flow("westwood-bwe"),
}


def westwood_abse() -> Iterator[Sequence[str]]:
    """Westwood's time constants: the GEO path under `linux`, and the HAPS/UAV paper's link under `ns2`."""
    yield ("path", "random loss", *ABSE)
    for loss in LOSSES:
        path = Path(products=0.5, loss=loss)
        cells = (f"{goodput_mbps(path, flow, 'linux'):.2f}" for flow in ABSE.values())
        yield ("10 Mbit/s, linux", f"{100 * loss:g} %", *cells)
    path = Path(1e6, loss=0.01, products=50 / 42)
    flows = [replace(flow, stack={"initial_ssthresh_pkts": 42}) for flow in ABSE.values()]
    yield ("1 Mbit/s, ns2", "1 %", *(f"{goodput_mbps(path, flow, 'ns2'):.2f}" for flow in flows))


ASRAN = {
    "newreno": NEWRENO,
    "asran": Flow("asran"),
    "`hook`": Flow("asran", {"mode": "hook"}),
    "`revise`": Flow("asran", {"on_timeout": "revise"}),
    "`hook`, `revise`": Flow("asran", {"mode": "hook", "on_timeout": "revise"}),
    "cubic": Flow("cubic"),
    "over cubic": Flow("asran", {"base": "cubic"}),
    "over cubic, `hook`": Flow("asran", {"base": "cubic", "mode": "hook"}),
    "over cubic, `revise`": Flow("asran", {"base": "cubic", "on_timeout": "revise"}),
    "over cubic, both": Flow("asran", {"base": "cubic", "mode": "hook", "on_timeout": "revise"}),
}


def drop_tail(flow: Flow, profile: str, path: Path = SHORT, seeds: Sequence[int] = SEEDS) -> tuple[float, float, float]:
    """Return goodput in Mbit/s, the share of what left that the queue dropped and the mean queue in packets."""
    each = runs(path, flow, profile, seeds)
    goodput = np.mean(goodputs_mbps(path, each))
    lost = np.mean([run["queue_losses"] / run["segments_out"] for run in each])
    packet_ns = 1e9 * PACKET_BITS / path.rate_bps
    stands = [(run["srtt_mean_ns"] - path.rtt_ns) / packet_ns - 1.0 for run in each]
    return float(goodput), float(lost), float(np.mean(stands))


def asran() -> Iterator[Sequence[str]]:
    """Interpretations of ASRAN and their bases with a full drop-tail queue: goodput, share lost, mean queue."""
    yield ("reading", *PROFILES, "linux, slow start to the product")
    for name, flow in ASRAN.items():
        cells = [drop_tail(flow, profile) for profile in PROFILES]
        cells.append(drop_tail(replace(flow, stack={"initial_ssthresh_pkts": round(SHORT.product_pkts)}), "linux"))
        yield (name, *(f"{mbps:.2f}, {100 * lost:.2f} %, {queue:.0f}" for mbps, lost, queue in cells))


def shares_mbps(first: Flow, second: Flow, path: Path = SHORT, profile: str = "linux") -> tuple[float, float]:
    """Return the goodput of two flows of one path, of which the second begins a second later: means of the seeds."""
    later = {**second.config(profile, "second"), "start_ns": 10**9}
    configurations = [
        Configuration(path.config([first.config(profile, "first"), later], seed), seed, recorded=False)
        for seed in SEEDS
    ]
    found = goodputs_mbps(path, run_configurations(configurations)["runs"].to_pylist())
    return float(np.mean(found[0::2])), float(np.mean(found[1::2]))


def asran_shares() -> Iterator[Sequence[str]]:
    """Two flows on one link, with and without ASRAN."""
    yield ("first", "second", "20 Mbit/s, 40 ms", "10 Mbit/s, 500 ms")
    names = {"newreno": NEWRENO, "cubic": Flow("cubic"), "asran": Flow("asran"), "asran, `hook`": ASRAN["`hook`"]}
    for one, other in (("newreno", "cubic"), ("asran", "cubic"), ("asran, `hook`", "cubic"), ("asran", "asran")):
        cells = [shares_mbps(names[one], names[other], path) for path in (SHORT, Path(duration_s=120))]
        yield (one, other, *(f"{first:.1f} and {second:.1f}" for first, second in cells))


TABLES: Mapping[str, Callable[[], Iterator[Sequence[str]]]] = {
    "hybla": hybla,
    "clean": clean,
    "over-random-loss": lambda: over_random_loss("peach", "scps-tp"),
    "peach-short": peach_short,
    "peach-start": peach_start,
    "westwood-abse": westwood_abse,
    "asran": asran,
    "asran-shares": asran_shares,
}


def main() -> None:
    """Print the tables that are named, or all."""
    for name in sys.argv[1:] or TABLES:
        print(f"\n{name}")
        for number, row in enumerate(TABLES[name]()):
            print(f"| {' | '.join(row)} |", flush=True)
            if number == 0:
                print("|---" * len(row) + "|")


if __name__ == "__main__":
    main()
