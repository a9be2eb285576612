"""Fits loss models to a trace: parameters with intervals, information criteria, goodness-of-fit tests, and a verdict.

The kernels (channels/kernels/src/fit) compute the numbers. See docs/channels/fit.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hindflight.channels import _native
from hindflight.channels.fitting.loss_sequence import LossSequence
from hindflight.channels.portable import log
from hindflight.toolkit.errors import ChannelError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Verdict = Literal["fits", "does not fit", "too few losses to tell"]

IN_TIME = "gilbert_time"
"""The model in continuous time, which needs the times of packets."""

MAX_LEVEL = 0.9999
MIN_LEVEL = 0.5

BY_CHANCE = 1e-6
"""Maximum probability that a random sequence repeats itself, if a sequence that does is to count as periodic."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its standard error and its interval.

    `standard_error` is None on a bound or if the trace does not determine it; `high` is None if there is no upper
    bound.
    """

    name: str
    value: float
    standard_error: float | None
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class Test:
    """A goodness-of-fit test; `p_value` is None if there is too little data. `worst` describes the worst deviation."""

    name: str
    statistic: float
    freedom: int
    p_value: float | None
    worst: str


@dataclass(frozen=True, slots=True)
class Fit:
    """A model fitted to a trace."""

    model: str
    parameters: tuple[Parameter, ...]
    log_likelihood: float
    aic: float
    bic: float
    identified: bool
    profiled: bool
    verdict: Verdict
    tests: tuple[Test, ...]
    expected: dict[str, list[float]]

    def parameter(self, name: str) -> Parameter:
        """Return the parameter called `name`. Raises KeyError if there is none."""
        for parameter in self.parameters:
            if parameter.name == name:
                return parameter
        raise KeyError(name)


@dataclass(frozen=True, slots=True)
class Period:
    """Losses that repeat exactly: `losses` of every `packets` packets, at the same positions of each period."""

    packets: int
    losses: int


@dataclass(frozen=True, slots=True)
class Fits:
    """All fits to one trace by ascending BIC, and the statistics of the trace, `shape` (docs/channels/fit.md).

    If the losses are periodic, no random model fits.
    """

    fits: tuple[Fit, ...]
    level: float
    packets: int
    losses: int
    shape: dict[str, Any]
    period: Period | None = None

    @property
    def best(self) -> Fit:
        """The fit with the lowest BIC among those that are not rejected, or among all if all are."""
        accepted = [fit for fit in self.fits if fit.verdict != "does not fit"]
        return (accepted or list(self.fits))[0]


def models() -> tuple[str, ...]:
    """Return the names of the models that can be fitted, the simplest first."""
    return tuple(name for name, _ in _native.loss_models())


def fit_models(sequence: LossSequence, names: Sequence[str] = ("all",), level: float = 0.95) -> Fits:
    """Fit the models called `names` to a loss sequence, with intervals of confidence `level`.

    Raises ChannelError for an unknown model, a level out of range, a sequence without or with only losses, or, for the
    model in continuous time, packets without times.
    """
    chosen = _chosen(names)
    if not MIN_LEVEL <= level <= MAX_LEVEL:
        raise ChannelError(f"level: {level:g} is out of range; allowed: {MIN_LEVEL:g} to {MAX_LEVEL:g}")
    losses = sequence.losses
    if losses == 0:
        max_rate = 1 - (1 - level) ** (1 / len(sequence))
        raise ChannelError(
            f"none of {len(sequence)} packets was lost, so there is nothing to fit",
            f"the loss rate is below {max_rate:.2g} with {100 * level:g} % confidence if losses are independent",
        )
    if losses == len(sequence):
        raise ChannelError(f"all of {len(sequence)} packets were lost, so there is nothing to fit")
    timed = bool(len(sequence)) and bool(sequence.t_ns[-1] > sequence.t_ns[0])
    if not timed and IN_TIME in chosen:
        if "all" not in names:
            raise ChannelError(f"{IN_TIME}: the packets have no times, so nothing can be fitted in time")
        chosen.remove(IN_TIME)
    octets = sequence.lost.tobytes()
    t_ns = sequence.t_ns.astype(np.int64).tobytes() if timed and IN_TIME in chosen else None
    fits = [_fit(found) for found in _native.fit_losses(octets, chosen, level, t_ns)]
    period = period_of(sequence.lost)
    if period is not None:
        fits = [replace(fit, verdict="does not fit") for fit in fits]
    return Fits(
        fits=tuple(sorted(fits, key=lambda fit: fit.bic)),
        level=level,
        packets=len(sequence),
        losses=losses,
        shape=_native.loss_shape(octets),
        period=period,
    )


def period_of(lost: npt.NDArray[np.uint8]) -> Period | None:
    """Return the shortest period of a loss sequence; None if it has none or may repeat by chance.

    The whole sequence must consist of at least two periods. The probability of a repetition by chance is about that of
    all packets after the first period in a two-state chain with the sequence's transition probabilities.
    """
    at = np.flatnonzero(lost)
    cycle = _cycle(np.diff(at).tolist())
    if cycle is None:
        return None
    length = int(at[cycle] - at[0])
    if 2 * length > len(lost) or not np.array_equal(lost[length:], lost[:-length]):
        return None
    behind = 1 - length / len(lost)
    if behind * _log_likelihood(lost) + log(len(lost)) > log(BY_CHANCE):
        return None
    return Period(length, cycle)


def _cycle(values: list[int]) -> int | None:
    """Return the length of the shortest cycle of `values` (Knuth, Morris and Pratt, 1977); None if it occurs once."""
    border, borders = 0, [0]
    for value in values[1:]:
        while border and values[border] != value:
            border = borders[border - 1]
        border += values[border] == value
        borders.append(border)
    cycle = len(values) - borders[-1]
    return cycle if 0 < 2 * cycle <= len(values) else None


def _log_likelihood(lost: npt.NDArray[np.uint8]) -> float:
    """Return the natural logarithm of the probability of a sequence under a two-state chain, whose transition
    probabilities are at most one half.
    """
    changes = np.bincount(2 * lost[:-1] + lost[1:], minlength=4)
    total = 0.0
    for stayed, changed in ((changes[0], changes[1]), (changes[3], changes[2])):
        if changed:
            leave = min(changed / (stayed + changed), 0.5)
            total += changed * log(leave) + stayed * log(1 - leave)
    return float(total)


def _chosen(names: Sequence[str]) -> list[str]:
    known = models()
    if "all" in names:
        return list(known)
    for name in names:
        if name not in known:
            guess = did_you_mean(name, known, lead="; ")
            raise ChannelError(f"unknown model {name!r}{guess}", f"allowed: all, {', '.join(known)}")
    return list(dict.fromkeys(names))


def _fit(found: dict[str, Any]) -> Fit:
    tests = tuple(_test(*test) for test in found["tests"])
    tested = any(test.p_value is not None for test in tests)
    verdict: Verdict = "does not fit" if found["refused"] else "fits" if tested else "too few losses to tell"
    return Fit(
        model=found["model"],
        parameters=tuple(_parameter(*parameter) for parameter in found["parameters"]),
        log_likelihood=found["log_likelihood"],
        aic=found["aic"],
        bic=found["bic"],
        identified=found["identified"],
        profiled=found["profiled"],
        verdict=verdict,
        tests=tests,
        expected={name: found[name] for name in ("gap_longer", "burst_longer", "autocorrelation")},
    )


def _parameter(name: str, value: float, error: float | None, low: float, high: float) -> Parameter:
    return Parameter(name, value, error, low, high if math.isfinite(high) else None)


def _test(
    name: str,
    statistic: float,
    freedom: int,
    p_value: float | None,
    worst: tuple[int, int, float, float, float] | None,
) -> Test:
    return Test(name, statistic, freedom, p_value, "" if worst is None else _where(name, *worst))


def _where(name: str, first: int, last: int, expected: float, observed: float, deviation: float) -> str:
    span = f"{first}" if first == last else f"{first} to {last}"
    if name == "autocorrelation":
        sense = "more" if deviation > 0 else "less"
        return f"losses {span} packets apart are correlated {sense} than in the model ({deviation:+.1f} deviations)"
    kind = "losses" if name == "runs of losses" else "packets without a loss"
    return (
        f"of runs of at least {span} {kind}, {observed:.0f} ended there and {expected:.1f} were expected "
        f"({deviation:+.1f} deviations)"
    )


def chart_data(fits: Fits) -> dict[str, pa.Table]:
    """Return the data of a fit's charts: `runs` (series, kind, length_pkts, longer) and `autocorrelation` (series,
    lag_pkts, autocorrelation). The series `trace` is observed, the others are models.
    """
    import pyarrow as pa

    runs: list[dict[str, object]] = []
    ahead: list[dict[str, object]] = []
    for series, values in [("trace", fits.shape), *((fit.model, fit.expected) for fit in fits.fits)]:
        for kind in ("burst", "gap"):
            lengths = [0, *fits.shape[f"{kind}_lengths"]]
            for length, longer in zip(lengths, [1.0, *values[f"{kind}_longer"]], strict=True):
                runs.append({"series": series, "kind": kind, "length_pkts": length, "longer": longer})
        for lag, value in zip(fits.shape["lags"], values["autocorrelation"], strict=True):
            if math.isfinite(value):
                ahead.append({"series": series, "lag_pkts": lag, "autocorrelation": value})
    return {"runs": pa.Table.from_pylist(runs), "autocorrelation": pa.Table.from_pylist(ahead)}
