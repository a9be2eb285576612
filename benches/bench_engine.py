"""The engine compared with ns-2 in one run: data packets per second on one core, memory, and nanoseconds per data
packet.

`python -m benches engine [--rounds N] [--seconds S]`. Each round measures every case once, each in a separate
process, so that a busy machine slows all alike; a ratio is the median over rounds of the ratio within a round, with the
minimum and the maximum. Times are processor times, except for several threads.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benches.cachegrind import TOOLS, instructions_each, program
from benches.engine_worker import PYTHON_RENO, Figures
from hindflight.replay.catalogue import engine_variant_names
from hindflight.replay.experiment.traffic import jain_index

HERE = Path(__file__).resolve().parent
NS2_SCRIPT = HERE / "newreno.tcl"
FLOOR = ("cargo", "run", "--quiet", "--release", "--locked", "-p", "hindflight-engine", "--example", "floor")
SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the rounds."""

    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)

    def __format__(self, spec: str) -> str:
        """Median, minimum and maximum, each by `spec`."""
        return f"{self.middle:{spec}} ({min(self.values):{spec}} to {max(self.values):{spec}})"


def ratio(over: Iterable[float], under: Iterable[float]) -> Spread:
    """Divide round by round."""
    return Spread(tuple(a / b for a, b in zip(over, under, strict=True)))


def session(seconds: float, **flow: Any) -> dict[str, Any]:
    """Return the scenario of newreno.tcl: an ACK for each packet of 1500 octets, a window that fills pipe and queue."""
    hop = {"rate_bps": 20e6, "delay_ns": 125_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 1000}}
    loss = {"kind": "bernoulli", "per": 1e-6}
    stack = {
        "smss_bytes": 1460,
        "header_bytes": 40,
        "timestamps": False,
        "delayed_ack": False,
        "initial_window_pkts": 2,
        "initial_ssthresh_pkts": 1800,
        "receive_buffer_bytes": 1800 * 1460,
    }
    return {
        "duration_ns": round(seconds * 1e9),
        "path": {
            "nodes": ["a", "b", "c"],
            "links": [
                {"name": "ab", "forward": {**hop, "loss": loss}, "reverse": hop},
                {"name": "bc", "forward": hop, "reverse": hop},
            ],
        },
        "flows": [{"name": "flow", "variant": "newreno", "stack": stack, **flow}],
    }


def short_session() -> dict[str, Any]:
    """Return 31 s at 1 Mbit/s over the same hops, bit errors of 1e-7."""
    config = session(31)
    hop = {"rate_bps": 1e6, "delay_ns": 125_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 50}}
    config["path"]["links"] = [
        {"name": "ab", "forward": {**hop, "loss": {"kind": "ber", "ber": 1e-7}}, "reverse": hop},
        {"name": "bc", "forward": hop, "reverse": hop},
    ]
    config["flows"][0]["stack"] = {}
    return config


def window_session(window_pkts: int) -> dict[str, Any]:
    """Return a window that nothing moves over a path without a rate, 1 % loss, about a million data packets."""
    rtt_s = window_pkts / 100_000
    hop = {"rate_bps": None, "delay_ns": round(rtt_s / 2 * 1e9)}
    stack = {"fixed_window_pkts": window_pkts, "delayed_ack": False, "receive_buffer_bytes": 1 << 30}
    return {
        "duration_ns": 10_000_000_000,
        "path": {
            "nodes": ["a", "b"],
            "links": [{"name": "ab", "forward": {**hop, "loss": {"kind": "bernoulli", "per": 0.01}}, "reverse": hop}],
        },
        "flows": [{"name": "flow", "variant": "sack", "profile": "linux", "stack": stack}],
    }


def worker(
    configs: list[dict[str, Any]],
    *,
    recorded: bool = False,
    segments: bool = False,
    samples: int | None = None,
    threads: int = 1,
) -> Figures:
    """Measure in a separate process."""
    case = {"configs": configs, "recorded": recorded, "segments": segments, "samples": samples, "threads": threads}
    command = [sys.executable, "-m", "benches.engine_worker"]
    ended = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, check=True, cwd=HERE.parent)
    return Figures(**json.loads(ended.stdout))


def compared_with_newreno(config: dict[str, Any], pairs: int, packets: int) -> list[list[float]]:
    """Return nanoseconds per data packet of newreno and of `config`, turn by turn, in a separate process."""
    case = {"configs": [session(60), config], "pairs": pairs, "packets": packets}
    command = [sys.executable, "-m", "benches.engine_worker"]
    ended = subprocess.run(command, input=json.dumps(case), capture_output=True, text=True, check=True, cwd=HERE.parent)
    turns: list[list[float]] = json.loads(ended.stdout)
    return turns


def ns2(seconds: float, trace: str = "") -> Figures:
    """Run the same session in ns-2, which writes a trace of every packet to the file `trace`."""
    command = ["ns", str(NS2_SCRIPT), str(seconds), trace]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    packets, cpu_ns, growth_kb = (int(word) for word in ended.stdout.split())
    return Figures(packets, cpu_ns, cpu_ns, growth_kb)


def floor_ns(threads: int = 1) -> float:
    """Return nanoseconds per data packet of the hops without TCP, with `threads` measuring at the same time."""
    command = [*FLOOR, "--", str(threads)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, cwd=HERE.parent)
    return float(ended.stdout)


def ns_each(figures: Iterable[Figures]) -> list[float]:
    """Return nanoseconds on the processor per data packet."""
    return [f.cpu_ns / f.packets for f in figures]


OURS: dict[str, dict[str, Any]] = {
    "summary": {},
    "every state": {"recorded": True},
    f"{SAMPLES} states": {"recorded": True, "samples": SAMPLES},
    "every packet": {"recorded": True, "segments": True},
}
"""What is stored of a run: its row of `runs`; every state of the sender; all that a capture would show."""
BOUNDED = ("summary", f"{SAMPLES} states")
"""Outputs whose memory does not depend on the length of a run."""


def compared_with_ns2(rounds: int, seconds: float) -> None:
    """Each kind of output compared with ns-2 and with the floor."""
    config = session(seconds)
    has_ns2, has_cargo = shutil.which("ns") is not None, shutil.which("cargo") is not None
    found: dict[str, list[Figures]] = {name: [] for name in (*OURS, "ns-2", "ns-2, every packet")}
    floor: list[float] = []
    if has_cargo:
        floor_ns()  # builds it
    for _ in range(rounds):
        if has_ns2:
            found["ns-2"].append(ns2(seconds))
            found["ns-2, every packet"].append(ns2(seconds / 10, "/dev/null"))  # slow
        for name, keeps in OURS.items():
            found[name].append(worker([config], **keeps))
        if has_cargo:
            floor.append(floor_ns())
    print(f"2 hops of 125 ms, 20 Mbit/s, one newreno flow, {seconds:g} s, packet loss 1e-6; medians of {rounds} rounds")
    for name, figures in found.items():
        if figures:
            each = Spread(tuple(ns_each(figures)))
            growth = median(f.growth_kb for f in figures)
            print(
                f"  {name:18} {figures[0].packets} data packets, {each:.1f} ns each, "
                f"{1e3 / each.middle:.2f} M/s on one core, memory +{growth / 1024:.2f} MiB"
            )
    if floor:
        print(f"  floor              {Spread(tuple(floor)):.1f} ns: the same hops and random numbers without TCP")
        print(f"  summary / floor: {ratio(ns_each(found['summary']), floor):.2f}")
    if has_ns2:
        print_ratios(found)
    else:
        print("ratio to ns-2: not measured, ns is not installed")


def print_ratios(found: dict[str, list[Figures]]) -> None:
    """Print data packets per second over ns-2's, and memory."""
    theirs, ours = ns_each(found["ns-2"]), {name: ns_each(found[name]) for name in OURS}
    wanted = {"summary": "10 wanted", "every state": "full time series; 4 wanted"}
    for name, each in ours.items():
        print(f"ratio to ns-2: {ratio(theirs, each):.2f} with {name} ({wanted.get(name, 'for comparison')})")
    tracing = ratio(ns_each(found["ns-2, every packet"]), ours["every packet"])
    print(f"ratio to ns-2: {tracing:.2f} with every packet traced on both sides")
    memory = ratio([f.growth_kb for f in found["summary"]], [f.growth_kb for f in found["ns-2"]])
    print(f"memory growth / ns-2's: {memory:.2f} with summary (at most 0.5 wanted)")


PROFILES = (
    ("rfc", "newreno", 10),
    ("rfc", "cubic", None),
    ("rfc", "bbr", None),
    ("linux", "linux-reno", 6),
    ("linux", "cubic", 6),
    ("linux", "bbr", 6),
    ("ns2", "newreno", None),
    ("ns2", "cubic", None),
)
"""Profile, variant, and the ratio to ns-2's newreno that is wanted."""


def profile_session(profile: str, variant: str, seconds: float) -> dict[str, Any]:
    """Return the session of newreno.tcl with this stack profile and variant."""
    return session(seconds, profile=profile, variant=variant)


def over_profiles(rounds: int, seconds: float) -> None:
    """Nanoseconds per data packet of each profile, compared with ns-2's newreno in the same round; and instructions."""
    has_ns2 = shutil.which("ns") is not None
    run = program("run") if all(shutil.which(tool) for tool in TOOLS) else None
    theirs: list[float] = []
    ours: dict[tuple[str, str], list[float]] = {(profile, variant): [] for profile, variant, _ in PROFILES}
    for _ in range(rounds):
        if has_ns2:
            theirs += ns_each([ns2(seconds)])
        for profile, variant in ours:
            ours[profile, variant] += ns_each([worker([profile_session(profile, variant, seconds)])])
    print(f"the same session under each stack profile, {seconds:g} s; medians of {rounds} rounds")
    for profile, variant, wanted in PROFILES:
        each = ours[profile, variant]
        line = f"  {profile:5} {variant:10} {Spread(tuple(each)):.1f} ns per data packet"
        if theirs:
            goal = f" (at least {wanted} wanted)" if wanted else ""
            line += f", {ratio(theirs, each):.2f} times as fast as ns-2's newreno{goal}"
        if run:
            line += f", {instructions_each(profile_session(profile, variant, 60), run):.0f} instructions"
        print(line, flush=True)


def over_windows(rounds: int) -> None:
    """A fixed window of 100,000 segments compared with one of 100, at 1 % loss."""
    small, large = [], []
    for _ in range(rounds):
        small.append(worker([window_session(100)]))
        large.append(worker([window_session(100_000)]))
    each = [Spread(tuple(ns_each(figures))) for figures in (small, large)]
    print(f"fixed window, 1 % loss: {each[0]:.1f} ns per data packet at 100 segments, {each[1]:.1f} at 100,000;")
    print(f"  ratio {ratio(ns_each(large), ns_each(small)):.2f} (at most 2 wanted)")


def over_threads(rounds: int) -> None:
    """One thread compared with one per processor; the same for the floor, which shows the share of the machine."""
    processors = os.cpu_count() or 1
    configs = [session(100)] * (16 * processors)
    one: list[Figures] = []
    all_: list[Figures] = []
    floors: list[tuple[float, float]] = []
    has_cargo = shutil.which("cargo") is not None
    for _ in range(rounds):
        one.append(worker(configs))
        all_.append(worker(configs, threads=processors))
        if has_cargo:
            floors.append((floor_ns(), floor_ns(processors)))
    wall = ratio([f.wall_ns for f in one], [f.wall_ns for f in all_])
    cpu = ratio(ns_each(all_), ns_each(one))
    got = Spread(tuple(f.cpu_ns / f.wall_ns for f in all_))
    print(f"{processors} threads: {wall:.2f} times as fast in wall time; each packet takes {cpu:.2f} of the processor")
    print(f"  time that one thread needs; {got:.2f} processors were available")
    if floors:
        slowdown = Spread(tuple(all_threads / one_thread for one_thread, all_threads in floors))
        print(f"  the floor, which shares nothing between threads, takes {slowdown:.2f} of its time on one thread")


def thousand_runs(rounds: int) -> None:
    """1000 runs of the 31 s session, JSON and tables included."""
    configs = [short_session()] * 1000
    found = [worker(configs, threads=os.cpu_count() or 1) for _ in range(rounds)]
    wall = Spread(tuple(f.wall_ns / 1e9 for f in found))
    cpu = Spread(tuple(f.cpu_ns / 1e9 for f in found))
    print(
        f"1000 runs of 31 s at 1 Mbit/s: {wall:.3f} s of wall time (under 0.5 wanted on 2 idle cores), "
        f"{cpu:.3f} s of processor time, {found[0].packets} data packets"
    )


GATEWAY_SECONDS, GATEWAY_WARM_SECONDS = 60, 10
GATEWAY_BPS, GATEWAY_USERS = 100e6, 100


GATEWAY_QUEUE = {"kind": "drop_tail", "limit_pkts": 2000}
OTHER_QUEUES = {"2 packets per connection": GATEWAY_QUEUE, "8 packets": {**GATEWAY_QUEUE, "limit_pkts": 8000}}
OTHER_QUEUES |= {kind: {**GATEWAY_QUEUE, "kind": kind} for kind in ("red", "codel")}
"""Queues of the gateway for connections that have one path: the first one is that of the others."""


def one_path_session(connections: int, seconds: float, queue: dict[str, Any]) -> dict[str, Any]:
    """Return the same for connections that all end behind the gateway's link, so that they have one round-trip time."""
    whole = gateway_session(connections, seconds)
    near, far = whole["path"]["links"][:2]
    far = {**far, "forward": {**far["forward"], "queue": queue}}
    flows = [{key: value for key, value in flow.items() if key not in {"from", "to"}} for flow in whole["flows"]]
    return {**whole, "path": {"nodes": ["a", "p", "b"], "links": [near, far]}, "flows": flows}


def gateway_session(connections: int, seconds: float = GATEWAY_SECONDS) -> dict[str, Any]:
    """Return `connections` under Linux through one gateway, with 100 Mbit/s and 125 ms behind it, to 100 users.

    Users have links of their own, of 1 to 100 ms and with 1 ms of jitter: else arrivals keep their phase to the
    departures of the bottleneck (Floyd and Jacobson 1991, "On traffic phase effects in packet-switched gateways"),
    and a packet between them finds the queue full every time. The clocks of real hosts are not that exact.
    """
    near = {"rate_bps": 1e9, "delay_ns": 10_000_000, "queue": {"kind": "drop_tail", "limit_pkts": 20_000}}
    far = {"rate_bps": GATEWAY_BPS, "delay_ns": 125_000_000, "queue": GATEWAY_QUEUE}
    proxy = {"node": "p", "receive_buffer": {"pkts": 50}, "advertise": "free"}
    flow = {"variant": "cubic", "profile": "linux", "proxies": [proxy], "from": "a"}
    users = [f"u{i}" for i in range(GATEWAY_USERS)]
    drawn = random.Random(1)  # noqa: S311 - no cryptography
    jitter = {"jitter": {"kind": "uniform", "spread_ns": 1_000_000}, "in_order": True}
    own = [{**near, **jitter, "delay_ns": drawn.randrange(1_000_000, 100_000_000)} for _ in users]
    return {
        "duration_ns": round(seconds * 1e9),
        "path": {
            "nodes": ["a", "p", "b", *users],
            "links": [
                {"name": "ap", "forward": near, "reverse": near},
                {"name": "pb", "forward": far, "reverse": far},
                *(
                    {"name": f"b{user}", "from": "b", "to": user, "forward": link, "reverse": link}
                    for user, link in zip(users, own, strict=True)
                ),
            ],
        },
        "flows": [
            {"name": f"f{i}", "start_ns": i * 1_000_000, "to": users[i % GATEWAY_USERS], **flow}
            for i in range(connections)
        ],
    }


def through_a_gateway(rounds: int) -> None:
    """1000 connections through one gateway: processor time, the memory that the run needs (tables included), the use of
    the link, and what each of them gets."""
    found = [worker([gateway_session(1000)]) for _ in range(rounds)]
    warm = worker([gateway_session(1000, GATEWAY_WARM_SECONDS)])
    cpu = Spread(tuple(f.cpu_ns / 1e9 for f in found))
    grown = max(f.growth_kb for f in found) / 1024
    print(
        f"1000 connections through one gateway, 60 s at 100 Mbit/s: {cpu:.2f} s of processor time (under 2 wanted), "
        f"{grown:.0f} MiB in addition to the Python process (under 100 wanted)"
    )
    print(f"  {shares_of_the_link(found[0].delivered_bytes, warm.delivered_bytes)}")
    print("  the same with one path, and so one round-trip time, for all; the queue of the gateway's link:")
    for name, queue in OTHER_QUEUES.items():
        times = (GATEWAY_WARM_SECONDS, GATEWAY_SECONDS)
        begun, whole = (worker([one_path_session(1000, seconds, queue)]).delivered_bytes for seconds in times)
        later = sum(octets > before for before, octets in zip(begun, whole, strict=True))
        print(f"  {name}: {later} of 1000 progress after 10 s")


def shares_of_the_link(delivered_bytes: Sequence[int], warm_bytes: Sequence[int]) -> str:
    """Return how much of the gateway's link is used after the warm-up, and how evenly.

    Both are octets by connection: of a whole run, and at the end of its warm-up.
    """
    packets = (sum(delivered_bytes) - sum(warm_bytes)) / 1448
    used = packets * 1500 * 8 / (GATEWAY_BPS * (GATEWAY_SECONDS - GATEWAY_WARM_SECONDS))
    later = [whole - warm for whole, warm in zip(delivered_bytes, warm_bytes, strict=True)]
    rates = [octets * 8e-3 / (GATEWAY_SECONDS - GATEWAY_WARM_SECONDS) for octets in later]
    low, middle, high = (quantiles(rates, n=100)[at - 1] for at in (1, 50, 99))
    holds = used >= 0.95 and min(later) > 0
    return (
        f"{'pass' if holds else 'fail'}: {100 * used:.1f} % of the link used after 10 s (at least 95 wanted), "
        f"{sum(octets > 0 for octets in later)} of {len(later)} progress then (all wanted): "
        f"{min(rates):.1f} kbit/s at least, {low:.0f}, {middle:.0f} and {high:.0f} at 1, 50 and 99 %, "
        f"Jain's index {jain_index(rates):.2f}"
    )


def variant_session(variant: str) -> dict[str, Any]:
    """Return the session with another variant; a variant whose window is a share of the link gets all of it."""
    share = {"satellite_rate": 20e6, "satellite_rtt": 0.5, "connections": 1}
    return session(60, variant=variant, params=share if variant in ("aerotcp", "supertcp") else {})


def over_variants(rounds: int, packets: int) -> None:
    """Every variant alternating with newreno, for equal numbers of data packets, and Reno as a controller in Python."""
    names = [name for name in engine_variant_names() if name != "newreno"]
    print(f"variants, ratio to newreno and ns per data packet, {packets} data packets each, {rounds} turns")
    print(f"  (at most 2 wanted; {PYTHON_RENO}, a tenth of the packets: each ACK calls Python)")
    for name in (*names, PYTHON_RENO):
        share = packets // 10 if name == PYTHON_RENO else packets
        turns = compared_with_newreno(variant_session(name), rounds, share)
        each = Spread(tuple(ns for _, ns in turns))
        print(f"  {name:16} {ratio(each.values, [newreno for newreno, _ in turns]):.2f}, {each:.0f} ns", flush=True)


def over_length(seconds: float) -> None:
    """Memory growth with the length of a run; for longer runs if the memory should not depend on it."""
    print(f"memory growth in MiB over {seconds:g} s, {4 * seconds:g} s, and {8 * seconds:g} and {16 * seconds:g} s")
    for name, keeps in OURS.items():
        factors = (1, 4, 8, 16) if name in BOUNDED else (1, 4)
        grown = (worker([session(seconds * factor)], **keeps).growth_kb / 1024 for factor in factors)
        print(f"  {name:18} {', '.join(f'{mib:.1f}' for mib in grown)}")


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1000.0)
    given = parser.parse_args(arguments)
    compared_with_ns2(given.rounds, given.seconds)
    sys.stdout.flush()
    over_profiles(given.rounds, given.seconds)
    over_threads(given.rounds)
    thousand_runs(given.rounds)
    through_a_gateway(given.rounds)
    over_windows(given.rounds)
    over_variants(given.rounds, round(given.seconds * 400))
    over_length(given.seconds)


if __name__ == "__main__":
    main()
