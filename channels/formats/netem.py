"""tc-netem command lines with distribution tables: read into one interval, written from the statistics of a trace.

See tc-netem(8). netem is a model, not a trace: a file is read as mean values and the loss model is reported; writing
fits a loss model. See docs/channels/interop.md.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hindflight.channels.estimate import Estimate
from hindflight.channels.fitting.fit import Fit, fit_models
from hindflight.channels.fitting.loss_sequence import loss_sequence_of
from hindflight.channels.formats.rows import forward_states, omissions, table_of
from hindflight.channels.formats.text import INT64_MAX, Source
from hindflight.channels.intervals import State
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError

TABLE_ENTRIES = 4096
TABLE_UNIT = 8192
"""A distribution table has 4096 quantiles in units of 1/8192 of the jitter from the delay (iproute2, netem)."""

TABLE_LIMIT = 32_767
SPAN_NS = 3600 * 10**9
"""Length of the interval that represents a command, which has no end: one hour."""

_TIMES = {"s": 1e9, "sec": 1e9, "secs": 1e9, "ms": 1e6, "msec": 1e6, "us": 1e3, "usec": 1e3, "ns": 1.0, "nsec": 1.0}
_RATES = {"": 1.0, "bit": 1.0, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9, "tbit": 1e12,
          "bps": 8.0, "kbps": 8e3, "mbps": 8e6, "gbps": 8e9, "kibit": 1024.0, "mibit": 1024.0**2}  # fmt: skip
_NUMBER = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)([A-Za-z%]*)")
_KEYS = {
    "delay",
    "loss",
    "rate",
    "limit",
    "distribution",
    "duplicate",
    "corrupt",
    "reorder",
    "gap",
    "slot",
    "ecn",
    "seed",
}
_UNSUPPORTED = ("duplicate", "corrupt", "reorder", "gap", "slot", "ecn", "seed", "distribution")

Floats = npt.NDArray[np.float64]


def read(source: Source) -> Trace:
    """Read the command that contains `netem`. Raises ChannelError with line and word."""
    line, words = _command(source)
    options = _options(source, line, words)
    unknowns: list[str] = ["A netem command has no end: its one interval is written as an hour."]
    columns: dict[str, object] = {"t_ns": [0], "end_ns": [SPAN_NS], "delay_ns": [0], "lost": [False], "cause": ["none"]}
    estimates: tuple[Estimate, ...] = ()
    for key, values in options:
        number = _Reader(source, line, key)
        if key == "delay":
            columns["delay_ns"] = [round(number.of(values, 0, _TIMES, "a time with its unit, as 100ms"))]
            if len(values) > 1:
                unknowns.append(f"The jitter {' '.join(values[1:])} is not read: the table holds the mean delay.")
        elif key == "rate":
            columns["rate_bps"] = [number.of(values, 0, _RATES, "a rate, as 1mbit")]
        elif key == "limit":
            packets = number.of(values, 0, {"": 1.0}, "a number of packets")
            how = "the limit of the netem command"
            estimates = (Estimate("queue_limit_pkts", packets, None, None, "packets", True, how),)
        elif key == "loss":
            mean, omitted = _loss(number, values)
            columns["per"] = [mean]
            unknowns += omitted
        elif key in _UNSUPPORTED:
            unknowns.append(f"`{' '.join([key, *values])}` is not read: the channel table has no column for it.")
    table = table_of("interval", columns, 1)
    return Trace(table, estimates=estimates, unknowns=tuple(unknowns), source={"name": source.name})


def _command(source: Source) -> tuple[int, list[str]]:
    joined = source.text.replace("\\\n", " ")
    for number, line in enumerate(joined.splitlines(), 1):
        try:
            words = shlex.split(line, comments=True) if "netem" in line else []
        except ValueError as error:
            raise source.error_at(number, f"is no command: {error}") from None
        if "netem" in words:
            return number, words[words.index("netem") + 1 :]
    raise ChannelError(f"{source.path}: holds no netem command")


def _options(source: Source, line: int, words: list[str]) -> Iterator[tuple[str, list[str]]]:
    at = 0
    while at < len(words):
        key = words[at]
        if key not in _KEYS:
            raise source.error_at(line, f"netem has no option {key!r} here")
        end = at + 1
        while end < len(words) and (words[end] not in _KEYS or (key == "loss" and words[end] == "ecn")):
            end += 1
        yield key, words[at + 1 : end]
        at = end


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses the numbers of one option; errors name it."""

    source: Source
    line: int
    key: str

    def of(self, values: list[str], at: int, units: dict[str, float], what: str) -> float:
        """Return the number at index `at`, converted by `units`."""
        match = _NUMBER.fullmatch(values[at]) if at < len(values) else None
        if match is None or match[2].lower() not in units:
            got = repr(values[at]) if at < len(values) else "nothing"
            raise self.source.error_at(self.line, f"{self.key}: {got} is not {what}")
        value = float(match[1]) * units[match[2].lower()]
        if value < 0:
            raise self.source.error_at(self.line, f"{self.key}: {values[at]} is negative")
        if value > INT64_MAX:
            raise self.source.error_at(self.line, f"{self.key}: {values[at]} is out of range")
        return value

    def share(self, values: list[str], at: int, default: float) -> float:
        """Return a percentage as a probability."""
        if at >= len(values):
            return default
        value = self.of(values, at, {"%": 0.01, "": 0.01}, "a percentage")
        if value > 1:
            raise self.source.error_at(self.line, f"{self.key}: {values[at]} is more than 100 %")
        return value


def _loss(number: _Reader, values: list[str]) -> tuple[float, list[str]]:
    """Return the mean loss rate, and the loss model in the syntax of a scenario."""
    kind = values[0] if values and values[0] in {"random", "gemodel", "state"} else "random"
    rest = values[1:] if values and values[0] == kind else values
    if kind == "random":
        mean = number.share(rest, 0, 0.0)
        omitted = (
            [f"The correlation {rest[1]} of the losses is not read."] if len(rest) > 1 and rest[1] != "ecn" else []
        )
        return mean, omitted
    if kind == "gemodel":
        p = number.share(rest, 0, 0.0)
        r, bad, good = number.share(rest, 1, 1 - p), number.share(rest, 2, 1.0), number.share(rest, 3, 0.0)
        mean = (p * bad + r * good) / (p + r) if p + r > 0 else good
        model = f'{{ model = "gilbert_elliott", p = {p:.9g}, r = {r:.9g}, h = {1 - bad:.9g}, k = {1 - good:.9g} }}'
    else:
        p13 = number.share(rest, 0, 0.0)
        p31, p32 = number.share(rest, 1, 1 - p13), number.share(rest, 2, 0.0)
        p23, p14 = number.share(rest, 3, 1.0), number.share(rest, 4, 0.0)
        mean = _four_state_mean(p13, p31, p32, p23, p14)
        model = f'{{ model = "four_state", p13 = {p13:.9g}, p31 = {p31:.9g}, p32 = {p32:.9g}, p23 = {p23:.9g}, p14 = {p14:.9g} }}'  # noqa: E501
    return mean, [f"The losses come in bursts, and the table contains their mean; in a scenario: loss = {model}."]


def _four_state_mean(p13: float, p31: float, p32: float, p23: float, p14: float) -> float:
    """Return the loss rate of netem's four states, from the balance equations."""
    if p31 == 0 and p32 == 0:
        return 1.0 if p13 > 0 else p14 / (1 + p14)
    in_1 = 1.0
    in_3 = p13 * in_1 / p31 if p31 > 0 else 0.0
    in_2 = p32 * in_3 / p23 if p23 > 0 else 0.0
    in_4 = p14 * in_1
    return (in_3 + in_4) / (in_1 + in_2 + in_3 + in_4)


def write(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return a shell script with the command and its distribution table, and what the script omits."""
    omitted = omissions(trace, {"packets", "intervals", "delay_ns", "rate_bps", "per", "size_bytes"})
    states = forward_states(trace, where)
    if outages := [state for state in states if state.outage]:
        omitted.append(f"outages of {_seconds(outages)} are omitted: netem has no times")
        states = [state for state in states if not state.outage]
    words, table = _delay(states, omitted)
    words += _rate(states, omitted) + _loss_words(trace, states, where, omitted)
    limit = trace.estimate("queue_limit_pkts")
    if limit is not None and limit.value is not None:
        words += ["limit", str(max(1, round(limit.value)))]
    else:
        omitted.append("the trace has no queue limit: netem's default, 1000 packets, applies")
    if not words:
        raise ChannelError(f"{where}: the trace shows neither delay nor rate nor losses")
    command = f'tc qdisc replace dev "${{1:?interface}}" root netem {" ".join(words)}\n'
    head = "#!/bin/sh\n# usage: sh FILE INTERFACE, as root\n"
    if table is None:
        return head + command, omitted
    rows = "\n".join(" ".join(map(str, row)) for row in table.reshape(-1, 8).tolist())
    return f"{head}cat > /usr/lib/tc/hindflight.dist <<'END'\n{rows}\nEND\n{command}", omitted


def _weights(states: Sequence[State], name: str) -> tuple[Floats, Floats]:
    """Return the values of one attribute of the states, and their durations."""
    omitted = [state for state in states if getattr(state, name) is not None]
    values = np.array([getattr(state, name) for state in omitted], dtype=np.float64)
    return values, np.array([state.end_ns - state.start_ns for state in omitted], dtype=np.float64)


def _seconds(states: Iterable[State]) -> str:
    return f"{sum(state.end_ns - state.start_ns for state in states) / 1e9:g} s"


def _delay(states: Sequence[State], omitted: list[str]) -> tuple[list[str], npt.NDArray[np.int64] | None]:
    values, lasting = _weights(states, "delay_ns")
    if not len(values):
        return [], None
    mean = float(np.average(values, weights=lasting))
    spread = float(np.sqrt(np.average((values - mean) ** 2, weights=lasting)))
    if spread < 1:
        return ["delay", f"{mean / 1e6:.6f}ms"], None
    omitted.append("the order of the delays is omitted: netem takes each from their distribution")
    table = distribution(values, lasting, mean, spread)
    return ["delay", f"{mean / 1e6:.6f}ms", f"{spread / 1e6:.6f}ms", "distribution", "hindflight"], table


def distribution(values: Floats, weights: Floats, mean: float, spread: float) -> npt.NDArray[np.int64]:
    """Return the quantiles of weighted values in the format of netem's tables."""
    order = np.argsort(values, kind="stable")
    share = (np.cumsum(weights[order]) - 0.5 * weights[order]) / weights.sum()
    at = (np.arange(TABLE_ENTRIES) + 0.5) / TABLE_ENTRIES
    quantiles = np.interp(at, share, values[order])
    table = np.rint((quantiles - mean) / spread * TABLE_UNIT)
    return np.clip(table, -TABLE_LIMIT - 1, TABLE_LIMIT).astype(np.int64)


def _rate(states: Sequence[State], omitted: list[str]) -> list[str]:
    values, lasting = _weights(states, "rate_bps")
    if not len(values):
        return []
    mean = float(np.average(values, weights=lasting))
    if float(values.max() - values.min()) > 0.01 * mean:
        low, high = values.min() / 1e6, values.max() / 1e6
        omitted.append(f"the rate goes from {low:.4g} to {high:.4g} Mbit/s; netem gets the mean over time")
    return ["rate", f"{round(mean)}bit"]


def _loss_words(trace: Trace, states: Sequence[State], where: str, omitted: list[str]) -> list[str]:
    import pyarrow.compute as pc

    packets = trace.packets()
    numbered = packets.filter(pc.is_valid(packets["position"])) if len(packets) else packets
    if len(numbered) and pc.any(numbered["lost"]).as_py():
        sequence = loss_sequence_of(trace, where)
        if 0 < sequence.losses < len(sequence):
            fits = fit_models(sequence, ("bernoulli", "gilbert_elliott", "four_state"))
            best = fits.best
            if fits.period is not None:
                lost, every = fits.period.losses, fits.period.packets
                omitted.append(f"the losses are periodic ({lost} of every {every} packets); netem's are random")
            omitted.append(
                f"the loss sequence is omitted: netem gets the fitted model {best.model}, which "
                f"{best.verdict if best.verdict != 'too few losses to tell' else 'has too few losses to be tested'}"
            )
            return ["loss", *_LOSS_ARGUMENTS[best.model](best)]
    values, lasting = _weights(states, "per")
    if not len(values) or not values.any():
        return []
    if values.max() > values.min():
        omitted.append("the loss rate changes over time; netem gets the mean over time")
    if open_states := [state for state in states if state.per is None]:
        omitted.append(f"for {_seconds(open_states)} the trace has no loss rate: netem applies its mean there too")
    return ["loss", "random", _percent(float(np.average(values, weights=lasting)))]


def _percent(share: float) -> str:
    return f"{100 * share:.9g}%"


def _words(fit: Fit, *names: str) -> list[str]:
    return [_percent(fit.parameter(name).value) for name in names]


_LOSS_ARGUMENTS: dict[str, Callable[[Fit], list[str]]] = {
    "bernoulli": lambda fit: ["random", *_words(fit, "per")],
    "gilbert_elliott": lambda fit: [
        "gemodel",
        *_words(fit, "p", "r"),
        *(_percent(1 - fit.parameter(name).value) for name in ("h", "k")),
    ],
    "four_state": lambda fit: ["state", *_words(fit, "p13", "p31", "p32", "p23", "p14")],
}
