"""Compares what-if with reality: predictions from the capture of one variant, and what the others did on that link.

Runs the command as users do. Each variant was recorded on the same link with other random losses, so even a
perfect prediction misses by the spread of single flights. Depends on the recorder's files and the
command's JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hindflight.toolkit.schema import INTERVAL_METRIC, OTHERS_AS_TCP_METRIC
from validation.captures.identifiable import is_identifiable
from validation.captures.report import runs_by_link
from validation.captures.scores import quantile
from validation.rebuild import VARIANTS
from validation.recorded import read_csv

FAMILIES = {"reno": {"reno", "newreno", "sack", "fack", "linux-reno"}, "cubic": {"cubic"}, "bbr": {"bbr"}}
"""Names that count as right for a congestion control of the kernel."""

SELF_CHECK_PERCENT = 5.0
OUTSIDE_WEIGHT = 40.0
"""2 / 0.05: what an interval score at 95 % charges for reality outside the interval."""

TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Asked:
    """What `whatif` said of one capture. `error` is its last line where it failed; `identifiable`: the network limited
    the flow enough for its congestion control to show. `as_tcp_percent` is the difference of the self-check where other
    flows on the link react as TCP does; without others it is that of the self-check."""

    link: str
    congestion_control: str
    group: str
    error: str | None
    named: str | None
    self_check_percent: float | None
    as_tcp_percent: float | None
    identifiable: bool
    captured_bps: float | None = None


@dataclass(frozen=True, slots=True)
class Pair:
    """A prediction of one variant from the capture of another, in bit/s; `mean` is None where none was given.

    `group` is the class of the link as it was drawn, `capacity` what its link can carry of payload. `deviations` are
    what the interval is made of below and above its middle, as `Prediction` has them.
    """

    link: str
    captured: str
    predicted: str
    group: str
    mean: float | None
    low: float | None
    high: float | None
    recorded: float
    capacity: float | None = None
    deviations: tuple[float, float] | None = None

    @property
    def error(self) -> float:
        """Relative error; of a prediction without a mean, that of the middle of its range."""
        return abs(self.middle / self.recorded - 1)

    @property
    def middle(self) -> float:
        """The mean, else the middle of the range, else 0."""
        if self.mean is not None:
            return self.mean
        return (self.low + self.high) / 2 if self.low is not None and self.high is not None else 0.0

    @property
    def holds(self) -> bool:
        """Whether the interval holds what was recorded."""
        return self.low is not None and self.high is not None and self.low <= self.recorded <= self.high

    @property
    def score(self) -> float:
        """Interval score at 95 %, relative to what was recorded: small is good."""
        low = self.middle if self.low is None else self.low
        high = self.middle if self.high is None else self.high
        return _interval_score(low, high, self.recorded)


def _interval_score(low: float, high: float, recorded: float) -> float:
    outside = max(0.0, low - recorded) + max(0.0, recorded - high)
    return (high - low + OUTSIDE_WEIGHT * outside) / recorded


@dataclass(frozen=True, slots=True)
class PairSummary:
    """A class of pairs. `answered` have a prediction, and errors and intervals are theirs; `*_all` are those of all."""

    asked: int
    answered: int
    median: float | None
    p90: float | None
    median_all: float | None
    p90_all: float | None
    coverage: float | None
    width_median: float | None
    width_p90: float | None
    score: float | None
    constant_score: float | None


def summarise(pairs: Sequence[Pair]) -> PairSummary:
    """Sum pairs up. `constant_score` is that of the best constant +-p % around the same means."""
    answered = [pair for pair in pairs if pair.mean is not None]
    errors = [pair.error for pair in answered]
    widths = [((pair.high or 0.0) - (pair.low or 0.0)) / pair.middle for pair in answered if pair.middle]
    shares = [share / 200 for share in range(400)]
    constant = [
        sum(_interval_score(p.middle * (1 - share), p.middle * (1 + share), p.recorded) for p in answered)
        for share in shares
    ]
    n = len(answered)
    return PairSummary(
        asked=len(pairs),
        answered=n,
        median=quantile(errors, 0.5),
        p90=quantile(errors, 0.9),
        median_all=quantile([pair.error for pair in pairs], 0.5),
        p90_all=quantile([pair.error for pair in pairs], 0.9),
        coverage=sum(pair.holds for pair in answered) / n if n else None,
        width_median=quantile(widths, 0.5),
        width_p90=quantile(widths, 0.9),
        score=sum(pair.score for pair in answered) / n if n else None,
        constant_score=min(constant) / n if n else None,
    )


def group_of(params: Mapping[str, Any]) -> str:
    """Return the class of a link: two flows, limited, steps, loss or steady, the first that holds."""
    if "second" in params or params.get("stagger"):
        return "two flows"
    if "write" in params or "rcvbuf" in params:
        return "limited"
    if params.get("events"):
        return "steps"
    return "steady" if params.get("loss", "none") == "none" else "loss"


def as_predicted(asked: Sequence[Asked], pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with the goodput of the recording counted as that of the prediction is: of its own capture, to
    the last new data. Those of a recording whose capture got no answer are left out."""
    captured = {(one.link, one.congestion_control): one.captured_bps for one in asked}
    counted = [(pair, captured.get((pair.link, pair.predicted))) for pair in pairs]
    return [replace(pair, recorded=goodput) for pair, goodput in counted if goodput is not None]


SENDER, RECEIVER = "snd.pcap.xz", "rcv.pcap.xz"


def ask_all(
    folder: Path, on_done: Callable[[int, int], None], first: int | None = None, capture: str = SENDER
) -> tuple[list[Asked], list[Pair]]:
    """Ask `whatif` about each `capture` in `folder` for all variants that were recorded on its link, with `first` about
    so many links, in the order of their names.

    Disturbed recordings are left out.
    """
    links = runs_by_link(folder, first)
    captures = [(link, control) for link, runs in links.items() for control in runs]
    asked, pairs = [], []
    for number, (link, control) in enumerate(captures, 1):
        recorded = {name: json.loads((run / "scenario.json").read_text()) for name, run in links[link].items()}
        answer, predictions = _ask(link, control, links[link][control] / capture, recorded)
        asked.append(answer)
        pairs += predictions
        on_done(number, len(captures))
    return asked, pairs


def _ask(link: str, control: str, capture: Path, recorded: Mapping[str, Any]) -> tuple[Asked, list[Pair]]:
    group = group_of(recorded[control]["params"])
    document, error = _what_if(capture, flow_number(recorded[control]["flows"]))
    found = {(row["section"], row["subject"], row["metric"]): row for row in document.get("findings", [])}
    replayed = next((row["variant"] for row in document.get("runs", []) if row["purpose"] == "what_if"), None)
    capacity = found.get(("what_if", replayed, "capacity"), {}).get("value")
    pairs = []
    for other in recorded:
        if other == control:
            continue
        row = found.get(("what_if", VARIANTS[other], "goodput"), {})
        goodput = recorded[other]["flows"][0]["goodput_kbps"] * 1e3
        said = (row.get("value"), row.get("low"), row.get("high"))
        part = found.get(("what_if", VARIANTS[other], INTERVAL_METRIC))
        deviations = (part["low"], part["high"]) if part else None
        pairs.append(Pair(link, control, other, group, *said, goodput, capacity, deviations))
    named = (document.get("captured_variant") or {}).get("name", replayed)
    check = found.get(("self_check", replayed, "goodput_difference"), {})
    as_tcp = found.get(("self_check", replayed, OTHERS_AS_TCP_METRIC), check)
    info = _tcp_info(capture.parent / recorded[control]["flows"][0]["tcpinfo"])
    differences = check.get("value"), as_tcp.get("value")
    captured = found.get(("self_check", "capture", "goodput"), {}).get("value")
    return Asked(link, control, group, error, named, *differences, is_identifiable(info, control), captured), pairs


def _tcp_info(polls: Path) -> dict[str, list[int]]:
    table = read_csv(polls)
    return {name: column.to_pylist() for name, column in zip(table.column_names, table.columns, strict=True)}


def flow_number(flows: Sequence[Mapping[str, Any]]) -> int:
    """Return which flow of the capture, from 1, is the one under test: the first of `flows`, which need not begin
    first."""
    return 1 + sum(int(other["t_syn_ns"]) < int(flows[0]["t_syn_ns"]) for other in flows)


def _what_if(capture: Path, flow: int) -> tuple[dict[str, Any], str | None]:
    """Return the JSON document and the error; an empty document where there is an error."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hindflight", "whatif", str(capture), "-o", f"{folder}/out", "--json"]
        command += ["--variants", ",".join(VARIANTS.values()), "--proxy", "none", "--flow", str(flow)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
        except subprocess.TimeoutExpired:
            return {}, f"no answer within {TIMEOUT_S} s"
    if ended.returncode:
        return {}, (ended.stderr.strip().splitlines() or [f"exit {ended.returncode}"])[-1]
    document: dict[str, Any] = json.loads(ended.stdout)
    return document, None
