"""The smallest cache of a chain of proxies with 95 % of the goodput of its whole cache, by bisection over paired seeds.

Runs one scenario; depends on its configuration, not on how a proxy works. Read docs/proxies.md, "What sets the knee".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType

from hindflight.replay.experiment.compare import Known
from hindflight.replay.experiment.engine_inputs import Job, Mode, engine_config
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.replay.scenario.flows import USUAL_PACKET_BYTES
from hindflight.replay.scenario.loss_trace import LossTrace
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.proxies import NO_PROXY, BufferSize, Proxy

KNEE_SHARE = 0.95
"""The knee is the smallest cache with this share of the goodput of the largest."""

STEPS = 6
"""Bisections: the knee is known to 2^-6 of the whole cache."""

MAX_SEEDS = 8
"""Seeds of each cache."""


@dataclass(frozen=True, slots=True)
class CacheKnee:
    """Octets of the knee and of the whole cache, summed over the proxies of the chain."""

    knee_bytes: float
    whole_bytes: float


def cache_knee(
    scenario: Scenario,
    variant: str,
    chain: str,
    traces: Mapping[str, LossTrace],
    *,
    threads: int | None = None,
    known: Known = MappingProxyType({}),
) -> CacheKnee | None:
    """Return the knee of all caches of `chain` together; None for a chain with other memory than caches, or without
    seeds. Runs with the caches of the scenario whose goodput is `known` are not made again."""
    proxies = () if chain == NO_PROXY else scenario.proxies_of().chain(chain)
    sizes = [size for proxy in proxies if (size := _cache(proxy)) is not None]
    seeds = range(scenario.compare.first_seed, scenario.compare.first_seed + min(MAX_SEEDS, scenario.compare.seeds))
    if not sizes or len(sizes) < len(proxies) or not seeds:
        return None
    packet_bytes = scenario.flow.mss or USUAL_PACKET_BYTES
    mode: Mode = "resampled" if traces else "model"

    def goodput(share: float) -> float:
        changed = _with_caches(scenario, share, packet_bytes)
        made = known if changed.proxy == scenario.proxy else {}
        found = [made[key] for seed in seeds if (key := (variant, chain, mode, seed)) in made]
        missing = [seed for seed in seeds if (variant, chain, mode, seed) not in made]
        if not missing:
            return fmean(found)
        jobs = [Job(variant, chain, "what_if", mode, seed, False) for seed in missing]
        configurations = [Configuration(engine_config(changed, job, traces), job.seed, False) for job in jobs]
        runs = run_configurations(configurations, threads=threads)["runs"].to_pylist()
        return fmean([*found, *(run["goodput_bps"] for run in runs if run["flow_id"] == 1)])

    enough, low, high = KNEE_SHARE * goodput(1.0), 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if goodput(middle) >= enough else (middle, high)
    whole = sum(_octets(size, packet_bytes) for size in sizes)
    return CacheKnee(sum(_octets(_scaled(size, high, packet_bytes), packet_bytes) for size in sizes), whole)


def _cache(proxy: Proxy) -> BufferSize | None:
    """Return the size of the cache of a proxy; None if it has none, has a send buffer as well, or grows as the sockets
    of a host do."""
    if proxy.send_buffer is not None or (proxy.kind == "split" and proxy.advertise == "sockets"):
        return None
    return proxy.receive_buffer


def _with_caches(scenario: Scenario, share: float, packet_bytes: int) -> Scenario:
    tables = [
        proxy if (size := _cache(proxy)) is None
        else proxy.model_copy(update={"receive_buffer": _scaled(size, share, packet_bytes)})
        for proxy in scenario.proxy
    ]  # fmt: skip
    return scenario.model_copy(update={"proxy": tuple(tables)})


def _scaled(size: BufferSize, share: float, packet_bytes: int) -> BufferSize:
    """Return a share of a cache, at least one full segment."""
    if size.pkts is not None:
        return BufferSize(pkts=max(1, round(share * size.pkts)))
    return BufferSize(size_bytes=max(packet_bytes, round(share * (size.size_bytes or 0))))


def _octets(size: BufferSize, packet_bytes: int) -> float:
    return float(size.size_bytes or (size.pkts or 0) * packet_bytes)
