"""How each claim of Shang, Hadjitheodosiou and Baras 2005 is judged. The claims are in data/claims-004.toml."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

from hindflight.replay.papers.aerotcp import units
from hindflight.replay.papers.aerotcp.cells import (
    AERO,
    BERS,
    CONNECTION_BPS,
    END_TO_END,
    FEW_BERS,
    GROUND_RTT_S,
    HIGH,
    LARGE_FILE,
    LOW,
    MEDIA,
    MSS_BYTES,
    PACKET_BYTES,
    PAGES,
    PRDP_BYTES,
    SATELLITE_BPS,
    SATELLITE_RTT_S,
    SPLIT,
    TEN,
    VERY_LOW,
    buffers,
    goodput_kbps,
    jain,
    one,
    overflows,
    page_s,
    response_s,
    stalled_s,
    ten,
    utilisation,
    with_size,
    without_end,
)
from hindflight.replay.papers.lab import Lab, scenario_of
from hindflight.replay.papers.model import Cell, Claim, Judges, Part
from hindflight.replay.papers.statistics import Samples, bootstrap, difference, estimate, knee_of, mean, ratio
from hindflight.replay.papers.verdicts import exact, holds, ordered, within

SEND_PKTS = (4, 8, 12, 16, 20, 24, 32)
GROUND_PKTS = (1, 2, 3, 4, 6)
MULTIPLES = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0)
FEW_MULTIPLES = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
"""Receive buffers of the sweep as multiples of the peak rate times the RTT."""
EFFECTIVE_BPS = CONNECTION_BPS * MSS_BYTES / PACKET_BYTES
"""SatBW is the rate less the headers (section V.B)."""

AIRCRAFT_SEND = "proxy.aircraft.send_buffer"
ENOUGH = (0.95, 1.05)
"""Bounds of the ratio of two goodputs, between which more memory adds nothing."""

judge = Judges()


def _bers(lab: Lab) -> tuple[float, ...]:
    return FEW_BERS if lab.quick else BERS


def _utilisation(lab: Lab, scheme: str, ber: float) -> Samples:
    return lab.sample(ten(scheme, ber), utilisation)


def _response(lab: Lab, scheme: str, ber: float, size: str | None = None) -> Samples:
    cell = ten(scheme, ber)
    return lab.sample(with_size(cell, size) if size else cell, response_s)


@judge("004-C01")
def _window_limit(_lab: Lab, claim: Claim) -> list[Part]:
    return [exact("", 65536 / (SATELLITE_RTT_S + GROUND_RTT_S) / 1e3, claim.bounds)]


@judge("004-C02")
def _slow_start_time(_lab: Lab, claim: Claim) -> list[Part]:
    window = CONNECTION_BPS * SATELLITE_RTT_S / (8 * PACKET_BYTES)
    return [exact("", SATELLITE_RTT_S * (1 + math.log2(window)), claim.bounds)]


@judge("004-C03")
def _round_trips(_lab: Lab, claim: Claim) -> list[Part]:
    return [
        exact("RTT with the ground link", round(1e3 * (SATELLITE_RTT_S + GROUND_RTT_S), 6), claim.bounds),
        exact("one way", 1e3 * SATELLITE_RTT_S / 2, (240.0, 240.0)),
    ]


@judge("004-C04")
def _reno_limits(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.fast_retransmit_parts()


@judge("004-C05")
def _newreno_pace(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.one_loss_per_rtt_parts()


def _send_sweep() -> list[tuple[int, Cell]]:
    greedy = without_end(one(SPLIT, 0.0))
    return [(n * MSS_BYTES, buffers(greedy, send=n * MSS_BYTES, receive=8 * PRDP_BYTES)) for n in SEND_PKTS]


def _ground_sweep() -> list[tuple[int, Cell]]:
    greedy = without_end(one(SPLIT, 0.0))
    return [(n * MSS_BYTES, buffers(greedy, ground=n * MSS_BYTES, receive=8 * PRDP_BYTES)) for n in GROUND_PKTS]


@judge("004-C06")
def _three_terms(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for name, sweep, rtt_s in (
        ("send", _send_sweep(), SATELLITE_RTT_S),
        ("ground receive", _ground_sweep(), GROUND_RTT_S),
    ):
        for size, cell in sweep:
            bound_kbps = min(EFFECTIVE_BPS, 8 * size / rtt_s) / 1e3
            found = estimate(lambda kbps, bound=bound_kbps: kbps / bound, lab.sample(cell, goodput_kbps))
            parts.append(within(f"{name} buffer of {size} B", found, claim.bounds))
    return parts


@judge("004-C07")
def _knees_without_errors(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for name, sweep, right in (
        ("send", _send_sweep(), PRDP_BYTES),
        ("ground receive", _ground_sweep(), CONNECTION_BPS * GROUND_RTT_S / 8),
    ):
        sizes, samples = [size / right for size, _ in sweep], [lab.sample(cell, goodput_kbps) for _, cell in sweep]
        knee = bootstrap(lambda *goodputs, sizes=sizes: knee_of(sizes, goodputs), *samples)
        parts.append(within(f"{name} buffer", knee, claim.bounds))
    return parts


@judge("004-C08", "004-C09")
def _receive_buffer(lab: Lab, claim: Claim) -> list[Part]:
    ber = {"004-C08": LOW, "004-C09": HIGH}[claim.claim_id]
    multiples = FEW_MULTIPLES if lab.quick else MULTIPLES
    greedy = buffers(without_end(one(AERO, ber)), send=8 * PRDP_BYTES)
    cells = [buffers(greedy, receive=round(multiple * PRDP_BYTES)) for multiple in multiples]
    lab.run(*cells)
    samples = [lab.sample(cell, goodput_kbps) for cell in cells]
    return [within("", bootstrap(lambda *goodputs: knee_of(multiples, goodputs), *samples), claim.bounds)]


@judge("004-C10")
def _other_buffers(lab: Lab, _claim: Claim) -> list[Part]:
    greedy = without_end(one(AERO, LOW))
    ruled = greedy.but((AIRCRAFT_SEND, f"{PRDP_BYTES} B"))
    plentiful = {
        "send buffer on board": greedy.but((AIRCRAFT_SEND, f"{8 * PRDP_BYTES} B")),
        "receive buffer on the ground": buffers(ruled, ground=8 * PRDP_BYTES),
    }
    ruled = buffers(ruled, ground=2 * PRDP_BYTES)
    enough = [
        within(f"{name}: more adds nothing", ratio(*(lab.sample(c, goodput_kbps) for c in (ruled, more))), ENOUGH)
        for name, more in plentiful.items()
    ]
    ground, aircraft = scenario_of(TEN, ()).proxies_of().tables
    buffers_bytes = {
        "send buffer on board": (aircraft.send_buffer, 1.0),
        "receive buffer on the ground": (ground.receive_buffer, 2.0),
    }
    return enough + [
        holds(name, size is not None and size.size_bytes == right * PRDP_BYTES, right)
        for name, (size, right) in buffers_bytes.items()
    ]


@judge("004-C11")
def _static_window(_lab: Lab, claim: Claim) -> list[Part]:
    octets = SATELLITE_BPS / 10 * SATELLITE_RTT_S / 8
    return [exact("octets", octets, claim.bounds), exact("packets", octets / PACKET_BYTES, (16.0, 16.0))]


@judge("004-C12")
def _figure_4(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.figure_4_parts()


@judge("004-C13")
def _threshold(_lab: Lab, _claim: Claim) -> list[Part]:
    return [units.threshold_part()]


@judge("004-C14")
def _no_cut(_lab: Lab, _claim: Claim) -> list[Part]:
    return units.lossy_window_parts()


@judge("004-C15")
def _bursts(_lab: Lab, claim: Claim) -> list[Part]:
    return units.burst_parts(claim.bounds)


@judge("004-C16")
def _copies(_lab: Lab, _claim: Claim) -> list[Part]:
    return [units.copies_part()]


@judge("004-C17")
def _partial_ack(_lab: Lab, _claim: Claim) -> list[Part]:
    return [units.partial_ack_part()]


def _more(lab: Lab, above: str, below: str, ber: float) -> Part:
    margin = difference(_utilisation(lab, above, ber), _utilisation(lab, below, ber))
    return ordered(f"{above} above {below}, BER {ber:g}", margin)


@judge("004-C18")
def _without_errors(lab: Lab, claim: Claim) -> list[Part]:
    parts = [within(scheme, mean(_utilisation(lab, scheme, VERY_LOW)), claim.bounds) for scheme in (AERO, SPLIT)]
    return [*parts, *(_more(lab, scheme, END_TO_END, VERY_LOW) for scheme in (AERO, SPLIT))]


@judge("004-C19")
def _low_errors(lab: Lab, _claim: Claim) -> list[Part]:
    return [_more(lab, AERO, SPLIT, LOW), _more(lab, SPLIT, END_TO_END, LOW)]


@judge("004-C20")
def _high_errors(lab: Lab, claim: Claim) -> list[Part]:
    gain = ratio(_utilisation(lab, AERO, HIGH), _utilisation(lab, SPLIT, HIGH))
    return [within("AeroTCP / split SACK", gain, claim.bounds), _more(lab, SPLIT, END_TO_END, HIGH)]


@judge("004-C21")
def _drop(lab: Lab, claim: Claim) -> list[Part]:
    low, high = _utilisation(lab, AERO, LOW), _utilisation(lab, AERO, HIGH)
    return [ordered("falls from 1e-6 to 1e-5", difference(low, high)), within("at 1e-5", mean(high), claim.bounds)]


@judge("004-C22")
def _end_to_end_falls(lab: Lab, _claim: Claim) -> list[Part]:
    bers = _bers(lab)
    parts = [_more(lab, SPLIT, END_TO_END, ber) for ber in bers]
    for less, more in pairwise(bers):
        fall = difference(_utilisation(lab, END_TO_END, less), _utilisation(lab, END_TO_END, more))
        parts.append(ordered(f"falls from {less:g} to {more:g}", fall))
    return parts


@judge("004-C23")
def _responses(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for ber in _bers(lab):
        for fast, slow in ((AERO, SPLIT), (SPLIT, END_TO_END)):
            margin = difference(_response(lab, slow, ber), _response(lab, fast, ber))
            parts.append(ordered(f"{fast} before {slow}, BER {ber:g}", margin))
    return parts


@judge("004-C24")
def _gap_narrows(lab: Lab, _claim: Claim) -> list[Part]:
    samples = [_response(lab, scheme, ber) for ber in (VERY_LOW, HIGH) for scheme in (END_TO_END, SPLIT)]

    def narrowing(far: float, near: float, late: float, later: float) -> float:
        return (far - near) / far - (late - later) / late

    gain = difference(samples[2], samples[3])
    return [
        ordered("split SACK before end-to-end SACK at 1e-5", gain),
        ordered("relative gap narrows", estimate(narrowing, *samples)),
    ]


def _advantage(slow: float, fast: float, slow_later: float, fast_later: float) -> float:
    """Return how much the ratio of two response times grows."""
    return slow_later / fast_later - slow / fast


@judge("004-C25")
def _advantage_grows(lab: Lab, _claim: Claim) -> list[Part]:
    parts = []
    for rival in (SPLIT, END_TO_END):
        samples = [_response(lab, scheme, ber) for ber in (LOW, HIGH) for scheme in (rival, AERO)]
        parts.append(ordered(f"over {rival}", estimate(_advantage, *samples)))
    return parts


@judge("004-C26")
def _larger_files(lab: Lab, claim: Claim) -> list[Part]:
    parts = []
    for rival in (SPLIT, END_TO_END):
        samples = [_response(lab, scheme, LOW, size) for size in (None, LARGE_FILE) for scheme in (rival, AERO)]
        grown = estimate(lambda a, b, c, d: (c / d) / (a / b), *samples)
        parts.append(within(f"over {rival}", grown, claim.bounds))
    return parts


@judge("004-C27")
def _fairness(lab: Lab, _claim: Claim) -> list[Part]:
    return [
        ordered(f"BER {ber:g}", difference(lab.sample(ten(AERO, ber), jain), lab.sample(ten(SPLIT, ber), jain)))
        for ber in (LOW, HIGH)
    ]


@judge("004-C28")
def _overflow(lab: Lab, _claim: Claim) -> list[Part]:
    fixed = ten(AERO, 0.0)
    open_windows = fixed.but(("variants.sat.satellite_rate", "16 Mbit/s"))
    dropped = lab.sample(fixed, overflows)
    return [
        ordered("windows of four times the peak rate overflow the queue", mean(lab.sample(open_windows, overflows))),
        holds("the fixed windows do not", bool(dropped.max() == 0), float(dropped.mean())),
    ]


@judge("004-C29")
def _other_traffic(lab: Lab, _claim: Claim) -> list[Part]:
    parts: list[Part] = []
    for name, changes, metric in (("pages", PAGES, page_s), ("media, stalled", MEDIA, stalled_s)):
        parts += _better(lab, name, partial(_with, changes), metric)
    return parts


def _with(changes: tuple[tuple[str, object], ...], cell: Cell) -> Cell:
    return cell.but(*changes)


def _better(lab: Lab, name: str, change: Callable[[Cell], Cell], metric: Callable[..., float]) -> Iterator[Part]:
    aero = lab.sample(change(one(AERO, HIGH)), metric)
    for rival in (SPLIT, END_TO_END):
        yield ordered(f"{name}, AeroTCP before {rival}", difference(lab.sample(change(one(rival, HIGH)), metric), aero))
