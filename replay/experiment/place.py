"""Where to put a proxy, with which variant onward and how much memory: a search over one scenario.

Coarse to fine: all candidates over few seeds, then the best over all seeds, then the smallest cache that is as good.
All runs with the same seed meet the same channel, so differences are paired. Read docs/proxies.md, "Placement".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from math import comb
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
MAX_CANDIDATES = 4000
"""Candidates of one search."""
CHUNK = 64
"""Runs between two reports of progress."""
KNEE_SHARE = 0.95
"""The knee is the smallest cache with this share of the goodput of the largest."""


Progress = Callable[[int, int], None]
"""What a search calls with the runs that are done and about how many there are."""


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

    def __init__(self, scenario: Scenario, traces: dict[str, LossTrace], threads: int | None, report: Progress) -> None:
        self.scenario, self.traces, self.threads, self.report = scenario, traces, threads, report
        self.variant = scenario.compare.variants[0]
        self.planned = 0
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
        for chunk in _chunks(missing):
            configurations = [Configuration(self._config(*key), key[1], False) for key in chunk]
            runs = run_configurations(configurations, threads=self.threads)["runs"].to_pylist()
            found = [run["goodput_bps"] for run in runs if run["flow_id"] == 1]
            self._known.update(zip(chunk, found, strict=True))
            self.report(self.runs, max(self.runs, self.planned))
        return {placement: [self._known[placement, first + i] for i in range(seeds)] for placement in wanted}

    def scenario_of(self, placement: Placement) -> Scenario:
        """Return the scenario with the proxies of `placement`, each as the file has it but for variant and cache."""
        files = {proxy.node: proxy for proxy in self.scenario.proxy if proxy.kind == "split"}
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


def _chunks(keys: Sequence[tuple[Placement, int]]) -> Iterator[Sequence[tuple[Placement, int]]]:
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))


NOWHERE = Placement((), (), 0)


def _silent(_done: int, _total: int) -> None:
    """Report nothing."""


def place(
    scenario: Scenario, folder: Path, space: Space, *, threads: int | None = None, report: Progress = _silent
) -> Search:
    """Search positions, variants and caches for the flow under test with the first of `compare.variants`.

    `folder` is that of the scenario's files; `report` is called with the runs so far and about how many there are.
    ScenarioError for a path without inner nodes, for more than MAX_CANDIDATES, or what the engine refuses.
    """
    traces = {name: loss_trace(trace, name) for name, trace in load_traces(scenario, folder).items()}
    runner = _Runner(scenario, traces, threads, report)
    candidates = list(_candidates(scenario, space, runner.variant))
    for candidate in candidates[:1] + candidates[-1:]:
        changed = runner.scenario_of(candidate)
        check_jobs(changed, plan_comparison(changed, (runner.variant,)), traces)
    seeds = max(1, scenario.compare.seeds)
    runner.planned = _planned(len(candidates), seeds, space.max_cache_pkts)
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


def _planned(candidates: int, seeds: int, max_cache_pkts: int) -> int:
    """Return about how many runs a search makes: coarse, fine, and the bisections of the knees."""
    best = min(BEST, candidates)
    steps = min(6, max_cache_pkts.bit_length())
    return candidates * min(COARSE_SEEDS, seeds) + (best + 1) * seeds + best * steps * seeds


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
    counts = range(1, min(space.max_proxies, len(ordered)) + 1)
    total = len(caches) * sum(comb(len(ordered), count) * len(variants) ** count for count in counts)
    if total > MAX_CANDIDATES:
        what = f"{total} placements of {len(ordered)} nodes and {len(variants)} variants; at most {MAX_CANDIDATES}"
        raise ScenarioError(f"{scenario.where}: {what}", "name fewer nodes or variants, or fewer proxies at once")
    for count in counts:
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
