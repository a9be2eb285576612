"""Land-mobile satellite, statistical model: states of shadowing with Rice, Rayleigh, Loo or Suzuki fading.

The kernels generate the fading. See docs/channels/lms.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merge, truncate
from hindflight.channels.models.budget import Modulation, bit_error_rate
from hindflight.channels.models.ephemeris import LIGHT_MPS
from hindflight.channels.models.parameters import (
    LONGEST_NS,
    Decibels,
    Frequency,
    Gain,
    Grain,
    Metres,
    Parameters,
    Probability,
    Speed,
    Stay,
)
from hindflight.channels.portable import exp, of_db

_ROWS = 65_536

STEPS_NS = (1_000_000, 500_000, 250_000, 125_000)
"""Steps to choose from: the longest that misses few fades."""

MISSED_FADES = 0.005
"""Maximum share of the fades that fall between two steps."""

_POINTS = 100
"""Number of points of an integral over power."""

_SHADOWS = [(i / 2, exp(-(i * i) / 8)) for i in range(-8, 9)]
"""Standard normal values and their weights."""


class ShadowState(Parameters):
    """A state of shadowing: its mean length, and the signal in dB relative to the unshadowed direct signal.

    `direct_db` None: no direct signal (Rayleigh; with `multipath_sigma_db` Suzuki). `direct_sigma_db` > 0: Loo.
    """

    mean_length: Annotated[Metres, Field(gt=0)]
    direct_db: Decibels | None = None
    direct_sigma_db: Annotated[Gain, Field(le=100)] = 0.0
    multipath_db: Decibels
    multipath_sigma_db: Annotated[Gain, Field(le=100)] = 0.0


class Lms(Parameters):
    """A terminal that moves at `speed` through states of shadowing.

    A fade either loses all packets, below `margin_db`, or gives a bit error rate by `ebn0_db` (of the unshadowed direct
    signal) and `modulation`. Without `step`, samples are so close that few fades fall between two of them.
    """

    model: Literal["lms"]
    states_: Annotated[tuple[ShadowState, ...], Field(min_length=1, max_length=20, alias="states")]
    jumps: tuple[tuple[Probability, ...], ...] | None = None
    speed: Speed = 2.0
    frequency: Frequency = 1.5e9
    correlation_length: Annotated[Metres, Field(gt=0)] = 1.5
    step: Stay | None = None
    margin_db: Gain | None = None
    ebn0_db: Decibels | None = None
    modulation: Modulation = "qpsk"
    level_db: Grain = 0.5

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        count = len(self.states_)
        if (self.margin_db is None) == (self.ebn0_db is None):
            raise ValueError("give margin_db or ebn0_db")
        if self.jumps is None and count > 2:
            raise ValueError("more than two states need jumps, row by row")
        if self.jumps is not None:
            rows = self.jumps
            if len(rows) != count or any(len(row) != count or abs(sum(row) - 1) > 1e-6 for row in rows):
                raise ValueError(f"jumps must be {count} rows of {count} probabilities that sum to 1")
        self.shares()
        if self.speed <= 0:
            raise ValueError("speed must be more than 0: this model has no fading for a terminal at rest")
        for i, state in enumerate(self.states_):
            if not 1 <= state.mean_length / self.speed * 1e9 <= LONGEST_NS:
                raise ValueError(
                    f"states[{i}].mean_length: {state.mean_length:g} m at {self.speed:g} m/s take "
                    f"{state.mean_length / self.speed:g} s; allowed: 1 ns to 30 days"
                )
        return self

    def chain(self) -> dict[str, Any]:
        """Return the states as the kernel's configuration; sojourn times are exponential (Markov in distance)."""
        count = len(self.states_)
        other = [[1.0]] if count == 1 else [[0.0, 1.0], [1.0, 0.0]]
        rows = [list(row) for row in self.jumps] if self.jumps is not None else other
        stays = [{"per": 0.0, "stay": {"exponential_ns": s.mean_length / self.speed * 1e9}} for s in self.states_]
        start = self.shares()
        return {"kind": "chain", "clock": "time", "states": stays, "jumps": rows, "start": start}

    def shares(self) -> list[float]:
        """Return the long-run share of time in each state."""
        rows = self.jumps if self.jumps is not None else ((0.0, 1.0), (1.0, 0.0))
        visits = [1.0] if len(self.states_) == 1 else _visits(rows)
        times = [visit * state.mean_length for visit, state in zip(visits, self.states_, strict=True)]
        whole = math.fsum(times)
        return [time / whole for time in times]

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return losses or bit error rates over time."""
        return merge(truncate((self._state(*run) for run in self.fades(span_ns, seed, owner)), span_ns))

    def fades(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[tuple[int, int, int, float]]:
        """Yield runs of equal state and signal level: start and end in ns, state, level in dB."""
        import pyarrow as pa

        from hindflight.channels._native import FadeWalk

        step_ns = self.step_ns()
        shadowing_ns = self.correlation_length / self.speed * 1e9
        steps = max(1, -(-span_ns // step_ns))
        lift_db = self._lift_db()
        signals = [
            (None if s.direct_db is None else s.direct_db + lift_db, s.direct_sigma_db,
             s.multipath_db + lift_db, s.multipath_sigma_db)
            for s in self.states_
        ]  # fmt: skip
        pace = (self.doppler_hz, shadowing_ns, step_ns, steps, self.level_db)
        walk = FadeWalk(json.dumps(self.chain()), signals, pace, seed=seed, owner=owner)
        while (runs := walk.read(_ROWS)) is not None:
            for start, end, state, level in zip(*(c.to_pylist() for c in pa.table(runs).columns), strict=True):
                yield start, end, state, level * self.level_db - lift_db

    @property
    def doppler_hz(self) -> float:
        """Maximum Doppler shift."""
        return self.speed * self.frequency / LIGHT_MPS

    def step_ns(self) -> int:
        """Return `step`, or else the longest of `STEPS_NS` that is short enough; if none is, the shortest.

        With a margin, at most `MISSED_FADES` of the fades may fall between two steps. The share of deep Rayleigh fades
        of mean length T that do is 0.196 (step / T)^2 (Rice, Bell System Technical Journal 37(3), 1958). With a bit
        error rate, a period of the maximum Doppler shift has at least 16 steps.
        """
        if self.step is not None:
            return self.step
        longest_s = 1 / (16 * self.doppler_hz)
        if self.margin_db is not None:
            longest_s = self._longest_step_s(of_db(-self.margin_db))
        return next((step for step in STEPS_NS if step <= longest_s * 1e9), STEPS_NS[-1])

    def _longest_step_s(self, power: float) -> float:
        """Return the longest step, from rates and lengths of fades below `power` over all states and shadowings."""
        rates, squares = 0.0, 0.0
        for share, state in zip(self.shares(), self.states_, strict=True):
            shadowed = state.direct_sigma_db > 0 or state.multipath_sigma_db > 0
            for shadow, weight in _SHADOWS if shadowed else [(0.0, 1.0)]:
                direct = 0.0 if state.direct_db is None else of_db(state.direct_db + state.direct_sigma_db * shadow)
                mean = of_db(state.multipath_db + state.multipath_sigma_db * shadow)
                below, rate = fades_below(power, direct, mean, self.doppler_hz)
                rates += share * weight * rate
                inverse = rate / below if below > 0 else 0.0
                squares += share * weight * rate * inverse * inverse
        return math.sqrt(MISSED_FADES / 0.196 * rates / squares) if squares > 0 else math.inf

    def _lift_db(self) -> float:
        """Return the offset of all signals that places the margin between two levels of the kernel."""
        return 0.0 if self.margin_db is None else self.margin_db - self.level_db / 2

    def _state(self, start: int, end: int, _state: int, db: float) -> State:
        if self.ebn0_db is not None:
            return State(start, end, ber=bit_error_rate(self.modulation, self.ebn0_db + db))
        return State(start, end, per=1.0) if db < -(self.margin_db or 0.0) else State(start, end)


def _visits(rows: Sequence[Sequence[float]]) -> list[float]:
    """Return how often each state of a chain is visited, up to a factor: v with v = v P.

    Grassmann, Taksar and Heyman's algorithm (Operations Research 33(5), 1985). Raises ValueError if no earlier state
    can be reached from a state: the shares would depend on the start.
    """
    left = [list(row) for row in rows]
    for last in range(len(left) - 1, 0, -1):
        leaves = math.fsum(left[last][:last])
        if leaves <= 0:
            raise ValueError(
                f"jumps[{last}] leads to none of the states before it: the others would never be seen again"
            )
        for row in left[:last]:
            row[last] /= leaves
            for j in range(last):
                row[j] += row[last] * left[last][j]
    visits = [1.0]
    for state in range(1, len(left)):
        visits.append(math.fsum(visit * left[i][state] for i, visit in enumerate(visits)))
    return visits


def lutz(
    shadowed_share: float, *, rice_db: float, mean_db: float, sigma_db: float, bad_length_m: float
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the two states of Lutz et al. (IEEE Trans. Veh. Tech. 40(2), 1991) as `states` of this model.

    `shadowed_share` A is the share of time in the bad state; Rice factor 10 log10 c of the good state; mean and
    standard deviation of the power in the bad state, and its mean length D_b. The good state has D_g = D_b (1 - A) / A.
    """
    if not 0 < shadowed_share < 1:
        raise ValueError("shadowed_share must lie between 0 and 1")
    good_length_m = bad_length_m * (1 - shadowed_share) / shadowed_share
    good = {"mean_length": f"{good_length_m} m", "direct_db": 0.0, "multipath_db": -rice_db}
    bad = {"mean_length": f"{bad_length_m} m", "multipath_db": mean_db, "multipath_sigma_db": sigma_db}
    return good, bad


def fades_below(power: float, direct: float, mean: float, doppler_hz: float) -> tuple[float, float]:
    """Return the share of time below `power` and the fades per second of a Rice signal.

    `direct` is the power of the direct part (0: Rayleigh), `mean` that of the multipath, which arrives from all
    directions alike (S. O. Rice, Bell System Technical Journal 27, 1948).
    """

    def density(value: float) -> float:
        away = math.sqrt(value) - math.sqrt(direct)
        return exp(-away * away / mean) * _scaled_bessel(2 * math.sqrt(direct * value) / mean) / mean

    width = power / _POINTS
    below = width * math.fsum(density((i + 0.5) * width) for i in range(_POINTS))
    return below, math.sqrt(math.tau * power * mean) * doppler_hz * density(power)


def _scaled_bessel(z: float) -> float:
    """e^-z I0(z) to 2e-7: Abramowitz and Stegun, 9.8.1 and 9.8.2."""
    if z < 3.75:
        return exp(-z) * _polynomial(_SMALL, (z / 3.75) ** 2)
    return _polynomial(_LARGE, 3.75 / z) / math.sqrt(z)


_SMALL = (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)
_LARGE = (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377)


def _polynomial(terms: Sequence[float], x: float) -> float:
    value = 0.0
    for term in reversed(terms):
        value = value * x + term
    return value
