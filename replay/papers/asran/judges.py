"""How each claim of Lee et al. 2020 is judged. The claims are in data/claims-002.toml, the cells in cells.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from hindflight.replay.papers.asran import model, units
from hindflight.replay.papers.asran.cells import (
    ASRAN,
    ASRAN_NEWRENO,
    BREAK_S,
    CUBIC,
    FLOWS,
    HEAVY,
    INSTABILITY,
    NEWRENO,
    RESTORED_S,
    disconnection_s,
    exchange,
    goodput_of,
    jain_of_means,
    per_second,
)
from hindflight.replay.papers.lab import Lab, config_of
from hindflight.replay.papers.model import Cell, Claim, Judges, Part
from hindflight.replay.papers.statistics import Samples, difference, estimate, mean, ratio
from hindflight.replay.papers.verdicts import exact, holds, ordered, within

ADHOC = 1
"""Number of the unstable link."""
TABLE_1, TABLE_2, TABLE_3 = (0.634, 1.140), (0.555, 0.757), (5.805, 6.582)
"""Mean throughputs in Mbit/s as printed: CUBIC or NewReno, then ASRAN."""
PRINTED_GAIN = 1.622
PARTIAL_S = 2.0
"""The seconds in which a break begins and ends are not without throughput as a whole."""

judge = Judges()


def _shares(lab: Lab, cell: Cell) -> dict[str, Samples]:
    """Return the shares of time in which the unstable link of each run carries nothing and its full rate."""
    lab.use([cell])
    read = lab.read(cell)
    found: dict[str, list[float]] = {"nothing": [], "full": []}
    for seed in lab.seeds:
        spans = spans_of(read, seed)
        full = max(rate for rate, _ in spans)
        whole = sum(span for _, span in spans)
        found["nothing"].append(sum(span for rate, span in spans if rate == 0) / whole)
        found["full"].append(sum(span for rate, span in spans if rate == full) / whole)
    return {name: np.array(values) for name, values in found.items()}


def spans_of(cell: Cell, seed: int) -> list[tuple[float, int]]:
    """Return rate in bit/s and length in ns of each interval of the unstable link of a run."""
    config = config_of(cell, seed)
    return _spans(config["path"]["links"][ADHOC]["forward"]["schedule"], config["duration_ns"])


def _spans(schedule: list[dict[str, Any]], end_ns: int) -> list[tuple[float, int]]:
    """Return rate in bit/s and length in ns of each interval of a link; an outage has rate 0."""
    spans = []
    rate, outage = 0.0, False
    ends = [change["at_ns"] for change in schedule[1:]] + [end_ns]
    for change, until in zip(schedule, ends, strict=True):
        rate = change["rate_bps"] if change.get("rate_bps") is not None else rate
        outage = change["outage"] if change.get("outage") is not None else outage
        spans.append((0.0 if outage else rate, min(until, end_ns) - min(change["at_ns"], end_ns)))
    return spans


@judge("002-C01")
def _nothing(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", mean(_shares(lab, INSTABILITY)["nothing"]), claim.bounds)]


@judge("002-C02")
def _full(lab: Lab, claim: Claim) -> list[Part]:
    return [within("", mean(_shares(lab, INSTABILITY)["full"]), claim.bounds)]


def _both(lab: Lab, cell: Cell) -> list[Samples]:
    return [goodput_of(flow, lab, cell) for flow in (ASRAN, CUBIC)]


@judge("002-C05", "002-C12")
def _gain(lab: Lab, claim: Claim) -> list[Part]:
    cell = {"002-C05": INSTABILITY, "002-C12": HEAVY}[claim.claim_id]
    return [within("", ratio(*_both(lab, cell)), claim.bounds)]


@judge("002-C06")
def _expected_by_model(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", TABLE_1[0] * PRINTED_GAIN, claim.bounds)]


@judge("002-C07")
def _spread(lab: Lab, _claim: Claim) -> list[Part]:
    runs = per_second(lab, INSTABILITY)
    asran, cubic = (np.array([np.std(run.per_second[flow]) for run in runs]) for flow in (ASRAN, CUBIC))
    return [ordered("", difference(asran, cubic))]


_PRINTED = {"002-C08": TABLE_1, "002-C14": TABLE_2, "002-C20": TABLE_3}


@judge(*_PRINTED)
def _fairness(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", jain_of_means(*_PRINTED[claim.claim_id]), claim.bounds)]


@judge("002-C09")
def _standstills(lab: Lab, claim: Claim) -> list[Part]:
    runs = per_second(lab, INSTABILITY)
    parts = []
    for flow, name in FLOWS.items():
        zeros = np.array([np.mean(run.per_second[flow] == 0) for run in runs])
        parts.append(ordered(f"{name} has seconds without throughput", mean(zeros)))
    ahead = np.array([np.mean(run.per_second[ASRAN] > run.per_second[CUBIC]) for run in runs])
    return [*parts, within("share of seconds in which ASRAN is ahead", mean(ahead), claim.bounds, tolerance=0.2)]


@judge("002-C13")
def _below_model(_lab: Lab, _claim: Claim) -> list[Part]:
    expected = TABLE_2[0] * PRINTED_GAIN
    return [holds("", TABLE_2[1] < expected, expected)]


@judge("002-C15")
def _heavy_is_slower(lab: Lab, _claim: Claim) -> list[Part]:
    alone, crowded = (dict(zip((ASRAN, CUBIC), _both(lab, cell), strict=True)) for cell in (INSTABILITY, HEAVY))
    return [ordered(name, difference(alone[flow], crowded[flow])) for flow, name in FLOWS.items()]


@judge("002-C16")
def _smaller_advantage(lab: Lab, _claim: Claim) -> list[Part]:
    samples = [*_both(lab, INSTABILITY), *_both(lab, HEAVY)]
    fall = estimate(lambda a, b, c, d: a / b - c / d, *samples)
    fairer = estimate(lambda a, b, c, d: jain_of_means(c, d) - jain_of_means(a, b), *samples)
    return [ordered("the ratio falls", fall), ordered("Jain's index rises", fairer)]


@judge("002-C19")
def _exchange_gain(lab: Lab, claim: Claim) -> list[Part]:
    asran, newreno = (lab.sample(exchange(variant), "goodput_bps") for variant in (ASRAN_NEWRENO, NEWRENO))
    return [within("", ratio(asran, newreno), claim.bounds)]


@judge("002-C21")
def _same_disconnection(lab: Lab, claim: Claim) -> list[Part]:
    times = {
        variant: np.array([disconnection_s(run) for run in per_second(lab, exchange(variant))])
        for variant in (ASRAN_NEWRENO, NEWRENO)
    }
    whole_s = RESTORED_S - BREAK_S - PARTIAL_S
    parts = [
        holds(f"{variant} is disconnected", found.min() >= whole_s, found.mean()) for variant, found in times.items()
    ]
    return [*parts, within("difference", difference(times[ASRAN_NEWRENO], times[NEWRENO]), claim.bounds)]


@judge("002-C22")
def _time_to_last_max(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", model.time_to_last_max(), claim.bounds)]


@judge("002-C23")
def _sum_of_cubic(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", model.cubic_total(), claim.bounds)]


@judge("002-C24")
def _sum_of_asran(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", model.asran_total(), claim.bounds)]


@judge("002-C25")
def _model_gain(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", model.asran_total() / model.cubic_total(), claim.bounds)]


@judge("002-C26")
def _earlier(_lab: Lab, _claim: Claim) -> list[Part]:
    gaps = [model.asran_window(x) - model.cubic_window(x) for x in model.times() if x >= model.cubic_time_to_last_max()]
    early = model.time_to_last_max() < model.cubic_time_to_last_max()
    return [
        holds("ASRAN is there first", early, model.time_to_last_max()),
        holds("the gap grows after it", all(np.diff(gaps) > 0), gaps[-1]),
    ]


@judge("002-C27")
def _sequence(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.sequence_parts()


@judge("002-C28")
def _restored(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.restored_parts()


@judge("002-C29")
def _avoidance(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.avoidance_parts()


@judge("002-C30")
def _growth_law(_lab: Lab, _claim: Claim) -> list[Part]:
    windows = model.slow_start_windows(6)
    quadratic = len(set(np.diff(windows, 2))) == 1
    note = f"{windows} segments after each round trip: every ACK adds one, so the window doubles and is not quadratic"
    return [holds("the growth is quadratic", quadratic, windows[-1], note)]
