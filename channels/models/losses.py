"""Loss models per packet, and Markov chains in time: parameters, and their configuration of the kernels.

The kernels generate all random numbers. See docs/channels/{bernoulli,ber,gilbert_elliott,markov}.md.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from hindflight.channels.models.parameters import Parameters, Probability, Real, Stay
from hindflight.channels.portable import exp

Config = dict[str, Any]
"""A loss process in the syntax of `LossConfig` in replay/engine/src/config/loss.rs."""

MeanBurst = Annotated[float, Field(ge=1, allow_inf_nan=False, strict=True)]


class NoLoss(Parameters):
    """No loss: `loss = { model = "none" }`."""

    model: Literal["none"] = "none"

    def config(self) -> Config:
        """Return the kernel's configuration."""
        return {"kind": "none"}


class Bernoulli(Parameters):
    """Independent losses with the same probability for every packet."""

    model: Literal["bernoulli"]
    per: Probability

    def config(self) -> Config:
        """Return the kernel's configuration."""
        return {"kind": "bernoulli", "per": self.per}


class BitErrors(Parameters):
    """Independent bit errors: PER = 1 - (1 - BER)^bits, with the size of each packet."""

    model: Literal["ber"]
    ber: Probability

    def config(self) -> Config:
        """Return the kernel's configuration."""
        return {"kind": "ber", "ber": self.ber}


class GilbertElliott(Parameters):
    """Two states with transitions per packet, parameters as in tc-netem: loss is 1-k in good, 1-h in bad.

    Instead of `p` and `r`: `mean_loss` and `mean_burst` (consecutive packets) of Gilbert's model, in which the bad
    state loses every packet and the good state none. Instead of `h` and `k`: a bit error rate per state.
    """

    model: Literal["gilbert_elliott"]
    p: Probability | None = None
    r: Probability | None = None
    h: Probability | None = None
    k: Probability | None = None
    mean_loss: Annotated[float, Field(ge=0, lt=1, allow_inf_nan=False, strict=True)] | None = None
    mean_burst: MeanBurst | None = None
    ber_good: Probability | None = None
    ber_bad: Probability | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        chain, means = (self.p, self.r), (self.mean_loss, self.mean_burst)
        if (chain.count(None), means.count(None)) not in {(0, 2), (2, 0)}:
            raise ValueError("give p and r, or mean_loss and mean_burst")
        bits = (self.ber_good, self.ber_bad)
        if bits != (None, None) and (self.h, self.k, *means) != (None, None, None, None):
            raise ValueError("give ber_good and ber_bad, or h and k, or mean_loss and mean_burst")
        if None in bits and bits != (None, None):
            raise ValueError("give both ber_good and ber_bad")
        if None not in means and (self.h, self.k) != (None, None):
            raise ValueError("mean_loss and mean_burst set h = 0 and k = 1 (Gilbert's model): leave h and k out")
        if self.steps()[0] > 1:
            raise ValueError("mean_loss is at most b / (b + 1) with b = mean_burst: lengthen mean_burst")
        return self

    def steps(self) -> tuple[float, float]:
        """Return the transition probabilities p and r per packet."""
        if self.mean_loss is None or self.mean_burst is None:
            return self.p or 0.0, self.r or 0.0
        r = 1 / self.mean_burst
        return r * self.mean_loss / (1 - self.mean_loss), r

    def config(self) -> Config:
        """Return the kernel's configuration."""
        p, r = self.steps()
        if self.ber_good is not None and self.ber_bad is not None:
            states = [{"ber": self.ber_good, "stay": {"geometric": p}}, {"ber": self.ber_bad, "stay": {"geometric": r}}]
            return _chain("packets", states, [[0.0, 1.0], [1.0, 0.0]], [1.0, 0.0])
        h, k = self.h or 0.0, 1.0 if self.k is None else self.k
        return {"kind": "gilbert_elliott", "p": p, "r": r, "h": h, "k": k}


class GilbertElliottTime(Parameters):
    """Two states in continuous time: sojourn times are exponential and do not depend on packets."""

    model: Literal["gilbert_elliott_time"]
    mean_good: Stay
    mean_bad: Stay
    loss_good: Probability | None = None
    loss_bad: Probability | None = None
    ber_good: Probability | None = None
    ber_bad: Probability | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        for state in ("good", "bad"):
            if getattr(self, f"loss_{state}") is not None and getattr(self, f"ber_{state}") is not None:
                raise ValueError(f"give loss_{state} or ber_{state}, not both")
        return self

    def config(self) -> Config:
        """Return the kernel's configuration; the chain starts in its steady state."""
        bad = 1.0 if self.loss_bad is None and self.ber_bad is None else self.loss_bad
        states = [
            _state(self.loss_good, self.ber_good, {"exponential_ns": float(self.mean_good)}),
            _state(bad, self.ber_bad, {"exponential_ns": float(self.mean_bad)}),
        ]
        share = self.mean_good / (self.mean_good + self.mean_bad)
        return _chain("time", states, [[0.0, 1.0], [1.0, 0.0]], [share, 1 - share])


class FourState(Parameters):
    """tc-netem's `loss state`: 1 received in a gap, 2 received in a burst, 3 lost in a burst, 4 lost in a gap."""

    model: Literal["four_state"]
    p13: Probability
    p31: Probability | None = None
    p32: Probability = 0.0
    p23: Probability = 1.0
    p14: Probability = 0.0

    @model_validator(mode="after")
    def _rows(self) -> Self:
        if self.p13 + self.p14 > 1:
            raise ValueError("p13 + p14 is more than 1")
        if self.p32 + self.back > 1:
            raise ValueError("p31 + p32 is more than 1")
        return self

    @property
    def back(self) -> float:
        """Return p31; by default 1 - p13, as in netem."""
        return 1 - self.p13 if self.p31 is None else self.p31

    def config(self) -> Config:
        """Return the kernel's configuration, with the states in netem's order."""
        p31 = self.back
        rows = [
            [1 - self.p13 - self.p14, 0.0, self.p13, self.p14],
            [0.0, 1 - self.p23, self.p23, 0.0],
            [p31, self.p32, 1 - p31 - self.p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ]
        return _stepped(rows, [{"per": 0.0}, {"per": 0.0}, {"per": 1.0}, {"per": 1.0}])


Row = tuple[Probability, ...]


class Markov(Parameters):
    """A Markov chain with transitions per packet: `transitions` row by row, `loss` or `ber` per state."""

    model: Literal["markov"]
    transitions: Annotated[tuple[Row, ...], Field(min_length=1, max_length=1000)]
    loss: tuple[Probability, ...] | None = None
    ber: tuple[Probability, ...] | None = None

    @model_validator(mode="after")
    def _square(self) -> Self:
        _check_rows("transitions", self.transitions, len(self.transitions))
        _check_states(self.loss, self.ber, len(self.transitions))
        return self

    def config(self) -> Config:
        """Return the kernel's configuration; the chain starts in its first state."""
        return _stepped([list(row) for row in self.transitions], _losses(self.loss, self.ber))


class MarkovTime(Parameters):
    """A Markov or semi-Markov chain in continuous time: mean sojourn times, jumps, loss or bit error rate per state.

    `law` of the sojourn times: exponential (Markov) or log-normal with `sigma` (semi-Markov).
    """

    model: Literal["markov_time"]
    stays: Annotated[tuple[Stay, ...], Field(min_length=1, max_length=1000)]
    jumps: tuple[Row, ...]
    loss: tuple[Probability, ...] | None = None
    ber: tuple[Probability, ...] | None = None
    law: Literal["exponential", "log_normal"] = "exponential"
    sigma: Annotated[float, Field(ge=0, le=10, allow_inf_nan=False, strict=True)] | None = None

    @model_validator(mode="after")
    def _square(self) -> Self:
        _check_rows("jumps", self.jumps, len(self.stays))
        _check_states(self.loss, self.ber, len(self.stays))
        if (self.sigma is None) != (self.law == "exponential"):
            raise ValueError('give sigma with law = "log_normal", and only with it')
        return self

    def config(self) -> Config:
        """Return the kernel's configuration; the chain starts in its first state."""
        states = [
            {**loss, "stay": _stay(float(mean), self.sigma)}
            for loss, mean in zip(_losses(self.loss, self.ber), self.stays, strict=True)
        ]
        start = [1.0] + [0.0] * (len(states) - 1)
        return _chain("time", states, [list(row) for row in self.jumps], start)


PacketLoss = Bernoulli | BitErrors | GilbertElliott | FourState | Markov
"""Models per packet: whether a packet is lost depends on the number of packets before it, not on time."""

TimeLoss = GilbertElliottTime | MarkovTime
"""Models in continuous time."""


def _stay(mean_ns: float, sigma: float | None) -> Config:
    if sigma is None:
        return {"exponential_ns": mean_ns}
    # Mean of a log-normal: median e^(sigma^2 / 2).
    return {"log_normal": {"median_ns": mean_ns / exp(sigma * sigma / 2), "sigma": sigma}}


def _state(loss: Real | None, ber: Real | None, stay: Config) -> Config:
    return {"ber": ber, "stay": stay} if ber is not None else {"per": loss or 0.0, "stay": stay}


def _losses(loss: tuple[float, ...] | None, ber: tuple[float, ...] | None) -> list[Config]:
    return [{"ber": value} for value in ber] if ber is not None else [{"per": value} for value in loss or ()]


def _check_states(loss: tuple[float, ...] | None, ber: tuple[float, ...] | None, states: int) -> None:
    if (loss is None) == (ber is None):
        raise ValueError("give loss or ber, one value per state")
    given = len(loss if loss is not None else ber or ())
    if given != states:
        raise ValueError(f"{given} values of loss or ber for {states} states")


def _check_rows(name: str, rows: tuple[Row, ...], states: int) -> None:
    if len(rows) != states:
        raise ValueError(f"{name} has {len(rows)} rows for {states} states")
    for i, row in enumerate(rows):
        if len(row) != states:
            raise ValueError(f"{name}[{i}] has {len(row)} values for {states} states")
        if abs(sum(row) - 1) > 1e-6:
            raise ValueError(f"{name}[{i}] sums to {sum(row):g}, not 1")


def _stepped(rows: list[list[float]], losses: list[Config]) -> Config:
    """Return a chain per packet: geometric sojourn times, and jumps conditional on leaving the state."""
    states, jumps = [], []
    for i, (row, loss) in enumerate(zip(rows, losses, strict=True)):
        leave = max(0.0, 1 - row[i])
        states.append({**loss, "stay": {"geometric": leave}})
        left = [0.0 if j == i else value for j, value in enumerate(row)]
        total = sum(left)
        jumps.append([value / total for value in left] if total > 0 else [float(j == i) for j in range(len(row))])
    return _chain("packets", states, jumps, [1.0] + [0.0] * (len(rows) - 1))


def _chain(clock: str, states: list[Config], jumps: list[list[float]], start: list[float]) -> Config:
    return {"kind": "chain", "clock": clock, "states": states, "jumps": jumps, "start": start}
