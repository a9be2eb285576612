"""How wide an interval of a prediction has to be: every variant of a recorded link predicted from the captures of the
others, compared with its own recording.

`python -m validation.calibration DIR...` prints the factors of `hindflight.replay.experiment.prediction`, by split
conformal prediction. DIR holds runs named LINK-reno, LINK-cubic, LINK-bbr. The recordings used here must not be those
on which the coverage of intervals is quoted.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from hindflight.replay.experiment.prediction import FACTORS, Circumstance
from validation.rebuild import VARIANTS

COVERAGE = 0.95
"""Share of intervals that shall hold what was recorded."""

MIN_PAIRS = 19
"""Pairs from which a quantile of 95 % exists: (n + 1) 0.95 <= n."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One prediction and what was recorded: goodputs in bit/s; `deviations` is the distance in units of the
    deviation."""

    link: str
    captured: str
    predicted: str
    circumstance: Circumstance
    value_bps: float
    recorded_bps: float
    deviations: float
    width: float


def pairs_of(folder: Path, name: str) -> list[Pair]:
    """Predict the other variants of a link from the capture of run `name`, and compare."""
    from hindflight.replay.scenario.from_capture import Choice
    from hindflight.workflow import what_if

    link, _, captured = name.rpartition("-")
    flows = _flows(folder / name)
    choice = Choice(variants=tuple(VARIANTS.values()), proxies=("none",))
    found = []
    with what_if(folder / name / "snd.pcap.xz", [], 1 if len(flows) > 1 else None, choice, 1) as tables:
        rows = tables.workspace.table("findings").to_pylist()
    circumstance = next(row["text"] for row in rows if row["metric"] == "circumstance")
    for kernel, variant in VARIANTS.items():
        other = folder / f"{link}-{kernel}"
        row = next(
            (r for r in rows if (r["subject"], r["metric"], r["section"]) == (variant, "goodput", "what_if")), None
        )
        if kernel == captured or row is None or row["low"] is None or not other.is_dir():
            continue
        recorded = _flows(other)[0]["goodput_kbps"] * 1e3
        distance = math.log(recorded / row["value"])
        edge = row["high"] if distance > 0 else row["low"]
        deviation = abs(math.log(edge / row["value"])) / FACTORS[circumstance]
        found.append(
            Pair(
                link,
                captured,
                kernel,
                circumstance,
                row["value"],
                recorded,
                abs(distance) / deviation,
                (row["high"] - row["low"]) / row["value"],
            )
        )
    return found


def _flows(run: Path) -> list[dict[str, float]]:
    flows: list[dict[str, float]] = json.loads((run / "scenario.json").read_text())["flows"]
    return flows


def calibrate(pairs: list[Pair]) -> dict[Circumstance, float]:
    """Return the factor of each circumstance: the conformal quantile of its distances."""
    by = {name: sorted(p.deviations for p in pairs if p.circumstance == name) for name in FACTORS}
    known = {name: _quantile(values) for name, values in by.items() if len(values) >= MIN_PAIRS}
    widest = max(known.values(), default=_quantile(sorted(p.deviations for p in pairs)))
    return {name: round(known.get(name, widest), 1) for name in FACTORS}


def _quantile(values: list[float]) -> float:
    """Return the conformal quantile: the ceil((n + 1) 0.95)-th smallest, at most the largest."""
    return values[min(len(values), math.ceil((len(values) + 1) * COVERAGE)) - 1]


def _all_pairs(folder: Path) -> Iterator[Pair]:
    names = [run.name for run in sorted(folder.iterdir()) if (run / "scenario.json").is_file()]
    with ProcessPoolExecutor(max_workers=2) as pool:
        for name, pairs in zip(names, pool.map(pairs_of, [folder] * len(names), names), strict=True):
            for pair in pairs:
                print(json.dumps(asdict(pair)), flush=True)
                yield pair
            if not pairs:
                print(json.dumps({"run": name, "pairs": 0}), flush=True)


if __name__ == "__main__":
    print(json.dumps(calibrate([pair for folder in sys.argv[1:] for pair in _all_pairs(Path(folder))])))
