"""How each claim of the hybrid handover paper is judged. The claims are in data/claims-001.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from hindflight.replay.papers.hybrid_handover.cells import (
    CTCP,
    CUBIC,
    DELAYS,
    END_S,
    FIRST_S,
    HYBLA,
    LONG_BREAK_S,
    NAMES,
    NO_LOSSES,
    PEPSAL,
    PLRS,
    RATES_SATELLITE_FIRST,
    RATES_WIRED_FIRST,
    RENO,
    SECOND_S,
    SHORT_BREAK_S,
    SMALL_WINDOW,
    WESTWOOD,
    WIRED_QUEUE,
    Path,
    Trace,
    growth_over,
    handovers,
    samples,
    satellite,
    sequence_at,
    traces,
)
from hindflight.replay.papers.lab import Lab
from hindflight.replay.papers.model import Claim, Estimate, Judges, Part
from hindflight.replay.papers.statistics import Samples, difference, estimate, mean, ratio
from hindflight.replay.papers.verdicts import exact, holds, ordered, within

Metric = Callable[[Trace], float]

E2E = (HYBLA, CUBIC, CTCP, RENO, WESTWOOD)
EARLY_S = 5.0
SATELLITE_BPS, SATELLITE_RTT_S = 512e3, 0.5
SOON_S = 2.0
"""Reordering, timeouts and losses that a handover causes fall within this time after it."""
PHASE_S = SECOND_S - FIRST_S
DATA = "data"
"""Another measure of difficulties after a break: the data of the phase that it begins, in place of the pause."""
RATES = "rates"
"""Another path for the test of loss ratios, whose path the text does not name: that of the rates."""
POSITION = "position"
"""Another measure of who leads in a phase: the sequence number at its end, in place of its growth."""

judge = Judges()


def _spread(*means: float) -> float:
    return max(means) / min(means)


def _alike(name: str, found: Sequence[Samples], bounds: tuple[float, float]) -> Part:
    """Return whether the largest of several means is hardly above the smallest.

    Their ratio is at least 1, and only its interval, which is symmetric, can reach below 1.
    """
    return within(name, estimate(_spread, *found), (0.0, bounds[1]), tolerance=bounds[1] - 1.0)


def _above(
    lab: Lab, path: Path, pairs: Sequence[tuple[str, str]], metric: Metric, words: str = "{} above {}"
) -> Iterator[Part]:
    """Yield whether `metric` of the first flow of each pair is above that of the second; `words` name the parts."""
    found = traces(lab, tuple(dict.fromkeys(flow for pair in pairs for flow in pair)), path)
    for above, below in pairs:
        name = words.format(NAMES[above], NAMES[below])
        yield ordered(name, difference(samples(found[above], metric), samples(found[below], metric)))


def _pairs(above: Sequence[str], below: Sequence[str]) -> list[tuple[str, str]]:
    return [(high, low) for high in above for low in below]


def _pause(at_s: float) -> Metric:
    return lambda found: -found.pause_s(at_s)


def _first_to_resume(lab: Lab, path: Path, rivals: Sequence[str], moments: Sequence[float]) -> Iterator[Part]:
    """Yield whether CTCP pauses for less time than each of `rivals` at the handovers."""
    for at_s in moments:
        yield from _above(lab, path, _pairs((CTCP,), rivals), _pause(at_s), f"{{}} resumes before {{}} at {at_s:g} s")


@judge("001-C01")
def _similar(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (HYBLA, CUBIC, CTCP), satellite())
    return [_alike("", [samples(each, sequence_at(lab, END_S)) for each in found.values()], claim.bounds)]


@judge("001-C02")
def _no_losses(lab: Lab, _claim: Claim) -> list[Part]:
    found = traces(lab, (HYBLA, CUBIC, CTCP), satellite())
    lost = {flow: float(np.median(samples(each, lambda run: run.lost))) for flow, each in found.items()}
    parts = [holds(f"{NAMES[flow]} loses packets", lost[flow] > 0, lost[flow]) for flow in (HYBLA, CUBIC)]
    parts.append(holds("CTCP loses none", lost[CTCP] == 0, lost[CTCP]))
    return [
        *parts,
        *_above(lab, satellite(), _pairs((CTCP,), (HYBLA, CUBIC)), sequence_at(lab, EARLY_S), "{} above {} after 5 s"),
    ]


@judge("001-C03")
def _tail(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (HYBLA, CUBIC, CTCP), satellite())
    tails = {flow: mean(samples(each, lambda run: run.last_sent_s - END_S)) for flow, each in found.items()}
    longest = (claim.bounds[0], float("inf"))
    parts = [within(f"tail of {NAMES[flow]}", tails[flow], longest) for flow in (HYBLA, CUBIC)]
    return [*parts, within("tail of CTCP", tails[CTCP], (-1.0, claim.bounds[0]))]


@judge("001-C04")
def _steady(lab: Lab, _claim: Claim) -> list[Part]:
    def steadiness(found: Trace) -> float:
        return -float(np.std(found.per_second()) / np.mean(found.per_second()))

    return list(_above(lab, satellite(), _pairs((CTCP,), (HYBLA, CUBIC)), steadiness, "{} steadier than {}"))


@judge("001-C05")
def _first_phase(lab: Lab, _claim: Claim) -> list[Part]:
    pairs = _pairs((HYBLA, CUBIC, CTCP), (RENO, WESTWOOD))
    return list(_above(lab, handovers(DELAYS), pairs, sequence_at(lab, FIRST_S)))


@judge("001-C06")
def _wired_phase(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, E2E, handovers(DELAYS))
    grown = [samples(each, growth_over(lab, FIRST_S, SECOND_S)) for each in found.values()]
    return [_alike("", grown, claim.bounds)]


@judge("001-C07")
def _losses_on_return(lab: Lab, _claim: Claim) -> list[Part]:
    def resent(found: Trace) -> float:
        return found.resent(SECOND_S, END_S)

    return list(_above(lab, handovers(DELAYS), ((CUBIC, HYBLA), (HYBLA, CTCP)), resent))


@judge("001-C08")
def _restart_on_return(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_first_to_resume(lab, handovers(DELAYS), (HYBLA, CUBIC), (SECOND_S,)))


@judge("001-C09")
def _cubic_suffers(lab: Lab, claim: Claim) -> list[Part]:
    path = handovers(RATES_WIRED_FIRST)
    others = (HYBLA, CTCP, RENO, WESTWOOD)
    found = traces(lab, others, path)
    alike = _alike("all but CUBIC", [samples(each, sequence_at(lab, END_S)) for each in found.values()], claim.bounds)
    return [alike, *_above(lab, path, _pairs(others, (CUBIC,)), sequence_at(lab, END_S))]


@judge("001-C10")
def _cut(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (CUBIC,), handovers(RATES_WIRED_FIRST))[CUBIC]
    cut = samples(found, lambda run: run.first_resent_s(FIRST_S))
    return [within("first retransmission after 20 s", mean(cut), claim.bounds)]


@judge("001-C11")
def _loss_ratios(lab: Lab, claim: Claim) -> list[Part]:
    final = sequence_at(lab, END_S)
    phases = RATES_WIRED_FIRST if lab.reading.measure == RATES else DELAYS
    found = {plr: traces(lab, E2E, (*handovers(phases), ("links.emulator.loss.per", plr))) for plr in PLRS}
    parts = [_alike(NAMES[flow], [samples(found[plr][flow], final) for plr in PLRS], claim.bounds) for flow in E2E]
    worst = found[PLRS[-1]]
    for flow in E2E:
        if flow != CUBIC:
            margin = difference(samples(worst[flow], final), samples(worst[CUBIC], final))
            parts.append(ordered(f"{NAMES[flow]} above CUBIC with the most losses", margin))
    return parts


@judge("001-C12")
def _proxy_ahead(lab: Lab, _claim: Claim) -> list[Part]:
    pairs = [*_pairs((PEPSAL,), (HYBLA, CUBIC, CTCP, RENO)), *_pairs((HYBLA, CUBIC, CTCP), (RENO,))]
    return list(_above(lab, satellite(), pairs, sequence_at(lab, END_S)))


@judge("001-C13")
def _ctcp_holds_up(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (CTCP, PEPSAL), satellite())
    ctcp, pepsal = (samples(found[flow], sequence_at(lab, END_S)) for flow in (CTCP, PEPSAL))
    return [within("", ratio(ctcp, pepsal), claim.bounds)]


@judge("001-C14")
def _ctcp_leads(lab: Lab, _claim: Claim) -> list[Part]:
    pairs = [(CTCP, PEPSAL), *_pairs((PEPSAL,), (HYBLA, CUBIC))]
    parts: list[Part] = []
    for number, (from_s, to_s) in {1: (0.0, FIRST_S), 3: (SECOND_S, END_S)}.items():
        led = sequence_at(lab, to_s) if lab.reading.measure == POSITION else growth_over(lab, from_s, to_s)
        parts += _above(lab, handovers(DELAYS), pairs, led, f"{{}} above {{}}, phase {number}")
    return parts


@judge("001-C15")
def _catch_up(lab: Lab, claim: Claim) -> list[Part]:
    flows = (HYBLA, CUBIC, CTCP, PEPSAL)
    found = traces(lab, flows, handovers(DELAYS))
    grown = growth_over(lab, FIRST_S, SECOND_S)
    alike = _alike("equal growth", [samples(each, grown) for each in found.values()], claim.bounds)
    return [
        alike,
        *_above(lab, handovers(DELAYS), _pairs((CUBIC,), (HYBLA, CTCP, PEPSAL)), grown, "{} grows more than {}"),
    ]


@judge("001-C16")
def _rates_with_proxy(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (HYBLA, CUBIC, CTCP, PEPSAL), handovers(RATES_SATELLITE_FIRST))
    return [_alike("", [samples(each, sequence_at(lab, END_S)) for each in found.values()], claim.bounds)]


@judge("001-C17")
def _restart_times(lab: Lab, claim: Claim) -> list[Part]:
    found = traces(lab, (CTCP, CUBIC, HYBLA, PEPSAL), handovers(DELAYS, SHORT_BREAK_S))
    pauses = {flow: mean(samples(each, lambda run: run.pause_s(FIRST_S))) for flow, each in found.items()}
    parts = [within("CTCP", pauses[CTCP], claim.bounds)]
    return parts + [within(NAMES[flow], pauses[flow], (4.0, float("inf"))) for flow in (CUBIC, HYBLA, PEPSAL)]


@judge("001-C18")
def _ctcp_first(lab: Lab, _claim: Claim) -> list[Part]:
    path = handovers(DELAYS, SHORT_BREAK_S)
    return list(_above(lab, path, _pairs((CTCP,), (PEPSAL, HYBLA)), sequence_at(lab, FIRST_S)))


@judge("001-C19")
def _restart_after_second(lab: Lab, _claim: Claim) -> list[Part]:
    return list(_first_to_resume(lab, handovers(DELAYS, SHORT_BREAK_S), (CUBIC, HYBLA, PEPSAL), (SECOND_S,)))


@judge("001-C20")
def _longer_break(lab: Lab, _claim: Claim) -> list[Part]:
    both = (FIRST_S, SECOND_S)
    parts = list(_first_to_resume(lab, handovers(DELAYS, LONG_BREAK_S), (CUBIC, HYBLA, PEPSAL), both))
    short, long = (traces(lab, (CUBIC,), handovers(DELAYS, each))[CUBIC] for each in (SHORT_BREAK_S, LONG_BREAK_S))
    for at_s in both:
        if lab.reading.measure == DATA:
            grown = growth_over(lab, at_s, at_s + PHASE_S)
            less = difference(samples(short, grown), samples(long, grown))
            parts.append(ordered(f"CUBIC transfers less after {at_s:g} s", less))
            continue
        pauses = [samples(found, lambda run, at_s=at_s: run.pause_s(at_s)) for found in (long, short)]  # type: ignore[misc]
        parts.append(ordered(f"CUBIC pauses longer at {at_s:g} s", difference(pauses[0], pauses[1])))
    return parts


@judge("001-C21")
def _cubic_begins_best(lab: Lab, _claim: Claim) -> list[Part]:
    path = handovers(RATES_SATELLITE_FIRST, SHORT_BREAK_S)
    return list(_above(lab, path, _pairs((CUBIC,), (HYBLA, CTCP, PEPSAL)), sequence_at(lab, FIRST_S)))


@judge("001-C22")
def _restart_times_over_rates(lab: Lab, claim: Claim) -> list[Part]:
    path = handovers(RATES_SATELLITE_FIRST, SHORT_BREAK_S)
    found = traces(lab, (CTCP,), path)[CTCP]
    both = (FIRST_S, SECOND_S)
    parts = [
        within(f"CTCP at {at_s:g} s", mean(samples(found, lambda run, at_s=at_s: run.pause_s(at_s))), claim.bounds)  # type: ignore[misc]
        for at_s in both
    ]
    return [*parts, *_first_to_resume(lab, path, (CUBIC, HYBLA, PEPSAL), both)]


@judge("001-C23")
def _survivors(lab: Lab, claim: Claim) -> list[Part]:
    path = handovers(RATES_SATELLITE_FIRST, LONG_BREAK_S)
    parts = list(_first_to_resume(lab, path, (CUBIC, HYBLA, PEPSAL), (FIRST_S,)))
    for flow, found in traces(lab, (CUBIC, HYBLA, PEPSAL), path).items():
        stall = mean(samples(found, lambda run: run.pause_s(FIRST_S)))
        parts.append(within(f"{NAMES[flow]} sends nothing new", stall, claim.bounds))
    return parts


_RESTARTS = {
    "delay": handovers(DELAYS),
    "delay, 0.5 s": handovers(DELAYS, SHORT_BREAK_S),
    "delay, 1 s": handovers(DELAYS, LONG_BREAK_S),
    "rate, 0.5 s": handovers(RATES_SATELLITE_FIRST, SHORT_BREAK_S),
    "rate, 1 s": handovers(RATES_SATELLITE_FIRST, LONG_BREAK_S),
}


@judge("001-C24")
def _best_for_handovers(lab: Lab, _claim: Claim) -> list[Part]:
    def less_pause(found: Trace) -> float:
        return -found.pause_s(FIRST_S) - found.pause_s(SECOND_S)

    parts: list[Part] = []
    for name, path in _RESTARTS.items():
        parts += _above(lab, path, _pairs((CTCP,), (CUBIC, HYBLA)), less_pause, f"{{}} resumes before {{}}, {name}")
    return parts


@judge("001-C25")
def _ctcp_or_proxy(lab: Lab, _claim: Claim) -> list[Part]:
    paths = {"satellite": satellite(), **{k: v for k, v in _RESTARTS.items() if k.startswith("delay")}}
    chosen, margins = {}, {}
    for name, path in paths.items():
        found = traces(lab, (CTCP, PEPSAL), path)
        ctcp, pepsal = (samples(found[flow], sequence_at(lab, END_S)) for flow in (CTCP, PEPSAL))
        # The seeds of one half choose the case, those of the other half judge it: the best of several margins is too
        # large.
        chosen[name] = float((ctcp - pepsal)[::2].mean())
        margins[name] = difference(ctcp[1::2], pepsal[1::2])
    best = max(chosen, key=lambda name: chosen[name])
    return [ordered(f"CTCP above PEPsal in at least one case ({best})", margins[best])]


@judge("001-C26")
def _bounds(_lab: Lab, claim: Claim) -> list[Part]:
    pipe_bytes = SATELLITE_BPS * SATELLITE_RTT_S / 8
    return [
        exact("bandwidth-delay product", pipe_bytes, claim.bounds),
        holds("3.84 MB in 60 s", SATELLITE_BPS * END_S / 8 == 3.84e6),
    ]


@judge("001-C27")
def _overtaking(lab: Lab, _claim: Claim) -> list[Part]:
    path = (*handovers(DELAYS), NO_LOSSES)
    found = traces(lab, (CTCP,), path)[CTCP]
    duplicates = mean(samples(found, _duplicates))
    spurious = mean(samples(found, lambda run: run.resent(FIRST_S, FIRST_S + SOON_S)))
    ordered_path = (*path, ("links.emulator.in_order", True))
    without = mean(samples(traces(lab, (CTCP,), ordered_path)[CTCP], _duplicates))
    return [
        _without_losses("duplicate ACKs after the delay falls", duplicates, found),
        _without_losses("retransmissions of packets that were not lost", spurious, found),
        holds("no duplicate ACKs if the link keeps the order", without.high == 0, without.value),
    ]


def _without_losses(name: str, count: Estimate, runs: Sequence[Trace]) -> Part:
    """Return whether there were any of what is counted although no run lost a packet."""
    lost = max(run.lost for run in runs)
    return holds(name, False, count.value, f"a run lost {lost} packets") if lost else ordered(name, count)


def _duplicates(found: Trace) -> float:
    return float(((found.dup_ack_s > FIRST_S) & (found.dup_ack_s <= FIRST_S + SOON_S)).sum())


@judge("001-C28")
def _timeout_too_short(lab: Lab, _claim: Claim) -> list[Part]:
    found = traces(lab, (RENO,), SMALL_WINDOW)[RENO]
    timeouts = mean(samples(found, lambda run: run.rtos))
    useless = mean(samples(found, lambda run: run.resent(SECOND_S, SECOND_S + SOON_S)))
    return [
        _without_losses("timeouts although nothing is lost", timeouts, found),
        _without_losses("useless retransmissions", useless, found),
    ]


@judge("001-C29")
def _window_too_large(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for flow, found in traces(lab, (RENO, CUBIC), WIRED_QUEUE).items():
        after = samples(found, lambda run: run.resent(FIRST_S, FIRST_S + SOON_S))
        before = samples(found, lambda run: run.resent(FIRST_S - SOON_S, FIRST_S))
        parts.append(ordered(f"{NAMES[flow]} loses more in the 2 s after the rate falls", difference(after, before)))
    return parts
