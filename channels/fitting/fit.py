"""Models of loss fitted to a trace: parameters with intervals, criteria, tests of the fit, and a verdict in words.

The numbers are the kernels' (channels/kernels/src/fit); here they get names. Read docs/channels/fit.md first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hindflight.channels import _native
from hindflight.channels.fitting.loss_sequence import Fates
from hindflight.channels.portable import log
from hindflight.toolkit.errors import ChannelError, did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

Verdict = Literal["fits", "does not fit", "too few losses to tell"]

IN_TIME = "gilbert_time"
"""The model that goes by the clock: it needs the times of the packets."""

MOST_LEVEL = 0.9999
LEAST_LEVEL = 0.5

BY_CHANCE = 1e-6
"""A sequence that repeats itself is periodic if a random one would do so less often than this."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter with its standard error (None on a limit or where the trace does not tell) and its interval.

    `high` is None where nothing bounds it.
    """

    name: str
    value: float
    standard_error: float | None
    low: float
    high: float | None


@dataclass(frozen=True, slots=True)
class Test:
    """One test of the fit; `p_value` is None where there was too little to test. `worst` says where it fits worst."""

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
        """The parameter called `name`; KeyError if there is none."""
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
    """Every fit to one trace, the lowest BIC first, and the trace's own `shape` (docs/channels/fit.md).

    Where the losses are periodic, no random model fits.
    """

    fits: tuple[Fit, ...]
    level: float
    packets: int
    losses: int
    shape: dict[str, Any]
    period: Period | None = None

    @property
    def best(self) -> Fit:
        """The fit with the lowest BIC among those that are not refused; the lowest of all if all are."""
        accepted = [fit for fit in self.fits if fit.verdict != "does not fit"]
        return (accepted or list(self.fits))[0]


def models() -> tuple[str, ...]:
    """Names of the models that can be fitted, the simplest first."""
    return tuple(name for name, _ in _native.loss_models())


def fit_models(fates: Fates, names: Sequence[str] = ("all",), level: float = 0.95) -> Fits:
    """Fit the models called `names` to a sequence of fates, with intervals that hold the truth with `level`.

    ChannelError: an unknown model, a level out of range, nothing lost or everything, no times for the model in time.
    """
    chosen = _chosen(names)
    if not LEAST_LEVEL <= level <= MOST_LEVEL:
        raise ChannelError(f"level: {level:g} is out of range; allowed: {LEAST_LEVEL:g} to {MOST_LEVEL:g}")
    losses = fates.losses
    if losses == 0:
        most = 1 - (1 - level) ** (1 / len(fates))
        raise ChannelError(
            f"none of {len(fates)} packets was lost, so there is nothing to fit",
            f"the loss rate is below {most:.2g} with {100 * level:g} % confidence if losses are independent",
        )
    if losses == len(fates):
        raise ChannelError(f"all of {len(fates)} packets were lost, so there is nothing to fit")
    timed = bool(len(fates)) and bool(fates.t_ns[-1] > fates.t_ns[0])
    if not timed and IN_TIME in chosen:
        if "all" not in names:
            raise ChannelError(f"{IN_TIME}: the packets have no times, so nothing can be fitted in time")
        chosen.remove(IN_TIME)
    octets = fates.lost.tobytes()
    t_ns = fates.t_ns.astype(np.int64).tobytes() if timed and IN_TIME in chosen else None
    fits = [_fit(found) for found in _native.fit_losses(octets, chosen, level, t_ns)]
    period = period_of(fates.lost)
    if period is not None:
        fits = [replace(fit, verdict="does not fit") for fit in fits]
    return Fits(
        fits=tuple(sorted(fits, key=lambda fit: fit.bic)),
        level=level,
        packets=len(fates),
        losses=losses,
        shape=_native.loss_shape(octets),
        period=period,
    )


def period_of(lost: npt.NDArray[np.uint8]) -> Period | None:
    """Return the shortest period of a sequence of losses; None if there is none or it may be by chance.

    The whole sequence must repeat itself, at least once. By chance it does so with about the probability that a
    two-state chain with the sequence's own rates of change gives to everything behind the first period.
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
    """The length of the shortest cycle of which values are made (Knuth, Morris and Pratt, 1977); None without two."""
    border, borders = 0, [0]
    for value in values[1:]:
        while border and values[border] != value:
            border = borders[border - 1]
        border += values[border] == value
        borders.append(border)
    cycle = len(values) - borders[-1]
    return cycle if 0 < 2 * cycle <= len(values) else None


def _log_likelihood(lost: npt.NDArray[np.uint8]) -> float:
    """Natural logarithm of the probability of a sequence under the simple chain; a change has at most one half."""
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


def _where(name: str, least: int, most: int, expected: float, observed: float, deviation: float) -> str:
    span = f"{least}" if least == most else f"{least} to {most}"
    if name == "autocorrelation":
        sense = "more" if deviation > 0 else "less"
        return f"losses {span} packets apart go together {sense} than the model has it ({deviation:+.1f} deviations)"
    kind = "losses" if name == "runs of losses" else "packets without a loss"
    return (
        f"of runs that reached {span} {kind} {observed:.0f} ended there, {expected:.1f} were expected "
        f"({deviation:+.1f} deviations)"
    )


def pictured(fits: Fits) -> dict[str, pa.Table]:
    """Return what the pictures of a fit draw: `runs` (series, kind, length_pkts, longer), `autocorrelation` (series,
    lag_pkts, autocorrelation). The series `trace` is what was seen, the others are models."""
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
