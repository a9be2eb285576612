"""Two flows at one bottleneck, recorded many times, compared with as many runs of the engine by their means.

Two flows that fill one drop-tail queue are chaotic: a packet that comes a moment later decides who loses, and all that
follows. One run of either side therefore decides nothing. Depends on the recording that
`fixtures/record_shared_bottleneck.py` writes and the engine's configuration. Bounds of a single run are `linux`'s.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from hindflight.replay.experiment.run import Configuration, run_configurations
from hindflight.toolkit.errors import LogError
from validation.judge import Check, failures, within_share
from validation.linux import GOODPUT_SHARES, JAIN, jain_index
from validation.rebuild import VARIANTS, buffers

FROM_NORMAL_95 = 1.96
"""Half a two-sided 95 % interval in standard errors."""

FEWEST_RUNS = 10
"""With fewer runs, an interval of so many standard errors is not a 95 % interval and cannot serve as a bound."""

Goodputs = tuple[float, ...]
"""Of the flows of one run, in bit/s."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What was recorded: the link and the flows by the recorder's own names, and the goodputs of each run."""

    kernel: str
    parameters: Mapping[str, Any]
    runs: tuple[Goodputs, ...]

    @property
    def variants(self) -> tuple[str, ...]:
        """The kernel's name of each flow's congestion control."""
        return tuple(self.parameters["variants"])


@dataclass(frozen=True, slots=True)
class Sample:
    """A quantity over the runs of one side: mean, standard deviation and number of runs."""

    mean: float
    sd: float
    runs: int

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self.sd / math.sqrt(self.runs)

    @property
    def sd_percent(self) -> float:
        """Standard deviation in percent of the mean."""
        return 100 * self.sd / self.mean


@dataclass(frozen=True, slots=True)
class Compared:
    """One quantity on both sides; `single` is by how much one run may miss one recording, in the same unit."""

    subject: str
    metric: str
    unit: str
    kernel: Sample
    engine: Sample
    single: float

    @property
    def joint(self) -> float:
        """Half the 95 % interval of the difference of the two means."""
        return FROM_NORMAL_95 * math.hypot(self.kernel.error, self.engine.error)

    @property
    def difference(self) -> float:
        """Engine's mean less the kernel's."""
        return self.engine.mean - self.kernel.mean

    @property
    def check(self) -> Check:
        """Compares the means: the wider of the single run's bound and the joint interval is allowed."""
        allowed = max(self.single, self.joint)
        text = (
            f"{self.subject}: over {self.engine.runs} runs of the engine {self.metric} is {self.engine.mean:.6g} "
            f"(standard deviation {self.engine.sd_percent:.1f} %), over {self.kernel.runs} recordings "
            f"{self.kernel.mean:.6g} ({self.kernel.sd_percent:.1f} %); within {allowed:.4g} is allowed."
        )
        return Check(self.subject, self.metric, self.engine.mean, self.kernel.mean, allowed, self.unit, text)


@dataclass(frozen=True, slots=True)
class Repeated:
    """The comparison: a row per flow and one for Jain's index.

    `pairs_within` is the share of pairs of recordings of which each lies within the single run's bounds of the other:
    how often the kernel itself would pass for one run of itself.
    """

    kernel: str
    rows: tuple[Compared, ...]
    pairs_within: float

    @property
    def checks(self) -> list[Check]:
        """A check per row."""
        return [row.check for row in self.rows]


def validate_repeated(path: Path, *, threads: int | None = None) -> Repeated:
    """Compare the recording at `path` with as many runs of the engine; LogError where it is damaged."""
    recording = read_recording(path)
    return compare(recording, engine_runs(recording, threads))


def read_recording(path: Path) -> Recording:
    """Read what the recorder wrote; LogError where it is damaged, has too few runs or an unknown variant."""
    try:
        recording = _recording(json.loads(path.read_text()))
        configurations(recording)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise LogError(f"{path}: not a recording of a shared bottleneck ({error})") from error
    return recording


def _recording(document: Mapping[str, Any]) -> Recording:
    runs = tuple(tuple(float(flow["goodput_bps"]) for flow in run["flows"]) for run in document["runs"])
    recording = Recording(document["kernel"], document["parameters"], runs)
    if unknown := [name for name in recording.variants if name not in GOODPUT_SHARES]:
        raise ValueError(f"no bound for {', '.join(unknown)}; known: {', '.join(GOODPUT_SHARES)}")
    if len(runs) < FEWEST_RUNS:
        raise ValueError(f"{len(runs)} runs, and a comparison of means needs {FEWEST_RUNS}")
    if any(len(run) != len(recording.variants) or min(run) <= 0 for run in runs):
        raise ValueError(f"each run needs a goodput above 0 for each of {', '.join(recording.variants)}")
    return recording


def engine_runs(recording: Recording, threads: int | None = None) -> list[Goodputs]:
    """Return the goodputs of as many runs as were recorded."""
    configs = configurations(recording)
    jobs = [Configuration(config, seed=1, recorded=False) for config in configs]
    runs = run_configurations(jobs, threads=threads)["runs"].sort_by(
        [("run_id", "ascending"), ("flow_id", "ascending")]
    )
    delivered = runs["delivered_bytes"].to_numpy().reshape(len(configs), len(recording.variants))
    return [
        tuple(
            float(octets) * 8e9 / (config["duration_ns"] - flow["start_ns"])
            for octets, flow in zip(row, config["flows"], strict=True)
        )
        for row, config in zip(delivered, configs, strict=True)
    ]


def configurations(recording: Recording) -> list[dict[str, Any]]:
    """Return the engine's configurations: as many as were recorded, which differ only in the start of the later flows.

    Their starts are spread evenly over a round trip with a full queue. Closer together they would not count as so many:
    within the time that a packet takes in service, one queue often makes the same run of different starts.
    """
    parameters, count = recording.parameters, len(recording.runs)
    service_s = 8 * parameters["mtu_bytes"] / parameters["rate_bps"]
    span_s = parameters["rtt_s"] + (parameters["queue_pkts"] + 1) * service_s
    return [configuration(recording, round(1e9 * span_s * place / count)) for place in range(count)]


def configuration(recording: Recording, later_ns: int) -> dict[str, Any]:
    """Return the engine's configuration of the recorded link, all flows but the first `later_ns` later than there."""
    parameters = recording.parameters
    shared = {"rate_bps": parameters["rate_bps"], "delay_ns": round(parameters["rtt_s"] * 1e9 / 2)}
    queues = {
        side: {"kind": "drop_tail", "limit_pkts": parameters[name]}
        for side, name in (("forward", "queue_pkts"), ("reverse", "ack_queue_pkts"))
    }
    link = {"name": "link", **{side: {**shared, "queue": queue} for side, queue in queues.items()}}
    stack = {"smss_bytes": parameters["smss_bytes"], **buffers(parameters["sysctl"], parameters["smss_bytes"])}
    flows = [
        {
            "name": f"flow {number + 1}",
            "start_ns": round(number * parameters["stagger_s"] * 1e9) + (later_ns if number else 0),
            "variant": VARIANTS[variant],
            "profile": "linux",
            "application": {"kind": "greedy", "write_bytes": parameters["write_bytes"]},
            "stack": stack,
        }
        for number, variant in enumerate(recording.variants)
    ]
    return {
        "duration_ns": round(parameters["duration_s"] * 1e9),
        "path": {"nodes": ["sender", "receiver"], "links": [link]},
        "flows": flows,
    }


def compare(recording: Recording, engine: Sequence[Goodputs]) -> Repeated:
    """Compare the means of both sides."""
    together = f"{' and '.join(recording.variants)} at one bottleneck"
    rows = []
    for number, variant in enumerate(recording.variants):
        kernel, ours = (_sample([run[number] for run in runs]) for runs in (recording.runs, engine))
        single = GOODPUT_SHARES[variant] * kernel.mean
        rows.append(Compared(f"{together}, {variant}", "mean goodput", "bit/s", kernel, ours, single))
    kernel, ours = (_sample([jain_index(list(run)) for run in runs]) for runs in (recording.runs, engine))
    rows.append(Compared(together, "mean Jain index", "", kernel, ours, JAIN))
    pairs = list(permutations(recording.runs, 2))
    within = sum(_passes(recording.variants, *pair) for pair in pairs)
    return Repeated(recording.kernel, tuple(rows), within / len(pairs))


def _sample(values: Sequence[float]) -> Sample:
    return Sample(float(np.mean(values)), float(np.std(values, ddof=1)), len(values))


def _passes(variants: Sequence[str], run: Goodputs, recorded: Goodputs) -> bool:
    """Whether `run` would pass against `recorded` with the bounds of a single run."""
    checks = [
        within_share(variant, "goodput", ours, theirs, GOODPUT_SHARES[variant], "bit/s")
        for variant, ours, theirs in zip(variants, run, recorded, strict=True)
    ]
    checks.append(Check("all", "jain_index", jain_index(list(run)), jain_index(list(recorded)), JAIN, ""))
    return not failures(checks)
