"""Judges every capture of a folder of recorded runs, adds the scores up and names the worst runs.

Depends on `truth`, `claims`, `scores` and `links`; does not show anything.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hindflight.toolkit.errors import ChannelError, LogError
from validation.captures.claims import FlowClaims, claims_of, when_sent
from validation.captures.links import LinkScore, score_link
from validation.captures.scores import CauseScore, Counts, WindowScore, score_causes, score_losses, score_windows
from validation.captures.truth import FlowTruth, RunTruth, read_truth
from validation.recorded import find_runs

if TYPE_CHECKING:
    from hindflight.toolkit.capture import Capture

DISTURBED_US = 1000.0
"""A run whose emulator was later than this in one of 100 packets is a disturbed recording, and is not judged."""

SIDES = ("sender", "receiver")


@dataclass(frozen=True, slots=True)
class FlowScore:
    """One flow of one run, seen by one capture; `link` is None where no channel can be extracted.

    `lost` of its `transmissions` were lost, whether or not the capture shows it.
    """

    run: str
    side: str
    congestion_control: str
    sack: bool
    transmissions: int
    lost: int
    losses: Counts
    causes: CauseScore
    windows: WindowScore
    link: LinkScore | None
    notes: tuple[str, ...] = ()
    timestamps: bool = True

    @property
    def unknown_lost(self) -> int:
        """Lost transmissions of which the claims say that it is not known whether they arrived."""
        return self.lost - self.losses.cases


@dataclass(frozen=True, slots=True)
class Judged:
    """All flows of a folder, and the runs that were left out with the reason."""

    flows: list[FlowScore] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)


def judge_captures(folder: Path, on_done: Callable[[int, int], None]) -> Judged:
    """Judge the captures of all runs in `folder`; a disturbed run is left out and named. LogError if there is none."""
    judged, runs = Judged(), find_runs(folder)
    for number, path in enumerate(runs, 1):
        disturbance = disturbed(path)
        if disturbance:
            judged.left_out.append((path.name, disturbance))
        else:
            judged.flows.extend(_judge_run(path))
        on_done(number, len(runs))
    return judged


def runs_by_link(folder: Path, first: int | None = None) -> dict[str, dict[str, Path]]:
    """Return the undisturbed runs in `folder`, by link and congestion control, in the order of names: of all
    links or of the `first` so many. LogError if there is no run."""
    links: dict[str, dict[str, Path]] = {}
    for run in find_runs(folder):
        if disturbed(run):
            continue
        link, _, control = run.name.rpartition("-")
        links.setdefault(link, {})[control] = run
    return dict(list(links.items())[:first])


def disturbed(run: Path) -> str | None:
    """Return what disturbed a recording: packets that the capture lost, or an emulator that came late."""
    scenario: dict[str, Any] = json.loads((run / "scenario.json").read_text())
    dropped = [line for one in scenario.get("tcpdump_drops", []) for line in one if not line.startswith("0 ")]
    late_us = float(scenario.get("timing_error_us", {}).get("p99", 0.0))
    if dropped:
        return f"tcpdump: {dropped[0]}"
    return f"the emulator was {late_us:.0f} us late (99th percentile)" if late_us > DISTURBED_US else None


def _judge_run(path: Path) -> Iterator[FlowScore]:
    from hindflight.toolkit.capture import load_capture

    captures = tuple(load_capture(path / name) for name in ("snd.pcap.xz", "rcv.pcap.xz"))
    truth = read_truth(path, captures[0].segments, captures[1].segments)
    for flow in truth.flows:
        for side, capture in zip(SIDES, captures, strict=True):
            claims = claims_of(capture, (flow.sport, flow.dport))
            if claims is None:
                raise LogError(f"{path}: the {side}'s capture lists no flow from port {flow.sport}")
            yield _judge_flow(truth, flow, claims, (side, capture))


def _judge_flow(run: RunTruth, flow: FlowTruth, claims: FlowClaims, seen: tuple[str, Capture]) -> FlowScore:
    side, capture = seen
    notes = [] if claims.vantage == side else [f"vantage {claims.vantage}"]
    link, at_sender = None, side == "sender"
    if at_sender:
        from hindflight.channels.extraction.extract import extract

        try:
            extraction = extract(capture.segments, capture.flows, capture.events, claims.flow_id)
            link = score_link(run, flow, extraction)
        except ChannelError as error:
            notes.append(f"no channel: {error}")
    return FlowScore(
        run=run.name,
        side=side,
        congestion_control=flow.congestion_control,
        sack=run.sack,
        transmissions=len(flow.transmissions),
        lost=sum(packet.lost for packet in flow.transmissions),
        losses=score_losses(flow, claims.losses, claims.undecided),
        causes=score_causes(flow, claims.causes) if at_sender else CauseScore(),
        windows=score_windows(flow, claims.windows if at_sender else when_sent(flow, claims.windows)),
        link=link,
        notes=tuple(notes),
        timestamps=run.params.get("timestamps", 1) != 0,
    )
