"""Compares the extraction of recorded kernel flows with the link's log.

Run it as `python -m tests.channels.extraction.kernel_table [RUN...]`.

Only this file reads the true values (scenario.json, link.csv).
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hindflight.channels.extraction.extract import Extraction, extract

ROOT = Path(__file__).parents[3]
ALL = ROOT.parent / "shared" / "data" / "kernel"
KERNEL = ALL if ALL.is_dir() else ROOT / "fixtures" / "kernel"
"""All recorded flows where they are at hand, else the two that the repository holds."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One flow: its extraction, the scenario's parameters, and (true fate, verdict) of each lost transmission."""

    run: str
    extraction: Extraction
    params: dict[str, Any]
    fates: Counter[tuple[str, str]]

    def precision_recall(self) -> tuple[float | None, float | None]:
        """Of channel losses, known or not, against the link's `dropped_loss`; None where there are none."""
        right = self.fates["loss", "channel"]
        said = sum(n for (_, cause), n in self.fates.items() if cause == "channel")
        were = sum(n for (fate, _), n in self.fates.items() if fate == "loss")
        return (right / said if said else None), (right / were if were else None)

    def queue_called_channel(self) -> int:
        return self.fates["queue", "channel"]


def runs() -> list[str]:
    """Return the names of the available recorded runs."""
    return sorted(p.name for p in KERNEL.iterdir() if p.is_dir())


def score(run: str) -> list[Scored]:
    """Extract every long flow of `run` and compare it with the link's log, transmission by transmission."""
    from hindflight.toolkit.capture import load_capture

    capture = load_capture(KERNEL / run / "snd.pcap.xz")
    params = json.loads((KERNEL / run / "scenario.json").read_text())["params"]
    scored = []
    for flow in capture.flows.to_pylist():
        extraction = extract(capture.segments, capture.flows, capture.events, flow["flow_id"])
        ports = (
            (flow["a_port"], flow["b_port"]) if flow["data_direction"] == "a2b" else (flow["b_port"], flow["a_port"])
        )
        scored.append(Scored(run, extraction, params, _fates(run, ports, extraction)))
    return scored


def _fates(run: str, ports: tuple[int, int], extraction: Extraction) -> Counter[tuple[str, str]]:
    """Match transmissions by order: the link's log lists data packets in the order in which they left the sender.

    Verdict `delivered` is a transmission that was not found lost; losses of unknown cause count by their likelier
    cause.
    """
    with io.TextIOWrapper(lzma.open(KERNEL / run / "link.csv.xz")) as log:
        link = [
            row
            for row in csv.DictReader(log)
            if row["dir"] == "data" and int(row["plen"]) > 0 and (int(row["sport"]), int(row["dport"])) == ports
        ]
    packets = [row for row in extraction.channel.to_pylist() if row["kind"] == "packet"]
    fates: Counter[tuple[str, str]] = Counter()
    at = 0
    for row in packets:
        # The link may hold packets from after the capture's end; within it nothing is missing, so time decides.
        while at + 1 < len(link) and int(link[at]["t_arr_ns"]) < row["t_ns"]:
            at += 1
        fate, at = link[at]["fate"].removeprefix("dropped_"), min(at + 1, len(link) - 1)
        verdict = row["cause"]
        if verdict == "unknown":
            verdict = "channel" if row["lost"] else "queue"
        if fate in ("loss", "queue", "outage") or verdict != "none":
            fates[fate, verdict] += 1
    return fates


def _off(extraction: Extraction, name: str, truth: float) -> str:
    value = extraction.estimate(name).value
    return "-" if value is None else f"{100 * (value / truth - 1):+.2f}%"


def main(names: list[str]) -> None:
    """Print one line per flow."""
    print(f"{'run':16}{'prec':>7}{'recall':>7}{'q>chan':>7}{'unknown':>8}{'rate':>9}{'base rtt':>9}{'queue':>9}  fates")
    for run in names or runs():
        for scored in score(run):
            precision, recall = scored.precision_recall()
            words = ["-" if share is None else f"{share:.3f}" for share in (precision, recall)]
            off = [
                _off(scored.extraction, name, truth)
                for name, truth in (
                    ("rate_bps", scored.params["rate"]),
                    ("base_rtt_ns", scored.params["rtt_ms"] * 1e6),
                    ("queue_limit_pkts", scored.params["queue"]),
                )
            ]
            fates = ", ".join(f"{fate}>{cause} {n}" for (fate, cause), n in sorted(scored.fates.items()))
            print(
                f"{run:16}{words[0]:>7}{words[1]:>7}{scored.queue_called_channel():>7}"
                f"{scored.extraction.counts['unknown']:>8}{off[0]:>9}{off[1]:>9}{off[2]:>9}  {fates}"
            )


if __name__ == "__main__":
    main(sys.argv[1:])
