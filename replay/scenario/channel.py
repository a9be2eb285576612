"""A channel model or file as the engine's configuration of a link over time: schedule and losses by the clock.

Depends on link states, not on how they were made, and on no flow. Equal seeds give equal channels, whatever the
variant and the proxy. Read docs/scenario.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.channels.formats import read_channel
from hindflight.channels.intervals import Direction as Way
from hindflight.channels.intervals import State, loss_config, merge, read_states, truncate
from hindflight.channels.models.link_layer import LinkProtection, LossModel
from hindflight.channels.models.synth import model_states
from hindflight.replay.scenario.model import ChannelFile
from hindflight.replay.scenario.quantities import MIN_RATE_BPS
from hindflight.toolkit.errors import ScenarioError

if TYPE_CHECKING:
    from hindflight.channels.models.link_layer import LinkModel
    from hindflight.replay.scenario.model import Channel

OWNERS_PER_LINK = 64
"""Streams of random numbers that a link's channel may take: a street takes the next one for each `other`."""


def channel_config(channel: Channel, span_ns: int, *, seed: int, owner: int, way: Way) -> dict[str, Any]:
    """Return rate_bps, delay_ns, schedule and loss of one direction of a link; None where the channel says nothing."""
    if isinstance(channel, LinkProtection):
        if isinstance(channel.over, LossModel):
            return {"loss": channel.config(), "loss_applies_to": "all"}
        states = link_states(channel.over, span_ns + channel.reach_ns, seed, owner, way)
        # An outage is a loss to the link layer, which may repair it, as in `channels.models.link_layer`; else it is the
        # link's.
        config = _config([replace(state, outage=False) for state in states])
        return {**config, "loss": channel.guard(loss_config(states, outages=True))}
    return _config(link_states(channel, span_ns, seed, owner, way))


def _config(states: Sequence[State]) -> dict[str, Any]:
    first = states[0]
    return {
        "rate_bps": first.rate_bps or None,  # a rate of 0 is no rate to begin with: the link is held
        "delay_ns": first.delay_ns,
        "schedule": list(_schedule(states, first)),
        "loss": loss_config(states, outages=False),
        "loss_applies_to": "all",
    }


def link_states(channel: Channel, span_ns: int, seed: int, owner: int, way: Way) -> tuple[State, ...]:
    """Return the states of a link from time 0 to `span_ns`; a file has the same for every seed, a model both ways."""
    if isinstance(channel, ChannelFile):
        path = Path(channel.file)
        return _file_states(path, path.stat().st_mtime_ns if path.exists() else 0, span_ns, way)
    return _drawn_states(channel, span_ns, seed, owner)


@lru_cache(maxsize=8)
def _file_states(path: Path, _changed_ns: int, span_ns: int, way: Way) -> tuple[State, ...]:
    return tuple(merge(truncate(_played(path, way), span_ns)))


@lru_cache(maxsize=32)
def _drawn_states(model: LinkModel, span_ns: int, seed: int, owner: int) -> tuple[State, ...]:
    return tuple(model_states(model, span_ns, seed, owner))


def _played(path: Path, way: Way) -> Iterator[State]:
    """The file's states from its first on; past its end it starts again.

    A file of one direction describes that of the data; the reverse path is equal, and loses packets only in outages.
    """
    channel = read_channel(path).intervals()
    directions = sorted(set(channel["direction"].to_pylist()))
    if not directions:
        raise ScenarioError(f'{path}: has no intervals; a trace of packets is a loss: loss = {{ model = "trace" }}')
    states = read_states(channel, way if way in directions else directions[0], str(path))
    if not states:
        raise ScenarioError(f"{path}: its intervals cover no time")
    if len(directions) == 1 and way == "b2a":
        states = [replace(state, per=None, ber=None) for state in states]
    begin, end = states[0].start_ns, states[-1].end_ns
    shift = -begin
    while True:
        for state in states:
            yield replace(state, start_ns=state.start_ns + shift, end_ns=state.end_ns + shift)
        shift += end - begin


def _schedule(states: Iterable[State], first: State) -> Iterator[dict[str, Any]]:
    rate, delay = None, None
    down = held = False
    for state in states:
        change: dict[str, Any] = {}
        now_held = state.rate_bps is not None and state.rate_bps < MIN_RATE_BPS
        if state.rate_bps is not None and not now_held and state.rate_bps != rate:
            rate = change["rate_bps"] = state.rate_bps
        if state.delay_ns is not None and state.delay_ns != delay:
            delay = change["delay_ns"] = state.delay_ns
        if state.outage != down:
            down = change["outage"] = state.outage
        if now_held != held:
            held = change["hold"] = now_held
        if state.overlap_ns is not None and state is not first:
            change["overlap_ns"] = state.overlap_ns
        if change:
            yield {"at_ns": state.start_ns - first.start_ns, **change}
