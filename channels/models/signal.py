"""Bit errors from signal strength over time: constant, from a file, or from a link budget, with rain.

See docs/channels/signal.md.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import count, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.intervals import State, merge, truncate
from hindflight.channels.models.budget import BOLTZMANN_DBW, Modulation, bit_error_rate, free_space_db
from hindflight.channels.models.parameters import (
    LONGEST_NS,
    Decibels,
    Depth,
    Frequency,
    Gain,
    Grain,
    InputFile,
    Metres,
    Parameters,
    Rate,
    Stay,
    read_text,
)
from hindflight.channels.models.state_sequences import normals
from hindflight.channels.portable import exp, log, log10
from hindflight.toolkit.errors import ChannelError

MAX_STRENGTH_DB = 1000.0
"""Maximum magnitude of a signal strength in a file, in dB."""


class Rain(Parameters):
    """Rain fading: the logarithm of the attenuation is a Gauss-Markov process (Maseng and Bakken, IEEE Trans. Comm.
    1981).

    `median_db` and `sigma` describe the attenuation while it rains; the default `beta` is the 2e-4 per second of ITU-R
    P.1853.
    """

    median_db: Depth
    sigma: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False, strict=True)]
    beta: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False, strict=True)] = 2e-4
    offset_db: Gain = 0.0

    def attenuation_db(self, steps_s: float, seed: int, owner: int) -> Iterator[float]:
        """Yield the attenuation in dB per step of `steps_s` seconds, without end."""
        memory = exp(-self.beta * steps_s)
        fresh = math.sqrt(1 - memory * memory)
        numbers = normals(seed, owner)
        value = next(numbers)
        while True:
            yield max(0.0, self.median_db * exp(self.sigma * value) - self.offset_db)
            value = memory * value + fresh * next(numbers)


class Budget(Parameters):
    """A link budget in free space: Eb/N0 = EIRP + G/T - L_fs - losses - k - 10 log10(bit rate)."""

    eirp_dbw: Decibels
    g_over_t_dbk: Decibels
    frequency: Frequency
    bit_rate: Rate
    losses_db: Gain = 0.0

    def ebn0_db(self, range_m: float) -> float:
        """Return Eb/N0 in dB at a range in m, without rain."""
        cn0 = self.eirp_dbw + self.g_over_t_dbk - free_space_db(range_m, self.frequency) - self.losses_db
        return cn0 - BOLTZMANN_DBW - 10 * log10(self.bit_rate)


class Signal(Parameters):
    """Bit errors of a signal, from one of `ebn0_db`, `cn0_dbhz` with `bit_rate`, `file` (t_s, ebn0_db) or `budget`.

    `curve` is a file (ebn0_db, ber) that replaces the uncoded modulation.
    """

    model: Literal["signal"]
    ebn0_db: Decibels | None = None
    cn0_dbhz: Decibels | None = None
    bit_rate: Rate | None = None
    file: InputFile | None = None
    budget: Budget | None = None
    range: Metres | None = None
    modulation: Modulation = "qpsk"
    curve: InputFile | None = None
    coding_gain_db: Gain = 0.0
    rain: Rain | None = None
    step: Stay = 1_000_000_000
    level_db: Grain = 0.1

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = [name for name in ("ebn0_db", "cn0_dbhz", "file", "budget") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"give one of ebn0_db, cn0_dbhz, file and budget, not {' and '.join(given) or 'none'}")
        if (self.cn0_dbhz is None) != (self.bit_rate is None):
            raise ValueError("give bit_rate with cn0_dbhz, and only with it")
        if (self.budget is None) != (self.range is None):
            raise ValueError("give range with budget, and only with it")
        return self

    def states(self, span_ns: int, seed: int, owner: int = 0) -> Iterator[State]:
        """Return the bit error rate from 0 to `span_ns`; it changes when the signal changes by `level_db`."""
        return merge(truncate(self._states(span_ns, seed, owner), span_ns))

    def _states(self, span_ns: int, seed: int, owner: int) -> Iterator[State]:
        points = read_curve(Path(self.curve)) if self.curve is not None else None
        rain = self.rain.attenuation_db(self.step / 1e9, seed, owner) if self.rain is not None else None
        series = read_series(Path(self.file), "ebn0_db") if self.file is not None else [(0, self._steady())]
        steady = rain is None and len(series) == 1
        for number in count():
            start = number * self.step
            end = span_ns if steady else start + self.step
            fade = next(rain) if rain is not None else 0.0
            # Times of the file split a step, so that a change shorter than a step counts too.
            first, last = bisect_right(series, start, key=itemgetter(0)), bisect_left(series, end, key=itemgetter(0))
            for begin, until_ns in pairwise([start, *(t for t, _ in series[first:last]), end]):
                level = round((held(series, begin) - fade) / self.level_db) * self.level_db + self.coding_gain_db
                ber = bit_error_rate(self.modulation, level) if points is None else interpolated(points, level)
                yield State(begin, until_ns, ber=ber)

    def _steady(self) -> float:
        if self.budget is not None and self.range is not None:
            return self.budget.ebn0_db(self.range)
        if self.cn0_dbhz is not None and self.bit_rate is not None:
            return self.cn0_dbhz - 10 * log10(self.bit_rate)
        return self.ebn0_db or 0.0


Series = list[tuple[int, float]]


def held(series: Series, t_ns: int) -> float:
    """Return the value of a step series at a time; before its first point, the first value."""
    return series[max(0, bisect_right(series, t_ns, key=itemgetter(0)) - 1)][1]


def interpolated(points: list[tuple[float, float]], x: float) -> float:
    """Return y at `x`, interpolated linearly, or logarithmically if both values are positive; constant outside."""
    if x <= points[0][0]:
        return points[0][1]
    for (x0, y0), (x1, y1) in pairwise(points):
        if x <= x1:
            part = (x - x0) / (x1 - x0)
            if y0 > 0 and y1 > 0:
                return exp(log(y0) + part * (log(y1) - log(y0)))
            return y0 + part * (y1 - y0)
    return points[-1][1]


def read_series(path: Path, name: str) -> Series:
    """Read a CSV file of `t_s` and `name` by ascending time. Raises ChannelError with the line."""
    return [(round(t * 1e9), value) for t, value in read_pairs(path, ("t_s", name))]


def read_curve(path: Path) -> list[tuple[float, float]]:
    """Read a CSV file of `ebn0_db` and `ber` by ascending Eb/N0. Raises ChannelError with the line."""
    points = read_pairs(path, ("ebn0_db", "ber"))
    if not all(0 <= ber <= 1 for _, ber in points):
        raise ChannelError(f"{path}: a bit error rate must be between 0 and 1")
    return points


def read_pairs(path: Path, columns: tuple[str, str]) -> list[tuple[float, float]]:
    """Read two columns of numbers from a CSV file, the first ascending. Raises ChannelError with the line."""
    return [(row[0], row[1]) for row in read_columns(path, columns)]


def read_columns(path: Path, columns: tuple[str, ...]) -> list[list[float]]:
    """Read columns of finite numbers from a CSV file, the first ascending. Raises ChannelError with the line."""
    reader = csv.DictReader(read_text(path).splitlines())
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise ChannelError(f"{path}: lacks the column {missing[0]}; it needs {', '.join(columns)}")
    rows: list[list[float]] = []
    for number, row in enumerate(reader, 2):
        try:
            values = [float(row[name]) for name in columns]
        except (TypeError, ValueError):
            raise ChannelError(f"{path}: line {number}: {', '.join(columns)} must be numbers") from None
        if not all(map(math.isfinite, values)):
            raise ChannelError(f"{path}: line {number}: a number is not finite")
        if columns[0] == "t_s" and not 0 <= values[0] <= LONGEST_NS / 1e9:
            raise ChannelError(f"{path}: line {number}: t_s is {values[0]:g}; allowed: 0 to {LONGEST_NS / 1e9:g}")
        if "ebn0_db" in columns and abs(values[columns.index("ebn0_db")]) > MAX_STRENGTH_DB:
            raise ChannelError(f"{path}: line {number}: ebn0_db is beyond {MAX_STRENGTH_DB:g} dB")
        if rows and values[0] <= rows[-1][0]:
            raise ChannelError(f"{path}: line {number}: {columns[0]} must ascend")
        rows.append(values)
    if not rows:
        raise ChannelError(f"{path}: has no rows")
    return rows
