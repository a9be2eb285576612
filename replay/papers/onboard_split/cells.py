"""The configurations of Luglio et al. 2004 and what is measured of each.

Depends on the lab; knows no claim.
"""

from __future__ import annotations

from hindflight.replay.papers.lab import Lab, Rows
from hindflight.replay.papers.model import Cell, Change, table
from hindflight.replay.papers.statistics import Samples

SINGLE, SECOND = "onboard-split", "onboard-double"
SHADOWED, BOTH_SHADOWED, SHARING = "onboard-shadowed", "onboard-both-shadowed", "onboard-sharing"
GATEWAY = "onboard-gateway"
"""Beyond the paper."""
SCENARIOS = (SINGLE, SECOND, SHADOWED, BOTH_SHADOWED, SHARING, GATEWAY)
NEWRENO, WESTWOOD = "newreno", "westwood"
VARIANTS = (NEWRENO, WESTWOOD)
NONE, SPLIT = "none", "on-board"
BERS = (1e-6, 1e-7, 1e-8)
WORST, BETTER, BEST = BERS
SLOW, FAST = 1, 20
"""Rates in Mbit/s."""
RATES = (SLOW, FAST)
_CACHE, POOL = "proxy.on-board.receive_buffer", "proxy.on-board.pool"
MSS_BYTES = 1460
PACKET_BITS = 8 * 1500

_LINKS = {SINGLE: ("up", "down"), SECOND: ("up", "isl", "down")}
_NAMES = {NEWRENO: "NewReno", WESTWOOD: "Westwood"}
_PATHS = {
    SINGLE: "one satellite",
    SECOND: "two satellites",
    SHADOWED: "sender shadowed",
    BOTH_SHADOWED: "both ends shadowed",
    SHARING: "two flows",
}
_FAST_STACK = {SINGLE: ("833 pkts", "1000 pkts"), SECOND: ("1529 pkts", "2000 pkts")}
"""At 20 Mbit/s: initial ssthresh (the pipe end to end) and the queue of every link."""
LARGE = {(SINGLE, SLOW): 200, (SINGLE, FAST): 4000, (SECOND, SLOW): 400, (SECOND, FAST): 8000}
"""A cache in packets beyond which more adds nothing, by path and rate: about ten times the pipe of the longer link."""
SWEEPS = {
    (SINGLE, SLOW): (3, 6, 9, 15, 21, 27, 33, 42, 51, 63, 75, 90, 120, 160, 200),
    (SINGLE, FAST): (30, 90, 200, 400, 800, 1250, 1700, 2500, 4000),
    (SECOND, SLOW): (3, 9, 21, 33, 51, 75, 100, 130, 167, 210, 300, 400),
    (SECOND, FAST): (30, 90, 200, 400, 800, 1400, 2200, 3340, 5000, 8000),
}
FEW_CACHES = 9
"""A quick run takes every second cache of a longer sweep."""
_LIKE_SINGLE = (SHADOWED, BOTH_SHADOWED, SHARING)


def shape_of(scenario: str) -> str:
    """Return the path whose links and caches `scenario` has."""
    return SINGLE if scenario in _LIKE_SINGLE else scenario


def at_rate(scenario: str, rate_mbps: int) -> tuple[Change, ...]:
    """Return the changes that give every satellite link this rate, with queue and initial ssthresh to match."""
    if rate_mbps == SLOW:
        return ()
    ssthresh, queue = _FAST_STACK[shape_of(scenario)]
    changes: list[Change] = [("flow.initial_ssthresh", ssthresh)]
    for link in _LINKS[shape_of(scenario)]:
        for way in ("", "reverse."):
            changes += [(f"links.{link}.{way}rate", f"{rate_mbps} Mbit/s"), (f"links.{link}.{way}queue", queue)]
    return tuple(changes)


def at_ber(ber: float) -> tuple[Change, ...]:
    """Return the changes that give up- and downlink this bit error rate in both directions."""
    return tuple((f"links.{link}.{way}loss.ber", ber) for link in ("up", "down") for way in ("", "reverse."))


def cell(scenario: str, variant: str, proxy: str, rate_mbps: int = SLOW, ber: float = WORST) -> Cell:
    """Return one configuration, its cache large enough not to limit it."""
    large = ("proxy.on-board.receive_buffer", f"{LARGE[shape_of(scenario), rate_mbps]} pkts")
    return Cell(scenario, variant, proxy, (*at_rate(scenario, rate_mbps), *at_ber(ber), large))


def with_cache(base: Cell, cache: int) -> Cell:
    """Return `base` with a cache of so many packets."""
    return base.but((_CACHE, f"{cache} pkts"))


def with_flows(variant: str, flows: int, cache: int) -> Cell:
    """Return the single satellite at 1 Mbit/s with so many equal flows, which share one cache."""
    stack = {"profile": "ns2", "mss": "1460 B", "initial_ssthresh": "42 pkts", "receive_buffer": "64 MiB"}
    others = tuple(table(name=f"other{n}", variant=variant, proxies=(SPLIT,), **stack) for n in range(1, flows))
    base = with_cache(cell(SINGLE, variant, SPLIT), cache)
    return base.but(("flows", others), (POOL, "shared")) if others else base


def divided(each: Cell) -> tuple[Change, ...]:
    """Return the changes that divide the cache of several flows evenly between them."""
    if each.get(POOL) != "shared":
        return ()
    cache = int(each.get(_CACHE).removesuffix(" pkts"))
    return ((POOL, "own"), (_CACHE, f"{max(1, cache // (1 + len(each.get('flows'))))} pkts"))


def describe(each: Cell) -> str:
    """Return a cell in words: variant, split, path."""
    return f"{_NAMES[each.variant]}, {'split' if each.proxy == SPLIT else 'no proxy'}, {_PATHS[each.scenario]}"


def name_of(variant: str) -> str:
    """Return a variant as the paper writes it."""
    return _NAMES[variant]


def goodput_kbps(rows: Rows) -> float:
    """Goodput of the flow under test in kbit/s."""
    return float(rows[0]["goodput_bps"]) / 1e3


def sum_kbps(rows: Rows) -> float:
    """Sum of the goodputs of all flows in kbit/s."""
    return sum(float(row["goodput_bps"]) for row in rows) / 1e3


def share_of_first(rows: Rows) -> float:
    """Share of the flow under test in the sum of the goodputs."""
    return float(rows[0]["goodput_bps"]) / sum(float(row["goodput_bps"]) for row in rows)


def goodputs(lab: Lab, each: Cell) -> Samples:
    """Return the goodput of each run of a cell in kbit/s."""
    return lab.sample(each, goodput_kbps)


def goodputs_at_worst(scenario: str, lab: Lab) -> dict[str, float]:
    """Return the goodput in kbit/s of NewReno and Westwood with and without a split, at 20 Mbit/s and the highest bit
    error rate, and the timeouts of a run of NewReno, as means of the runs."""
    found = {}
    for variant in VARIANTS:
        for proxy, name in ((SPLIT, "split"), (NONE, "end to end")):
            each = cell(scenario, variant, proxy, FAST)
            found[f"{_NAMES[variant]} {name}"] = float(goodputs(lab, each).mean())
    for proxy, name in ((SPLIT, "split"), (NONE, "end to end")):
        found[f"timeouts {name}"] = float(lab.sample(cell(scenario, NEWRENO, proxy, FAST), "rtos").mean())
    return found


def sweep(lab: Lab, base: Cell, rate_mbps: int = SLOW) -> tuple[tuple[int, ...], list[Samples]]:
    """Return the caches of a sweep and the goodput in kbit/s with each, one value per seed."""
    caches = SWEEPS[shape_of(base.scenario), rate_mbps]
    caches = (*caches[:-1:2], caches[-1]) if lab.quick and len(caches) > FEW_CACHES else caches
    cells = [with_cache(base, cache) for cache in caches]
    lab.run(*cells)
    return caches, [goodputs(lab, each) for each in cells]
