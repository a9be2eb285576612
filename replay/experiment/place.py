"""Where to put a proxy, with which variant onward and how much memory: a search over one scenario.

Coarse to fine: all candidates over few seeds, then the best over all seeds, then the smallest cache that is as good.
All runs with the same seed meet the same channel, so differences are paired. Read docs/proxies.md, "Placement".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from statistics import fmean

from hindflight.replay.experiment.compare import Interval, mean_interval
from hindflight.replay.experiment.engine_inputs import engine_config, plan_comparison
from hindflight.replay.experiment.experiment import load_traces
from hindflight.replay.experiment.run import Configuration, check_jobs, run_configurations
from hindflight.replay.scenario.loss_trace import LossTrace, loss_trace
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.proxies import JOIN, NO_PROXY, BufferSize, Proxy
from hindflight.toolkit.errors import ScenarioError

COARSE_SEEDS = 3
"""Seeds over which all candidates run."""
BEST = 3
"""Candidates that run over all seeds."""
GRID = (0.125, 0.25, 0.5, 1.0)
"""Caches of the coarse search, as shares of the largest."""
KNEE_SHARE = 0.95
"""The knee is the smallest cache with this share of the goodput of the largest."""


@dataclass(frozen=True, slots=True)
class Placement:
    """One candidate: the nodes of its proxies, the variant of each connection onward, and each cache in packets."""

    nodes: tuple[str, ...]
    variants: tuple[str, ...]
    cache_pkts: int

    @property
    def label(self) -> str:
        """Return what the tables call it."""
        return JOIN.join(f"{node}:{variant}" for node, variant in zip(self.nodes, self.variants, strict=True)) or "none"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate over all seeds: goodput, its paired difference from the flow without a proxy (bit/s), and the knee.

    `knee_pkts` is the smallest cache with KNEE_SHARE of the mean goodput of the largest searched.
    """

    placement: Placement
    goodput_bps: Interval
    gain_bps: Interval
    knee_pkts: int | None


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found: the flow without a proxy, the best candidates by falling goodput, and the effort."""

    variant: str
    baseline_bps: Interval
    best: tuple[Ranked, ...]
    candidates: int
    runs: int


@dataclass(frozen=True, slots=True)
class Space:
    """What to search: nodes (none: all between the ends), variants onward (none: the flow's), the largest cache in
    packets, and the number of proxies at most."""

    nodes: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    max_cache_pkts: int = 400
    max_proxies: int = 2


class _Runner:
    """Runs placements of one flow, each seed of a placement once."""

    def __init__(self, scenario: Scenario, traces: dict[str, LossTrace], threads: int | None) -> None:
        self.scenario, self.traces, self.threads = scenario, traces, threads
        self.variant = scenario.compare.variants[0]
        self._known: dict[tuple[Placement, int], float] = {}

    @property
    def runs(self) -> int:
        """Runs so far."""
        return len(self._known)

    def goodputs(self, placements: Iterable[Placement], seeds: int) -> dict[Placement, list[float]]:
        """Return the goodput of each placement, one per seed."""
        wanted = list(dict.fromkeys(placements))
        first = self.scenario.compare.first_seed
        keys = [(placement, first + i) for placement in wanted for i in range(seeds)]
        missing = [key for key in keys if key not in self._known]
        configurations = [Configuration(self._config(*key), key[1], False) for key in missing]
        if configurations:
            runs = run_configurations(configurations, threads=self.threads)["runs"].to_pylist()
            found = [run["goodput_bps"] for run in runs if run["flow_id"] == 1]
            self._known.update(zip(missing, found, strict=True))
        return {placement: [self._known[placement, first + i] for i in range(seeds)] for placement in wanted}

    def scenario_of(self, placement: Placement) -> Scenario:
        """Return the scenario with the proxies of `placement`, each as the file has it but for variant and cache."""
        files = {proxy.node: proxy for proxy in self.scenario.proxy}
        tables = []
        for node, variant in zip(placement.nodes, placement.variants, strict=True):
            base = files.get(node) or Proxy.model_construct(name=node, node=node)
            memory = {} if base.advertise == "sockets" else {"receive_buffer": BufferSize(pkts=placement.cache_pkts)}
            tables.append(base.model_copy(update={"variant": variant, **memory}))
        chain = JOIN.join(proxy.name for proxy in tables) or NO_PROXY
        tables += [proxy for proxy in self.scenario.proxy if proxy.node not in placement.nodes]
        compare = self.scenario.compare.model_copy(update={"proxies": (chain,), "variants": (self.variant,)})
        return self.scenario.model_copy(update={"proxy": tuple(tables), "compare": compare})

    def _config(self, placement: Placement, seed: int) -> dict[str, object]:
        changed = self.scenario_of(placement)
        job = plan_comparison(changed, (self.variant,))[-1]
        return engine_config(changed, replace(job, seed=seed), self.traces)


NOWHERE = Placement((), (), 0)


def place(scenario: Scenario, folder: Path, space: Space, *, threads: int | None = None) -> Search:
    """Search positions, variants and caches for the flow under test with the first of `compare.variants`.

    `folder` is that of the scenario's files. ScenarioError for a path without inner nodes, or what the engine refuses.
    """
    traces = {name: loss_trace(trace, name) for name, trace in load_traces(scenario, folder).items()}
    runner = _Runner(scenario, traces, threads)
    candidates = list(_candidates(scenario, space, runner.variant))
    for candidate in candidates[:1] + candidates[-1:]:
        changed = runner.scenario_of(candidate)
        check_jobs(changed, plan_comparison(changed, (runner.variant,)), traces)
    seeds = max(1, scenario.compare.seeds)
    coarse = runner.goodputs(candidates, min(COARSE_SEEDS, seeds))
    leaders: dict[tuple[tuple[str, ...], tuple[str, ...]], Placement] = {}
    for candidate in sorted(candidates, key=lambda each: -fmean(coarse[each])):
        leaders.setdefault((candidate.nodes, candidate.variants), candidate)
    fine = runner.goodputs((NOWHERE, *list(leaders.values())[:BEST]), seeds)
    baseline = fine.pop(NOWHERE)
    ranked = [
        Ranked(
            placement,
            mean_interval(values),
            mean_interval([after - before for after, before in zip(values, baseline, strict=True)]),
            _knee(runner, placement, space.max_cache_pkts, seeds),
        )
        for placement, values in fine.items()
    ]
    ranked.sort(key=lambda each: -each.goodput_bps.mean)
    return Search(runner.variant, mean_interval(baseline), tuple(ranked), len(candidates), runner.runs)


def _candidates(scenario: Scenario, space: Space, variant: str) -> Iterable[Placement]:
    inner = scenario.path[1:-1]
    nodes = space.nodes or inner
    outside = [node for node in nodes if node not in inner]
    if outside or not nodes:
        allowed = ", ".join(inner) or "there is none"
        named = repr(outside[0]) if outside else "the path"
        raise ScenarioError(f"{scenario.where}: {named}: no node between the ends for a proxy; allowed: {allowed}")
    variants = space.variants or (variant,)
    caches = sorted({max(1, round(share * space.max_cache_pkts)) for share in GRID})
    ordered = [node for node in inner if node in nodes]
    for count in range(1, min(space.max_proxies, len(ordered)) + 1):
        for chain in combinations(ordered, count):
            for onward in product(variants, repeat=count):
                yield from (Placement(chain, onward, cache) for cache in caches)


def _knee(runner: _Runner, placement: Placement, max_cache: int, seeds: int) -> int | None:
    """Return the smallest cache with KNEE_SHARE of the goodput of the largest, by bisection; None without a cache.

    Goodput grows with the cache but for noise, which the paired seeds keep small.
    """
    tables = [proxy for proxy in runner.scenario_of(placement).proxy if proxy.node in placement.nodes]
    if all(proxy.advertise == "sockets" for proxy in tables):
        return None

    def mean(cache: int) -> float:
        each = Placement(placement.nodes, placement.variants, cache)
        return fmean(runner.goodputs((each,), seeds)[each])

    enough, low, high = KNEE_SHARE * mean(max_cache), 0, max_cache
    # To a thirtieth of the cache found.
    while high - low > max(1, high // 30):
        middle = (low + high) // 2
        low, high = (low, middle) if mean(middle) >= enough else (middle, high)
    return high
