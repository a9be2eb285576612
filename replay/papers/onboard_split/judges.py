"""How each claim of Luglio et al. 2004 is judged. The claims are in data/claims-003.toml, the cells in cells.py."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from hindflight.replay.papers.lab import Lab, scenario_of
from hindflight.replay.papers.memory import memory_part
from hindflight.replay.papers.model import Cell, Claim, Estimate, Judges, Part
from hindflight.replay.papers.onboard_split.cells import (
    BERS,
    BEST,
    BETTER,
    BOTH_SHADOWED,
    FAST,
    NEWRENO,
    NONE,
    PACKET_BITS,
    RATES,
    SECOND,
    SHADOWED,
    SHARING,
    SINGLE,
    SLOW,
    SPLIT,
    SWEEPS,
    VARIANTS,
    WESTWOOD,
    WORST,
    at_rate,
    cell,
    goodputs,
    name_of,
    share_of_first,
    sum_kbps,
    sweep,
    with_cache,
    with_flows,
)
from hindflight.replay.papers.onboard_split.units import fixed_parts, masking_parts
from hindflight.replay.papers.statistics import Samples, bootstrap, break_of_slope, difference, estimate, knee_of, ratio
from hindflight.replay.papers.verdicts import exact, holds, ordered, within

SMALL_CACHE = 9
BREAK, WITH_SPLIT, AT_20, GOODPUT = "break of slope", "with the split", "at 20 Mbit/s", "goodput"
"""Other measures: the knee as the break of two lines, Westwood and NewReno behind the proxy, the faster links, and
goodput in the shadow in place of the share that it leaves."""
NOT_BELOW = (1.0, float("inf"))
"""Bounds of a ratio that is not below 1."""
GAIN_OF_NEWRENO = (1.5, 2.7)
"""003-C26 has a number for each variant; this is NewReno's tolerance."""
FLOWS = (1, 2, 5)
ROUND_TRIPS_S, RATES_BPS = (0.05, 0.25, 0.5, 1.0), (1e6, 20e6)
"""Of figures 1 and 2, whose axes are lost: from a terrestrial path to two satellites."""

_ROUND_TRIP_S = {SINGLE: 0.5, SECOND: 0.917}
"""Of the paths by their geometry: twice two links of 125 ms; and Rome to Los Angeles with 207 ms between satellites."""

judge = Judges()


def _gain(lab: Lab, variant: str, rate: int, ber: float, scenario: str = SINGLE) -> list[Samples]:
    """Return the goodputs with and without a split, whose ratio is the gain."""
    return [goodputs(lab, cell(scenario, variant, proxy, rate, ber)) for proxy in (SPLIT, NONE)]


def _quotients(a: float, b: float, c: float, d: float) -> float:
    return a / b - c / d


@judge("003-C01", "003-C02")
def _utilisation(lab: Lab, claim: Claim) -> list[Part]:
    variant = WESTWOOD if claim.claim_id == "003-C01" else NEWRENO
    found = estimate(lambda kbps: kbps / (1e3 * SLOW), goodputs(lab, cell(SINGLE, variant, NONE)))
    return [within("", found, claim.bounds)]


def _westwood_to_newreno(lab: Lab, scenario: str, rate: int, ber: float) -> list[Samples]:
    proxy = SPLIT if lab.reading.measure == WITH_SPLIT else NONE
    return [goodputs(lab, cell(scenario, variant, proxy, rate, ber)) for variant in (WESTWOOD, NEWRENO)]


@judge("003-C03")
def _ratio(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", ratio(*_westwood_to_newreno(lab, SINGLE, SLOW, WORST)), claim.bounds)]


@judge("003-C04")
def _gains(lab: Lab, _claim: Claim) -> list[Part]:
    newreno, westwood = (_gain(lab, variant, SLOW, WORST) for variant in (NEWRENO, WESTWOOD))
    return [
        ordered("NewReno above Westwood", estimate(_quotients, *newreno, *westwood)),
        ordered("Westwood above 1", estimate(lambda a, b: a / b - 1, *westwood)),
    ]


def _knee(lab: Lab, name: str, base: Cell, rate: int, bounds: tuple[float, float]) -> Part:
    caches, found = sweep(lab, base, rate)
    knee = _knee_by(lab)
    return within(name, bootstrap(lambda *ys: knee(caches, ys), *found), bounds)


def _knee_by(lab: Lab) -> Callable[[Sequence[float], Sequence[float]], float]:
    """Return the definition of the knee that the reading asks for."""
    return break_of_slope if lab.reading.measure == BREAK else knee_of


@judge("003-C05")
def _knee_at_1(lab: Lab, claim: Claim) -> list[Part]:
    return [_knee(lab, name_of(v), cell(SINGLE, v, SPLIT), SLOW, claim.bounds) for v in VARIANTS]


@judge("003-C12")
def _knee_at_20(lab: Lab, claim: Claim) -> list[Part]:
    return [
        _knee(lab, f"{name_of(v)}, BER {ber:g}", cell(SINGLE, v, SPLIT, FAST, ber), FAST, claim.bounds)
        for v, ber in product(VARIANTS, BERS)
    ]


def _pipe_pkts(rate_bps: float, round_trip_s: float) -> float:
    return rate_bps * round_trip_s / PACKET_BITS


@judge("003-C06")
def _pipe(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", _pipe_pkts(1e6, 2 * 0.125), (claim.bounds[0], claim.bounds[1]))]


@judge("003-C07")
def _three_pipes(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", 3.0 * math.ceil(_pipe_pkts(1e6, 2 * 0.125)), claim.bounds)]


@judge("003-C08")
def _small_cache(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant in VARIANTS:
        without = goodputs(lab, cell(SINGLE, variant, NONE))
        small = goodputs(lab, with_cache(cell(SINGLE, variant, SPLIT), SMALL_CACHE))
        parts.append(ordered(name_of(variant), difference(without, small)))
    return parts


@judge("003-C09")
def _enough(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for variant in VARIANTS:
        large = cell(SINGLE, variant, SPLIT)
        found = ratio(goodputs(lab, with_cache(large, 100)), goodputs(lab, large))
        parts.append(within(name_of(variant), found, claim.bounds))
    return parts


@judge("003-C10")
def _knee_by_flows(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    caches = tuple(cache for cache in SWEEPS[SINGLE, SLOW] if cache >= 3 * max(FLOWS))
    for variant, flows in product(VARIANTS, FLOWS):
        cells = [with_flows(variant, flows, cache) for cache in caches]
        lab.run(*cells)
        found = [lab.sample(each, sum_kbps) for each in cells]
        at = bootstrap(lambda *ys: _knee_by(lab)(caches, ys), *found)
        parts.append(within(f"{name_of(variant)}, {flows} flow{'' if flows == 1 else 's'}", at, claim.bounds))
    return parts


@judge("003-C11")
def _gain_by_rate(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant, ber in product(VARIANTS, (BETTER, BEST)):
        fast, slow = (_gain(lab, variant, rate, ber) for rate in (FAST, SLOW))
        parts.append(ordered(f"{name_of(variant)}, BER {ber:g}", estimate(_quotients, *fast, *slow)))
    return parts


def _max_gain_of(lab: Lab, variants: tuple[str, ...]) -> Estimate:
    """Return the maximum gain: seeds of one half choose the configuration, those of the other half measure it.

    The maximum of noisy gains is above the gain of any configuration; seeds that did not choose are free of that.
    """
    gains = [_gain(lab, variant, rate, ber) for variant, rate, ber in product(variants, RATES, BERS)]
    split, plain = max(gains, key=lambda pair: pair[0][::2].mean() / pair[1][::2].mean())
    return ratio(split[1::2], plain[1::2])


@judge("003-C13")
def _max_gain(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", _max_gain_of(lab, VARIANTS), claim.bounds, tolerance=1.0)]


@judge("003-C29")
def _max_gains(lab: Lab, claim: Claim) -> list[Part]:
    return [within(name_of(v), _max_gain_of(lab, (v,)), claim.bounds) for v in VARIANTS]


def _sum_of_differences(*values: float) -> float:
    """Return the sum of differences of quotients of four values each."""
    return sum(_quotients(*values[at : at + 4]) for at in range(0, len(values), 4))


@judge("003-C14")
def _trends(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant in VARIANTS:
        for ber in BERS:
            gains = [samples for rate in (FAST, SLOW) for samples in _gain(lab, variant, rate, ber)]
            parts.append(ordered(f"{name_of(variant)}, with the rate, BER {ber:g}", estimate(_quotients, *gains)))
        for rate, (worse, better) in product(RATES, pairwise(BERS)):
            gains = [samples for ber in (worse, better) for samples in _gain(lab, variant, rate, ber)]
            name = f"{name_of(variant)}, {rate} Mbit/s, BER {better:g} to {worse:g}"
            parts.append(ordered(name, estimate(_quotients, *gains)))
    return parts


@judge("003-C15")
def _westwood_everywhere(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for rate, ber in product(RATES, BERS):
        where = f"{rate} Mbit/s, BER {ber:g}"
        for proxy in (NONE, SPLIT):
            pair = [goodputs(lab, cell(SINGLE, variant, proxy, rate, ber)) for variant in (WESTWOOD, NEWRENO)]
            parts.append(within(f"goodput, {proxy}, {where}", ratio(*pair), NOT_BELOW))
        newreno, westwood = (_gain(lab, variant, rate, ber) for variant in (NEWRENO, WESTWOOD))
        parts.append(ordered(f"gain, {where}", estimate(_quotients, *newreno, *westwood)))
    return parts


@judge("003-C16")
def _theory(_lab: Lab, claim: Claim) -> list[Part]:
    def square_root_law(round_trip_s: float, loss: float) -> float:
        return PACKET_BITS / round_trip_s * math.sqrt(1.5 / loss)

    return [exact("", square_root_law(0.25, 0.012) / square_root_law(0.5, 0.024), claim.bounds)]


@judge("003-C17")
def _two_satellites_are_slower(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant, ber in product(VARIANTS, BERS):
        one, two = (goodputs(lab, cell(scenario, variant, NONE, SLOW, ber)) for scenario in (SINGLE, SECOND))
        parts.append(ordered(f"{name_of(variant)}, BER {ber:g}", difference(one, two)))
    return parts


def _knee_difference(lab: Lab, name: str, larger: tuple[Cell, int], smaller: tuple[Cell, int]) -> Part:
    """Return whether the knee of one sweep lies above that of another."""
    (more_at, more), (less_at, less) = (sweep(lab, *each) for each in (larger, smaller))
    knee = _knee_by(lab)

    def above(*ys: float) -> float:
        return knee(more_at, ys[: len(more_at)]) - knee(less_at, ys[len(more_at) :])

    return ordered(name, bootstrap(above, *more, *less))


@judge("003-C18")
def _two_satellites_need_more(lab: Lab, _claim: Claim) -> list[Part]:
    return [
        _knee_difference(lab, name_of(v), (cell(SECOND, v, SPLIT), SLOW), (cell(SINGLE, v, SPLIT), SLOW))
        for v in VARIANTS
    ]


@judge("003-C19")
def _gain_of_two_satellites(lab: Lab, claim: Claim) -> list[Part]:
    return [
        within(name_of(v), ratio(*_gain(lab, v, SLOW, WORST, SECOND)), claim.bounds, tolerance=0.5) for v in VARIANTS
    ]


@judge("003-C20")
def _gain_of_two_satellites_at_20(lab: Lab, claim: Claim) -> list[Part]:
    return [
        within(f"{name_of(v)}, BER {ber:g}", ratio(*_gain(lab, v, FAST, ber, SECOND)), claim.bounds)
        for v, ber in product(VARIANTS, BERS)
    ]


@judge("003-C21")
def _poor(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for ber in (WORST, BETTER):
        samples = goodputs(lab, cell(SECOND, NEWRENO, NONE, FAST, ber))
        parts.append(within(f"BER {ber:g}", estimate(lambda kbps: kbps / (1e3 * FAST), samples), claim.bounds))
    return parts


@judge("003-C22")
def _advantage_grows(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    growth: dict[int, list[Samples]] = {}
    for rate, ber in product(RATES, BERS):
        two, one = (_westwood_to_newreno(lab, scenario, rate, ber) for scenario in (SECOND, SINGLE))
        parts.append(ordered(f"{rate} Mbit/s, BER {ber:g}", estimate(_quotients, *two, *one)))
        growth.setdefault(rate, []).extend([*two, *one])
    more = estimate(_difference_of_sums, *growth[FAST], *growth[SLOW])
    return [*parts, ordered("more at 20 Mbit/s", more)]


def _difference_of_sums(*values: float) -> float:
    half = len(values) // 2
    return _sum_of_differences(*values[:half]) - _sum_of_differences(*values[half:])


@judge("003-C23")
def _shadowing_costs(lab: Lab, claim: Claim) -> list[Part]:
    return [
        within(
            name_of(v),
            ratio(*(goodputs(lab, cell(s, v, NONE)) for s in (SHADOWED, SINGLE))),
            claim.bounds,
            tolerance=0.2,
        )
        for v in VARIANTS
    ]


@judge("003-C24")
def _westwood_suffers_less(lab: Lab, _claim: Claim) -> list[Part]:
    proxy = SPLIT if lab.reading.measure == WITH_SPLIT else NONE
    samples = [goodputs(lab, cell(s, v, proxy)) for v in (WESTWOOD, NEWRENO) for s in (SHADOWED, SINGLE)]
    if lab.reading.measure == GOODPUT:
        return [ordered("", difference(samples[0], samples[2]))]
    return [ordered("", estimate(_quotients, *samples))]


@judge("003-C25")
def _fast_needs_more(lab: Lab, _claim: Claim) -> list[Part]:
    return [
        _knee_difference(lab, name_of(v), (cell(SHADOWED, v, SPLIT, FAST), FAST), (cell(SHADOWED, v, SPLIT), SLOW))
        for v in VARIANTS
    ]


@judge("003-C26")
def _gain_in_the_shadow(lab: Lab, claim: Claim) -> list[Part]:
    bounds = {WESTWOOD: claim.bounds, NEWRENO: GAIN_OF_NEWRENO}
    return [within(name_of(v), ratio(*_gain(lab, v, FAST, WORST, SHADOWED)), bounds[v]) for v in VARIANTS]


def _split_helps(lab: Lab, scenario: str, rates: tuple[int, ...]) -> Iterator[Part]:
    for variant, rate in product(VARIANTS, rates):
        found = difference(*_gain(lab, variant, rate, WORST, scenario))
        yield ordered(f"{name_of(variant)}, {rate} Mbit/s", found)


@judge("003-C27")
def _split_with_both_shadowed(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_split_helps(lab, BOTH_SHADOWED, (SLOW,)))


@judge("003-C35")
def _split_in_the_shadow(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_split_helps(lab, SHADOWED, RATES))


def _gain_above(lab: Lab, name: str, variant: str, scenarios: tuple[str, str], rate: int = SLOW) -> Part:
    more, less = (_gain(lab, variant, rate, WORST, scenario) for scenario in scenarios)
    return ordered(f"gain, {name}, {name_of(variant)}", estimate(_quotients, *more, *less))


@judge("003-C28")
def _conclusion(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    rate = FAST if lab.reading.measure == AT_20 else SLOW
    for (scenario, name), variant in product(((SECOND, "two satellites"), (SHADOWED, "shadowing")), VARIANTS):
        sweeps = [(cell(each, variant, SPLIT, rate), rate) for each in (scenario, SINGLE)]
        parts.append(_knee_difference(lab, f"cache, {name}, {name_of(variant)}", sweeps[0], sweeps[1]))
        parts.append(_gain_above(lab, name, variant, (scenario, SINGLE), rate))
    return parts


@judge("003-C36")
def _both_gain_more(lab: Lab, _claim: Claim) -> list[Part]:
    return [_gain_above(lab, "both ends", variant, (BOTH_SHADOWED, SHADOWED)) for variant in VARIANTS]


@judge("003-C30")
def _masking(_lab: Lab, _claim: Claim) -> list[Part]:
    return masking_parts()


@judge("003-C31")
def _fixed_terminal(_lab: Lab, _claim: Claim) -> list[Part]:
    return fixed_parts()


@judge("003-C32")
def _never_overflows(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant, (rate, cache) in product(VARIANTS, ((SLOW, 9), (SLOW, 63), (SLOW, 200), (FAST, 90), (FAST, 1250))):
        stored = with_cache(cell(SINGLE, variant, SPLIT, rate), cache)
        parts.append(memory_part(lab, f"{name_of(variant)}, {rate} Mbit/s, cache {cache}", stored, cache))
    return parts


def slow_start_s(rate_bps: float, round_trip_s: float) -> float:
    """Return the time in s in which the window doubles every round trip up to the pipe."""
    return round_trip_s * math.log2(max(_pipe_pkts(rate_bps, round_trip_s), 1.0))


def _doubling_s(pipe_pkts: float, round_trip_s: float) -> float:
    """Return the time in s in which a sender that adds a packet per ACK fills the pipe, round trip by round trip."""
    window, rounds = 1, 0
    while window < pipe_pkts:
        window += sum(1 for _ack in range(window))
        rounds += 1
    return rounds * round_trip_s


@judge("003-C33")
def _slow_start(_lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for rate, round_trip in product(RATES_BPS, ROUND_TRIPS_S):
        doubled_s = _doubling_s(_pipe_pkts(rate, round_trip), round_trip)
        off = doubled_s - slow_start_s(rate, round_trip)
        name = f"{rate / 1e6:g} Mbit/s, {round_trip:g} s: within a round trip of RTT log2(pipe)"
        parts.append(holds(name, 0 <= off < round_trip, doubled_s))
    for rate in RATES_BPS:
        times = [slow_start_s(rate, round_trip) for round_trip in ROUND_TRIPS_S]
        grows = all(after > before for before, after in pairwise(times))
        parts.append(holds(f"with the round trip at {rate / 1e6:g} Mbit/s", grows, times[-1]))
    for round_trip in ROUND_TRIPS_S:
        slow, fast = (slow_start_s(rate, round_trip) for rate in RATES_BPS)
        parts.append(holds(f"with the rate at {round_trip:g} s", fast > slow, fast))
    return parts


@judge("003-C34")
def _pipes(_lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for rate, path in product(RATES, (SINGLE, SECOND)):
        links = scenario_of(path, at_rate(path, rate)).links
        round_trip = sum(link.forward.delay + link.backward.delay for link in links) / 1e9
        pipe = min(link.forward.rate or math.inf for link in links) * round_trip / PACKET_BITS
        found = _pipe_pkts(1e6 * rate, _ROUND_TRIP_S[path])
        parts.append(holds(f"{rate} Mbit/s, {path}", math.isclose(pipe, found, rel_tol=0.01), pipe, f"{found:.4g}"))
    return parts


@judge("003-C37")
def _shares(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for variant in VARIANTS:
        plain = Cell(SHARING, variant, NONE).but(("flows.short.variant", variant))
        split = plain.but(("flows.short.proxies", (SPLIT,)), proxy=SPLIT)
        without, narrowed = (lab.sample(each, share_of_first) for each in (plain, split))
        less = estimate(lambda share: 0.5 - share, without)
        parts.append(ordered(f"below one half, {name_of(variant)}", less))
        parts.append(ordered(f"nearer with the split, {name_of(variant)}", difference(narrowed, without)))
    return parts
