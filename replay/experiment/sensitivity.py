"""How much replays of one captured channel differ when its losses go by position, by time, or by a fitted model.

A loss trace was recorded under one sender and is biased for another: no way is right, and the capture does not decide
where they disagree. Depends on scenarios, traces and fits. Read docs/channels/trace.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Any, Literal

import numpy as np

from hindflight.channels.fitting.fit import Fit, fit_models
from hindflight.channels.fitting.loss_sequence import loss_sequence_of
from hindflight.channels.models.losses import Bernoulli, FourState, GilbertElliott, Markov
from hindflight.channels.trace import Trace
from hindflight.replay.experiment.compare import Known, known_goodputs, t_quantile_975
from hindflight.replay.experiment.engine_inputs import Job, Mode, engine_config
from hindflight.replay.experiment.experiment import load_traces
from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.replay.scenario.loss_trace import LossTrace, loss_trace
from hindflight.replay.scenario.model import Scenario
from hindflight.replay.scenario.model import Trace as TraceLoss
from hindflight.toolkit.errors import ChannelError, ScenarioError
from hindflight.toolkit.schema import run_subject

Way = Literal["position", "resampled", "time", "model"]
WAYS: dict[Way, str] = {
    "position": "as captured, packet by packet",
    "resampled": "by position, blocks resampled",
    "time": "as captured, by the clock",
    "model": "a model fitted to the losses",
}
"""Every way, with what it is."""

FITTED = ("bernoulli", "gilbert_elliott", "four_state", "markov3")
"""Models that the engine can simulate, too."""

REPORTED_SEEDS = 8
"""Seeds of the sensitivity in a report, in addition to those of the comparison."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Goodput of one variant and proxy when replayed one way: of one run, or the mean over seeds with its interval."""

    variant: str
    proxy: str
    way: Way
    goodput_bps: float
    low_bps: float | None
    high_bps: float | None


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """All outcomes; `fits` names the model of each trace with its verdict."""

    outcomes: tuple[Outcome, ...]
    fits: dict[str, tuple[str, str]]

    def of(self, variant: str, proxy: str) -> float:
        """Maximum minus minimum goodput over the ways, as a share of their mean."""
        found = [o.goodput_bps for o in self.outcomes if (o.variant, o.proxy) == (variant, proxy)]
        return (max(found) - min(found)) / mean(found) if mean(found) else 0.0

    def subjects(self) -> list[tuple[str, str]]:
        """Every variant and proxy, in the scenario's order."""
        return list(dict.fromkeys((o.variant, o.proxy) for o in self.outcomes))

    def same_order(self) -> bool:
        """Whether all ways put variants and proxies in the same order."""
        orders = list(self.orders().values())
        return all(order == orders[0] for order in orders)

    def orders(self) -> dict[Way, list[tuple[str, str]]]:
        """Variants and proxies by falling goodput, for each way."""
        orders: dict[Way, list[tuple[str, str]]] = {}
        for way in WAYS:
            mine = sorted((o for o in self.outcomes if o.way == way), key=lambda o: -o.goodput_bps)
            orders[way] = [(o.variant, o.proxy) for o in mine]
        return orders


def measure_sensitivity(scenario: Scenario, folder: Path, *, threads: int | None = None) -> Sensitivity:
    """Replay every variant and proxy of `scenario`, whose trace files are relative to `folder`, in every way.

    ScenarioError if it names no loss trace; ChannelError if a trace has no times or nothing can be fitted to it.
    """
    traces = load_traces(scenario, folder)
    if not traces:
        raise ScenarioError(
            f"{scenario.name}: no link has a loss trace, so there is one way to replay it",
            'a captured channel is written as loss = { model = "trace", file = "…" }',
        )
    losses = {name: loss_trace(trace, name) for name, trace in traces.items()}
    return _measure(scenario, traces, losses, threads=threads, known={})


def _measure(
    scenario: Scenario,
    traces: Mapping[str, Trace],
    losses: Mapping[str, LossTrace],
    *,
    threads: int | None,
    known: Known,
) -> Sensitivity:
    """Replay every variant and proxy in every way, but for the runs whose goodput is `known`."""
    timed = {name: losses_by_time(trace, name) for name, trace in traces.items()}
    fits = {name: _best(trace, name) for name, trace in traces.items()}
    modelled = {name: model_config(fit) for name, fit in fits.items()}
    first = scenario.compare.first_seed
    seeds = range(first, first + max(2, scenario.compare.seeds))
    found: dict[tuple[str, str, Way], list[float]] = {}
    plan: list[tuple[str, str, Way]] = []
    configurations = []
    for variant, proxy, way in product(scenario.compare.variants, scenario.compare.proxies, WAYS):
        mode: Mode = "resampled" if way == "resampled" else "replayed"
        for seed in seeds if way in {"resampled", "model"} else (first,):
            made = known.get((variant, proxy, mode, seed)) if way in {"position", "resampled"} else None
            if made is not None:
                found.setdefault((variant, proxy, way), []).append(made)
                continue
            job = Job(variant, proxy, "what_if", mode, seed, False)
            config = engine_config(scenario, job, losses, timed_breaks=way == "position")
            if way in {"time", "model"}:
                _replace(config, scenario, timed if way == "time" else modelled)
            plan.append((variant, proxy, way))
            configurations.append(Configuration(config, seed, recorded=False))
    runs = [
        run for run in run_configurations(configurations, threads=threads)["runs"].to_pylist() if run["flow_id"] == 1
    ]
    for key, run in zip(plan, runs, strict=True):
        found.setdefault(key, []).append(run["goodput_bps"])
    ordered = {key: found[key] for key in product(scenario.compare.variants, scenario.compare.proxies, WAYS)}
    named = {name: (fit.model, str(fit.verdict)) for name, fit in fits.items()}
    return Sensitivity(tuple(_outcome(key, values) for key, values in ordered.items()), named)


def sensitivity_findings(
    scenario: Scenario,
    traces: Mapping[str, Trace],
    losses: Mapping[str, LossTrace],
    runs: Sequence[Mapping[str, Any]],
    variants: Sequence[str],
    threads: int | None = None,
) -> list[dict[str, Any]]:
    """Return rows of `findings` on how much depends on the way of replay; over no more than REPORTED_SEEDS seeds.

    `traces` are those of the scenario by file name, `losses` what is replayed of them. `runs` are those of the
    comparison, of `variants`, which are not made again. Where no sensitivity can be computed (no loss to fit, no times)
    one row says why.
    """
    compare = scenario.compare.model_copy(
        update={"seeds": min(scenario.compare.seeds, REPORTED_SEEDS), "variants": tuple(variants)}
    )
    few = scenario.model_copy(update={"compare": compare})
    plain = {"section": "sensitivity", "subject": "capture", "metric": "", "unit": "", "verdict": "info"}
    try:
        found = _measure(few, traces, losses, threads=threads, known=known_goodputs(runs))
    except ChannelError as error:
        text = (
            "How much depends on the way in which losses of the channel are replayed (not those of a full queue or an "
            f"outage) is not known: {error}."
        )
        return [{**plain, "verdict": "unknown", "text": text}]
    rows: list[dict[str, Any]] = []
    for outcome in found.outcomes:
        subject = run_subject(outcome.variant, outcome.proxy)
        rows.append(
            {
                **plain, "subject": subject, "metric": f"by_{outcome.way}", "value": outcome.goodput_bps,
                "low": outcome.low_bps, "high": outcome.high_bps, "unit": "bit/s", "text": "",
            }
        )  # fmt: skip
    for variant, proxy in found.subjects():
        share = 100 * found.of(variant, proxy)
        rows.append(
            {
                **plain,
                "subject": run_subject(variant, proxy),
                "metric": "spread",
                "value": share,
                "unit": "%",
                "text": "",
            }
        )
    widest = max(found.of(*subject) for subject in found.subjects())
    named = "; ".join(f"{model}, {verdict}" for model, verdict in found.fits.values())
    order = "the same" if found.same_order() else "not the same"
    text = (
        "Another sender would not have met exactly the losses that were recorded. Therefore each choice was replayed "
        "in four ways: with the losses by position, in resampled blocks, by the clock, and from a fitted model "
        f"({named}). "
        f"Between the ways the goodput of a choice differs by up to {100 * widest:.0f} %, and the order of the choices "
        f"is {order} in all four."
    )
    if not found.same_order():
        text += " This capture does not show which way is right."
    return [{**plain, "text": text}, *rows]


def _outcome(key: tuple[str, str, Way], values: list[float]) -> Outcome:
    if len(values) == 1:
        return Outcome(*key, values[0], None, None)
    half = t_quantile_975(len(values) - 1) * stdev(values) / sqrt(len(values))
    return Outcome(*key, mean(values), mean(values) - half, mean(values) + half)


def _replace(config: dict[str, Any], scenario: Scenario, losses: Mapping[str, dict[str, Any]]) -> None:
    """Replace loss traces by other processes."""
    for link, config_of_link in zip(scenario.links, config["path"]["links"], strict=True):
        for direction, way in ((link.forward, "forward"), (link.backward, "reverse")):
            if isinstance(direction.loss, TraceLoss):
                config_of_link[way] = {**config_of_link[way], "loss": losses[direction.loss.file]}


def losses_by_time(trace: Trace, where: str) -> dict[str, Any]:
    """Return the channel's losses by the clock as an engine configuration: a run of losses drops all packets from
    halfway after the packet before it to halfway before the one after it. Time 0 is a round trip before the first
    packet.

    ChannelError if the packets have no times.
    """
    sequence = loss_sequence_of(trace, where)
    if sequence.t_ns[-1] == sequence.t_ns[0]:
        raise ChannelError(f"{where}: its packets have no times, so it cannot be replayed by time")
    trip = next((e.value for name in ("base_rtt_ns", "min_rtt_ns") if (e := trace.estimate(name)) and e.value), 0.0)
    t_ns = sequence.t_ns - sequence.t_ns[0] + round(trip)
    edges = np.flatnonzero(np.diff(sequence.lost, prepend=0, append=0))
    spans: list[dict[str, Any]] = [{"start_ns": 0, "per": 0.0}]
    for first, after in edges.reshape(-1, 2).tolist():
        start = t_ns[first] if first == 0 else (t_ns[first - 1] + t_ns[first]) // 2
        end = t_ns[after - 1] + 1 if after == len(t_ns) else (t_ns[after - 1] + t_ns[after] + 1) // 2
        for at, per in ((int(start), 1.0), (max(int(end), int(start) + 1), 0.0)):
            if at == spans[-1]["start_ns"]:
                spans[-1] = {"start_ns": at, "per": per}
            elif at > spans[-1]["start_ns"]:
                spans.append({"start_ns": at, "per": per})
    return {"kind": "timeline", "spans": spans}


def _best(trace: Trace, where: str) -> Fit:
    return fit_models(loss_sequence_of(trace, where), FITTED).best


def model_config(fit: Fit) -> dict[str, Any]:
    """Return the fitted model as an engine configuration."""
    x = {parameter.name: parameter.value for parameter in fit.parameters}
    return _MODELS[fit.model](x)


def _markov3(x: dict[str, float]) -> dict[str, Any]:
    rows = (
        (max(0.0, 1 - x["p12"] - x["p13"]), x["p12"], x["p13"]),
        (x["p21"], max(0.0, 1 - x["p21"] - x["p23"]), x["p23"]),
        (x["p31"], x["p32"], max(0.0, 1 - x["p31"] - x["p32"])),
    )
    return Markov(model="markov", transitions=rows, loss=(x["loss1"], x["loss2"], x["loss3"])).config()


def _four_state(x: dict[str, float]) -> dict[str, Any]:
    # Two probabilities of one row whose sum is 1 may exceed it by rounding.
    p32, p14 = min(x["p32"], 1 - x["p31"]), min(x["p14"], 1 - x["p13"])
    return FourState(model="four_state", p13=x["p13"], p31=x["p31"], p32=p32, p23=x["p23"], p14=p14).config()


_MODELS: dict[str, Callable[[dict[str, float]], dict[str, Any]]] = {
    "bernoulli": lambda x: Bernoulli(model="bernoulli", per=x["per"]).config(),
    "gilbert_elliott": lambda x: GilbertElliott(
        model="gilbert_elliott", p=x["p"], r=x["r"], h=x["h"], k=x["k"]
    ).config(),
    "four_state": _four_state,
    "markov3": _markov3,
}
