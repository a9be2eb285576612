"""How each claim of Palazzi et al. 2005 is judged. The claims are in data/claims-000.toml, the cells in cells.py."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product

from hindflight.replay.papers.haps_split.cells import (
    BACK,
    CACHES,
    DIRECTIONS,
    DOUBLE,
    FEW_CACHES,
    GREEDY,
    HIGH,
    LOW,
    MIDDLE,
    NEWRENO,
    NONE,
    OUT,
    PERS,
    TRANSFER,
    TRUCK,
    VARIANTS,
    WESTWOOD,
    cell,
    describe,
    first_loop_ms,
    goodput_kbps,
    growth_pkts_per_s,
    halvings,
    mean_window_pkts,
    percent,
    second_loop_ms,
    time_s,
    with_bursts,
    with_cache,
)
from hindflight.replay.papers.haps_split.units import interval_parts, reaction_parts, zero_window_part
from hindflight.replay.papers.lab import Lab
from hindflight.replay.papers.memory import memory_part
from hindflight.replay.papers.model import Cell, Claim, Judges, Part
from hindflight.replay.papers.statistics import (
    Samples,
    bootstrap,
    break_of_slope,
    difference,
    estimate,
    knee_of,
    mean,
    ratio,
)
from hindflight.replay.papers.verdicts import exact, holds, ordered, within

KNEE_PKTS = 84
NOISE = 0.97
"""A sweep does not fall if no point is below this share of the one before."""
STEEPER = 3.0
"""A curve bends at the knee if it is this many times as steep below as above."""
MANY_HALVINGS = 5
BREAK, MEAN_WINDOW = "break of slope", "mean window"
"""Other measures: the knee as the break of two lines, growth as the mean window."""
CAPACITY_BPS = 1e6
FILE_BITS = 8 * 5e6

judge = Judges()


def _times(lab: Lab, variant: str, proxy: str, per: float, scenario: str = OUT) -> Samples:
    return lab.sample(cell(variant, proxy, per, TRANSFER, scenario), time_s)


def _goodputs(lab: Lab, variant: str, proxy: str, per: float, scenario: str = OUT) -> Samples:
    return lab.sample(cell(variant, proxy, per, GREEDY, scenario), goodput_kbps)


@judge("000-C01")
def _pipe(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", CAPACITY_BPS * 2 * (0.125 + 0.125) / (8 * 1500), claim.bounds)]


@judge("000-C02")
def _round_trip(_lab: Lab, claim: Claim) -> list[Part]:
    sending_ms = 4 * 8 * 1500 / CAPACITY_BPS * 1e3
    return [exact("", 2 * (125 + 125 + 0.1 + 0.1) + sending_ms, claim.bounds)]


def _ratio_of_times(lab: Lab, proxy: str, per: float) -> list[Samples]:
    return [_times(lab, WESTWOOD, proxy, per), _times(lab, NEWRENO, proxy, per)]


_RATIOS = {
    "000-C03": (NONE, LOW),
    "000-C04": (NONE, HIGH),
    "000-C05": (NONE, MIDDLE),
    "000-C07": (TRUCK, LOW),
    "000-C08": (TRUCK, MIDDLE),
    "000-C09": (TRUCK, HIGH),
}


@judge(*_RATIOS)
def _time_ratio(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", ratio(*_ratio_of_times(lab, *_RATIOS[claim.claim_id])), claim.bounds)]


@judge("000-C06")
def _ratio_falls(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for less, more in pairwise(PERS):
        samples = (*_ratio_of_times(lab, NONE, less), *_ratio_of_times(lab, NONE, more))
        parts.append(ordered(f"{percent(less)} to {percent(more)}", estimate(_difference_of_ratios, *samples)))
    return parts


def _difference_of_ratios(a: float, b: float, c: float, d: float) -> float:
    return a / b - c / d


@judge("000-C10")
def _gap_narrows(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for per in PERS:
        without, split = (_ratio_of_times(lab, proxy, per)[::-1] for proxy in (NONE, TRUCK))
        parts.append(ordered(percent(per), estimate(_difference_of_ratios, *without, *split)))
    return parts


def _faster(lab: Lab, name: str, slow: Cell, fast: Cell) -> Part:
    return ordered(name, difference(lab.sample(slow, time_s), lab.sample(fast, time_s)))


def _each_remedy(lab: Lab, scenario: str) -> Iterator[Part]:
    for per in PERS:
        plain = cell(NEWRENO, NONE, per, TRANSFER, scenario)
        yield _faster(lab, f"Westwood, {percent(per)}", plain, plain.but(variant=WESTWOOD))
        yield _faster(lab, f"proxy, NewReno, {percent(per)}", plain, plain.but(proxy=TRUCK))


def _proxy_helps_westwood(lab: Lab, scenario: str) -> Iterator[Part]:
    for per in PERS:
        plain = cell(WESTWOOD, NONE, per, TRANSFER, scenario)
        yield _faster(lab, f"proxy, Westwood, {percent(per)}", plain, plain.but(proxy=TRUCK))


@judge("000-C11")
def _remedies(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_each_remedy(lab, OUT))


@judge("000-C12")
def _proxy_for_westwood(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_proxy_helps_westwood(lab, OUT))


@judge("000-C20")
def _return_times(lab: Lab, _claim: Claim) -> list[Part]:
    return [*_each_remedy(lab, BACK), *_proxy_helps_westwood(lab, BACK)]


def _spread(*means: float) -> float:
    return max(means) / min(means)


@judge("000-C13")
def _times_are_flat(lab: Lab, claim: Claim) -> list[Part]:
    return [
        within(v, estimate(_spread, *(_times(lab, v, TRUCK, per) for per in PERS)), claim.bounds, tolerance=0.15)
        for v in VARIANTS
    ]


def _goodputs_are_flat(lab: Lab, scenario: str, bounds: tuple[float, float]) -> Iterator[Part]:
    for variant in VARIANTS:
        samples = [_goodputs(lab, variant, TRUCK, per, scenario) for per in PERS]
        yield within(f"flat, {variant}", estimate(_spread, *samples), bounds, tolerance=0.1)


@judge("000-C17")
def _goodput_is_flat(lab: Lab, claim: Claim) -> list[Part]:
    return list(_goodputs_are_flat(lab, OUT, claim.bounds))


@judge("000-C14", "000-C15")
def _goodput_with_proxy(lab: Lab, claim: Claim) -> list[Part]:
    per = {"000-C14": HIGH, "000-C15": LOW}[claim.claim_id]
    return [within("", mean(_goodputs(lab, WESTWOOD, TRUCK, per)), claim.bounds)]


def _best_of_four(lab: Lab, scenario: str) -> Iterator[Part]:
    for per in PERS:
        best = _goodputs(lab, WESTWOOD, TRUCK, per, scenario)
        for variant, proxy in ((NEWRENO, NONE), (NEWRENO, TRUCK), (WESTWOOD, NONE)):
            other = cell(variant, proxy, per, GREEDY, scenario)
            found = difference(best, lab.sample(other, goodput_kbps))
            yield ordered(f"above {describe(other)}, {percent(per)}", found)


@judge("000-C16")
def _best(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_best_of_four(lab, OUT))


@judge("000-C21")
def _best_on_return(lab: Lab, _claim: Claim) -> list[Part]:
    return [*_best_of_four(lab, BACK), *_goodputs_are_flat(lab, BACK, (0.0, 1.10))]


def _falls_without_proxy(lab: Lab, scenario: str) -> Iterator[Part]:
    for variant in VARIANTS:
        for less, more in pairwise(PERS):
            found = difference(
                _goodputs(lab, variant, NONE, less, scenario), _goodputs(lab, variant, NONE, more, scenario)
            )
            yield ordered(f"{variant}, {percent(less)} to {percent(more)}", found)
    for per in PERS:
        lowest = _goodputs(lab, NEWRENO, NONE, per, scenario)
        for variant, proxy in ((WESTWOOD, NONE), (NEWRENO, TRUCK), (WESTWOOD, TRUCK)):
            found = difference(_goodputs(lab, variant, proxy, per, scenario), lowest)
            yield ordered(f"NewReno without a proxy below {variant}, {proxy}, {percent(per)}", found)


@judge("000-C18")
def _goodput_falls(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_falls_without_proxy(lab, OUT))


@judge("000-C19")
def _directions_agree(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for variant, proxy, per in product(VARIANTS, (NONE, TRUCK), PERS):
        for traffic, metric in ((TRANSFER, time_s), (GREEDY, goodput_kbps)):
            ways = [lab.sample(cell(variant, proxy, per, traffic, way), metric) for way in (BACK, OUT)]
            name = f"{'time' if traffic else 'goodput'}, {variant}, {proxy}, {percent(per)}"
            parts.append(within(name, ratio(*ways), claim.bounds))
    return [*parts, *_each_remedy(lab, BACK), *_best_of_four(lab, BACK), *_falls_without_proxy(lab, BACK)]


def _growth_of(lab: Lab, each: Cell) -> Samples:
    """Return the growth of the window of the last connection, or its mean, by the measure of the reading."""
    return lab.measure(each, mean_window_pkts if lab.reading.measure == MEAN_WINDOW else growth_pkts_per_s)


def _last_connections(per: float) -> list[Cell]:
    return [cell(NEWRENO, proxy, per) for proxy in (NONE, TRUCK, DOUBLE)]


@judge("000-C22")
def _growth(lab: Lab, _claim: Claim) -> list[Part]:
    none, truck, double = (_growth_of(lab, each) for each in _last_connections(HIGH))
    return [ordered("T and S above T", difference(double, truck)), ordered("T above none", difference(truck, none))]


@judge("000-C23")
def _window_without_proxy(lab: Lab, claim: Claim) -> list[Part]:
    plain = cell(NEWRENO, NONE, HIGH)
    often = lab.measure(plain, halvings)
    return [
        within("mean window", mean(lab.measure(plain, mean_window_pkts)), claim.bounds),
        holds("halvings in 230 s", bool(often.min() >= MANY_HALVINGS), float(often.mean())),
    ]


@judge("000-C24")
def _window_with_proxy(lab: Lab, _claim: Claim) -> list[Part]:
    none, truck = (lab.measure(each, mean_window_pkts) for each in _last_connections(HIGH)[:2])
    return [ordered("", difference(truck, none))]


@judge("000-C40")
def _loops(lab: Lab, claim: Claim) -> list[Part]:
    double = cell(NEWRENO, DOUBLE, HIGH)
    return [
        within("T-S", mean(lab.measure(double, first_loop_ms)), claim.bounds),
        within("S-G", mean(lab.measure(double, second_loop_ms)), claim.bounds),
    ]


@judge("000-C25")
def _share_of_capacity(lab: Lab, claim: Claim) -> list[Part]:
    found = estimate(lambda t: FILE_BITS / t / CAPACITY_BPS, _times(lab, NEWRENO, DOUBLE, HIGH))
    return [within("", found, claim.bounds)]


@judge("000-C26", "000-C38")
def _equal_with_both(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", ratio(_times(lab, NEWRENO, DOUBLE, HIGH), _times(lab, WESTWOOD, DOUBLE, HIGH)), claim.bounds)]


@judge("000-C27")
def _each_proxy_helps(lab: Lab, _claim: Claim) -> list[Part]:
    none, truck, double = (_times(lab, NEWRENO, proxy, HIGH) for proxy in (NONE, TRUCK, DOUBLE))
    return [ordered("none above T", difference(none, truck)), ordered("T above T and S", difference(truck, double))]


@judge("000-C28")
def _newreno_gains_more(lab: Lab, _claim: Claim) -> list[Part]:
    samples = [_times(lab, variant, proxy, HIGH) for variant in (NEWRENO, WESTWOOD) for proxy in (NONE, DOUBLE)]
    return [ordered("", estimate(lambda a, b, c, d: (1 - b / a) - (1 - d / c), *samples))]


def sweep(lab: Lab, variant: str, scenario: str) -> tuple[tuple[int, ...], list[Samples]]:
    """Return the caches at T and the goodput in kbit/s with each, one value per seed."""
    caches = FEW_CACHES if lab.quick else CACHES
    cells = [with_cache(cell(variant, TRUCK, HIGH, GREEDY, scenario), cache) for cache in caches]
    lab.run(*cells)
    return caches, [lab.sample(each, goodput_kbps) for each in cells]


def _curves(variants: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    for variant, scenario in product(variants, DIRECTIONS):
        yield describe(cell(variant, TRUCK, HIGH, GREEDY, scenario)), variant, scenario


@judge("000-C29", "000-C30")
def _knee(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for name, variant, scenario in _curves((WESTWOOD,) if claim.claim_id == "000-C29" else VARIANTS):
        caches, goodputs = sweep(lab, variant, scenario)
        knee = break_of_slope if lab.reading.measure == BREAK else knee_of
        found = bootstrap(lambda *ys, xs=caches, knee=knee: knee(xs, ys), *goodputs)
        parts.append(within(name, found, claim.bounds))
    return parts


@judge("000-C31")
def _rises_and_bends(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for name, variant, scenario in _curves(VARIANTS):
        caches, goodputs = sweep(lab, variant, scenario)
        means = [float(values.mean()) for values in goodputs]
        lowest = min(after / before for before, after in pairwise(means))
        parts.append(holds(f"{name}: minimum step, as a ratio", lowest >= NOISE, lowest))
        bend = estimate(lambda *ys, xs=caches: _bend(xs, ys), *goodputs)
        parts.append(ordered(f"{name}: slope below less {STEEPER:g} times that above {KNEE_PKTS} pkts", bend))
    return parts


def _bend(xs: tuple[int, ...], ys: tuple[float, ...]) -> float:
    """Return the mean slope of a curve below the knee less STEEPER times that above, which may be 0, in kbit/s per
    packet."""
    at = next(number for number, x in enumerate(xs) if x >= KNEE_PKTS)
    knee = ys[at - 1] + (ys[at] - ys[at - 1]) * (KNEE_PKTS - xs[at - 1]) / (xs[at] - xs[at - 1])
    below = (knee - ys[0]) / (KNEE_PKTS - xs[0])
    above = (ys[-1] - knee) / (xs[-1] - KNEE_PKTS)
    return below - STEEPER * above


@judge("000-C32")
def _small_cache(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for name, variant, scenario in _curves(VARIANTS):
        base = cell(variant, TRUCK, HIGH, GREEDY, scenario)
        small, large = (lab.sample(with_cache(base, cache), goodput_kbps) for cache in (10, 200))
        parts.append(within(name, ratio(small, large), claim.bounds, tolerance=0.5))
    return parts


@judge("000-C33")
def _never_overflows(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for (name, variant, scenario), cache in product(_curves(VARIANTS), (10, 84, 200)):
        stored = with_cache(cell(variant, TRUCK, HIGH, GREEDY, scenario), cache)
        parts.append(memory_part(lab, f"{name}, cache {cache}", stored, cache))
    return parts


@judge("000-C34")
def _zero_window(lab: Lab, _claim: Claim) -> list[Part]:
    return [zero_window_part(lab.recorded(with_cache(cell(NEWRENO, TRUCK, HIGH, TRANSFER), 10), segments=True))]


@judge("000-C35")
def _sampling_interval(_lab: Lab, _claim: Claim) -> list[Part]:
    return interval_parts()


@judge("000-C36")
def _reaction(_lab: Lab, _claim: Claim) -> list[Part]:
    return reaction_parts()


@judge("000-C39")
def _cache_without_proxy(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for scenario in DIRECTIONS:
        goodputs = []
        for variant in VARIANTS:
            base = cell(variant, NONE, HIGH, GREEDY, scenario)
            small, large = (lab.sample(with_cache(base, cache), goodput_kbps) for cache in (10, 250))
            parts.append(holds(f"horizontal, {describe(base)}", bool((small == large).all()), float(large.mean())))
            goodputs.append(large)
        parts.append(ordered(f"NewReno below Westwood, {scenario}", difference(goodputs[1], goodputs[0])))
    return parts


@judge("000-C41")
def _cache_against_bursts(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant in VARIANTS:
        base = with_bursts(cell(variant, TRUCK, HIGH))
        large, small = (lab.sample(with_cache(base, cache), goodput_kbps) for cache in (200, KNEE_PKTS))
        parts.append(ordered(variant, difference(large, small)))
    return parts
