"""A scenario into engine jobs: one job is one configuration with one seed.

Depends on the engine's configuration (documented at `hindflight._native.replay`), not on how it is run. All jobs with
the same seed see the same channel, whatever the variant and the proxy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from hindflight.channels.intervals import Direction as Way
from hindflight.channels.models.losses import NoLoss
from hindflight.replay.scenario.applications import Writes
from hindflight.replay.scenario.channel import OWNERS_PER_LINK, channel_config
from hindflight.replay.scenario.draws import Open, as_captured, draw, in_other_phases
from hindflight.replay.scenario.flows import SharingFlow
from hindflight.replay.scenario.gateways import protect
from hindflight.replay.scenario.loss_trace import LossTrace, default_block_pkts
from hindflight.replay.scenario.model import Direction, Link, Loss, Scenario, Trace
from hindflight.replay.scenario.proxies import flow_config, proxy_config
from hindflight.replay.scenario.queues import RANDOM_QUEUES
from hindflight.toolkit.errors import ChannelError, ScenarioError

Purpose = Literal["self_check", "what_if"]
Mode = Literal["model", "replayed", "resampled"]


SELF_CHECK_REPEATS = 18
"""Repeats of a self-check that show by how much replays of one channel as captured differ: a flow of that channel lies
outside the range of the check and its repeats with a probability of 10 %."""


@dataclass(frozen=True, slots=True)
class Job:
    """One replay to run. `recorded` jobs give their whole time series, the others only their row of `runs`."""

    variant: str
    proxy: str
    purpose: Purpose
    mode: Mode
    seed: int
    recorded: bool


def plan_self_check(scenario: Scenario, candidates: tuple[str, ...]) -> list[Job]:
    """Return the jobs of the self-check: every candidate over the trace as captured, without a proxy."""
    mode: Mode = "replayed" if _has_trace(scenario) else "model"
    return [Job(variant, "none", "self_check", mode, scenario.compare.first_seed, True) for variant in candidates]


def plan_repeats(scenario: Scenario, variant: str) -> list[Job]:
    """Return the jobs of the self-check of one variant over again, as other seeds have it: see `engine_config`. None
    where another seed has another channel or other traffic, too: its repeats would not show by how much replays of one
    channel differ. They are recorded, since only recorded jobs are measured.
    """
    if not all(_same_with_every_seed(link) for link in scenario.links) or _has_random_traffic(scenario):
        return []
    (job,) = plan_self_check(scenario, (variant,))
    return [replace(job, seed=job.seed + more) for more in range(1, 1 + SELF_CHECK_REPEATS)]


def _same_with_every_seed(link: Link) -> bool:
    """Return whether neither losses nor delays of a link are random: all losses are replayed, or its queue's."""
    ways = (link.forward, link.backward)
    return link.channel is None and all(
        isinstance(way.loss, Trace | NoLoss) and way.jitter is None and way.queue.kind not in RANDOM_QUEUES
        for way in ways
    )


def _has_random_traffic(scenario: Scenario) -> bool:
    """Return whether datagrams or an application have random times or sizes."""
    applications = (flow.application for flow in (scenario.flow, *scenario.flows))
    spreads = (getattr(each, "spread", None) for each in (*scenario.datagrams, *applications))
    return any(spread not in (None, "fixed") for spread in spreads)


def plan_comparison(scenario: Scenario, variants: tuple[str, ...]) -> list[Job]:
    """Return the jobs of the comparison, in the order of the report.

    Per variant and proxy: the trace as captured, then one resampled run per seed. A scenario without a trace has model
    runs only. The first of them is recorded, or all, or none: as `keep` says.
    """
    later = scenario.keep.runs == "all"
    recorded = scenario.keep.series != "none"
    first = scenario.compare.first_seed
    seeds = range(first, first + scenario.compare.seeds)
    traced = _has_trace(scenario)
    jobs = []
    for variant in variants:
        for proxy in scenario.compare.proxies:
            if traced:
                jobs.append(Job(variant, proxy, "what_if", "replayed", first, recorded))
                jobs += [Job(variant, proxy, "what_if", "resampled", seed, later) for seed in seeds]
            else:
                kept = [recorded, *(later for _ in seeds[1:])]
                jobs += [Job(variant, proxy, "what_if", "model", *each) for each in zip(seeds, kept, strict=False)]
    return jobs


def trace_files(scenario: Scenario) -> list[tuple[str, Trace]]:
    """Return the traces that the scenario names, with the key path of each."""
    found = []
    for i, link in enumerate(scenario.links):
        if isinstance(link.loss, Trace):
            found.append((f"links[{i}].loss.file", link.loss))
        if isinstance(link.backward.loss, Trace):
            found.append((f"links[{i}].reverse.loss.file", link.backward.loss))
    return found


def engine_config(
    scenario: Scenario, job: Job, traces: Mapping[str, LossTrace], *, timed_breaks: bool = True
) -> dict[str, Any]:
    """Return the engine's configuration for one job; `traces` holds the contents of each trace file by name.

    With `timed_breaks`, a captured channel as captured has the breaks of its link at their times. A self-check replays
    other flows as the packets that `traces` has of them, if it has any; with another seed than the first, in another
    phase of the host's timer tick, and with other random numbers of the congestion control.
    """
    chain = scenario.proxies_of().chain(job.proxy)
    protected = protect(scenario.tree, scenario.links, [proxy for proxy in chain if proxy.protects])
    scenario = scenario.model_copy(update={"links": protected.links})
    config: dict[str, Any] = {
        "duration_ns": scenario.duration,
        "path": {
            "nodes": list(scenario.tree.nodes),
            "links": [
                {
                    "name": link.name,
                    **_ends(link),
                    "forward": _over_time(scenario, number, job, "a2b", traces),
                    "reverse": _over_time(scenario, number, job, "b2a", traces),
                }
                for number, link in enumerate(scenario.links)
            ],
        },
        "flows": [
            {
                "name": "flow",
                "proxies": [
                    proxy_config(proxy, scenario.flow, job.variant, scenario.variants)
                    for proxy in chain
                    if not proxy.protects
                ],
                **flow_config(scenario.flow, job.variant, scenario.variants),
            },
            *(_sharing_flow(scenario, flow) for flow in scenario.flows),
        ],
        "datagrams": [datagrams.engine() for datagrams in scenario.datagrams],
    }
    for (number, way), share in protected.rate_shares.items():
        _share_rate(config["path"]["links"][number], "forward" if way == "a2b" else "reverse", share)
    if job.purpose == "self_check":
        config |= _others_as_recorded(scenario, config, traces)
        config = config if job.seed == scenario.compare.first_seed else in_other_phases(config, job.seed)
    open_ = _open_of(scenario, traces)
    if open_ is None:
        return config
    if job.mode == "resampled":
        return draw(config, open_, job.seed, _for_a_time(scenario), scenario.traced_link)
    return as_captured(config, open_, scenario.traced_link) if timed_breaks else config


def _others_as_recorded(
    scenario: Scenario, config: Mapping[str, Any], traces: Mapping[str, LossTrace]
) -> dict[str, Any]:
    """Return the flow under test with the packets of other flows as captured, instead of these flows; their ACKs, which
    are small, are left out. Datagrams of the scenario stay. Nothing where the traced link has no such packets."""
    loss = scenario.links[scenario.traced_link].forward.loss
    others = traces[loss.file].others if isinstance(loss, Trace) else None
    if others is None:
        return {}
    return {"flows": config["flows"][:1], "datagrams": [*config["datagrams"], others.engine(scenario.duration)]}


def _share_rate(link: dict[str, Any], way: str, share: float) -> None:
    """Leave `share` of the rate of one direction to data: redundant packets have the rest."""

    def scaled(part: Mapping[str, Any]) -> dict[str, Any]:
        rate = part.get("rate_bps")
        return {**part, "rate_bps": rate} if rate is None else {**part, "rate_bps": share * rate}

    link[way] = {**scaled(link[way]), "schedule": [scaled(change) for change in link[way]["schedule"]]}


def _for_a_time(scenario: Scenario) -> dict[int, dict[str, Any]]:
    """Return the applications that may have written for a time, by the number of the flow."""
    found = {}
    for number, flow in enumerate((scenario.flow, *scenario.flows)):
        timed = flow.application.for_a_time() if isinstance(flow.application, Writes) else None
        if timed is not None:
            found[number] = timed
    return found


def _open_of(scenario: Scenario, traces: Mapping[str, LossTrace]) -> Open | None:
    """Return what the capture of a drafted scenario leaves open; None for other scenarios, whose blocks are
    resampled."""
    loss = scenario.links[scenario.traced_link].forward.loss
    if scenario.captured is None or scenario.captured.transfer is None or not isinstance(loss, Trace):
        return None
    return traces[loss.file].open


def _sharing_flow(scenario: Scenario, flow: SharingFlow) -> dict[str, Any]:
    return {
        "name": flow.name,
        "from": flow.sender,
        "to": flow.receiver,
        "proxies": [
            proxy_config(proxy, flow, flow.variant, scenario.variants)
            for proxy in scenario.proxies_of(flow).joined(flow.proxies)
        ],
        **flow_config(flow, flow.variant, scenario.variants),
    }


def _ends(link: Link) -> dict[str, str]:
    return {} if link.ends is None else dict(zip(("from", "to"), link.ends, strict=True))


def _has_trace(scenario: Scenario) -> bool:
    return bool(trace_files(scenario))


def _over_time(scenario: Scenario, number: int, job: Job, way: Way, traces: Mapping[str, LossTrace]) -> dict[str, Any]:
    """One direction of a link, with its channel if it has one."""
    link = scenario.links[number]
    direction = link.forward if way == "a2b" else link.backward
    config = _direction(direction, link, job.mode, traces)
    if direction.rate_file is not None:
        config["rate_trace"] = scenario.rate_trace(direction.rate_file).config()
    if way == "b2a" and not isinstance(link.backward.loss, NoLoss):
        # Acknowledgements carry no payload, and a model for the way back is meant for them.
        config["loss_applies_to"] = "all"
    if link.channel is None:
        return config
    owner = number * OWNERS_PER_LINK
    try:
        said = channel_config(link.channel, scenario.duration, seed=job.seed, owner=owner, way=way)
    except (ChannelError, ScenarioError) as error:
        raise ScenarioError(f"{scenario.where}: links[{number}].channel: {error}", error.hint) from error
    return {**config, **{name: value for name, value in said.items() if value is not None}}


def _direction(direction: Direction, link: Link, mode: Mode, traces: Mapping[str, LossTrace]) -> dict[str, Any]:
    return {
        "rate_bps": direction.rate,
        "delay_ns": direction.delay,
        "jitter": None if direction.jitter is None else direction.jitter.engine(),
        "queue": direction.queue.engine(),
        "loss": _loss(direction.loss, mode, traces),
        "in_order": link.in_order,
        "schedule": [
            {
                "at_ns": change.at,
                "rate_bps": change.rate,
                "delay_ns": change.delay,
                "outage": change.outage,
                "hold": change.hold,
            }
            for change in link.changes
        ],
    }


def _loss(loss: Loss, mode: Mode, traces: Mapping[str, LossTrace]) -> dict[str, Any]:
    match loss:
        case Trace(file=file, block=block):
            trace = traces[file]
            return {
                "kind": "trace",
                "mode": "resampled" if mode == "resampled" else "replayed",
                "positions": trace.lost,
                "known_pkts": trace.length,
                "block_pkts": block or default_block_pkts(trace),
                "late": trace.late,
            }
        case _:
            return loss.config()
