"""TheaterQ's trace files: a line per state of the link, with its duration.

Simple: keep [µs], latency [ns], rate [bit/s], loss [of 2^32 - 1], limit [packets]. Extended: keep, latency, jitter,
rate, loss, limit, duplication, duplication delay, route. See docs/channels/interop.md.
"""

from __future__ import annotations

import numpy as np

from hindflight.channels.estimate import Estimate
from hindflight.channels.formats.rows import LONGEST_NS, forward_states, omissions, table_of
from hindflight.channels.formats.text import Source, parse_integer
from hindflight.channels.trace import Trace
from hindflight.toolkit.errors import ChannelError

ALL = 2**32 - 1
"""A loss of 100 %."""

SIMPLE = ("keep", "latency", "rate", "loss", "limit")
EXTENDED = ("keep", "latency", "jitter", "rate", "loss", "limit", "duplication", "duplication delay", "route")
US = 1000
DEFAULT_LIMIT = 1000
"""Queue limit in packets if the trace has none: netem's default."""


def read(source: Source) -> Trace:
    """Read the states into intervals. Raises ChannelError with the line."""
    rows, lasting = [], 0
    for number, line in source.lines():
        if line[0].isdigit() or line[0] in "-+.":
            rows.append(_fields(source, number, line))
            lasting += rows[-1]["keep"] * US
            if lasting > LONGEST_NS:
                raise source.error_at(number, f"keep is {rows[-1]['keep']} µs: the trace is longer than a year")
    if not rows:
        raise source.empty_error()
    named = {name: np.array([row.get(name, 0) for row in rows], dtype=np.int64) for name in EXTENDED}
    end = np.cumsum(named["keep"] * US)
    lost = named["loss"] == ALL
    columns = {
        "t_ns": end - named["keep"] * US,
        "end_ns": end,
        "delay_ns": named["latency"],
        "rate_bps": named["rate"].astype(np.float64),
        "lost": lost,
        "cause": np.where(lost, "channel", "none"),
        "per": np.where(lost, 0.0, named["loss"] / ALL),
    }
    unknowns = [
        f"{name} of {count} states is not read: the channel table has no column for it."
        for name in ("jitter", "duplication", "route")
        if (count := int(np.count_nonzero(named[name])))
    ]
    return Trace(
        table_of("interval", columns, len(rows)),
        estimates=_limit(named["limit"], unknowns),
        unknowns=tuple(unknowns),
        source={"name": source.name},
    )


def _fields(source: Source, line: int, text: str) -> dict[str, int]:
    words = [word.strip() for word in text.split(",")]
    names = {len(SIMPLE): SIMPLE, len(EXTENDED): EXTENDED}.get(len(words))
    if names is None:
        raise source.error_at(
            line, f"{len(words)} fields; a simple line has {len(SIMPLE)}, an extended one {len(EXTENDED)}"
        )
    row = {name: parse_integer(source, line, word, name) for name, word in zip(names, words, strict=True)}
    if row["keep"] == 0:
        raise source.error_at(line, "keep is 0; it must be at least 1 µs")
    for name in ("loss", "duplication"):
        if row.get(name, 0) > ALL:
            raise source.error_at(line, f"{name} is {row[name]}; at most {ALL} (100 %)")
    return row


def _limit(limits: np.ndarray[tuple[int, ...], np.dtype[np.int64]], unknowns: list[str]) -> tuple[Estimate, ...]:
    first = int(limits[0])
    if np.any(limits != first):
        unknowns.append("The queue limit changes in the file; only the first value is read.")
    how = "the limit that the TheaterQ file gives"
    return (Estimate("queue_limit_pkts", float(first), None, None, "packets", True, how),)


def write(trace: Trace, where: str) -> tuple[str, list[str]]:
    """Return simple lines, and what the text omits."""
    states = forward_states(trace, where)
    if not states:
        raise ChannelError(f"{where}: the trace has no intervals, which a TheaterQ file requires")
    omitted = omissions(trace, {"intervals", "delay_ns", "rate_bps", "per"})
    limit = trace.estimate("queue_limit_pkts")
    packets = DEFAULT_LIMIT if limit is None or limit.value is None else max(1, round(limit.value))
    if limit is None or limit.value is None:
        omitted.append(f"the trace has no queue limit: {DEFAULT_LIMIT} packets are written")
    lines, rounded, without_delay = [], 0, 0
    for number, state in enumerate(states, 1):
        if state.rate_bps is None and not state.lost:
            raise ChannelError(f"{where}: interval {number} has no rate_bps, which TheaterQ requires")
        without_delay += state.delay_ns is None
        start, end = (round(t_ns / US) for t_ns in (state.start_ns, state.end_ns))
        rounded += state.start_ns % US != 0 or state.end_ns % US != 0
        if end > start:
            loss = ALL if state.lost else round((state.per or 0.0) * ALL)
            # A state that loses every packet may lack a rate: 0 is written.
            lines.append(f"{end - start},{state.delay_ns or 0},{round(state.rate_bps or 0.0)},{loss},{packets}")
    if without_delay:
        omitted.append(f"{without_delay} states have no delay: 0 is written")
    if rounded:
        omitted.append(f"{rounded} states are rounded to whole microseconds")
    return "\n".join(lines) + "\n", omitted
